"""``write_sql``: a dataframe as a table."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from longshore.connection import ConnectionLike
from longshore.options import Options
from longshore.progress import Progress
from longshore.writing import destination, write

__all__ = ["write_sql"]


def write_sql(
    data: Any,
    table: str | tuple[str, str],
    conn: ConnectionLike,
    *,
    if_exists: Literal["fail", "append", "replace", "truncate", "upsert"] = "fail",
    key: str | Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    index: bool = False,
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
        NumPy structured array, a dict of arrays or lists, a ``longshore.Stream``, anything with
        ``__arrow_c_stream__`` or ``__arrow_c_array__``, or an iterator of those with the same columns. Iterators,
        streams and lazy frames are written as they come.
    ``table``
        The table's name with its case as it is, after its schema or database and a dot where it has one. A name with a
        dot in it is put in double quotes, or given as a pair: ``("schema", "table")``.
    ``conn``
        A URL, a dict of the source's keywords, a ``Connection``, whose open transaction the write becomes a part of, or
        a ``Pool``.
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
    ``batch_size``
        The most rows of one unit of work, where frames have more: a piece that one connection of several writes, a file
        that MySQL loads, what ``progress`` counts at once. Without it frames are written as they are, in parallel
        65,536 rows at a time.
    ``parallel``
        The number of connections that write at once, from a URL or a ``Pool``. They fill a table beside the target,
        which one more connection then renames to it (``"fail"``, ``"replace"``) or inserts into it: all rows or none,
        in no particular order. SQLite, which has one writer at a time, is written serially, with a
        ``SerialWriteWarning``.
    ``timeout``
        Seconds for the whole call.
    ``progress``
        True for a bar on the terminal or in a notebook (needs rich), or a callable that is given a
        ``longshore.Progress`` ten times a second.
    ``options``
        A mapping or ``longshore.Options``: ``nan`` and ``objects`` concern a write.

    Columns are matched by name. Raises the exceptions of ``longshore.errors``: a value that does not fit its column
    exactly is a ``DataError`` with column and row, and nothing has been written then.
    """
    into = destination(table, conn, if_exists=if_exists, key=key, types=types, parallel=parallel, batch_size=batch_size)
    return write(data, into, index=index, timeout=timeout, progress=progress, options=options)
