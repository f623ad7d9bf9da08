"""What Trino alone has."""
