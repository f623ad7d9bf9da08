"""A dtype from a statement's description."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from longshore.asyncpg.dtypes import Layout, layout

__all__ = ["layout_of"]

# By OID. What has no exact dtype of one width, text above all, is an object.
_DTYPES = {
    16: "?",
    20: "i8",
    21: "i2",
    23: "i4",
    26: "u4",
    700: "f4",
    701: "f8",
    1082: "M8[D]",
    1083: "m8[us]",
    1114: "M8[us]",
    1184: "M8[us]",
    2950: "V16",
    3220: "u8",
    5069: "u8",
}


def layout_of(attributes: Sequence[Any], *, block: bool) -> Layout:
    """Lay out the dtype that holds every value of the statement's columns exactly."""
    names = _distinct([attribute.name for attribute in attributes])
    kinds = [_DTYPES.get(attribute.type.oid, "O") for attribute in attributes]
    return layout(np.dtype(list(zip(names, kinds, strict=True))), block=block)


def _distinct(names: Sequence[str]) -> list[str]:
    """Add ``_1``, ``_2``, ... to every repetition, as ``read_sql`` does; NumPy has no empty name."""
    named = [name or "f" for name in names]
    taken = set(named)
    distinct: list[str] = []
    for name in named:
        candidate, number = name, 0
        while candidate in distinct or (number and candidate in taken):
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate)
        distinct.append(candidate)
    return distinct
