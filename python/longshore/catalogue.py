"""Questions of a connection to its database, which leave no transaction open where none was."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from longshore import _core
from longshore.arguments import table_name
from longshore.errors import NotSupportedError
from longshore.threads import own_cancel_handle

if TYPE_CHECKING:
    from longshore.connection import Connection
    from longshore.dbapi import Cursor

#: The quote around names, of sources that have procedures.
_CALLS = {"postgresql": '"', "postgres": '"', "mysql": "`", "mariadb": "`"}
_POSTGRESQL = {"postgresql", "postgres"}
_KIND = (
    "SELECT p.prokind::text FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace "
    "WHERE p.proname = :name AND CASE WHEN CAST(:schema AS text) IS NULL THEN pg_catalog.pg_function_is_visible(p.oid) "
    "ELSE n.nspname = :schema END"
)


def current_place(connection: "Connection") -> tuple[str | None, str | None]:
    """Give the catalog and the schema that the session is in; raises ``NotSupportedError`` where they are not known."""
    with aside(connection):
        info = connection.info()
    return info["current_catalog"], info["current_schema"]


def calling(connection: "Connection", procedure: str, parameters: Iterable[str]) -> str:
    """Give the statement that calls a procedure, with named parameters."""
    scheme = _scheme(connection)
    if scheme not in _CALLS:
        hint = "run the statements themselves"
        raise NotSupportedError(f"{scheme} has no stored procedures", hint=hint)
    schema, name = table_name(procedure)
    quoted = _quoted(schema, name, _CALLS[scheme])
    places = ", ".join(f":{parameter}" for parameter in parameters)
    if scheme in _POSTGRESQL:
        with aside(connection) as cursor:
            kinds = cursor.execute(_KIND, {"schema": schema, "name": name}).fetchall()
        if ("f",) in kinds:
            return f"SELECT * FROM {quoted}({places})"  # noqa: S608  the name is in quotes
    return f"CALL {quoted}({places})"


def has_table(connection: "Connection", table: str | tuple[str, str]) -> bool:
    """Whether there is a table or view of this name."""
    schema, name = table_name(table)
    scheme = _scheme(connection)
    if scheme in _POSTGRESQL:
        with aside(connection) as cursor:
            query = "SELECT to_regclass(:name) IS NOT NULL"
            return cursor.execute(query, {"name": _quoted(schema, name, '"')}).fetchall() == [(True,)]
    if schema is None and scheme != "sqlite":
        schema = current_place(connection)[1]
    with aside(connection):
        core = connection._free()  # noqa: SLF001  the two belong together
        reading = _core.tables(source=core, timeout=None, cancel_handle=own_cancel_handle())
        columns, _ = reading.columns(backend="numpy", arrow_strings=False, json_objects=False)
    _, schemas, names, _ = (list(column.data) for column in columns)
    # SQLite's names, and MySQL's on some systems, are the same in either case.
    known = {(each, found.casefold()) for each, found in zip(schemas, names, strict=True)}
    return any(found == name.casefold() and schema in {None, each} for each, found in known)


@contextlib.contextmanager
def aside(connection: "Connection") -> "Iterator[Cursor]":
    """Give a cursor for a question, after which no transaction is open where none was."""
    was_open = connection.in_transaction
    try:
        with connection.cursor() as cursor:
            yield cursor
    finally:
        if not was_open:
            connection.rollback()


def _scheme(connection: "Connection") -> str:
    return connection._scheme  # noqa: SLF001  as above


def _quoted(schema: str | None, name: str, quote: str) -> str:
    parts = [name] if schema is None else [schema, name]
    return ".".join(quote + part.replace(quote, quote * 2) + quote for part in parts)
