"""JSON lines as columns of text: numbers in their own digits, nested values as JSON."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, NoReturn

import pyarrow as pa

from longshore.errors import DataError
from longshore.shell.files.guess import Class, Guess
from longshore.shell.files.source import Source
from longshore.shell.files.typed import Texts

__all__ = ["json_texts"]

_ROWS = 1 << 14


class _Number(str):
    """A number's own digits."""

    __slots__ = ()


_CLASSES = {_Number: Class.NUMBER, str: Class.TEXT, bool: Class.WORD}


def json_texts(source: Source) -> Texts:
    """Look through a file; raises ``DataError`` for a line that is no object of JSON."""
    guesses: dict[str, Guess] = {}
    classes: dict[str, Class] = {}
    first = 0
    for rows in _chunks(source):
        for name in dict.fromkeys(key for row in rows for key in row):
            values = [row.get(name) for row in rows]
            _agree(name, values, classes, first)
            one = frozenset({classes[name]}) if name in classes else frozenset(Class)
            guesses.setdefault(name, Guess()).look(_texts(values), one)
        first += len(rows)
    names = list(guesses)
    return Texts(guesses, lambda: _read(source, names))


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
        message = f"line {number + 1} is not JSON: {error}"
        raise DataError(message, row=number) from error
    if isinstance(row, dict):
        return row
    message = f"line {number + 1} is not an object: a file of JSON has one object in each line"
    raise DataError(message, row=number)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        message = "an object has a key twice"
        raise ValueError(message)
    return made


def _refuse(word: str) -> NoReturn:
    message = f"{word} is not a JSON number"
    raise ValueError(message)


_DECODER = json.JSONDecoder(parse_int=_Number, parse_float=_Number, parse_constant=_refuse, object_pairs_hook=_object)


def _agree(name: str, values: list[Any], classes: dict[str, Class], first: int) -> None:
    """See that a column's values are of one class; raises ``DataError`` for the first that is of another."""
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
            message = f'column "{name}", row {row}: a {one.value} after a {expected.value}\nHint: {hint}'
            raise DataError(message, column=name, row=row, hint=hint)


def _class(kind: type) -> Class:
    return _CLASSES.get(kind, Class.NESTED)


def _texts(values: list[Any]) -> pa.Array:
    if not any(isinstance(value, bool | list | dict) for value in values):
        return pa.array(values, pa.string())
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    """Give JSON with the digits that it came with, which ``json`` would put into quotes."""
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
