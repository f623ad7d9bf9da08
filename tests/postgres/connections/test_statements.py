"""The arguments of `execute`, its results and refusals."""

import datetime as dt
import decimal
import uuid
from typing import Any

import pytest

import longshore
from tests.postgres.connections.using import check, read


@pytest.mark.parametrize(
    ("statement", "count"),
    [
        ("CREATE TABLE other (i int)", None),
        ("CREATE TEMPORARY TABLE other AS SELECT generate_series(1, 3)", 3),
        ("INSERT INTO t SELECT generate_series(1, 5)", 5),
        ("INSERT INTO t VALUES (1) RETURNING i", 1),
        ("UPDATE t SET i = 0", 0),
        ("DELETE FROM t", 0),
        ("MERGE INTO t USING (VALUES (1), (2)) AS s (i) ON t.i = s.i WHEN NOT MATCHED THEN INSERT VALUES (s.i)", 2),
        ("SELECT 1 UNION ALL SELECT 2", 2),
        ("TABLE t", 0),
        ("SET work_mem = '5MB'", None),
        ("SHOW work_mem", None),
        ("LISTEN harbour", None),
        ("NOTIFY harbour", None),
        ("LOCK TABLE t", None),
        ("DO $$BEGIN NULL; END$$", None),
        ("TRUNCATE t", None),
        ("COMMENT ON TABLE t IS 'a; b'", None),
        ("EXPLAIN SELECT 1", None),
        ("COPY (SELECT generate_series(1, 100000)) TO STDOUT", 100_000),
        ("COPY (SELECT generate_series(1, 3)) TO STDOUT (FORMAT binary)", 3),
        ("DECLARE c CURSOR FOR SELECT 1", None),
        ("SAVEPOINT s", None),
        ("", None),
        ("-- nothing", None),
        ("SELECT 1 WHERE false;", 0),
    ],
)
def test_what_execute_returns(statement: str, count: int | None, here: str) -> None:
    with longshore.connect(here) as connection:
        assert connection.execute(statement) == count
        check(connection)


def test_procedures_and_maintenance(here: str) -> None:
    with longshore.connect(here, autocommit=True) as connection:
        connection.execute(
            "CREATE PROCEDURE p(n int) LANGUAGE plpgsql AS 'BEGIN INSERT INTO t VALUES (n); COMMIT; END'"
        )
        assert connection.execute("CALL p($1)", [7]) is None
        assert connection.execute("VACUUM t") is None
        assert read("SELECT i FROM t", connection) == [{"i": 7}]


def test_parameters_of_all_kinds(here: str) -> None:
    columns = {
        "bool": True,
        "int2": -7,
        "int8": 2**62,
        "float8": 0.1,
        "numeric(30,10)": decimal.Decimal("12345678901234567890.0123456789"),
        "text": "Übersee 🚢",
        "bytea": b"\0\xff",
        "date": dt.date(1999, 12, 31),
        "timestamp": dt.datetime(2026, 1, 2, 3, 4, 5, 6),  # noqa: DTZ001  without a time zone is what it tests
        "timestamptz": dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.UTC),
        "uuid": uuid.UUID(int=7),
        "int4[]": [1, None, 3],
        "json": {"a": [1, None]},
        "date[]": None,
    }
    with longshore.connect(here) as connection:
        connection.execute(f"CREATE TABLE kinds ({', '.join(f'c{n} {kind}' for n, kind in enumerate(columns))})")
        holes = ", ".join(f"${n + 1}" for n in range(len(columns)))
        assert connection.execute(f"INSERT INTO kinds VALUES ({holes})", list(columns.values())) == 1
        names = {f"c{n}": value for n, value in enumerate(columns.values())}
        same = " AND ".join(f"c{n}::text IS NOT DISTINCT FROM (:c{n}::{kind})::text" for n, kind in enumerate(columns))
        assert read(f"SELECT count(*) AS n FROM kinds WHERE {same}", connection, params=names) == [{"n": 1}]
        (row,) = read("SELECT * FROM kinds", connection)
        assert [*row.values()][:8] == [*columns.values()][:8]
        assert connection.execute("DELETE FROM kinds WHERE c0 = :yes AND c1 < :zero", {"yes": True, "zero": 0}) == 1


@pytest.mark.parametrize(
    ("statement", "state"),
    [
        ("SELEC", "42601"),
        ("SELECT 1; SELECT 2", "42601"),
        ("SELECT 1 / 0", "22012"),
        ("INSERT INTO missing VALUES (1)", "42P01"),
        ("COPY t FROM STDIN", "57014"),
        ("COPY t FROM STDIN (FORMAT binary)", "57014"),
        ("SELECT $1::int", "08P01"),
        ("CALL missing()", "42883"),
        ("RELEASE SAVEPOINT missing", "3B001"),
        ("DO $$BEGIN RAISE EXCEPTION 'no' USING ERRCODE = 'XY123'; END$$", "XY123"),
    ],
)
@pytest.mark.parametrize("autocommit", [False, True])
def test_a_statement_that_fails(statement: str, state: str, autocommit: bool, here: str) -> None:  # noqa: FBT001
    with longshore.connect(here, autocommit=autocommit) as connection:
        if not autocommit:
            connection.execute("INSERT INTO t VALUES (1)")
        try:
            with pytest.raises(longshore.Error) as caught:
                connection.execute(statement)
        finally:
            connection.rollback()
        if caught.value.sqlstate is None:
            # Refused before it was sent.
            assert state == "08P01"
        else:
            assert caught.value.sqlstate == (
                state if statement != "RELEASE SAVEPOINT missing" or not autocommit else "25P01"
            )
        assert read("SELECT count(*) AS n FROM t", connection) == [{"n": 0}]
        check(connection)


def test_text_that_cannot_be_sent(here: str) -> None:
    with longshore.connect(here) as connection:
        for text in ("SELECT '\0'", "SELECT '\ud800'"):
            with pytest.raises(longshore.Error):
                connection.execute(text)
        with pytest.raises(longshore.Error):
            connection.execute("SELECT $1::text", ["a\0b"])
        connection.rollback()
        check(connection)


@pytest.mark.parametrize("wrong", [{"sql": 7}, {"sql": None}, {"params": "text"}, {"params": {1}}, {"timeout": -1}])
def test_arguments_that_are_none(wrong: dict[str, Any], here: str) -> None:
    with longshore.connect(here) as connection:
        with pytest.raises(longshore.InterfaceError):
            connection.execute(**{"sql": "SELECT 1", **wrong})
        assert connection.in_transaction is False
        check(connection)


def test_what_cannot_be_connected_to(here: str) -> None:
    for conn in (None, 7, longshore.Pool(here)):
        with pytest.raises(longshore.InterfaceError, match="env:NAME or a dict of keywords, not "):
            longshore.connect(conn)  # type: ignore[arg-type]
    with pytest.raises(longshore.InterfaceError, match="autocommit is True or False"):
        longshore.connect(here, autocommit=1)  # type: ignore[arg-type]
