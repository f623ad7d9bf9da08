"""The engine's rows, of which the last ones wait until it is known that the sources' tables are what they were."""

from collections.abc import Callable, Iterator

import pyarrow as pa

from longshore.engine.failures import Failure, retold
from longshore.engine.remote.loading import checked_last
from longshore.engine.result import ArrowStreamable

__all__ = ["Settled"]


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
