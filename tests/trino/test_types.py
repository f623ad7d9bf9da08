"""Types: what of a native type arrives, with NULLs, in arrays, rows and maps, and without rows."""

import datetime as dt
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

import longshore
from tests.servers import Trino

LAST = dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001  naive
NOON = dt.datetime(2020, 6, 1, 12, tzinfo=dt.UTC)
MICROS = pa.timestamp("us")
#: An expression, its Arrow type, and its value.
CASES: dict[str, tuple[pa.DataType, Any]] = {
    "tinyint '-128'": (pa.int8(), -128),
    "bigint '-9223372036854775808'": (pa.int64(), -(2**63)),
    "real '0.1'": (pa.float32(), pa.scalar(0.1, pa.float32()).as_py()),
    "real '1.17549435E-38'": (pa.float32(), pa.scalar(1.17549435e-38, pa.float32()).as_py()),
    "double '5e-324'": (pa.float64(), 5e-324),
    "double '1.7976931348623157e308'": (pa.float64(), 1.7976931348623157e308),
    "-infinity()": (pa.float64(), float("-inf")),
    "decimal '-99999999999999999999999999999999999999'": (pa.decimal128(38, 0), Decimal(1 - 10**38)),
    "decimal '0.00000000000000000000000000000000000001'": (pa.decimal128(38, 38), Decimal("1e-38")),
    "'a\"\\\n\u2028€𝄞'": (pa.string(), 'a"\\\n\u2028€𝄞'),
    "CAST('a' AS char(3))": (pa.string(), "a  "),
    "X'00ff'": (pa.binary(), b"\x00\xff"),
    "json '{\"a\":[1,null]}'": (getattr(pa, "json_", pa.string)(), '{"a":[1,null]}'),
    "date '0001-01-01'": (pa.date32(), dt.date(1, 1, 1)),
    "time '23:59:59.999999'": (pa.time64("us"), dt.time(23, 59, 59, 999_999)),
    "time '12:00:00 +02:00'": (pa.string(), "12:00:00+02:00"),
    "timestamp '2020-06-01 12:00:00'": (MICROS, NOON.replace(tzinfo=None)),
    "timestamp '9999-12-31 23:59:59.999999'": (MICROS, LAST),
    "timestamp '2020-06-01 12:00:00.123 UTC'": (pa.timestamp("us", "UTC"), NOON.replace(microsecond=123_000)),
    "timestamp '2020-06-01 14:00:00 +02:00'": (pa.timestamp("us", "UTC"), NOON),
    "timestamp '2020-06-01 14:00:00 Europe/Berlin' AT TIME ZONE 'UTC'": (pa.timestamp("us", "UTC"), NOON),
    "interval '-1 02:03:04.005' day to second": (
        pa.month_day_nano_interval(),
        pa.MonthDayNano([0, -1, -7_384_005_000_000]),
    ),
    "interval '1-2' year to month": (pa.month_day_nano_interval(), pa.MonthDayNano([14, 0, 0])),
    "uuid '12345678-1234-5678-1234-567812345678'": (
        getattr(pa, "uuid", lambda: pa.binary(16))(),
        UUID("12345678-1234-5678-1234-567812345678"),
    ),
    "ipaddress '2001:db8::1'": (pa.string(), "2001:db8::1"),
    "map(ARRAY[2, 1], ARRAY['a', NULL])": (pa.map_(pa.int32(), pa.string()), [(2, "a"), (1, None)]),
    'CAST(ROW(1, NULL) AS ROW("a b" integer, c array(date)))': (
        pa.struct({"a b": pa.int32(), "c": pa.list_(pa.date32())}),
        {"a b": 1, "c": None},
    ),
}


def read(query: str, trino: Trino, **arguments: Any) -> pa.Table:
    return longshore.read_sql(query, trino.url(), return_type="arrow", **arguments)


@pytest.mark.parametrize("cell", CASES)
def test_a_value_and_where_it_can_be(trino: Trino, cell: str) -> None:
    kind, value = CASES[cell]
    nested = read(f"SELECT {cell} AS v, ARRAY[{cell}, NULL] AS l, map(ARRAY['k'], ARRAY[{cell}]) AS m", trino)
    assert nested["v"].type == kind
    assert nested["l"].type == pa.list_(kind)
    assert nested.to_pylist() == [{"v": value, "l": [value, None], "m": [("k", value)]}]
    empty = read(f"SELECT v FROM (SELECT {cell} AS v) WHERE random() < -1", trino)
    assert (empty.num_rows, empty["v"].type) == (0, kind)


def test_nanoseconds(trino: Trino) -> None:
    query = (
        "SELECT timestamp '1677-09-21 00:12:43.145224192' AS a, timestamp '2262-04-11 23:47:16.854775806' AS b, "
        "time '00:00:00.000000001' AS c, timestamp '1970-01-01 00:00:00.123456789 UTC' AS d"
    )
    found = read(query, trino)
    assert [str(kind) for kind in found.schema.types] == [
        "timestamp[ns]",
        "timestamp[ns]",
        "time64[ns]",
        "timestamp[ns, tz=UTC]",
    ]
    counts = [found.column(at).cast(pa.int64())[0].as_py() for at in range(4)]
    assert counts == [-(2**63), 2**63 - 2, 1, 123_456_789]


@pytest.mark.parametrize(
    ("cell", "text", "hint"),
    [
        ("timestamp '2020-01-01 00:00:00.000000000001'", "picoseconds", "timestamp(9)"),
        ("time '00:00:00.000000000001'", "picoseconds", "time(9)"),
        ("timestamp '2020-01-01 00:00:00.0000000001 UTC'", "picoseconds", "timestamp(9) with time zone"),
    ],
)
def test_picoseconds_are_refused(trino: Trino, cell: str, text: str, hint: str) -> None:
    with pytest.raises(longshore.NotSupportedError, match=text) as caught:
        read(f"SELECT 1 AS n, {cell} AS v", trino)
    assert caught.value.column == "v"
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("cell", "hint"),
    [
        ("date '-0001-01-01'", "varchar"),
        ("date '12020-01-01'", "varchar"),
        ("timestamp '2262-04-11 23:47:16.854775808'", "varchar"),
        ("timestamp '2020-10-25 02:30:00 Europe/Berlin'", "AT TIME ZONE"),
    ],
)
def test_what_arrow_cannot_hold_is_told_with_its_row(trino: Trino, cell: str, hint: str) -> None:
    rows = ", ".join(f"({n}, {cell if n == 7 else 'NULL'})" for n in range(9))
    with pytest.raises(longshore.DataError) as caught:
        read(f"SELECT v FROM (VALUES {rows}) AS t (n, v) ORDER BY n", trino)
    assert (caught.value.column, caught.value.row) == ("v", 7)
    assert hint in (caught.value.hint or "")


def test_the_native_type_is_told(trino: Trino) -> None:
    schema = longshore.schema("SELECT * FROM tpch.tiny.orders", trino.url())
    assert (schema.field("totalprice").metadata or {})[b"native_type"] == b"double"
    assert (schema.field("orderstatus").metadata or {})[b"native_type"] == b"varchar(1)"
