"""pyarrow: Tables over the core's own memory, and its tables, readers and files as batches."""

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from weakref import ReferenceType, ref

from longshore.errors import DataError, InterfaceError
from longshore.frames import needing
from longshore.options import Options
from longshore.texts import column_name
from longshore.threads import map_threads

if TYPE_CHECKING:
    from longshore.frames.selection import Rows

with needing(library="pyarrow", extra="arrow", purpose='return_type="arrow"'):
    import pyarrow as pa

#: Readers that have been read here, by their identities: their end is not to be taken for a table without rows. A
#: WeakSet would have a callback for a reader's end, in which the exception of a signal's handler is lost.
_consumed: dict[int, "ReferenceType[Any]"] = {}


class ArrowTarget:
    """``return_type="arrow"``."""

    for_polars = False

    def build(self, stream: Any) -> Any:
        """Make a ``pyarrow.Table`` with one chunk for each batch."""
        return pa.RecordBatchReader.from_stream(stream).read_all()


def reader(stream: object) -> Any:
    """Make a ``pyarrow.RecordBatchReader`` of an object with ``__arrow_c_stream__``."""
    return pa.RecordBatchReader.from_stream(stream)


def batches(reader: Any) -> Iterator[Any]:
    """Return an empty table and the batches of a reader, for a stream that fails with the reader's own exception.

    A stream of Arrow's hands on no more of an exception than its text. Raises as ``checked_batches`` does.
    """
    return itertools.chain([reader.schema.empty_table()], checked_batches(reader))


def checked_batches(reader: Any) -> Iterator[Any]:
    """Return the batches of a reader; one of other types than the schema's is a ``DataError``.

    pyarrow checks neither, and whoever took such a batch by the schema would read memory that is not the batch's.
    Raises ``InterfaceError`` for a reader that has been read before.
    """
    if (before := _consumed.get(id(reader))) is not None and before() is reader:
        message = "this RecordBatchReader has already been consumed: read it into a table with read_all() first"
        raise InterfaceError(message)
    return _check(reader)


def _check(reader: Any) -> Iterator[Any]:
    for ended in [key for key, reference in list(_consumed.items()) if reference() is None]:
        _consumed.pop(ended, None)
    _consumed[id(reader)] = ref(reader)
    types = reader.schema.types
    for at, batch in enumerate(reader):
        if batch.schema.types != types:
            raise _other_types(reader.schema, batch.schema, at)
        yield batch


def _other_types(schema: Any, found: Any, at: int) -> DataError:
    if len(found) != len(schema):
        return DataError(f"batch {at} of the reader has {len(found)} columns, and its schema {len(schema)}")
    field, kind = next((field, kind) for field, kind in zip(schema, found.types, strict=True) if field.type != kind)
    message = f"column {field.name!r} is {kind} in batch {at} of the reader, and {field.type} in its schema"
    return DataError(message, column=field.name, native_type=str(kind))


def names(data: Any) -> list[str]:
    """Return the columns' names; raises ``InterfaceError`` for one that Arrow cannot have."""
    return [column_name(each) for each in data.column_names]


def values(data: Any, at: int) -> Any:
    """Return a column of a Table as it lies in memory."""
    return data.column(at)


def take_rows(data: Any, positions: Sequence[int], rows: "Rows", options: Options) -> Any:
    """Return some rows of some columns of a Table."""
    del options
    fields = [data.schema.field(at) for at in positions]
    arrays = map_threads(rows.of_arrow, [data.column(at) for at in positions], rows.threads)
    kinds = [field.with_type(array.type) for field, array in zip(fields, arrays, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(kinds))


def ipc_dataset(paths: Sequence[str]) -> Any:
    """Return a Dataset of files in Arrow's IPC format; directories such as ``year=2026`` are columns."""
    import pyarrow.dataset

    return pyarrow.dataset.dataset(list(paths), format="ipc", partitioning="hive")


def ipc_streams(paths: Sequence[str]) -> Any:
    """Read files that hold an IPC stream each, as one table."""
    tables = []
    for path in paths:
        with pa.memory_map(path) as source:
            tables.append(pa.ipc.open_stream(source).read_all())
    return pa.concat_tables(tables)
