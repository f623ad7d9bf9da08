"""One row a type of the engine's: how each frame holds it. Read by the tests of the way out."""

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa

from longshore import Interval

UTC = dt.UTC


@dataclass(frozen=True)
class Case:
    """A type of DuckDB's, two expressions of it, their values, and the dtypes of its columns."""

    sql: str
    expressions: tuple[str, str]
    held: tuple[Any, Any]
    pandas: str
    """``text`` stands for the dtype of strings."""
    arrow: str
    numpy: str
    polars: str
    """Empty where polars refuses the type, or has it otherwise from version to version."""
    in_pandas: tuple[Any, Any] | None = None
    """The values in pandas' own dtypes, where they differ."""
    in_arrow: tuple[Any, Any] | None = None
    in_polars: tuple[Any, Any] | None = None
    in_numpy: tuple[Any, Any] | None = None

    def __str__(self) -> str:
        """Name the test."""
        return self.sql


def _integer(sql: str, low: int, high: int, name: str) -> Case:
    nullable = name.capitalize().replace("Uint", "UInt")
    return Case(sql, (str(low), str(high)), (low, high), nullable, name, name, nullable)


def _text(sql: str, first: str, second: str) -> Case:
    return Case(sql, (f"'{first}'", f"'{second}'"), (first, second), "text", "string", "object", "String")


def _timestamp(sql: str, unit: str, literals: tuple[str, str], polars: str, fraction: int) -> Case:
    held = (dt.datetime(1900, 1, 1), dt.datetime(2200, 12, 31, 23, 59, 59, fraction))  # noqa: DTZ001  naive
    dtype = f"datetime64[{unit}]"
    return Case(
        sql,
        (f"'{literals[0]}'", f"'{literals[1]}'"),
        held,
        dtype,
        f"timestamp[{unit}]",
        dtype,
        f"Datetime(time_unit='{polars}', time_zone=None)",
    )


def _objects(
    sql: str, expressions: tuple[str, str], values: tuple[Any, Any], arrow: str, polars: str, **more: Any
) -> Case:
    return Case(sql, expressions, values, "object", arrow, "object", polars, **more)


_ID = UUID("12345678-1234-5678-1234-567812345678")
_IDS = (_ID, UUID(int=2**128 - 1))
#: Before version 18, pyarrow has no type for UUIDs, and gives what holds them.
_IDS_IN_ARROW = _IDS if hasattr(pa, "uuid") else tuple(one.bytes for one in _IDS)
_INSTANTS = (dt.datetime(2020, 6, 1, 10, tzinfo=UTC), dt.datetime(1900, 1, 1, microsecond=1, tzinfo=UTC))
_SPANS = (Interval(1, -2, 3_000), Interval(0, 0, 9_223_372_036_854_775_000))
_POINT = bytes.fromhex("0101000000000000000000f03f0000000000000040")
_LONG = "-123456789012345678901234567890123456789012345678901234567890"

CASES = [
    Case("BOOLEAN", ("false", "true"), (False, True), "boolean", "bool", "bool", "Boolean"),
    _integer("TINYINT", -(2**7), 2**7 - 1, "int8"),
    _integer("SMALLINT", -(2**15), 2**15 - 1, "int16"),
    _integer("INTEGER", -(2**31), 2**31 - 1, "int32"),
    _integer("BIGINT", -(2**63), 2**63 - 1, "int64"),
    _integer("UTINYINT", 0, 2**8 - 1, "uint8"),
    _integer("USMALLINT", 0, 2**16 - 1, "uint16"),
    _integer("UINTEGER", 0, 2**32 - 1, "uint32"),
    _integer("UBIGINT", 0, 2**64 - 1, "uint64"),
    *(
        Case(
            sql,
            (str(low), str(high)),
            (low, high),
            "Int64",
            "decimal128(38, 0)",
            "int64",
            "Decimal(precision=38, scale=0)",
            in_arrow=(Decimal(low), Decimal(high)),
            in_polars=(Decimal(low), Decimal(high)),
        )
        for sql, low, high in [("HUGEINT", -(2**63), 2**63 - 1), ("UHUGEINT", 0, 2**63 - 1)]
    ),
    _text("BIGNUM", _LONG, "0"),
    Case("FLOAT", ("1.5", "-2"), (1.5, -2.0), "float32", "float", "float32", "Float32"),
    Case("DOUBLE", ("1e300", "-0.1"), (1e300, -0.1), "float64", "double", "float64", "Float64"),
    *(
        Case(
            f"DECIMAL({precision}, {scale})",
            (value, f"-{value}"),
            (Decimal(value), Decimal(f"-{value}")),
            "float64",
            f"decimal128({precision}, {scale})",
            "object",
            f"Decimal(precision={precision}, scale={scale})",
            in_pandas=(float(value), -float(value)),
        )
        for precision, scale, value in [
            (4, 1, "999.9"),
            (9, 3, "123456.789"),
            (18, 0, "999999999999999999"),
            (38, 10, "1234567890123456789012345678.1234567891"),
        ]
    ),
    _text("VARCHAR", "", "ä€𝄞 and more than twelve bytes"),
    _text("BIT", "101", "000000001"),
    _text("TIMETZ", "12:00:00+02", "23:59:59.5-01:30"),
    _text("JSON", '{"a": [1, null]}', "null"),
    Case(
        "ENUM('sad', 'ok')",
        ("'ok'", "'sad'"),
        ("ok", "sad"),
        "category",
        "dictionary<values=string, indices=uint8, ordered=0>",
        "object",
        "Categorical",
    ),
    _objects(
        "UUID",
        (f"'{_IDS[0]}'", f"'{_IDS[1]}'"),
        _IDS,
        "fixed_size_binary[16]",
        "String",
        in_arrow=_IDS_IN_ARROW,
        in_polars=(str(_IDS[0]), str(_IDS[1])),
    ),
    _objects("BLOB", ("''::BLOB", r"'\x00\xff'::BLOB"), (b"", b"\x00\xff"), "binary", "Binary"),
    _objects("GEOMETRY", ("'POINT(1 2)'", "'POINT(1 2)'"), (_POINT, _POINT), "binary", "Binary"),
    Case(
        "DATE",
        ("'0001-01-01'", "'9999-12-31'"),
        (dt.date(1, 1, 1), dt.date(9999, 12, 31)),
        "datetime64[s]",
        "date32[day]",
        "datetime64[D]",
        "Date",
        in_pandas=(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)),  # noqa: DTZ001  naive
    ),
    _objects(
        "TIME", ("'00:00'", "'23:59:59.999999'"), (dt.time(0), dt.time(23, 59, 59, 999_999)), "time64[us]", "Time"
    ),
    _objects(
        "TIME_NS", ("'00:00'", "'23:59:59.999999'"), (dt.time(0), dt.time(23, 59, 59, 999_999)), "time64[ns]", "Time"
    ),
    _timestamp("TIMESTAMP_S", "s", ("1900-01-01", "2200-12-31 23:59:59"), "ms", 0),
    _timestamp("TIMESTAMP_MS", "ms", ("1900-01-01", "2200-12-31 23:59:59.123"), "ms", 123_000),
    _timestamp("TIMESTAMP", "us", ("1900-01-01", "2200-12-31 23:59:59.123456"), "us", 123_456),
    Case(
        "TIMESTAMPTZ",
        ("'2020-06-01 12:00+02'", "'1900-01-01 00:00:00.000001+00'"),
        _INSTANTS,
        "datetime64[us, UTC]",
        "timestamp[us, tz=UTC]",
        "datetime64[us]",
        "Datetime(time_unit='us', time_zone='UTC')",
        in_numpy=(_INSTANTS[0].replace(tzinfo=None), _INSTANTS[1].replace(tzinfo=None)),
    ),
    _objects(
        "INTERVAL",
        ("'1 month -2 days 3 us'", "to_microseconds(9223372036854775)"),
        _SPANS,
        "month_day_nano_interval",
        "",
    ),
    _objects("INTEGER[]", ("[1, NULL]", "[]"), ([1, None], []), "list<l: int32>", "List(Int32)"),
    _objects(
        "DATE[]",
        ("['2023-01-01', NULL]", "[]"),
        ([dt.date(2023, 1, 1), None], []),
        "list<l: date32[day]>",
        "List(Date)",
    ),
    _objects(
        "HUGEINT[]",
        ("[1, NULL]", "[-1]"),
        ([1, None], [-1]),
        "list<l: decimal128(38, 0)>",
        "List(Decimal(precision=38, scale=0))",
    ),
    _objects(
        "BOOLEAN[2][]",
        ("[[true, NULL]]", "[NULL]"),
        ([[True, None]], [None]),
        "list<l: fixed_size_list<: bool>[2]>",
        "List(Array(Boolean, shape=(2,)))",
    ),
    _objects(
        "INTEGER[3]",
        ("[1, NULL, 3]", "[4, 5, 6]"),
        ([1, None, 3], [4, 5, 6]),
        "fixed_size_list<: int32>[3]",
        "Array(Int32, shape=(3,))",
    ),
    _objects(
        "STRUCT(a BIT, b STRUCT(c TIMETZ))",
        ("{'a': '01', 'b': {'c': '12:00:00+02'}}", "{'a': NULL, 'b': NULL}"),
        ({"a": "01", "b": {"c": "12:00:00+02"}}, {"a": None, "b": None}),
        "struct<a: string, b: struct<c: string>>",
        "Struct({'a': String, 'b': Struct({'c': String})})",
        in_polars=({"a": "01", "b": {"c": "12:00:00+02"}}, {"a": None, "b": None}),
    ),
    _objects(
        "MAP(VARCHAR, BOOLEAN)",
        ("MAP {'a': true, 'b': NULL}", "MAP {}"),
        ({"a": True, "b": None}, {}),
        "map<string, bool>",
        "",
        in_arrow=([("a", True), ("b", None)], []),
    ),
    _objects(
        "UNION(number INTEGER, name VARCHAR)",
        ("union_value(number := 7)", "union_value(name := 'x')"),
        (7, "x"),
        "sparse_union<number: int32=0, name: string=1>",
        "",
    ),
]

NULLS = ["first", "last", "all", "none", "empty"]


def query(cases: list[Case], nulls: str) -> str:
    """Select each case's values as a column of its name, with a NULL first or last, NULLs alone, or none; or no row."""
    columns = []
    for case in cases:
        texts = [f"({text})::{case.sql}" for text in case.expressions]
        missing = f"NULL::{case.sql}"
        columns.append({"first": [missing, *texts], "last": [*texts, missing], "all": [missing] * 2}.get(nulls, texts))
    rows = ", ".join(f"({number}, {', '.join(row)})" for number, row in enumerate(zip(*columns, strict=True)))
    names = ", ".join(f'"{case}"' for case in cases)
    where = "WHERE number < 0" if nulls == "empty" else ""
    return f"SELECT {names} FROM (VALUES {rows}) AS t(number, {names}) {where} ORDER BY number"
