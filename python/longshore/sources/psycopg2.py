"""A connection of psycopg2's, such as SQLAlchemy's, which hands on the texts that its server sends."""

import io
import secrets
from collections.abc import Sequence
from typing import Any, Literal

import psycopg2
from psycopg2 import extensions

from longshore import _core
from longshore.errors import NotSupportedError
from longshore.sources.postgresql import NO_CURSOR, ClientSession, scheme

__all__ = ["adopt", "scheme"]

_STATUS: dict[int, Literal["none", "open", "failed", "lost"]] = {
    extensions.TRANSACTION_STATUS_IDLE: "none",
    extensions.TRANSACTION_STATUS_INTRANS: "open",
    extensions.TRANSACTION_STATUS_INERROR: "failed",
}
#: The OIDs that PostgreSQL has given to types of its own; those of users are above.
_BUILTIN = tuple(range(1, 10_000))
_NUMERIC = 1700
#: Those that a numeric can be declared with; of none, the client takes -1 apart.
_MOST_DIGITS = 1000
_PARAMETERS = "SELECT t::oid::bigint, t::text FROM pg_prepared_statements, unnest(parameter_types) t WHERE name = '{}'"
_OTHER = "use postgresql+psycopg, or a SELECT"


def adopt(connection: Any, *, is_open: bool) -> "Session":
    """Give a session over a connection of the caller's, which stays open."""
    return Session(connection, is_open=is_open)


class Session(ClientSession):
    """One connection, whose server describes a statement by a cursor of its own, and is told values as literals."""

    failure = psycopg2.Error
    has_binary = False
    #: The OIDs of the types of the columns that are fetched; PostgreSQL's own until then.
    columns: tuple[int, ...] = ()

    def _is_utf8(self) -> bool:
        return bool(self.connection.encoding == "UTF8")

    def _status(self) -> Literal["none", "open", "failed", "lost"]:
        return "lost" if self.connection.closed else _STATUS.get(self.connection.info.transaction_status, "lost")

    def _begin_as_client(self) -> None:
        """Leave it to the client, which begins one with its next statement."""

    def opened(self) -> Any:
        """Open a cursor that makes tuples, whatever the connection makes."""
        self._close_cursor()
        self.cursor = self.connection.cursor(cursor_factory=extensions.cursor)
        return self.cursor

    def _send(self, command: str, values: Sequence[bytes | None] = (), *, is_binary: bool = False) -> Any:
        del is_binary  # it has texts alone, and the core is told so
        self.opened().execute(_core.postgresql_inlined(command, [_literal(value) for value in values]))

    def _ask(self, query: str, *, is_binary: bool = False) -> Any:
        del is_binary  # as above
        cursor = self.opened()
        texts = extensions.new_type(self.columns or _BUILTIN, "TEXTS", lambda value, _cursor: value)
        extensions.register_type(texts, cursor)
        cursor.execute(query)
        return _Result(cursor)

    def _describe(self, query: str) -> tuple[Any, list[int]]:
        name = f"longshore_{secrets.token_hex(8)}"
        try:
            self._send(f"PREPARE {name} AS {query}")
            parameters = self.rows(_PARAMETERS.format(name))
            self._send(f"DEALLOCATE {name}")
            nulls = [f"NULL::{kind}" for _, kind in parameters]
            self._send(_core.postgresql_inlined(f"DECLARE {name} NO SCROLL CURSOR FOR {query}", nulls))
        except psycopg2.Error as error:
            if error.pgcode not in NO_CURSOR:
                raise
            message = (
                f"psycopg2 tells the columns of such a statement only once it has run ({error.diag.message_primary})"
            )
            raise NotSupportedError(message, hint=_OTHER) from None
        described = self._ask(f"FETCH 0 FROM {name}")
        self._send(f"CLOSE {name}")
        self._kinds = tuple(described.ftype(at) for at in range(described.nfields))
        return described, [oid for oid, _ in parameters]

    def fetch(self, rows: int) -> tuple[Any, int, int, bool]:
        """Give the next rows, of types that may be users'."""
        self.columns = self._kinds
        return super().fetch(rows)

    def _forget(self) -> None:
        super()._forget()
        self.columns = ()

    def _copy(self, statement: str, rows: bytes) -> None:
        self.opened().copy_expert(statement, io.BytesIO(rows))

    def cancel(self) -> None:
        """Stop what runs."""
        self.connection.cancel()


class _Result:
    """A cursor's rows, in libpq's words."""

    def __init__(self, cursor: Any) -> None:
        self._columns = cursor.description or []
        self._rows = cursor.fetchall() if self._columns else []
        self.nfields, self.ntuples = len(self._columns), len(self._rows)

    def get_value(self, row: int, column: int) -> bytes | None:
        value = self._rows[row][column]
        return None if value is None else value.encode()

    def fname(self, at: int) -> bytes:
        name: str = self._columns[at].name
        return name.encode()

    def ftable(self, at: int) -> int:
        return self._columns[at].table_oid or 0

    def ftablecol(self, at: int) -> int:
        return self._columns[at].table_column or 0

    def ftype(self, at: int) -> int:
        oid: int = self._columns[at].type_code
        return oid

    def fsize(self, at: int) -> int:
        return -1 if self.fmod(at) > 0 else 0

    def fmod(self, at: int) -> int:
        """Give the modifier, which is told in parts: of numeric, and as the length of what has one."""
        column = self._columns[at]
        if column.type_code == _NUMERIC:
            is_free = column.precision is None or column.precision > _MOST_DIGITS
            return -1 if is_free else (column.precision << 16 | column.scale) + 4
        return column.internal_size + 4 if column.internal_size is not None and column.internal_size > 0 else -1


def _literal(value: bytes | None) -> str:
    if value is None:
        return "NULL"
    return "E'" + value.decode().replace("\\", "\\\\").replace("'", "''") + "'"
