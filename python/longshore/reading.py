"""One read, from its arguments to its result."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from longshore import _core, frames
from longshore.connection import Source, is_connection, source
from longshore.errors import InterfaceError, SerialReadWarning
from longshore.options import Options
from longshore.overrides import wanted
from longshore.parameters import bound, is_list_of_texts, seconds, statements, without_clauses
from longshore.partition import Number, Partition, partition, unasked
from longshore.progress import Progress, reporter
from longshore.stream import Stream
from longshore.target import is_address
from longshore.texts import display, name_text
from longshore.warning import warn

__all__ = ["batch_bytes", "batch_rows", "frame_for", "in_order", "policy", "read", "whole"]

# Rows per batch: a table keeps its batches, so few large ones; columns copy out of each, best while it is in the
# processor's cache; a stream's consumer sees them.
_BATCH_ROWS = {"arrow": 1 << 20, "polars": 1 << 20, "arrow_stream": 1 << 16, "pandas": 1 << 14}

# Objects are made under the interpreter's lock, for which an event loop may wait: a quarter of a millisecond a column.
_OBJECT_ROWS = 1 << 12

# A batch of wide rows is closed before it has them all.
_TABLE_BATCH_BYTES = 256 << 20
_BATCH_BYTES = 32 << 20
_LEAST_BATCH_BYTES = 1 << 20


def read(
    query: Any,
    conn: Any,
    switch: _core.Switch,
    *,
    return_type: str = "pandas",
    params: Sequence[Any] | Mapping[str, Any] | None = None,
    schema: Mapping[str, Any] | None = None,
    dtype_backend: str | None = None,
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
    """Do what ``read_sql`` says, until ``switch`` is thrown."""
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
        split = unasked()
    types = wanted(schema)
    with contextlib.ExitStack() as stack:
        report = reporter(progress)
        if report is not None:
            stack.callback(report.close)
        reading = _core.open_read(
            source=source(conn),
            setup=statements(pre_execution_query, "pre_execution_query"),
            queries=statements(query, "query"),
            params=bound(params),
            partition=split,
            types=types,
            policy=policy(return_type, dtype_backend, chosen),
            batch_rows=batch_rows(batch_size, return_type, frame),
            batch_bytes=batch_bytes(return_type, limit, split),
            memory_limit=chosen.memory_budget,
            timeout=seconds(timeout),
            progress=report,
            switch=switch,
        )
        stack.callback(reading.close)
        if reading.serial is not None:
            warn(f"read over one connection: {reading.serial}", SerialReadWarning)
        if frame is None:
            stream = reading.stream()
            # The bar goes on as long as the stream.
            stack.pop_all()
            return Stream(stream, exact=types, json_objects=chosen.json == "object")
        return whole(reading, frame, json_objects=chosen.json == "object")


def in_order(query: Any, conn: Any) -> tuple[Any, Any]:
    """Give the two in this order; ConnectorX has them the other way round."""
    is_swapped = _names_source(query) and not _names_source(conn) and is_list_of_texts(conn)
    return (conn, query) if is_swapped else (query, conn)


def _names_source(given: object) -> bool:
    """Whether ``given`` is what a read is given to read from, and can be nothing else."""
    return is_address(given) or is_connection(given)


@contextlib.contextmanager
def opened(
    query: Any,
    conn: Any,
    switch: _core.Switch,
    *,
    params: Sequence[Any] | Mapping[str, Any] | None,
    schema: Mapping[str, Any] | None,
    partition_on: str | None,
    partition_num: Number | None,
    timeout: float | None,
    options: Options,
    into: Source,
) -> Iterator[_core.Reading]:
    """Open a read whose batches the core writes ``into`` a source; raises as ``read_sql`` does."""
    query, params = without_clauses(query, params)
    split = partition(query, partition_on, partition_num, None)
    origin = source(conn)
    with _one_left(origin if origin is into else None):
        reading = _core.open_read(
            source=origin,
            setup=[],
            queries=statements(query, "query"),
            params=bound(params),
            partition=split,
            types=wanted(schema),
            policy=policy("arrow_stream", None, options),
            batch_rows=_BATCH_ROWS["arrow_stream"],
            batch_bytes=batch_bytes("arrow_stream", None, split),
            memory_limit=options.stream_budget,
            timeout=seconds(timeout),
            progress=None,
            switch=switch,
        )
    with contextlib.closing(reading):
        if reading.serial is not None:
            warn(f"read over one connection: {reading.serial}", SerialReadWarning)
        yield reading


@contextlib.contextmanager
def _one_left(shared: Source | None) -> Iterator[None]:
    """Have a read leave a session of a pool to the write that takes its rows."""
    if not isinstance(shared, _core.Pool):
        yield
        return
    held = shared.hold(1)
    try:
        yield
    finally:
        held.release()


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
        message = f"index_col is a column's name or a list of names, not {display(index_col)}"
        raise InterfaceError(message)
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
        "numeric_nan": options.numeric_nan,
        "infinity": options.infinity,
        "time_24": options.time_24,
        "zero_date": options.zero_date,
        "tinyint1": options.tinyint1,
        "lock": str(options.lock).lower(),
        "uuid": "text" if return_type == "polars" else options.uuid,
        "protocol": options.protocol,
        "snapshot": str(options.snapshot).lower(),
    }


def _makes_objects(frame: frames.Target | None) -> bool:
    return isinstance(frame, frames.ColumnsTarget) and frame.backend != "pyarrow" and not frame.arrow_strings


def batch_rows(batch_size: object, return_type: str, frame: frames.Target | None) -> int:
    """Tell the rows of a batch; raises ``InterfaceError`` for a size that is none."""
    if batch_size is None:
        return _OBJECT_ROWS if _makes_objects(frame) else _BATCH_ROWS[return_type]
    if isinstance(batch_size, int) and not isinstance(batch_size, bool) and 0 < batch_size < 2**31:
        return batch_size
    message = f"batch_size is a number of rows from 1, not {display(batch_size)}"
    raise InterfaceError(message)
