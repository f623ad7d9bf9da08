"""Results that are read while they are consumed."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence, Sized
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar, final

from longshore import _core, frames
from longshore.arguments import Backend
from longshore.threads import on_a_thread

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Item = TypeVar("Item")


class _Pieces(ABC, Generic[Item]):
    """Pieces of a result, for ``for`` and for ``async for``."""

    @abstractmethod
    def _next(self) -> Item | None:
        """Wait for the next piece; None after the last."""

    @abstractmethod
    def cancel(self) -> None:
        """Stop the query on the server, from any thread; who waits for a piece gets an ``OperationalError``."""

    def __iter__(self) -> Iterator[Item]:
        """Give the iterator itself."""
        return self

    def __next__(self) -> Item:
        """Wait for the next piece; raises the exceptions of ``longshore.errors``."""
        piece = self._next()
        if piece is None:
            raise StopIteration
        return piece

    def __aiter__(self) -> AsyncIterator[Item]:
        """Give the iterator itself."""
        return self

    async def __anext__(self) -> Item:
        """Wait for the next piece on a thread; cancelling the task cancels the query."""
        piece = await on_a_thread(self._next, self.cancel)
        if piece is None:
            raise StopAsyncIteration
        return piece


@final
class Frames(_Pieces[Item]):
    """The frames of a stream, one for each batch; made by ``Stream.pandas`` and ``Stream.polars``.

    An iterator, for ``for`` and for ``async for``. An empty result is one empty frame.
    """

    def __init__(self, take: Callable[[], Item | None], cancel: Callable[[], None]) -> None:
        """Keep what waits for a frame, and what stops it."""
        self._take = take
        self._cancel = cancel

    def _next(self) -> Item | None:
        return self._take()

    def cancel(self) -> None:
        """Stop the query on the server, from any thread; who waits for a frame gets an ``OperationalError``."""
        self._cancel()


@final
class Stream(_Pieces["pa.RecordBatch"], AbstractContextManager["Stream"], AbstractAsyncContextManager["Stream"]):
    """A result that is read while it is consumed; made by ``read_sql(..., return_type="arrow_stream")``.

    Iterate over it for record batches, ``pyarrow.RecordBatch`` where pyarrow is installed, else objects with
    ``__arrow_c_array__``; over ``pandas()`` or ``polars()`` for frames; or hand it to any library that knows the Arrow
    PyCapsule interface. ``async for`` and ``async with`` work as well.

    >>> import longshore
    >>> query = "SELECT id FROM generate_series(1, 5) AS id"
    >>> with longshore.read_sql(query, url, return_type="arrow_stream", batch_size=2) as stream:
    ...     [batch.num_rows for batch in stream]
    [2, 2, 1]

    It is consumed once, by one consumer. Memory holds a few batches: the server waits for a slow consumer. A stream
    that ends has delivered every row; after a failure, whoever asks for more gets an exception. Closing it, dropping
    it or leaving ``with`` before its end cancels the query on the server.
    """

    def __init__(self, core: _core.Stream, *, exact: Collection[str], json_objects: bool) -> None:
        """Keep the core's stream, the columns whose decimals the caller asked for, and the choice for JSON."""
        self._core = core
        self._exact = list(exact)
        self._json_objects = json_objects
        self._arrow = frames.pyarrow_if_installed()

    def __repr__(self) -> str:
        """Show the columns' names and the state."""
        return repr(self._core)

    def _next(self) -> "pa.RecordBatch | None":
        batch = self._core.next()
        if batch is None or self._arrow is None:
            return batch
        with _ending(self._core):
            return self._arrow.record_batch(batch)

    @property
    def schema(self) -> "pa.Schema":
        """The Arrow schema; where pyarrow is not installed, an object with ``__arrow_c_schema__``."""
        schema = self._core.schema()
        return schema if self._arrow is None else self._arrow.schema(schema)

    def pandas(
        self, dtype_backend: Backend | None = None, *, index_col: str | Sequence[str] | None = None
    ) -> "Frames[pd.DataFrame]":
        """Give the rest of the result as DataFrames, one for each batch.

        ``dtype_backend`` and ``index_col`` are those of ``read_sql``. All frames have the dtypes that ``read_sql``
        would give the whole, and the index goes on where the frame before has ended. Raises ``InterfaceError`` for
        an unknown backend, and ``ImportError`` where pandas is missing.
        """
        target = frames.pandas_target(dtype_backend, index_col)
        core, json_objects = self._core, self._json_objects
        exact = None if target.backend == "pyarrow" else self._exact
        rows_before = 0

        def take() -> "pd.DataFrame | None":
            nonlocal rows_before
            taken = core.next_columns(
                backend=target.backend, arrow_strings=target.arrow_strings, json_objects=json_objects, exact=exact
            )
            if taken is None:
                return None
            columns, rows = taken
            rows_before += rows
            with _ending(core):
                return target.build(columns, rows, first=rows_before - rows)

        return Frames(take, core.cancel)

    def polars(self) -> "Frames[pl.DataFrame]":
        """Give the rest of the result as polars DataFrames, one for each batch.

        Raises ``ImportError`` where polars is missing. A column of a type that polars lacks is a
        ``NotSupportedError`` with the first frame.
        """
        target = frames.polars_target()
        core = self._core

        def take() -> "pl.DataFrame | None":
            batch = core.next_for_polars()
            if batch is None:
                return None
            with _ending(core):
                frame: pl.DataFrame = target.build_batch(batch)
                return frame

        return Frames(take, core.cancel)

    def cancel(self) -> None:
        """Stop the query on the server, from any thread; who waits for a batch gets an ``OperationalError``."""
        self._core.cancel()

    def close(self) -> None:
        """End the stream, and the query on the server where it still runs. Closing twice is not an error."""
        self._core.close()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the rest of the result over, in its own schema; raises ``InterfaceError`` after the first time."""
        return self._core.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Tell the schema, as often as wanted."""
        return self._core.__arrow_c_schema__()

    def __exit__(self, *_exception: object) -> None:
        """Close it."""
        self.close()

    async def __aexit__(self, *_exception: object) -> None:
        """Close it, on a thread: the server is told."""
        await on_a_thread(self.close, self.cancel)


@contextmanager
def _ending(core: _core.Stream) -> Iterator[None]:
    """End the stream where a piece cannot be made: its rows are gone, and what follows must not look like the rest."""
    try:
        yield
    except BaseException:
        core.close()
        raise


# polars before 2 takes what can be iterated over for a column of objects, unless it has a length.
Sized.register(Stream)
