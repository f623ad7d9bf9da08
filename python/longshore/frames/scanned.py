"""Objects that a query names: what each kind of data is to an engine that scans Arrow."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

from longshore.errors import InterfaceError
from longshore.frames.use import Wanted
from longshore.options import Options

_KINDS = (
    "a pandas or polars frame, a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, a NumPy structured array, "
    "a dict of arrays or lists, a list of dicts, or an object with __arrow_c_stream__"
)

_FRAMES = (
    ("pandas", "DataFrame"),
    ("polars", "DataFrame"),
    ("polars", "LazyFrame"),
    ("pyarrow", "Table"),
    ("pyarrow", "RecordBatch"),
    ("pyarrow", "RecordBatchReader"),
    ("pyarrow.dataset", "Dataset"),
)


def is_frame(value: object) -> bool:
    """Whether a value is a dataframe of a known library, and no dict or list that may be anything."""
    return any(is_of(value, module, name) for module, name in _FRAMES)


def scanned(data: Any, name: str, wanted: Wanted, options: Options, failed: Callable[[BaseException], None]) -> Any:
    """Give what the engine scans for the variable ``name``: an Arrow table, dataset or reader.

    ``wanted`` tells the columns that matter, where finding out costs less than taking all. ``failed`` is told what ends
    a reader while the engine reads it. Raises ``InterfaceError`` for what is no table, and ``DataError`` for a column
    that cannot be had exactly.
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
        from longshore.frames import from_numpy

        return from_numpy.records(data, name, wanted, options)
    return _arrow(data, name, wanted, failed)


def column_names(data: Any) -> list[str]:
    """Give the names of a table's columns, for a hint; none where that would cost more."""
    if isinstance(data, Mapping):
        return [str(key) for key in data]
    if is_frame(data) and not is_of(data, "polars", "LazyFrame"):
        names = getattr(getattr(data, "schema", data), "names", getattr(data, "columns", ()))
        return [str(name) for name in (names() if callable(names) else names)]
    return []


def _arrow(data: Any, name: str, wanted: Wanted, failed: Callable[[BaseException], None]) -> Any:
    if not (
        is_of(data, "pyarrow.dataset", "Dataset")
        or hasattr(data, "__arrow_c_stream__")
        or hasattr(data, "__arrow_c_array__")
    ):
        message = f"{name!r} is of type {type(data).__name__}, which is no table: give {_KINDS}"
        raise InterfaceError(message)
    from longshore.frames import from_arrow

    if is_of(data, "pyarrow", "Table") or is_of(data, "pyarrow", "RecordBatch"):
        return from_arrow.table(data, name, wanted)
    if is_of(data, "pyarrow.dataset", "Dataset"):
        return from_arrow.dataset(data, name, wanted)
    # What knows its length lies in memory, and may be read as often as the query asks.
    if hasattr(data, "__arrow_c_stream__") and not hasattr(data, "__len__"):
        return from_arrow.reader(data, name, failed)
    return from_arrow.table(from_arrow.whole(data, name), name, wanted)


def is_of(data: object, module: str, name: str) -> bool:
    """Whether it is an instance of a class of a library, which is not imported for that."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(data, getattr(loaded, name))
