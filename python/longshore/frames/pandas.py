"""pandas 2.2 and later: DataFrames over the core's own memory, and DataFrames as Arrow, a slice of rows at a time."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from longshore.errors import InterfaceError
from longshore.frames import Backend, missing, needing, require_version
from longshore.frames.pushdown import Projection, are_distinct, column_positions
from longshore.options import Options
from longshore.texts import column_name, display
from longshore.threads import map_threads

if TYPE_CHECKING:
    from longshore._core import Column
    from longshore.frames.columns import ArrowColumn
    from longshore.frames.selection import Rows

purpose, instead = 'return_type="pandas", the default,', 'give return_type="polars", "arrow" or "numpy"'
with needing(library="pandas", extra="pandas", purpose=purpose, instead=instead):
    import pandas as pd

try:
    import pyarrow as pa
except ImportError:
    # Most dtypes do without it.
    pa = None

require_version("pandas", pd.__version__, (2, 2))

#: Rows that are converted at a time.
_ROWS = 1 << 17

#: A frame of at most so many is converted faster than a query is parsed.
_FEW_CELLS = 1 << 14

#: Bytes of the widest number that Arrow has.
_WIDEST = 8

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
            raise InterfaceError(f"unknown dtype_backend {display(dtype_backend)}; choose one of {known}")
        self.backend = _BACKENDS[dtype_backend]
        if self.backend == "pyarrow" and pa is None:
            raise missing(library="pyarrow", extra="arrow", purpose='dtype_backend="pyarrow"')
        self._text = _text_dtype(self.backend)
        self.arrow_strings = str(getattr(self._text, "storage", "")).startswith("pyarrow")
        self._index_col = index_col

    def build(self, columns: Sequence["Column"], rows: int, *, first: int = 0) -> pd.DataFrame:
        """Make the frame without copying a value; its rows are numbered from ``first``."""
        names = [column.name for column in columns]
        index_at = _positions(names, self._index_col)
        levels = [self._level(columns[at]) for at in index_at]
        index = _index(levels, range(first, first + rows))
        others = [at for at in range(len(columns)) if at not in index_at]
        # Numbers as keys, and names after: a dict of names would lose those that repeat.
        data = {number: self._series(columns[at], index) for number, at in enumerate(others)}
        frame = pd.DataFrame(data, index=index, copy=False)
        frame.columns = pd.Index([names[at] for at in others])
        return frame

    def _level(self, column: "Column") -> Any:
        array = self._array(column)
        return pd.Index(array, dtype=array.dtype, name=column.name, copy=False)

    def _series(self, column: "Column", index: Any) -> Any:
        array = self._array(column)
        # With a dtype, pandas infers none from the values.
        return pd.Series(array, index=index, dtype=array.dtype, copy=False)

    def _array(self, column: "Column") -> Any:
        match column.kind:
            case "numbers" if column.masked:
                return _masked_array(column)
            case "numbers":
                return _numbers(column)
            case "dictionary":
                return self._categorical(column)
            case "chunks":
                return self._chunks(column)
            case _:
                return self._object_array(column)

    def _categorical(self, column: "Column") -> Any:
        categories = pd.Index(column.labels, dtype=self._text)
        dtype = pd.CategoricalDtype(categories, ordered=column.ordered)
        return pd.Categorical.from_codes(column.data, dtype=dtype, validate=False)

    def _chunks(self, column: "Column") -> Any:
        chunked = pa.chunked_array([pa.array(chunk) for chunk in column.data])
        if column.text and self.backend != "pyarrow":
            return cast("Any", self._text).__from_arrow__(chunked)
        return pd.arrays.ArrowExtensionArray(chunked)

    def _object_array(self, column: "Column") -> Any:
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
            return pd.ArrowDtype(pa.string())
        case _:
            return pd.Series([""]).dtype


def _masked_array(column: "Column") -> Any:
    values = column.data
    mask = column.no_mask() if column.mask is None else column.mask
    match values.dtype.kind:
        case "b":
            return pd.arrays.BooleanArray(values, mask, copy=False)
        case "f":
            return pd.arrays.FloatingArray(values, mask, copy=False)
        case _:
            return pd.arrays.IntegerArray(values, mask, copy=False)


def _numbers(column: "Column") -> Any:
    values = column.data
    if column.timezone is None:
        return values
    unit = cast("Literal['s', 'ms', 'us', 'ns']", np.datetime_data(values.dtype)[0])
    dtype = pd.DatetimeTZDtype(unit=unit, tz=column.timezone)
    # pandas reads integers as instants, and dates without a zone as the clock of the zone.
    return pd.array(values.view("int64"), dtype=dtype, copy=False)


def _positions(names: Sequence[str], index_col: str | Sequence[str] | None) -> list[int]:
    """Return the positions of the columns of the index."""
    index_names = [index_col] if isinstance(index_col, str) else index_col or []
    for name in index_names:
        if name not in names:
            message = f"index_col names {display(name)}, but the result has only {', '.join(map(repr, names))}"
            raise InterfaceError(message)
        if (times := list(names).count(name)) > 1:
            message = f"index_col names {display(name)}, which the result has {times} times; rename it in the query"
            raise InterfaceError(message)
    return [names.index(name) for name in index_names]


def batches(frame: pd.DataFrame, *, index: bool, options: Options) -> Iterator[Any]:
    """Return the frame as record batches, at least one; raises ``DataError`` for objects of no one type."""
    if pa is None:
        raise missing(library="pyarrow", extra="arrow", purpose="writing pandas frames")
    columns = [_arrow_column(column_name(label), frame.iloc[:, at], options) for at, label in enumerate(frame.columns)]
    if index:
        columns = [*_index_columns(frame.index, options), *columns]
    schema = pa.schema([column.field for column in columns])
    for start in range(0, max(len(frame), 1), _ROWS):
        arrays = [column.slice(start, start + _ROWS) for column in columns]
        table = pa.Table.from_arrays(arrays, schema=schema)
        yield from table.to_batches() or [pa.RecordBatch.from_pylist([], schema=schema)]


def engine_table(frame: pd.DataFrame, name: str, projection: Projection, options: Options) -> Any:
    """Return the columns that a query reads, at once; raises as ``batches`` does, for those only."""
    from longshore.frames.scan import table_of

    labels = names(frame)
    # Converting every column costs next to nothing then, and no value of them can be refused.
    is_plain = frame.size <= _FEW_CELLS and all(map(_is_harmless, frame.dtypes)) and are_distinct(labels)
    positions = column_positions(labels, None if is_plain else projection(), name)
    columns = [_whole_array(labels[at], _dense(frame.iloc[:, at]), options) for at in positions]
    return table_of([field for field, _ in columns], [array for _, array in columns], frame, name)


def names(frame: pd.DataFrame) -> list[str]:
    """Return the columns' names; raises ``InterfaceError`` for one that Arrow cannot have."""
    return [column_name(label) for label in frame.columns]


def values(frame: pd.DataFrame, at: int) -> Any:
    """Return a column as it lies in memory: a NumPy array, or a ChunkedArray of Arrow's; None for all else."""
    column = frame.iloc[:, at]
    return column.to_numpy() if isinstance(column.dtype, np.dtype) else _arrow_memory(column)


def _arrow_memory(column: "pd.Series[Any]") -> Any:
    if not isinstance(column.dtype, pd.ArrowDtype) and not _is_arrow_text(column.dtype):
        return None
    array = pa.array(column.array)
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def take_rows(frame: pd.DataFrame, positions: Sequence[int], rows: "Rows", options: Options) -> Any:
    """Return some rows of some columns as a pyarrow Table; raises as ``engine_table`` does, for values in any row."""
    labels = names(frame)
    columns = [(labels[at], _dense(frame.iloc[:, at])) for at in positions]
    pairs = map_threads(lambda column: _take_column(*column, rows, options), columns, rows.threads)
    return pa.Table.from_arrays([array for _, array in pairs], schema=pa.schema([field for field, _ in pairs]))


def _take_column(name: str, column: "pd.Series[Any]", rows: "Rows", options: Options) -> tuple[Any, Any]:
    if (memory := _arrow_memory(column)) is not None:
        array = rows.of_arrow(memory)
        return pa.field(name, array.type), array
    if column.dtype == object:
        # Its type depends on all rows.
        field, array = _whole_array(name, column, options)
        array = rows.of_arrow(array)
        return field.with_type(array.type), array
    is_numpy = isinstance(column.dtype, np.dtype)
    some = rows.of_numpy(column.to_numpy()) if is_numpy else column.array[rows.index]
    return _whole_array(name, pd.Series(some, copy=False), options)


def _is_arrow_text(kind: Any) -> bool:
    return isinstance(kind, pd.StringDtype) and kind.storage.startswith("pyarrow")


def _whole_array(name: str, values: "pd.Series[Any]", options: Options) -> tuple[Any, Any]:
    from longshore.frames.columns import text_views

    if (views := text_views(name, values, nan_is_null=True)) is not None:
        return pa.field(name, views.type), views
    column = _arrow_column(name, values, options)
    return column.field, column.whole()


def _is_harmless(kind: Any) -> bool:
    """Whether Arrow has every value of a dtype: it has no floats wider than C's double, and no lone surrogates."""
    if isinstance(kind, pd.StringDtype):
        return _is_arrow_text(kind)
    inner = kind.subtype if isinstance(kind, pd.SparseDtype) else kind
    return getattr(inner, "kind", "O") in "biuf" and getattr(inner, "itemsize", 0) <= _WIDEST


def _dense(values: "pd.Series[Any]") -> "pd.Series[Any]":
    return values.astype(values.dtype.subtype) if isinstance(values.dtype, pd.SparseDtype) else values


def _arrow_column(name: str, values: "pd.Series[Any]", options: Options) -> "ArrowColumn":
    from longshore.frames.columns import ArrowColumn

    # A plain NumPy float has no other way to say that there is nothing; a masked or an Arrow-backed one has.
    is_plain = getattr(values.dtype, "kind", "") == "f" and not isinstance(
        values.dtype, pd.api.extensions.ExtensionDtype
    )
    return ArrowColumn(
        name,
        values,
        as_text=options.objects == "text",
        nan_is_null=is_plain and options.nan == "null",
        object_nan_is_null=True,
    )


def _index_columns(index: "pd.Index[Any]", options: Options) -> "list[ArrowColumn]":
    if index.nlevels == 1:
        return [_arrow_column("index" if index.name is None else column_name(index.name), index.to_series(), options)]
    names = [f"level_{at}" if name is None else column_name(name) for at, name in enumerate(index.names)]
    return [_arrow_column(name, index.get_level_values(at).to_series(), options) for at, name in enumerate(names)]
