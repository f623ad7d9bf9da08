"""Tests of what PostgreSQL alone has: its types, statements, protocol and servers."""
