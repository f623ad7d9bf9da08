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
#: Without a length: char and bit have 1 by default.
_PARAMETERS = (
    "SELECT t::oid::bigint, format_type(t::oid, -1) FROM pg_prepared_statements, "
    "unnest(parameter_types) WITH ORDINALITY AS p(t, n) WHERE name = '{}' ORDER BY n"
)
_OTHER = "use postgresql+psycopg, or a SELECT"


def adopt(connection: Any, owner: object = None) -> "Session":
    """Give a session over a connection of the caller's, which stays open."""
    return Session(connection, owner)


class Session(ClientSession):
    """One connection, whose server describes a statement by a cursor of its own, and is told values as literals."""

    failure = psycopg2.Error
    has_binary = False
    #: The OIDs of the types of the columns, which may be users', and the names of those of the parameters.
    _columns: tuple[int, ...] = ()
    _parameter_types: Sequence[str] = ()

    def _setting(self, name: str) -> str | None:
        # Its own `encoding` is that of the beginning.
        value: str | None = self.connection.get_parameter_status(name)
        return value

    def _status(self) -> Literal["none", "open", "failed", "lost"]:
        return "lost" if self.connection.closed else _STATUS.get(self.connection.info.transaction_status, "lost")

    def opened(self) -> Any:
        """Open a cursor that makes tuples, whatever the connection makes."""
        self._close_cursor()
        self.cursor = self.connection.cursor(cursor_factory=extensions.cursor)
        return self.cursor

    def _send(self, command: str, values: Sequence[bytes | None] = (), *, is_binary: bool = False) -> Any:
        del is_binary  # it has texts alone, and the core is told so
        self.opened().execute(_core.postgresql_inlined(command, self._literals(values)))

    def _ask(self, query: str, *, is_binary: bool = False) -> Any:
        del is_binary  # as above
        cursor = self.opened()
        texts = extensions.new_type(_BUILTIN + self._columns, "TEXTS", lambda value, _cursor: value)
        extensions.register_type(texts, cursor)
        cursor.execute(query)
        return _Result(cursor)

    def _describe(self, query: str) -> tuple[Any, list[int]]:
        name = f"longshore_{secrets.token_hex(8)}"
        try:
            self._send(f"PREPARE {name} AS {query}")
            parameters = self.rows(_PARAMETERS.format(name))
            self._send(f"DEALLOCATE {name}")
            self._parameter_types = [kind for _, kind in parameters]
            self._send(f"DECLARE {name} NO SCROLL CURSOR FOR {query}", [None] * len(parameters))
        except psycopg2.Error as error:
            if error.pgcode not in NO_CURSOR:
                raise
            message = (
                f"psycopg2 tells the columns of such a statement only once it has run ({error.diag.message_primary})"
            )
            raise NotSupportedError(message, hint=_OTHER) from None
        described = self._ask(f"FETCH 0 FROM {name}")
        self._send(f"CLOSE {name}")
        self._columns = tuple(described.ftype(at) for at in range(described.nfields))
        return described, [oid for oid, _ in parameters]

    def _literals(self, values: Sequence[bytes | None]) -> list[str]:
        # Else each would be of the type of what stands around it.
        kinds = zip(values, self._parameter_types, strict=True) if values else ()
        return [f"(CAST({_literal(value)} AS {kind}))" for value, kind in kinds]

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
