"""Connections that outlive their reads."""
