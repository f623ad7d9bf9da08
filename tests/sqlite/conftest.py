"""Databases of one test each."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Make = Callable[..., str]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give the path of a database that is not there yet."""
    return tmp_path / "a.db"


@pytest.fixture
def make(path: Path) -> Make:
    """Give a function that runs statements in the database, and gives its URL."""

    def run(*statements: str) -> str:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()
        return f"sqlite:///{path}"

    return run


@pytest.fixture
def shared() -> Iterator[sqlite3.Connection]:
    """Give a connection of Python's own to a database in memory."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        yield connection
