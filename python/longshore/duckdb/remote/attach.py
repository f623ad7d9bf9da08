"""One query of ``sql`` over attached databases: planned, and its reads on their way into the engine."""

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from longshore.duckdb.failures import Failure, error_from_text
from longshore.duckdb.instance import duckdb, shared
from longshore.duckdb.parameters import Params
from longshore.duckdb.query import Sources
from longshore.duckdb.remote.plan import Plan, Read, plan
from longshore.duckdb.remote.queries import ResultColumn
from longshore.duckdb.remote.source import Source, open_sources
from longshore.duckdb.remote.types import Unsafe
from longshore.duckdb.result import ArrowStreamable
from longshore.duckdb.waiting import run_on_thread
from longshore.errors import DataError, DataWarning, MemoryLimitError, SerialReadWarning
from longshore.options import Options
from longshore.read import read_sql
from longshore.stream import Stream
from longshore.warning import warn, without


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

    def __init__(self, query: str, params: Params, sources: Mapping[str, Source], options: Options) -> None:
        """Plan, which asks the sources' catalogues."""
        super().__init__()
        self._query = query
        self._params = params
        self._sources = sources
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
        """Warn of columns that their databases would compare by a collation."""
        columns = self._plan.bytewise
        if columns:
            names = ", ".join(f"{name} ({collation})" for name, collation in columns.items())
            first = next(iter(columns)).rpartition(".")[2]
            message = (
                f"compared byte by byte, and not by its collation as in its database, where texts that differ in case, "
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
        rows = self._whole(one, self._sources[one.source], self._plan.whole)
        if rows is None:
            self._plan = plan(self._query, self._sources, self._params, _describe, whole=False)
        return rows

    def reads(self) -> Iterator[tuple[str, Any]]:
        """Send the reads, and give each one's name and rows for the engine."""
        self._lock_tables()
        reads, sources = self._plan.reads, self._sources
        users = Counter(sources[one.source].identity for one in reads)

        def is_streamed(one: Read) -> bool:
            source = sources[one.source]
            return one.is_typed and one.is_read_once and users[source.identity] == 1 and not source.is_single_threaded

        # Streams last: a table that cannot be loaded then does not leave one open.
        loaded = [one for one in reads if not is_streamed(one)]
        for one in loaded:
            source = sources[one.source]
            yield one.name, self._table(one, source) if one.is_typed else self._untyped_table(one, source)
        for name in dict.fromkeys(one.source for one in loaded):
            sources[name].check()
        for one in reads:
            if is_streamed(one):
                yield one.name, self._stream(one, sources[one.source])

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

    def _whole(self, one: Read, source: Source, columns: Sequence[ResultColumn]) -> pa.RecordBatchReader | None:
        stream = self.open(one, source)
        if [field.type for field in stream.schema] != [column.type for column in columns]:
            stream.close()
            return None
        schema = pa.schema([column.field for column in columns])
        rows: Iterable[pa.RecordBatch] = self._batches(stream, source)
        # The frame's threads ask for what is streamed.
        rows = list(rows) if source.is_single_threaded else rows
        batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in rows)
        return pa.RecordBatchReader.from_batches(schema, batches)

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
        limit = self._options.memory_limit_bytes
        with contextlib.closing(self.open(dataclasses.replace(one, can_split=False), source)) as stream:
            batches = []
            for batch in _rows(stream):
                batches.append(batch)
                self._loaded_bytes += batch.nbytes
                if limit is not None and self._loaded_bytes > limit:
                    message = f"the tables of {source.name} are larger than options['memory_limit']"
                    raise MemoryLimitError(message)
            return pa.Table.from_batches(batches, stream.schema)

    def _untyped_table(self, one: Read, source: Source) -> pa.Table:
        """Load a table whose column types are known with its last row."""
        return read_sql(one.sql, source.conn, return_type="arrow", options=self._options)


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
        message = f"{str(error).partition(chr(10))[0]}\nHint: {hint}"
        raise DataError(message, hint=hint, column=error.column, row=error.row, native_type=error.native_type) from None


def _describe(query: str, params: Params) -> list[tuple[str, str]]:
    """Give the names and types of a query's columns, as the engine binds it."""

    def bind() -> list[tuple[str, str]]:
        connection = shared.connection()
        try:
            rows = connection.execute(f"DESCRIBE {query}", params).fetchall()
        except duckdb.Error as error:
            raise Unsafe from error
        finally:
            shared.release(connection)
        return [(row[0], row[1]) for row in rows]

    return run_on_thread(bind)
