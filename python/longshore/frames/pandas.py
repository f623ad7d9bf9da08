"""pandas 2.2 and later: a DataFrame of unconsolidated columns over the core's own memory."""

from collections.abc import Sequence
from typing import Any, Literal, cast

import numpy as np

from longshore.errors import InterfaceError
from longshore.frames.libraries import missing, require_version
from longshore.frames.target import Backend, Column
from longshore.texts import display

try:
    import pandas as pd
except ImportError as error:
    purpose, instead = 'return_type="pandas", the default,', 'give return_type="polars", "arrow" or "numpy"'
    raise missing(library="pandas", extra="pandas", purpose=purpose, instead=instead) from error

require_version("pandas", pd.__version__, (2, 2))

_BACKENDS: dict[str | None, Backend] = {
    None: "pandas",
    "numpy": "numpy",
    "numpy_nullable": "numpy_nullable",
    "pyarrow": "pyarrow",
}


class PandasTarget:
    """``return_type="pandas"`` with its ``dtype_backend`` and ``index_col``."""

    def __init__(self, dtype_backend: str | None, index_col: str | Sequence[str] | None) -> None:
        """Decide on dtypes; raises where pandas needs pyarrow for them and it is missing."""
        if not (dtype_backend is None or isinstance(dtype_backend, str)) or dtype_backend not in _BACKENDS:
            known = ", ".join(repr(name) for name in _BACKENDS)
            message = f"unknown dtype_backend {display(dtype_backend)}; choose one of {known}"
            raise InterfaceError(message)
        self.backend = _BACKENDS[dtype_backend]
        self._text = _text_dtype(self.backend)
        self.arrow_strings = str(getattr(self._text, "storage", "")).startswith("pyarrow")
        self._index_col = index_col
        if self.backend == "pyarrow":
            _pyarrow()

    def build(self, columns: Sequence[Column], rows: int, *, first: int = 0) -> pd.DataFrame:
        """Make the frame without copying a value; its rows are numbered from ``first``."""
        names = [column.name for column in columns]
        index_at = _positions(names, self._index_col)
        levels = [self._level(columns[at]) for at in index_at]
        index = _index(levels, range(first, first + rows))
        kept = [at for at in range(len(columns)) if at not in index_at]
        # Numbers as keys, and names after: a dict of names would lose those that repeat.
        data = {number: self._series(columns[at], index) for number, at in enumerate(kept)}
        frame = pd.DataFrame(data, index=index, copy=False)
        frame.columns = pd.Index([names[at] for at in kept])
        return frame

    def _level(self, column: Column) -> Any:
        array = self._array(column)
        return pd.Index(array, dtype=array.dtype, name=column.name, copy=False)

    def _series(self, column: Column, index: Any) -> Any:
        array = self._array(column)
        # The dtype is given, so that pandas infers none from the values.
        return pd.Series(array, index=index, dtype=array.dtype, copy=False)

    def _array(self, column: Column) -> Any:
        match column.kind:
            case "numbers" if column.masked:
                return _masked(column)
            case "numbers":
                return _numbers(column)
            case "dictionary":
                return self._categorical(column)
            case "chunks":
                return self._chunks(column)
            case _:
                return self._objects(column)

    def _categorical(self, column: Column) -> Any:
        categories = pd.Index(column.labels, dtype=self._text)
        dtype = pd.CategoricalDtype(categories, ordered=column.ordered)
        return pd.Categorical.from_codes(column.data, dtype=dtype, validate=False)

    def _chunks(self, column: Column) -> Any:
        pa = _pyarrow()
        chunked = pa.chunked_array([pa.array(chunk) for chunk in column.data])
        if column.text and self.backend != "pyarrow":
            return cast("Any", self._text).__from_arrow__(chunked)
        return pd.arrays.ArrowExtensionArray(chunked)

    def _objects(self, column: Column) -> Any:
        if column.text and self._text != np.dtype(object):
            return pd.array(column.data, dtype=self._text, copy=False)
        return column.data


def _index(levels: Sequence[Any], numbers: range) -> Any:
    match levels:
        case []:
            return pd.RangeIndex(numbers)
        case [level]:
            return level
        case _:
            return pd.MultiIndex.from_arrays(levels)


def _text_dtype(backend: Backend) -> Any:
    """Ask pandas for its dtype of strings: it depends on version, options and what is installed."""
    match backend:
        case "numpy":
            return np.dtype(object)
        case "numpy_nullable":
            return pd.StringDtype()
        case "pyarrow":
            return pd.ArrowDtype(_pyarrow().string())
        case _:
            return pd.Series([""]).dtype


def _masked(column: Column) -> Any:
    values = column.data
    mask = column.no_mask() if column.mask is None else column.mask
    match values.dtype.kind:
        case "b":
            return pd.arrays.BooleanArray(values, mask, copy=False)
        case "f":
            return pd.arrays.FloatingArray(values, mask, copy=False)
        case _:
            return pd.arrays.IntegerArray(values, mask, copy=False)


def _numbers(column: Column) -> Any:
    values = column.data
    if column.timezone is None:
        return values
    unit = cast("Literal['s', 'ms', 'us', 'ns']", np.datetime_data(values.dtype)[0])
    dtype = pd.DatetimeTZDtype(unit=unit, tz=column.timezone)
    # pandas reads integers as instants, and dates without a zone as the clock of the zone.
    return pd.array(values.view("int64"), dtype=dtype, copy=False)


def _positions(names: Sequence[str], index_col: str | Sequence[str] | None) -> list[int]:
    """Where the columns of the index are."""
    if index_col is None:
        return []
    wanted = [index_col] if isinstance(index_col, str) else list(index_col)
    return [_position(names, name) for name in wanted]


def _position(names: Sequence[str], name: str) -> int:
    found = [at for at, other in enumerate(names) if other == name]
    if len(found) == 1:
        return found[0]
    if not found:
        message = f"index_col names {display(name)}, but the result has only {', '.join(map(repr, names))}"
        raise InterfaceError(message)
    message = f"index_col names {display(name)}, which the result has {len(found)} times; rename it in the query"
    raise InterfaceError(message)


def _pyarrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise missing(library="pyarrow", extra="arrow", purpose='dtype_backend="pyarrow"') from error
    return pa
