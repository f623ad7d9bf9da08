"""JSON lines: an object for each row, a line for each object."""

import pyarrow as pa

from longshore.shell.files.faults import placed
from longshore.shell.files.fragments import fragments, keys, objects
from longshore.shell.files.sink import Out

__all__ = ["JsonWriter"]


class JsonWriter:
    """Writes batches as JSON lines in UTF-8."""

    def __init__(self, sink: Out, schema: pa.Schema) -> None:
        """Make the keys."""
        self._sink = sink
        self._keys = keys(schema.names)
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch."""
        if not batch.num_rows:
            return
        columns = [self._column(field, array) for field, array in zip(batch.schema, batch.columns, strict=True)]
        lines = objects(self._keys, columns, batch.num_rows).to_pylist()
        self._sink.write(("\n".join(lines) + "\n").encode())
        self._rows += batch.num_rows

    def close(self) -> None:
        """Do nothing: JSON lines have no end of their own."""

    def abandon(self) -> None:
        """Leave it as it is."""
        self._sink.break_off()

    def _column(self, field: pa.Field, array: pa.Array) -> pa.Array:
        with placed(field.name, self._rows):
            return fragments(field, array)
