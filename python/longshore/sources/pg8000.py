"""A connection of pg8000's, as SQLAlchemy opens it, which hands on the texts that its server sends."""

import io
import socket
import struct
from collections.abc import Sequence
from typing import Any, Literal

from pg8000 import core, exceptions

from longshore import errors
from longshore.sources.postgresql import ClientSession, Column, Texts

_STATUS: dict[bytes, Literal["none", "open", "failed", "lost"]] = {b"I": "none", b"T": "open", b"E": "failed"}
#: The kinds of errors, of which it has one, by the class of their SQLSTATE; others are the server's.
_KINDS: dict[str, type[errors.Error]] = {
    **dict.fromkeys(("21", "22"), errors.DataError),
    **dict.fromkeys(("23", "44"), errors.IntegrityError),
    **dict.fromkeys(("24", "25", "2B", "2D"), errors.InternalError),
    **dict.fromkeys(("26", "34", "3D", "3F", "42"), errors.ProgrammingError),
    "0A": errors.NotSupportedError,
}
#: Seconds for a request to stop.
_ELSEWHERE = 2
#: The code that asks a server to stop a statement, in place of a protocol's version.
_CANCEL = 80877102


class _Texts(dict[int, Any]):
    """Converters of cells: none."""

    def __missing__(self, _oid: int) -> Any:
        return str


class Session(ClientSession):
    """One connection, whose messages go by pg8000's own functions; it has texts alone."""

    failure = (exceptions.Error, OSError)
    has_binary = False
    #: The OIDs of the types of the parameters.
    _oids: Sequence[int] = ()

    def _setting(self, name: str) -> str | None:
        value: str | None = self.connection.parameter_statuses.get(name)
        return value

    def _status(self) -> Literal["none", "open", "failed", "lost"]:
        connection = self.connection
        return (
            "lost" if connection._usock is None else _STATUS.get(bytes(connection._transaction_status or b"I"), "lost")
        )

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Give the rows of a query, which here are lists, as tuples."""
        return [tuple(row) for row in super().rows(query)]

    def _send(self, command: str, values: Sequence[bytes | None] = (), *, is_binary: bool = False) -> Texts:
        del is_binary  # it has texts alone, and the core is told so
        connection, converters = self.connection, self.connection.pg_types
        bound = [None if value is None else value.decode() for value in values]
        connection.pg_types = _Texts()
        try:
            done = connection.execute_unnamed(command, vals=bound, oids=self._oids if values else ())
        finally:
            connection.pg_types = converters
        return Texts(len(done.columns or []), done.rows or [])

    def _describe(self, query: str) -> tuple[list[Column], list[int]]:
        oids: list[int] = []
        connection, context = self.connection, core.Context(query)

        def note(data: bytes, _context: object) -> None:
            oids.extend(struct.unpack_from(f"!{len(data) // 4}I", data, 2))

        handlers = connection.message_types
        connection.message_types = {**handlers, core.PARAMETER_DESCRIPTION: note}
        try:
            connection.send_PARSE(b"\0", query)
            connection.send_DESCRIBE_STATEMENT(b"\0")
            core._write(connection._sock, core.SYNC_MSG)
            core._flush(connection._sock)
            connection.handle_messages(context)
        finally:
            connection.message_types = handlers
        self._oids = oids
        names = ("table_oid", "column_attrnum", "type_oid", "type_size", "type_modifier")
        told = context.columns or []
        return [(each["name"].encode(), *(int(each[name]) for name in names)) for each in told], oids

    def _copy(self, statement: str, rows: bytes) -> None:
        self.connection.execute_unnamed(statement, stream=io.BytesIO(rows))

    def translate(self, error: Any) -> errors.Error:
        """Give Longshore's exception for the client's, whose only argument has the server's fields."""
        told = error.args[0] if error.args else None
        if not isinstance(told, dict):
            return errors.OperationalError(f"the connection to the server is lost: {error}", hint="connect again")
        text = "\n".join(filter(None, (told.get("M"), told.get("D"))))
        state = told.get("C", "")
        return _KINDS.get(state[:2], errors.OperationalError)(text, sqlstate=state, hint=told.get("H"))

    def cancel(self) -> None:
        """Stop what runs, by a connection of its own, which says nothing but that."""
        told = self.connection._usock
        with socket.socket(told.family) as other:
            other.settimeout(_ELSEWHERE)
            other.connect(told.getpeername())
            other.sendall(struct.pack("!ii", 16, _CANCEL) + self.connection._backend_key_data)
            # Its end says that the server has passed it on.
            other.recv(1)


#: Gives a session over a connection of the caller's, which stays open.
adopt = Session
