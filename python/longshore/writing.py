"""One write, from its arguments to its end."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from longshore import _core
from longshore.connection import Source, source
from longshore.errors import InterfaceError
from longshore.frames.inputs import arrow_streams
from longshore.options import Options
from longshore.parameters import is_list_of_texts, seconds
from longshore.progress import reporting
from longshore.texts import column_name, display, name_text, table_text

__all__ = ["Destination", "destination", "write"]

_MODES = ("fail", "append", "replace", "truncate", "upsert")
#: Of other libraries.
_OTHER_MODES = {
    "delete_rows": 'if_exists="truncate" replaces the rows, and keeps the table',
    "create": 'if_exists="fail" makes the table',
    "create_append": 'make the table first, then if_exists="append"',
}
#: Those that make the table.
_MAKING = ("fail", "replace")

#: More connections than that are a mistake.
_MOST_SESSIONS = 256
_MOST_ROWS = 2**31 - 1

_IN_QUOTES = re.compile(r'"(?:[^"]|"")*"')


class Destination(TypedDict):
    """Where rows go and how, as the core takes it."""

    source: Source
    schema: str | None
    table: str
    if_exists: str
    key: list[str]
    types: list[tuple[str, str]]
    nested: str
    sessions: int
    most_rows: int | None


def write(
    data: Any,
    table: object,
    conn: object,
    switch: _core.Switch,
    *,
    if_exists: str = "fail",
    key: str | Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    index: bool = False,
    columns: Sequence[str] | None = None,
    batch_size: int | None = None,
    parallel: int = 1,
    timeout: float | None = None,
    progress: object = False,
    options: Mapping[str, Any] | Options | None = None,
) -> int:
    """Do what ``write_sql`` says, until ``switch`` is thrown."""
    chosen = Options.of(options)
    into = destination(
        table,
        conn,
        if_exists=if_exists,
        key=key,
        types=types,
        options=chosen,
        parallel=parallel,
        batch_size=batch_size,
    )
    if not isinstance(index, bool):
        message = f"index is True or False, not {display(index)}"
        raise InterfaceError(message)
    with reporting(progress) as report:
        frames = arrow_streams(data, index=index, columns=_columns(columns), options=chosen)
        return _core.write(frames, into=into, timeout=seconds(timeout), progress=report, switch=switch)


def destination(
    table: object,
    conn: object,
    *,
    if_exists: str,
    key: str | Sequence[str] | None,
    types: Mapping[str, str] | None,
    options: Options,
    parallel: int = 1,
    batch_size: int | None = None,
) -> Destination:
    """Check where rows are to go; raises ``InterfaceError`` for what is not a place."""
    if not isinstance(if_exists, str) or if_exists not in _MODES:
        hint = _OTHER_MODES.get(if_exists) if isinstance(if_exists, str) else None
        message = f"unknown if_exists {display(if_exists)}; choose one of {', '.join(_MODES)}"
        raise InterfaceError(message if hint is None else f"{message}\nHint: {hint}", hint=hint)
    schema, name = table_name(table)
    return Destination(
        source=source(conn, creates=if_exists in _MAKING),
        schema=schema,
        table=name,
        if_exists=if_exists,
        key=_key(key),
        types=_types(types),
        nested=options.nested,
        sessions=_number(parallel, _MOST_SESSIONS, "parallel is a number of connections"),
        most_rows=None if batch_size is None else _number(batch_size, _MOST_ROWS, "batch_size is a number of rows"),
    )


def table_name(given: object) -> tuple[str | None, str]:
    """Give a table's schema, if it has one, and its name.

    >>> table_name("boats"), table_name('harbour."boats.old"'), table_name(("harbour", "boats"))
    ((None, 'boats'), ('harbour', 'boats.old'), ('harbour', 'boats'))

    Raises ``InterfaceError`` for what names no table.
    """
    if isinstance(given, str):
        table_text(_IN_QUOTES.sub("", given), "table")
        parts = _parts(given)
    elif isinstance(given, tuple) and is_list_of_texts(given):
        parts = list(given)
    else:
        message = f"table is a name or a pair of schema and name, not {display(given)}"
        raise InterfaceError(message)
    if not all(parts) or any("\0" in part for part in parts):
        message = f"{display(given)} names no table: a part of it is empty, or holds a zero byte"
        raise InterfaceError(message)
    match [name_text(part, "the table's name") for part in parts]:
        case [name]:
            return None, name
        case [schema, name]:
            return schema, name
        case _:
            message = f"{display(given)} has {len(parts)} parts; write a name with a dot in double quotes: '\"a.b\"'"
            raise InterfaceError(message)


def _parts(text: str) -> list[str]:
    """Take a name apart at its dots; what is in double quotes is one part, in which two of them are one."""
    parts, rest = [], text
    while True:
        if rest.startswith('"'):
            part, rest = _quoted(rest[1:], text)
        else:
            end = rest.find(".")
            part, rest = (rest, "") if end < 0 else (rest[:end], rest[end:])
        parts.append(part)
        if not rest:
            return parts
        if not rest.startswith("."):
            message = f"{display(text)} names no table: after the closing quote comes a dot or the end"
            raise InterfaceError(message)
        rest = rest[1:]


def _quoted(rest: str, text: str) -> tuple[str, str]:
    part = ""
    while (end := rest.find('"')) >= 0:
        part += rest[:end]
        rest = rest[end + 1 :]
        if not rest.startswith('"'):
            return part, rest
        part += '"'
        rest = rest[1:]
    message = f"{display(text)} names no table: a double quote is not closed"
    raise InterfaceError(message)


def _number(given: object, most: int, what: str) -> int:
    # True is not a number of anything.
    if isinstance(given, int) and not isinstance(given, bool) and 0 < given <= most:
        return given
    message = f"{what} from 1 to {most}, not {display(given)}"
    raise InterfaceError(message)


def _key(key: str | Sequence[str] | None) -> list[str]:
    if key is None:
        return []
    names = [key] if isinstance(key, str) else list(key) if is_list_of_texts(key) else None
    if names is None or not names or len(set(names)) < len(names):
        message = f"key is a column's name or a list of different names, not {display(key)}"
        raise InterfaceError(message)
    return [name_text(name, "a name in key") for name in names]


def _columns(columns: Sequence[str] | None) -> list[str] | None:
    if columns is None:
        return None
    if isinstance(columns, str) or not is_list_of_texts(columns) or not columns or len(set(columns)) < len(columns):
        message = f"columns is a list of different names, not {display(columns)}"
        raise InterfaceError(message)
    return [column_name(name) for name in columns]


def _types(types: Mapping[str, str] | None) -> list[tuple[str, str]]:
    if types is None:
        return []
    if not isinstance(types, Mapping) or not is_list_of_texts([*types.keys(), *types.values()]):
        message = f"types is a dict from column to the database's type, not {display(types)}"
        raise InterfaceError(message)
    return [(name_text(name, "a name in types"), name_text(kind, "a type")) for name, kind in types.items()]
