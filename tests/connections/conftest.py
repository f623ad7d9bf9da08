"""Connections of other libraries, of one test each."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from longshore import _core
from tests.servers import Endpoint

BOATS = pa.table({"berth": pa.array([1, 2], pa.int32()), "name": ["Ada", None]})


@pytest.fixture
def conn(postgres: Endpoint) -> Iterator["psycopg.Connection[Any]"]:
    """Give a psycopg connection, on which a transaction is open that is rolled back at the end."""
    with psycopg.connect(postgres.url()) as connection:
        connection.execute("CREATE TABLE boats (berth integer NOT NULL, name text)")
        connection.execute("INSERT INTO boats VALUES (1, 'Ada'), (2, NULL)")
        yield connection
        connection.rollback()


@pytest.fixture
def targets(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Give the URLs and keywords that the core connects to by itself, in their order."""
    found: list[Any] = []
    connect: Callable[..., Any] = _core.Target

    def target(**arguments: Any) -> Any:
        found.append(arguments["url"] or arguments["keywords"])
        return connect(**arguments)

    monkeypatch.setattr(_core, "Target", target)
    return found
