"""asyncpg's cursors, whose ``fetch`` knows dtypes."""

from collections.abc import Generator
from functools import partial
from typing import Any

import asyncpg
from asyncpg import cursor as theirs

from longshore.asyncpg.dtypes import Query, plain, result, with_dtype
from longshore.asyncpg.fetching import fetch
from longshore.asyncpg.frame_fetching import guard

__all__ = ["Cursor", "CursorFactory"]


class CursorFactory(theirs.CursorFactory):
    """The result of ``cursor``: awaited a ``Cursor``, iterated over asyncpg's records."""

    __slots__ = ("_wanted",)

    def __init__(self, connection: Any, query: str, *arguments: Any) -> None:
        """Keep the query next to its text, which is all that asyncpg takes."""
        self._wanted = with_dtype(query)
        super().__init__(connection, plain(self._wanted), *arguments)

    @guard
    def __await__(self) -> Generator[Any, Any, "Cursor"]:
        """Open the cursor."""
        if self._prefetch is not None:
            raise asyncpg.InterfaceError("prefetch argument can only be specified for iterable cursor")
        cursor = Cursor(self._connection, self._query, self._state, self._args, self._record_class)
        cursor._wanted = self._wanted
        opening: Generator[Any, Any, Cursor] = cursor._init(self._timeout).__await__()
        return opening


class Cursor(theirs.Cursor):
    """A cursor of asyncpg's; ``fetch`` gives arrays where the query is from ``set_query_dtype``."""

    __slots__ = ("_wanted",)

    _exhausted: bool
    _wanted: str

    @guard
    async def fetch(self, n: int, *, timeout: float | None = None) -> Any:
        """Give the next ``n`` rows: records as asyncpg does, or arrays where the query has a dtype."""
        query = self._wanted
        if not isinstance(query, Query):
            return await super().fetch(n, timeout=timeout)
        self._check_ready()
        if n <= 0:
            raise asyncpg.InterfaceError("n must be greater than zero")
        plan = self._connection._plan(self._state, query)
        if self._exhausted:
            return result(plan.layout, plan.core.rows(0), [])
        execute = partial(self._connection._protocol.execute, self._state, self._portal_name, n, True)  # noqa: FBT003
        arrays, _, count = await fetch(self._connection, plan, execute, timeout)
        self._exhausted = count < n  # type: ignore[misc]  # a slot of asyncpg's
        return arrays


def __getattr__(name: str) -> Any:
    return getattr(theirs, name)
