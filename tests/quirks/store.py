"""The embedded store."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import longshore
from tests.quirks import duckdb


@contextlib.contextmanager
def in_directory(_: pytest.FixtureRequest, directory: Path) -> Iterator[str]:
    """Give the URL of a directory."""
    path = directory / "lake"
    longshore.open(path).close()
    yield f"store:///{path}"


# Its SQL is DuckDB's.
QUIRKS = replace(
    duckdb.QUIRKS,
    source="store",
    place=in_directory,
    # Of UNIQUE constraints, foreign keys, views and schemas it has none.
    left_out=frozenset({"test_metadata"}),
    unique="PRIMARY KEY",
    analyze=None,
    has_sqlstates=True,
)
