"""What DuckDB alone has."""
