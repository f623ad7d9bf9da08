"""What sessions over PostgreSQL's clients share: the caller's transaction, and the bytes that the server sends."""

import secrets
import struct
from collections.abc import Sequence
from typing import Any, Literal

from longshore import _core, errors
from longshore.sources.dialects import POSTGRESQL
from longshore.sources.session import DriverSession

_UTF8 = "SET client_encoding TO 'UTF8'"
_GUARD = "longshore_guard"
#: What DECLARE says of a statement that returns rows and is not a SELECT, or changes some within it.
NO_CURSOR = {"42601", "0A000"}


def scheme(_connection: object) -> str:
    """Give the scheme of PostgreSQL."""
    return "postgresql"


class ClientSession(DriverSession):
    """One connection of a client's, in the transaction that is open on it, or between two."""

    is_own = False
    not_split = "a client's connection is one connection: give the URL"
    dialect = POSTGRESQL
    #: The server's cursor of the rows that are read, or all rows of a statement that has none, and how many were taken.
    name: str | None = None
    result: Any = None
    taken = 0
    #: Whether rows can come in the protocol's binary forms, and whether these do.
    has_binary, is_binary = True, False
    #: Whether the result began the transaction, and whether it has a savepoint.
    begins = is_guarded = False
    #: Whether the client begins transactions by itself, and is to do so again.
    was_manual = False

    def __init__(self, connection: Any, *, is_open: bool) -> None:
        """Keep the connection; where a transaction ``is_open`` that it has not begun yet, begin it."""
        super().__init__(connection)
        if not self._is_utf8():
            message = f"the session's client_encoding is not UTF8, in which text is read\nHint: {_UTF8}"
            raise errors.InterfaceError(message, hint=_UTF8)
        self._types: dict[str, list[tuple[int, int]]] = {}
        is_idle = self._status() == "none"
        self._is_free = is_idle and not (is_open and not connection.autocommit)
        self.transaction = "none" if self._is_free else "open"
        # Else the client would begin a transaction, and leave it open.
        self.was_manual = self._is_free and not connection.autocommit
        if self.was_manual:
            connection.autocommit = True
        elif is_idle and not self._is_free:
            self._begin_as_client()

    # A client's own.

    def _is_utf8(self) -> bool:
        raise NotImplementedError

    def _status(self) -> Literal["none", "open", "failed", "lost"]:
        """Tell where the transaction stands."""
        raise NotImplementedError

    def _send(self, command: str, values: Sequence[bytes | None] = (), *, is_binary: bool = False) -> Any:
        """Run a statement, and give its result in libpq's words."""
        raise NotImplementedError

    def _ask(self, query: str, *, is_binary: bool = False) -> Any:
        """Run a query without parameters, whose cells are wanted as the server has sent them."""
        return self._send(query, is_binary=is_binary)

    def _describe(self, query: str) -> tuple[Any, list[int]]:
        """Give a result without rows of a statement that is not run, and the OIDs of its parameters' types."""
        raise NotImplementedError

    def _run_at_once(self, query: str, values: Sequence[bytes | None]) -> Any:
        """Give the whole result of a statement that has no cursor."""
        raise NotImplementedError

    def _copy(self, statement: str, rows: bytes) -> None:
        raise NotImplementedError

    def _begin_as_client(self) -> None:
        """Begin the transaction that the client would begin with its next statement."""
        self._send("BEGIN")

    # The same for all of them.

    def _give_back(self) -> None:
        if self._is_free and self._status() in {"open", "failed"}:
            self._send("ROLLBACK")
        was_manual, self.was_manual = self.was_manual, False
        if was_manual and self._status() == "none":
            self.connection.autocommit = False

    def __del__(self) -> None:
        """Give back the connection of a session that nothing has used: an argument was wrong."""
        if self.was_manual:
            self._give_back()

    def _begin(self) -> None:
        self._send("BEGIN")

    def _end(self, how: Literal["commit", "rollback"]) -> None:
        self._send(how)

    def translated(self, error: Any) -> errors.Error:
        """Give Longshore's exception for the client's, whose text also draws where in the statement."""
        told, diag = super().translated(error), error.diag
        text = "\n".join(filter(None, (diag.message_primary, diag.message_detail))) or str(error)
        return type(told)(text, sqlstate=diag.sqlstate or told.sqlstate, hint=diag.message_hint)

    # The rows of a result, which the core decodes.

    def prepare(self, query: str) -> tuple[bytes | None, list[int]]:
        """Describe a statement: the server's message about its columns, and the OIDs of its parameters' types."""
        with self.running():
            self.begins = self.transaction == "none"
            if self.begins:
                self._send("BEGIN")
            self._guard()
            described, oids = self._describe(query)
        return (_description(described) if described.nfields else None), oids

    def ask(self, question: str) -> Any:
        """Give the answer to a question of the core's, as texts."""
        with self.running():
            return self._ask(question)

    def open(self, query: str, values: Sequence[bytes | None], is_binary: bool) -> None:  # noqa: FBT001  the core's
        """Run a query; its rows are all in binary, or all as texts."""
        self.name, self.is_binary, self.taken = f"longshore_{secrets.token_hex(8)}", is_binary, 0
        with self.running():
            try:
                self._send(f"DECLARE {self.name} NO SCROLL CURSOR FOR {query}", values)
            except self.failure as error:
                if self.translated(error).sqlstate not in NO_CURSOR:
                    raise
                self.name = None
                self._unguard()
                self.result = self._run_at_once(query, values)
            else:
                self._release()

    def fetch(self, rows: int) -> tuple[Any, int, int, bool]:
        """Give the next rows: a result, where they begin and end in it, and whether they are the last."""
        if self.name is None:
            start, self.taken = self.taken, min(self.taken + rows, self.result.ntuples)
            return self.result, start, self.taken, self.taken - start < rows
        with self.running():
            page = self._ask(f"FETCH {rows} FROM {self.name}", is_binary=self.is_binary)
        return page, 0, page.ntuples, page.ntuples < rows

    def finish(self) -> None:
        """End a result that has come to its end."""
        with self.running():
            if self.name is not None:
                self._send(f"CLOSE {self.name}")
            if self.begins:
                self._send("COMMIT")
        self._forget()

    def abandon(self) -> None:
        """End a result that does not come to its end, and leave the transaction as it was, where the server can."""
        with self.translating():
            if self.begins:
                self._send("ROLLBACK")
            elif self.is_guarded:
                self._unguard()
                self.transaction = "open"
            elif self.name is not None and self._status() == "open":
                self._send(f"CLOSE {self.name}")
        self._forget()

    def _guard(self) -> None:
        self._send(f"SAVEPOINT {_GUARD}")
        self.is_guarded = True

    def _unguard(self) -> None:
        """Undo what came after the savepoint."""
        self._send(f"ROLLBACK TO SAVEPOINT {_GUARD}")
        self._release()

    def _release(self) -> None:
        self._send(f"RELEASE SAVEPOINT {_GUARD}")
        self.is_guarded = False

    def _forget(self) -> None:
        self.name = self.result = None
        self.begins = self.is_guarded = False

    # Rows into a temporary table.

    def _stage(self, name: str, frame: object) -> None:
        if name not in self._types:
            columns = [f"{POSTGRESQL.quoted(column)} {kind}" for column, kind in _core.postgresql_columns(frame)]
            self._send(f"CREATE TEMPORARY TABLE {name} ({', '.join(columns)})")
            query = "SELECT atttypid::bigint, atttypmod FROM pg_attribute WHERE attnum > 0 AND attrelid = "
            self._types[name] = self.rows(f"{query}'pg_temp.{name}'::regclass ORDER BY attnum")
        else:
            self._send(f"TRUNCATE {name}")
        form, rows = _core.postgresql_copy(frame, self._types[name])
        self._copy(f"COPY {name} FROM STDIN (FORMAT {form})", rows)


def _description(result: Any) -> bytes:
    """Give the message that has described a statement's columns, which libpq has taken apart."""
    columns = [
        (result.fname(at) or b"")
        + struct.pack(
            "!xIhIhih", result.ftable(at), result.ftablecol(at), result.ftype(at), result.fsize(at), result.fmod(at), 0
        )
        for at in range(result.nfields)
    ]
    body = struct.pack("!H", len(columns)) + b"".join(columns)
    return struct.pack("!cI", b"T", 4 + len(body)) + body
