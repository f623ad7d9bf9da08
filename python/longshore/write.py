"""``write_sql``: a dataframe as a table."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

from longshore import _core
from longshore.arguments import IfExists, Writing
from longshore.connection import ConnectionLike
from longshore.foreign import WRITE, refusing
from longshore.options import Options
from longshore.progress import Progress
from longshore.threads import switched
from longshore.writing import write

__all__ = ["write_sql", "write_sql_async"]


@refusing(WRITE)
def write_sql(
    data: Any,
    table: str | tuple[str, str],
    conn: ConnectionLike,
    *,
    if_exists: IfExists = "fail",
    key: str | Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    index: bool = False,
    columns: Sequence[str] | None = None,
    batch_size: int | None = None,
    parallel: int = 1,
    timeout: float | None = None,
    progress: bool | Callable[[Progress], object] = False,
    options: Mapping[str, Any] | Options | None = None,
) -> int:
    """Write a dataframe into a table, all of it or nothing, and return the number of rows.

    >>> import longshore, polars
    >>> boats = polars.DataFrame({"berth": [1, 2], "name": ["Ada", "Bob"]})
    >>> longshore.write_sql(boats, "write_boats", url, if_exists="replace", key="berth")
    2
    >>> longshore.write_sql(boats.tail(1), "write_boats", url, if_exists="upsert", key="berth")
    1
    >>> longshore.read_sql("SELECT count(*) AS boats FROM write_boats", url, return_type="numpy")["boats"].data
    array([2])

    ``data``
        A pandas or polars DataFrame, a polars LazyFrame, a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, a
        NumPy structured array, a dict of arrays or lists, a list of dicts, tuples or dataclasses, a named Series, a
        ``longshore.Stream``, anything with ``__arrow_c_stream__`` or ``__arrow_c_array__``, or an iterator of frames
        with the same columns. Iterators, streams and lazy frames are written as they come.
    ``table``
        The table's name with its case as it is, after its schema or database and a dot where it has one. A name with a
        dot in it is put in double quotes, or given as a pair: ``("schema", "table")``.
    ``conn``
        A URL, the path of a SQLite file, which is made where there is none, ``env:NAME``, a dict of the source's
        keywords, a ``Connection``, whose open transaction the write becomes a part of, or a ``Pool``.
    ``if_exists``
        ``"fail"`` makes the table, which must not be there. ``"append"`` adds to the table that is there;
        ``"truncate"`` replaces its rows, ``"replace"`` the table with all that belongs to it. ``"upsert"`` replaces the
        rows whose ``key`` is there already and adds the others; of equal keys in the data the last one wins.
    ``key``
        The column or columns that tell rows apart: of an upsert, and the primary key of a new table.
    ``types``
        The database's types of a new table's columns, where they are not to follow from the data's.
    ``index``
        Whether a pandas index is written, too.
    ``columns``
        The names of the columns of a list of tuples; or those of a list of dicts, which then have no other keys.
    ``batch_size``
        The most rows of one unit of work, where frames have more: a piece that one connection of several writes, a file
        that MySQL loads, what ``progress`` counts at once. Without it frames are written as they are, in parallel
        65,536 rows at a time.
    ``parallel``
        The number of connections that write at once, from a URL or a ``Pool``. They fill a staging table,
        which one more connection then renames to it (``"fail"``, ``"replace"``) or inserts into it: all rows or none,
        in no particular order. SQLite, which has one writer at a time, is written serially, with a
        ``SerialWriteWarning``.
    ``timeout``
        Seconds for the whole call.
    ``progress``
        True for a bar on the terminal or in a notebook (needs rich), or a callable that is given a
        ``longshore.Progress`` ten times a second.
    ``options``
        A mapping or ``longshore.Options``: ``nan``, ``nested`` and ``objects`` concern a write.

    Columns are matched by name. Raises the exceptions of ``longshore.errors``: a value that does not fit its column
    exactly is a ``DataError`` with column and row, and nothing has been written then.
    """
    return write(
        data,
        table,
        conn,
        _core.Switch(),
        if_exists=if_exists,
        key=key,
        types=types,
        index=index,
        columns=columns,
        batch_size=batch_size,
        parallel=parallel,
        timeout=timeout,
        progress=progress,
        options=options,
    )


@refusing(WRITE, like=write_sql)
async def write_sql_async(
    data: Any, table: str | tuple[str, str], conn: ConnectionLike, **arguments: Unpack[Writing]
) -> int:
    """Write a dataframe as ``write_sql`` does, with the same arguments, while the event loop goes on.

    >>> import asyncio, longshore
    >>> async def written():
    ...     return await longshore.write_sql_async([{"berth": 1}], "async_boats", url, if_exists="replace")
    >>> asyncio.run(written())
    1

    The data is taken on a thread of the write's own, an iterator's frames among it. Cancelling the task undoes the
    write; ``CancelledError`` is raised when the thread has stopped.
    """
    return await switched(lambda switch: write(data, table, conn, switch, **arguments))
