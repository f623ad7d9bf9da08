"""``write_sql``: a dataframe as a table."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from longshore import _core
from longshore.arguments import IfExists, is_list_of_texts, seconds, table_name
from longshore.connectable import ConnectionLike, Source, source
from longshore.errors import InterfaceError
from longshore.foreign import WRITE, refusing
from longshore.frames.inputs import arrow_streams
from longshore.options import Options
from longshore.progress import Progress, reporting
from longshore.texts import column_name, display, name_text
from longshore.threads import own_cancel_handle, twin

_MODES = ("fail", "append", "replace", "truncate", "upsert")
#: Of other libraries.
_OTHER_MODES = {
    "delete_rows": 'if_exists="truncate" replaces the rows, and keeps the table',
    "create": 'if_exists="fail" makes the table',
    "create_append": 'make the table first, then if_exists="append"',
}
#: Those that make the table.
_MAKING = ("fail", "replace")

#: More connections than that are a mistake.
_MOST_SESSIONS = 256
_MOST_ROWS = 2**31 - 1


class Destination(TypedDict):
    """Where rows go and how, as the core takes it."""

    source: Source
    schema: str | None
    table: str
    if_exists: str
    key: list[str]
    types: list[tuple[str, str]]
    own: dict[str, str]
    sessions: int
    most_rows: int | None


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
        keywords, a ``Connection``, whose open transaction the write becomes a part of, a ``Pool``, or a connection of
        another library's, as in ``read_sql``.
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
    chosen = Options.of(options)
    into = destination(
        table,
        conn,
        if_exists=if_exists,
        key=key,
        types=types,
        options=chosen,
        parallel=parallel,
        batch_size=batch_size,
    )
    if not isinstance(index, bool):
        raise InterfaceError(f"index is True or False, not {display(index)}")
    cancel_handle = own_cancel_handle()
    with reporting(progress) as report:
        frames = arrow_streams(data, index=index, columns=_columns(columns), options=chosen)
        return _core.write(frames, into=into, timeout=seconds(timeout), progress=report, cancel_handle=cancel_handle)


write_sql_async = twin(write_sql)
write_sql_async.__doc__ = """Write a dataframe as ``write_sql`` does, while the event loop goes on.

    >>> import asyncio, longshore
    >>> async def write_boats():
    ...     return await longshore.write_sql_async([{"berth": 1}], "async_boats", url, if_exists="replace")
    >>> asyncio.run(write_boats())
    1

    The data is taken on a thread of the write's own, an iterator's frames among it. Cancelling the task undoes the
    write; ``CancelledError`` is raised when the thread has stopped.
    """


def destination(
    table: object,
    conn: object,
    *,
    if_exists: str,
    key: str | Sequence[str] | None,
    types: Mapping[str, str] | None,
    options: Options,
    parallel: int = 1,
    batch_size: int | None = None,
) -> Destination:
    """Check where rows are to go; raises ``InterfaceError`` for what is not a place."""
    if not isinstance(if_exists, str) or if_exists not in _MODES:
        hint = _OTHER_MODES.get(if_exists) if isinstance(if_exists, str) else None
        raise InterfaceError(f"unknown if_exists {display(if_exists)}; choose one of {', '.join(_MODES)}", hint=hint)
    schema, name = table_name(table)
    return Destination(
        source=source(conn, creates=if_exists in _MAKING),
        schema=schema,
        table=name,
        if_exists=if_exists,
        key=_key(key),
        types=_types(types),
        own=options.words(_core.SOURCE_OPTIONS),
        sessions=_number(parallel, _MOST_SESSIONS, "parallel is a number of connections"),
        most_rows=None if batch_size is None else _number(batch_size, _MOST_ROWS, "batch_size is a number of rows"),
    )


def _number(given: object, most: int, what: str) -> int:
    # True is not a number of anything.
    if isinstance(given, int) and not isinstance(given, bool) and 0 < given <= most:
        return given
    raise InterfaceError(f"{what} from 1 to {most}, not {display(given)}")


def _key(key: str | Sequence[str] | None) -> list[str]:
    if key is None:
        return []
    names = [key] if isinstance(key, str) else list(key) if is_list_of_texts(key) else None
    if names is None or not names or len(set(names)) < len(names):
        raise InterfaceError(f"key is a column's name or a list of different names, not {display(key)}")
    return [name_text(name, "a name in key") for name in names]


def _columns(columns: Sequence[str] | None) -> list[str] | None:
    if columns is None:
        return None
    if isinstance(columns, str) or not is_list_of_texts(columns) or not columns or len(set(columns)) < len(columns):
        raise InterfaceError(f"columns is a list of different names, not {display(columns)}")
    return [column_name(name) for name in columns]


def _types(types: Mapping[str, str] | None) -> list[tuple[str, str]]:
    if types is None:
        return []
    if not isinstance(types, Mapping) or not is_list_of_texts([*types.keys(), *types.values()]):
        raise InterfaceError(f"types is a dict from column to the database's type, not {display(types)}")
    return [(name_text(name, "a name in types"), name_text(kind, "a type")) for name, kind in types.items()]
