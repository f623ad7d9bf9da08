"""Whole batches that one statement of SQLite's takes: each row exactly, and each error with its row."""

import datetime as dt
import decimal
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import longshore
from tests.sqlite.test_writing import CHANGED, asked

Make = Callable[..., str]

#: Rows of a batch: more than the watch is looked at between, and no multiple of that.
MANY = 1_000


def numbers(start: int, length: int = MANY) -> pa.Table:
    """Give a table of the columns `a`, numbers from `start`, and `b`, their texts."""
    rows = range(start, start + length)
    return pa.table({"a": pa.array(rows, pa.int64()), "b": pa.array([f"text {row}" for row in rows], pa.string())})


def stored(start: int, length: int = MANY) -> list[tuple[int, str]]:
    """Give what is stored of `numbers`."""
    return [(row, f"text {row}") for row in range(start, start + length)]


@pytest.mark.parametrize(
    "table",
    [
        "CREATE TABLE t (a, b)",
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)",
        "CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT, b TEXT)",
        "CREATE TABLE t (a INT, b TEXT UNIQUE, c AS (a + 1) STORED, d AS (b || a))",
        "CREATE TABLE t (a INT, b TEXT, CHECK (b = 'text ' || a))",
        "CREATE TABLE t (a INT PRIMARY KEY, b TEXT, c AS (a + 1) STORED) WITHOUT ROWID",
        "CREATE TABLE t (a INT, b TEXT NOT NULL) STRICT",
    ],
)
def test_each_row_of_each_batch_is_stored(make: Make, path: Path, table: str) -> None:
    url = make(
        table,
        "CREATE INDEX i ON t (b, a)",
        "CREATE UNIQUE INDEX j ON t (a) WHERE a > 100",
        "CREATE INDEX k ON t (a + 1)",
    )
    batches = [numbers(0), numbers(0, 0), numbers(MANY, 1), numbers(MANY + 1)]
    assert longshore.write_sql(iter(batches), "t", url, if_exists="append") == 2 * MANY + 1
    assert asked(path, "SELECT a, b FROM t ORDER BY a") == stored(0, 2 * MANY + 1)
    assert asked(path, "PRAGMA integrity_check") == [("ok",)]


REFUSING = [
    # a table of one row, which refuses a number of -1 after it
    ("CREATE TABLE t (a UNIQUE, b)", "23505"),
    ("CREATE TABLE t (a INTEGER PRIMARY KEY, b)", "23505"),
    ("CREATE TABLE t (a INT PRIMARY KEY, b) WITHOUT ROWID", "23505"),
    ("CREATE TABLE t (a INT, b TEXT, CHECK (a <> -1 OR b = 'old')) STRICT", "23514"),
    ("CREATE TABLE t (a, b, c AS (CASE b WHEN 'old' THEN 0 ELSE nullif(a, -1) END) STORED NOT NULL)", "23502"),
    ("CREATE TABLE t (a INT, b TEXT, c INT AS (CASE b WHEN 'text -1' THEN b ELSE 1 END) STORED) STRICT", "23000"),
]


@pytest.mark.parametrize(("table", "sqlstate"), REFUSING)
def test_an_error_in_the_last_row_names_it(make: Make, path: Path, table: str, sqlstate: str) -> None:
    url = make(table, "INSERT INTO t (a, b) VALUES (-1, 'old')")
    last = pa.concat_tables([numbers(MANY, MANY - 1), numbers(-1, 1)]).combine_chunks()
    with pytest.raises(longshore.IntegrityError) as caught:
        longshore.write_sql(iter([numbers(0), last]), "t", url, if_exists="append")
    assert (caught.value.row, caught.value.sqlstate) == (2 * MANY - 1, sqlstate)
    assert asked(path, "SELECT a, b FROM t") == [(-1, "old")]
    with longshore.connect(url) as connection:
        connection.execute("INSERT INTO t (a, b) VALUES (-2, 'mine')")
        with pytest.raises(longshore.IntegrityError) as caught:
            longshore.write_sql(iter([numbers(0), last]), "t", connection, if_exists="append")
        assert (caught.value.row, caught.value.sqlstate) == (2 * MANY - 1, sqlstate)
        connection.commit()
    assert asked(path, "SELECT a, b FROM t ORDER BY a DESC") == [(-1, "old"), (-2, "mine")]


def test_a_foreign_key_names_its_row(make: Make, path: Path) -> None:
    url = make(
        "CREATE TABLE p (a INTEGER PRIMARY KEY)", "CREATE TABLE t (a REFERENCES p, b)", "INSERT INTO p VALUES (1)"
    )
    data = pa.table({"a": [1] * 500 + [2] + [1] * 500})
    with pytest.raises(longshore.IntegrityError, match="FOREIGN KEY") as caught:
        longshore.write_sql(data, "t", url + "?pragma.foreign_keys=1", if_exists="append")
    assert (caught.value.row, caught.value.sqlstate) == (500, "23503")
    assert asked(path, "SELECT * FROM t") == []
    assert longshore.write_sql(data, "t", url, if_exists="append") == 1001


def test_an_upsert_meets_rows_of_before_and_of_its_own_batch(make: Make, path: Path) -> None:
    url = make(
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, c DEFAULT 'new')",
        "INSERT INTO t VALUES (500, 'old', 'kept'), (-1, 'old', 'kept')",
    )
    data = pa.concat_tables([numbers(0), numbers(400, 1), pa.table({"a": [500], "b": ["last"]})]).combine_chunks()
    assert longshore.write_sql(data, "t", url, if_exists="upsert", key="a") == MANY + 2
    expected = [(-1, "old", "kept")] + [(row, text, "new") for row, text in stored(0)]
    expected[501] = (500, "last", "kept")
    assert asked(path, "SELECT * FROM t ORDER BY a") == expected
    keys = pa.table({"a": pa.array(range(MANY + 1), pa.int64())})
    assert longshore.write_sql(keys, "t", url, if_exists="upsert", key="a") == MANY + 1
    assert asked(path, "SELECT * FROM t ORDER BY a") == [*expected, (MANY, None, "new")]


def test_triggers_see_each_row(make: Make, path: Path) -> None:
    url = make(
        "CREATE TABLE t (a, b)",
        "CREATE TABLE log (a, rows)",
        "CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO log VALUES (NEW.a, (SELECT count(*) FROM t)); END",
    )
    assert longshore.write_sql(numbers(0), "t", url, if_exists="append") == MANY
    assert asked(path, "SELECT * FROM t") == stored(0)
    assert asked(path, "SELECT * FROM log") == [(row, row + 1) for row in range(MANY)]


@pytest.mark.parametrize("raised", ["ABORT", "FAIL", "ROLLBACK"])
def test_what_a_trigger_raises_names_its_row(make: Make, path: Path, raised: str) -> None:
    url = make(
        "CREATE TABLE t (a, b)",
        f"CREATE TRIGGER g AFTER INSERT ON t WHEN NEW.a = 500 BEGIN SELECT RAISE({raised}, 'no'); END",
        "INSERT INTO t VALUES (-1, 'old')",
    )
    with pytest.raises(longshore.IntegrityError, match="no") as caught:
        longshore.write_sql(numbers(0), "t", url, if_exists="append")
    assert caught.value.row == 500
    assert asked(path, "SELECT * FROM t") == [(-1, "old")]


def test_a_table_may_have_the_name_that_batches_go_by(make: Make, path: Path) -> None:
    url = make("CREATE TABLE longshore_batch (a, b)", "CREATE TABLE LONGSHORE_BATCH_ (a, b)", "CREATE TABLE t (a, b)")
    for table in ("longshore_batch", "longshore_batch_", "t"):
        assert longshore.write_sql(numbers(0), table, url, if_exists="append") == MANY
        assert asked(path, f"SELECT * FROM {table}") == stored(0)


def test_nothing_is_left_on_the_owners_connection(make: Make, path: Path) -> None:
    url = make("CREATE TABLE t (a, b)")
    with longshore.connect(url) as connection:
        longshore.write_sql(numbers(0), "t", connection, if_exists="append")
        with pytest.raises(longshore.DataError):
            longshore.write_sql(pa.table({"a": [float("nan")]}), "t", connection, if_exists="append")
        with pytest.raises(longshore.ProgrammingError, match="no such table"):
            connection.execute("SELECT * FROM longshore_batch")
        longshore.write_sql(numbers(MANY), "t", connection, if_exists="append")
        connection.commit()
    assert asked(path, "SELECT * FROM t") == stored(0, 2 * MANY)
    assert asked(path, "SELECT name FROM sqlite_schema") == [("t",)]


def test_a_value_that_is_refused_leaves_the_owners_change(make: Make, path: Path) -> None:
    url = make("CREATE TABLE t (a, b)")
    values = [1.5] * MANY
    values[700] = float("nan")
    with longshore.connect(url) as connection:
        connection.execute("INSERT INTO t VALUES (-1, 'mine')")
        with pytest.raises(longshore.DataError, match="NaN: SQLite has no such number") as caught:
            longshore.write_sql(
                iter([pa.table({"a": [0.5]}), pa.table({"a": values})]), "t", connection, if_exists="append"
            )
        assert (caught.value.column, caught.value.row) == ("a", 701)
        connection.commit()
    assert asked(path, "SELECT * FROM t") == [(-1, "mine")]


@pytest.mark.parametrize(("declared", "array"), CHANGED)
def test_what_would_be_changed_is_refused_without_nulls(make: Make, path: Path, declared: str, array: pa.Array) -> None:
    url = make(f"CREATE TABLE t (a {declared})")
    with pytest.raises(longshore.DataError) as caught:
        longshore.write_sql(pa.table({"a": array.slice(1)}), "t", url, if_exists="append")
    assert (caught.value.column, caught.value.row) == ("a", 0)
    assert asked(path, "SELECT * FROM t") == []


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le", "UTF-16be"])
def test_texts_of_our_own_are_those_of_their_rows(make: Make, path: Path, encoding: str) -> None:
    # SQLite takes a text from a place that the next row's text goes to.
    days = [dt.date(1, 1, 1) + dt.timedelta(17 * row) for row in range(MANY)]
    timestamps = [dt.datetime(1970, 1, 1) + dt.timedelta(seconds=row, microseconds=row % 2) for row in range(MANY)]  # noqa: DTZ001
    prices = [decimal.Decimal(row**4 - 5000) / 100 for row in range(MANY)]
    words = [f"ü€😀{row}" for row in range(MANY)]
    data = pa.table(
        {
            "day": days,
            "timestamp": pa.array(timestamps, pa.timestamp("us")),
            "price": pa.array(prices, pa.decimal128(20, 2)),
            "word": words,
            "bytes": [word.encode() for word in words],
            "same": days,
        }
    )
    url = make(f"PRAGMA encoding = '{encoding}'", "CREATE TABLE other (a)")
    longshore.write_sql(data, "t", url)
    expected = [
        (str(day), timestamp.isoformat(" "), f"{price:.2f}", word, word.encode(), str(day))
        for day, timestamp, price, word in zip(days, timestamps, prices, words, strict=True)
    ]
    assert asked(path, "SELECT * FROM t") == expected


def test_one_long_batch_ends_at_its_timeout(make: Make, path: Path) -> None:
    url = make("CREATE TABLE t (a)")
    data = pa.table({"a": range(5_000_000)})
    with longshore.connect(url) as connection:
        connection.execute("INSERT INTO t VALUES ('mine')")
        with pytest.raises(longshore.TimeoutError):
            longshore.write_sql(data, "t", connection, if_exists="append", timeout=0.2)
        connection.commit()
    assert asked(path, "SELECT * FROM t") == [("mine",)]
