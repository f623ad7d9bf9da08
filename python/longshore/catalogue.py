"""Questions of a connection to its database, which leave no transaction open where none was."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from longshore import _core
from longshore.arguments import table_name
from longshore.errors import NotSupportedError
from longshore.texts import quoted_name
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
    with separate_cursor(connection):
        info = connection.info()
    return info["current_catalog"], info["current_schema"]


def calling(connection: "Connection", procedure: str, parameters: Iterable[str]) -> str:
    """Give the statement that calls a procedure, with named parameters."""
    scheme = connection._scheme  # noqa: SLF001  as below
    if scheme not in _CALLS:
        raise NotSupportedError(f"{scheme} has no stored procedures", hint="run the statements themselves")
    schema, name = table_name(procedure)
    called = ".".join(quoted_name(part, _CALLS[scheme]) for part in (schema, name) if part is not None)
    places = ", ".join(f":{parameter}" for parameter in parameters)
    if scheme in _POSTGRESQL:
        with separate_cursor(connection) as cursor:
            kinds = cursor.execute(_KIND, {"schema": schema, "name": name}).fetchall()
        if ("f",) in kinds:
            return f"SELECT * FROM {called}({places})"  # noqa: S608  the name is in quotes
    return f"CALL {called}({places})"


def has_table(connection: "Connection", table: str | tuple[str, str]) -> bool:
    """Whether a statement finds a table or view by this name."""
    schema, name = table_name(table)
    with separate_cursor(connection):
        return _core.has_table(*_asking(connection), schema, name)


def temporary_schema(connection: "Connection") -> str:
    """Give the schema of the session's temporary tables; raises ``NotSupportedError`` where rows make none."""
    with separate_cursor(connection):
        return _core.temporary_schema(*_asking(connection))


def _asking(connection: "Connection") -> tuple[_core.Connection, dict[str, Any]]:
    """Give the session that is asked, and how long to wait for it."""
    return connection._free(), {"timeout": None, "cancel_handle": own_cancel_handle()}  # noqa: SLF001  as below


@contextlib.contextmanager
def separate_cursor(connection: "Connection") -> "Iterator[Cursor]":
    """Give a cursor for a question, after which no transaction is open where none was."""
    was_open = connection.in_transaction
    try:
        with connection.cursor() as cursor:
            yield cursor
    finally:
        if not was_open:
            connection.rollback()
