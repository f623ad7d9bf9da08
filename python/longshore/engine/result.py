"""The way out: what DuckDB streams as the frame that the caller asked for."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from longshore.options import Options

__all__ = ["deliver"]


def deliver(
    stream: Any, *, return_type: str, dtype_backend: str | None, options: Options, cancel: Callable[[], None]
) -> Any:
    """Take the one stream of a result, an object with ``__arrow_c_stream__``, and make the frame."""
    del dtype_backend, options, cancel
    reader = pa.RecordBatchReader.from_stream(stream)
    match return_type:
        case "arrow_stream":
            return reader
        case "arrow":
            return reader.read_all()
        case "polars":
            import polars as pl

            return pl.from_arrow(reader.read_all())
        case _:
            return reader.read_all().to_pandas()
