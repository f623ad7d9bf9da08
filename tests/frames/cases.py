"""One row a type: how each frame holds it. Read by every test of this folder."""

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from longshore import Interval

UTC = dt.UTC


@dataclass(frozen=True)
class Case:
    """A PostgreSQL type, two of its values, and the dtypes of a nullable column of it."""

    sql: str
    literals: tuple[str, str]
    held: tuple[Any, Any]
    pandas: str
    """``text`` stands for the dtype of strings."""
    nullable: str
    arrow: str
    numpy: str
    polars: str
    """Empty where polars refuses the type."""

    def __str__(self) -> str:
        """Name the test."""
        return self.sql


def _integer(sql: str, low: int, high: int, name: str) -> Case:
    nullable = name.capitalize().replace("Uint", "UInt")
    return Case(sql, (str(low), str(high)), (low, high), nullable, nullable, name, name, nullable)


def _text(sql: str, first: str, second: str) -> Case:
    return Case(sql, (first, second), (first, second), "text", "string", "string", "object", "String")


def _objects(sql: str, literals: tuple[str, str], values: tuple[Any, Any], arrow: str, polars: str) -> Case:
    return Case(sql, literals, values, "object", "object", arrow, "object", polars)


_ID = UUID("12345678-1234-5678-1234-567812345678")

CASES = [
    Case("bool", ("false", "true"), (False, True), "boolean", "boolean", "bool", "bool", "Boolean"),
    _integer("int2", -(2**15), 2**15 - 1, "int16"),
    _integer("int4", -(2**31), 2**31 - 1, "int32"),
    _integer("int8", -(2**63), 2**63 - 1, "int64"),
    _integer("oid", 0, 2**32 - 1, "uint32"),
    _integer("xid8", 0, 2**64 - 1, "uint64"),
    Case("float4", ("1.5", "-2"), (1.5, -2.0), "float32", "Float32", "float", "float32", "Float32"),
    Case("float8", ("1e300", "-0.1"), (1e300, -0.1), "float64", "Float64", "double", "float64", "Float64"),
    _text("text", "", "ä€𝄞 and more than twenty-four bytes"),
    _text("varchar(5)", "a", "abcde"),
    _text("timetz", "12:00:00+02", "00:00:00-01:30"),
    _text("inet", "::1", "10.0.0.0/8"),
    _text("int4range", "[1,5)", "empty"),
    _text("jsonb", '{"a": [1, null]}', "null"),
    Case(
        "date",
        ("0001-01-01", "9999-12-31"),
        (dt.date(1, 1, 1), dt.date(9999, 12, 31)),
        "datetime64[s]",
        "datetime64[s]",
        "date32[day]",
        "datetime64[D]",
        "Date",
    ),
    Case(
        "timestamp",
        ("0001-01-01", "9999-12-31 23:59:59.999999"),
        (dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)),  # noqa: DTZ001  naive
        "datetime64[us]",
        "datetime64[us]",
        "timestamp[us]",
        "datetime64[us]",
        "Datetime(time_unit='us', time_zone=None)",
    ),
    Case(
        "timestamptz",
        ("2020-06-01 12:00+02", "1900-01-01 00:00:00.000001+00"),
        (
            dt.datetime(2020, 6, 1, 10, tzinfo=UTC),
            dt.datetime(1900, 1, 1, microsecond=1, tzinfo=UTC),
        ),
        "datetime64[us, UTC]",
        "datetime64[us, UTC]",
        "timestamp[us, tz=UTC]",
        "datetime64[us]",
        "Datetime(time_unit='us', time_zone='UTC')",
    ),
    _objects(
        "time",
        ("00:00", "23:59:59.999999"),
        (dt.time(0), dt.time(23, 59, 59, 999_999)),
        "time64[us]",
        "Time",
    ),
    _objects("bytea", ("\\x", "\\x00ff"), (b"", b"\x00\xff"), "binary", "Binary"),
    _objects("int4[]", ("{1,NULL}", "{}"), ([1, None], []), "list<item: int32>", "List(Int32)"),
    _objects(
        "date[]",
        ("{2023-01-01,NULL}", "{}"),
        ([dt.date(2023, 1, 1), None], []),
        "list<item: date32[day]>",
        "List(Date)",
    ),
    _objects("text[]", ('{a,NULL,""}', "{}"), (["a", None, ""], []), "list<item: string>", "List(String)"),
]

# Types whose values differ from frame to frame: (PostgreSQL's type, literals, Python's values).
DECIMAL = ("numeric(38,10)", ("1234567890123456789012345678.1234567890", "-0.0000000001"))
DECIMALS = tuple(Decimal(text) for text in DECIMAL[1])
IDENTIFIER = ("uuid", (str(_ID), str(UUID(int=0))))
IDENTIFIERS = (_ID, UUID(int=0))
SPAN = ("interval", ("1 mon -2 days 3 us", "0"))
SPANS = (Interval(1, -2, 3_000), Interval(0, 0, 0))


def query(sql: str, literals: tuple[str, ...], nulls: str = "last") -> str:
    """Select `literals` as column `c`, with a NULL first or last, with NULLs alone, or none; or no row at all."""
    texts: list[str | None] = [*literals]
    match nulls:
        case "first":
            texts.insert(0, None)
        case "last":
            texts.append(None)
        case "all":
            texts = [None] * len(texts)
        case "none" | "empty":
            pass
    rows = ", ".join(f"({number}, {_literal(text)}::{sql})" for number, text in enumerate(texts))
    where = "WHERE false" if nulls == "empty" else ""
    return f"SELECT c FROM (VALUES {rows}) AS t(number, c) {where} ORDER BY number"


def _literal(text: str | None) -> str:
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"


def expected(values: tuple[Any, ...], nulls: str) -> list[Any]:
    """List what `query` selects."""
    match nulls:
        case "first":
            return [None, *values]
        case "last":
            return [*values, None]
        case "all":
            return [None] * len(values)
        case "empty":
            return []
        case _:
            return [*values]


NULLS = ["first", "last", "all", "none", "empty"]
