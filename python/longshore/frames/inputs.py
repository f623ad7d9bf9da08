"""Python data as Arrow: what each kind is as streams to write, and as a table to query."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

from longshore.errors import InterfaceError
from longshore.frames import is_of
from longshore.frames.pushdown import Projection
from longshore.options import Options
from longshore.texts import column_name

_WRITABLE = (
    "a pandas or polars frame or named Series, a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, a NumPy "
    "structured array, a dict of arrays, a list of dicts, tuples or dataclasses, an object with __arrow_c_stream__, or "
    "an iterator of frames"
)


def arrow_streams(data: object, *, index: bool, columns: Sequence[str] | None, options: Options) -> Iterator[object]:
    """Return the objects with ``__arrow_c_stream__`` or ``__arrow_c_array__`` that ``data`` is, as they come.

    ``columns`` are those of rows that are lists of values. Raises ``InterfaceError`` for data of no known kind,
    ``DataError`` for objects that have no one type, and ``ImportError`` where a library is missing.
    """
    if isinstance(data, Sequence) and not isinstance(data, str | bytes) and (not data or _is_row(data[0])):
        _refuse_index(data, index=index)
        from longshore.frames.columns import rows_table

        return iter([rows_table(data, columns, options)])
    if columns is not None:
        raise InterfaceError(f"columns is for a list of rows; {type(data).__name__} is not one")
    streams = _frame_streams(data, index=index, options=options)
    if streams is not None:
        return iter(streams)
    if isinstance(data, Iterable) and not isinstance(data, str | bytes):
        return _iterate(data, index=index, options=options)
    raise _unknown_kind(data)


def _is_row(value: object) -> bool:
    """Whether a value is one row of Python objects."""
    return isinstance(value, tuple | list | Mapping) or (is_dataclass(value) and not isinstance(value, type))


def _refuse_index(data: object, *, index: bool) -> None:
    if index:
        raise InterfaceError(f"index=True is for pandas; {type(data).__name__} has no index")


def _iterate(frames: Iterable[object], *, index: bool, options: Options) -> Iterator[object]:
    for frame in frames:
        values = frame.values() if isinstance(frame, Mapping) else ()
        # A value that cannot be a whole column is one of a row.
        is_row = any(isinstance(value, str | bytes) or not isinstance(value, Iterable) for value in values)
        streams = None if is_row else _frame_streams(frame, index=index, options=options)
        if streams is None and _is_row(frame):
            hint = "give list(rows): the type of a column follows from all of its values"
            raise InterfaceError("an iterator gives frames, and this one gives single rows", hint=hint)
        if streams is None:
            raise _unknown_kind(frame)
        yield from streams


def _frame_streams(data: Any, *, index: bool, options: Options) -> Iterable[object] | None:
    """Return one frame's streams; None for what is not a frame."""
    if not is_of(data, "pandas", "Series", "DataFrame"):
        _refuse_index(data, index=index)
    if is_of(data, "pandas", "Series") or is_of(data, "polars", "Series"):
        if data.name is None or not str(data.name):
            hint = 'name it: series.to_frame("x")'
            raise InterfaceError("the Series has no name, which its column would have", hint=hint)
        data = data.to_frame()
    if is_of(data, "pandas", "DataFrame"):
        from longshore.frames import pandas

        return pandas.batches(data, index=index, options=options)
    if is_of(data, "polars", "DataFrame", "LazyFrame"):
        from longshore.frames import polars

        return polars.batches(data)
    if is_of(data, "numpy", "ndarray") or isinstance(data, Mapping):
        from longshore.frames import numpy

        return [numpy.table(data, options)]
    for name in getattr(getattr(data, "schema", None), "names", ()):
        column_name(name)
    if is_of(data, "pyarrow.dataset", "Dataset"):
        return [data.scanner().to_reader()]
    if is_of(data, "pyarrow", "RecordBatchReader"):
        from longshore.frames import arrow

        return arrow.batches(data)
    return [data] if _has_arrow(data) else None


def _unknown_kind(data: object) -> InterfaceError:
    return InterfaceError(f"{type(data).__name__} cannot be written: give {_WRITABLE}")


_READABLE = (
    "a pandas or polars frame, a pyarrow Table, RecordBatch, RecordBatchReader, Scanner or Dataset, a NumPy structured "
    "array, a dict of arrays or lists, a list of dicts, or an object with __arrow_c_stream__"
)

_FRAMES = {
    "pandas": ("DataFrame",),
    "polars": ("DataFrame", "LazyFrame"),
    "pyarrow": ("Table", "RecordBatch", "RecordBatchReader"),
    "pyarrow.dataset": ("Dataset", "Scanner"),
    "pyarrow.ipc": ("RecordBatchFileReader",),
}


def is_frame(value: object) -> bool:
    """Whether a value is a dataframe of a known library, not a dict or a list that may be anything."""
    return any(is_of(value, module, *names) for module, names in _FRAMES.items())


def is_table(value: object) -> bool:
    """Whether a value can be a table: of a dict or a list, whether all that it holds looks like columns or rows."""
    if is_frame(value):
        return True
    if isinstance(value, type):
        return False
    if isinstance(value, Mapping):
        return bool(value) and all(isinstance(each, list | tuple) or hasattr(each, "dtype") for each in value.values())
    if isinstance(value, list):
        return bool(value) and isinstance(value[0], Mapping)
    return _has_arrow(value) or _is_capsule(value)


def _has_arrow(value: object) -> bool:
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")


def _is_capsule(value: object) -> bool:
    """Whether it is a capsule of an Arrow stream."""
    return type(value).__name__ == "PyCapsule" and '"arrow_array_stream"' in repr(value)


def engine_table(
    data: Any,
    name: str,
    projection: Projection,
    options: Options,
    on_error: Callable[[BaseException], None],
    *,
    again: bool = False,
) -> Any:
    """Return what the engine scans for the variable ``name``: an Arrow table, dataset or reader.

    ``again`` is whether the query reads it more than once; ``projection`` is asked for the columns where that is faster
    than converting all. ``on_error`` gets the exception that ends a reader while the engine reads it. Raises
    ``InterfaceError`` for what is not a table, and ``DataError`` for a column that cannot be had exactly.
    """
    if is_of(data, "pandas", "DataFrame"):
        from longshore.frames import pandas

        return pandas.engine_table(data, name, projection, options)
    if is_of(data, "polars", "DataFrame", "LazyFrame"):
        from longshore.frames import polars

        return polars.engine_table(data, name, projection)
    if is_of(data, "numpy", "ndarray") or isinstance(data, Mapping):
        from longshore.frames import numpy

        return numpy.engine_table(data, name, projection, options)
    if isinstance(data, list) and data and isinstance(data[0], Mapping):
        from longshore.frames.columns import rows_engine_table

        return rows_engine_table(data, name, projection, options)
    return _arrow_table(data, name, projection, on_error, again=again)


def column_names(data: Any) -> list[str]:
    """Return the names of a table's columns, for a hint; none where that would cost more."""
    if isinstance(data, Mapping):
        return [str(key) for key in data]
    if is_frame(data) and not is_of(data, "polars", "LazyFrame"):
        schema = next((getattr(data, name) for name in ("schema", "projected_schema") if hasattr(data, name)), data)
        names = getattr(schema, "names", getattr(data, "columns", ()))
        return [str(name) for name in (names() if callable(names) else names)]
    return []


def is_repeatable(data: object) -> bool:
    """Whether it makes a new stream each time, unlike a reader."""
    is_reader = is_of(data, "pyarrow", "RecordBatchReader") or is_of(data, "longshore.stream", "Stream")
    return hasattr(data, "__arrow_c_stream__") and not (is_reader or is_frame(data) or hasattr(data, "__len__"))


class _CapsuleStream:
    """A capsule as an object that hands it over."""

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._capsule


def _arrow_table(
    data: Any, name: str, projection: Projection, on_error: Callable[[BaseException], None], *, again: bool
) -> Any:
    if is_of(data, "pyarrow.dataset", "Scanner"):
        data = data.to_reader()
    elif is_of(data, "pyarrow.ipc", "RecordBatchFileReader"):
        data = data.read_all()
    elif _is_capsule(data):
        data = _CapsuleStream(data)
    if not (is_of(data, "pyarrow.dataset", "Dataset") or _has_arrow(data)):
        raise InterfaceError(f"{name!r} is of type {type(data).__name__}, which is not a table: give {_READABLE}")
    from longshore.frames import scan

    if is_of(data, "pyarrow.dataset", "Dataset"):
        return scan.engine_dataset(data, name, projection)
    if not is_of(data, "pyarrow", "Table", "RecordBatch"):
        # What knows its length lies in memory, and may be read as often as the query asks.
        if hasattr(data, "__arrow_c_stream__") and not hasattr(data, "__len__") and not (again and is_repeatable(data)):
            return scan.engine_reader(data, name, on_error)
        data = scan.read_all(data, name)
    return scan.engine_table(data, name, projection)
