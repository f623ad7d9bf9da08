"""asyncpg's prepared statement, whose ``fetch`` knows dtypes."""

from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import asyncpg
from asyncpg import prepared_stmt as theirs

from longshore.asyncpg.cursor import CursorFactory
from longshore.asyncpg.dtypes import Query, plain
from longshore.asyncpg.fetching import batch_terms, fetch, frame_terms
from longshore.asyncpg.frame_fetching import ForBatches, ForFrames, ForPandas, guard

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pandas as pd
    import polars as pl
    import pyarrow as pa

__all__ = ["PreparedStatement"]


class PreparedStatement(theirs.PreparedStatement):
    """A prepared statement of asyncpg's; ``fetch`` gives arrays where its query is from ``set_query_dtype``."""

    __slots__ = ()

    @guard
    def get_query(self) -> str:
        """Give the text that the server has."""
        text: str = plain(self._query)
        return text

    @guard
    def cursor(self, *args: Any, prefetch: int | None = None, timeout: float | None = None) -> CursorFactory:
        """Do what asyncpg's method does; ``fetch`` of the cursor gives arrays where the query has a dtype."""
        record_class = self._state.record_class
        return CursorFactory(self._connection, self._query, self._state, args, prefetch, timeout, record_class)

    @guard
    async def fetch(self, *args: Any, timeout: float | None = None) -> Any:
        """Execute the statement; give records as asyncpg does, or arrays where the query has a dtype."""
        query = self._query
        if not isinstance(query, Query):
            return await super().fetch(*args, timeout=timeout)

        execute = partial(self._connection._protocol.bind_execute, self._state, args, "", 0, True)  # noqa: FBT003
        try:
            plan = self._connection._plan(self._state, query)
            arrays, status, _ = await fetch(self._connection, plan, execute, timeout)
        except asyncpg.OutdatedSchemaCacheError:
            # As asyncpg does: the statement's types are not what they were.
            await self._connection.reload_schema_state()
            self._state.mark_closed()
            raise
        self._last_status = status  # type: ignore[misc]  # a slot of asyncpg's
        return arrays

    async def _frame(self, return_type: str, args: Any, timeout: float | None = None, **wanted: Any) -> Any:
        terms = frame_terms(return_type, **wanted)
        frame, status = await self._connection._frame_and_status(self._query, args, timeout, terms)
        self._last_status = status.encode()
        return frame

    @guard
    async def fetch_arrow(self, *args: Any, **wanted: Unpack[ForFrames]) -> "pa.Table":
        """Run the statement's query as ``Connection.fetch_arrow`` does."""
        table: pa.Table = await self._frame("arrow", args, **wanted)
        return table

    @guard
    async def fetch_df(self, *args: Any, **wanted: Unpack[ForPandas]) -> "pd.DataFrame":
        """Run the statement's query as ``Connection.fetch_df`` does."""
        frame: pd.DataFrame = await self._frame("pandas", args, **wanted)
        return frame

    @guard
    async def fetch_polars(self, *args: Any, **wanted: Unpack[ForFrames]) -> "pl.DataFrame":
        """Run the statement's query as ``Connection.fetch_polars`` does."""
        frame: pl.DataFrame = await self._frame("polars", args, **wanted)
        return frame

    @guard
    def fetch_batches(
        self, *args: Any, timeout: float | None = None, **wanted: Unpack[ForBatches]
    ) -> "AsyncIterator[pa.RecordBatch]":
        """Run the statement's query as ``Connection.fetch_batches`` does."""
        terms = batch_terms(**wanted)
        batches: AsyncIterator[pa.RecordBatch] = self._connection._fetch_batches(self._query, args, timeout, terms)
        return batches


def __getattr__(name: str) -> Any:
    return getattr(theirs, name)
