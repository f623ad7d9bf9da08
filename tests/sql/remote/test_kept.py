"""The same text again: its plan is kept, and no change of its tables, its settings or its parameters is missed."""

import contextlib
import sqlite3
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import longshore
from longshore.duckdb.remote import attach
from tests.servers import Endpoint, MySQLEndpoint
from tests.sql.remote.conftest import url

pytestmark = pytest.mark.packages


@pytest.fixture
def connection(postgres: Endpoint) -> Iterator[longshore.Connection]:
    """Give a connection, where `ships` has two rows."""
    with longshore.connect(postgres.url(), autocommit=True) as one:
        one.execute("CREATE TABLE ships (id int, word text)")
        one.execute("INSERT INTO ships VALUES (1, 'a'), (2, 'a ')")
        yield one
        one.execute("DROP TABLE ships")


def rows(query: str, conn: Any, params: Any = None, **more: Any) -> list[tuple[Any, ...]]:
    """Give the rows of a query over `db`."""
    found = longshore.sql(query, attach={"db": conn}, params=params, return_type="arrow", **more)
    return [tuple(row.values()) for row in found.to_pylist()]


def test_a_plan_is_made_once(connection: longshore.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    described = attach._describe  # noqa: SLF001  what planning asks of the engine

    def counted(query: str, params: Any) -> list[tuple[str, str]]:
        asked.append(query)
        return described(query, params)

    monkeypatch.setattr(attach, "_describe", counted)
    query = "SELECT count(*) AS n, 'once' AS once FROM db.ships WHERE id > 1"
    whole = "SELECT count(*) AS once FROM db.ships WHERE id > 1"
    assert [rows(query, connection), rows(query, connection)] == [[(1, "once")]] * 2
    assert [rows(whole, connection), rows(whole, connection)] == [[(1,)]] * 2
    assert len(asked) == 1


def test_another_type_is_seen(connection: longshore.Connection) -> None:
    query = "SELECT count(*) AS n FROM db.ships WHERE word = 'a'"
    assert rows(query, connection) == [(1,)]
    connection.execute("ALTER TABLE ships ALTER COLUMN word TYPE char(4)")
    assert rows(query, connection) == [(2,)]
    assert rows(query.replace("=", "LIKE"), connection) == [(0,)]
    connection.execute("ALTER TABLE ships ALTER COLUMN word TYPE text")
    assert rows(query, connection) == [(2,)]


def test_another_table_of_the_name_is_seen(connection: longshore.Connection) -> None:
    query = "SELECT * FROM db.ships WHERE id = 1"
    assert rows(query, connection) == [(1, "a")]
    connection.execute("ALTER TABLE ships RENAME TO old_ships")
    connection.execute("CREATE TABLE ships (word text, depth int, id int)")
    assert rows(query, connection) == []
    connection.execute("INSERT INTO ships VALUES ('b', 3, 1)")
    assert rows(query, connection) == [("b", 3, 1)]
    connection.execute("DROP TABLE ships")
    connection.execute("ALTER TABLE old_ships RENAME TO ships")
    assert rows(query, connection) == [(1, "a")]


def test_the_search_path_is_seen(connection: longshore.Connection) -> None:
    query = "SELECT count(*) AS n FROM db.ships"
    assert rows(query, connection) == [(2,)]
    connection.execute("CREATE TEMPORARY TABLE ships (id int)")
    assert rows(query, connection) == [(0,)]
    connection.execute("SET search_path = public, pg_temp")
    assert rows(query, connection) == [(2,)]
    connection.execute("DROP TABLE pg_temp.ships")
    connection.execute("RESET search_path")


def test_a_table_that_has_gone_is_an_error(connection: longshore.Connection) -> None:
    query = "SELECT id FROM db.ships WHERE id = 1"
    assert rows(query, connection) == [(1,)]
    connection.execute("ALTER TABLE ships RENAME COLUMN id TO number")
    with pytest.raises(longshore.ProgrammingError, match="id"):
        rows(query, connection)
    connection.execute("ALTER TABLE ships RENAME TO boats")
    with pytest.raises(longshore.ProgrammingError, match="ships"):
        rows(query, connection)
    connection.execute("ALTER TABLE boats RENAME TO ships")


def test_options_and_parameters_are_seen(connection: longshore.Connection) -> None:
    connection.execute("ALTER TABLE ships ADD COLUMN price numeric(9, 2)")
    connection.execute("UPDATE ships SET price = CASE id WHEN 1 THEN 'NaN' ELSE '5' END::numeric")
    query = "SELECT count(*) AS n FROM db.ships WHERE price IS NULL"
    assert rows(query, connection) == [(0,)]
    assert rows(query, connection, options={"numeric_nan": "null"}) == [(1,)]
    assert rows(query, connection) == [(0,)]
    query = "SELECT id, ? AS given FROM db.ships WHERE id <= ? ORDER BY id"
    for value in (1, True, 1.0, 1):
        ((_, given),) = rows(query, connection, [value, 1])
        assert type(given) is type(value)


def test_another_database_of_the_name_is_seen(connection: longshore.Connection, tmp_path: Path) -> None:
    query = "SELECT count(*) AS n FROM db.ships WHERE id > 0"
    assert rows(query, connection) == [(2,)]
    for strict in ("", " STRICT"):
        path = tmp_path / f"ships{strict}.db"
        with contextlib.closing(sqlite3.connect(path)) as lite:
            lite.execute(f"CREATE TABLE ships (id INTEGER){strict}")
        assert rows(query, url(path)) == [(0,)]
    assert rows(query, connection) == [(2,)]


def test_another_type_is_seen_in_mysql(mariadb: MySQLEndpoint) -> None:
    name = f"ships_{uuid.uuid4().hex[:8]}"
    mariadb.sql(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    try:
        with longshore.connect(mariadb.url(database=name), autocommit=True) as connection:
            connection.execute("CREATE TABLE ships (id int, code varchar(9))")
            connection.execute("INSERT INTO ships VALUES (1, '7'), (2, '8')")
            query = "SELECT count(*) AS n FROM db.ships WHERE code = '7'"
            assert rows(query, connection) == [(1,)]
            connection.execute("ALTER TABLE ships MODIFY code int")
            assert rows(query, connection) == [(1,)]
            connection.execute("ALTER TABLE ships MODIFY code varchar(9) COLLATE utf8mb4_bin")
            connection.execute("UPDATE ships SET code = 'A' WHERE id = 1")
            assert rows(query, connection) == [(0,)]
    finally:
        mariadb.sql(f"DROP DATABASE {name}")
