"""ADBC drivers as sources."""
