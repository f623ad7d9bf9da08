"""asyncpg's pool, of connections that know dtypes."""

import contextlib
import inspect
from collections.abc import AsyncGenerator
from typing import Any

from asyncpg import pool as theirs

from longshore.asyncpg.connection import Connection
from longshore.asyncpg.fetching import FrameTerms, Terms
from longshore.asyncpg.frame_fetching import FrameFetching, of

__all__ = ["Pool", "create_pool"]


_SIGNATURE = inspect.signature(theirs.create_pool)


class Pool(FrameFetching, theirs.Pool):
    """A pool of asyncpg's."""

    __slots__ = ()

    async def _fetch_frame(self, query: str, args: Any, timeout: float | None, wanted: FrameTerms) -> Any:
        async with self.acquire() as connection:
            return await connection._fetch_frame(query, args, timeout, wanted)

    async def _fetch_batches(
        self, query: str, args: Any, timeout: float | None, wanted: Terms
    ) -> AsyncGenerator[Any, None]:
        async with (
            self.acquire() as connection,
            connection.transaction(),
            contextlib.aclosing(connection._fetch_batches(query, args, timeout, wanted)) as batches,
        ):
            async for batch in batches:
                yield batch


@of(theirs.create_pool)
def create_pool(*arguments: Any, **options: Any) -> Pool:
    """Make a pool as ``asyncpg.create_pool`` does, with the same arguments."""
    options.setdefault("connection_class", Connection)
    bound = _SIGNATURE.bind(*arguments, **options)
    bound.apply_defaults()
    return Pool(*bound.args, **bound.kwargs)


def __getattr__(name: str) -> Any:
    return getattr(theirs, name)
