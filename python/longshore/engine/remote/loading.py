"""What the sources of a query send, on its way into the engine."""

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from longshore import _core
from longshore.engine.failures import Failure, retold
from longshore.engine.remote.plan import Read
from longshore.engine.remote.queries import Result
from longshore.engine.remote.source import Source
from longshore.engine.result import ArrowStreamable
from longshore.errors import DataError, MemoryLimitError, SerialReadWarning
from longshore.options import Options
from longshore.reading import read
from longshore.stream import Stream
from longshore.warning import without

__all__ = ["Loads", "Settled", "checked_last"]


class Loads:
    """The results of a query's reads: one that a source has alone is streamed, several are loaded one by one."""

    def __init__(self, options: Options) -> None:
        """Start with none."""
        self._options = options
        self._streams: list[Stream] = []
        self._streamed: list[tuple[Stream, Source]] = []
        self._loaded = 0
        self._stopped = False
        #: What ended a stream early.
        self.failure = Failure()

    def load(self, reads: Sequence[Read], sources: Mapping[str, Source]) -> Iterator[tuple[str, Any]]:
        """Give each read's name and its rows, as what the engine scans."""
        # Streams last: a table that cannot be loaded then leaves none behind.
        users = Counter(sources[one.source].identity for one in reads)
        alone = {
            one.name: one.once and users[sources[one.source].identity] == 1 and not sources[one.source].stays
            for one in reads
        }
        streamed = [one for one in reads if one.typed and alone[one.name]]
        loaded = [one for one in reads if one not in streamed]
        for one in loaded:
            source = sources[one.source]
            yield one.name, self._table(one, source) if one.typed else self._whole(one, source)
        for name in dict.fromkeys(one.source for one in loaded):
            sources[name].check()
        for one in streamed:
            yield one.name, self._stream(one, sources[one.source])

    @property
    def streams(self) -> bool:
        """Whether the engine reads from a source directly."""
        return bool(self._streamed)

    def end(self) -> None:
        """End the streams that the engine has left early. Ending twice is no error."""
        for stream, source in self._streamed:
            stream.close()
            source.relieve()

    def settle(self) -> None:
        """End the streams, and look whether their tables were altered meanwhile."""
        self.end()
        for _, source in self._streamed:
            source.check()

    def close(self) -> None:
        """End what still streams."""
        self._stopped = True
        for stream in self._streams:
            stream.close()
        self.end()

    def cancel(self) -> None:
        """Stop what still streams, from any thread."""
        self._stopped = True
        for stream in self._streams:
            stream.cancel()

    def open(self, one: Read, source: Source) -> Stream:
        """Send a read's query."""
        options = dataclasses.replace(self._options, memory_limit=self._options.stream_budget)
        # Nobody asked for parts.
        with without(SerialReadWarning):
            stream: Stream = read(
                one.sql,
                source.conn,
                _core.Switch(),
                return_type="arrow_stream",
                schema=one.schema or None,
                partition_num="auto" if one.parts and source.opens else None,
                options=options,
            )
        self._streams.append(stream)
        return stream

    def whole(self, one: Read, source: Source, columns: Sequence[Result]) -> pa.RecordBatchReader | None:
        """Give a read as the engine's result would be; None where its types are others than the catalogue had said."""
        stream = self.open(one, source)
        types = [field.type for field in stream.schema]
        if types != [column.type for column in columns]:
            stream.close()
            return None
        schema = pa.schema([column.field for column in columns])
        # The engine's threads ask for what is streamed.
        rows = self._batches(stream, source)
        if source.stays:
            rows = iter(list(rows))
        batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in rows)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _stream(self, one: Read, source: Source) -> pa.RecordBatchReader:
        source.guard()
        stream = self.open(one, source)
        self._streamed.append((stream, source))
        return pa.RecordBatchReader.from_batches(stream.schema, self._batches(stream, source))

    def _batches(self, stream: Stream, source: Source) -> Iterator[pa.RecordBatch]:
        with contextlib.closing(stream):
            try:
                yield from checked_last(_rows(stream), source.check)
            except Exception as error:
                # What was stopped from outside has not failed.
                if not self._stopped:
                    self.failure.note(error)
                raise

    def _table(self, one: Read, source: Source) -> pa.Table:
        limit = self._options.memory_limit_bytes
        with contextlib.closing(self.open(dataclasses.replace(one, parts=False), source)) as stream:
            batches = []
            for batch in _rows(stream):
                batches.append(batch)
                self._loaded += batch.nbytes
                if limit is not None and self._loaded > limit:
                    message = f"the tables of {source.name} are larger than options['memory_limit']"
                    raise MemoryLimitError(message)
            return pa.Table.from_batches(batches, stream.schema)

    def _whole(self, one: Read, source: Source) -> pa.Table:
        """Load what tells its types with its last row, as columns that follow their values do."""
        return read(one.sql, source.conn, _core.Switch(), return_type="arrow", options=self._options)


def checked_last(rows: Iterable[pa.RecordBatch], check: Callable[[], None]) -> Iterator[pa.RecordBatch]:
    """Keep the last batch back until the check has passed: who has every row has rows that were planned with."""
    before = None
    for batch in rows:
        if before is not None:
            yield before
        before = batch
    check()
    if before is not None:
        yield before


def _rows(stream: Stream) -> Iterator[pa.RecordBatch]:
    """Give the batches; an error whose only remedy is an argument of ``read_sql`` has another."""
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


class Settled:
    """A result of the engine. It may end before what it reads does, as with a LIMIT, so its own end counts."""

    def __init__(self, rows: ArrowStreamable, check: Callable[[], None], failure: Failure) -> None:
        """Keep the rows, what looks at the tables, and where a failure is noted."""
        self._rows = rows
        self._check = check
        self._failure = failure

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Have the query run, and hand its rows over."""
        reader = pa.RecordBatchReader.from_stream(self._rows)
        return pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader)).__arrow_c_stream__(
            requested_schema
        )

    def _batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        try:
            yield from checked_last(reader, self._check)
        except (pa.ArrowException, OSError) as error:
            # Passed on, its text would no longer tell what family it is of.
            self._failure.note(retold(str(error)))
            raise
        except Exception as error:
            self._failure.note(error)
            raise
