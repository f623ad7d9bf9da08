"""Tests of what Trino alone has."""
