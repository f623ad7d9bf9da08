"""Files as record batches: what reads and what writes each format."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Protocol, assert_never

import pyarrow as pa
import pyarrow.parquet as pq

from longshore.errors import DataError, InterfaceError, NotSupportedError
from longshore.shell.files import FileLayout, Format
from longshore.shell.files.csv import CsvWriter, csv_columns
from longshore.shell.files.inference import typed_batches
from longshore.shell.files.json import JsonWriter, json_columns
from longshore.shell.files.storage import Output, Source, open_source

_MAGIC = b"ARROW1"
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_ROWS = 1 << 16


@contextlib.contextmanager
def open_batches(
    path: str, layout: FileLayout, wanted: Mapping[str, str]
) -> Iterator[tuple[Iterator[pa.RecordBatch], int]]:
    """Give a file's batches, and its size in bytes.

    CSV and JSON are read twice: first for the types, which follow from all values. Raises ``InterfaceError`` for a type
    in ``wanted`` that is none, ``DataError`` for a value that it cannot hold, and ``OSError`` for a file that is not
    there, or not of its format.
    """
    with open_source(path, layout.compression) as source:
        with source.reading():
            rows = _format_batches(source, layout, wanted)
        yield _locating(rows, source), source.size


def _locating(rows: Iterator[pa.RecordBatch], source: Source) -> Iterator[pa.RecordBatch]:
    with source.reading():
        yield from rows


def _format_batches(source: Source, layout: FileLayout, wanted: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    match layout.format:
        case Format.CSV:
            return typed_batches(csv_columns(source, layout.delimiter), wanted)
        case Format.JSON:
            return typed_batches(json_columns(source), wanted)
    if wanted:
        message = f"--schema is for csv and json: a file of {layout.format.value} has types of its own"
        raise InterfaceError(message)
    return _parquet_batches(source) if layout.format is Format.PARQUET else _arrow_batches(source)


def _parquet_batches(source: Source) -> Iterator[pa.RecordBatch]:
    with source.bytes() as data, pq.ParquetFile(data) as file:
        yield _empty(file.schema_arrow)
        yield from file.iter_batches(batch_size=_ROWS)


def _arrow_batches(source: Source) -> Iterator[pa.RecordBatch]:
    """Read Arrow's format, as a file or as a stream; its first bytes tell."""
    with source.place.open("rb") as begin:
        is_file = begin.read(len(_MAGIC)) == _MAGIC
    with source.bytes() as data:
        if is_file:
            file = pa.ipc.open_file(data)
            yield _empty(file.schema)
            yield from (file.get_batch(number) for number in range(file.num_record_batches))
            return
        stream = pa.ipc.open_stream(data)
        yield _empty(stream.schema)
        yield from stream
        # What follows the last batch is the end's mark, or the reader took the end of a part for it.
        data.seek(-len(_END), 2)
        if data.read(len(_END)) != _END:
            message = "the arrow stream has no end mark: it is a part of one"
            raise DataError(message)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    """Make a batch of no rows: with it the columns arrive, also where no row does."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


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


def open_writer(layout: FileLayout, sink: Output, schema: pa.Schema) -> Writer:
    """Give what writes a format; raises ``NotSupportedError`` for a type that it does not have."""
    match layout.format:
        case Format.CSV:
            return CsvWriter(sink, schema, layout.delimiter)
        case Format.JSON:
            return JsonWriter(sink, schema)
        case Format.PARQUET:
            return _ParquetWriter(sink, schema)
        case Format.ARROW:
            return _ArrowWriter(sink, pa.ipc.new_file(sink, schema))
        case Format.ARROWS:
            return _ArrowWriter(sink, pa.ipc.new_stream(sink, schema))
        case _:
            assert_never(layout.format)


class _ParquetWriter:
    """A Parquet file with a row group for each batch."""

    def __init__(self, sink: Output, schema: pa.Schema) -> None:
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


class _ArrowWriter:
    """Arrow's own format, as a file or as a stream."""

    def __init__(self, sink: Output, out: pa.ipc.RecordBatchStreamWriter) -> None:
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
