"""Objects that a query names: what each kind of data is to an engine that scans Arrow."""

import sys
from collections.abc import Mapping
from typing import Any

from longshore.errors import InterfaceError
from longshore.options import Options

_KINDS = (
    "a pandas or polars frame, a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, a NumPy structured array, "
    "a dict of arrays or lists, a list of dicts, or an object with __arrow_c_stream__"
)


def is_frame(value: object) -> bool:
    """Whether a value is a dataframe of a known library, and no dict or list that may be anything."""
    return any(
        _is(value, module, name)
        for module, name in (
            ("pandas", "DataFrame"),
            ("polars", "DataFrame"),
            ("polars", "LazyFrame"),
            ("pyarrow", "Table"),
            ("pyarrow", "RecordBatch"),
            ("pyarrow", "RecordBatchReader"),
            ("pyarrow.dataset", "Dataset"),
        )
    )


def scanned(data: Any, name: str, options: Options) -> Any:
    """Give what DuckDB scans for the variable ``name``; raises ``InterfaceError`` for what is no table."""
    if _is(data, "pandas", "DataFrame"):
        from longshore.frames.from_pandas import batches
        import pyarrow as pa

        return pa.Table.from_batches(batches(data, index=False, options=options))
    if _is(data, "polars", "DataFrame"):
        return data.to_arrow()
    if _is(data, "polars", "LazyFrame"):
        return data.collect().to_arrow()
    if _is(data, "numpy", "ndarray") or isinstance(data, Mapping):
        from longshore.frames.from_numpy import table

        return table(data, options)
    if hasattr(data, "__arrow_c_stream__") or _is(data, "pyarrow.dataset", "Dataset"):
        return data
    message = f"{name!r} is {type(data).__name__}, which is no table: give {_KINDS}"
    raise InterfaceError(message)


def _is(data: object, module: str, name: str) -> bool:
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(data, getattr(loaded, name))
