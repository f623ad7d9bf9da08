"""The core's memory as NumPy's arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from longshore import _core
from longshore.asyncpg.dtypes import Layout

__all__ = ["Result", "result"]

Result = tuple[Any, list[int]]


def result(layout: Layout, rows: _core.Rows, records: Sequence[Any]) -> Result:
    """Give the array and the NULLs of what ``rows`` hold; ``records`` have what asyncpg decoded."""
    count = rows.count
    memories, nulls = rows.finish()
    if layout.groups is None:
        return _records(layout, memories[0], count, records), nulls
    columns: list[Any] = [None] * len(layout.names)
    for group, memory in zip(layout.groups, memories, strict=True):
        block = _block(layout, group, memory, count, records)
        for row, index in enumerate(group):
            columns[index] = block[row]
    return _void(layout, columns), nulls


def _records(layout: Layout, memory: Any, count: int, records: Sequence[Any]) -> Any:
    # Not a view: NumPy would ask itself whether the memory has objects, for longer than all else here takes.
    if not layout.objects:
        return np.ndarray(count, layout.dtype, memory)
    image = np.ndarray(count, layout.image, memory)
    array = np.empty(count, layout.dtype)
    for index, name in enumerate(layout.names):
        array[name] = _objects(records, index) if index in layout.objects else image[name]
    return array


def _objects(records: Sequence[Any], index: int) -> Any:
    return np.fromiter((record[index] for record in records), dtype=object, count=len(records))


def _block(layout: Layout, group: Sequence[int], memory: Any, count: int, records: Sequence[Any]) -> Any:
    dtype = layout.dtypes[group[0]]
    if group[0] in layout.objects:
        block = np.empty((len(group), count), dtype=object)
        for row, index in enumerate(group):
            block[row] = _objects(records, index)
        return block
    return np.ndarray((len(group), count), dtype, memory)


def _void(layout: Layout, columns: Sequence[Any]) -> Any:
    holder = np.empty(1, layout.columns)
    holder[0] = tuple(columns)
    return holder[0]
