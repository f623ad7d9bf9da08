"""The types of attached tables' columns, what of them a database computes as the engine does, and constants of them."""

import datetime as dt
import decimal
import math
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum
from typing import Any

import pyarrow as pa
from sqlglot import exp

from longshore.duckdb.parameters import Params
from longshore.frames.stored import NATIVE

#: MySQL's UTF-8 of three bytes, for which Python has no name.
BASIC_PLANE = "utf8mb3"


_MOST_DIGITS = 38


class Unsafe(Exception):  # noqa: N818  it ends an attempt, and does not reach a caller
    """An expression that may mean something else in the source, or is not known to mean the same."""


def unsafe_if(condition: object) -> None:
    """End an attempt where a condition holds."""
    if condition:
        raise Unsafe


class Trust(IntEnum):
    """How far a source's test agrees with the engine's."""

    NONE = 0
    #: True wherever the engine's is, and perhaps elsewhere: a filter of rows, which the engine tests again.
    SUPERSET = 1
    #: True, false and NULL where the engine's is.
    EXACT = 2


class Kind(Enum):
    """The classes of values that are compared with each other."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    DOUBLE = "double"
    DECIMAL = "decimal"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamptz"
    UUID = "uuid"
    TEXT = "text"
    OTHER = "other"


@dataclass(frozen=True)
class Type:
    """A type, and how far its source agrees with the engine on its values."""

    kind: Kind
    #: The engine's name of it; None where it does not matter.
    engine: str | None = None
    equal: Trust = Trust.NONE
    order: Trust = Trust.NONE
    #: Whether values that are equal are the same, so that one of them may stand for all.
    groups: bool = False
    #: Whether the source's NULLs are the engine's.
    nulls: bool = False
    #: Whether the source's sums are the engine's.
    sums: bool = False
    precision: int = 0
    scale: int = 0
    #: Whether it is a ``char(n)`` as its source compares it, without blanks at the end of what is next to it.
    padded: bool = False
    #: Whether it is a ``varchar``, whose blanks a ``char(n)`` ignores, too; those of a ``text`` count.
    varying: bool = field(default=False, compare=False)
    #: Texts of one collation are compared with each other.
    collation: str | None = None
    #: The encoding of the column's texts in the source, as Python calls it.
    charset: str = "utf-8"


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, its name in the source's SQL, and its type."""

    name: str
    quoted: str
    type: Type
    #: Its value in a pushed query; {} is the column.
    form: str = "{}"
    #: Whether this user may read it.
    readable: bool = True
    #: Whether it is loaded in this form, too.
    is_cast: bool = False
    #: The length of a PostgreSQL ``char(n)``, whose values enter without their padding; 0 where none was declared.
    padded: int | None = None
    #: The collation in which texts that differ may be equal.
    collation: str | None = None

    def sql(self, table: str) -> str:
        """Give its value under a table's alias."""
        return self.form.replace("{}", f"{table}.{self.quoted}")

    @property
    def select_item(self) -> str:
        """Its item in the SELECT that loads the table."""
        return f"{self.form.replace('{}', self.quoted)} AS {self.quoted}" if self.is_cast else self.quoted

    @property
    def own_equality(self) -> str | None:
        """The type by which its database finds texts equal that differ in bytes: a collation, or a ``char(n)``."""
        if self.collation is None and self.padded is not None:
            return f"char({self.padded})" if self.padded else "bpchar"
        return self.collation

    @property
    def in_source(self) -> "Column":
        """The column in what the source answers alone: its collation and its padding are what they are there."""
        of = replace(self.type, padded=self.padded is not None)
        if self.collation is not None and of.kind is Kind.TEXT:
            of = replace(of, equal=Trust.EXACT, groups=True)
        return replace(self, type=of)


@dataclass(frozen=True)
class Table:
    """A table of a source's catalogue."""

    sql: str
    columns: Sequence[Column]
    #: Whether the columns have one type each, whatever rows are read.
    is_typed: bool = True
    #: A value that every change of the table changes, even one that was undone; None where there is none.
    version: object = None


def scalar(kind: Kind, engine: str) -> Type:
    """Give a type on which all sources agree with the engine: integers, dates and timestamps."""
    return Type(kind, engine, equal=Trust.EXACT, order=Trust.EXACT, groups=True, nulls=True, sums=True)


def decimal_type(precision: int, scale: int) -> Type:
    """Give a type of decimals; one beyond the engine's 128 bits is loaded only."""
    if not 0 <= scale <= precision <= _MOST_DIGITS:
        return Type(Kind.OTHER)
    return Type(
        Kind.DECIMAL,
        f"DECIMAL({precision},{scale})",
        equal=Trust.EXACT,
        order=Trust.EXACT,
        groups=True,
        nulls=True,
        sums=True,
        precision=precision,
        scale=scale,
    )


def same_meaning(left: Type, right: Type) -> None:
    """Raise ``Unsafe`` where two columns are not compared as their values are."""
    unsafe_if(left.kind is not right.kind or left.kind is Kind.OTHER)
    if left.kind is Kind.TEXT and (left.collation is None or left.collation != right.collation):
        raise Unsafe
    unsafe_if(left.padded is not right.padded and (left.varying or right.varying))
    before = max(left.precision - left.scale, right.precision - right.scale)
    unsafe_if(before + max(left.scale, right.scale) > _MOST_DIGITS)


_ARROW = {"HUGEINT": pa.decimal128(38, 0)} | {name.upper(): kind for kind, name in NATIVE.items()}
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")


def arrow_type(engine: str) -> pa.DataType | None:
    """Give the Arrow type of the engine's type; None where it is not on the list."""
    number = _DECIMAL.fullmatch(engine)
    return pa.decimal128(int(number[1]), int(number[2])) if number else _ARROW.get(engine)


_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?")
_ZONE = re.compile(r"(Z|[+-]\d\d(:\d\d)?)")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_INT64 = 1 << 63
#: The integers that a double holds, and the digits that it preserves.
_EXACT = 1 << 53
_DIGITS = 15

_CASTS = {
    exp.DataType.Type.DATE: Kind.DATE,
    exp.DataType.Type.TIMESTAMP: Kind.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ: Kind.TIMESTAMPTZ,
    exp.DataType.Type.UUID: Kind.UUID,
}


@dataclass(frozen=True)
class Quoted:
    """A quoted constant, which the engine reads as the type that it is compared with."""

    text: str


def constant(node: exp.Expression, params: Params) -> Any:
    """Give a constant's value in Python; raises ``Unsafe`` for other expressions."""
    if isinstance(node, exp.Paren):
        return constant(node.this, params)
    if isinstance(node, exp.Literal):
        return Quoted(node.this) if node.is_string else _number(node.this)
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
        return -_number(node.this.this)
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Cast):
        return _cast(node)
    if isinstance(node, exp.Placeholder):
        return _param(node, params)
    raise Unsafe


def _number(text: str) -> int | float | decimal.Decimal:
    if text.isdecimal() and text.isascii():
        return int(text)
    if re.fullmatch(r"\d*\.\d*", text) and len(text) > 1:
        return decimal.Decimal(text)
    if re.fullmatch(r"\d+(\.\d*)?[eE][+-]?\d+", text):
        return float(text)
    raise Unsafe


def _cast(node: exp.Cast) -> Any:
    """Give a constant with its type, as in ``DATE '2026-05-01'``."""
    to = node.to
    kind = _CASTS.get(to.this)
    literal = node.this
    if kind is None or to.expressions or not isinstance(literal, exp.Literal) or not literal.is_string:
        raise Unsafe
    if any(value for name, value in node.args.items() if name not in {"this", "to", "_type"}):
        raise Unsafe
    return fit(Quoted(literal.this), Type(kind))


def _param(node: exp.Placeholder, params: Params) -> Any:
    name = node.args.get("this")
    if name is None or params is None:
        raise Unsafe
    if isinstance(params, Mapping):
        unsafe_if(str(name) not in params)
        return params[str(name)]
    at = int(name) - 1 if str(name).isdecimal() else -1
    unsafe_if(not 0 <= at < len(params))
    return params[at]


def whole_number(node: exp.Expression, params: Params) -> int:
    """Give a LIMIT's number; raises ``Unsafe`` for other expressions."""
    value = constant(node, params)
    if type(value) is int and 0 <= value < _INT64:
        return value
    raise Unsafe


def fit(value: Any, wanted: Type) -> Any:
    """Give a constant as a value of the type it is compared with; raises ``Unsafe`` where it is ambiguous."""
    reader = _READERS.get(wanted.kind)
    if reader is None:
        raise Unsafe
    try:
        return reader(value, wanted)
    except (ValueError, OverflowError, decimal.InvalidOperation) as error:
        raise Unsafe from error


def _integer(value: Any, _wanted: Type) -> int:
    # Not a subclass, such as bool or an enumeration.
    if type(value) is int and abs(value) < _INT64:
        return value
    raise Unsafe


def _decimal(value: Any, wanted: Type) -> decimal.Decimal:
    unsafe_if(type(value) not in {int, decimal.Decimal})
    exact = decimal.Decimal(value)
    unsafe_if(not exact.is_finite())
    exponent = exact.as_tuple().exponent
    scale = max(-int(exponent), 0)
    before = max(exact.adjusted() + 1, 1)
    # The engine casts both to one type, which has to hold either.
    unsafe_if(max(before, wanted.precision - wanted.scale) + max(scale, wanted.scale) > _MOST_DIGITS)
    return exact


def _double(value: Any, _wanted: Type) -> float:
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is int and abs(value) <= _EXACT:
        return float(value)
    if type(value) is decimal.Decimal and value.is_finite() and len(value.as_tuple().digits) <= _DIGITS:
        exponent = int(value.as_tuple().exponent)
        # Division by a power of ten that a double holds is rounded once: the nearest double.
        if -_DIGITS <= exponent <= 0:
            return float(value)
    raise Unsafe


def _date(value: Any, _wanted: Type) -> dt.date:
    if type(value) is dt.date:
        return value
    if isinstance(value, Quoted) and _DATE.fullmatch(value.text) and value.text.isascii():
        return dt.date.fromisoformat(value.text)
    raise Unsafe


def _timestamp(value: Any, _wanted: Type) -> dt.datetime:
    if type(value) is dt.datetime and value.tzinfo is None:
        return value
    if type(value) is dt.date:
        return dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001  as naive as the column
    text = value.text if isinstance(value, Quoted) and value.text.isascii() else ""
    if _DATE.fullmatch(text) or _TIMESTAMP.fullmatch(text):
        return dt.datetime.fromisoformat(text)
    raise Unsafe


def _timestamptz(value: Any, _wanted: Type) -> dt.datetime:
    if type(value) is dt.datetime and value.tzinfo is not None:
        return value.astimezone(dt.UTC)
    text = value.text if isinstance(value, Quoted) and value.text.isascii() else ""
    match = _TIMESTAMP.match(text)
    if match and _ZONE.fullmatch(text, match.end()):
        return dt.datetime.fromisoformat(text).astimezone(dt.UTC)
    raise Unsafe


def _uuid(value: Any, _wanted: Type) -> uuid.UUID:
    if type(value) is uuid.UUID:
        return value
    if isinstance(value, Quoted) and _UUID.fullmatch(value.text):
        return uuid.UUID(value.text)
    raise Unsafe


def _text(value: Any, wanted: Type) -> str:
    text = value.text if isinstance(value, Quoted) else value
    unsafe_if(type(text) is not str or "\0" in text)
    # A lone surrogate is refused, as by the engine.
    text.encode()
    if wanted.charset == BASIC_PLANE:
        if any(letter > "\uffff" for letter in text):
            raise Unsafe
    else:
        # The source would refuse a query with characters outside its encoding.
        text.encode(wanted.charset)
    return text


def _boolean(value: Any, _wanted: Type) -> bool:
    if type(value) is bool:
        return value
    raise Unsafe


_READERS = {
    Kind.BOOLEAN: _boolean,
    Kind.INTEGER: _integer,
    Kind.DOUBLE: _double,
    Kind.DECIMAL: _decimal,
    Kind.DATE: _date,
    Kind.TIMESTAMP: _timestamp,
    Kind.TIMESTAMPTZ: _timestamptz,
    Kind.UUID: _uuid,
    Kind.TEXT: _text,
}
