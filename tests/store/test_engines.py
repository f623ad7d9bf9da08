"""The engines of a store's sessions, which others use after them."""

import os
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import longshore
from longshore.duckdb.instance import spare

#: The traces that a session can leave in its engine.
OWN = """SELECT table_name AS name FROM duckdb_tables()
UNION ALL SELECT view_name FROM duckdb_views() WHERE NOT internal
UNION ALL SELECT function_name FROM duckdb_functions() WHERE NOT internal
UNION ALL SELECT schema_name FROM duckdb_schemas() WHERE database_name NOT IN ('system', 'temp') AND NOT internal
UNION ALL SELECT name FROM duckdb_secrets() UNION ALL SELECT name FROM duckdb_variables()
UNION ALL SELECT database_name FROM duckdb_databases() WHERE NOT internal"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Give a store with a table."""
    with longshore.open(tmp_path / "store") as store:
        store["numbers"] = pa.table({"n": [1, 2, 3]})
    return f"store:///{tmp_path / 'store'}"


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Give a list that grows with each engine that starts; none is left from before."""
    spare.before_fork()
    spare.after_fork()
    started: list[object] = []
    connect = duckdb.connect

    def counted(*arguments: Any, **keywords: Any) -> Any:
        started.append(arguments)
        return connect(*arguments, **keywords)

    monkeypatch.setattr(duckdb, "connect", counted)
    return started


def total(url: str) -> int:
    """Give a sum that the engine has to compute."""
    rows = longshore.read_sql("SELECT sum(n)::BIGINT AS s FROM numbers", url, return_type="arrow").to_pylist()
    return int(rows[0]["s"])


def ran(url: str, *statements: str) -> list[Any]:
    """Run statements over a connection; give the rows of the last."""
    with longshore.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def test_sessions_in_turn_share_one(url: str, starts: list[object]) -> None:
    assert [total(url) for _ in range(5)] == [6] * 5
    assert len(starts) == 1
    for _ in range(3):
        ran(url, "CREATE OR REPLACE TABLE made (a int PRIMARY KEY)", "SELECT 1")
    # Its definition is tried in one more.
    assert len(starts) == 2


def test_nothing_of_a_session_is_seen_by_the_next(url: str, starts: list[object]) -> None:
    before = ran(url, OWN)
    ran(
        url,
        "CREATE TEMP TABLE own (a int)",
        "CREATE TEMP VIEW seen AS SELECT 1 AS one",
        "CREATE TEMP MACRO twice(x) AS 2 * x",
        "CREATE TABLE kept (a int)",
        "DROP TABLE kept",
        "SELECT sum(n) FROM numbers",
    )
    assert ran(url, OWN) == before
    assert len(starts) == 2


@pytest.mark.parametrize(
    ("changing", "shown"),
    [
        ("SET GLOBAL default_null_order = 'nulls_first'", "current_setting('default_null_order')"),
        ("SET threads = 1", "current_setting('threads')"),
        ("PRAGMA default_null_order = 'nulls_first'", "current_setting('default_null_order')"),
        ("FROM enable_logging('QueryLog')", "current_setting('enable_logging')"),
        ("SELECT * FROM \"Enable_Logging\" ('QueryLog')", "current_setting('enable_logging')"),
        ("CREATE TABLE made AS FROM query('FROM enable_logging()')", "current_setting('enable_logging')"),
        ("SET VARIABLE mine = 1", "getvariable('mine')"),
        ("CREATE TEMPORARY SECRET mine (TYPE http)", "count(*) FROM duckdb_secrets()"),
    ],
)
def test_an_engine_with_settings_is_no_ones_after(changing: str, shown: str, url: str) -> None:
    before = ran(url, f"SELECT {shown}")
    assert ran(url, changing, f"SELECT {shown}") != before
    assert ran(url, f"SELECT {shown}") == before


def test_an_engine_goes_on_after_an_error(url: str, starts: list[object]) -> None:
    with pytest.raises(longshore.errors.Error):
        ran(url, "SELECT sum(n) FROM numbers", "SELECT error('no')")
    assert total(url) == 6
    assert len(starts) == 1


def test_a_child_closes_what_its_parent_had_open(url: str) -> None:
    with longshore.open(url.removeprefix("store:///")) as store, longshore.connect(url) as connection:
        assert store.sql("SELECT sum(n) AS n FROM numbers")["n"][0] == 6
        connection.execute("SELECT sum(n) FROM numbers")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                store.close()
                connection.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert store.sql("SELECT sum(n) AS n FROM numbers")["n"][0] == 6


def test_a_child_starts_its_own(url: str) -> None:
    assert total(url) == 6
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if total(url) == total(url) == 6 else 1
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert total(url) == 6
