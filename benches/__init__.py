"""Measurements, and the demonstration."""
