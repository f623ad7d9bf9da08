"""Files as record batches, a few in memory at a time, with the types that their values have."""

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from longshore.errors import DataError, InterfaceError
from longshore.shell.files.comma_in import csv_texts
from longshore.shell.files.formats import Format
from longshore.shell.files.lines_in import json_texts
from longshore.shell.files.sink import STANDARD
from longshore.shell.files.typed import typed

__all__ = ["batches"]

_MAGIC = b"ARROW1"
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_ROWS = 1 << 16


@contextlib.contextmanager
def batches(path: str, form: Format, wanted: Mapping[str, str]) -> Iterator[tuple[Iterator[pa.RecordBatch], int]]:
    """Give a file's batches, and its size in bytes.

    CSV and JSON are read twice: first for the types, which follow from all values. Raises ``InterfaceError`` for a type
    in ``wanted`` that is none, ``DataError`` for a value that it cannot hold, and ``OSError`` or an exception of
    pyarrow's for a file that is not there, or not of its format.
    """
    with _seekable(path) as place:
        yield _batches(place, form, wanted), place.stat().st_size


def _batches(place: Path, form: Format, wanted: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    match form:
        case Format.CSV:
            return typed(csv_texts(place), wanted)
        case Format.JSON:
            return typed(json_texts(place), wanted)
    if wanted:
        message = f"--schema is for csv and json: a file of {form.value} has types of its own"
        raise InterfaceError(message)
    return _parquet(place) if form is Format.PARQUET else _arrow(place)


@contextlib.contextmanager
def _seekable(path: str) -> Iterator[Path]:
    """Give a file that can be read twice; standard input becomes one."""
    if path != STANDARD and (Path(path).is_file() or not Path(path).exists()):
        yield Path(path)
        return
    with tempfile.NamedTemporaryFile(prefix="longshore-") as spool:
        if path == STANDARD:
            shutil.copyfileobj(sys.stdin.buffer, spool)
        else:
            with Path(path).open("rb") as pipe:
                shutil.copyfileobj(pipe, spool)
        spool.flush()
        yield Path(spool.name)


def _parquet(place: Path) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(place) as file:
        yield _empty(file.schema_arrow)
        yield from file.iter_batches(batch_size=_ROWS)


def _arrow(place: Path) -> Iterator[pa.RecordBatch]:
    """Read Arrow's format, as a file or as a stream; its first bytes tell."""
    with place.open("rb") as begin:
        is_file = begin.read(len(_MAGIC)) == _MAGIC
    with pa.OSFile(str(place)) as source:
        if is_file:
            file = pa.ipc.open_file(source)
            yield _empty(file.schema)
            yield from (file.get_batch(number) for number in range(file.num_record_batches))
            return
        stream = pa.ipc.open_stream(source)
        yield _empty(stream.schema)
        yield from stream
        # What follows the last batch is the end's mark, or the reader took the end of a part for it.
        source.seek(-len(_END), 2)
        if source.read(len(_END)) != _END:
            message = "the arrow stream has no end mark: it is a part of one"
            raise DataError(message)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    """Make a batch of no rows: with it the columns arrive, also where no row does."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
