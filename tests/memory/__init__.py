"""Processes that have little memory."""
