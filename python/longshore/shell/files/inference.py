"""Columns of texts in the types that ``--schema`` names, or that all values of a column have in common.

No value is changed by its inferred type. What has several readings stays text: ``007`` is not a number, and ``1e5`` is
not a decimal.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from longshore.errors import DataError, InterfaceError
from longshore.sources.arrow import first_failure

#: As many digits as any two doubles can be told apart by.
_DOUBLE_DIGITS = 17
_WIDEST = 76
_NARROW = 38
_matches = pc.match_substring_regex
_TIMESTAMP = r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?"


class ValueClass(Enum):
    """The kind of a value that a format tells before its text is looked at."""

    NUMBER = "number"
    BOOLEAN = "boolean"
    TEXT = "text"
    NESTED = "nested"


class _Candidate(NamedTuple):
    pattern: str
    type: pa.DataType | None
    of: ValueClass


#: In the order of preference.
_CANDIDATES = {
    "bool": _Candidate(r"^(true|false)$", pa.bool_(), ValueClass.BOOLEAN),
    "int": _Candidate(r"^(0|-?[1-9]\d{0,18})$", pa.int64(), ValueClass.NUMBER),
    "decimal": _Candidate(r"^(0|-?[1-9]\d*|-?(0|[1-9]\d*)\.\d+)$", None, ValueClass.NUMBER),
    "float": _Candidate(r"^(-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d{1,3})?|nan|-?inf)$", pa.float64(), ValueClass.NUMBER),
    "date": _Candidate(r"^\d{4}-\d{2}-\d{2}$", pa.date32(), ValueClass.TEXT),
    "timestamp": _Candidate(f"^{_TIMESTAMP}$", pa.timestamp("us"), ValueClass.TEXT),
    "instant": _Candidate(f"^{_TIMESTAMP}Z$", pa.timestamp("us", "UTC"), ValueClass.TEXT),
}


class InferredType:
    """The type that all texts of a column have, of those that have been added."""

    def __init__(self) -> None:
        """Begin with all candidates."""
        self._candidates = dict(_CANDIDATES)
        self._whole_digits = 0
        self._scale = 0
        self._has_digits = False
        self._is_empty = True

    def add(self, texts: pa.Array, value_class: ValueClass | None = None) -> None:
        """Take more texts of the column into account, of a class where it is known; NULL fits any type."""
        texts = texts.drop_null()
        if not len(texts):
            return
        self._is_empty = False
        self._has_digits = self._has_digits or bool(pc.any(_matches(texts, r"\d")).as_py())
        for name, kind in list(self._candidates.items()):
            if value_class not in {None, kind.of} or not self._holds(name, kind, texts):
                del self._candidates[name]

    @property
    def type(self) -> pa.DataType:
        """The type for all of them."""
        if self._is_empty or not self._candidates:
            return pa.string()
        name = next(iter(self._candidates))
        if name == "decimal":
            width = pa.decimal128 if self._whole_digits + self._scale <= _NARROW else pa.decimal256
            return width(self._whole_digits + self._scale, self._scale)
        if name == "float" and not self._has_digits:
            return pa.string()
        return _CANDIDATES[name].type

    def _holds(self, name: str, kind: _Candidate, texts: pa.Array) -> bool:
        if not pc.all(_matches(texts, kind.pattern)).as_py():
            return False
        if name == "decimal":
            self._whole_digits = max(self._whole_digits, _longest(texts, r"^-|\..*$"))
            self._scale = max(self._scale, _longest(texts, r"^[^.]*\.?"))
            return self._whole_digits + self._scale <= _WIDEST
        try:
            cast = texts.cast(kind.type)
        except pa.ArrowInvalid:
            return False
        return name != "float" or _are_doubles(texts, cast)


def _are_doubles(texts: pa.Array, numbers: pa.Array) -> bool:
    """Whether each text has no more digits than a double, and is within its range."""
    if _longest(texts, r"^-?[0.]*|[eE].*$|\.") > _DOUBLE_DIGITS:
        return False
    is_over = pc.and_not(pc.is_inf(numbers), _matches(texts, "inf"))
    is_under = pc.and_(pc.equal(numbers, 0.0), _matches(texts, r"^[^eE]*[1-9]"))
    return not pc.any(pc.or_(is_over, is_under)).as_py()


def _longest(texts: pa.Array, pattern: str) -> int:
    """Return the length of the longest text without what the pattern matches."""
    return int(pc.max(pc.utf8_length(pc.replace_substring_regex(texts, pattern, ""))).as_py())


_DECIMAL = re.compile(r"decimal(128|256)\((\d+), ?(-?\d+)\)")
_INSTANT = re.compile(r"timestamp\[(s|ms|us|ns), ?(?:tz=)?UTC\]")
_MOST_DIGITS = {"128": 38, "256": 76}
_PLAIN = r"^-?\d+(\.\d+)?$"


class TextColumns(NamedTuple):
    """A file whose values are texts: what its columns may be, and how to read it."""

    types: dict[str, InferredType]
    read: Callable[[], Iterator[pa.RecordBatch]]
    """Returns batches of the columns of ``types``, in their order, all of text."""


def typed_batches(texts: TextColumns, schema: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Return the batches in their types, an empty one first; raises as ``open_batches`` does."""
    for name in schema:
        if name not in texts.types:
            message = f"--schema has a column {name!r}, and the file has {', '.join(map(repr, texts.types))}"
            raise InterfaceError(message)
    given_types = {name: arrow_type(name, kind) for name, kind in schema.items()}
    fields = [pa.field(name, given_types.get(name) or inferred.type) for name, inferred in texts.types.items()]
    return _batches(pa.schema(fields), texts)


def arrow_type(column: str, name: str) -> pa.DataType:
    """Return the type of a name as pyarrow prints it; raises ``InterfaceError`` for a name that is not a type."""
    if match := _DECIMAL.fullmatch(name):
        width, precision, scale = match[1], int(match[2]), int(match[3])
        if 1 <= precision <= _MOST_DIGITS[width] and 0 <= scale <= precision:
            return (pa.decimal128 if width == "128" else pa.decimal256)(precision, scale)
    elif match := _INSTANT.fullmatch(name):
        return pa.timestamp(match[1], "UTC")
    else:
        try:
            return pa.type_for_alias(name)
        except ValueError:
            pass
    known = "int64, float64, string, date32, timestamp[us], decimal128(20, 4)"
    raise InterfaceError(f"--schema {column}={name} is not a type: write {known}")


def _batches(schema: pa.Schema, texts: TextColumns) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_arrays([pa.array([], kind) for kind in schema.types], schema=schema)
    first = 0
    for batch in texts.read():
        columns = [_column(field, array, first) for field, array in zip(schema, batch.columns, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
        first += batch.num_rows


def _column(field: pa.Field, texts: pa.Array, first: int) -> pa.Array:
    try:
        return _cast_texts(texts, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        if not len(texts):
            raise
        at = max(first_failure(texts, lambda part: _cast_texts(part, field.type)), 0)
        hint = f'give --schema "{field.name}=string", or a type that holds it'
        message = f'column "{field.name}", row {first + at}: {texts[at].as_py()!r} is not a {field.type}'
        raise DataError(message, column=field.name, row=first + at, hint=hint) from error


def _cast_texts(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        return _decimals(texts, kind)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array([None if text is None else _bytes(text) for text in texts.to_pylist()], kind)
    cast = texts.cast(kind)
    if pa.types.is_floating(kind) and pc.any(pc.and_not(pc.is_inf(cast), pc.match_substring(texts, "inf"))).as_py():
        raise ValueError(f"a number beyond the range of {kind}")
    return cast


def _decimals(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast to decimals; Arrow lets those wrap that have more digits than any decimal, so digits are counted first."""
    if pc.any(pc.invert(pc.match_substring_regex(texts, _PLAIN))).as_py():
        raise ValueError("not a decimal")
    whole = pc.utf8_length(pc.replace_substring_regex(texts, r"^-?0*|\..*$", ""))
    if (pc.max(whole).as_py() or 0) > kind.precision - kind.scale:
        raise ValueError("too many digits")
    # Zeros at the end change nothing, and would be digits too many.
    return pc.replace_substring_regex(texts, r"(\.\d*?)0+$", r"\1").cast(kind)


def _bytes(text: str) -> bytes:
    r"""Return the bytes of ``\x`` and hexadecimal digits, as a file of ours has them."""
    if not text.startswith("\\x"):
        raise ValueError("not bytes: write \\x and two hexadecimal digits for each")
    return bytes.fromhex(text[2:])
