"""A `sqlite3.Connection` as `conn`: read and written through Python's own module, and left as it was."""

import datetime as dt
import sqlite3
import warnings
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import longshore


def test_it_sees_what_the_connection_sees(shared: sqlite3.Connection) -> None:
    shared.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, d DATE, b BOOL, s TEXT NOT NULL, x)")
    shared.execute("INSERT INTO t VALUES (1, '2024-02-29', 1, 'a', x'00'), (2, NULL, 0, 'ü', NULL)")
    assert shared.in_transaction
    table = longshore.read_sql("SELECT * FROM t", shared, return_type="arrow")
    assert table.schema.types == [pa.int64(), pa.date32(), pa.bool_(), pa.string(), pa.binary()]
    assert not table.schema.field("s").nullable
    assert table.to_pylist() == [
        {"id": 1, "d": dt.date(2024, 2, 29), "b": True, "s": "a", "x": b"\0"},
        {"id": 2, "d": None, "b": False, "s": "ü", "x": None},
    ]
    assert shared.in_transaction
    shared.rollback()


def test_empty_results_have_the_declared_types(shared: sqlite3.Connection) -> None:
    shared.execute("CREATE TEMP TABLE t (d TIMESTAMP, n NUMERIC(10, 2))")
    shared.execute("ATTACH ':memory:' AS other")
    shared.execute("CREATE TABLE other.u (b BOOLEAN)")
    query = "SELECT d, n, b FROM t, other.u"
    for return_type in ("arrow", "arrow_stream"):
        result = longshore.read_sql(query, shared, return_type=return_type)
        schema = result.schema if return_type == "arrow" else pa.schema(result)
        assert schema.types == [pa.timestamp("us"), pa.float64(), pa.bool_()]


def test_functions_of_the_connection(shared: sqlite3.Connection) -> None:
    shared.create_function("twice", 1, lambda value: 2 * value)
    table = longshore.read_sql("SELECT twice(?) AS a, twice(0.25) AS b", shared, params=[21], return_type="arrow")
    assert table.to_pylist() == [{"a": 42, "b": 0.5}]
    named = longshore.read_sql("SELECT :a AS a", shared, params={"a": dt.date(2024, 1, 1)}, return_type="arrow")
    assert named.to_pylist() == [{"a": "2024-01-01"}]


def test_factories_do_not_disturb_and_stay(shared: sqlite3.Connection) -> None:
    shared.row_factory = sqlite3.Row
    shared.text_factory = bytes
    table = longshore.read_sql("SELECT 'a' AS a, x'61' AS b", shared, return_type="arrow")
    assert table.to_pylist() == [{"a": "a", "b": b"a"}]
    assert shared.row_factory is sqlite3.Row
    assert shared.text_factory is bytes


def test_parts_are_read_serially(shared: sqlite3.Connection) -> None:
    with pytest.warns(longshore.SerialReadWarning, match="sqlite3.Connection"):
        longshore.read_sql("SELECT 1 AS a", shared, partition_num=2)


def test_errors_are_ours(shared: sqlite3.Connection) -> None:
    with pytest.raises(longshore.ProgrammingError, match="no such table"):
        longshore.read_sql("SELECT * FROM nowhere", shared)
    with pytest.raises(longshore.ProgrammingError, match="returns no rows"):
        longshore.read_sql("CREATE TABLE x (a)", shared)
    with pytest.raises(longshore.DatabaseError):
        longshore.read_sql("SELECT ?", shared)
    with pytest.raises(longshore.DatabaseError, match="UTF-8"):
        longshore.read_sql("SELECT CAST(x'ff' AS TEXT) AS a", shared)


def test_writes_are_part_of_the_transaction(shared: sqlite3.Connection) -> None:
    shared.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
    shared.execute("INSERT INTO t VALUES (1, 'old')")
    assert shared.in_transaction
    data = pa.table({"a": [1, 2], "b": ["a", None]})
    assert longshore.write_sql(data, "t", shared, if_exists="upsert", key="a") == 2
    with pytest.raises(longshore.IntegrityError) as refused:
        longshore.write_sql(pa.table({"a": [3, 2, 4]}), "t", shared, if_exists="append")
    assert refused.value.row == 1
    with pytest.raises(longshore.DataError) as caught:
        longshore.write_sql(pa.table({"a": [3, None]}), "t", shared, if_exists="append")
    assert (caught.value.column, caught.value.row) == ("a", 1)
    assert shared.execute("SELECT * FROM t").fetchall() == [(1, "a"), (2, None)]
    shared.rollback()
    assert shared.execute("SELECT * FROM t").fetchall() == []


def test_a_write_of_its_own_is_what_a_url_writes(shared: sqlite3.Connection, path: Path) -> None:
    data = pa.table(
        {
            "i": pa.array(range(3000), pa.uint16()),
            "n": pa.array([Decimal("1.50")] * 3000, pa.decimal128(9, 2)),
            "d": pa.array([dt.date(2024, 2, 29), None] * 1500),
            "b": pa.array([b"\0", None] * 1500),
        }
    )
    for conn in (shared, path):
        assert longshore.write_sql(data, "t", conn, key="i") == 3000
    for query in ("SELECT sql FROM sqlite_schema WHERE name = 't'", "SELECT * FROM t"):
        found, expected = (longshore.read_sql(query, conn, return_type="arrow") for conn in (shared, path))
        assert found.equals(expected)
    assert not shared.in_transaction
    with pytest.raises(longshore.ProgrammingError, match="there already"):
        longshore.write_sql(data, "t", shared)
    assert longshore.write_sql(data.slice(0, 1), "t", shared, if_exists="replace") == 1
    assert longshore.write_sql(data.slice(1, 1), "t", shared, if_exists="truncate") == 1
    assert shared.execute("SELECT i FROM t").fetchall() == [(1,)]


def test_a_query_ends_at_its_timeout(shared: sqlite3.Connection) -> None:
    endless = "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r"
    with pytest.raises(longshore.TimeoutError):
        longshore.read_sql(endless, shared, timeout=0.2)
    assert shared.execute("SELECT 1").fetchone() == (1,)


def test_streams_and_chunks(shared: sqlite3.Connection) -> None:
    query = "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 5000) SELECT i FROM r"
    with longshore.read_sql(query, shared, return_type="arrow_stream", batch_size=1000) as stream:
        batches = list(stream)
    assert [pa.record_batch(batch).num_rows for batch in batches] == [1000] * 5


def test_converters_of_the_connection_are_refused() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        connection = sqlite3.connect(":memory:", detect_types=sqlite3.PARSE_DECLTYPES)
        connection.execute("CREATE TABLE t (d DATE)")
        connection.execute("INSERT INTO t VALUES ('2024-01-01')")
        with pytest.raises(longshore.DataError, match="date") as caught:
            longshore.read_sql("SELECT d FROM t", connection)
    assert "detect_types" in (caught.value.hint or "")
    connection.close()
