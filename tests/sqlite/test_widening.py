"""The types of columns whose values do not fit what they are declared as, next to the cases of tests/conformance."""

import contextlib
import sqlite3
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.sqlite.conftest import Make


def read(url: str, query: str = "SELECT v FROM t", **arguments: Any) -> pa.Table:
    return longshore.read_sql(query, url, return_type="arrow", **arguments)


def stored(make: Make, declared: str, *values: str) -> str:
    rows = [f"INSERT INTO t VALUES ({value})" for value in values]
    return make(f"CREATE TABLE t (v {declared})", *rows)


@pytest.mark.parametrize(
    ("declared", "cells", "row", "says"),
    [
        ("TEXT", ["'a'", "NULL", "x'00'"], 2, "BLOB"),
        ("TEXT", ["x'00'", "'a'"], 1, "TEXT"),
        ("BLOB", ["1", "x'61'"], 1, "BLOB"),
        ("TEXT", ["'a'", "CAST(x'ff' AS TEXT)"], 1, "UTF-8"),
        ("TEXT", ["x'00'", "CAST(x'ff' AS TEXT)"], 1, "TEXT"),
    ],
)
def test_what_no_type_holds_is_an_error(declared: str, cells: list[str], row: int, says: str, make: Make) -> None:
    url = stored(make, declared, *cells)
    with pytest.raises(longshore.DataError, match=says) as caught:
        read(url)
    assert (caught.value.column, caught.value.row) == ("v", row)
    assert 'schema={"v": "binary"}' in (caught.value.hint or "")
    wanted = "string" if "1" in cells else "binary"
    assert read(url, schema={"v": wanted}).num_rows == len(cells)


def test_an_undeclared_column_of_a_stream_is_what_its_first_batch_is(make: Make) -> None:
    url = stored(make, "", "1", "2", "2.5")
    stream = longshore.read_sql("SELECT v FROM t", url, return_type="arrow_stream", batch_size=2)
    assert pa.schema(stream).field("v").type == pa.int64()
    with pytest.raises(longshore.DataError, match=r"2\.5"):
        list(stream)


def test_text_that_is_none_is_no_string(make: Make) -> None:
    with pytest.raises(longshore.DataError, match="UTF-8") as caught:
        read(stored(make, "TEXT", "NULL", "CAST(x'ff' AS TEXT)"), schema={"v": "string"})
    assert (caught.value.column, caught.value.row) == ("v", 1)


def test_strict_tables_and_rowids_keep_their_type(make: Make) -> None:
    url = make(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a INT NOT NULL, b TEXT) STRICT", "INSERT INTO t VALUES (1, 2, 'x')"
    )
    schema = read(url, "SELECT * FROM t").schema
    assert schema.types == [pa.int64(), pa.int64(), pa.string()]
    assert [field.nullable for field in schema] == [True, False, True]


def test_not_null_is_promised_for_one_table_only(make: Make) -> None:
    url = make("CREATE TABLE t (a INT NOT NULL)", "CREATE TABLE u (a INT NOT NULL)", "INSERT INTO t VALUES (1)")
    assert not read(url, "SELECT a FROM t").schema.field("a").nullable
    for query in ("SELECT u.a FROM t LEFT JOIN u ON u.a = t.a", "SELECT a, max(a) FROM u", "SELECT max(a) AS a FROM u"):
        table = read(url, query)
        assert table.schema.field("a").nullable
        assert table["a"].to_pylist() == [None]


def test_names_may_be_twice(make: Make) -> None:
    table = read(make("CREATE TABLE t (a INT)"), "SELECT 1 AS a, 2 AS a")
    assert table.column_names == ["a", "a"]
    assert [column.to_pylist() for column in table.columns] == [[1], [2]]


def test_rows_keep_the_class_of_each_value(make: Make) -> None:
    values = [1, "x", None, 2.5, b"\x00\xff", 9_007_199_254_740_993, "", b"", "1"]
    insert = "INSERT INTO t VALUES ({0}, {0}, {0}, {0}, {0}, {0})"
    literals = ["1", "'x'", "NULL", "2.5", "x'00ff'", "9007199254740993", "''", "x''", "'1'"]
    columns = "a, b integer, c real, d text, e decimal(4, 2), f date"
    url = make(f"CREATE TABLE t ({columns})", *map(insert.format, literals))
    with longshore.connect(url) as connection, connection.cursor() as cursor:
        rows = cursor.execute("SELECT * FROM t").fetchall()
        with pytest.raises(longshore.DataError, match="no type holds both"):
            cursor.execute("SELECT a FROM t").fetch_arrow_table()
    with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as peer:
        wanted = peer.execute("SELECT * FROM t").fetchall()
    assert [row[0] for row in wanted] == values
    assert rows == wanted
    assert [list(map(type, row)) for row in rows] == [list(map(type, row)) for row in wanted]


def test_columns_as_they_are_stored(make: Make) -> None:
    columns = "a integer, b real, c boolean, d datetime, e numeric"
    url = make(
        f"CREATE TABLE t ({columns})",
        "INSERT INTO t VALUES (1, 2.5, 1, '2020-01-01 10:00', 1)",
        "INSERT INTO t VALUES (2, 1e300, 0, 86400, 2.5)",
    )
    query, options = "SELECT * FROM t", {"sqlite_types": "stored"}
    with longshore.connect(url) as connection, connection.cursor(options=options) as cursor:
        rows = cursor.execute(query).fetchall()
    with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as peer:
        wanted = peer.execute(query).fetchall()
    assert rows == wanted
    assert [list(map(type, row)) for row in rows] == [list(map(type, row)) for row in wanted]
    found = read(url, query, options=options)
    assert found["c"].to_pylist() == [1, 0]
    assert found["d"].to_pylist() == ["2020-01-01 10:00", "86400"]
    assert read(url, query, options=options, schema={"c": "bool"})["c"].to_pylist() == [True, False]
