"""The embedded store."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import longshore
from tests.quirks import duckdb
from tests.quirks.quirks import Refusal


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
    vendor="duckdb",
    has_views=False,
    has_references=False,
    unique="PRIMARY KEY",
    # It knows how many rows there are.
    analyze="SELECT 1",
    has_sqlstates=True,
    cannot={**duckdb.QUIRKS.cannot, "a current schema": Refusal("a store has one schema")},
)
