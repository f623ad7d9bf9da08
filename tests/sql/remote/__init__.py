"""Tests of attached databases in ``longshore.sql``."""
