"""Conformance: the table of types, as cases that every source is held to."""
