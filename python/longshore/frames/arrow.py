"""pyarrow: a Table over the core's own memory."""

from typing import Any

from longshore.frames.libraries import missing
from longshore.frames.target import ArrowStream

try:
    import pyarrow as pa
except ImportError as error:
    raise missing(library="pyarrow", extra="arrow", purpose='return_type="arrow"') from error


class ArrowTarget:
    """``return_type="arrow"``."""

    for_polars = False

    def build(self, stream: ArrowStream) -> Any:
        """Make a ``pyarrow.Table`` with one chunk for each batch."""
        return pa.RecordBatchReader.from_stream(stream).read_all()


def record_batch(batch: object) -> Any:
    """Make a ``pyarrow.RecordBatch`` of an object with ``__arrow_c_array__``."""
    return pa.record_batch(batch)


def schema(schema: object) -> Any:
    """Make a ``pyarrow.Schema`` of an object with ``__arrow_c_schema__``."""
    return pa.schema(schema)
