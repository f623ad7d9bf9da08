"""A connection of psycopg2's, such as SQLAlchemy's, which hands on the texts that its server sends."""

import io
import secrets
from collections.abc import Sequence
from typing import Any, Literal

import psycopg2
from psycopg2 import extensions

from longshore import _core
from longshore.errors import NotSupportedError
from longshore.sources.postgresql import NO_CURSOR, ClientSession, Column, Texts

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

    def open_cursor(self) -> Any:
        """Open a cursor that makes tuples, whatever the connection makes."""
        self._close_cursor()
        self.cursor = self.connection.cursor(cursor_factory=extensions.cursor)
        return self.cursor

    def _send(self, command: str, values: Sequence[bytes | None] = (), *, is_binary: bool = False) -> Any:
        del is_binary  # it has texts alone, and the core is told so
        kinds = zip(values, self._parameter_types, strict=True) if values else ()
        # Without its type, each would be of that of what stands around it.
        literals = [f"(CAST({_literal(value)} AS {kind}))" for value, kind in kinds]
        self.open_cursor().execute(_core.postgresql_inlined(command, literals))

    def _ask(self, query: str, *, is_binary: bool = False) -> Texts:
        del is_binary  # as above
        cursor = self._text_cursor(query)
        return Texts(len(cursor.description or []), cursor.fetchall() if cursor.description else [])

    def _text_cursor(self, query: str) -> Any:
        """Run a query whose cells come as the server has sent them."""
        cursor = self.open_cursor()
        texts = extensions.new_type(_BUILTIN + self._columns, "TEXTS", lambda value, _cursor: value)
        extensions.register_type(texts, cursor)
        cursor.execute(query)
        return cursor

    def _describe(self, query: str) -> tuple[list[Column], list[int]]:
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
        columns = [_column(each) for each in self._text_cursor(f"FETCH 0 FROM {name}").description or []]
        self._send(f"CLOSE {name}")
        self._columns = tuple(kind for _, _, _, kind, _, _ in columns)
        return columns, [oid for oid, _ in parameters]

    def _copy(self, statement: str, rows: bytes) -> None:
        self.open_cursor().copy_expert(statement, io.BytesIO(rows))


#: Gives a session over a connection of the caller's, which stays open.
adopt = Session


def _column(told: Any) -> Column:
    kind, size = told.type_code, told.internal_size
    modifier = size + 4 if size is not None and size > 0 else -1
    if kind == _NUMERIC:
        # It is told in parts.
        is_free = told.precision is None or told.precision > _MOST_DIGITS
        modifier = -1 if is_free else (told.precision << 16 | told.scale) + 4
    return told.name.encode(), told.table_oid or 0, told.table_column or 0, kind, -1 if modifier > 0 else 0, modifier


def _literal(value: bytes | None) -> str:
    if value is None:
        return "NULL"
    return "E'" + value.decode().replace("\\", "\\\\").replace("'", "''") + "'"
