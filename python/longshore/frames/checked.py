"""pyarrow: readers whose batches have to be of the types that their schema says, and whose failures are told."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any
from weakref import ReferenceType, ref

from longshore.errors import DataError, Error, InterfaceError, OperationalError

#: Readers that have been begun here, by their identities: their end is not to be taken for a table without rows. A
#: WeakSet would have a callback for a reader's end, in which the exception of a signal's handler is lost.
_begun: dict[int, "ReferenceType[Any]"] = {}

#: What pyarrow writes before the text of an exception in a stream, and between it and its traceback.
_UNKNOWN = "Unknown error: "
_DETAIL = ". Detail: Python exception: "


def checked(reader: Any) -> Iterator[Any]:
    """Give the batches of a reader; one of other types than the schema's is a ``DataError``.

    pyarrow looks at neither, and whoever took such a batch by the schema would read memory that is not the batch's.
    Raises ``InterfaceError`` for a reader that was begun before.
    """
    if (before := _begun.get(id(reader))) is not None and before() is reader:
        message = "this RecordBatchReader has already been consumed: read it into a table with read_all() first"
        raise InterfaceError(message)
    return _batches(reader)


def checked_batches(reader: Any) -> Iterator[Any]:
    """Give a table without rows and the same batches; raises as ``checked`` does, with no stream of Arrow's in between.

    Such a stream hands on no more of an exception than its text.
    """
    return itertools.chain([reader.schema.empty_table()], checked(reader))


def translated(batches: Iterator[Any], name: str) -> Iterator[Any]:
    """Give the batches of a foreign stream; where it stops, the error has the reason that it left pyarrow."""
    try:
        yield from batches
    except Error:
        raise
    except Exception as error:
        raise stopped(error, name) from error


def told(batches: Iterator[Any], failed: Callable[[BaseException], None]) -> Iterator[Any]:
    """Give the batches; ``failed`` is told of an exception, of which Arrow's stream hands on no more than the text."""
    try:
        yield from batches
    except GeneratorExit:
        # Nobody wants the rest.
        raise
    except BaseException as error:
        failed(error)
        raise


def stopped(error: Exception, name: str) -> BaseException:
    """Make the exception for a foreign stream that stopped, of the text that pyarrow has of its own."""
    text, _, trace = str(error).removeprefix(_UNKNOWN).partition(_DETAIL)
    last = trace.strip().rpartition("\n")[-1]
    return (
        KeyboardInterrupt()
        if last == "KeyboardInterrupt"
        else OperationalError(f"reading {name!r} stopped: {text or last}")
    )


def _batches(reader: Any) -> Iterator[Any]:
    for ended in [key for key, reference in list(_begun.items()) if reference() is None]:
        _begun.pop(ended, None)
    _begun[id(reader)] = ref(reader)
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
