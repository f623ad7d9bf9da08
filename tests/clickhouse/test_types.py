"""Types: what of a native type arrives, with NULLs, in arrays, and without rows."""

import datetime as dt
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

import longshore

NOON = dt.datetime(2020, 6, 1, 12, tzinfo=dt.UTC)
SECONDS = pa.timestamp("s", "UTC")
#: An expression, its Arrow type, and its value.
CASES: dict[str, tuple[pa.DataType, Any]] = {
    "toUInt64(18446744073709551615)": (pa.uint64(), 2**64 - 1),
    "toInt128('-99999999999999999999999999999999999999')": (pa.decimal128(38, 0), Decimal(1 - 10**38)),
    "toUInt128(7)": (pa.decimal128(38, 0), Decimal(7)),
    "toInt256('-" + "9" * 76 + "')": (pa.decimal256(76, 0), Decimal("-" + "9" * 76)),
    "toUInt256('" + "9" * 76 + "')": (pa.decimal256(76, 0), Decimal("9" * 76)),
    "toBFloat16(-1.5)": (pa.float32(), -1.5),
    "toDecimal32('-0.001', 3)": (pa.decimal128(9, 3), Decimal("-0.001")),
    "toDecimal256('1.5', 40)": (pa.decimal256(76, 40), Decimal("1.5" + "0" * 39)),
    "toDateTime('2020-06-01 12:00:00', 'UTC')": (SECONDS, NOON),
    "toDateTime('2020-06-01 14:00:00', 'Europe/Berlin')": (SECONDS, NOON),
    "toDateTime64('2020-06-01 14:00:00', 3, 'Europe/Berlin')": (pa.timestamp("ms", "UTC"), NOON),
    "toDateTime64('1900-01-01 00:00:00.000001', 6, 'UTC')": (
        pa.timestamp("us", "UTC"),
        dt.datetime(1900, 1, 1, microsecond=1, tzinfo=dt.UTC),
    ),
    "'23:59:59'::Time": (pa.time64("us"), dt.time(23, 59, 59)),
    "'23:59:59.001'::Time64(3)": (pa.time64("us"), dt.time(23, 59, 59, 1000)),
    "toDate32('1925-01-01')": (pa.date32(), dt.date(1925, 1, 1)),
    "'ö\\'\\\\='::Enum8('a' = 1, 'ö\\'\\\\=' = -128)": (pa.dictionary(pa.int32(), pa.string()), "ö'\\="),
    "'b'::Enum16('a' = 1, 'b' = 999)": (pa.dictionary(pa.int32(), pa.string()), "b"),
    "toIPv4('255.1.2.3')": (pa.string(), "255.1.2.3"),
    "toIPv6('2001:db8::1')": (pa.string(), "2001:db8::1"),
    "toFixedString('ab', 3)": (pa.binary(3), b"ab\0"),
    "INTERVAL 3 QUARTER": (pa.month_day_nano_interval(), pa.MonthDayNano([9, 0, 0])),
    "INTERVAL -2 WEEK": (pa.month_day_nano_interval(), pa.MonthDayNano([0, -14, 0])),
    "INTERVAL 5 HOUR": (pa.month_day_nano_interval(), pa.MonthDayNano([0, 0, 18_000_000_000_000])),
    "true": (pa.bool_(), True),
    "toInt8(-128)": (pa.int8(), -128),
    "toFloat32(0.5)": (pa.float32(), 0.5),
    "toDate('2149-06-06')": (pa.date32(), dt.date(2149, 6, 6)),
    "toUUID('12345678-1234-5678-1234-567812345678')": (
        getattr(pa, "uuid", lambda: pa.binary(16))(),
        UUID("12345678-1234-5678-1234-567812345678"),
    ),
    "1::Variant(String, UInt8)": (pa.string(), "1"),
    "'{\"a\": [1, null]}'::JSON": (getattr(pa, "json_", pa.string)(), '{"a":[1,null]}'),
}
WITHOUT_NULL = ("INTERVAL", "Variant", "JSON")


def read(query: str, place: str, **arguments: Any) -> pa.Table:
    return longshore.read_sql(query, place, return_type="arrow", **arguments)


@pytest.mark.parametrize("cell", CASES)
def test_a_value_and_where_it_can_be(place: str, cell: str) -> None:
    kind, value = CASES[cell]
    column = read(f"SELECT {cell} AS v", place)["v"]
    assert (column.type, column.to_pylist()) == (kind, [value])
    assert read(f"SELECT {cell} AS v WHERE 0", place).schema.field("v").type == kind
    if any(word in cell for word in WITHOUT_NULL):
        return
    nulls = f"SELECT arrayJoin([{cell}, NULL]) AS v"
    assert read(nulls, place)["v"].to_pylist() == [value, None]
    nested = read(f"SELECT [{cell}, NULL] AS l, map('k', {cell}) AS m, tuple({cell}) AS t", place)
    assert nested["l"].type == pa.list_(kind)
    assert nested.to_pylist() == [{"l": [value, None], "m": [("k", value)], "t": {"1": value}}]
    assert longshore.schema(nulls, place).field("v").type == kind


def test_the_native_type_is_told(place: str) -> None:
    schema = longshore.schema("SELECT toLowCardinality('a') AS a, [toDateTime(0)] AS b, 1::Nullable(Int8) AS c", place)
    assert [(field.metadata or {}).get(b"native_type") for field in schema] == [
        b"LowCardinality(String)",
        b"Array(DateTime)",
        b"Nullable(Int8)",
    ]
    assert [field.nullable for field in schema] == [False, False, True]


@pytest.mark.parametrize(
    ("cell", "hint"),
    [
        ("toInt128('170141183460469231731687303715884105727')", "VARCHAR"),
        ("toInt256('-57896044618658097711785492504343953926634992332820282019728792003956564819968')", "toString"),
        ("toUInt256('115792089237316195423570985008687907853269984665640564039457584007913129639935')", "toString"),
        ("unhex('ff')", "hex"),
    ],
)
def test_what_arrow_cannot_hold_is_told_with_its_row(place: str, cell: str, hint: str) -> None:
    query = f"SELECT if(number = 7, {cell}, {cell[: cell.index('(')]}('0')) AS v FROM numbers(9)"
    with pytest.raises(longshore.DataError) as caught:
        read(query, place)
    assert (caught.value.column, caught.value.row) == ("v", 7)
    assert hint in (caught.value.hint or "")
    # The remedies of the hints.
    remedy = "hex(v)" if hint == "hex" else "toString(v)"
    assert len(read(f"SELECT {remedy} AS v FROM ({query})", place)["v"][7].as_py()) > 1


@pytest.mark.parametrize("cell", ["sumState(toUInt64(7))", "[sumState(toUInt64(7))]"])
def test_the_state_of_an_aggregate_is_refused(place: str, cell: str) -> None:
    # The server's Arrow has its address in memory.
    for ask in (read, longshore.schema):
        with pytest.raises(longshore.NotSupportedError, match="no states of aggregates") as caught:
            ask(f"SELECT 1 AS n, {cell} AS v", place)
        assert (caught.value.column, "finalizeAggregation" in (caught.value.hint or "")) == ("v", True)
    # The remedies of the hint, and types that are called alike.
    found = read("SELECT finalizeAggregation(v) AS f, hex(v) AS h FROM (SELECT sumState(toUInt64(7)) AS v)", place)
    assert found.to_pylist() == [{"f": 7, "h": "0700000000000000"}]
    found = read("SELECT sumSimpleState(7) AS s, 'AggregateFunction('::Enum8('AggregateFunction(' = 1) AS e", place)
    assert found.to_pylist() == [{"s": 7, "e": "AggregateFunction("}]


def test_strings_as_bytes_by_a_setting(place: str) -> None:
    found = read("SELECT unhex('00ff') AS v", f"{place}?output_format_arrow_string_as_string=0")
    assert found["v"].to_pylist() == [b"\x00\xff"]


def test_nan_is_no_null(place: str) -> None:
    found = read("SELECT arrayJoin([nan, inf, -inf, NULL]) AS v", place)["v"].to_pylist()
    assert [str(value) for value in found] == ["nan", "inf", "-inf", "None"]
