"""Columns of text as columns of their types: those that were asked for, or those that all values have."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from longshore.errors import DataError, InterfaceError
from longshore.shell.files.guess import Guess

__all__ = ["Texts", "typed"]

_DECIMAL = re.compile(r"decimal(128|256)\((\d+), ?(-?\d+)\)")
_INSTANT = re.compile(r"timestamp\[(s|ms|us|ns), ?(?:tz=)?UTC\]")
_WIDEST = {"128": 38, "256": 76}
_PLAIN = r"^-?\d+(\.\d+)?$"


class Texts(NamedTuple):
    """A file whose values are texts: what its columns may be, and how to read it."""

    guesses: dict[str, Guess]
    read: Callable[[], Iterator[pa.RecordBatch]]
    """Gives batches of the columns of ``guesses``, in their order, all of text."""


def typed(texts: Texts, wanted: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Give the batches in their types, an empty one first; raises as ``batches`` does."""
    for name in wanted:
        if name not in texts.guesses:
            message = f"--schema has a column {name!r}, and the file has {', '.join(map(repr, texts.guesses))}"
            raise InterfaceError(message)
    asked = {name: arrow_type(name, kind) for name, kind in wanted.items()}
    fields = [pa.field(name, asked.get(name) or guess.type) for name, guess in texts.guesses.items()]
    return _batches(pa.schema(fields), texts)


def arrow_type(column: str, name: str) -> pa.DataType:
    """Give the type of a name as pyarrow prints it; raises ``InterfaceError`` for what is none."""
    if match := _DECIMAL.fullmatch(name):
        width, precision, scale = match[1], int(match[2]), int(match[3])
        if 1 <= precision <= _WIDEST[width] and 0 <= scale <= precision:
            return (pa.decimal128 if width == "128" else pa.decimal256)(precision, scale)
    elif match := _INSTANT.fullmatch(name):
        return pa.timestamp(match[1], "UTC")
    else:
        try:
            return pa.type_for_alias(name)
        except ValueError:
            pass
    known = "int64, float64, string, date32, timestamp[us], decimal128(20, 4)"
    message = f"--schema {column}={name} is not a type: write {known}"
    raise InterfaceError(message)


def _batches(schema: pa.Schema, texts: Texts) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_arrays([pa.array([], kind) for kind in schema.types], schema=schema)
    first = 0
    for batch in texts.read():
        columns = [_column(field, array, first) for field, array in zip(schema, batch.columns, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
        first += batch.num_rows


def _column(field: pa.Field, texts: pa.Array, first: int) -> pa.Array:
    try:
        return _cast(texts, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        # One by one tells which it was.
        for index in range(len(texts)):
            _check(field, texts.slice(index, 1), first + index)
        raise


def _check(field: pa.Field, one: pa.Array, row: int) -> None:
    try:
        _cast(one, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        hint = f'give --schema "{field.name}=string", or a type that holds it'
        message = f'column "{field.name}", row {row}: {one[0].as_py()!r} is no {field.type}\nHint: {hint}'
        raise DataError(message, column=field.name, row=row, hint=hint) from error


def _cast(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        return _decimals(texts, kind)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array([None if text is None else _bytes(text) for text in texts.to_pylist()], kind)
    cast = texts.cast(kind)
    if pa.types.is_floating(kind) and pc.any(pc.and_not(pc.is_inf(cast), pc.match_substring(texts, "inf"))).as_py():
        message = f"a number beyond the range of {kind}"
        raise ValueError(message)
    return cast


def _decimals(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast to decimals; Arrow lets those wrap that have more digits than any decimal, so digits are counted first."""
    if pc.any(pc.invert(pc.match_substring_regex(texts, _PLAIN))).as_py():
        message = "no decimal"
        raise ValueError(message)
    whole = pc.utf8_length(pc.replace_substring_regex(texts, r"^-?0*|\..*$", ""))
    if (pc.max(whole).as_py() or 0) > kind.precision - kind.scale:
        message = "too many digits"
        raise ValueError(message)
    # Zeros at the end change nothing, and would be digits too many.
    return pc.replace_substring_regex(texts, r"(\.\d*?)0+$", r"\1").cast(kind)


def _bytes(text: str) -> bytes:
    r"""Give the bytes of ``\x`` and hexadecimal digits, as a file of ours has them."""
    if not text.startswith("\\x"):
        message = "no bytes: write \\x and two hexadecimal digits for each"
        raise ValueError(message)
    return bytes.fromhex(text[2:])
