"""Connecting: where to, as whom, encrypted or not, and what is said where nobody is."""
