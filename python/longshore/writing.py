"""One write, from its arguments to its end."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from longshore import _core
from longshore.connection import Source, source
from longshore.errors import InterfaceError
from longshore.frames.given import given
from longshore.options import Options
from longshore.parameters import is_list_of_texts, seconds
from longshore.progress import reporting
from longshore.schema import encodable

__all__ = ["Destination", "destination", "write"]

_MODES = ("fail", "append", "replace", "truncate", "upsert")

#: More connections than that are a mistake.
_MOST_SESSIONS = 256
_MOST_ROWS = 2**31 - 1


class Destination(TypedDict):
    """Where rows go and how, as the core takes it."""

    source: Source
    schema: str | None
    table: str
    if_exists: str
    key: list[str]
    types: list[tuple[str, str]]
    sessions: int
    most_rows: int | None


def write(
    data: Any,
    into: Destination,
    *,
    index: bool,
    timeout: float | None,
    progress: object,
    options: Mapping[str, Any] | Options | None,
) -> int:
    """Do what ``write_sql`` says."""
    chosen = Options.of(options)
    if not isinstance(index, bool):
        message = f"index is True or False, not {index!r}"
        raise InterfaceError(message)
    with reporting(progress) as report:
        frames = given(data, index=index, options=chosen)
        return _core.write(frames, into=into, timeout=seconds(timeout), progress=report, switch=_core.Switch())


def destination(
    table: object,
    conn: object,
    *,
    if_exists: str,
    key: str | Sequence[str] | None,
    types: Mapping[str, str] | None,
    parallel: int = 1,
    batch_size: int | None = None,
) -> Destination:
    """Check where rows are to go; raises ``InterfaceError`` for what is no place."""
    if if_exists not in _MODES:
        message = f"unknown if_exists {if_exists!r}; choose one of {', '.join(_MODES)}"
        raise InterfaceError(message)
    schema, name = table_name(table)
    return Destination(
        source=source(conn),
        schema=schema,
        table=name,
        if_exists=if_exists,
        key=_key(key),
        types=_types(types),
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
        parts = _parts(given)
    elif isinstance(given, tuple) and is_list_of_texts(given):
        parts = list(given)
    else:
        message = f"table is a name or a pair of schema and name, not {given!r}"
        raise InterfaceError(message)
    if not all(parts) or any("\0" in part for part in parts):
        message = f"{given!r} names no table: a part of it is empty, or holds a zero byte"
        raise InterfaceError(message)
    match [encodable(part, "the table's name") for part in parts]:
        case [name]:
            return None, name
        case [schema, name]:
            return schema, name
        case _:
            message = f"{given!r} has {len(parts)} parts; write a name with a dot in double quotes: '\"a.b\"'"
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
            message = f"{text!r} names no table: after the closing quote comes a dot or the end"
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
    message = f"{text!r} names no table: a double quote is not closed"
    raise InterfaceError(message)


def _number(given: object, most: int, what: str) -> int:
    # True is no number of anything.
    if isinstance(given, int) and not isinstance(given, bool) and 0 < given <= most:
        return given
    message = f"{what} from 1 to {most}, not {given!r}"
    raise InterfaceError(message)


def _key(key: str | Sequence[str] | None) -> list[str]:
    if key is None:
        return []
    names = [key] if isinstance(key, str) else list(key) if is_list_of_texts(key) else None
    if names is None or not names or len(set(names)) < len(names):
        message = f"key is a column's name or a list of different names, not {key!r}"
        raise InterfaceError(message)
    return [encodable(name, "a name in key") for name in names]


def _types(types: Mapping[str, str] | None) -> list[tuple[str, str]]:
    if types is None:
        return []
    if not isinstance(types, Mapping) or not is_list_of_texts([*types.keys(), *types.values()]):
        message = f"types is a dict from column to the database's type, not {types!r}"
        raise InterfaceError(message)
    return [(encodable(name, "a name in types"), encodable(kind, "a type")) for name, kind in types.items()]
