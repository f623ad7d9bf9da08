"""JSON: an object in each line."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, NoReturn

import pyarrow as pa

from longshore.errors import DataError
from longshore.shell.files.inference import InferredType, TextColumns, ValueClass
from longshore.shell.files.storage import Source

#: Rows that are decoded at a time.
_ROWS = 1 << 14


class _Number(str):
    """A number's own digits."""

    __slots__ = ()


_CLASSES = {_Number: ValueClass.NUMBER, str: ValueClass.TEXT, bool: ValueClass.BOOLEAN}


def json_columns(source: Source) -> TextColumns:
    """Infer the columns' types of a whole file; raises ``DataError`` for a line that is not a JSON object."""
    types: dict[str, InferredType] = {}
    classes: dict[str, ValueClass] = {}
    first = 0
    for rows in _chunks(source):
        for name in dict.fromkeys(key for row in rows for key in row):
            values = [row.get(name) for row in rows]
            _check_class(name, values, classes, first)
            types.setdefault(name, InferredType()).add(_texts(values), classes.get(name))
        first += len(rows)
    names = list(types)
    return TextColumns(types, lambda: _read(source, names))


def _read(source: Source, names: list[str]) -> Iterator[pa.RecordBatch]:
    for rows in _chunks(source):
        yield pa.RecordBatch.from_arrays([_texts([row.get(name) for row in rows]) for name in names], names=names)


def _chunks(source: Source) -> Iterator[list[dict[str, Any]]]:
    with source.text(newline="\n") as file:
        rows = (_row(line, number) for number, line in enumerate(file) if not line.isspace())
        while chunk := list(islice(rows, _ROWS)):
            yield chunk


def _row(line: str, number: int) -> dict[str, Any]:
    try:
        row = _DECODER.decode(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"line {number + 1} is not JSON: {error}", row=number) from error
    if isinstance(row, dict):
        return row
    raise DataError(f"line {number + 1} is not an object: a file of JSON has one object in each line", row=number)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError("an object has a key twice")
    return row


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


_DECODER = json.JSONDecoder(parse_int=_Number, parse_float=_Number, parse_constant=_refuse, object_pairs_hook=_object)


def _check_class(name: str, values: list[Any], classes: dict[str, ValueClass], first: int) -> None:
    """Check that a column's values are of one class; raises ``DataError`` for the first that is of another."""
    present = next((value for value in values if value is not None), None)
    if present is None:
        return
    expected = classes.setdefault(name, _class(type(present)))
    if {_class(kind) for kind in set(map(type, values)) - {type(None)}} == {expected}:
        return
    for index, value in enumerate(values):
        one = _class(type(value))
        if value is not None and one is not expected:
            row = first + index
            hint = "write all values of a column alike"
            message = f'column "{name}", row {row}: a {one.value} after a {expected.value}'
            raise DataError(message, column=name, row=row, hint=hint)


def _class(kind: type) -> ValueClass:
    return _CLASSES.get(kind, ValueClass.NESTED)


def _texts(values: list[Any]) -> pa.Array:
    if not any(isinstance(value, bool | list | dict) for value in values):
        return pa.array(values, pa.string())
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    """Return JSON with the digits that it came with, which ``json`` would put into quotes."""
    match value:
        case None:
            return "null"
        case bool() | _Number():
            return _text(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case list():
            return f"[{','.join(map(_json, value))}]"
        case _:
            return "{" + ",".join(f"{_json(str(key))}:{_json(inner)}" for key, inner in value.items()) + "}"
