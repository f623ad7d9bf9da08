"""NumPy: structured arrays and dicts of arrays as a table."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from longshore.errors import InterfaceError
from longshore.frames.libraries import missing
from longshore.frames.objects import masked
from longshore.frames.selected import selected
from longshore.frames.use import Wanted
from longshore.options import Options
from longshore.texts import column_name, display

try:
    import pyarrow as pa
except ImportError as error:
    raise missing(library="pyarrow", extra="arrow", purpose="writing NumPy arrays") from error


def table(data: "np.ndarray[Any, Any] | Mapping[Any, Any]", options: Options) -> Any:
    """Give a ``pyarrow.Table`` of one-dimensional arrays of one length; raises ``InterfaceError`` for other data."""
    fields, arrays = converted(_columns(data), options)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def scanned(data: "np.ndarray[Any, Any] | Mapping[Any, Any]", name: str, wanted: Wanted, options: Options) -> Any:
    """Give a ``pyarrow.Table`` of the columns that a query reads; raises as ``table`` does, for types of those only."""
    from longshore.frames.from_arrow import of_columns

    columns = _columns(data)
    chosen = [list(columns)[at] for at in selected(list(columns), wanted(), name)]
    fields, arrays = converted({each: columns[each] for each in chosen}, options)
    rows = data if isinstance(data, np.ndarray) else next(iter(columns.values()), ())
    return of_columns(fields, arrays, rows, name)


def converted(columns: Mapping[str, Any], options: Options) -> tuple[list[Any], list[Any]]:
    """Give the fields and the arrays of named columns; raises ``DataError`` for objects that have no one type."""
    as_text = options.objects == "text"
    made = [_made(name, values, as_text=as_text) for name, values in columns.items()]
    return [field for field, _ in made], [array for _, array in made]


def _made(name: str, values: Any, *, as_text: bool) -> tuple[Any, Any]:
    return (pa.field(name, values.type), values) if _is_arrow(values) else masked(name, values, as_text=as_text)


def _columns(data: "np.ndarray[Any, Any] | Mapping[Any, Any]") -> dict[str, Any]:
    columns = _named(data)
    if isinstance(data, Mapping) and len(columns) < len(data):
        message = "two columns of the data have one name once their labels are texts"
        raise InterfaceError(message)
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1 or any(getattr(values, "ndim", 1) != 1 for values in columns.values()):
        message = "the columns of the data are not arrays of one dimension and one length"
        raise InterfaceError(message)
    return columns


def _named(data: "np.ndarray[Any, Any] | Mapping[Any, Any]") -> dict[str, Any]:
    if isinstance(data, Mapping):
        return {column_name(name): column(values, name) for name, values in data.items()}
    if data.dtype.names is None:
        message = "a NumPy array without field names has no columns: give a structured array or a dict of arrays"
        raise InterfaceError(message)
    return {column_name(name): data[name] for name in data.dtype.names}


def column(values: Any, name: object) -> Any:
    """Give what is a column already, or an array of the objects of a list; raises ``InterfaceError`` for one value."""
    if _is_arrow(values) or (isinstance(values, np.ndarray) and values.ndim > 0):
        return values
    if isinstance(values, str | bytes) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        one = f"column {display(str(name))} is one {type(values).__name__}"
        message = f"{one}: give an array or a list, with a value for each row"
        raise InterfaceError(message)
    # A list as it is: NumPy would make floats of integers beside None, and texts of numbers beside texts.
    listed = list(values)
    objects = np.empty(len(listed), dtype=object)
    objects[:] = listed
    return objects


def _is_arrow(values: object) -> bool:
    return isinstance(values, pa.Array | pa.ChunkedArray)
