"""Connecting: where to, as whom, encrypted or not, and what is said where no one is."""
