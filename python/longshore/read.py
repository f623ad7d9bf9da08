"""``read_sql``: the result of a query as a dataframe."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeGuard, Unpack, overload

from longshore import _core, frames
from longshore.connection import ConnectionLike, is_url, target
from longshore.errors import InterfaceError, SerialReadWarning
from longshore.options import Options
from longshore.progress import reporter
from longshore.schema import encodable, wanted

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa

__all__ = ["read_sql"]

Backend = Literal["numpy", "numpy_nullable", "pyarrow"]
Progress = bool | Callable[[int], object]

# Rows per batch: a table keeps its batches, so few large ones; columns copy out of each, best while it is in the
# processor's cache; a stream's consumer sees them.
_BATCH_ROWS = {"arrow": 1 << 20, "polars": 1 << 20, "arrow_stream": 1 << 16, "pandas": 1 << 14, "numpy": 1 << 14}

# A batch of wide rows is closed before it has them all.
_TABLE_BATCH_BYTES = 256 << 20
_BATCH_BYTES = 32 << 20


class _Shared(TypedDict, total=False):
    """The arguments that every return type takes."""

    params: Sequence[Any] | Mapping[str, Any] | None
    schema: Mapping[str, Any] | None
    partition_on: str | None
    partition_num: int | Literal["auto"] | None
    partition_range: tuple[Any, Any] | None
    batch_size: int | None
    pre_execution_query: str | Sequence[str] | None
    timeout: float | None
    progress: Progress
    options: Mapping[str, Any] | Options | None


class _Pandas(_Shared, total=False):
    """Those of pandas beside."""

    dtype_backend: Backend | None
    index_col: str | Sequence[str] | None


Query = str | Sequence[str]


@overload
def read_sql(
    query: Query, conn: ConnectionLike, *, return_type: Literal["pandas"] = "pandas", **arguments: Unpack[_Pandas]
) -> "pd.DataFrame": ...
@overload
def read_sql(
    query: Query, conn: ConnectionLike, *, return_type: Literal["arrow"], **arguments: Unpack[_Shared]
) -> "pa.Table": ...
@overload
def read_sql(
    query: Query, conn: ConnectionLike, *, return_type: Literal["arrow_stream"], **arguments: Unpack[_Shared]
) -> _core.Stream: ...
@overload
def read_sql(
    query: Query, conn: ConnectionLike, *, return_type: Literal["polars"], **arguments: Unpack[_Shared]
) -> "pl.DataFrame": ...
@overload
def read_sql(
    query: Query, conn: ConnectionLike, *, return_type: Literal["numpy"], **arguments: Unpack[_Shared]
) -> "dict[str, np.ma.MaskedArray[Any, Any]]": ...
def read_sql(
    query: str | Sequence[str] | ConnectionLike,
    conn: ConnectionLike | str | Sequence[str],
    *,
    return_type: str = "pandas",
    params: Sequence[Any] | Mapping[str, Any] | None = None,
    schema: Mapping[str, Any] | None = None,
    dtype_backend: Backend | None = None,
    index_col: str | Sequence[str] | None = None,
    partition_on: str | None = None,
    partition_num: int | Literal["auto"] | None = None,
    partition_range: tuple[Any, Any] | None = None,
    batch_size: int | None = None,
    pre_execution_query: str | Sequence[str] | None = None,
    timeout: float | None = None,
    progress: Progress = False,
    options: Mapping[str, Any] | Options | None = None,
) -> Any:
    """Run a query and return its whole result, or a stream of it.

    >>> import longshore
    >>> longshore.read_sql("SELECT 1 AS one, 'a' AS letter", url, return_type="numpy")["one"].data
    array([1], dtype=int32)

    ``query``
        One statement that returns rows, or a list of statements with the same columns, whose results follow one
        another and are all read at one moment of the database.
    ``conn``
        A URL, or a dict of the source's keywords, in which ``password`` may be a callable. ConnectorX's order,
        ``(conn, query)``, is recognised too.
    ``return_type``
        ``"pandas"``, ``"arrow"`` (a ``pyarrow.Table``), ``"arrow_stream"`` (an object with ``__arrow_c_stream__``
        that reads while it is consumed), ``"polars"`` or ``"numpy"`` (a dict of masked arrays).
    ``params``
        Values that the server binds: a sequence for ``$1``, ``$2``, ..., or a dict for ``:name``.
    ``schema``
        Arrow types by column that replace the type policy's; a value that does not fit is a ``DataError``.
    ``dtype_backend``
        For pandas: None (by the query's schema), ``"numpy"``, ``"numpy_nullable"`` or ``"pyarrow"``.
    ``index_col``
        For pandas: the column or columns of the index.
    ``partition_on``, ``partition_num``, ``partition_range``
        How to split the read. This version reads serially, and warns that it does.
    ``batch_size``
        Rows per Arrow batch at most; 65,536 by default in a stream, 1,048,576 in a table.
    ``pre_execution_query``
        Statements that run first, on the same connection.
    ``timeout``
        Seconds for the whole call; of a stream, for each wait for a batch. The query is cancelled on the server.
    ``progress``
        True for a bar on the terminal (needs rich), or a callable that is given the number of rows so far.
    ``options``
        A mapping or ``longshore.Options``.

    Raises the exceptions of ``longshore.errors``; every text names what happened, where, and what to do.
    """
    if is_url(query) and not is_url(conn):
        query, conn = conn, query
    chosen = Options.of(options)
    # Before the connection: a missing library or a wrong argument must not cost a query.
    frame = _frame(return_type, dtype_backend, index_col)
    if frame is None:
        _refuse_for_stream(chosen, progress)
    _warn_serial(partition_on, partition_num, partition_range)
    limit = chosen.memory_limit_bytes
    with reporter(progress) as report:
        reading = _core.open_read(
            **target(conn)._asdict(),  # type: ignore[arg-type]  # the order was settled above
            setup=_statements(pre_execution_query, "pre_execution_query"),
            queries=_statements(query, "query"),
            params=_bound(params),
            types=wanted(schema),
            policy=_policy(return_type, dtype_backend, chosen),
            batch_rows=_batch_rows(batch_size, return_type),
            batch_bytes=_batch_bytes(return_type, limit),
            timeout=_seconds(timeout),
        )
        if frame is None:
            return reading.stream()
        if isinstance(frame, frames.ColumnsTarget):
            columns, rows = reading.columns(
                backend=frame.backend,
                arrow_strings=frame.arrow_strings,
                json_objects=chosen.json == "object",
                memory_limit=limit,
                progress=report,
            )
            return frame.build(columns, rows)
        return frame.build(reading.table(for_polars=return_type == "polars", memory_limit=limit, progress=report))


def _frame(return_type: str, dtype_backend: str | None, index_col: str | Sequence[str] | None) -> frames.Target | None:
    """Find what makes the frame; a stream needs nothing made."""
    if not (index_col is None or isinstance(index_col, str) or _is_list_of_texts(index_col)):
        message = f"index_col is a column's name or a list of names, not {index_col!r}"
        raise InterfaceError(message)
    if return_type != "arrow_stream":
        return frames.target(return_type, dtype_backend=dtype_backend, index_col=index_col)
    if dtype_backend is not None or index_col is not None:
        message = 'dtype_backend and index_col are options of return_type="pandas"'
        raise InterfaceError(message)
    return None


def _batch_bytes(return_type: str, limit: int | None) -> int:
    default = _TABLE_BATCH_BYTES if return_type in {"arrow", "polars"} else _BATCH_BYTES
    # The limit is looked at after each batch: no batch should be much larger than it.
    return default if limit is None else min(default, limit)


def _refuse_for_stream(options: Options, progress: Progress) -> None:
    if options.memory_limit is not None:
        message = "options['memory_limit'] bounds a whole result; a stream holds a batch or two: set batch_size"
        raise InterfaceError(message)
    if progress is not False:
        message = "progress reports a whole result; count the rows of a stream's batches as they come"
        raise InterfaceError(message)


def _seconds(timeout: object) -> float | None:
    if timeout is None:
        return None
    if isinstance(timeout, int | float) and not isinstance(timeout, bool) and timeout >= 0:
        return float(timeout)
    message = f"timeout is a number of seconds, zero or more, not {timeout!r}"
    raise InterfaceError(message)


def _policy(return_type: str, dtype_backend: str | None, options: Options) -> dict[str, str]:
    """Put the type policy of a frame into the core's words."""
    decimals = "settled"
    if return_type == "pandas" and dtype_backend != "pyarrow":
        decimals = "float64"
    if return_type == "arrow_stream":
        decimals = "streamed"
    return {
        "frame": return_type,
        "decimals": decimals,
        "numeric_nan": options.numeric_nan,
        "infinity": options.infinity,
        "time_24": options.time_24,
        "uuid": "text" if return_type == "polars" else options.uuid,
        "protocol": options.protocol,
        "snapshot": str(options.snapshot).lower(),
    }


def _statements(given: object, name: str) -> list[str]:
    if given is None and name != "query":
        return []
    if isinstance(given, str):
        return [encodable(given, name)]
    if _is_list_of_texts(given):
        return [encodable(statement, name) for statement in given]
    message = f"{name} is a text or a list of texts, not {type(given).__name__}"
    raise InterfaceError(message)


def _is_list_of_texts(given: object) -> TypeGuard[Sequence[str]]:
    return isinstance(given, Sequence) and all(isinstance(text, str) for text in given)


def _bound(params: object) -> object:
    if params is None:
        return None
    if isinstance(params, Mapping):
        if foreign := [name for name in params if not isinstance(name, str)]:
            message = f"params names its values by texts, not {foreign[0]!r}"
            raise InterfaceError(message)
        return {encodable(name, "a name in params"): value for name, value in params.items()}
    # A frame gives its columns' names.
    if not isinstance(params, Sequence) and hasattr(params, "columns"):
        message = (
            f"params is a list, a tuple or a dict, not {type(params).__name__}; write params=list(frame['column'])"
        )
        raise InterfaceError(message)
    # A set has no order, and a text would be taken apart into letters.
    if isinstance(params, str | bytes | AbstractSet) or not hasattr(params, "__iter__"):
        message = f"params is a list, a tuple or a dict, not {type(params).__name__}; write params=[value]"
        raise InterfaceError(message)
    return params


def _batch_rows(batch_size: object, return_type: str) -> int:
    if batch_size is None:
        return _BATCH_ROWS[return_type]
    if isinstance(batch_size, int) and not isinstance(batch_size, bool) and 0 < batch_size < 2**31:
        return batch_size
    message = f"batch_size is a number of rows from 1, not {batch_size!r}"
    raise InterfaceError(message)


def _warn_serial(partition_on: str | None, partition_num: object, partition_range: object) -> None:
    asked = {"partition_on": partition_on, "partition_num": partition_num, "partition_range": partition_range}
    given = [name for name, value in asked.items() if value is not None]
    if given and partition_num != 1:
        message = f"{', '.join(given)}: this version reads over one connection; the result is the same"
        warnings.warn(message, SerialReadWarning, stacklevel=3)
