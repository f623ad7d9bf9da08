"""Databases with hostile tables, attached and loaded."""

import contextlib
import sqlite3
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import longshore
from tests.servers import Endpoint, MySQLEndpoint
from tests.sql.remote import hostile
from tests.sql.remote.comparing import Harbour, loaded

SCHEMA = "docks"


@pytest.fixture(scope="session")
def pg(postgres: Endpoint) -> Iterator[Harbour]:
    """Give a PostgreSQL as `pg`, with `pg.docks.hostile` and `pg.docks.second`."""
    second = "CREATE TABLE docks.second AS SELECT id + 100 AS id, word, num, day FROM docks.hostile WHERE id < 150"
    postgres.psql(f"""
        CREATE SCHEMA {SCHEMA}; SET search_path = {SCHEMA};
        CREATE TYPE mood AS ENUM ('sad', 'ok', 'Happy');
        {hostile.postgresql("hostile")}
        {second};
        ANALYZE hostile, second;
    """)
    try:
        tables = {"pg": [f"{SCHEMA}.hostile", f"{SCHEMA}.second"]}
        # Each query over a URL would open three connections.
        with longshore.Pool(postgres.url()) as pool, loaded({"pg": pool}, tables) as harbour:
            yield harbour
    finally:
        postgres.psql(f"DROP SCHEMA {SCHEMA} CASCADE")


@pytest.fixture(scope="session")
def held(pg: Harbour, postgres: Endpoint) -> Iterator[Harbour]:
    """Give the same over one connection."""
    with longshore.connect(postgres.url(), autocommit=True) as connection:
        yield Harbour({"pg": connection}, pg.engine)


@pytest.fixture(scope="session")
def my(mariadb: MySQLEndpoint) -> Iterator[Harbour]:
    """Give a MariaDB as `my`, with `my.hostile`."""
    with _mysql(mariadb) as harbour:
        yield harbour


@pytest.fixture(scope="session")
def my8(mysql: MySQLEndpoint) -> Iterator[Harbour]:
    """Give a MySQL as `my`, with the same."""
    with _mysql(mysql) as harbour:
        yield harbour


@contextlib.contextmanager
def _mysql(server: MySQLEndpoint) -> Iterator[Harbour]:
    name = f"docks_{uuid.uuid4().hex[:8]}"
    server.sql(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    try:
        server.sql(hostile.mysql("hostile"), database=name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", longshore.DataWarning)
            with (
                longshore.Pool(server.url(database=name)) as pool,
                loaded({"my": pool}, {"my": ["hostile"]}) as harbour,
            ):
                yield harbour
    finally:
        server.sql(f"DROP DATABASE {name}")


@pytest.fixture(scope="session")
def lite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harbour]:
    """Give a SQLite as `lite`, with `lite.hostile`, a strict table, and `lite.loose`."""
    path = tmp_path_factory.mktemp("lite") / "docks.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.executescript(hostile.sqlite("hostile", strict=True) + hostile.sqlite("loose", strict=False))
    with loaded({"lite": url(path)}, {"lite": ["hostile", "loose"]}) as harbour:
        yield harbour


def url(path: Path) -> str:
    """Give the URL of a file of SQLite's."""
    return f"sqlite:///{path}"
