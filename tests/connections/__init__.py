"""Connections of other libraries as `conn`."""
