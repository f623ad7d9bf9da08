"""The base of sessions over PostgreSQL's clients: the caller's transaction, and the bytes that the server sends."""

import secrets
import struct
import weakref
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from longshore import _core, errors
from longshore.sources import APART, SHARED
from longshore.sources.dialects import POSTGRESQL
from longshore.sources.loading import TableLoader
from longshore.sources.session import DriverSession

#: The statement that opens a client's transaction, and leaves open how it is isolated.
BEGIN = "SHOW transaction_isolation"
_SETTINGS = {
    "client_encoding": ("UTF8", "SET client_encoding TO 'UTF8'"),
    "standard_conforming_strings": ("on", "SET standard_conforming_strings TO on"),
}
_BEGUN = "begin a transaction on it, as with connection.transaction(), or give the URL"
_HAS_SNAPSHOT = "25001"
_LEVEL = 'give the engine isolation_level="REPEATABLE READ", or options={"snapshot": False}'
_GUARD = "longshore_guard"
#: A column as the server describes it: its name, the OID and the number of a table's column that it is, the OID, the
#: size and the modifier of its type.
Column = tuple[bytes, int, int, int, int, int]
#: The codes by which DECLARE refuses a statement that returns rows and is not a SELECT, or changes some within it.
NO_CURSOR = {"42601", "0A000"}


class ClientSession(DriverSession):
    """One connection of a client's, in the transaction that the client has begun, or begins as with any statement.

    Whoever has the connection ends that transaction. A connection that an engine has lent has one for us alone, which
    the owner begins and ends.
    """

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
    #: The sessions whose rows are still to come, by their connection.
    readers: ClassVar[weakref.WeakKeyDictionary[Any, "weakref.WeakSet[ClientSession]"]] = weakref.WeakKeyDictionary()

    def __init__(self, connection: Any, owner: Any) -> None:
        """Keep the connection, and begin the client's transaction on it where none is open."""
        super().__init__(connection)
        self.owner = owner
        if self._status() == "lost":
            raise errors.OperationalError("the connection is closed, or its server has gone", hint="connect again")
        for setting, (wanted, hint) in _SETTINGS.items():
            if self._setting(setting) not in {wanted, None}:
                message = f"the session's {setting} is not {wanted}, in which text is read"
                raise errors.InterfaceError(message, hint=hint)
        self._types: dict[str, list[tuple[int, int]]] = {}
        if connection.autocommit and self._status() == "none":
            message = "the connection is in autocommit: each statement of ours would be for itself"
            raise errors.InterfaceError(message, hint=_BEGUN)
        if owner is None:
            with self.translating():
                self._begin()
            self.transaction = "open"

    # A client's own.

    def _setting(self, name: str) -> str | None:
        """Tell a setting that the server reports; None where it reports none."""
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

    def _describe(self, query: str) -> tuple[list[Column], list[int]]:
        """Describe the columns of a statement, which is not run, and give the OIDs of its parameters' types."""
        raise NotImplementedError

    def _copy(self, statement: str, rows: bytes) -> None:
        raise NotImplementedError

    # The same for all of them.

    def _give_back(self) -> None:
        self._forget()

    def _begin(self) -> None:
        if self.owner is not None:
            self.owner.begin()
        if self._status() == "none":
            # By the client itself, whose isolation level and the like it then has. It has no snapshot yet.
            self.open_cursor().execute(BEGIN)

    def begin_snapshot(self) -> None:
        """Begin a transaction whose statements see one snapshot."""
        self.begin()
        if self.rows(BEGIN) in ([("repeatable read",)], [("serializable",)]):
            return
        try:
            self.execute(str(self.dialect.snapshot))
        except errors.Error as error:
            if error.sqlstate != _HAS_SNAPSHOT:
                raise
            message = "a listener's statement has run, so that several queries have no snapshot"
            raise errors.NotSupportedError(message, hint=_LEVEL) from None

    def _end(self, how: Literal["commit", "rollback"]) -> None:
        self._close_cursor()
        getattr(self.owner or self.connection, how)()

    def _prepare(self, query: str, params: Any) -> tuple[Any, Any]:
        return super()._prepare(_core.postgresql_inlined(query, []), params)

    def translate(self, error: Any) -> errors.Error:
        """Give Longshore's exception for the client's, whose text also draws where in the statement."""
        told, diag = super().translate(error), error.diag
        text = "\n".join(filter(None, (diag.message_primary, diag.message_detail))) or str(error)
        return type(told)(text, sqlstate=diag.sqlstate or told.sqlstate, hint=diag.message_hint)

    # The rows of a result, which the core decodes.

    def prepare(self, query: str) -> tuple[bytes | None, list[int]]:
        """Describe a statement: the server's message about its columns, and the OIDs of its parameters' types."""
        with self.running():
            if self.transaction == "none":
                self._begin()
                self.begins = self.owner is not None
                self.transaction = "none" if self.begins else "open"
            self._send(f"SAVEPOINT {_GUARD}")
            self.is_guarded = True
            columns, oids = self._describe(query)
        return (_description(columns) if columns else None), oids

    def ask(self, question: str) -> Any:
        """Give the answer to a question of the core's, as texts."""
        with self.running():
            return self._ask(question)

    def open(self, query: str, values: Sequence[bytes | None], is_binary: bool) -> None:  # noqa: FBT001  the core's
        """Run a query; its rows are all in binary, or all as texts."""
        self.name, self.is_binary, self.taken = f"longshore_{secrets.token_hex(8)}", is_binary, 0
        self.readers.setdefault(self.connection, weakref.WeakSet()).add(self)
        with self.running():
            try:
                self._send(f"DECLARE {self.name} NO SCROLL CURSOR FOR {query}", values)
            except self.failure as error:
                if self.translate(error).sqlstate not in NO_CURSOR:
                    raise
                self.name = None
                self._unguard()
                self.result = self._send(query, values, is_binary=self.is_binary)
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
                self._end("commit")
        self._forget()

    def abandon(self) -> None:
        """End a result that does not come to its end, and leave the transaction as it was, where the server can."""
        try:
            with self.translating():
                if self.begins:
                    self._end("rollback")
                elif self.is_guarded:
                    self._unguard()
                    self.transaction = "open"
                elif self.name is not None and self._status() == "open":
                    self._send(f"CLOSE {self.name}")
        finally:
            self._forget()

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
        self.readers.get(self.connection, weakref.WeakSet()).discard(self)

    def load(self, **load: Any) -> TableLoader:
        """Begin to write."""
        if self.readers.get(self.connection):
            raise errors.InterfaceError(SHARED, hint=APART)
        return super().load(**load)

    # Rows into a temporary table.

    def _stage(self, name: str, frame: object) -> None:
        if name not in self._types:
            columns = [f"{POSTGRESQL.quoted_name(column)} {kind}" for column, kind in _core.postgresql_columns(frame)]
            self._send(f"CREATE TEMPORARY TABLE {name} ({', '.join(columns)})")
            query = "SELECT atttypid::bigint, atttypmod FROM pg_attribute WHERE attnum > 0 AND attrelid = "
            self._types[name] = self.rows(f"{query}'pg_temp.{name}'::regclass ORDER BY attnum")
        else:
            self._send(f"TRUNCATE {name}")
        form, rows = _core.postgresql_copy(frame, self._types[name])
        self._copy(f"COPY {name} FROM STDIN (FORMAT {form})", rows)


def _description(columns: Sequence[Column]) -> bytes:
    """Give the message that has described a statement's columns, which the client has taken apart."""
    described = [name + struct.pack("!xIhIhih", *rest, 0) for name, *rest in columns]
    body = struct.pack("!H", len(columns)) + b"".join(described)
    return struct.pack("!cI", b"T", 4 + len(body)) + body


class Texts:
    """Rows of texts, in libpq's words."""

    def __init__(self, width: int, rows: Sequence[Sequence[str | None]]) -> None:
        """Keep the rows, each of so many cells."""
        self._rows = rows
        self.nfields, self.ntuples = width, len(rows)

    def get_value(self, row: int, column: int) -> bytes | None:
        """Give a cell as the server has sent it."""
        value = self._rows[row][column]
        return None if value is None else value.encode()
