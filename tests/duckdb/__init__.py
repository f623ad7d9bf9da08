"""Tests of what DuckDB alone has."""
