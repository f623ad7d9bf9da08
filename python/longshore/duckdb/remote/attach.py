"""One query of ``sql`` over attached databases: their connections and catalogues, the plan, and its reads."""

import contextlib
import dataclasses
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from longshore import sources
from longshore.connectable import is_connection, scheme_of
from longshore.connection import Connection, connect
from longshore.duckdb.failures import Failure, TableAltered, error_from_text
from longshore.duckdb.instance import engine, shared
from longshore.duckdb.parameters import Params, by_parameter_name
from longshore.duckdb.pushdown import serialize, syntax_of
from longshore.duckdb.query import Sources
from longshore.duckdb.remote.described import Described, DuckDB, Oracle
from longshore.duckdb.remote.dialect import Dialect
from longshore.duckdb.remote.mysql import MySQL
from longshore.duckdb.remote.plan import Plan, Read, plan
from longshore.duckdb.remote.postgresql import PostgreSQL
from longshore.duckdb.remote.sqlite import SQLite
from longshore.duckdb.remote.store import StoreDialect, StoreSource
from longshore.duckdb.remote.types import Column, Kind, Table, Unsafe, arrow_type
from longshore.duckdb.result import ArrowStreamable
from longshore.duckdb.scope import RESERVED_NAMES
from longshore.duckdb.waiting import run_on_thread
from longshore.errors import (
    DataError,
    DataWarning,
    Error,
    InterfaceError,
    MemoryLimitError,
    ProgrammingError,
    SerialReadWarning,
)
from longshore.options import Options
from longshore.read import read_sql
from longshore.stream import Stream
from longshore.texts import display, name_text
from longshore.warning import warn, without

#: The sources whose catalogue is asked, or that differ from ``Described``, which is for all others.
_DIALECTS: Mapping[str, type[Dialect]] = {
    "postgresql": PostgreSQL,
    "postgres": PostgreSQL,
    "mysql": MySQL,
    "mariadb": MySQL,
    "sqlite": SQLite,
    "store": StoreDialect,
    "duckdb": DuckDB,
    "oracle": Oracle,
}

T = TypeVar("T")

#: The savepoint before a read that may be stopped.
_GUARD = "longshore_read"


class Source:
    """One database of ``attach``, for one query."""

    def __init__(self, name: str, conn: Any, options: Options) -> None:
        """Take the URL or connection; it is opened when it is needed."""
        self.name = name
        self.dialect: Dialect = _DIALECTS.get(scheme_of(conn), Described)()
        self._conn = sources.lasting(conn)
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
    def is_loaded(self) -> bool:
        """Whether its rows are loaded before the engine begins."""
        conn = self._conn
        # A read that is stopped may end the caller's transaction; Python's sqlite3 works on this thread only.
        if not self.dialect.can_stop_in_transaction and isinstance(conn, Connection) and conn.in_transaction:
            return True
        return sources.is_adopted(conn) and sources.scheme(conn) == "sqlite"

    def table(self, parts: tuple[str, ...]) -> Table:
        """Look a table up; raises ``ProgrammingError`` where there is none."""
        if parts not in self._tables:
            table = self.dialect.find(self._ask, parts, lossy_kinds(self._options))
            if table is None or not table.columns:
                what = "has no columns" if table else "is not there, or this user may not see it"
                raise ProgrammingError(f"the table {'.'.join(parts)} of the attached database {self.name} {what}")
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
            columns = [column for column in table.columns if column.readable]
            listed = ", ".join(column.quoted for column in columns) or "1"
            # Its lock stays until the transaction's end. It tells the current types; the catalogue may be an older one.
            empty = read_sql(f"SELECT {listed} FROM {table.sql} LIMIT 0", conn, return_type="arrow")
            if not all(_is_of(*pair) for pair in zip(columns, empty.schema, strict=bool(columns))):
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
            if self._opened is not None and self.in_snapshot and self.dialect.begin_snapshot:
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

    def _ask(self, statement: str, params: Sequence[Any]) -> pa.Table:
        table = self._answer(statement, params)
        self._answers.append((statement, params, table))
        return table

    def _answer(self, statement: str, params: Sequence[Any]) -> pa.Table:
        table: pa.Table = read_sql(statement, self.conn, return_type="arrow", params=list(params) or None)
        return table


AnySource = Source | StoreSource


@contextlib.contextmanager
def open_sources(attach: Mapping[str, Any], options: Options) -> Iterator[Mapping[str, AnySource]]:
    """Give the sources by their names in lower case, and close them in the end; raises for invalid names."""
    opened: dict[str, AnySource] = {}
    if not isinstance(attach, Mapping):
        raise InterfaceError(f"attach is a dict from name to connection, not {type(attach).__name__}")
    for name, conn in attach.items():
        if not isinstance(name, str) or not name:
            raise InterfaceError(f"attach names its databases by texts, not {display(name)}")
        name_text(name, "a name in attach")
        if name.lower() in RESERVED_NAMES or name.lower() in opened:
            raise InterfaceError(f"attach cannot name a database {name!r}: that is another's name already")
        is_mapped = scheme_of(conn) == "store" and (sources.is_adopted(conn) or not is_connection(conn))
        opened[name.lower()] = (StoreSource if is_mapped else Source)(name, conn, options)
    try:
        yield opened
    finally:
        for one in opened.values():
            one.close()


def lossy_kinds(options: Options) -> frozenset[Kind]:
    """Give the kinds whose values are loaded otherwise than they are stored, by these options."""
    if options.sqlite_types == "stored":
        return frozenset(Kind)
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


@contextlib.contextmanager
def remote_query(query: str, params: Params, attach: Mapping[str, Any], options: Options) -> "Iterator[RemoteQuery]":
    """Plan a query; after a failure, its reads are ended."""
    with open_sources(attach, options) as sources:
        one = RemoteQuery(query, params, sources, options)
        try:
            yield one
        except BaseException:
            one.close()
            raise


class RemoteQuery(Sources):
    """A query over attached databases: its plan and its reads.

    A read that is alone on its connection is streamed; of several, each is loaded before the next.
    """

    def __init__(self, query: str, params: Params, sources: Mapping[str, AnySource], options: Options) -> None:
        """Plan, which asks the sources' catalogues."""
        super().__init__()
        self._sources = {name: one for name, one in sources.items() if isinstance(one, Source)}
        self._stores = {name: one for name, one in sources.items() if isinstance(one, StoreSource)}
        self._options = options
        self._plan: Plan = plan(query, sources, params, _describe)
        self._opened: list[Stream] = []
        #: The streams that the engine reads from.
        self._streams: list[tuple[Stream, Source]] = []
        self._loaded_bytes = 0
        self._is_cancelled = False

    @property
    def sql(self) -> str:
        """The engine's query."""
        return self._plan.sql

    @property
    def params(self) -> Params:
        """The parameters of the engine's query."""
        return self._plan.params

    def __str__(self) -> str:
        """Show the SQL of each source, and the engine's, with a comment before each."""
        lines = []
        for one in self._plan.reads:
            lines += [f"-- {one.source}: {one.name}", one.sql, ""]
        if self._plan.whole is None:
            lines += ["-- engine", self._plan.sql.strip()]
        else:
            lines += [f"-- engine: nothing to do, {self._plan.reads[0].source} answers the whole query"]
        return "\n".join(lines)

    def warn(self) -> None:
        """Warn of columns that their databases would compare by a collation, or with their padding."""
        columns = self._plan.bytewise
        if columns:
            names = ", ".join(f"{name} ({reason})" for name, reason in columns.items())
            first = next(iter(columns)).rpartition(".")[2]
            message = (
                f"compared byte by byte, without padding, and not as in its database, where texts that differ in case, "
                f"accents or spaces at the end may be equal: {names}. CAST({first} AS VARCHAR) says that bytes are "
                "meant; lower() of both sides passes over case; read_sql has the database compare"
            )
            warn(message, DataWarning)

    def whole_result(self) -> pa.RecordBatchReader | None:
        """Send the one read that is the whole result, in the engine's types; None where the engine has work to do."""
        if self._plan.whole is None:
            return None
        self._lock_tables()
        (one,) = self._plan.reads
        source = self._sources[one.source]
        stream = self.open(one, source)
        schema = pa.schema([column.field for column in self._plan.whole])
        rows: Iterable[pa.RecordBatch] = self._batches(stream, source)
        # The frame's threads ask for what is streamed.
        rows = list(rows) if source.is_loaded else rows
        batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in rows)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def reads(self) -> Iterator[tuple[str, Any]]:
        """Send the reads, and give each one's name and rows for the engine."""
        self._lock_tables()
        yield from self._map()
        sources = self._sources
        reads = [one for one in self._plan.reads if one.source in sources]
        users = Counter(sources[one.source].identity for one in reads)

        def is_streamed(one: Read) -> bool:
            source = sources[one.source]
            return one.is_typed and one.is_read_once and users[source.identity] == 1 and not source.is_loaded

        # Streams last: a table that cannot be loaded then does not leave one open.
        loaded = [one for one in reads if not is_streamed(one)]
        for one in loaded:
            source = sources[one.source]
            yield one.name, self._table(one, source)
        for name in dict.fromkeys(one.source for one in loaded):
            sources[name].check()
        for one in reads:
            if is_streamed(one):
                yield one.name, self._stream(one, sources[one.source])

    def _map(self) -> Iterator[tuple[str, Any]]:
        """Map the tables of stores, for the engine."""
        params = by_parameter_name(self.params)
        for one in self._plan.reads:
            if (store := self._stores.get(one.source)) is not None:
                syntax = syntax_of(self.sql, lambda: _ask_engine(lambda each: serialize(each, self.sql)))
                yield one.name, store.rows(one.table, one.columns, syntax.pushdown(one.name, params))

    def check(self) -> None:
        """End the streams, and raise ``TableAltered`` where a table was altered meanwhile."""
        self.end()
        for _, source in self._streams:
            source.check()

    def checking(self, rows: Any) -> Any:
        """Give the engine's rows, the last ones after ``check``."""
        return _CheckedRows(rows, self.check, self.failure) if self._streams else rows

    def end(self) -> None:
        """End the streams that the engine has not finished. Ending twice is allowed."""
        for stream, source in self._streams:
            stream.close()
            source.release_savepoint()

    def cancel(self) -> None:
        """Stop the streams, from any thread."""
        self._is_cancelled = True
        for stream in self._opened:
            stream.cancel()

    def close(self) -> None:
        """End all streams."""
        self._is_cancelled = True
        for stream in self._opened:
            stream.close()
        self.end()

    def open(self, one: Read, source: Source) -> Stream:
        """Send a read's query."""
        options = dataclasses.replace(self._options, memory_limit=self._options.stream_budget)
        # The caller did not ask for parts.
        with without(SerialReadWarning):
            stream: Stream = read_sql(
                one.sql,
                source.conn,
                return_type="arrow_stream",
                schema=one.schema or None,
                partition_num="auto" if one.can_split and source.opens_connections else None,
                options=options,
            )
        self._opened.append(stream)
        return stream

    def _lock_tables(self) -> None:
        for source in self._sources.values():
            source.lock_tables()

    def _stream(self, one: Read, source: Source) -> pa.RecordBatchReader:
        source.set_savepoint()
        stream = self.open(one, source)
        self._streams.append((stream, source))
        return pa.RecordBatchReader.from_batches(stream.schema, self._batches(stream, source))

    def _batches(self, stream: Stream, source: Source) -> Iterator[pa.RecordBatch]:
        with contextlib.closing(stream):
            try:
                yield from _last_after(source.check, _rows(stream))
            except Exception as error:
                # A cancelled stream has not failed.
                if not self._is_cancelled:
                    self.failure.record(error)
                raise

    def _table(self, one: Read, source: Source) -> pa.Table:
        if not one.is_typed:
            # Its columns' types are known with the last row.
            return read_sql(one.sql, source.conn, return_type="arrow", options=self._options)
        limit = self._options.memory_limit_bytes
        with contextlib.closing(self.open(dataclasses.replace(one, can_split=False), source)) as stream:
            batches = []
            for batch in _rows(stream):
                batches.append(batch)
                self._loaded_bytes += batch.nbytes
                if limit is not None and self._loaded_bytes > limit:
                    raise MemoryLimitError(f"the tables of {source.name} are larger than options['memory_limit']")
            return pa.Table.from_batches(batches, stream.schema)


class _CheckedRows:
    """The engine's rows, the last ones after a check: with a LIMIT, the engine may end before its sources do."""

    def __init__(self, rows: ArrowStreamable, check: Callable[[], None], failure: Failure) -> None:
        self._rows = rows
        self._check = check
        self._failure = failure

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = pa.RecordBatchReader.from_stream(self._rows)
        return pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader)).__arrow_c_stream__(
            requested_schema
        )

    def _batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        try:
            yield from _last_after(self._check, reader)
        except (pa.ArrowException, OSError) as error:
            # Passed on, its text would not tell its class.
            self._failure.record(error_from_text(str(error)))
            raise
        except Exception as error:
            self._failure.record(error)
            raise


def _last_after(check: Callable[[], None], rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give the batches, the last one after the check: a result is complete only if the plan was right to the end."""
    before = None
    for batch in rows:
        if before is not None:
            yield before
        before = batch
    check()
    if before is not None:
        yield before


def _rows(stream: Stream) -> Iterator[pa.RecordBatch]:
    """Give the batches; an error whose only remedy is an argument of ``read_sql`` gets another."""
    try:
        yield from stream
    except DataError as error:
        remedy = error.hint or ""
        if "schema=" not in remedy or "options" in remedy:
            raise
        hint = (
            f'read the table with read_sql(..., schema={{"{error.column}": "string"}}), and query that frame; '
            "or have a view of the database give the column a scale"
        )
        message = str(error).partition("\n")[0]
        raise DataError(message, hint=hint, column=error.column, row=error.row, native_type=error.native_type) from None


def _describe(query: str, params: Params) -> list[tuple[str, str]]:
    """Give the names and types of a query's columns, as the engine binds it."""

    def bind(connection: Any) -> list[tuple[str, str]]:
        try:
            return [row[:2] for row in connection.execute(f"DESCRIBE {query}", params).fetchall()]
        except engine().Error as error:
            raise Unsafe from error

    return _ask_engine(bind)


def _ask_engine(work: Callable[[Any], T]) -> T:
    """Do short work over a connection to the shared engine."""

    def ask() -> T:
        connection = shared.connection()
        try:
            return work(connection)
        finally:
            shared.release(connection)

    return run_on_thread(ask)
