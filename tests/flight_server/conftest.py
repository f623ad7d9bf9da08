"""Databases that are served, and clients of others' for them."""

import json
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import adbc_driver_flightsql.dbapi as flightsql
import duckdb
import pyarrow as pa
import pytest
from adbc_driver_flightsql import ConnectionOptions, DatabaseOptions

import longshore

if TYPE_CHECKING:
    from tests.servers import Endpoint

Connect = Callable[..., Any]

BERTHS = pa.table({"berth": pa.array(range(1, 11), pa.int64()), "name": [f"quay {number}" for number in range(1, 11)]})


def client(server: longshore.Server, user: str | None = None, **options: Any) -> Any:
    """Connect by ADBC's driver for Flight SQL."""
    database = {"username": user, "password": f"{user} knows"} if user else {}
    more = options.pop("db_kwargs", {})
    return flightsql.connect(server.url.replace("grpc://", "grpc+tcp://"), db_kwargs={**database, **more}, **options)


def client_with_session(server: longshore.Server) -> Any:
    """Connect by that driver, with a session that has the option `longshore.parts`.

    Its client in Go takes up a call's cookie in a thread of its own, perhaps when the next call has gone without it.
    """
    connection = client(server, autocommit=True, db_kwargs={DatabaseOptions.WITH_COOKIE_MIDDLEWARE.value: "true"})
    session = connection.adbc_connection
    session.set_options(**{f"{ConnectionOptions.OPTION_SESSION_OPTION_PREFIX.value}longshore.parts": "1"})
    end = time.monotonic() + 10
    while "longshore.parts" not in json.loads(session.get_option(ConnectionOptions.OPTION_SESSION_OPTIONS.value)):
        assert time.monotonic() < end, "the client has no cookie"
    return connection


@pytest.fixture(scope="module", params=["store", "duckdb", "sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the URL of a database with the table `berths`."""
    folder = tmp_path_factory.mktemp("served")
    if request.param == "postgresql":
        endpoint: Endpoint = request.getfixturevalue("postgres")
        schema = f"served_{uuid.uuid4().hex[:8]}"
        endpoint.psql(f"CREATE SCHEMA {schema}")
        url = endpoint.url(options=f"-csearch_path={schema}")
        longshore.write_sql(BERTHS, "berths", url, key="berth")
        yield url
        endpoint.psql(f"DROP SCHEMA {schema} CASCADE")
        return
    yield made(request.param, folder)


def made(kind: str, folder: Path) -> str:
    """Make a database with the table `berths`, whose key is `berth`, and give its URL."""
    if kind == "store":
        with longshore.open(folder / "lake") as store:
            store.write("berths", BERTHS, key="berth")
        return f"store:///{folder}/lake"
    create = "CREATE TABLE berths (berth BIGINT PRIMARY KEY, name VARCHAR)"
    rows = [(row["berth"], row["name"]) for row in BERTHS.to_pylist()]
    if kind == "duckdb":
        with duckdb.connect(str(folder / "a.duckdb")) as connection:
            connection.execute(create)
            connection.executemany("INSERT INTO berths VALUES (?, ?)", rows)
        return f"duckdb:///{folder}/a.duckdb"
    with closing(sqlite3.connect(folder / "a.db")) as lite:
        lite.execute(create)
        lite.executemany("INSERT INTO berths VALUES (?, ?)", rows)
        lite.commit()
    return f"sqlite:///{folder}/a.db"


@pytest.fixture(scope="module")
def server(target: str) -> Iterator[longshore.Server]:
    """Give a server of that database."""
    with longshore.serve(target, port=0) as running:
        yield running


@pytest.fixture(scope="module")
def place(target: str) -> Callable[[int], str]:
    """Give how a parameter is written."""
    return (lambda number: f"${number}") if target.startswith("postgresql") else lambda _: "?"


@pytest.fixture
def connect(server: longshore.Server) -> Iterator[Connect]:
    """Give a function that connects to the server."""
    with ExitStack() as stack:

        def open_connection(**options: Any) -> Any:
            return stack.enter_context(client(server, **{"autocommit": True, **options}))

        yield open_connection


__all__ = ["BERTHS", "Connect", "DatabaseOptions", "client", "made"]
