"""Longshore as an ADBC driver, through the driver managers of several languages."""
