"""``read_sql``: the result of a query as a dataframe."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from longshore import _core
from longshore.arguments import Backend, ForPandas, Query, Shared
from longshore.connection import ConnectionLike
from longshore.foreign import READ, refusing
from longshore.options import Options
from longshore.partition import Number
from longshore.progress import Progress
from longshore.reading import read
from longshore.stream import Stream

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa

__all__ = ["read_sql"]


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
        ``password`` may be a callable, a ``Connection``, a ``Pool`` or a ``sqlite3.Connection``. ConnectorX's order,
        ``(conn, query)``, is recognised too.
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
    return read(
        query,
        conn,
        _core.Switch(),
        return_type=return_type,
        params=params,
        schema=schema,
        dtype_backend=dtype_backend,
        index_col=index_col,
        partition_on=partition_on,
        partition_num=partition_num,
        partition_range=partition_range,
        batch_size=batch_size,
        pre_execution_query=pre_execution_query,
        timeout=timeout,
        progress=progress,
        options=options,
    )
