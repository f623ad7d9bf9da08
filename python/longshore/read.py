"""``read_sql``: the result of a query as a dataframe."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from longshore import _core, frames
from longshore.arguments import (
    Backend,
    ForPandas,
    Number,
    Partition,
    Query,
    Shared,
    automatic,
    core_params,
    is_list_of_texts,
    partition,
    schema_types,
    seconds,
    statements,
    without_clauses,
)
from longshore.connectable import ConnectionLike, is_connection, source
from longshore.errors import InterfaceError, SerialReadWarning
from longshore.foreign import READ, refusing
from longshore.options import Options
from longshore.progress import Progress, reporter
from longshore.stream import Stream
from longshore.target import is_address
from longshore.texts import display, name_text
from longshore.threads import own_cancel_handle, twin
from longshore.warning import warn

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa

# Rows per batch: a table keeps its batches, so few large ones; columns copy out of each, best while it is in the
# processor's cache; a stream's consumer sees them.
_BATCH_ROWS = {"arrow": 1 << 20, "polars": 1 << 20, "arrow_stream": 1 << 16, "pandas": 1 << 14}

# Objects are made under the interpreter's lock, for which an event loop may wait: a quarter of a millisecond a column.
_OBJECT_ROWS = 1 << 12

# A batch of wide rows is closed before it has them all.
_TABLE_BATCH_BYTES = 256 << 20
_BATCH_BYTES = 32 << 20
_LEAST_BATCH_BYTES = 1 << 20


@overload
def read_sql(
    query: Query, conn: ConnectionLike, *, return_type: Literal["pandas"] = "pandas", **arguments: Unpack[ForPandas]
) -> "pd.DataFrame": ...
@overload
def read_sql(
    query: Query, conn: ConnectionLike, *, return_type: Literal["arrow"], **arguments: Unpack[Shared]
) -> "pa.Table": ...
@overload
def read_sql(
    query: Query, conn: ConnectionLike, *, return_type: Literal["arrow_stream"], **arguments: Unpack[Shared]
) -> Stream: ...
@overload
def read_sql(
    query: Query, conn: ConnectionLike, *, return_type: Literal["polars"], **arguments: Unpack[Shared]
) -> "pl.DataFrame": ...
@overload
def read_sql(
    query: Query, conn: ConnectionLike, *, return_type: Literal["numpy"], **arguments: Unpack[Shared]
) -> "dict[str, np.ma.MaskedArray[Any, Any]]": ...
@overload
def read_sql(query: Query, conn: ConnectionLike, *, return_type: str, **arguments: Unpack[ForPandas]) -> Any: ...
@refusing(READ)
def read_sql(
    query: Query | ConnectionLike,
    conn: ConnectionLike | Query,
    *,
    return_type: str = "pandas",
    params: Sequence[Any] | Mapping[str, Any] | None = None,
    schema: Mapping[str, Any] | None = None,
    dtype_backend: Backend | None = None,
    index_col: str | Sequence[str] | None = None,
    partition_on: str | None = None,
    partition_num: Number | None = None,
    partition_range: tuple[Any, Any] | None = None,
    batch_size: int | None = None,
    pre_execution_query: str | Sequence[str] | None = None,
    timeout: float | None = None,
    progress: bool | Callable[[Progress], object] = False,
    options: Mapping[str, Any] | Options | None = None,
) -> Any:
    """Run a query and return its whole result, or a stream of it.

    >>> import longshore
    >>> longshore.read_sql("SELECT 1 AS one, 'a' AS letter", url, return_type="numpy")["one"].data
    array([1], dtype=int32)

    ``query``
        One statement that returns rows, or a list of statements with the same columns, whose results follow one
        another and are all read in one snapshot of the database.
    ``conn``
        A URL (``postgresql://``, ``mysql://``, ``mariadb://``, ``sqlite:///``; SQLAlchemy's are the same), the path of
        a SQLite file, ``env:NAME`` for what the environment has, a dict of the source's keywords, in which
        ``password`` may be a callable, a ``Connection`` or a ``Pool``; or an ``Engine`` or a ``Connection`` of
        SQLAlchemy, or a connection of psycopg 3, sqlite3, DuckDB or ADBC, whose open transaction is read. ConnectorX's
        order, ``(conn, query)``, is recognised too.
    ``return_type``
        ``"pandas"``, ``"arrow"`` (a ``pyarrow.Table``), ``"arrow_stream"`` (a ``longshore.Stream``, which reads while
        it is consumed), ``"polars"`` or ``"numpy"`` (a dict of masked arrays).
    ``params``
        Values that the server binds: a sequence for PostgreSQL's ``$1``, ``$2``, ... and for MySQL's and SQLite's
        ``?``, or a dict for ``:name``.
    ``schema``
        Arrow types by column that replace the type policy's; a value that does not fit is a ``DataError``.
    ``dtype_backend``
        For pandas: None (by the query's schema), ``"numpy"``, ``"numpy_nullable"`` or ``"pyarrow"``. Only with the last
        are decimals exact; elsewhere they are float64, with a ``DataWarning`` where that is not the value.
    ``index_col``
        For pandas: the column or columns of the index.
    ``partition_num``
        How many connections read a part each, all in one snapshot; ``"auto"`` lets the source choose. Alone, it splits
        a table by its blocks, primary key or rowids. What cannot be split exactly is read over one connection, with a
        ``SerialReadWarning``.
    ``partition_on``, ``partition_range``
        A column of the result to split any query by, and its lowest and highest value where they are known.
    ``batch_size``
        Rows per Arrow batch at most; 65,536 by default in a stream, 1,048,576 in a table.
    ``pre_execution_query``
        Statements that run first, on each connection of the read.
    ``timeout``
        Seconds for the whole call; of a stream, for each wait for a batch. The query is cancelled on the server.
    ``progress``
        True for a bar on the terminal or in a notebook (needs rich), or a callable that is given a
        ``longshore.Progress`` ten times a second, on the thread that reads.
    ``options``
        A mapping or ``longshore.Options``.

    Raises the exceptions of ``longshore.errors``; every text names what happened, where, and what to do.
    """
    cancel_handle = own_cancel_handle()
    query, conn = in_order(query, conn)
    query, params = without_clauses(query, params)
    chosen = Options.of(options)
    # Before the connection: a missing library or a wrong argument must not cost a query.
    frame = frame_for(return_type, dtype_backend, index_col)
    limit = chosen.memory_limit_bytes
    if frame is None and limit is not None:
        message = "options['memory_limit'] bounds a whole result; a stream holds a batch or two: set batch_size"
        raise InterfaceError(message)
    split = partition(query, partition_on, partition_num, partition_range)
    if chosen.ordered and return_type == "arrow_stream":
        split = None
    if split is None and partition_num is None and frame is not None:
        split = automatic()
    types = schema_types(schema)
    with contextlib.ExitStack() as stack:
        report = reporter(progress)
        if report is not None:
            stack.callback(report.close)
        reading = _core.open_read(
            source=source(conn),
            setup=statements(pre_execution_query, "pre_execution_query"),
            queries=statements(query, "query"),
            params=core_params(params),
            partition=split,
            types=types,
            policy=policy(return_type, dtype_backend, chosen),
            batch_rows=batch_rows(batch_size, return_type, frame),
            batch_bytes=batch_bytes(return_type, limit, split),
            memory_limit=chosen.memory_budget,
            timeout=seconds(timeout),
            progress=report,
            cancel_handle=cancel_handle,
        )
        stack.callback(reading.close)
        warn_if_serial(reading)
        if frame is None:
            stream = reading.stream()
            # The bar goes on as long as the stream.
            stack.pop_all()
            return Stream(stream, exact=types, json_objects=chosen.json == "object")
        return whole(reading, frame, json_objects=chosen.json == "object")


read_sql_async = twin(read_sql)
read_sql_async.__doc__ = """Run a query as ``read_sql`` does, with the same arguments, while the event loop goes on.

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


def in_order(query: Any, conn: Any) -> tuple[Any, Any]:
    """Give the two in this order; ConnectorX has them the other way round."""
    is_swapped = _names_source(query) and not _names_source(conn) and is_list_of_texts(conn)
    return (conn, query) if is_swapped else (query, conn)


def _names_source(given: object) -> bool:
    """Whether ``given`` is what a read is given to read from, and can be nothing else."""
    return is_address(given) or is_connection(given)


def warn_if_serial(reading: _core.Reading) -> None:
    """Tell why a read that was asked to be parallel is not."""
    if reading.serial is not None:
        warn(f"read over one connection: {reading.serial}", SerialReadWarning)


def whole(reading: _core.Reading, frame: frames.Target, *, json_objects: bool) -> Any:
    """Make the frame of a whole result."""
    if not isinstance(frame, frames.ColumnsTarget):
        return frame.build(reading.table(for_polars=frame.for_polars))
    columns, rows = reading.columns(backend=frame.backend, arrow_strings=frame.arrow_strings, json_objects=json_objects)
    return frame.build(columns, rows)


def frame_for(
    return_type: str, dtype_backend: str | None, index_col: str | Sequence[str] | None = None
) -> frames.Target | None:
    """Find what makes the frame; None for a stream, which needs nothing made. Raises ``InterfaceError``."""
    if not (index_col is None or isinstance(index_col, str) or is_list_of_texts(index_col)):
        raise InterfaceError(f"index_col is a column's name or a list of names, not {display(index_col)}")
    for name in [index_col] if isinstance(index_col, str) else index_col or ():
        name_text(name, "index_col")
    if return_type != "arrow_stream":
        return frames.target(return_type, dtype_backend=dtype_backend, index_col=index_col)
    if dtype_backend is not None or index_col is not None:
        message = 'dtype_backend and index_col are options of return_type="pandas"; give them to the stream\'s pandas()'
        raise InterfaceError(message)
    return None


def batch_bytes(return_type: str, limit: int | None, split: Partition | None) -> int:
    """Tell the size at which a batch is closed."""
    default = _TABLE_BATCH_BYTES if return_type in {"arrow", "polars"} else _BATCH_BYTES
    if return_type == "arrow_stream" and split is not None:
        # Each part has a few batches under way: all parts together hold what one would.
        default = max(default // (split["number"] or split["most"] or 1), _LEAST_BATCH_BYTES)
    # The limit is looked at after each batch: no batch should be much larger than it.
    return default if limit is None else min(default, limit)


def policy(return_type: str, dtype_backend: str | None, options: Options) -> dict[str, str]:
    """Put the type policy of a frame into the core's words."""
    decimals = "inferred"
    if return_type == "pandas" and dtype_backend != "pyarrow":
        decimals = "float64"
    if return_type == "arrow_stream":
        decimals = "streamed"
    return {
        "frame": return_type,
        "decimals": decimals,
        **options.words(_core.READ_OPTIONS, _core.SOURCE_OPTIONS),
        **({"uuid": "text"} if return_type == "polars" else {}),
    }


def batch_rows(batch_size: object, return_type: str, frame: frames.Target | None) -> int:
    """Tell the rows of a batch; raises ``InterfaceError`` for a size that is none."""
    if batch_size is None:
        if isinstance(frame, frames.ColumnsTarget) and frame.backend != "pyarrow" and not frame.arrow_strings:
            return _OBJECT_ROWS
        return _BATCH_ROWS[return_type]
    if isinstance(batch_size, int) and not isinstance(batch_size, bool) and 0 < batch_size < 2**31:
        return batch_size
    raise InterfaceError(f"batch_size is a number of rows from 1, not {display(batch_size)}")
