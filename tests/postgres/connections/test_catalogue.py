"""The catalogue, which others change meanwhile."""

import datetime as dt

import pytest

import longshore
from tests.postgres.connections.using import SCHEMA, read
from tests.recorder import Recorder
from tests.servers import Endpoint


def test_a_dropped_not_null_is_seen_at_once(here: str, postgres: Endpoint) -> None:
    postgres.psql(f"CREATE TABLE {SCHEMA}.n (i int NOT NULL); INSERT INTO {SCHEMA}.n VALUES (1)")
    with longshore.connect(here, autocommit=True) as connection:
        for _ in range(2):
            assert not longshore.read_sql("SELECT i FROM n", connection, return_type="arrow").schema.field("i").nullable
        postgres.psql(f"ALTER TABLE {SCHEMA}.n ALTER i DROP NOT NULL; INSERT INTO {SCHEMA}.n VALUES (NULL)")
        assert read("SELECT i FROM n", connection) == [{"i": 1}, {"i": None}]
        assert longshore.read_sql("SELECT i FROM n", connection).dtypes["i"] == "Int32"


def test_a_new_label_is_seen_at_once(here: str, postgres: Endpoint) -> None:
    postgres.psql(
        f"CREATE TYPE {SCHEMA}.mood AS ENUM ('sad'); CREATE TABLE {SCHEMA}.m (m {SCHEMA}.mood, a {SCHEMA}.mood[])"
    )
    with longshore.connect(here, autocommit=True) as connection:
        assert read("SELECT * FROM m", connection) == []
        postgres.psql(
            f"ALTER TYPE {SCHEMA}.mood ADD VALUE 'ok' BEFORE 'sad'; INSERT INTO {SCHEMA}.m VALUES ('ok', '{{ok,sad}}')"
        )
        assert read("SELECT * FROM m", connection) == [{"m": "ok", "a": ["ok", "sad"]}]
        table = longshore.read_sql("SELECT m FROM m", connection, return_type="arrow")
        assert table["m"].chunk(0).dictionary.to_pylist() == ["ok", "sad"]
        postgres.psql(f"ALTER TYPE {SCHEMA}.mood RENAME VALUE 'ok' TO 'fine'")
        assert read("SELECT m FROM m", connection) == [{"m": "fine"}]
        assert connection.execute("DELETE FROM m WHERE m = $1", ["fine"]) == 1


def test_a_changed_composite_is_seen_at_once(here: str, postgres: Endpoint) -> None:
    postgres.psql(f"CREATE TYPE {SCHEMA}.pair AS (a int, b text)")
    with longshore.connect(here, autocommit=True) as connection:
        assert read("SELECT (1, 'x')::pair AS p", connection) == [{"p": {"a": 1, "b": "x"}}]
        postgres.psql(f"ALTER TYPE {SCHEMA}.pair ADD ATTRIBUTE c date, DROP ATTRIBUTE a")
        date = dt.date(2026, 1, 2)
        assert read("SELECT ('x', '2026-01-02')::pair AS p", connection) == [{"p": {"b": "x", "c": date}}]


def test_a_column_that_becomes_an_array(here: str, postgres: Endpoint) -> None:
    with longshore.connect(here, autocommit=True) as connection:
        assert read("SELECT i FROM t", connection) == []
        postgres.psql(
            f"ALTER TABLE {SCHEMA}.t ALTER i TYPE int[][] USING ARRAY[[i]];"
            f"INSERT INTO {SCHEMA}.t VALUES (ARRAY[[1, 2]])"
        )
        assert read("SELECT i FROM t", connection) == [{"i": [[1, 2]]}]


@pytest.mark.parametrize("undo", [False, True])
def test_what_the_session_alters_itself_is_seen(undo: bool, here: str) -> None:  # noqa: FBT001
    def nullable() -> bool:
        return bool(longshore.read_sql("SELECT i FROM t", connection, return_type="arrow").schema.field("i").nullable)

    with longshore.connect(here) as connection:
        assert nullable()
        connection.commit()
        connection.execute("ALTER TABLE t ALTER i SET NOT NULL")
        assert not nullable()
        if undo:
            connection.rollback()
        assert nullable() is undo


def test_flights(postgres: Endpoint) -> None:
    with Recorder((postgres.host, postgres.port)) as recorder:
        options = f"-c search_path={SCHEMA}"
        url = postgres.url(host=recorder.host, port=recorder.port, sslmode="disable", options=options)
        with longshore.connect(url, autocommit=True) as connection:
            connection.execute("UPDATE t SET i = i + $1", [1])
            for query in ("SELECT 1 AS a", "SELECT i FROM t", "SELECT i FROM t", "SELECT i, word FROM t"):
                read(query, connection)
            connection.commit()
            connection.rollback()
    # Only what has user-defined types or may have promises is looked up: here the first read of a table.
    assert recorder.flights() == ["PDH", "BES", "PDH", "BES", "PDH", "PBECCH", "BES", "PDH", "BES", "PDH", "BES", "X"]
