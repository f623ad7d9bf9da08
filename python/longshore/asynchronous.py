"""``read_sql_async``: ``read_sql`` for asyncio."""

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from longshore import _core
from longshore.arguments import ForPandas, Query, Shared
from longshore.connection import ConnectionLike
from longshore.foreign import READ, refusing
from longshore.read import read_sql
from longshore.reading import read
from longshore.stream import Stream
from longshore.threads import on_a_thread

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa

__all__ = ["read_sql_async"]


@overload
async def read_sql_async(
    query: Query, conn: ConnectionLike, *, return_type: Literal["pandas"] = "pandas", **arguments: Unpack[ForPandas]
) -> "pd.DataFrame": ...
@overload
async def read_sql_async(
    query: Query, conn: ConnectionLike, *, return_type: Literal["arrow"], **arguments: Unpack[Shared]
) -> "pa.Table": ...
@overload
async def read_sql_async(
    query: Query, conn: ConnectionLike, *, return_type: Literal["arrow_stream"], **arguments: Unpack[Shared]
) -> Stream: ...
@overload
async def read_sql_async(
    query: Query, conn: ConnectionLike, *, return_type: Literal["polars"], **arguments: Unpack[Shared]
) -> "pl.DataFrame": ...
@overload
async def read_sql_async(
    query: Query, conn: ConnectionLike, *, return_type: Literal["numpy"], **arguments: Unpack[Shared]
) -> "dict[str, np.ma.MaskedArray[Any, Any]]": ...
@overload
async def read_sql_async(
    query: Query, conn: ConnectionLike, *, return_type: str, **arguments: Unpack[ForPandas]
) -> Any: ...
@refusing(READ, like=read_sql)
async def read_sql_async(query: Any, conn: Any, **arguments: Any) -> Any:
    """Run a query as ``read_sql`` does, with the same arguments, while the event loop goes on.

    >>> import asyncio, longshore
    >>> async def berths():
    ...     return await longshore.read_sql_async("SELECT 1 AS berth", url, return_type="numpy")
    >>> asyncio.run(berths())["berth"].data
    array([1], dtype=int32)

    Each read has a thread of its own. Cancelling the task, or ``asyncio.timeout``, cancels the query on the server;
    ``CancelledError`` is raised when the thread has stopped. With ``return_type="arrow_stream"`` the stream is awaited
    until the server has begun to answer; take it with ``async for``, and close it with ``async with``. A ``progress``
    callable is called on the read's thread.

    Raises what ``read_sql`` raises.
    """
    switch = _core.Switch()
    return await on_a_thread(partial(read, query, conn, switch, **arguments), switch.cancel)
