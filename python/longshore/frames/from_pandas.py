"""pandas: DataFrames as Arrow record batches, a slice of rows at a time."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from longshore.frames.libraries import missing
from longshore.frames.objects import Column, texts
from longshore.frames.rows import Rows, together
from longshore.frames.selected import are_clear, selected
from longshore.frames.use import Wanted
from longshore.options import Options
from longshore.texts import column_name

try:
    import pyarrow as pa
except ImportError as error:
    raise missing(library="pyarrow", extra="arrow", purpose="writing pandas frames") from error

#: Rows that are converted at a time.
_ROWS = 1 << 17

#: A frame of so many is converted sooner than a query is taken apart.
_FEW_CELLS = 1 << 14

#: Bytes of the widest number that Arrow has.
_WIDEST = 8


def batches(frame: pd.DataFrame, *, index: bool, options: Options) -> Iterator[Any]:
    """Give the frame as record batches, one at least; raises ``DataError`` for a column of objects without one type."""
    columns = [_column(column_name(label), frame.iloc[:, at], options) for at, label in enumerate(frame.columns)]
    if index:
        columns = [*_levels(frame.index, options), *columns]
    schema = pa.schema([column.field for column in columns])
    for start in range(0, max(len(frame), 1), _ROWS):
        arrays = [column.slice(start, start + _ROWS) for column in columns]
        made = pa.Table.from_arrays(arrays, schema=schema)
        yield from made.to_batches() or [pa.RecordBatch.from_pylist([], schema=schema)]


def table(frame: pd.DataFrame, name: str, wanted: Wanted, options: Options) -> Any:
    """Give the columns that a query reads, at once; raises as ``batches`` does, for those only."""
    from longshore.frames.from_arrow import of_columns

    labels = names(frame)
    is_plain = _is_plain(frame) and are_clear(labels)
    places = selected(labels, None if is_plain else wanted(), name)
    columns = [_whole(labels[at], _dense(frame.iloc[:, at]), options) for at in places]
    return of_columns([field for field, _ in columns], [array for _, array in columns], frame, name)


def names(frame: pd.DataFrame) -> list[str]:
    """Give the columns' names; raises ``InterfaceError`` for one that is none."""
    return [column_name(label) for label in frame.columns]


def values(frame: pd.DataFrame, at: int) -> Any:
    """Give a column as it lies in memory: a NumPy array, or a ChunkedArray of Arrow's; None for all else."""
    column = frame.iloc[:, at]
    return column.to_numpy() if isinstance(column.dtype, np.dtype) else _arrow(column)


def _arrow(column: "pd.Series[Any]") -> Any:
    if not isinstance(column.dtype, pd.ArrowDtype) and not _is_arrow_text(column.dtype):
        return None
    made = pa.array(column.array)
    return made if isinstance(made, pa.ChunkedArray) else pa.chunked_array([made])


def taken(frame: pd.DataFrame, places: Sequence[int], rows: Rows, options: Options) -> Any:
    """Give some rows of some columns as a pyarrow Table; raises as ``table`` does, for values in any row."""
    labels = names(frame)
    columns = [(labels[at], _dense(frame.iloc[:, at])) for at in places]
    made = together(lambda column: _taken(*column, rows, options), columns, rows.threads)
    return pa.Table.from_arrays([array for _, array in made], schema=pa.schema([field for field, _ in made]))


def _taken(name: str, column: "pd.Series[Any]", rows: Rows, options: Options) -> tuple[Any, Any]:
    if (kept := _arrow(column)) is not None:
        array = rows.of_arrow(kept)
        return pa.field(name, array.type), array
    if column.dtype == object:
        # Its type depends on all rows.
        field, array = _whole(name, column, options)
        array = rows.of_arrow(array)
        return field.with_type(array.type), array
    is_numpy = isinstance(column.dtype, np.dtype)
    some = rows.of_numpy(column.to_numpy()) if is_numpy else column.array[rows.index]
    return _whole(name, pd.Series(some, copy=False), options)


def _is_arrow_text(kind: Any) -> bool:
    return isinstance(kind, pd.StringDtype) and kind.storage.startswith("pyarrow")


def _whole(name: str, values: "pd.Series[Any]", options: Options) -> tuple[Any, Any]:
    if (views := texts(name, values, nan_is_null=True, threads=options.threads)) is not None:
        return pa.field(name, views.type), views
    column = _column(name, values, options)
    return column.field, column.whole()


def _is_plain(frame: pd.DataFrame) -> bool:
    """Whether it costs next to nothing to take every column, and no value of them can be at fault."""
    return frame.size <= _FEW_CELLS and all(map(_is_harmless, frame.dtypes))


def _is_harmless(kind: Any) -> bool:
    """Whether Arrow has every value of a dtype: it has no wider floats than C's double, and no text of surrogates."""
    if isinstance(kind, pd.StringDtype):
        return _is_arrow_text(kind)
    inner = kind.subtype if isinstance(kind, pd.SparseDtype) else kind
    return getattr(inner, "kind", "O") in "biuf" and getattr(inner, "itemsize", 0) <= _WIDEST


def _dense(values: "pd.Series[Any]") -> "pd.Series[Any]":
    return values.astype(values.dtype.subtype) if isinstance(values.dtype, pd.SparseDtype) else values


def _column(name: str, values: "pd.Series[Any]", options: Options) -> Column:
    # A plain NumPy float has no other way to say that there is nothing; a masked or an Arrow-backed one has.
    is_plain = getattr(values.dtype, "kind", "") == "f" and not isinstance(
        values.dtype, pd.api.extensions.ExtensionDtype
    )
    return Column(
        name,
        values,
        as_text=options.objects == "text",
        nan_is_null=is_plain and options.nan == "null",
        object_nan_is_null=True,
    )


def _levels(index: "pd.Index[Any]", options: Options) -> list[Column]:
    if index.nlevels == 1:
        return [_column("index" if index.name is None else column_name(index.name), index.to_series(), options)]
    names = [f"level_{at}" if name is None else column_name(name) for at, name in enumerate(index.names)]
    return [_column(name, index.get_level_values(at).to_series(), options) for at, name in enumerate(names)]
