"""What ClickHouse alone has."""
