"""Files as record batches: what reads each format."""

import contextlib
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from longshore.errors import DataError, InterfaceError
from longshore.shell.files import FileLayout, Format
from longshore.shell.files.csv import csv_columns
from longshore.shell.files.inference import typed_batches
from longshore.shell.files.json import json_columns
from longshore.shell.files.storage import Source, open_source

_MAGIC = b"ARROW1"
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_ROWS = 1 << 16


@contextlib.contextmanager
def open_batches(
    name: str, layout: FileLayout, schema: Mapping[str, str]
) -> Iterator[tuple[Iterator[pa.RecordBatch], int]]:
    """Return a file's batches, and its size in bytes.

    CSV and JSON are read twice: first for the types, which follow from all values. Raises ``InterfaceError`` for a
    name in ``schema`` that is not a type, ``DataError`` for a value that it cannot hold, and ``OSError`` for a file
    that does not exist, or is not of its format.
    """
    with open_source(name, layout.compression) as source:
        with source.reading():
            batches = _format_batches(source, layout, schema)
        yield _naming_source(batches, source), source.size


def _naming_source(batches: Iterator[pa.RecordBatch], source: Source) -> Iterator[pa.RecordBatch]:
    with source.reading():
        yield from batches


def _format_batches(source: Source, layout: FileLayout, schema: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    match layout.format:
        case Format.CSV:
            return typed_batches(csv_columns(source, layout.delimiter), schema)
        case Format.JSON:
            return typed_batches(json_columns(source), schema)
    if schema:
        raise InterfaceError(f"--schema is for csv and json: a file of {layout.format.value} has types of its own")
    return _parquet_batches(source) if layout.format is Format.PARQUET else _arrow_batches(source)


def _parquet_batches(source: Source) -> Iterator[pa.RecordBatch]:
    with source.bytes() as data, pq.ParquetFile(data) as file:
        yield _empty(file.schema_arrow)
        yield from file.iter_batches(batch_size=_ROWS)


def _arrow_batches(source: Source) -> Iterator[pa.RecordBatch]:
    """Read Arrow's format, as a file or as a stream; its first bytes tell."""
    with source.path.open("rb") as begin:
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
            raise DataError("the arrow stream has no end mark: it is a part of one")


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    """Make a batch of no rows: it brings the columns where there is no other."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
