"""What the ODBC source alone has."""
