"""asyncpg's connection, whose ``fetch`` knows dtypes."""

import contextlib
from collections.abc import AsyncGenerator
from functools import partial
from typing import TYPE_CHECKING, Any

import asyncpg
from asyncpg import connection as theirs

from longshore import _core, frames
from longshore.asyncpg.cursor import CursorFactory
from longshore.asyncpg.dtypes import DTypeError, Query, Result, plain, with_dtype
from longshore.asyncpg.fetching import Exchange, FrameTerms, Plan, Terms, fetch, memory_errors, plan, release
from longshore.asyncpg.frame_fetching import FrameFetching, of
from longshore.asyncpg.port import Port
from longshore.asyncpg.prepared_stmt import PreparedStatement
from longshore.threads import on_a_thread

__all__ = ["Connection", "connect"]


# Plans that a connection keeps; a statement has one for each dtype.
_PLANS = 256

_UNLOGGED = contextlib.nullcontext()


class Connection(FrameFetching, asyncpg.Connection):
    """A connection of asyncpg's; ``fetch`` of a query from ``set_query_dtype`` gives arrays."""

    __slots__ = ("_plans", "_port", "_type_cache")

    def __init__(self, protocol: Any, transport: Any, *arguments: Any, **options: Any) -> None:
        """Stand between the transport and asyncpg's protocol."""
        super().__init__(protocol, transport, *arguments, **options)
        self._plans: dict[tuple[Any, Any], Plan] = {}
        self._type_cache = _core.TypeCache()
        self._port = Port(protocol)
        transport.set_protocol(self._port)

    def _plan(self, statement: Any, query: Query) -> Plan:
        key = (statement, query.layout or query.block)
        found = self._plans.get(key)
        if found is None:
            if len(self._plans) >= _PLANS:
                self._plans.clear()
            found = self._plans[key] = plan(self._protocol.get_settings(), statement, query)
        return found

    @of(asyncpg.Connection.execute)
    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:
        """Do what asyncpg's method does."""
        status: str = await super().execute(plain(query), *args, timeout=timeout)
        return status

    @of(asyncpg.Connection.cursor)
    def cursor(
        self,
        query: str,
        *args: Any,
        prefetch: int | None = None,
        timeout: float | None = None,
        record_class: Any = None,
    ) -> CursorFactory:
        """Do what asyncpg's method does; ``fetch`` of the cursor gives arrays where the query has a dtype."""
        self._check_open()
        return CursorFactory(self, query, None, args, prefetch, timeout, record_class)

    if TYPE_CHECKING:

        async def prepare(
            self,
            query: str,
            *,
            name: str | None = None,
            timeout: float | None = None,
            record_class: type[Any] | None = None,
        ) -> PreparedStatement:
            """Do what asyncpg's method does."""

    # asyncpg's methods come together in these.

    async def _prepare(self, query: str, **options: Any) -> PreparedStatement:
        query = with_dtype(query)
        prepared = await super()._prepare(plain(query), **options)
        return PreparedStatement(self, query, prepared._state)

    def _executemany(self, query: str, *arguments: Any, **options: Any) -> Any:
        return super()._executemany(plain(query), *arguments, **options)

    def _execute(self, query: str, args: Any, limit: int, timeout: float | None, **options: Any) -> Any:
        query = with_dtype(query)
        if limit == 0 and isinstance(query, Query) and not options.get("return_status"):
            return self._fetch_arrays(query, args, timeout, options)
        return super()._execute(plain(query), args, limit, timeout, **options)

    async def _do_execute(self, *arguments: Any, **options: Any) -> Any:
        with memory_errors():
            return await super()._do_execute(*arguments, **options)

    async def _fetch_arrays(self, query: Query, args: Any, timeout: float | None, options: dict[str, Any]) -> Result:
        def run(statement: Any, timeout: float | None) -> Any:
            execute = partial(self._protocol.bind_execute, statement, args, "", 0, True)  # noqa: FBT003
            return fetch(self, self._plan(statement, query), execute, timeout)

        with self._stmt_exclusive_section:
            timeout = self._protocol._get_timeout(timeout)
            with self._log(query.text, args, timeout):
                try:
                    (result, _, _), _ = await self._do_execute(query.text, run, timeout, **options)
                except DTypeError as error:
                    if error.row is None:
                        # Perhaps it has just been prepared.
                        await release(self._protocol)
                    raise
        arrays: Result = result
        return arrays

    def _log(self, text: str, args: Any, timeout: float | None) -> contextlib.AbstractContextManager[Any]:
        # asyncpg has query loggers from 0.29 on.
        if not getattr(self, "_query_loggers", None):
            return _UNLOGGED
        logged: contextlib.AbstractContextManager[Any] = self._time_and_log(text, args, timeout)
        return logged

    async def _fetch_frame(self, query: str, args: Any, timeout: float | None, wanted: FrameTerms) -> Any:
        frame, _ = await self._frame_and_status(query, args, timeout, wanted)
        return frame

    async def _frame_and_status(
        self, query: str, args: Any, timeout: float | None, wanted: FrameTerms
    ) -> tuple[Any, str]:
        self._check_open()
        text = plain(query)
        with self._stmt_exclusive_section:
            timeout = self._protocol._get_timeout(timeout)
            with self._log(text, args, timeout):
                reading, status = await Exchange(self, timeout).result(text, args, wanted.rows)
        # Frames take their time, and other tasks need theirs.
        return await on_a_thread(partial(wanted.build, reading), reading.close), status

    async def _fetch_batches(
        self, query: str, args: Any, timeout: float | None, wanted: Terms
    ) -> AsyncGenerator[Any, None]:
        self._check_open()
        if not self.is_in_transaction():
            message = "batches come from a cursor, which cannot be outside of a transaction"
            raise asyncpg.NoActiveSQLTransactionError(message)
        text, portal = plain(query), self._get_unique_id("portal")
        pyarrow = frames.pyarrow_if_installed()
        timeout = self._protocol._get_timeout(timeout)
        with self._stmt_exclusive_section, self._log(text, args, timeout):
            pages = await Exchange(self, timeout).first_page(text, args, wanted, portal)
        while True:
            for batch in pages.batches:
                yield batch if pyarrow is None else pyarrow.record_batch(batch)
            if pages.done:
                break
            with self._stmt_exclusive_section:
                await Exchange(self, timeout).next_page(pages)
        with self._stmt_exclusive_section:
            # Tables that it has read are in use until then.
            await self._protocol.query(f"CLOSE {portal}", timeout)

    def _drop_local_type_cache(self) -> None:
        super()._drop_local_type_cache()
        self._type_cache.forget()


@of(theirs.connect)
async def connect(*arguments: Any, **options: Any) -> Connection:
    """Connect as ``asyncpg.connect`` does, with the same arguments."""
    options.setdefault("connection_class", Connection)
    connection: Connection = await theirs.connect(*arguments, **options)
    return connection


def __getattr__(name: str) -> Any:
    return getattr(theirs, name)
