"""``copy``: a query of one database as a table of another."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from longshore import _core
from longshore.arguments import IfExists, Number, Query, seconds
from longshore.connectable import ConnectionLike
from longshore.connection import Connection
from longshore.errors import InterfaceError
from longshore.foreign import COPY, refusing
from longshore.options import Options
from longshore.progress import Progress, reporting
from longshore.read import opened
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
    cancel_handle = own_cancel_handle()
    chosen = Options.of(options)
    _refuse_shared(source, target)
    into = destination(table, target, if_exists=if_exists, key=key, types=types, options=chosen)
    with (
        reporting(progress) as report,
        opened(
            query,
            source,
            params=params,
            schema=schema,
            partition_on=partition_on,
            partition_num=partition_num,
            timeout=timeout,
            options=chosen,
            into=into["source"],
            cancel_handle=cancel_handle,
        ) as reading,
    ):
        return _core.copy(reading, into=into, timeout=seconds(timeout), progress=report, cancel_handle=cancel_handle)


def _refuse_shared(source: object, target: object) -> None:
    """Raise ``InterfaceError`` where rows would be read and written through one connection at once."""
    reading, writing = (end if isinstance(end, Connection) else driver_connection(end) for end in (source, target))
    if reading is not None and reading is writing:
        raise InterfaceError(SHARED, hint=APART)


copy_async = twin(copy)
copy_async.__doc__ = """Copy as ``copy`` does, with the same arguments, while the event loop goes on.

    >>> import asyncio, longshore
    >>> async def copied():
    ...     return await longshore.copy_async("SELECT 1 AS n", url, "async_copy", url, if_exists="replace")
    >>> asyncio.run(copied())
    1

    Cancelling the task cancels the query and undoes the write; ``CancelledError`` is raised when both have stopped.
    """
