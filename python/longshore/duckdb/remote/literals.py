"""A query's constants, as values of the types that they are compared with."""

import datetime as dt
import decimal
import math
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from longshore.duckdb.parameters import Params
from longshore.duckdb.remote.types import BASIC_PLANE, Kind, Type, Unsafe

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?")
_ZONE = re.compile(r"(Z|[+-]\d\d(:\d\d)?)")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_INT64 = 1 << 63
#: The integers that a double holds, and the digits that it preserves.
_EXACT = 1 << 53
_DIGITS = 15
_MOST_DIGITS = 38

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
        if str(name) not in params:
            raise Unsafe
        return params[str(name)]
    at = int(name) - 1 if str(name).isdecimal() else -1
    if not 0 <= at < len(params):
        raise Unsafe
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
    if type(value) not in {int, decimal.Decimal}:
        raise Unsafe
    exact = decimal.Decimal(value)
    if not exact.is_finite():
        raise Unsafe
    exponent = exact.as_tuple().exponent
    scale = max(-int(exponent), 0)
    before = max(exact.adjusted() + 1, 1)
    # The engine casts both to one type, which has to hold either.
    if max(before, wanted.precision - wanted.scale) + max(scale, wanted.scale) > _MOST_DIGITS:
        raise Unsafe
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
    if type(text) is not str or "\0" in text:
        raise Unsafe
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
