"""``sql``: SQL over dataframes, files and remote tables."""

import sys
from collections.abc import Coroutine, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, overload

from longshore.arguments import Backend
from longshore.connectable import ConnectionLike
from longshore.options import Options
from longshore.stream import Stream
from longshore.threads import named_twin, on_a_thread, twin

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from longshore.duckdb.scope import FrameSnapshot

_Params = Sequence[Any] | Mapping[str, Any] | None
_Attach = Mapping[str, ConnectionLike] | None
_Options = Mapping[str, Any] | Options | None

#: The caller of ``sql_async``, which calls ``sql`` on another thread.
_CALLER: ContextVar["FrameSnapshot | None"] = ContextVar("longshore_caller", default=None)


@overload
def sql(
    query: str,
    *,
    params: _Params = None,
    return_type: Literal["pandas"] = "pandas",
    dtype_backend: Backend | None = None,
    attach: _Attach = None,
    explain: Literal[False] = False,
    options: _Options = None,
    **tables: Any,
) -> "pd.DataFrame": ...
@overload
def sql(
    query: str,
    *,
    params: _Params = None,
    return_type: Literal["arrow"],
    attach: _Attach = None,
    explain: Literal[False] = False,
    options: _Options = None,
    **tables: Any,
) -> "pa.Table": ...
@overload
def sql(
    query: str,
    *,
    params: _Params = None,
    return_type: Literal["arrow_stream"],
    attach: _Attach = None,
    explain: Literal[False] = False,
    options: _Options = None,
    **tables: Any,
) -> Stream: ...
@overload
def sql(
    query: str,
    *,
    params: _Params = None,
    return_type: Literal["polars"],
    attach: _Attach = None,
    explain: Literal[False] = False,
    options: _Options = None,
    **tables: Any,
) -> "pl.DataFrame": ...
@overload
def sql(
    query: str,
    *,
    params: _Params = None,
    return_type: Literal["numpy"],
    attach: _Attach = None,
    explain: Literal[False] = False,
    options: _Options = None,
    **tables: Any,
) -> "dict[str, np.ma.MaskedArray[Any, Any]]": ...
@overload
def sql(
    query: str,
    *,
    params: _Params = None,
    return_type: str = "pandas",
    dtype_backend: Backend | None = None,
    attach: _Attach = None,
    explain: Literal[True],
    options: _Options = None,
    **tables: Any,
) -> str: ...
@overload
def sql(
    query: str,
    *,
    params: _Params = None,
    return_type: str,
    dtype_backend: Backend | None = None,
    attach: _Attach = None,
    explain: Literal[False] = False,
    options: _Options = None,
    **tables: Any,
) -> Any: ...
def sql(
    query: str,
    *,
    params: Sequence[Any] | Mapping[str, Any] | None = None,
    return_type: str = "pandas",
    dtype_backend: str | None = None,
    attach: Mapping[str, ConnectionLike] | None = None,
    explain: bool = False,
    options: Mapping[str, Any] | Options | None = None,
    **tables: Any,
) -> Any:
    """Run SQL over dataframes by their variables' names, over files and over remote tables.

    >>> import longshore, pandas
    >>> boats = pandas.DataFrame({"berth": [1, 2, 2], "tons": [10.5, 4.0, None]})
    >>> longshore.sql("SELECT berth, sum(tons) AS tons FROM boats GROUP BY berth ORDER BY berth")
       berth  tons
    0      1  10.5
    1      2   4.0

    ``query``
        One statement or several in DuckDB's dialect; the result is the last one's, None where it has none. A table is a
        variable, a keyword, a file (``'boats/*.parquet'``), or a table of an attached database.
    ``params``
        Values to bind: a sequence for ``?`` and ``$1``, ``$2``, ..., or a dict for ``$name`` and ``:name``.
    ``return_type``
        ``"pandas"``, ``"arrow"`` (a ``pyarrow.Table``), ``"arrow_stream"`` (a ``longshore.Stream``, which runs the
        query while it is consumed), ``"polars"`` or ``"numpy"`` (a dict of masked arrays).
    ``dtype_backend``
        For pandas: None (by the result's types), ``"numpy"``, ``"numpy_nullable"`` or ``"pyarrow"``.
    ``attach``
        Databases by the names that the query has for them: URLs, files, dicts of keywords, Connections or Pools.
    ``explain``
        Whether to return, as text, how the query would run.
    ``options``
        A mapping or ``longshore.Options``: ``nan`` and ``objects`` concern what goes in, ``json``, ``uuid``,
        ``infinity`` and ``time_24`` what comes out, ``threads`` and ``memory_limit`` the engine.
    ``tables``
        Tables by name, which come before variables.

    A name that the engine has no table for is looked up among the variables of the caller, of the functions around it
    and of its module, then among the dataframes of those who called it. It may be a pandas or polars frame, a lazy one
    too, a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, a NumPy structured array, a dict of arrays or
    lists, a list of dicts, or anything with ``__arrow_c_stream__``. Only columns that the query mentions are touched.

    Raises the exceptions of ``longshore.errors``, and a reader's own as they are. A column that the engine would change
    is an error where it is needed.
    """
    # DuckDB is imported with it.
    from longshore.duckdb.query import run

    caller = _CALLER.get()
    # Calls within this one have callers of their own.
    _CALLER.set(None)
    return run(
        query,
        caller or sys._getframe(1),  # noqa: SLF001  the caller's variables are the query's tables
        params=params,
        return_type=return_type,
        dtype_backend=dtype_backend,
        attach=attach,
        explain=explain,
        options=options,
        tables=tables,
    )


def _sql_async(query: str, **arguments: Any) -> Coroutine[Any, Any, Any]:
    """Run SQL as ``sql`` does, with the same arguments, while the event loop goes on.

    >>> import asyncio, longshore
    >>> async def total():
    ...     boats = [{"tons": 1}, {"tons": 2}]
    ...     frame = await longshore.sql_async("SELECT sum(tons)::int AS tons FROM boats", return_type="polars")
    ...     return frame["tons"].item()
    >>> asyncio.run(total())
    3

    The variables are those of the call, with the values that they have then. Cancelling the task stops the engine, and
    the queries of attached databases; ``CancelledError`` is raised when the thread has stopped.
    """
    from longshore.duckdb.scope import FrameSnapshot
    from longshore.duckdb.waiting import CancelScope

    caller, scope = FrameSnapshot.of(sys._getframe(1)), CancelScope()  # noqa: SLF001  as above

    def work() -> Any:
        _CALLER.set(caller)
        return scope.run(lambda: sql(query, **arguments))

    return on_a_thread(work, scope.cancel)


if TYPE_CHECKING:
    sql_async = twin(sql)
else:
    sql_async = named_twin(sql, _sql_async)
