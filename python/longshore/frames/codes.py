"""Texts by whose values rows are grouped: the engine compares few of them faster than many."""

from typing import Any

import pyarrow as pa

from longshore import _core
from longshore.frames.rows import is_text
from longshore.frames.selected import folded
from longshore.frames.use import MANY

__all__ = ["coded"]

#: Texts that a batch may have: with more, the engine takes dictionaries apart.
_MOST = 1_000


def coded(data: Any, keys: frozenset[str], threads: int | None) -> Any:
    """Give a long pyarrow Table with dictionaries for columns of few texts in ``keys``, and all else as it is."""
    if not isinstance(data, pa.Table) or len(data) < MANY:
        return data
    for at, field in enumerate(data.schema):
        if folded(field.name) not in keys or not is_text(field.type):
            continue
        made = _core.codes(pa.table({"texts": data.column(at)}), most=_MOST, threads=threads)
        if made:
            column = pa.chunked_array([pa.array(each) for each in made])
            data = data.set_column(at, pa.field(field.name, column.type, field.nullable), column)
    return data
