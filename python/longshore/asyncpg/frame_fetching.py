"""The methods that give frames, of connections and of pools; decorators that leave a method its own types."""

import functools
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, overload

from asyncpg import connresource

from longshore.arguments import Backend
from longshore.asyncpg.fetching import FrameTerms, Terms, batch_terms, frame_terms
from longshore.options import Options

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from longshore.asyncpg.dtypes import Query, Result


F = TypeVar("F", bound=Callable[..., Any])


def of(original: Callable[..., Any]) -> Callable[[F], F]:
    """Give a method the name and the documentation of asyncpg's, and its signature for who asks at run time."""

    def decorate(method: F) -> F:
        functools.update_wrapper(method, original)
        return method

    return decorate


def guard(method: F) -> F:
    """Have a method refuse once its connection is back in the pool, as asyncpg's own do."""
    checked: F = connresource.guarded(method)
    return checked


class _Terms(TypedDict, total=False):
    schema: Mapping[str, Any] | None
    options: Mapping[str, Any] | Options | None


class ForFrames(_Terms, total=False):
    """The arguments of every method next to the query's own."""

    timeout: float | None


class ForPandas(ForFrames, total=False):
    """Those and ``fetch_df``'s own."""

    dtype_backend: Backend | None
    index_col: str | Sequence[str] | None


class ForBatches(_Terms, total=False):
    """The arguments of ``fetch_batches`` next to the query's own and the time-out."""

    batch_size: int | None


class FrameFetching:
    """A fetching object: runs a query, and gives its result as a frame."""

    __slots__ = ()

    if TYPE_CHECKING:
        # What asyncpg's classes have; they have no types. A text that is composed of a Query is told to give records.

        async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:
            """Do what asyncpg's method does."""

        async def executemany(self, command: str, args: Any, *, timeout: float | None = None) -> None:
            """Do what asyncpg's method does."""

        @overload
        async def fetch(
            self, query: Query, *args: Any, timeout: float | None = None, record_class: type[Any] | None = None
        ) -> Result: ...
        @overload
        async def fetch(
            self, query: str, *args: Any, timeout: float | None = None, record_class: type[Any] | None = None
        ) -> list[Any]: ...
        async def fetch(self, query: str, *args: Any, **options: Any) -> Any:
            """Do what asyncpg's method does, or give arrays where the query has a dtype."""

        async def fetchrow(
            self, query: str, *args: Any, timeout: float | None = None, record_class: type[Any] | None = None
        ) -> Any:
            """Do what asyncpg's method does."""

        async def fetchval(self, query: str, *args: Any, column: int = 0, timeout: float | None = None) -> Any:
            """Do what asyncpg's method does."""

    @abstractmethod
    async def _fetch_frame(self, query: str, args: Any, timeout: float | None, wanted: FrameTerms) -> Any:
        """Run a query."""

    @abstractmethod
    def _fetch_batches(self, query: str, args: Any, timeout: float | None, wanted: Terms) -> AsyncGenerator[Any, None]:
        """Run a query page by page."""

    async def _frame(self, return_type: str, query: str, args: Any, timeout: float | None = None, **wanted: Any) -> Any:
        return await self._fetch_frame(query, args, timeout, frame_terms(return_type, **wanted))

    async def fetch_arrow(self, query: str, *args: Any, **wanted: Unpack[ForFrames]) -> "pa.Table":
        """Run a query and give its result as a ``pyarrow.Table``, in the types of ``read_sql``.

        ``timeout`` is asyncpg's, ``schema`` and ``options`` are those of ``read_sql``. Raises what asyncpg's ``fetch``
        raises, and for a value that cannot be had exactly the ``DataError`` of ``longshore.errors``.
        """
        table: pa.Table = await self._frame("arrow", query, args, **wanted)
        return table

    async def fetch_df(self, query: str, *args: Any, **wanted: Unpack[ForPandas]) -> "pd.DataFrame":
        """Run a query and give its result as a DataFrame of pandas; otherwise as ``fetch_arrow``.

        ``dtype_backend`` and ``index_col`` are those of ``read_sql``.
        """
        frame: pd.DataFrame = await self._frame("pandas", query, args, **wanted)
        return frame

    async def fetch_polars(self, query: str, *args: Any, **wanted: Unpack[ForFrames]) -> "pl.DataFrame":
        """Run a query and give its result as a DataFrame of polars; otherwise as ``fetch_arrow``."""
        frame: pl.DataFrame = await self._frame("polars", query, args, **wanted)
        return frame

    def fetch_batches(
        self, query: str, *args: Any, timeout: float | None = None, **wanted: Unpack[ForBatches]
    ) -> "AsyncIterator[pa.RecordBatch]":
        """Run a query and give its result batch by batch, for ``async for``; otherwise as ``fetch_arrow``.

        A connection has to be in a transaction, as for a cursor; a pool gives a connection with one of its own.
        ``batch_size`` is the most rows of a batch, 65,536 where nothing is said, and ``timeout`` counts for each wait.
        Without pyarrow, batches are objects with ``__arrow_c_array__``.
        """
        return self._fetch_batches(query, args, timeout, batch_terms(**wanted))
