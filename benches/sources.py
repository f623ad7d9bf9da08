"""The databases that are read: each with its server, its tables and the clients of a fresh connection."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from benches import drain_sqlite, lineitem, lineitem_mariadb, lineitem_mssql, lineitem_sqlite
from tests.quirks.odbc import through

Fresh = Mapping[str, Callable[[], object]]


@dataclass(frozen=True)
class Place:
    """A server with the tables."""

    url: str
    title: str


@dataclass(frozen=True)
class Source:
    """A database that is measured."""

    #: Starts the server, and has the tables of a scale factor there.
    open: Callable[[float], AbstractContextManager[Place]]
    #: Clients that connect, read SELECT 1 and close.
    fresh: Callable[[str], AbstractContextManager[Fresh]]


@contextlib.contextmanager
def _postgresql(scale: float) -> Iterator[Place]:
    with lineitem.measured_server() as server:
        yield Place(lineitem.loaded(scale, server), f"PostgreSQL {server.version}")


@contextlib.contextmanager
def _odbc(scale: float) -> Iterator[Place]:
    with _postgresql(scale) as place:
        yield Place(through(place.url), f"{place.title} by psqlodbc")


@contextlib.contextmanager
def _mariadb(scale: float) -> Iterator[Place]:
    with lineitem_mariadb.measured_mariadb() as server:
        yield Place(lineitem_mariadb.loaded(scale, server), f"MariaDB {server.version.partition('-')[0]}")


@contextlib.contextmanager
def _mssql(scale: float) -> Iterator[Place]:
    with lineitem_mssql.measured_mssql(scale) as server:
        yield Place(server.url(port=server.login_port, encrypt="off"), "the tests' server that speaks TDS")


@contextlib.contextmanager
def _sqlite(scale: float) -> Iterator[Place]:
    import longshore

    drain_sqlite.build()
    url = lineitem_sqlite.loaded(scale)
    version = longshore.read_sql("SELECT sqlite_version()", url, return_type="arrow")
    yield Place(url, f"SQLite {version[0][0]}")


def _longshore(url: str) -> Fresh:
    import longshore

    return {
        "longshore arrow": lambda: longshore.read_sql("SELECT 1", url, return_type="arrow"),
        "longshore pandas": lambda: longshore.read_sql("SELECT 1", url),
    }


@contextlib.contextmanager
def _with_arrow_odbc(url: str) -> Iterator[Fresh]:
    import arrow_odbc

    def read() -> None:
        [*arrow_odbc.connect(url.removeprefix("odbc:")).read_arrow_batches("SELECT 1")]

    yield {**_longshore(url), "arrow-odbc": read}


@contextlib.contextmanager
def _with_asyncpg(url: str) -> Iterator[Fresh]:
    import asyncpg

    async def read() -> None:
        connection = await asyncpg.connect(url)
        await connection.fetch("SELECT 1")
        await connection.close()

    with asyncio.Runner() as runner:
        yield {**_longshore(url), "asyncpg": lambda: runner.run(read())}


@contextlib.contextmanager
def _with_pymysql(url: str) -> Iterator[Fresh]:
    import pymysql

    parts = urlsplit(url)
    place: dict[str, Any] = {"host": parts.hostname, "port": parts.port, "user": parts.username}

    def read() -> None:
        with pymysql.connect(**place) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            cursor.fetchall()

    yield {**_longshore(url), "PyMySQL": read}


@contextlib.contextmanager
def _with_sqlite3(url: str) -> Iterator[Fresh]:
    def read() -> None:
        with contextlib.closing(sqlite3.connect(drain_sqlite.path(url))) as connection:
            connection.execute("SELECT 1").fetchall()

    yield {**_longshore(url), "sqlite3": read}


@contextlib.contextmanager
def _with_pytds(url: str) -> Iterator[Fresh]:
    import pytds

    parts = urlsplit(url)
    place: dict[str, Any] = {"dsn": parts.hostname, "port": parts.port, "user": "sa", "password": "harb0ur!"}

    def read() -> None:
        with pytds.connect(**place, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            cursor.fetchall()

    yield {**_longshore(url), "python-tds": read}


SOURCES = {
    "postgresql": Source(_postgresql, _with_asyncpg),
    "mariadb": Source(_mariadb, _with_pymysql),
    "mssql": Source(_mssql, _with_pytds),
    "odbc": Source(_odbc, _with_arrow_odbc),
    "sqlite": Source(_sqlite, _with_sqlite3),
}
