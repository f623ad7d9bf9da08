"""What columns become whose values do not fit what they are declared as."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.sqlite.conftest import Make

US = pa.timestamp("us")
UTC = pa.timestamp("us", tz="UTC")
BIG = 2**53 + 1


def naive(*parts: int) -> dt.datetime:
    return dt.datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001  naive is what is stored


def read(url: str, query: str = "SELECT v FROM t", **arguments: Any) -> pa.Table:
    return longshore.read_sql(query, url, return_type="arrow", **arguments)


def stored(make: Make, declared: str, *values: str) -> str:
    rows = [f"INSERT INTO t VALUES ({value})" for value in values]
    return make(f"CREATE TABLE t (v {declared})", *rows)


WIDENED = [
    ("INT", ["1", "2"], pa.int64(), [1, 2]),
    ("INT", ["1", "2.5"], pa.float64(), [1.0, 2.5]),
    ("INT", ["1", "2.5", "'x'"], pa.string(), ["1", "2.5", "x"]),
    ("INT", [str(BIG), "0.5"], pa.string(), [str(BIG), "0.5"]),
    ("INT", ["9223372036854775807", "-9223372036854775808"], pa.int64(), [2**63 - 1, -(2**63)]),
    ("INT", ["'1e'"], pa.string(), ["1e"]),
    ("BOOLEAN", ["1", "0", "NULL"], pa.bool_(), [True, False, None]),
    ("BOOLEAN", ["1", "2"], pa.int64(), [1, 2]),
    ("BOOLEAN", ["1", "'true'"], pa.string(), ["1", "true"]),
    ("UNSIGNED INT", ["0", "9223372036854775807"], pa.uint64(), [0, 2**63 - 1]),
    ("UNSIGNED INT", ["-1"], pa.int64(), [-1]),
    ("REAL", ["1", "2.5", "9e999", "-9e999"], pa.float64(), [1.0, 2.5, float("inf"), float("-inf")]),
    ("REAL", ["1.5", "'n/a'"], pa.string(), ["1.5", "n/a"]),
    ("REAL", ["1e20", "'x'"], pa.string(), ["1.0e+20", "x"]),
    ("DECIMAL(10,2)", ["1", "2.25"], pa.float64(), [1.0, 2.25]),
    ("DECIMAL(10,2)", ["1", "2"], pa.float64(), [1.0, 2.0]),
    ("DECIMAL(10,2)", ["1", "2.5", "'x'"], pa.string(), ["1", "2.5", "x"]),
    ("DECIMAL(18,2)", [str(BIG)], pa.int64(), [BIG]),
    ("DECIMAL(18,2)", [str(BIG), "0.5"], pa.string(), [str(BIG), "0.5"]),
    ("NUMERIC", ["1", "2"], pa.int64(), [1, 2]),
    ("NUMERIC", ["1", "2.5"], pa.float64(), [1.0, 2.5]),
    ("NUMERIC(10)", ["1"], pa.int64(), [1]),
    ("NUMERIC(10,0)", ["1.5"], pa.float64(), [1.5]),
    ("TEXT", ["'a'", "''"], pa.string(), ["a", ""]),
    ("TEXT", ["x'00ff'"], pa.binary(), [b"\0\xff"]),
    ("TEXT", ["'a' || char(0) || 'b'"], pa.string(), ["a\0b"]),
    ("BLOB", ["x''", "x'01'"], pa.binary(), [b"", b"\1"]),
    ("BLOB", ["'a'"], pa.string(), ["a"]),
    ("BLOB", ["1"], pa.int64(), [1]),
    ("DATE", ["'2024-02-29'"], pa.date32(), [dt.date(2024, 2, 29)]),
    ("DATE", ["'2024-02-29'", "'2024-03-01 12:00'"], US, [naive(2024, 2, 29), naive(2024, 3, 1, 12)]),
    ("DATE", ["'2024-02-30'"], pa.string(), ["2024-02-30"]),
    ("DATE", ["'2024-02-29'", "'soon'"], pa.string(), ["2024-02-29", "soon"]),
    ("DATE", ["86400", "2440588.5"], pa.date32(), [dt.date(1970, 1, 2), dt.date(1970, 1, 2)]),
    ("DATE", ["86401"], US, [naive(1970, 1, 2, 0, 0, 1)]),
    ("TIMESTAMP", ["'2024-01-01T10:00'"], US, [naive(2024, 1, 1, 10)]),
    ("TIMESTAMP", ["'2024-01-01 10:00:00.123456000'"], US, [naive(2024, 1, 1, 10, 0, 0, 123456)]),
    ("TIMESTAMP", ["'2024-01-01 10:00:00.1234567'"], pa.string(), ["2024-01-01 10:00:00.1234567"]),
    ("TIMESTAMP", ["'2024-01-01 10:00:00'", "'no'"], pa.string(), ["2024-01-01 10:00:00", "no"]),
    ("TIMESTAMP", ["'2024-01-01 10:00:00.5'", "'no'"], pa.string(), ["2024-01-01 10:00:00.5", "no"]),
    ("TIMESTAMP", ["'2024-01-01 10:00:00Z'"], UTC, [dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)]),
    ("TIMESTAMP", ["'2024-01-01 10:00:00Z'", "'2024-01-01'"], pa.string(), ["2024-01-01 10:00:00Z", "2024-01-01"]),
    ("TIMESTAMP", ["0", "2440587.5"], US, [naive(1970, 1, 1)] * 2),
    ("TIMESTAMP", ["1700000000000"], pa.string(), ["1700000000000"]),
    ("TIMESTAMPTZ", ["'2024-01-01 10:00'"], UTC, [dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)]),
    ("TIME", ["'10:00'", "'23:59:59.5'"], pa.time64("us"), [dt.time(10), dt.time(23, 59, 59, 500000)]),
    ("TIME", ["'24:00'"], pa.string(), ["24:00"]),
    ("UUID", ["'x'"], pa.string(), ["x"]),
    ("", ["1", "2.5"], pa.float64(), [1.0, 2.5]),
    ("", ["x'01'"], pa.binary(), [b"\1"]),
    ("", ["1", "'x'"], pa.string(), ["1", "x"]),
]


@pytest.mark.parametrize(("declared", "cells", "arrow", "values"), WIDENED)
@pytest.mark.parametrize("nulls", [0, 300])
def test_a_column_widens(  # noqa: PLR0917  pytest gives them by name
    declared: str, cells: list[str], arrow: pa.DataType, values: list[object], nulls: int, make: Make
) -> None:
    url = stored(make, declared, *["NULL"] * nulls, *cells, "NULL")
    for batch_size in (1, 100, None):
        column = read(url, batch_size=batch_size)["v"]
        assert column.type == arrow
        assert column.to_pylist() == [*[None] * nulls, *values, None]


EMPTY = [
    ("INTEGER", pa.int64()),
    ("BOOL", pa.bool_()),
    ("BIGINT UNSIGNED", pa.uint64()),
    ("DOUBLE", pa.float64()),
    ("DECIMAL(10,2)", pa.float64()),
    ("DECIMAL(10)", pa.int64()),
    ("NUMERIC", pa.float64()),
    ("VARCHAR(9)", pa.string()),
    ("BLOB", pa.binary()),
    ("DATE", pa.date32()),
    ("DATETIME", US),
    ("TIMESTAMPTZ", UTC),
    ("TIME", pa.time64("us")),
    ("", pa.string()),
]


@pytest.mark.parametrize(("declared", "arrow"), EMPTY)
@pytest.mark.parametrize("cells", [[], ["NULL", "NULL"]])
def test_without_values_the_declaration_tells(declared: str, arrow: pa.DataType, cells: list[str], make: Make) -> None:
    url = stored(make, declared, *cells)
    assert read(url)["v"].type == arrow
    stream = longshore.read_sql("SELECT v FROM t", url, return_type="arrow_stream")
    assert pa.schema(stream).field("v").type == arrow


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


@pytest.mark.parametrize(
    ("declared", "cells"),
    [("INT", ["1", "2.5"]), ("INT", ["'12a'"]), ("DATE", ["'2024-01-01 10:00'"]), ("TIMESTAMP", ["'1970-01-01Z'"])],
)
def test_a_stream_keeps_to_the_declaration(declared: str, cells: list[str], make: Make) -> None:
    url = stored(make, declared, "NULL", *cells)
    with pytest.raises(longshore.DataError, match=r'schema=\{"v"') as caught:
        list(longshore.read_sql("SELECT v FROM t", url, return_type="arrow_stream"))
    assert (caught.value.column, caught.value.row) == ("v", len(cells))


def test_an_undeclared_column_of_a_stream_is_what_its_first_batch_is(make: Make) -> None:
    url = stored(make, "", "1", "2", "2.5")
    stream = longshore.read_sql("SELECT v FROM t", url, return_type="arrow_stream", batch_size=2)
    assert pa.schema(stream).field("v").type == pa.int64()
    with pytest.raises(longshore.DataError, match=r"2\.5"):
        list(stream)


WANTED = [
    ("REAL", "0.1", "decimal128(10, 3)", Decimal("0.100")),
    ("TEXT", "'12.50'", "decimal128(10, 2)", Decimal("12.50")),
    ("INT", "7", "decimal256(40, 1)", Decimal("7.0")),
    ("INT", "7", "string", "7"),
    ("REAL", "0.1", "string", "0.1"),
    ("BLOB", "x'61'", "string", "a"),
    ("TEXT", "'a'", "binary", b"a"),
    ("TEXT", "'200'", "uint8", 200),
    ("REAL", "3.0", "int8", 3),
    ("REAL", "0.5", "float32", 0.5),
    ("INT", "1", "bool", True),
    ("TEXT", "'false'", "bool", False),
    ("INT", "86400", "date32", dt.date(1970, 1, 2)),
    ("TEXT", "'1970-01-01 00:00'", "timestamp[s]", naive(1970, 1, 1)),
    ("TEXT", "'1970-01-01 01:00+01:00'", "timestamp[us, tz=UTC]", dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
    ("TEXT", "'10:00'", "time64[us]", dt.time(10)),
]


@pytest.mark.parametrize(("declared", "cell", "wanted", "value"), WANTED)
def test_schema_asks_for_another_type(declared: str, cell: str, wanted: str, value: object, make: Make) -> None:
    url = stored(make, declared, "NULL", cell)
    assert read(url, schema={"v": wanted})["v"].to_pylist() == [None, value]


@pytest.mark.parametrize(
    ("declared", "cell", "wanted"),
    [
        ("REAL", "0.1", "decimal128(10, 0)"),
        ("REAL", "0.1", "float32"),
        ("REAL", "0.5", "int64"),
        ("INT", "300", "int8"),
        ("INT", "-1", "uint64"),
        ("INT", str(BIG), "float64"),
        ("INT", "2", "bool"),
        ("INT", "1", "binary"),
        ("BLOB", "x'ff'", "string"),
        ("TEXT", "'x'", "int64"),
        ("TEXT", "'1970-01-01 00:00Z'", "timestamp[us]"),
        ("TEXT", "'1970-01-01 00:01'", "date32"),
    ],
)
def test_what_the_wanted_type_does_not_hold_is_an_error(declared: str, cell: str, wanted: str, make: Make) -> None:
    url = stored(make, declared, "NULL", cell)
    with pytest.raises(longshore.DataError) as caught:
        read(url, schema={"v": wanted})
    assert (caught.value.column, caught.value.row) == ("v", 1)
    assert caught.value.hint


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
