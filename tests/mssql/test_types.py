"""Every type of SQL Server as the test server sends it, with NULLs and without rows."""

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.conformance.mssql_cases import CASES
from tests.conformance.mssql_cases.case import MSSQLCase
from tests.conformance.mssql_cases.text import COLLATIONS
from tests.mssql.reading import answer, naive, read, rows, url
from tests.quirks import JSON, UUID
from tests.servers import MSSQL
from tests.tds.types import (
    DATE,
    MAX,
    SQL_VARIANT,
    UNIQUEIDENTIFIER,
    datetime2,
    datetimeoffset,
    nvarchar,
    simple,
    varchar,
    vector,
)

_PLAIN = {
    "bit": pa.bool_(),
    "tinyint": pa.uint8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "float": pa.float64(),
    "money": pa.decimal128(19, 4),
    "smallmoney": pa.decimal128(10, 4),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "smalldatetime": pa.timestamp("us"),
    "uniqueidentifier": UUID,
    "json": JSON,
    "image": pa.binary(),
    "rowversion": pa.binary(),
    "hierarchyid": pa.binary(),
    "geometry": pa.binary(),
    "geography": pa.binary(),
}
_WITH_NUMBERS: dict[str, Callable[[list[int]], pa.DataType]] = {
    "varbinary": lambda _: pa.binary(),
    "binary": lambda _: pa.binary(),
    "decimal": lambda numbers: pa.decimal128(*numbers),
    "numeric": lambda numbers: pa.decimal128(*numbers),
    "time": lambda numbers: pa.time64("ns" if numbers[0] > 6 else "us"),
    "datetime2": lambda numbers: pa.timestamp("ns" if numbers[0] > 6 else "us"),
    "datetimeoffset": lambda numbers: pa.timestamp("ns" if numbers[0] > 6 else "us", "UTC"),
    "vector": lambda numbers: pa.list_(pa.field("item", pa.float32(), nullable=False), numbers[0]),
}


def arrow_type(name: str) -> pa.DataType:
    """Return what a type becomes."""
    head, _, numbers = name.rstrip(")").partition("(")
    if head in _WITH_NUMBERS:
        return _WITH_NUMBERS[head]([int(number) for number in numbers.split(",") if number != "max"])
    return _PLAIN.get(name, pa.string())


def ticks(text: str) -> int:
    """Return a date and time, with its offset or without, in units of 100 ns since 1970."""
    day, clock, *offset = text.split(" ")
    hours, minutes, seconds = clock.split(":")
    whole, _, fraction = seconds.partition(".")
    days = dt.date.fromisoformat(day).toordinal() - dt.date(1970, 1, 1).toordinal()
    at = ((days * 24 + int(hours)) * 60 + int(minutes)) * 60 + int(whole)
    for one in offset:
        sign = -1 if one[0] == "-" else 1
        at -= sign * (int(one[1:3]) * 60 + int(one[4:])) * 60
    return at * 10**7 + int(fraction.ljust(7, "0"))


def counted(text: str, kind: pa.DataType) -> int:
    """Return what a date or a time is in the units of its Arrow type."""
    if pa.types.is_date32(kind):
        return dt.date.fromisoformat(text).toordinal() - dt.date(1970, 1, 1).toordinal()
    at = ticks(text if pa.types.is_timestamp(kind) else f"1970-01-01 {text}")
    return at * 100 if kind.unit == "ns" else at // 10


def is_within(value: Any, kind: pa.DataType) -> bool:
    """Whether 64 bits hold a value."""
    is_nanoseconds = pa.types.is_timestamp(kind) and kind.unit == "ns"
    return not is_nanoseconds or abs(counted(value, kind)) < 2**63


def expected(value: Any, kind: pa.DataType) -> Any:
    """Return what arrives of a value."""
    if pa.types.is_temporal(kind):
        return counted(value, kind)
    return str(value) if isinstance(value, Decimal) and pa.types.is_string(kind) else value


def shown(column: pa.ChunkedArray) -> list[Any]:
    """Return what has arrived."""
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    values: list[Any] = column.to_pylist()
    return values


@pytest.mark.parametrize("case", [case for case in CASES if case.type != SQL_VARIANT], ids=lambda case: case.name)
@pytest.mark.parametrize("compressed", [False, True], ids=["rows", "bitmaps"])
def test_a_type_is_exact(mssql: MSSQL, case: MSSQLCase, *, compressed: bool) -> None:
    if compressed and not case.nullable:
        compressed = False
    kind = arrow_type(case.type.name)
    values = [value for value in case.values if is_within(value, kind)]
    sent = [*values, None, *values] if case.nullable else values
    answer(mssql, rows(case.type, *sent, compressed=compressed))
    table = read(mssql)
    field = table.schema.field("v")
    assert field.type == kind
    assert field.metadata[b"native_type"].decode() == case.type.name
    assert shown(table["v"]) == [None if value is None else expected(value, kind) for value in sent]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_empty_result_has_the_same_types(mssql: MSSQL, case: MSSQLCase) -> None:
    answer(mssql, rows(case.type))
    table = read(mssql)
    assert (table.num_rows, table.schema.field("v").type) == (0, arrow_type(case.type.name))


_TEXTS = [case for case in CASES if pa.types.is_temporal(arrow_type(case.type.name))]


@pytest.mark.parametrize("case", _TEXTS, ids=lambda case: case.name)
def test_dates_and_times_are_texts_where_that_is_asked_for(mssql: MSSQL, case: MSSQLCase) -> None:
    answer(mssql, rows(case.type, *case.values))
    assert read(mssql, schema={"v": "string"})["v"].to_pylist() == list(case.values)


_VARIANTS: dict[str, str] = {"True": "1", "False": "0"}


def variant_text(value: Any) -> str:
    """Return a value of a `sql_variant` as the server casts it."""
    if isinstance(value, bytes):
        return f"0x{value.hex().upper()}"
    return _VARIANTS.get(str(value), str(value))


def test_a_variant_is_text(mssql: MSSQL) -> None:
    values = next(case for case in CASES if case.type == SQL_VARIANT).values
    answer(mssql, rows(SQL_VARIANT, *values, None))
    found = read(mssql)["v"].to_pylist()
    assert found == [*(variant_text(value) for _, value in values), None]


@pytest.mark.parametrize("kind", [datetime2(7), datetimeoffset(7)], ids=lambda kind: kind.name)
def test_years_beyond_nanoseconds_are_an_error_that_says_what_to_do(mssql: MSSQL, kind: Any) -> None:
    zone = " +00:00" if kind.name.startswith("datetimeoffset") else ""
    first, last = f"0001-01-01 00:00:00.0000000{zone}", f"9999-12-31 23:59:59.9999990{zone}"
    answer(mssql, rows(kind, f"2000-01-01 00:00:00.0000001{zone}", last))
    with pytest.raises(longshore.DataError, match=r'column "v", row 1 .*9999-12-31 23:59:59.9999990') as caught:
        read(mssql)
    assert 'schema={"v": "timestamp[us]"}' in str(caught.value)
    assert read(mssql, options={"infinity": "null"})["v"].null_count == 1
    asked = {"v": "timestamp[us, tz=UTC]" if zone else "timestamp[us]"}
    with pytest.raises(longshore.DataError, match=r"row 0 .*2000-01-01 00:00:00.0000001"):
        read(mssql, schema=asked)
    answer(mssql, rows(kind, first, last))
    column = read(mssql, schema=asked)["v"]
    assert column.cast(pa.int64()).to_pylist() == [ticks(first) // 10, ticks(last) // 10]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (nvarchar(10), b"\x3c\xd8"),
        (nvarchar(10), b"a\0\x00\xdc"),
        (nvarchar(MAX), b"a\0\x3c\xd8b\0"),
        (varchar(10, "cp932", COLLATIONS["Japanese_CI_AS"][0]), b"\x93"),
        (varchar(10, "utf-8", COLLATIONS["Latin1_General_100_CI_AS_SC_UTF8"][0]), b"\xff"),
        (varchar(MAX, "utf-8", COLLATIONS["Latin1_General_100_CI_AS_SC_UTF8"][0]), b"a\xc3"),
    ],
)
def test_damaged_texts_are_errors_of_their_row(mssql: MSSQL, kind: Any, value: bytes) -> None:
    answer(mssql, rows(kind, b"", value))
    with pytest.raises(longshore.DataError, match='column "v", row 1'):
        read(mssql)


def test_a_code_page_that_is_not_known_is_an_error(mssql: MSSQL) -> None:
    answer(mssql, rows(varchar(10, "ascii", bytes.fromhex("3904D00000")), "a"))
    with pytest.raises(longshore.NotSupportedError, match=r"0x0439.*\n.*nvarchar"):
        read(mssql)


@pytest.mark.parametrize(
    ("kind", "value", "asked", "found"),
    [
        (simple("int"), 7, "int64", 7),
        (simple("int"), 7, "decimal128(5, 2)", Decimal("7.00")),
        (simple("bit"), True, "int8", 1),
        (simple("money"), Decimal("1.5000"), "float64", 1.5),
        (simple("money"), Decimal("2.0000"), "int8", 2),
        (simple("datetime"), "2024-02-29 12:34:56.007", "timestamp[ms]", naive(2024, 2, 29, 12, 34, 56, 7000)),
        (simple("datetime"), "2024-02-29 00:00:00.000", "date32", dt.date(2024, 2, 29)),
        (DATE, "2024-02-29", "timestamp[s]", naive(2024, 2, 29)),
        (nvarchar(30), "2024-02-29 12:00", "timestamp[us]", naive(2024, 2, 29, 12)),
        (nvarchar(30), "12.5", "decimal128(5, 1)", Decimal("12.5")),
        (UNIQUEIDENTIFIER, uuid.UUID(int=7), "string", str(uuid.UUID(int=7))),
        (vector(2), [1.5, -2.0], "string", "[1.5,-2]"),
        (SQL_VARIANT, (simple("int"), 7), "int32", 7),
    ],
)
def test_schema_asks_for_another_type(mssql: MSSQL, kind: Any, value: Any, asked: str, found: Any) -> None:
    answer(mssql, rows(kind, value, None))
    column = read(mssql, schema={"v": asked})["v"]
    assert column.to_pylist() == [found, None]


@pytest.mark.parametrize(
    ("kind", "value", "asked"),
    [
        (simple("bigint"), 2**40, "int32"),
        (simple("money"), Decimal("1.5000"), "int32"),
        (simple("datetime"), "2024-02-29 12:00:00.000", "date32"),
        (simple("datetime"), "2024-02-29 12:00:00.007", "timestamp[s]"),
        (nvarchar(10), "x", "int32"),
        (nvarchar(30), "2024-02-30", "date32"),
    ],
)
def test_what_does_not_fit_is_an_error_of_its_row(mssql: MSSQL, kind: Any, value: Any, asked: str) -> None:
    answer(mssql, rows(kind, None, value))
    with pytest.raises(longshore.DataError, match='column "v", row 1'):
        read(mssql, schema={"v": asked})


def test_pandas_has_the_frames_own_types(mssql: MSSQL) -> None:
    answer(mssql, rows(simple("money"), Decimal("922337203685477.5807"), Decimal("0.1000")))
    with pytest.warns(longshore.DataWarning):
        frame = longshore.read_sql("SELECT v FROM boats", url(mssql))
    assert frame["v"].tolist() == [922337203685477.5807, 0.1]
