"""Rows of Python objects, as lists of dicts, tuples or dataclasses, as a table."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from longshore.errors import InterfaceError
from longshore.frames.from_numpy import column, converted
from longshore.frames.libraries import missing
from longshore.frames.selected import selected
from longshore.frames.use import Wanted
from longshore.options import Options
from longshore.texts import column_name

try:
    import pyarrow as pa
except ImportError as error:
    raise missing(library="pyarrow", extra="arrow", purpose="writing rows of Python objects") from error


def table(rows: Sequence[Any], columns: Sequence[str] | None, options: Options) -> Any:
    """Give a ``pyarrow.Table`` of rows, whose columns are ``columns`` where they have no names of their own.

    Raises ``InterfaceError`` for rows without names, or with other ones, and as ``converted`` does.
    """
    values = _by_position(rows, columns) if rows and _is_plain(rows[0]) else _by_name(rows, columns)
    fields, arrays = converted({name: column(each, name) for name, each in values.items()}, options)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def scanned(rows: Sequence[Any], name: str, wanted: Wanted, options: Options) -> Any:
    """Give a ``pyarrow.Table`` of the columns that a query reads of a list of dicts; raises as ``table`` does."""
    from longshore.frames.from_arrow import of_columns

    keys = _keys(_records(rows))
    names = list(keys)
    chosen = [names[at] for at in selected(names, wanted(), name)]
    columns = {each: column([row.get(keys[each]) for row in rows], each) for each in chosen}
    fields, arrays = converted(columns, options)
    return of_columns(fields, arrays, rows, name)


def _by_name(rows: Sequence[Any], columns: Sequence[str] | None) -> dict[str, list[Any]]:
    """Give the values under each key of dicts; one that a row lacks is NULL."""
    records = _records(rows)
    keys = _keys(records)
    if columns is not None:
        if unnamed := [name for name in keys if name not in columns]:
            message = f"the rows have {', '.join(map(repr, unnamed))}, which columns does not name"
            raise InterfaceError(message)
        keys = {name: keys.get(name, name) for name in columns}
    if not keys:
        hint = "name them: columns=[...]"
        what = "the rows have no columns" if rows else "the list has no rows, so there are no columns to write"
        message = f"{what}\nHint: {hint}"
        raise InterfaceError(message, hint=hint)
    return {name: [record.get(key) for record in records] for name, key in keys.items()}


def _keys(records: Sequence[Mapping[Any, Any]]) -> dict[str, Any]:
    """Give the keys that any row has, by the columns' names."""
    keys = dict.fromkeys(key for record in records for key in record)
    named = {column_name(key): key for key in keys}
    if len(named) < len(keys):
        message = "two keys of the rows have one name once they are texts"
        raise InterfaceError(message)
    return named


def _records(rows: Sequence[Any]) -> Sequence[Mapping[Any, Any]]:
    if all(isinstance(row, Mapping) for row in rows):
        return rows
    return [_record(row, at) for at, row in enumerate(rows)]


def _record(row: Any, at: int) -> Mapping[Any, Any]:
    if isinstance(row, Mapping):
        return row
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    message = f"row {at} is of type {type(row).__name__}, and the first one is a dict or a dataclass"
    raise InterfaceError(message, row=at)


def _by_position(rows: Sequence[Any], columns: Sequence[str] | None) -> dict[str, list[Any]]:
    names = getattr(rows[0], "_fields", None) if columns is None else columns
    if names is None:
        hint = 'name them: columns=["id", "name"]'
        message = f"the rows are tuples, which have no names for their columns\nHint: {hint}"
        raise InterfaceError(message, hint=hint)
    for at, row in enumerate(rows):
        if not _is_plain(row) or (columns is None and getattr(row, "_fields", None) != names):
            message = f"row {at} is of type {type(row).__name__}, the first one is {type(rows[0]).__name__}"
            raise InterfaceError(message, row=at)
        if len(row) != len(names):
            message = f"row {at} has {len(row)} values, and there are {len(names)} columns"
            raise InterfaceError(message, row=at)
    values = list(zip(*rows, strict=True))
    return {column_name(name): list(each) for name, each in zip(names, values, strict=True)}


def _is_plain(row: object) -> bool:
    """Whether the values of a row are told apart by their places."""
    return isinstance(row, tuple | list)
