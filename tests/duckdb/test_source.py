"""`duckdb://`: what DuckDB alone has."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import longshore

pytestmark = pytest.mark.packages

COMPUTING = "SELECT count(*) AS n FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = 7"


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Give the URL of an empty file."""
    file = tmp_path / "harbour.duckdb"
    duckdb.connect(file).close()
    return f"duckdb:///{file}"


def cell(query: str, conn: Any, **arguments: Any) -> Any:
    """Return the one value of a query."""
    table: Any = longshore.read_sql(f"SELECT {query} AS x", conn, return_type="arrow", **arguments)
    return table.column(0).to_pylist()[0]


TYPES: dict[str, tuple[pa.DataType, str]] = {
    "12345678901234567890::HUGEINT": (pa.decimal128(38, 0), "hugeint"),
    "1::UHUGEINT": (pa.decimal128(38, 0), "uhugeint"),
    "1.5::DECIMAL(18,3)": (pa.decimal128(18, 3), "decimal(18,3)"),
    "TIMESTAMP_S '2020-01-01'": (pa.timestamp("s"), "timestamp_s"),
    "TIMESTAMP_MS '2020-01-01'": (pa.timestamp("ms"), "timestamp_ms"),
    "TIMESTAMP_NS '2020-01-01 00:00:00.000000001'": (pa.timestamp("ns"), "timestamp_ns"),
    "TIMESTAMPTZ '2020-01-01 00:00:00+02'": (pa.timestamp("us", "UTC"), "timestamp with time zone"),
    "TIMETZ '12:00:00+02'": (pa.string(), "time_tz"),
    "INTERVAL '1 month 2 days'": (pa.month_day_nano_interval(), "interval"),
    "'a'::ENUM('a', 'b')": (pa.dictionary(pa.uint8(), pa.string()), "ENUM('a', 'b')"),
    "'101'::BIT": (pa.string(), "bit"),
    "123456789012345678901234567890123456789012::BIGNUM": (pa.string(), "bignum"),
}


@pytest.mark.parametrize("value", TYPES)
def test_types_and_their_native_names(url: str, value: str) -> None:
    table: Any = longshore.read_sql(f"SELECT {value} AS x", url, return_type="arrow")
    field = table.schema.field("x")
    assert (field.type, field.metadata[b"native_type"].decode()) == TYPES[value]
    assert longshore.schema(f"SELECT {value} AS x", url).field("x").equals(field)


@pytest.mark.parametrize(
    "value", ["170141183460469231731687303715884105727::HUGEINT", "TIME '24:00:00'", "'infinity'::TIMESTAMP"]
)
def test_what_arrow_cannot_hold_is_an_error(url: str, value: str) -> None:
    with pytest.raises(longshore.DataError) as caught:
        cell(value, url)
    assert (caught.value.column, caught.value.row) == ("x", 0)
    assert caught.value.hint is not None


@pytest.mark.parametrize("form", ["arrow", "arrow_stream", "pandas"])
def test_an_error_of_the_first_rows_is_one_of_ours(url: str, form: str) -> None:
    with pytest.raises(longshore.DataError, match="Could not convert string 'quay0' to INT32"):
        list(longshore.read_sql("SELECT CAST('quay' || range AS INTEGER) AS x FROM range(3)", url, return_type=form))


@pytest.mark.parametrize(
    ("value", "wanted", "exact"),
    [
        ("1.5::DECIMAL(9,2)", "float64", 1.5),
        ("'12'", "int64", 12),
        ("1", "decimal128(5, 2)", 1),
        ("2.0::DOUBLE", "int8", 2),
        ("'a'::ENUM('a', 'b')", "string", "a"),
        ("TIMESTAMPTZ '2020-01-01 00:00:00+00'", "string", "2020-01-01 00:00:00+00"),
        ("1.5::DOUBLE", "int32", None),
        ("300", "int8", None),
        ("TIMESTAMP '2020-01-01 00:00:01'", "date32", None),
        ("0.1::DOUBLE", "float32", None),
    ],
)
def test_schema_is_exact_or_an_error(url: str, value: str, wanted: str, exact: Any) -> None:
    if exact is not None:
        assert cell(value, url, schema={"x": wanted}) == exact
        return
    with pytest.raises(longshore.DataError) as caught:
        cell(value, url, schema={"x": wanted})
    assert caught.value.column == "x"


def test_an_open_connection_is_read_and_written_in_its_transaction() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TEMP TABLE boats AS SELECT 7 AS berth")
        connection.execute("BEGIN")
        frame: Any = longshore.read_sql("SELECT berth FROM boats", connection, return_type="arrow")
        assert frame.column(0).to_pylist() == [7]
        assert longshore.write_sql(pa.table({"a": [1]}), "more", connection) == 1
        connection.rollback()
        assert connection.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'more'").fetchall() == [(0,)]
        # Its own settings are as they were.
        assert connection.execute("SELECT current_setting('arrow_lossless_conversion')").fetchall() == [(False,)]


def test_one_instance_and_its_settings(url: str) -> None:
    with longshore.connect(url) as connection:
        connection.execute("CREATE TABLE boats (berth INTEGER)")
        connection.commit()
        assert longshore.read_sql("SELECT * FROM boats", url, return_type="arrow").num_rows == 0
        with pytest.raises(longshore.InterfaceError, match="other settings"):
            cell("1", f"{url}?read_only=true")
    assert cell("1", f"{url}?read_only=true") == 1
    with pytest.raises(longshore.Error, match="read-only"):
        longshore.write_sql(pa.table({"a": [1]}), "t", f"{url}?read_only=true")


def test_in_memory_and_files_that_are_not_there(tmp_path: Path) -> None:
    assert cell("1", "duckdb://") == 1
    with pytest.raises(longshore.InterfaceError, match="in memory"):
        longshore.write_sql(pa.table({"a": [1]}), "t", "duckdb://")
    with pytest.raises(longshore.OperationalError, match="there is no file"):
        cell("1", f"duckdb:///{tmp_path / 'none.duckdb'}")
    for name in ("me:secret@none.duckdb", "me:a/b@none.duckdb"):
        with pytest.raises(longshore.InterfaceError, match="the URL of a file has no user and no password"):
            cell("1", f"duckdb://{name}")
    assert [*tmp_path.iterdir()] == []
    (tmp_path / "other.duckdb").write_text("text" * 5000)
    with pytest.raises(longshore.OperationalError, match="not a valid DuckDB"):
        cell("1", f"duckdb:///{tmp_path / 'other.duckdb'}")


@pytest.mark.parametrize("statement", ["CREATE TABLE t (a INTEGER)", "SET threads = 2", "INSERT INTO boats VALUES (1)"])
def test_a_statement_without_rows_is_not_a_query(url: str, statement: str) -> None:
    with longshore.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE boats (berth INTEGER)")
        with pytest.raises(longshore.ProgrammingError, match="returns no rows, and was run"):
            longshore.read_sql(statement, connection)
        frame: Any = longshore.read_sql("INSERT INTO boats VALUES (7) RETURNING berth", connection, return_type="arrow")
        assert frame.column(0).to_pylist() == [7]


def test_parts_are_one_query_and_said(url: str) -> None:
    with pytest.warns(longshore.SerialReadWarning, match="DuckDB reads a query in parallel inside"):
        assert cell("1", url, partition_num=3) == 1


def test_ctrl_c_within_half_a_second(url: str) -> None:
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        longshore.read_sql(COMPUTING, url)
    assert time.monotonic() - start < 0.8


@pytest.mark.parametrize(
    ("data", "native"),
    [
        (pa.array([1, 2**53 + 1]), "DOUBLE"),
        (pa.array([1.0, 1.5]), "INTEGER"),
        (pa.array([0.5, 0.1]), "FLOAT"),
        (pa.array([1, 300]), "TINYINT"),
        (pa.array(["1", "1.555"]), "DECIMAL(9,2)"),
        (pa.array(["1", "x"]), "INTEGER"),
        (pa.array([[1.0, None], [1.5]]), "INTEGER[]"),
        (pa.array([{"a": 1}, {"a": 300}]), "STRUCT(a TINYINT)"),
        (pa.array([0, 1], pa.timestamp("ns")), "TIMESTAMP"),
    ],
)
def test_a_value_that_would_change_is_an_error(url: str, data: pa.Array, native: str) -> None:
    with longshore.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE t (a {native})")
    assert longshore.write_sql(pa.table({"a": data.slice(0, 1)}), "t", url, if_exists="append") == 1
    with pytest.raises(longshore.DataError) as caught:
        longshore.write_sql(pa.table({"a": data}), "t", url, if_exists="append")
    assert (caught.value.column, caught.value.row) == ("a", 1)
    assert longshore.read_sql("SELECT * FROM t", url, return_type="arrow").num_rows == 1


@pytest.mark.parametrize(
    "places", [["?, ?", "?, ?"], ["$2, $1", "$1, $2"], [":b, :a", ":a, :b"]], ids=["marks", "numbers", "names"]
)
def test_many_rows_find_their_columns(places: list[str]) -> None:
    rows = [(n, n - 1 or None) for n in range(1, 40)]
    with longshore.connect("duckdb://", autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (a int PRIMARY KEY, b int REFERENCES t (a))")
        for at, place in enumerate(places):
            # A row refers to one before it: they go one by one, and fast once there is no such key.
            sets: Any = [{"a": a, "b": b} if ":" in place else (b, a) if place == "$2, $1" else (a, b) for a, b in rows]
            columns = "(b, a)" if place == ":b, :a" else ""
            cursor.executemany(f"INSERT INTO main.t {columns} VALUES ({place})", sets)
            assert cursor.execute("SELECT * FROM t ORDER BY a").fetchall() == rows
            cursor.execute("DELETE FROM t" if at else "DROP TABLE t")
            cursor.execute("CREATE TABLE IF NOT EXISTS t (a int, b int)")


def test_many_rows_of_lists(url: str) -> None:
    rows = [(n, [n, None] if n % 2 else {"k": str(n)} if n % 3 else None) for n in range(40)]
    with longshore.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (a int, b varchar)")
        for a, b in rows:
            cursor.execute("INSERT INTO t VALUES (?, ?)", (a, b))
        assert cursor.executemany("INSERT INTO t VALUES (?, ?)", rows).rowcount == 40
        found = cursor.execute("SELECT a, b FROM t ORDER BY rowid").fetchall()
        assert found[:40] == found[40:]


def test_importing_longshore_imports_no_driver() -> None:
    code = "import sys, longshore; assert not {'duckdb', '_duckdb', 'adbc_driver_manager'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.once
def test_a_write_that_has_begun_too_late_is_undone(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, cancelled, undone = threading.Event(), threading.Event(), threading.Event()

    class Loader:
        def abort(self) -> None:
            undone.set()

    def load(_session: object, **_load: object) -> Loader:
        begun.set()
        assert cancelled.wait(10)
        return Loader()

    monkeypatch.setattr("longshore.sources.duckdb.Session.load", load)
    monkeypatch.setattr("longshore.sources.duckdb.Session.cancel", lambda _session: cancelled.set())
    timeout = 0.1
    while not begun.is_set():
        with pytest.raises(longshore.TimeoutError):
            longshore.write_sql(pa.table({"n": [1]}), "t", url, timeout=timeout)
        timeout *= 2
    assert undone.wait(10)
