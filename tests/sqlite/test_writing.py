"""Writing into SQLite: all rows as they are or none, and what the file's other readers see of it."""

import datetime as dt
import decimal
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.quirks import UUID

Make = Callable[..., str]


def asked(path: Path, query: str) -> list[tuple[Any, ...]]:
    """Ask Python's own module."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def one(value: Any, kind: pa.DataType | None = None) -> pa.Table:
    """Give a table of one column `a` with two rows, the second of which is `value`."""
    return pa.table({"a": pa.array([None, value], kind)})


INSTANT = dt.datetime(2024, 2, 29, 12, 30, 0, 250000, tzinfo=dt.UTC)
NAIVE = dt.datetime(1969, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001 - a timestamp without a zone is what is meant
KEY = uuid.UUID("12345678-1234-5678-1234-567812345678")

TYPES: dict[str, tuple[pa.Array, str, pa.DataType, object]] = {
    # column: what is written, the declared type, what is read, what is stored of the last value
    "bool": (pa.array([None, True, False]), "BOOLEAN", pa.bool_(), 0),
    "int8": (pa.array([None, 127, -128], pa.int8()), "INTEGER", pa.int64(), -128),
    "int64": (pa.array([None, 2**63 - 1, -(2**63)]), "INTEGER", pa.int64(), -(2**63)),
    "uint64": (pa.array([None, 0, 2**63 - 1], pa.uint64()), "UNSIGNED INTEGER", pa.uint64(), 2**63 - 1),
    "float32": (pa.array([None, 1.5, 0.1], pa.float32()), "REAL", pa.float64(), 0.10000000149011612),
    "float64": (pa.array([None, float("-inf"), 5e-324]), "REAL", pa.float64(), 5e-324),
    "text": (pa.array([None, "", "ü 'x' \0 007"]), "TEXT", pa.string(), "ü 'x' \0 007"),
    "digits": (pa.array([None, "007", "1.50"], pa.string_view()), "TEXT", pa.string(), "1.50"),
    "words": (pa.array([None, "a", "a"]).dictionary_encode(), "TEXT", pa.string(), "a"),
    "bytes": (pa.array([None, b"", b"\0\xff"]), "BLOB", pa.binary(), b"\0\xff"),
    "date": (pa.array([None, dt.date(1, 1, 1), dt.date(9999, 12, 31)]), "DATE", pa.date32(), "9999-12-31"),
    "time": (pa.array([None, dt.time(), dt.time(23, 59, 59, 1)]), "TIME", pa.time64("us"), "23:59:59.000001"),
    "naive": (
        pa.array([None, dt.datetime(2024, 1, 1), NAIVE]),  # noqa: DTZ001
        "TIMESTAMP",
        pa.timestamp("us"),
        "1969-12-31 23:59:59.999999",
    ),
    "whole": (pa.array([None, 10**18, 0], pa.timestamp("ns")), "TIMESTAMP", pa.timestamp("us"), "1970-01-01 00:00:00"),
    "instant": (
        pa.array([None, INSTANT, INSTANT], pa.timestamp("us", "Europe/Berlin")),
        "TIMESTAMP WITH TIME ZONE",
        pa.timestamp("us", "UTC"),
        "2024-02-29 12:30:00.250000+00:00",
    ),
}


def test_each_type_reads_back_as_it_was(path: Path) -> None:
    data = pa.table({name: array for name, (array, *_) in TYPES.items()})
    url = f"sqlite:///{path}?mode=rwc"
    assert longshore.write_sql(data, "t", url) == 3
    back = longshore.read_sql("SELECT * FROM t", url, return_type="arrow")
    assert back.schema.types == [kind for _, _, kind, _ in TYPES.values()]
    for name, (array, _, kind, _) in TYPES.items():
        values = array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array
        assert back[name].combine_chunks().equals(values.cast(kind)), name
    declared = asked(path, "SELECT type FROM pragma_table_info('t')")
    assert declared == [(native,) for _, native, _, _ in TYPES.values()]
    stored = asked(path, "SELECT * FROM t LIMIT 1 OFFSET 2")
    assert stored == [tuple(value for *_, value in TYPES.values())]


@pytest.mark.filterwarnings("ignore:numeric values of column:longshore.DataWarning")
@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (pa.decimal128(15, 2), ["-0.01", "9999999999999.99", "1.50"]),
        (pa.decimal128(38, 10), ["1234567890123456789012345678.0000000001", "0.0000000000"]),
        (pa.decimal256(76, 0), ["9" * 76, "-" + "9" * 76]),
    ],
)
def test_decimals_are_text_with_every_digit(path: Path, kind: pa.DataType, texts: list[str]) -> None:
    url = f"sqlite:///{path}?mode=rwc"
    data = pa.table({"a": pa.array([decimal.Decimal(text) for text in texts], kind)})
    longshore.write_sql(data, "t", url)
    assert asked(path, "SELECT a FROM t") == [(text,) for text in texts]
    assert longshore.read_sql("SELECT a FROM t", url, return_type="arrow").equals(data)
    # As with every database, the nearest doubles.
    assert longshore.read_sql("SELECT a FROM t", url)["a"].tolist() == [float(text) for text in texts]


def test_negative_scales_are_written_in_full(path: Path) -> None:
    data = pa.table({"a": pa.array([decimal.Decimal("-12E3"), decimal.Decimal(0)], pa.decimal128(5, -3))})
    longshore.write_sql(data, "t", f"sqlite:///{path}?mode=rwc")
    assert asked(path, "SELECT a FROM t") == [("-12000",), ("0",)]


def test_uuids_and_json_are_text(path: Path) -> None:
    ids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([KEY.bytes], pa.binary(16)))
    documents = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["1.0"]))
    longshore.write_sql(pa.table({"id": ids, "doc": documents}), "t", f"sqlite:///{path}?mode=rwc")
    assert asked(path, "SELECT *, typeof(doc) FROM t") == [(str(KEY), "1.0", "text")]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (pa.array([None, 2**63], pa.uint64()), "beyond SQLite's integers"),
        (pa.array([None, float("nan")]), "has no such number"),
        (pa.array([None, 1001], pa.timestamp("ns")), "finer than a microsecond"),
        (pa.array([None, 2**40], pa.timestamp("s")), "it is beyond"),
        (pa.array([None, 2**62], pa.timestamp("s", "UTC")), "it is beyond"),
        (pa.array([None, 3_000_000], pa.date32()), "it is beyond"),
        (pa.array([None, 86_400], pa.time32("s")), "not a time of day"),
        (pa.array([None, 1], pa.time64("ns")), "finer than a microsecond"),
    ],
)
def test_what_sqlite_does_not_hold_is_refused(make: Make, path: Path, array: pa.Array, message: str) -> None:
    url = make("CREATE TABLE other (a)")
    with pytest.raises(longshore.DataError, match=message) as caught:
        longshore.write_sql(pa.table({"a": array}), "t", url)
    assert (caught.value.column, caught.value.row) == ("a", 1)
    assert asked(path, "SELECT name FROM sqlite_schema") == [("other",)]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([[1]]),
        pa.array([{"a": 1}]),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    ],
)
def test_types_that_sqlite_has_not_are_refused(make: Make, path: Path, array: pa.Array) -> None:
    url = make("CREATE TABLE t (a)")
    for if_exists in ("append", "replace"):
        with pytest.raises(longshore.NotSupportedError, match="no type") as caught:
            longshore.write_sql(pa.table({"a": array}), "t", url, if_exists=if_exists)
        assert caught.value.column == "a"
    assert asked(path, "SELECT count(*) FROM t") == [(0,)]


APPENDED: list[tuple[str, pa.Array, object]] = [
    # the column's type, one value, what is stored of it
    ("INTEGER", pa.array(["7"]), 7),
    ("INTEGER", pa.array([7.0]), 7),
    ("INTEGER", pa.array([True]), 1),
    ("INTEGER", pa.array([decimal.Decimal("7.00")]), 7),
    ("BOOLEAN", pa.array([1]), 1),
    ("REAL", pa.array([2**53]), float(2**53)),
    ("REAL", pa.array(["0.1"]), 0.1),
    ("DECIMAL(15, 2)", pa.array([decimal.Decimal("123.45")]), 123.45),
    ("DECIMAL(15, 2)", pa.array([decimal.Decimal("123.00")]), 123),
    ("NUMERIC", pa.array(["1.5"]), 1.5),
    ("TEXT", pa.array([7]), "7"),
    ("TEXT", pa.array([0.1]), "0.1"),
    ("TEXT", pa.array([dt.date(2024, 1, 2)]), "2024-01-02"),
    ("VARCHAR(3)", pa.array(["12345"]), "12345"),
    ("DATE", pa.array(["2024-01-02"]), "2024-01-02"),
    ("DATE", pa.array([86_400_000_000], pa.timestamp("us")), "1970-01-02"),
    ("TIMESTAMP", pa.array([dt.date(2024, 1, 2)]), "2024-01-02 00:00:00"),
    ("DATETIME", pa.array(["2024-01-02T03:04"]), "2024-01-02T03:04"),
    ("TIMESTAMPTZ", pa.array(["2024-01-02T03:04Z"]), "2024-01-02T03:04Z"),
    ("TIME", pa.array(["03:04"]), "03:04"),
    ("", pa.array(["007"]), "007"),
    ("", pa.array([1.0]), 1.0),
    ("UUID", pa.array([str(KEY)]), str(KEY)),
    ("JSON", pa.array(["{}"]), "{}"),
    ("BYTEA", pa.array([b"7"]), b"7"),
    ("BLOB", pa.array([KEY.bytes], pa.binary(16)).cast(UUID), KEY.bytes),
    ("UUID", pa.array([KEY.bytes], pa.binary(16)).cast(UUID), str(KEY)),
]


@pytest.mark.parametrize(("declared", "array", "stored"), APPENDED)
def test_appended_values_are_the_columns(
    make: Make, path: Path, declared: str, array: pa.Array, stored: object
) -> None:
    url = make(f"CREATE TABLE t (a {declared})")
    assert longshore.write_sql(pa.table({"a": array}), "t", url, if_exists="append") == 1
    [(value,)] = asked(path, "SELECT a FROM t")
    assert (type(value), value) == (type(stored), stored)


CHANGED: list[tuple[str, pa.Array]] = [
    ("INTEGER", pa.array([None, "007"])),
    ("INTEGER", pa.array([None, "x"])),
    ("INTEGER", pa.array([None, 1.5])),
    ("INTEGER", pa.array([None, 1e19])),
    ("INTEGER", pa.array([None, dt.date(2024, 1, 1)])),
    ("INTEGER", pa.array([None, b"1"])),
    ("UNSIGNED INT", pa.array([None, -1])),
    ("BOOLEAN", pa.array([None, 2])),
    ("REAL", pa.array([None, 2**53 + 1])),
    ("REAL", pa.array([None, True])),
    ("REAL", pa.array([None, "0.10"])),
    ("REAL", pa.array([None, decimal.Decimal("0.1234567890123456")])),
    ("NUMERIC", pa.array([None, "1.50"])),
    ("DECIMAL(38,2)", pa.array([None, decimal.Decimal("12345678901234567.01")])),
    ("TEXT", pa.array([None, b"x"])),
    ("TEXT", pa.array([None, True])),
    ("STRING", pa.array([None, "1e3"])),
    ("STRING", pa.array([None, 7])),
    ("JSON", pa.array([None, "1.0"])),
    ("UUID", pa.array([None, "12"])),
    ("BLOB", pa.array([None, "x"])),
    ("DATE", pa.array([None, 1])),
    ("DATE", pa.array([None, 1], pa.timestamp("s"))),
    ("DATE", pa.array([None, "2024-02-30"])),
    ("TIMESTAMP", pa.array([None, INSTANT])),
    ("TIMESTAMP", pa.array([None, "now"])),
    ("TIMESTAMPTZ", pa.array([None, NAIVE])),
    ("TIMESTAMPTZ", pa.array([None, "2024-01-01 00:00:00"])),
    ("TIME", pa.array([None, "24:00"])),
]


STRICT = [("STRICT", *case) for case in CHANGED if case[0] in {"INTEGER", "REAL", "TEXT", "BLOB"}]


@pytest.mark.parametrize(("strict", "declared", "array"), [*STRICT, *(("", *case) for case in CHANGED)])
def test_what_would_be_changed_is_refused(make: Make, path: Path, declared: str, array: pa.Array, strict: str) -> None:
    url = make(f"CREATE TABLE t (a {declared}) {strict}", "INSERT INTO t VALUES (NULL)")
    with pytest.raises(longshore.DataError) as caught:
        longshore.write_sql(pa.table({"a": array}), "t", url, if_exists="append")
    error = caught.value
    assert (error.column, error.row) == ("a", 1)
    assert declared in str(error)
    assert error.hint
    assert asked(path, "SELECT * FROM t") == [(None,)]


def test_strict_tables(make: Make, path: Path) -> None:
    url = make("CREATE TABLE t (i INT, r REAL, s TEXT, b BLOB, x ANY) STRICT")
    data = pa.table({"i": [1.0], "r": [1], "s": [2], "b": [b"1"], "x": ["007"]})
    longshore.write_sql(data, "t", url, if_exists="append")
    assert asked(path, "SELECT * FROM t") == [(1, 1.0, "2", b"1", "007")]


def test_fail_makes_a_table(make: Make, path: Path) -> None:
    url = make("CREATE TABLE other (a)")
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
    data = pa.table({"a": [1, 2], "b": ["x", None]}, schema=schema)
    types = {"b": "VARCHAR(9) COLLATE NOCASE"}
    assert longshore.write_sql(data, "t", url, key="a", types=types) == 2
    [(text,)] = asked(path, "SELECT sql FROM sqlite_schema WHERE name = 't'")
    assert text == 'CREATE TABLE "t" ("a" INTEGER NOT NULL, "b" VARCHAR(9) COLLATE NOCASE, PRIMARY KEY ("a"))'
    with pytest.raises(longshore.ProgrammingError, match="there already") as caught:
        longshore.write_sql(data, "T", url)
    assert "append" in (caught.value.hint or "")
    assert asked(path, "SELECT * FROM t") == [(1, "x"), (2, None)]
    with pytest.raises(longshore.InterfaceError, match=r"not one type of a column: it closes a parenthesis"):
        longshore.write_sql(data, "u", url, types={"b": "TEXT); DROP TABLE other"})


def test_nothing_but_nulls_and_no_rows(path: Path) -> None:
    url = f"sqlite:///{path}?mode=rwc"
    assert longshore.write_sql(pa.table({"a": pa.nulls(2)}), "t", url) == 2
    assert longshore.write_sql(pa.table({"a": ["007"]}), "t", url, if_exists="append") == 1
    assert asked(path, "SELECT a FROM t") == [(None,), (None,), ("007",)]
    assert longshore.write_sql(pa.table({"a": pa.array([], pa.date32())}), "u", url) == 0
    assert longshore.read_sql("SELECT * FROM u", url, return_type="arrow").schema.types == [pa.date32()]


@pytest.mark.parametrize("if_exists", ["append", "truncate", "upsert"])
def test_a_table_must_be_there(make: Make, if_exists: Any) -> None:
    url = make("CREATE TABLE other (a)", "CREATE VIEW v AS SELECT * FROM other")
    key = "a" if if_exists == "upsert" else None
    for table, message in (("t", "no table"), ("v", "view")):
        with pytest.raises(longshore.ProgrammingError, match=message):
            longshore.write_sql(one(1), table, url, if_exists=if_exists, key=key)


def test_columns_are_found_by_name(make: Make, path: Path) -> None:
    url = make("CREATE TABLE t (a, B DEFAULT 5, c AS (a + 1), d AS (a) STORED)")
    longshore.write_sql(pa.table({"A": [1]}), "t", url, if_exists="append")
    longshore.write_sql(pa.table({"B": [2], "a": [3]}), "t", url, if_exists="append")
    assert asked(path, "SELECT a, b FROM t") == [(1, 5), (3, 2)]
    for data, message in (
        (pa.table({"x": [1], "a": [1], "y": [1]}), 'no column "x", "y"'),
        (pa.table({"d": [1], "c": [1]}), 'generates "d", "c" itself'),
        (pa.table({"a": [1], "A": [1]}), "two columns"),
        (pa.table({"rowid": [1]}), 'no column "rowid"'),
    ):
        with pytest.raises(longshore.ProgrammingError, match=message):
            longshore.write_sql(data, "t", url, if_exists="append")
    assert asked(path, "SELECT count(*) FROM t") == [(2,)]


def test_names_are_quoted(make: Make, path: Path) -> None:
    url = make("CREATE TABLE other (a)")
    name, column = 'Größe "select" `x` \' ; --', "order \"by\" '?' [1]"
    for if_exists in ("fail", "append", "replace", "truncate"):
        longshore.write_sql(pa.table({column: [1]}), ("main", name), url, if_exists=if_exists)
    longshore.write_sql(pa.table({column: [1]}), ("main", name), url, if_exists="replace", key=column)
    longshore.write_sql(pa.table({column: [1, 2]}), ("main", name), url, if_exists="upsert", key=column)
    quoted = name.replace('"', '""')
    assert asked(path, f'SELECT * FROM "{quoted}"') == [(1,), (2,)]
    with pytest.raises(longshore.ProgrammingError, match="nowhere"):
        longshore.write_sql(one(1), ("nowhere", "t"), url)


def test_truncate_keeps_the_table(make: Make, path: Path) -> None:
    url = make(
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b DEFAULT 'x')",
        "CREATE INDEX i ON t (b)",
        "INSERT INTO t VALUES (1, 'old'), (2, 'old')",
    )
    assert longshore.write_sql(pa.table({"a": [2]}), "t", url, if_exists="truncate") == 1
    assert asked(path, "SELECT * FROM t") == [(2, "x")]
    assert asked(path, "SELECT name FROM sqlite_schema WHERE type = 'index'") == [("i",)]


def test_truncate_does_not_reach_other_tables(make: Make, path: Path) -> None:
    url = make(
        "CREATE TABLE t (a INTEGER PRIMARY KEY)",
        "CREATE TABLE child (a REFERENCES t ON DELETE CASCADE)",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO child VALUES (1)",
    )
    with pytest.raises(longshore.IntegrityError, match="child"):
        longshore.write_sql(pa.table({"a": [2]}), "t", url + "?pragma.foreign_keys=1", if_exists="truncate")
    assert asked(path, "SELECT * FROM t, child") == [(1, 1)]


def test_replace_makes_the_table_again(make: Make, path: Path) -> None:
    url = make(
        "CREATE TABLE t (a, b)",
        "CREATE INDEX i ON t (a)",
        "CREATE VIEW v AS SELECT a FROM t",
        "INSERT INTO t VALUES (1, 2)",
    )
    assert longshore.write_sql(pa.table({"a": ["x"]}), "t", url, if_exists="replace") == 1
    assert asked(path, "SELECT * FROM v") == [("x",)]
    assert asked(path, "SELECT name FROM sqlite_schema") == [("v",), ("t",)]
    assert longshore.write_sql(pa.table({"a": ["x"]}), "new", url, if_exists="replace") == 1
    with pytest.raises(longshore.DataError):
        longshore.write_sql(one(float("nan")), "t", url, if_exists="replace")
    assert asked(path, "SELECT * FROM t") == [("x",)]


def test_replace_names_what_points_at_the_table(make: Make, path: Path) -> None:
    url = make("CREATE TABLE t (a PRIMARY KEY)", "CREATE TABLE child (a REFERENCES T)", "INSERT INTO t VALUES (1)")
    with pytest.raises(longshore.IntegrityError, match="child"):
        longshore.write_sql(one(1), "t", url, if_exists="replace")
    assert asked(path, "SELECT * FROM t") == [(1,)]


def test_an_upsert_needs_an_index_over_all_rows(make: Make) -> None:
    url = make("CREATE TABLE t (a)", "CREATE UNIQUE INDEX i ON t (a) WHERE a > 0", "CREATE UNIQUE INDEX j ON t (a + 1)")
    with pytest.raises(longshore.ProgrammingError, match="unique index"):
        longshore.write_sql(one(1), "t", url, if_exists="upsert", key="a")


@pytest.mark.parametrize("clause", ["", "ON CONFLICT REPLACE", "ON CONFLICT IGNORE", "ON CONFLICT ROLLBACK"])
def test_no_row_goes_or_comes_unsaid(make: Make, path: Path, clause: str) -> None:
    url = make(f"CREATE TABLE t (a NOT NULL {clause} DEFAULT 9, b UNIQUE {clause})", "INSERT INTO t VALUES (1, 1)")
    with pytest.raises(longshore.IntegrityError, match="UNIQUE") as caught:
        longshore.write_sql(pa.table({"a": [2, 2], "b": [2, 1]}), "t", url, if_exists="append")
    assert caught.value.row == 1
    assert caught.value.sqlstate == "23505"
    with pytest.raises(longshore.IntegrityError, match="NOT NULL") as null:
        longshore.write_sql(pa.table({"a": [2, None], "b": [3, 4]}), "t", url, if_exists="append")
    assert (null.value.column, null.value.row, null.value.sqlstate) == ("a", 1, "23502")
    assert asked(path, "SELECT * FROM t") == [(1, 1)]


def test_a_null_is_not_numbered(make: Make, path: Path) -> None:
    url = make("CREATE TABLE t (a INTEGER PRIMARY KEY, b)")
    with pytest.raises(longshore.DataError, match="would become a number"):
        longshore.write_sql(one(1), "t", url, if_exists="append")
    longshore.write_sql(pa.table({"b": [5]}), "t", url, if_exists="append")
    assert asked(path, "SELECT * FROM t") == [(1, 5)]


def test_a_trigger_does_not_take_rows_away(make: Make, path: Path) -> None:
    url = make(
        "CREATE TABLE t (a)",
        "CREATE TRIGGER g BEFORE INSERT ON t WHEN NEW.a = 2 BEGIN SELECT RAISE(IGNORE); END",
    )
    with pytest.raises(longshore.IntegrityError, match="RAISE") as caught:
        longshore.write_sql(pa.table({"a": [1, 2]}), "t", url, if_exists="append")
    assert caught.value.row == 1
    assert asked(path, "SELECT * FROM t") == []


def test_an_interrupted_part_leaves_the_owners_transaction(make: Make, path: Path) -> None:
    url = make("CREATE TABLE t (a)")
    batch = pa.record_batch({"a": range(10_000)})
    endless = pa.RecordBatchReader.from_batches(batch.schema, iter(lambda: batch, None))
    with longshore.connect(url) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(longshore.TimeoutError):
            longshore.write_sql(endless, "t", connection, if_exists="append", timeout=0.3)
        connection.commit()
    assert asked(path, "SELECT * FROM t") == [(1,)]


def test_a_file_that_is_full_says_what_is_lost(make: Make, path: Path) -> None:
    url = make("CREATE TABLE t (a)", "INSERT INTO t VALUES (1)")
    with longshore.connect(url) as connection:
        connection.execute("PRAGMA max_page_count = 20")
        connection.execute("INSERT INTO t VALUES (2)")
        with pytest.raises(longshore.OperationalError, match="undone the whole transaction"):
            longshore.write_sql(pa.table({"a": range(100_000)}), "t", connection, if_exists="append")
        longshore.write_sql(pa.table({"a": [3]}), "t", connection, if_exists="append")
        connection.commit()
    assert asked(path, "SELECT * FROM t") == [(1,), (3,)]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_a_process_that_is_stopped_leaves_the_table(make: Make, path: Path, sent: signal.Signals) -> None:
    url = make("CREATE TABLE t (a)", "INSERT INTO t VALUES (1)")
    script = f"""
        import pyarrow, longshore

        # No Python runs while its batches are handed out, so that the signal finds the write.
        long = pyarrow.table({{"a": pyarrow.chunked_array([pyarrow.array(range(100_000))] * 1000)}})
        try:
            longshore.write_sql(long, "t", {url!r}, if_exists="truncate")
        except KeyboardInterrupt:
            print("interrupted")
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    try:
        ends = time.monotonic() + 30
        # Rows have left the cache for the file.
        while path.stat().st_size < 2**20:
            assert time.monotonic() < ends
            time.sleep(0.01)
        child.send_signal(sent)
        said, _ = child.communicate(timeout=10)
    finally:
        child.kill()
        child.wait()
    assert said == ("interrupted\n" if sent == signal.SIGINT else "")
    assert asked(path, "SELECT * FROM t") == [(1,)]


def test_a_locked_database_is_waited_for(make: Make, path: Path) -> None:
    url = make("CREATE TABLE t (a)")
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(longshore.OperationalError, match="locked"):
            longshore.write_sql(pa.table({"a": [1]}), "t", url + "?busy_timeout=0.2", if_exists="append")
        other.rollback()
    assert longshore.write_sql(pa.table({"a": [1]}), "t", url, if_exists="append") == 1


def test_a_file_that_may_only_be_read(make: Make) -> None:
    url = make("CREATE TABLE t (a)")
    with pytest.raises(longshore.OperationalError, match="readonly"):
        longshore.write_sql(pa.table({"a": [1]}), "t", url + "?mode=ro", if_exists="append")


def test_deferred_foreign_keys_fail_at_the_end(make: Make, path: Path) -> None:
    url = make(
        "CREATE TABLE p (a PRIMARY KEY)",
        "CREATE TABLE t (a REFERENCES p DEFERRABLE INITIALLY DEFERRED)",
    )
    with pytest.raises(longshore.IntegrityError, match="FOREIGN KEY"):
        longshore.write_sql(pa.table({"a": [1]}), "t", url + "?pragma.foreign_keys=1", if_exists="append")
    assert asked(path, "SELECT * FROM t") == []


def test_temporary_and_attached_tables(make: Make, path: Path) -> None:
    url = make("CREATE TABLE t (a)")
    with longshore.connect(url) as connection:
        connection.execute("CREATE TEMP TABLE t (b)")
        connection.commit()
        longshore.write_sql(pa.table({"b": [1]}), "t", connection, if_exists="append")
        longshore.write_sql(pa.table({"c": [2]}), "t", connection, if_exists="replace")
        longshore.write_sql(pa.table({"a": [3]}), ("main", "t"), connection, if_exists="append")
        found = longshore.read_sql("SELECT c, a FROM temp.t, main.t", connection, return_type="arrow")
        assert found.to_pylist() == [{"c": 2, "a": 3}]
        connection.commit()
    assert asked(path, "SELECT * FROM t") == [(3,)]


def test_full_text_tables_take_rows(make: Make, path: Path) -> None:
    url = make("CREATE VIRTUAL TABLE t USING fts5 (a)")
    longshore.write_sql(pa.table({"a": ["quick fox", "slow fox"]}), "t", url, if_exists="append")
    assert asked(path, "SELECT a FROM t WHERE t MATCH 'slow'") == [("slow fox",)]
    with pytest.raises(longshore.NotSupportedError, match="virtual"):
        longshore.write_sql(pa.table({"a": ["x"]}), "t", url, if_exists="replace")
