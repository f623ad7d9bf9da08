"""NumPy: structured arrays and dicts of arrays as a table."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from longshore.errors import InterfaceError
from longshore.frames.libraries import missing
from longshore.frames.objects import masked
from longshore.options import Options
from longshore.schema import column_name

try:
    import pyarrow as pa
except ImportError as error:
    raise missing(library="pyarrow", extra="arrow", purpose="writing NumPy arrays") from error


def table(data: "np.ndarray[Any, Any] | Mapping[Any, Any]", options: Options) -> Any:
    """Give a ``pyarrow.Table`` of one-dimensional arrays of one length; raises ``InterfaceError`` for other data."""
    columns = _columns(data)
    if isinstance(data, Mapping) and len(columns) < len(data):
        message = "two columns of the data have one name once their labels are texts"
        raise InterfaceError(message)
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1 or any(getattr(values, "ndim", 1) != 1 for values in columns.values()):
        message = "the columns of the data are not arrays of one dimension and one length"
        raise InterfaceError(message)
    as_text = options.objects == "text"
    made = [_made(name, values, as_text=as_text) for name, values in columns.items()]
    return pa.Table.from_arrays([array for _, array in made], schema=pa.schema([field for field, _ in made]))


def _made(name: str, values: Any, *, as_text: bool) -> tuple[Any, Any]:
    return (pa.field(name, values.type), values) if _is_arrow(values) else masked(name, values, as_text=as_text)


def _columns(data: "np.ndarray[Any, Any] | Mapping[Any, Any]") -> dict[str, Any]:
    if isinstance(data, Mapping):
        return {column_name(name): _array(values, name) for name, values in data.items()}
    if data.dtype.names is None:
        message = "a NumPy array without field names has no columns: give a structured array or a dict of arrays"
        raise InterfaceError(message)
    return {column_name(name): data[name] for name in data.dtype.names}


def _array(values: Any, name: object) -> Any:
    if _is_arrow(values) or (isinstance(values, np.ndarray) and values.ndim > 0):
        return values
    if isinstance(values, str | bytes) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        message = (
            f"column {str(name)!r} is one {type(values).__name__}: give an array or a list, with a value for each row"
        )
        raise InterfaceError(message)
    # A list as it is: NumPy would make floats of integers beside None, and texts of numbers beside texts.
    listed = list(values)
    objects = np.empty(len(listed), dtype=object)
    objects[:] = listed
    return objects


def _is_arrow(values: object) -> bool:
    return isinstance(values, pa.Array | pa.ChunkedArray)
