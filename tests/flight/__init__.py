"""Tests of what Flight SQL alone has."""
