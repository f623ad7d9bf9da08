"""pyarrow: readers whose batches have to be of the types that their schema says."""

import itertools
from collections.abc import Iterator
from typing import Any
from weakref import WeakSet

import pyarrow as pa

from longshore.errors import DataError, InterfaceError

#: Readers that have been begun here: their end is not to be taken for a table without rows.
_begun: "WeakSet[Any]" = WeakSet()


def checked(reader: Any) -> Any:
    """Give a reader of the same batches, which raises ``DataError`` for one of other types than the schema's.

    pyarrow looks at neither, and whoever took such a batch by the schema would read memory that is not the batch's.
    Raises ``InterfaceError`` for a reader that was begun before.
    """
    _refuse_begun(reader)
    return pa.RecordBatchReader.from_batches(reader.schema, _batches(reader))


def checked_batches(reader: Any) -> Iterator[Any]:
    """Give a table without rows and the same batches; raises as ``checked`` does, with no stream of Arrow's in between.

    Such a stream hands on no more of an exception than its text.
    """
    _refuse_begun(reader)
    return itertools.chain([reader.schema.empty_table()], _batches(reader))


def _refuse_begun(reader: Any) -> None:
    if reader in _begun:
        message = "this RecordBatchReader has already been consumed: read it into a table with read_all() first"
        raise InterfaceError(message)


def _batches(reader: Any) -> Iterator[Any]:
    _begun.add(reader)
    types = reader.schema.types
    for at, batch in enumerate(reader):
        if batch.schema.types != types:
            raise _other(reader.schema, batch.schema, at)
        yield batch


def _other(schema: Any, found: Any, at: int) -> DataError:
    if len(found) != len(schema):
        return DataError(f"batch {at} of the reader has {len(found)} columns, and its schema {len(schema)}")
    field, kind = next((field, kind) for field, kind in zip(schema, found.types, strict=True) if field.type != kind)
    message = f"column {field.name!r} is {kind} in batch {at} of the reader, and {field.type} in its schema"
    return DataError(message, column=field.name, native_type=str(kind))
