"""Tests of what the ODBC source alone has."""
