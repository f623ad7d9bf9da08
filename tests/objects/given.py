"""How the tests give objects."""

import contextlib
import threading
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from longshore import _core


def arrow(*values: Any, nan_is_null: bool = True, as_text: bool = False) -> tuple[Any, Any]:
    """Give the field and the array of a column that is named "v"."""
    objects = column(values, nan_is_null=nan_is_null, as_text=as_text)
    return pa.field(objects), pa.array(objects.array(0, len(values)))


def column(values: Sequence[Any], *, nan_is_null: bool = True, as_text: bool = False) -> _core.Objects:
    """Give the objects of a column that is named "v"."""
    return _core.Objects(slots_of(values), "v", nan_is_null=nan_is_null, as_text=as_text)


def slots_of(values: Sequence[Any]) -> Any:
    """Give a NumPy array of objects."""
    slots = np.empty(len(values), dtype=object)
    # One by one: NumPy would take lists of one length for an array of two dimensions.
    for row, value in enumerate(values):
        slots[row] = value
    return slots


@contextlib.contextmanager
def replaced(slots: Any) -> Iterator[None]:
    """Have another thread replace texts by equal ones all the while, each the number of its row and an é."""
    done = threading.Event()

    def replace() -> None:
        while not done.is_set():
            for row in range(0, len(slots), 7):
                slots[row] = f"{row}é"

    replacer = threading.Thread(target=replace)
    replacer.start()
    try:
        yield
    finally:
        done.set()
        replacer.join()


def plain(kind: Any) -> Any:
    """Give a type in which UUIDs and JSON are as they are stored, whether or not pyarrow knows their extensions."""
    if isinstance(kind, pa.BaseExtensionType):
        return plain(kind.storage_type)
    if pa.types.is_list(kind):
        return pa.list_(plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, plain(field.type)) for field in kind])
    return kind


def values_of(array: Any) -> Any:
    """Give the values as Python has them, those of extensions as they are stored."""
    return [_stored(value) for value in array.to_pylist()]


def _stored(value: Any) -> Any:
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, list):
        return [_stored(item) for item in value]
    return {key: _stored(item) for key, item in value.items()} if isinstance(value, dict) else value


def extension(field: Any) -> str | None:
    """Give the name of the field's extension."""
    if isinstance(field.type, pa.BaseExtensionType):
        return str(field.type.extension_name)
    found = (field.metadata or {}).get(b"ARROW:extension:name")
    return None if found is None else str(found, "utf-8")
