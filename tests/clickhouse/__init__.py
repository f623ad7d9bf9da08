"""Tests of what ClickHouse alone has."""
