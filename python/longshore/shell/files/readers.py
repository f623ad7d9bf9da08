"""Files as record batches, a few in memory at a time, with the types that their values have."""

import contextlib
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from longshore.errors import DataError, InterfaceError
from longshore.shell.files.comma_in import csv_texts
from longshore.shell.files.formats import FileLayout, Format
from longshore.shell.files.lines_in import json_texts
from longshore.shell.files.source import Source, opened
from longshore.shell.files.typed import typed

__all__ = ["batches"]

_MAGIC = b"ARROW1"
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_ROWS = 1 << 16


@contextlib.contextmanager
def batches(path: str, layout: FileLayout, wanted: Mapping[str, str]) -> Iterator[tuple[Iterator[pa.RecordBatch], int]]:
    """Give a file's batches, and its size in bytes.

    CSV and JSON are read twice: first for the types, which follow from all values. Raises ``InterfaceError`` for a type
    in ``wanted`` that is none, ``DataError`` for a value that it cannot hold, and ``OSError`` for a file that is not
    there, or not of its format.
    """
    with opened(path, layout.compression) as source:
        with source.reading():
            rows = _batches(source, layout, wanted)
        yield _named(rows, source), source.size


def _named(rows: Iterator[pa.RecordBatch], source: Source) -> Iterator[pa.RecordBatch]:
    with source.reading():
        yield from rows


def _batches(source: Source, layout: FileLayout, wanted: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    match layout.format:
        case Format.CSV:
            return typed(csv_texts(source, layout.delimiter), wanted)
        case Format.JSON:
            return typed(json_texts(source), wanted)
    if wanted:
        message = f"--schema is for csv and json: a file of {layout.format.value} has types of its own"
        raise InterfaceError(message)
    return _parquet(source) if layout.format is Format.PARQUET else _arrow(source)


def _parquet(source: Source) -> Iterator[pa.RecordBatch]:
    with source.bytes() as data, pq.ParquetFile(data) as file:
        yield _empty(file.schema_arrow)
        yield from file.iter_batches(batch_size=_ROWS)


def _arrow(source: Source) -> Iterator[pa.RecordBatch]:
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
