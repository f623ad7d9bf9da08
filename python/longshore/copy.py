"""``copy``: a query of one database as a table of another."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from longshore import _core
from longshore.arguments import (
    IfExists,
    Number,
    Query,
    core_params,
    partition,
    schema_types,
    seconds,
    statements,
    without_clauses,
)
from longshore.connectable import ConnectionLike
from longshore.connectable import source as readable
from longshore.connection import Connection
from longshore.errors import InterfaceError
from longshore.foreign import COPY, refusing
from longshore.options import Options
from longshore.progress import Progress, reporting
from longshore.read import batch_bytes, batch_rows, policy, warn_if_serial
from longshore.sources import APART, SHARED, driver_connection
from longshore.threads import own_cancel_handle, twin
from longshore.write import destination


@refusing(COPY)
def copy(
    query: Query,
    source: ConnectionLike,
    table: str | tuple[str, str],
    target: ConnectionLike,
    *,
    if_exists: IfExists = "fail",
    key: str | Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    params: Sequence[Any] | Mapping[str, Any] | None = None,
    schema: Mapping[str, Any] | None = None,
    partition_on: str | None = None,
    partition_num: Number | None = None,
    timeout: float | None = None,
    progress: bool | Callable[[Progress], object] = False,
    options: Mapping[str, Any] | Options | None = None,
) -> int:
    """Write the result of a query into a table of this database or of another, and return the number of rows.

    >>> import longshore
    >>> longshore.copy("SELECT n, n * n AS square FROM generate_series(1, 3) n", url, "copy_squares", url)
    3

    The rows are written while they are read, a batch or two in memory at a time, and become no Python objects.

    ``query``, ``source``, ``params``, ``schema``, ``partition_on``, ``partition_num``
        What is read, as in ``read_sql``. In parts, the rows come in no particular order.
    ``table``, ``target``, ``if_exists``, ``key``, ``types``
        Where it is written, as in ``write_sql``. A column that the source promises to be NOT NULL is so in a new table.
    ``timeout``
        Seconds for the whole call.
    ``progress``, ``options``
        As in ``read_sql``; the progress is that of the writing.

    Raises the exceptions of ``longshore.errors``; the table is then as it was.
    """
    cancel_handle, limit = own_cancel_handle(), seconds(timeout)
    chosen = Options.of(options)
    one, other = (end if isinstance(end, Connection) else driver_connection(end) for end in (source, target))
    if one is not None and one is other:
        raise InterfaceError(SHARED, hint=APART)
    into = destination(table, target, if_exists=if_exists, key=key, types=types, options=chosen)
    query, params = without_clauses(query, params)
    split = partition(query, partition_on, partition_num, None)
    with reporting(progress) as report, contextlib.ExitStack() as stack:
        origin = readable(source)
        if origin is into["source"] and isinstance(origin, _core.Pool):
            # One of its sessions is left to the write.
            stack.callback(origin.hold(1).release)
        reading = _core.open_read(
            source=origin,
            setup=[],
            queries=statements(query, "query"),
            params=core_params(params),
            partition=split,
            types=schema_types(schema),
            policy=policy("arrow_stream", None, chosen),
            batch_rows=batch_rows(None, "arrow_stream", None),
            batch_bytes=batch_bytes("arrow_stream", None, split),
            memory_limit=chosen.stream_budget,
            timeout=limit,
            progress=None,
            cancel_handle=cancel_handle,
        )
        stack.close()
        with contextlib.closing(reading):
            warn_if_serial(reading)
            return _core.copy(reading, into=into, timeout=limit, progress=report, cancel_handle=cancel_handle)


copy_async = twin(copy)
copy_async.__doc__ = """Copy as ``copy`` does, with the same arguments, while the event loop goes on.

    >>> import asyncio, longshore
    >>> async def copy_row():
    ...     return await longshore.copy_async("SELECT 1 AS n", url, "async_copy", url, if_exists="replace")
    >>> asyncio.run(copy_row())
    1

    Cancelling the task cancels the query and undoes the write; ``CancelledError`` is raised when both have stopped.
    """
