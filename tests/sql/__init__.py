"""Tests of ``longshore.sql``."""
