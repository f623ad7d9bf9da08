"""Python's and Arrow's values as ClickHouse's: parameters of a query, and the types of new columns."""

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Any
from uuid import UUID

import pyarrow as pa

from longshore import _core
from longshore.errors import NotSupportedError, ProgrammingError
from longshore.sources.arrow import is_list
from longshore.sources.dialects import BACKTICK, escape
from longshore.sources.loading import CONVERT

_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0", "\b": "\\b", "\f": "\\f"}
#: A parameter of ClickHouse's own form.
_OWN = re.compile(r"\{\s*(\w+)\s*:")
_LABELS = re.compile(r"Enum(?:8|16)\(((?:'(?:[^'\\]|\\.)*' = -?\d+(?:, )?)+)\)")
_LABEL = re.compile(r"'((?:[^'\\]|\\.)*)'")
_QUOTED = re.compile(r"(['`])(?:(?!\1)[^\\]|\\.)*\1")
_WRAPPER = r"(?:(?:Nullable|LowCardinality|Array|Map|Tuple)\(|SimpleAggregateFunction\(\w+(?:\([^)]*\))?, )"
#: A type that is not made of others, and the name that it has within a Tuple.
_LEAF = re.compile(rf"(?:(\w+) )?(?:{_WRAPPER})*(?!{_WRAPPER})([A-Z]\w*)\b(?! \w)")
#: The meanings of values, by how the names of their types begin.
_MEANINGS = {
    "Date": "a date or timestamp",
    "Time": "a time of day",
    "Interval": "a duration",
    **dict.fromkeys(("Int", "UInt", "Float", "BFloat", "Decimal", "Bool"), "a number"),
}
_STATE = re.compile(r"(?<!Simple)AggregateFunction\(")
_FINISHED = "finalizeAggregation(column) in the query is its value, and hex(column) the state"
#: Integers' types by the bits of the largest value, and whether it has a sign.
_INTEGERS = ((64, "Int64"), (128, "Int128"), (256, "Int256"))
NAIVE = "a timestamp without a time zone has no type in ClickHouse"
ZONE = "give it one, as with .replace(tzinfo=datetime.UTC) or .dt.tz_localize('UTC'), or pass its text"
#: The zone of staged timestamps that have none: they become dates and texts, and no instants.
NO_ZONE = "Etc/UTC"

_SIMPLE = {
    pa.bool_(): "Bool",
    **{getattr(pa, f"{sign}int{bits}")(): f"{sign.upper()}Int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    pa.float16(): "Float32",
    pa.float32(): "Float32",
    pa.float64(): "Float64",
    pa.date32(): "Date32",
    **dict.fromkeys((pa.null(), pa.string(), pa.large_string(), pa.binary(), pa.large_binary()), "String"),
}
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def readable(name: str, kind: str) -> str:
    """Give a column's type; raises ``NotSupportedError`` where the server's Arrow has the addresses of values."""
    if _STATE.search(_QUOTED.sub("", kind)):
        raise NotSupportedError("the server's Arrow has no states of aggregates", column=name, hint=_FINISHED)
    return kind


def check_meaning(name: str, kind: str, native: str) -> None:
    """Refuse numbers as dates and times, and the reverse: the server counts days and seconds, there and back."""
    before, after = _leaves(kind), _leaves(native)
    if {field for field, _ in before} == {field for field, _ in after}:
        # Tuples are matched by their names.
        before, after = (sorted(leaves, key=itemgetter(0)) for leaves in (before, after))
    for (_, data), (_, column) in zip(before, after, strict=False):
        if data and column and data != column:
            message = f"{data} is not {column}"
            raise NotSupportedError(message, column=name, native_type=native.lower(), hint=CONVERT)


def _leaves(kind: str) -> list[tuple[str, str]]:
    found = _LEAF.findall(_QUOTED.sub("", kind))
    return [(name, next((m for start, m in _MEANINGS.items() if leaf.startswith(start)), "")) for name, leaf in found]


def typed_schema(schema: pa.Schema, native: Sequence[str]) -> tuple[pa.Schema, list[list[str]]]:
    """Give a result's schema with its columns' own types, where they are known, and the labels of each ENUM."""
    kinds = zip(schema, native, strict=True) if native else ()
    fields = [field.with_metadata({**(field.metadata or {}), b"CLICKHOUSE:type": kind}) for field, kind in kinds]
    labels = [_LABEL.findall(found) for kind in native for found in _LABELS.findall(kind)]
    return pa.schema(fields or schema), labels


def bind(query: str, params: Any) -> tuple[str, dict[str, str]]:
    """Give a query with parameters of ClickHouse's form, each of the type of its value, and their texts."""
    if params is None:
        return query, {}
    given: Mapping[str, Any] = params if isinstance(params, dict) else {f"{n}": v for n, v in enumerate(params, 1)}
    texts, used = {}, set()

    def place(text: str) -> str:
        if own := _OWN.match(text):
            if own[1] in given:
                used.add(own[1])
                texts[own[1]] = _whole(given[own[1]])[1]
            return text
        name = text[1:]
        if name.isdecimal() == isinstance(params, dict):
            return text
        if name not in given:
            raise ProgrammingError(f"there is no parameter {text} in params")
        used.add(name)
        kind, texts[f"p{name}"] = _whole(given[name])
        return f"{{p{name}:{kind}}}"

    pieces = _core.sql_places(query, "clickhouse")
    pieces[1::2] = map(place, pieces[1::2])
    if unused := [name for name in given if name not in used]:
        raise ProgrammingError(f"the statement has no parameter {', '.join(unused)}")
    return "".join(pieces), texts


def _whole(value: Any) -> tuple[str, str]:
    """Give a parameter's type, and its text as the interface reads it."""
    if value is None:
        return "Nullable(Nothing)", "\\N"
    if isinstance(value, bytes):
        return "String", "".join(f"\\x{byte:02x}" for byte in value)
    kind, text = _type_and_text(value)
    if isinstance(value, list):
        return kind, text
    return kind, "".join(_ESCAPES.get(letter, letter) for letter in text)


def _type_and_text(value: Any) -> tuple[str, str]:
    """Give a value's type and its text."""
    text_of = _TEXTS_OF.get(type(value))
    if text_of is None:
        raise NotSupportedError(f"a {type(value).__name__} cannot be a parameter of ClickHouse's")
    return text_of(value)


def _timestamp(value: dt.datetime) -> tuple[str, str]:
    if value.tzinfo is None:
        raise NotSupportedError(NAIVE, hint=ZONE)
    return "DateTime64(6, 'UTC')", value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(" ", "microseconds")


def _time(value: dt.time) -> tuple[str, str]:
    if value.tzinfo is not None:
        raise NotSupportedError("a time of day with a time zone has no type in ClickHouse")
    return "Time64(6)", value.isoformat("microseconds")


def _integer(value: int) -> str:
    for bits, name in _INTEGERS:
        if -(1 << bits - 1) <= value < 1 << bits - 1:
            return name
        if 0 <= value < 1 << bits:
            return f"U{name}"
    raise NotSupportedError(f"{value} is beyond integers of 256 bits")


def _decimal(value: Decimal) -> str:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise NotSupportedError(f"{value} is not a value of ClickHouse's decimals")
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    most = 38 if precision <= 38 else 76  # noqa: PLR2004  digits of 128 and 256 bits
    if precision > most:
        raise NotSupportedError(f"{value} has more digits than ClickHouse's decimals")
    return f"Decimal({most}, {scale})"


def _array(values: Sequence[Any]) -> tuple[str, str]:
    found = [None if value is None else _type_and_text(value) for value in values]
    kinds = {each[0] for each in found if each is not None}
    if len(kinds) > 1:
        raise NotSupportedError(f"a list of {' and '.join(sorted(kinds))} cannot be a parameter of ClickHouse's")
    kind = kinds.pop() if kinds else "Nothing"
    plain = kind.startswith(("Int", "UInt", "Float", "Bool", "Array"))
    texts = ["NULL" if each is None else each[1] if plain else escape(each[1]) for each in found]
    return f"Array({kind if kind.startswith('Array') else f'Nullable({kind})'})", f"[{','.join(texts)}]"


_TEXTS_OF: Mapping[type, Callable[[Any], tuple[str, str]]] = {
    bool: lambda value: ("Bool", str(value).lower()),
    int: lambda value: (_integer(value), str(value)),
    float: lambda value: ("Float64", str(value)),
    Decimal: lambda value: (_decimal(value), f"{value:f}"),
    str: lambda value: ("String", value),
    dt.date: lambda value: ("Date32", value.isoformat()),
    dt.datetime: _timestamp,
    dt.time: _time,
    UUID: lambda value: ("UUID", str(value)),
    list: _array,
}


def column_type(field: pa.Field, *, nullable: bool = True) -> str:
    """Give the type of a column that holds all values of an Arrow type."""
    kind, name = _type_of(field), field.name
    is_nested = kind.startswith(("Array(", "Map(", "Tuple("))
    if kind == "":
        raise NotSupportedError(f"{field.type} has no type in ClickHouse", column=name)
    return f"Nullable({kind})" if nullable and not is_nested else kind


def declaration(kind: str) -> str:
    """Give a column's type for a server whose types may be NULL unless they say otherwise."""
    return kind if kind.startswith(("Nullable(", "LowCardinality(Nullable(")) else f"{kind} NOT NULL"


def _type_of(field: pa.Field) -> str:
    """Give the type of values that are not NULL; nothing where ClickHouse has none."""
    kind = field.type
    if extension := getattr(kind, "extension_name", ""):
        return "UUID" if extension == "arrow.uuid" else _type_of(field.with_type(kind.storage_type))
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    return next((name_of(kind) for is_one, name_of in _OTHERS if is_one(kind)), "")


def _struct(kind: pa.DataType) -> str:
    fields = (kind.field(at) for at in range(kind.num_fields))
    return f"Tuple({', '.join(f'{escape(each.name, BACKTICK)} {column_type(each)}' for each in fields)})"


_OTHERS: Sequence[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], str]]] = (
    (pa.types.is_fixed_size_binary, lambda kind: f"FixedString({kind.byte_width})"),
    (pa.types.is_decimal, lambda kind: f"Decimal({kind.precision}, {kind.scale})"),
    (pa.types.is_timestamp, lambda kind: f"DateTime64({_DIGITS[kind.unit]}, '{'UTC' if kind.tz else NO_ZONE}')"),
    (pa.types.is_time, lambda kind: f"Time64({_DIGITS[kind.unit]})"),
    (
        pa.types.is_map,
        lambda kind: f"Map({column_type(kind.key_field, nullable=False)}, {column_type(kind.item_field)})",
    ),
    (pa.types.is_struct, _struct),
    (is_list, lambda kind: f"Array({column_type(kind.value_field)})"),
)


def stage(table: pa.Table) -> pa.Table:
    """Give rows in types whose values the server takes as they are."""
    for at, field in enumerate(table.schema):
        wanted = _wire_type(field.type)
        if wanted != field.type:
            table = table.set_column(at, field.with_type(wanted), table.column(at).cast(wanted))
    return table


def _wire_type(kind: pa.DataType) -> pa.DataType:
    """Give the type that goes over the wire: without dictionaries, views and other zones than UTC."""
    if getattr(kind, "extension_name", "") not in {"", "arrow.uuid"}:
        return _wire_type(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _wire_type(kind.value_type)
    if pa.types.is_timestamp(kind) and kind.tz:
        return pa.timestamp(kind.unit, "UTC")
    views = {"string_view": pa.large_string(), "binary_view": pa.large_binary(), "halffloat": pa.float32()}
    return views.get(str(kind), kind)
