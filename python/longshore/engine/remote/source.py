"""An attached database: how it is asked, and what it is found to have."""

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from longshore import _core
from longshore.connection import Connection, connect, is_connection, scheme_of
from longshore.engine.remote.dialect import Dialect
from longshore.engine.remote.mysql import MySQL
from longshore.engine.remote.postgresql import PostgreSQL
from longshore.engine.remote.queries import arrow_type
from longshore.engine.remote.sqlite import SQLite
from longshore.engine.remote.types import Column, Kind, Table
from longshore.engine.scope import TAKEN
from longshore.errors import Error, InterfaceError, NotSupportedError, OperationalError, ProgrammingError
from longshore.options import Options
from longshore.reading import read
from longshore.texts import display, name_text

__all__ = ["Changed", "Source", "attached", "changed", "holding", "is_current", "readable", "settled", "untrusted"]


def readable(table: Table) -> list[Column]:
    """Give the columns that this user may read."""
    return [column for column in table.columns if column.readable]


def holding(table: Table) -> str:
    """Give a query that reads nothing: its lock stays until the transaction ends, and its types are those of now."""
    columns = ", ".join(column.quoted for column in readable(table)) or "1"
    return f"SELECT {columns} FROM {table.sql} LIMIT 0"


def is_current(table: Table, schema: pa.Schema) -> bool:
    """Whether the columns have the types of the catalogue, which a transaction may see as of its first moment."""
    columns = readable(table)
    return all(_is_of(column, field) for column, field in zip(columns, schema, strict=bool(columns)))


def _is_of(column: Column, field: pa.Field) -> bool:
    of = column.type
    native = (field.metadata or {}).get(b"native_type", b"")
    if column.padded is not None:
        return bool(native == (b"bpchar(%d)" % column.padded if column.padded else b"bpchar"))
    # Nothing is asked of other kinds, and a form is made of any type that it fits.
    if of.kind is Kind.OTHER or of.engine is None or column.form != "{}":
        return True
    if native.startswith(b"bpchar"):
        return False
    return arrow_type(of.engine) in {None, field.type}


#: How often a query is planned.
_TRIES = 3


class Changed(OperationalError):  # noqa: N818  callers see an OperationalError
    """The rows, or some of them, may mean something else than was planned with."""

    #: Whether the query can be run again as if for the first time.
    again = True


def changed(source: str) -> Changed:
    """Say what to do, as a server does that could not serialize."""
    hint = "run the query again; within a transaction that has read before, end that first"
    message = f"a table of the attached database {source} was altered while the query read it [SQLSTATE 40001]"
    return Changed(f"{message}\nHint: {hint}", sqlstate="40001", hint=hint)


def settled(once: Callable[[], Any]) -> Any:
    """Run a query, and run it again where its tables were altered meanwhile."""
    for _ in range(_TRIES - 1):
        try:
            return once()
        except Changed as error:
            if not error.again:
                raise
    return once()


_DIALECTS: Mapping[str, type[Dialect]] = {
    "postgresql": PostgreSQL,
    "postgres": PostgreSQL,
    "mysql": MySQL,
    "mariadb": MySQL,
    "sqlite": SQLite,
}

#: The savepoint before a read that may be stopped.
_GUARD = "longshore_read"


class Source:
    """One database of ``attach``, for one query."""

    def __init__(self, name: str, conn: Any, options: Options) -> None:
        """Keep what was attached; nothing is opened before it is needed."""
        self.name = name
        self.dialect = _dialect(name, conn)
        self._given = conn
        self._options = options
        self._own: Connection | None = None
        self._tables: dict[tuple[str, ...], Table] = {}
        #: What the catalogue was asked, and its answers.
        self._answers: list[tuple[str, Sequence[Any], pa.Table]] = []
        self._checked = False
        self._guarded = False
        #: A stream ends on another thread than the one that closes.
        self._lock = threading.Lock()
        self.one_moment = False

    @property
    def conn(self) -> Any:
        """What reads are given: the caller's own connection or pool, else one that this query has opened."""
        if is_connection(self._given):
            return self._given
        if self._own is None:
            self._own = connect(self._given, autocommit=True)
            for statement in self.dialect.one_moment if self.one_moment else []:
                self._own.execute(statement)
        return self._own

    @property
    def identity(self) -> int:
        """What is the same where two names stand for one connection of the caller's."""
        return id(self._given if is_connection(self._given) else self)

    @property
    def opens(self) -> bool:
        """Whether a read may open further connections: of a URL, where it is alone."""
        return not is_connection(self._given) and not self.one_moment

    @property
    def stays(self) -> bool:
        """Whether it answers this thread alone, as Python's own connections to SQLite do."""
        return isinstance(self._given, sqlite3.Connection)

    def table(self, parts: tuple[str, ...]) -> Table:
        """Look a table up; raises ``ProgrammingError`` where there is none."""
        if parts not in self._tables:
            found = self.dialect.find(self._ask, parts, untrusted(self._options))
            if found is None or not found.columns:
                what = "has no columns" if found else "is not there, or this user may not see it"
                message = f"the table {'.'.join(parts)} of the attached database {self.name} {what}"
                raise ProgrammingError(message)
            self._tables[parts] = found
        return self._tables[parts]

    def hold(self) -> None:
        """Within the caller's transaction, see to it that the tables stay what they are; raises ``Changed``.

        To look at them after the reads would be too late: a read that is stopped early may end the transaction.
        """
        given = self._given
        if self._checked or not (self.dialect.locks and isinstance(given, Connection) and given.in_transaction):
            return
        for table in self._tables.values():
            held = read(holding(table), given, _core.Switch(), return_type="arrow")
            if not is_current(table, held.schema):
                raise changed(self.name)
        self._compare()
        self._checked = True

    def guard(self) -> None:
        """Within the caller's transaction, see to it that the next read may be stopped before its end."""
        given = self._given
        if self.dialect.aborts and isinstance(given, Connection) and given.in_transaction:
            given.execute(f"SAVEPOINT {_GUARD}")
            self._guarded = True

    def relieve(self) -> None:
        """End what ``guard`` began, after the read."""
        with self._lock:
            guarded, self._guarded = self._guarded, False
        if guarded and isinstance(self._given, Connection):
            # A connection that is lost tells of it when it is used next.
            with contextlib.suppress(Error):
                self._given.execute(f"ROLLBACK TO SAVEPOINT {_GUARD}")
                self._given.execute(f"RELEASE SAVEPOINT {_GUARD}")

    def check(self) -> None:
        """Look at the tables once more after the last read; raises ``Changed`` where they are not what they were.

        Nothing need hold them meanwhile: what is the same before and after the reads was so during them.
        """
        with self._lock:
            if self._checked:
                return
            is_open = self._own is not None
            if self._own is not None and self.one_moment:
                # Its transaction shows its own moment's catalogue to the last.
                self._own.rollback()
            try:
                self._compare()
            finally:
                if not is_open:
                    self._close()
            self._checked = True

    def _compare(self) -> None:
        """Ask the catalogue again; raises ``Changed`` for another answer."""
        versions = self.dialect.versions
        if versions is None:
            same = all(self._answer(asked, params).equals(answer) for asked, params, answer in self._answers)
        else:
            same = all(self._answer(versions, [one.sql])[0].to_pylist() == one.version for one in self._tables.values())
        if not same:
            raise changed(self.name)

    def close(self) -> None:
        """Close what was opened; a stream that still reads from it goes on to its end."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._own is not None:
            self._own.close()
            self._own = None

    def _ask(self, statement: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        table = self._answer(statement, params)
        self._answers.append((statement, params, table))
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def _answer(self, statement: str, params: Sequence[Any]) -> pa.Table:
        return read(statement, self.conn, _core.Switch(), return_type="arrow", params=list(params))


@contextlib.contextmanager
def attached(attach: Mapping[str, Any], options: Options) -> Iterator[dict[str, Source]]:
    """Give the sources by their names in lower case, and close what they opened; raises for names that do not do."""
    sources: dict[str, Source] = {}
    if not isinstance(attach, Mapping):
        message = f"attach is a dict from name to connection, not {type(attach).__name__}"
        raise InterfaceError(message)
    for name, conn in attach.items():
        if not isinstance(name, str) or not name:
            message = f"attach names its databases by texts, not {display(name)}"
            raise InterfaceError(message)
        name_text(name, "a name in attach")
        if name.lower() in TAKEN or name.lower() in sources:
            message = f"attach cannot name a database {name!r}: that is another's name already"
            raise InterfaceError(message)
        sources[name.lower()] = Source(name, conn, options)
    try:
        yield sources
    finally:
        for one in sources.values():
            one.close()


def untrusted(options: Options) -> frozenset[Kind]:
    """Give the kinds of which options load another value than the one that is stored."""
    kinds = set()
    if options.numeric_nan == "null":
        kinds.add(Kind.DECIMAL)
    if options.infinity == "null":
        kinds |= {Kind.DATE, Kind.TIMESTAMP, Kind.INSTANT}
    if options.tinyint1 == "bool":
        kinds.add(Kind.BOOLEAN)
    if options.uuid == "text":
        kinds.add(Kind.UUID)
    return frozenset(kinds)


def _dialect(name: str, conn: Any) -> Dialect:
    scheme = scheme_of(conn)
    if scheme not in _DIALECTS:
        message = f"attach[{name!r}] is of {scheme}://, whose tables sql does not read; read_sql gives a frame for it"
        raise NotSupportedError(message)
    return _DIALECTS[scheme]()
