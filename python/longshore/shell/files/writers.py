"""Record batches as files: what writes each format."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, assert_never

import pyarrow as pa

from longshore import _core
from longshore.errors import NotSupportedError
from longshore.shell.files import FileLayout, Format

if TYPE_CHECKING:
    from longshore.stream import Stream

#: A message's mark and its length, and then no message: what has to come after it never does.
_TORN = b"\xff\xff\xff\xff\x10\x00\x00\x00"


def write_batches(stream: "Stream", layout: FileLayout, file: Any) -> int:
    """Write the batches of a stream in a format, and return the number of their rows.

    Raises ``NotSupportedError`` for a type, and ``DataError`` for a value, that the format does not have. After an
    exception, what has been written is not what a reader takes for a whole file.
    """
    count = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal count
        for batch in stream:
            yield batch
            count += batch.num_rows

    match layout.format:
        case Format.CSV:
            _write_csv(batches(), stream.schema, file, layout.delimiter)
        case Format.JSON:
            _write_json(batches(), file)
        case Format.PARQUET:
            _write_parquet(batches(), stream.schema, file)
        case Format.ARROW:
            _write_arrow(batches(), pa.ipc.new_file(file, stream.schema), file)
        case Format.ARROWS:
            _write_arrow(batches(), pa.ipc.new_stream(file, stream.schema), file)
        case _:
            assert_never(layout.format)
    return count


def _write_csv(batches: Iterable[pa.RecordBatch], schema: pa.Schema, file: Any, delimiter: str) -> None:
    """Write batches as CSV in UTF-8."""
    if not schema.names:
        raise NotSupportedError("the result has no columns, and a row of none has no form in CSV")
    heading = pa.RecordBatch.from_arrays([pa.array([name]) for name in schema.names], schema.names)
    file.write(_core.csv_lines(heading, delimiter, 0))
    first = 0
    for batch in batches:
        file.write(_core.csv_lines(batch, delimiter, first))
        first += batch.num_rows


def _write_json(batches: Iterable[pa.RecordBatch], file: Any) -> None:
    """Write batches as JSON lines in UTF-8."""
    first = 0
    for batch in batches:
        file.write(_core.json_lines(batch, first))
        first += batch.num_rows


def _write_parquet(batches: Iterator[pa.RecordBatch], schema: pa.Schema, file: Any) -> None:
    """Write a Parquet file with a row group for each batch."""
    for name in schema.names:
        if schema.names.count(name) > 1:
            message = f'two columns are called "{name}", which a parquet file cannot tell apart'
            raise NotSupportedError(message, column=name)
    import pyarrow.parquet as pq

    try:
        writer = pq.ParquetWriter(file, schema, compression="zstd")
    except pa.ArrowNotImplementedError as error:
        message = f"a parquet file cannot hold one of the columns: {error}"
        raise NotSupportedError(message, hint="write an arrow file") from error
    # Not in a with statement, which would write the footer after an exception as well.
    for batch in batches:
        writer.write_batch(batch)
    writer.close()


def _write_arrow(batches: Iterator[pa.RecordBatch], writer: pa.ipc.RecordBatchStreamWriter, file: Any) -> None:
    try:
        for batch in batches:
            writer.write_batch(batch)
    except BaseException:
        # A stream that ends between two batches is complete to its readers.
        file.write(_TORN)
        file.flush()
        file.break_off()
        raise
    writer.close()
