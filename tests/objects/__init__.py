"""Columns of Python objects as Arrow has them."""
