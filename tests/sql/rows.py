"""The rows of a query, as Python's own."""

from typing import Any

import longshore

__all__ = ["rows"]


def rows(query: str, **arguments: Any) -> list[dict[str, Any]]:
    """Run a query whose tables are all keywords, and give its rows."""
    found: list[dict[str, Any]] = longshore.sql(query, return_type="arrow", **arguments).to_pylist()
    return found
