"""Arrow columns as pieces of JSON, nested ones too; all with Arrow's kernels, a column at a time."""

import json
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from longshore.errors import NotSupportedError
from longshore.shell.files.faults import FaultError
from longshore.shell.files.texts import extension, plain, texts, unsayable

__all__ = ["fragments", "keys", "objects"]

_ESCAPED = r'["\\\x00-\x1f\x7f]'
_NULL = "null"


def fragments(field: pa.Field, array: pa.Array) -> pa.Array:
    """Give each value as JSON, none of them NULL.

    Raises ``FaultError`` for a value that JSON cannot say, and ``NotSupportedError`` for a type.
    """
    array = plain(array)
    kind, types = array.type, pa.types
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        pieces = _lists(array)
    elif types.is_struct(kind):
        pieces = _structs(array)
    elif types.is_nested(kind):
        raise unsayable(field)
    elif extension(field) == "arrow.json":
        pieces = _documents(array)
    elif types.is_floating(kind):
        pieces = _finite(field, array)
    elif types.is_boolean(kind) or types.is_integer(kind) or types.is_decimal(kind):
        pieces = texts(field, array)
    else:
        pieces = _quoted(texts(field, array))
    return pc.fill_null(pieces, _NULL)


def keys(names: list[str]) -> list[str]:
    """Give the pieces before each value of an object; raises ``NotSupportedError`` for a name that is there twice."""
    for name in names:
        if names.count(name) > 1:
            hint = "give each column a name of its own: SELECT a AS one, b AS two"
            message = f'two columns are called "{name}", which JSON cannot tell apart\nHint: {hint}'
            raise NotSupportedError(message, column=name, hint=hint)
    return [f"{',' if number else ''}{json.dumps(name, ensure_ascii=False)}:" for number, name in enumerate(names)]


def objects(begins: list[str], columns: list[pa.Array], length: int) -> pa.Array:
    """Give the objects of the columns' pieces, one for each row."""
    if not columns:
        return pa.array(["{}"] * length, pa.string())
    pieces = [piece for begin, column in zip(begins, columns, strict=True) for piece in (begin, column)]
    return pc.binary_join_element_wise("{", *pieces, "}", "")


def _quoted(said: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(said, _ESCAPED)).as_py():
        encode = json.JSONEncoder(ensure_ascii=False).encode
        return pa.array([None if text is None else encode(text) for text in said.to_pylist()], pa.string())
    return pc.binary_join_element_wise('"', said, '"', "")


def _finite(field: pa.Field, array: pa.Array) -> pa.Array:
    wide = array.cast(pa.float32()) if pa.types.is_float16(array.type) else array
    beyond = pc.index(pc.is_finite(wide), value=False).as_py()
    if beyond >= 0:
        hint = "read it as NULL (NULLIF in the query), or write another format"
        raise FaultError(beyond, f"{array[beyond].as_py()} is not a JSON number", hint)
    return texts(field, array)


def _documents(array: pa.Array) -> pa.Array:
    """Give JSON as it is: digits, spaces and order; a line's end can only be a space between two tokens."""
    said = array.to_pylist()
    for index, text in enumerate(said):
        if text is not None:
            _check(index, text)
    return pa.array(
        [None if text is None else text.replace("\r", " ").replace("\n", " ") for text in said], pa.string()
    )


def _check(index: int, text: str) -> None:
    def refuse(word: str) -> NoReturn:
        raise FaultError(index, f"{word} is not a JSON number", "cast the column to text in the query")

    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise FaultError(index, f"it is not JSON: {error}", "cast the column to text in the query") from error


def _lists(array: pa.Array) -> pa.Array:
    is_there = array.is_valid()
    lengths = pc.if_else(is_there, pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    try:
        items = fragments(array.type.value_field, array.flatten())
    except FaultError as fault:
        row = int(np.searchsorted(offsets, fault.index, side="right")) - 1
        raise FaultError(row, fault.problem, fault.hint) from fault
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items), ",")
    return pc.if_else(is_there, pc.binary_join_element_wise("[", joined, "]", ""), pa.scalar(None, pa.string()))


def _structs(array: pa.Array) -> pa.Array:
    fields = [array.type.field(number) for number in range(array.type.num_fields)]
    begins = keys([inner.name for inner in fields])
    columns = [fragments(inner, column) for inner, column in zip(fields, array.flatten(), strict=True)]
    return pc.if_else(array.is_valid(), objects(begins, columns, len(array)), pa.scalar(None, pa.string()))
