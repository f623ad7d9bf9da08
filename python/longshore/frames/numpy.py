"""NumPy: a dict of masked arrays, exact in every type; structured arrays and dicts of arrays as a table."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from longshore.errors import InterfaceError
from longshore.frames import Backend
from longshore.frames.pushdown import Projection, column_positions
from longshore.options import Options
from longshore.texts import column_name

if TYPE_CHECKING:
    from longshore._core import Column


class NumpyTarget:
    """``return_type="numpy"``."""

    backend: Backend = "masked"
    arrow_strings = False

    def build(self, columns: "Sequence[Column]", rows: int) -> dict[str, np.ma.MaskedArray[Any, Any]]:
        """Make a dict from name to masked array; the core has given repeated names a suffix."""
        del rows
        masks = [np.ma.nomask if column.mask is None else column.mask for column in columns]
        return {
            column.name: np.ma.MaskedArray(column.data, mask=mask, copy=False)
            for column, mask in zip(columns, masks, strict=True)
        }


def table(data: "np.ndarray[Any, Any] | Mapping[Any, Any]", options: Options) -> Any:
    """Return a ``pyarrow.Table`` of one-dimensional arrays of one length; raises ``InterfaceError`` for other data."""
    from longshore.frames.columns import table

    return table(_columns(data), options)


def engine_table(
    data: "np.ndarray[Any, Any] | Mapping[Any, Any]", name: str, projection: Projection, options: Options
) -> Any:
    """Return a ``pyarrow.Table`` of the columns that a query reads; raises as ``table``, for types of those only."""
    from longshore.frames.columns import to_arrow
    from longshore.frames.scan import table_of

    columns = _columns(data)
    read = [list(columns)[at] for at in column_positions(list(columns), projection(), name)]
    fields, arrays = to_arrow({each: columns[each] for each in read}, options)
    rows = data if isinstance(data, np.ndarray) else next(iter(columns.values()), ())
    return table_of(fields, arrays, rows, name)


def _columns(data: "np.ndarray[Any, Any] | Mapping[Any, Any]") -> dict[str, Any]:
    from longshore.frames.columns import column

    if isinstance(data, Mapping):
        columns = {column_name(name): column(values, name) for name, values in data.items()}
        if len(columns) < len(data):
            raise InterfaceError("two columns of the data have one name once their labels are texts")
    elif data.dtype.names is None:
        message = "a NumPy array without field names has no columns: give a structured array or a dict of arrays"
        raise InterfaceError(message)
    else:
        columns = {column_name(name): data[name] for name in data.dtype.names}
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1 or any(getattr(values, "ndim", 1) != 1 for values in columns.values()):
        raise InterfaceError("the columns of the data are not arrays of one dimension and one length")
    return columns
