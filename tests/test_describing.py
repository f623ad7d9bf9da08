"""`longshore.schema`: that of the stream, and nothing is run."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.conformance import mysql as of_mysql
from tests.conformance import postgresql as of_postgresql
from tests.conformance import sqlite as of_sqlite
from tests.conformance.cases import CASES
from tests.conformance.mysql_cases import CASES as MYSQL_CASES
from tests.conformance.sqlite_cases import CASES as SQLITE_CASES
from tests.servers import Endpoint, MySQLEndpoint


@contextlib.contextmanager
def empty(conn: Any, setup: list[str]) -> Any:
    with longshore.connect(conn, autocommit=True) as connection:
        for statement in setup:
            connection.execute(statement)
        yield connection


def check(conn: Any, query: str, **more: Any) -> pa.Schema:
    described = longshore.schema(query, conn, **more)
    with longshore.read_sql(query, conn, return_type="arrow_stream", **more) as stream:
        assert described.equals(stream.schema, check_metadata=True)
    return described


@pytest.mark.parametrize("protocol", of_postgresql.PROTOCOLS)
def test_every_type_of_postgresql(postgres: Endpoint, protocol: str) -> None:
    for case in CASES:
        if not case.needs:
            with empty(postgres.url(), of_postgresql.setup(case, [])) as connection:
                check(connection, of_postgresql.query(case, "false"), options={"protocol": protocol})


@pytest.mark.parametrize("protocol", of_mysql.PROTOCOLS)
def test_every_type_of_mysql(mariadb: MySQLEndpoint, mysql: MySQLEndpoint, protocol: str) -> None:
    for case in MYSQL_CASES:
        server = mysql if case.only == "MySQL" else mariadb
        with empty(server.url(), of_mysql.setup(case, [])) as connection:
            query = of_mysql.query(case, "1 = 0")
            if case.type.startswith("float") and protocol == "text":
                with pytest.raises(longshore.NotSupportedError, match="the server rounds FLOAT"):
                    longshore.schema(query, connection, options={"protocol": protocol})
            else:
                check(connection, query, options={"protocol": protocol})


def test_every_type_of_sqlite() -> None:
    for case in SQLITE_CASES:
        with empty("sqlite://", of_sqlite.setup(case, [])) as connection:
            check(connection, of_sqlite.query(case, "false"))


@pytest.fixture(params=["postgresql", "mariadb", "mysql", "sqlite", "sqlite3.Connection"])
def conn(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Give a way to each source, whose table `described` has a row."""
    name = request.param
    server = {"postgresql": "postgres"}.get(name, name)
    place: Any = tmp_path / "a.db" if name.startswith("sqlite") else request.getfixturevalue(server).url()
    longshore.write_sql(pa.table({"a": pa.array([1], pa.int64())}), "described", place, if_exists="replace")
    with contextlib.ExitStack() as stack:
        own = place
        if name == "sqlite3.Connection":
            own = stack.enter_context(contextlib.closing(sqlite3.connect(place)))
        yield own
        if not name.startswith("sqlite"):
            with longshore.connect(place) as connection:
                connection.execute("DROP TABLE described")


def test_parameters_overrides_and_lists(conn: Any) -> None:
    query = "SELECT a FROM described WHERE a = :least"
    assert check(conn, query, params={"least": 1}).field("a").type == pa.int64()
    assert check(conn, query, params={"least": 1}, schema={"a": "decimal128(20, 2)"}).types == [pa.decimal128(20, 2)]
    both = longshore.schema(["SELECT a FROM described", "SELECT a FROM described WHERE a > 5"], conn)
    assert both.names == ["a"]
    assert both.field("a").nullable
    with pytest.raises(longshore.ProgrammingError, match="query 2 of the list"):
        longshore.schema(["SELECT a FROM described", "SELECT a, a AS b FROM described"], conn)
    with pytest.raises(longshore.InterfaceError, match="list of queries is empty"):
        longshore.schema([], conn)
    with pytest.raises(longshore.InterfaceError, match='schema= names "b"'):
        longshore.schema("SELECT a FROM described", conn, schema={"b": "int64"})
    with pytest.raises((longshore.ProgrammingError, longshore.NotSupportedError)):
        longshore.schema("SELECT nonsense FROM described", conn)


def test_nothing_is_run(conn: Any) -> None:
    """Statements that change data are described, or refused; in no case run."""
    for query in (
        "INSERT INTO described VALUES (2) RETURNING a",
        "DELETE FROM described RETURNING a",
        "DELETE FROM described",
        "DROP TABLE described",
    ):
        # MySQL has no RETURNING, and MariaDB tells its columns only of a run.
        with contextlib.suppress(longshore.ProgrammingError, longshore.NotSupportedError):
            assert longshore.schema(query, conn).names == ["a"]
    assert longshore.read_sql("SELECT a FROM described", conn, return_type="arrow")["a"].to_pylist() == [1]


def test_a_change_is_described(url: str, tmp_path: Path) -> None:
    for place in (url, tmp_path / "a.db"):
        longshore.write_sql({"a": [1]}, "changed", place, if_exists="replace")
        assert longshore.schema("INSERT INTO changed VALUES (2) RETURNING a", place).types == [pa.int64()]
        assert longshore.read_sql("SELECT a FROM changed", place, return_type="arrow")["a"].to_pylist() == [1]
    with longshore.connect(url) as connection:
        connection.execute("DROP TABLE changed")


def test_a_connection_begins_no_transaction(url: str) -> None:
    for place in (url, "sqlite://"):
        with longshore.connect(place) as connection:
            longshore.schema("SELECT 1 AS a", connection)
            assert connection.in_transaction is False
    with longshore.Pool(url, size=1) as pool:
        for _ in range(3):
            longshore.schema("SELECT 1 AS a", pool)
        assert (pool.in_use, pool.idle) == (0, 1)


def test_where_only_the_whole_result_tells_a_type_it_is_the_streams(url: str) -> None:
    assert check(url, "SELECT sum(n) AS n FROM generate_series(1, 3::bigint) n").types == [pa.decimal128(38, 20)]
    assert longshore.schema("SELECT 1 AS a", "sqlite://").types == [pa.string()]
