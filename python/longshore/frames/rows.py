"""Rows of Python objects, as lists of dicts, tuples or dataclasses, as a table."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from longshore.errors import InterfaceError
from longshore.frames import columns as arrow
from longshore.frames.pushdown import Projection, column_positions
from longshore.options import Options
from longshore.texts import column_name


def table(rows: Sequence[Any], columns: Sequence[str] | None, options: Options) -> Any:
    """Return a ``pyarrow.Table`` of rows, whose columns are ``columns`` where they have no names of their own.

    Raises ``InterfaceError`` for rows without names, or with other ones, and as ``columns.table`` does.
    """
    values = _by_position(rows, columns) if rows and _is_sequence(rows[0]) else _by_name(rows, columns)
    return arrow.table({name: arrow.column(each, name) for name, each in values.items()}, options)


def engine_table(rows: Sequence[Any], name: str, projection: Projection, options: Options) -> Any:
    """Return a ``pyarrow.Table`` of the columns that a query reads of a list of dicts; raises as ``table`` does."""
    from longshore.frames.scan import table_of

    keys = _keys(_records(rows))
    names = list(keys)
    read = [names[at] for at in column_positions(names, projection(), name)]
    columns = {each: arrow.column([row.get(keys[each]) for row in rows], each) for each in read}
    fields, arrays = arrow.to_arrow(columns, options)
    return table_of(fields, arrays, rows, name)


def _by_name(rows: Sequence[Any], columns: Sequence[str] | None) -> dict[str, list[Any]]:
    """Return the values under each key of dicts; one that a row lacks is NULL."""
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
    """Return the keys that any row has, by the columns' names."""
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
        if not _is_sequence(row) or (columns is None and getattr(row, "_fields", None) != names):
            message = f"row {at} is of type {type(row).__name__}, the first one is {type(rows[0]).__name__}"
            raise InterfaceError(message, row=at)
        if len(row) != len(names):
            message = f"row {at} has {len(row)} values, and there are {len(names)} columns"
            raise InterfaceError(message, row=at)
    values = list(zip(*rows, strict=True))
    return {column_name(name): list(each) for name, each in zip(names, values, strict=True)}


def _is_sequence(row: object) -> bool:
    """Whether a row has its values by position."""
    return isinstance(row, tuple | list)
