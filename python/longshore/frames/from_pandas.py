"""pandas: DataFrames as Arrow record batches, a slice of rows at a time."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from longshore.frames.libraries import missing
from longshore.frames.objects import Objects, array, data_type
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
    columns = [_Column(column_name(label), frame.iloc[:, at], options) for at, label in enumerate(frame.columns)]
    if index:
        columns = [*_levels(frame.index, options), *columns]
    schema = pa.schema([column.field for column in columns])
    for start in range(0, max(len(frame), 1), _ROWS):
        arrays = [column.slice(start, start + _ROWS) for column in columns]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


class _Column:
    """One column, and the type that all its values have."""

    def __init__(self, name: str, values: "pd.Series[Any]", options: Options) -> None:
        self._objects = Objects(name, as_text=options.objects == "text", nan_is_null=True)
        self._values = values
        # A plain NumPy float has no other way to say that there is nothing; a masked or an Arrow-backed one has.
        is_plain = getattr(values.dtype, "kind", "") == "f" and not isinstance(
            values.dtype, pd.api.extensions.ExtensionDtype
        )
        self._nan_is_null = is_plain and options.nan == "null"
        self.field = pa.field(name, data_type(values, self._objects), metadata=self._objects.metadata)

    def slice(self, start: int, end: int) -> Any:
        values = self._values.iloc[start:end]
        return array(values, self.field.type, self._objects, nan_is_null=self._nan_is_null)


def _levels(index: "pd.Index[Any]", options: Options) -> list[_Column]:
    if index.nlevels == 1:
        return [_Column("index" if index.name is None else column_name(index.name), index.to_series(), options)]
    names = [f"level_{at}" if name is None else column_name(name) for at, name in enumerate(index.names)]
    return [_Column(name, index.get_level_values(at).to_series(), options) for at, name in enumerate(names)]
