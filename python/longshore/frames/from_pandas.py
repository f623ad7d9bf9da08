"""pandas: DataFrames as Arrow record batches, a slice of rows at a time."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from longshore.frames.libraries import missing
from longshore.frames.objects import Column
from longshore.options import Options
from longshore.schema import column_name

try:
    import pyarrow as pa
except ImportError as error:
    raise missing(library="pyarrow", extra="arrow", purpose="writing pandas frames") from error

#: Rows that are converted at a time.
_ROWS = 1 << 17


def batches(frame: pd.DataFrame, *, index: bool, options: Options) -> Iterator[Any]:
    """Give the frame as record batches, one at least; raises ``DataError`` for a column of objects without one type."""
    columns = [_column(column_name(label), frame.iloc[:, at], options) for at, label in enumerate(frame.columns)]
    if index:
        columns = [*_levels(frame.index, options), *columns]
    schema = pa.schema([column.field for column in columns])
    for start in range(0, max(len(frame), 1), _ROWS):
        arrays = [column.slice(start, start + _ROWS) for column in columns]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


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
