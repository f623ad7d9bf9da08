"""An attached database: its connection, its catalogue, and whether its tables stay as they were."""

import contextlib
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from longshore.connection import Connection, connect, is_connection, scheme_of
from longshore.duckdb.failures import TableAltered
from longshore.duckdb.remote.dialect import Dialect
from longshore.duckdb.remote.mysql import MySQL
from longshore.duckdb.remote.postgresql import PostgreSQL
from longshore.duckdb.remote.sqlite import SQLite
from longshore.duckdb.remote.types import Column, Kind, Table, arrow_type
from longshore.duckdb.scope import RESERVED_NAMES
from longshore.errors import Error, InterfaceError, NotSupportedError, ProgrammingError
from longshore.options import Options
from longshore.read import read_sql
from longshore.texts import display, name_text

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
        """Take the URL or connection; it is opened when it is needed."""
        self.name = name
        self.dialect = _dialect_of(name, conn)
        self._conn = conn
        self._options = options
        self._opened: Connection | None = None
        self._tables: dict[tuple[str, ...], Table] = {}
        #: The queries of the catalogue, their parameters and answers.
        self._answers: list[tuple[str, Sequence[Any], pa.Table]] = []
        self._is_checked = False
        self._has_savepoint = False
        #: A stream ends on another thread than the one that closes.
        self._lock = threading.Lock()
        #: Whether the query reads several tables, which have to be of one snapshot.
        self.in_snapshot = False

    @property
    def conn(self) -> Any:
        """The caller's connection or pool, else one that this query opens."""
        if is_connection(self._conn):
            return self._conn
        if self._opened is None:
            self._opened = connect(self._conn, autocommit=True)
            for statement in self.dialect.begin_snapshot if self.in_snapshot else []:
                self._opened.execute(statement)
        return self._opened

    @property
    def identity(self) -> int:
        """The same number for two names of one connection."""
        return id(self._conn if is_connection(self._conn) else self)

    @property
    def opens_connections(self) -> bool:
        """Whether a read may open further connections: it has a URL, and is alone."""
        return not is_connection(self._conn) and not self.in_snapshot

    @property
    def is_single_threaded(self) -> bool:
        """Whether it works on this thread only, as connections of Python's sqlite3 do."""
        return isinstance(self._conn, sqlite3.Connection)

    def table(self, parts: tuple[str, ...]) -> Table:
        """Look a table up; raises ``ProgrammingError`` where there is none."""
        if parts not in self._tables:
            table = self.dialect.find(self._ask, parts, lossy_kinds(self._options))
            if table is None or not table.columns:
                what = "has no columns" if table else "is not there, or this user may not see it"
                message = f"the table {'.'.join(parts)} of the attached database {self.name} {what}"
                raise ProgrammingError(message)
            self._tables[parts] = table
        return self._tables[parts]

    def lock_tables(self) -> None:
        """Within the caller's transaction, lock the tables until its end; raises ``TableAltered``.

        A check after the reads would be too late: a read that is stopped early may end the transaction.
        """
        conn = self._conn
        if self._is_checked or not (self.dialect.has_locks and isinstance(conn, Connection) and conn.in_transaction):
            return
        for table in self._tables.values():
            empty = read_sql(_lock_query(table), conn, return_type="arrow")
            if not _is_current(table, empty.schema):
                raise TableAltered.of(self.name)
        self._compare()
        self._is_checked = True

    def set_savepoint(self) -> None:
        """Within the caller's transaction, set a savepoint, so that the next read may be stopped before its end."""
        conn = self._conn
        if self.dialect.needs_savepoint and isinstance(conn, Connection) and conn.in_transaction:
            conn.execute(f"SAVEPOINT {_GUARD}")
            self._has_savepoint = True

    def release_savepoint(self) -> None:
        """Roll back to the savepoint, after the read."""
        with self._lock:
            has_savepoint, self._has_savepoint = self._has_savepoint, False
        if has_savepoint and isinstance(self._conn, Connection):
            # A lost connection raises when it is used next.
            with contextlib.suppress(Error):
                self._conn.execute(f"ROLLBACK TO SAVEPOINT {_GUARD}")
                self._conn.execute(f"RELEASE SAVEPOINT {_GUARD}")

    def check(self) -> None:
        """Compare the tables with the catalogue after the last read; raises ``TableAltered``.

        No lock is needed: what is the same before and after the reads was the same during them.
        """
        with self._lock:
            if self._is_checked:
                return
            is_open = self._opened is not None
            if self._opened is not None and self.in_snapshot:
                # Its snapshot would show the catalogue as it was.
                self._opened.rollback()
            try:
                self._compare()
            finally:
                if not is_open:
                    self._close()
            self._is_checked = True

    def _compare(self) -> None:
        """Ask the catalogue again; raises ``TableAltered`` for another answer."""
        versions = self.dialect.versions
        if versions is None:
            same = all(self._answer(query, params).equals(answer) for query, params, answer in self._answers)
        else:
            same = all(self._answer(versions, [one.sql])[0].to_pylist() == one.version for one in self._tables.values())
        if not same:
            raise TableAltered.of(self.name)

    def close(self) -> None:
        """Close the opened connection; a stream that reads from it goes on to its end."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _ask(self, statement: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        table = self._answer(statement, params)
        self._answers.append((statement, params, table))
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def _answer(self, statement: str, params: Sequence[Any]) -> pa.Table:
        table: pa.Table = read_sql(statement, self.conn, return_type="arrow", params=list(params))
        return table


@contextlib.contextmanager
def open_sources(attach: Mapping[str, Any], options: Options) -> Iterator[dict[str, Source]]:
    """Give the sources by their names in lower case, and close them in the end; raises for invalid names."""
    sources: dict[str, Source] = {}
    if not isinstance(attach, Mapping):
        message = f"attach is a dict from name to connection, not {type(attach).__name__}"
        raise InterfaceError(message)
    for name, conn in attach.items():
        if not isinstance(name, str) or not name:
            message = f"attach names its databases by texts, not {display(name)}"
            raise InterfaceError(message)
        name_text(name, "a name in attach")
        if name.lower() in RESERVED_NAMES or name.lower() in sources:
            message = f"attach cannot name a database {name!r}: that is another's name already"
            raise InterfaceError(message)
        sources[name.lower()] = Source(name, conn, options)
    try:
        yield sources
    finally:
        for one in sources.values():
            one.close()


def lossy_kinds(options: Options) -> frozenset[Kind]:
    """Give the kinds whose values are loaded otherwise than they are stored, by these options."""
    kinds = set()
    if options.numeric_nan == "null":
        kinds.add(Kind.DECIMAL)
    if options.infinity == "null":
        kinds |= {Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ}
    if options.tinyint1 == "bool":
        kinds.add(Kind.BOOLEAN)
    if options.uuid == "text":
        kinds.add(Kind.UUID)
    return frozenset(kinds)


def _dialect_of(name: str, conn: Any) -> Dialect:
    scheme = scheme_of(conn)
    if scheme not in _DIALECTS:
        message = f"attach[{name!r}] is of {scheme}://, whose tables sql does not read; read_sql gives a frame for it"
        raise NotSupportedError(message)
    return _DIALECTS[scheme]()


def _readable(table: Table) -> list[Column]:
    """Give the columns that this user may read."""
    return [column for column in table.columns if column.readable]


def _lock_query(table: Table) -> str:
    """Give a query without rows: its lock stays until the transaction's end, and its types are the current ones."""
    columns = ", ".join(column.quoted for column in _readable(table)) or "1"
    return f"SELECT {columns} FROM {table.sql} LIMIT 0"


def _is_current(table: Table, schema: pa.Schema) -> bool:
    """Whether the columns have the types of the catalogue, which a transaction may see in an older snapshot."""
    columns = _readable(table)
    return all(_is_of(column, field) for column, field in zip(columns, schema, strict=bool(columns)))


def _is_of(column: Column, field: pa.Field) -> bool:
    of = column.type
    native = (field.metadata or {}).get(b"native_type", b"")
    if column.padded is not None:
        return bool(native == (b"bpchar(%d)" % column.padded if column.padded else b"bpchar"))
    # Other kinds are not asked for more than loading, and forms cast.
    if of.kind is Kind.OTHER or of.engine is None or column.form != "{}":
        return True
    if native.startswith(b"bpchar"):
        return False
    return arrow_type(of.engine) in {None, field.type}
