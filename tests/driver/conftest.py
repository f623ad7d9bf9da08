"""A database of every source that the driver has, and connections of Python's driver manager to it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import longshore.adbc
from tests.contract.conftest import Database, opened, table
from tests.quirks import SOURCES, Quirks

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Connection

__all__ = ["table"]

#: Those of Rust: what lives in Python is not in the library. A store is there without SQL, in `test_store.py`.
RUST = tuple(quirks for quirks in SOURCES if quirks.source in {"postgresql", "mariadb", "mysql", "sqlite"})


@pytest.fixture(scope="session", params=RUST, ids=str)
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Give an empty database of each source in turn."""
    quirks: Quirks = request.param
    with quirks.place(request, tmp_path_factory.mktemp("driver")) as url:
        yield from opened(Database(quirks, url))


@pytest.fixture
def connection(database: Database, table: str) -> Iterator["Connection"]:
    """Give a connection of Python's driver manager, whose transaction ends before the test's table goes."""
    del table
    with longshore.adbc.connect(database.url) as connection:
        yield connection
