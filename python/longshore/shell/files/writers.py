"""Record batches into the bytes of each format."""

from typing import Protocol, assert_never

import pyarrow as pa
import pyarrow.parquet as pq

from longshore.errors import NotSupportedError
from longshore.shell.files.comma import CsvWriter
from longshore.shell.files.formats import FileLayout, Format
from longshore.shell.files.lines import JsonWriter
from longshore.shell.files.sink import Out

__all__ = ["Writer", "writer"]

#: A message's mark and its length, and then no message: what has to come after it never does.
_TORN = b"\xff\xff\xff\xff\x10\x00\x00\x00"


class Writer(Protocol):
    """Takes the batches of one result."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch; raises ``DataError`` for a value that the format cannot say."""

    def close(self) -> None:
        """Write what marks the whole as complete."""

    def abandon(self) -> None:
        """Leave what has been written as what it is: a part."""


def writer(layout: FileLayout, sink: Out, schema: pa.Schema) -> Writer:
    """Give what writes a format; raises ``NotSupportedError`` for a type that it does not have."""
    match layout.format:
        case Format.CSV:
            return CsvWriter(sink, schema, layout.delimiter)
        case Format.JSON:
            return JsonWriter(sink, schema)
        case Format.PARQUET:
            return _Parquet(sink, schema)
        case Format.ARROW:
            return _Arrow(sink, pa.ipc.new_file(sink, schema))
        case Format.ARROWS:
            return _Arrow(sink, pa.ipc.new_stream(sink, schema))
        case _:
            assert_never(layout.format)


class _Parquet:
    """A Parquet file with a row group for each batch."""

    def __init__(self, sink: Out, schema: pa.Schema) -> None:
        self._sink = sink
        for name in schema.names:
            if schema.names.count(name) > 1:
                message = f'two columns are called "{name}", which a parquet file cannot tell apart'
                raise NotSupportedError(message, column=name)
        try:
            self._writer = pq.ParquetWriter(sink, schema, compression="zstd")
        except pa.ArrowNotImplementedError as error:
            sink.break_off()
            message = f"a parquet file cannot hold one of the columns: {error}\nHint: write an arrow file"
            raise NotSupportedError(message, hint="write an arrow file") from error

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()

    def abandon(self) -> None:
        self._sink.break_off()


class _Arrow:
    """Arrow's own format, as a file or as a stream."""

    def __init__(self, sink: Out, out: pa.ipc.RecordBatchStreamWriter) -> None:
        self._sink = sink
        self._out = out

    def write(self, batch: pa.RecordBatch) -> None:
        self._out.write_batch(batch)

    def close(self) -> None:
        self._out.close()

    def abandon(self) -> None:
        # A stream that ends between two batches is complete to whoever reads it.
        self._sink.write(_TORN)
        self._sink.flush()
        self._sink.break_off()
