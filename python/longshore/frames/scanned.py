"""Objects that a query names: what each kind of data is to an engine that scans Arrow."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

from longshore.errors import InterfaceError
from longshore.frames.use import Wanted
from longshore.options import Options

_KINDS = (
    "a pandas or polars frame, a pyarrow Table, RecordBatch, RecordBatchReader, Scanner or Dataset, a NumPy structured "
    "array, a dict of arrays or lists, a list of dicts, or an object with __arrow_c_stream__"
)

_FRAMES = (
    ("pandas", "DataFrame"),
    ("polars", "DataFrame"),
    ("polars", "LazyFrame"),
    ("pyarrow", "Table"),
    ("pyarrow", "RecordBatch"),
    ("pyarrow", "RecordBatchReader"),
    ("pyarrow.dataset", "Dataset"),
    ("pyarrow.dataset", "Scanner"),
    ("pyarrow.ipc", "RecordBatchFileReader"),
)


def is_frame(value: object) -> bool:
    """Whether a value is a dataframe of a known library, and no dict or list that may be anything."""
    return any(is_of(value, module, name) for module, name in _FRAMES)


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
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__") or is_capsule(value)


def is_capsule(value: object) -> bool:
    """Whether it is a capsule of Arrow's by itself."""
    return type(value).__name__ == "PyCapsule" and '"arrow_array_stream"' in repr(value)


def scanned(
    data: Any,
    name: str,
    wanted: Wanted,
    options: Options,
    failed: Callable[[BaseException], None],
    *,
    again: bool = False,
) -> Any:
    """Give what the engine scans for the variable ``name``: an Arrow table, dataset or reader.

    ``again`` tells whether the query reads it more than once, and ``wanted`` the columns that matter, where finding out
    costs less than taking all. ``failed`` is told what ends a reader while the engine reads it. Raises
    ``InterfaceError`` for what is not a table, and ``DataError`` for a column that cannot be had exactly.
    """
    if is_of(data, "pandas", "DataFrame"):
        from longshore.frames import from_pandas

        return from_pandas.table(data, name, wanted, options)
    if is_of(data, "polars", "DataFrame") or is_of(data, "polars", "LazyFrame"):
        from longshore.frames import from_polars

        return from_polars.table(data, name, wanted)
    if is_of(data, "numpy", "ndarray") or isinstance(data, Mapping):
        from longshore.frames import from_numpy

        return from_numpy.scanned(data, name, wanted, options)
    if isinstance(data, list) and data and isinstance(data[0], Mapping):
        from longshore.frames import from_rows

        return from_rows.scanned(data, name, wanted, options)
    return _arrow(data, name, wanted, failed, again=again)


def column_names(data: Any) -> list[str]:
    """Give the names of a table's columns, for a hint; none where that would cost more."""
    if isinstance(data, Mapping):
        return [str(key) for key in data]
    if is_frame(data) and not is_of(data, "polars", "LazyFrame"):
        schema = next((getattr(data, name) for name in ("schema", "projected_schema") if hasattr(data, name)), data)
        names = getattr(schema, "names", getattr(data, "columns", ()))
        return [str(name) for name in (names() if callable(names) else names)]
    return []


def is_produced(data: object) -> bool:
    """Whether it makes a stream whenever it is asked for one, and not one alone as a reader does."""
    is_reader = is_of(data, "pyarrow", "RecordBatchReader") or is_of(data, "longshore.stream", "Stream")
    return hasattr(data, "__arrow_c_stream__") and not (is_reader or is_frame(data) or hasattr(data, "__len__"))


class _Once:
    """A capsule by itself, as an object that hands it over."""

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._capsule


def _arrow(data: Any, name: str, wanted: Wanted, failed: Callable[[BaseException], None], *, again: bool) -> Any:
    if is_of(data, "pyarrow.dataset", "Scanner"):
        data = data.to_reader()
    elif is_of(data, "pyarrow.ipc", "RecordBatchFileReader"):
        data = data.read_all()
    elif is_capsule(data):
        data = _Once(data)
    if not (
        is_of(data, "pyarrow.dataset", "Dataset")
        or hasattr(data, "__arrow_c_stream__")
        or hasattr(data, "__arrow_c_array__")
    ):
        message = f"{name!r} is of type {type(data).__name__}, which is not a table: give {_KINDS}"
        raise InterfaceError(message)
    from longshore.frames import from_arrow

    if is_of(data, "pyarrow", "Table") or is_of(data, "pyarrow", "RecordBatch"):
        return from_arrow.table(data, name, wanted)
    if is_of(data, "pyarrow.dataset", "Dataset"):
        return from_arrow.dataset(data, name, wanted)
    # What knows its length lies in memory, and may be read as often as the query asks.
    if hasattr(data, "__arrow_c_stream__") and not hasattr(data, "__len__") and not (again and is_produced(data)):
        return from_arrow.reader(data, name, failed)
    return from_arrow.table(from_arrow.whole(data, name), name, wanted)


def is_of(data: object, module: str, name: str) -> bool:
    """Whether it is an instance of a class of a library, which is not imported for that."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(data, getattr(loaded, name))
