"""NumPy: a dict of masked arrays, exact in every type."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from longshore.frames.names import distinct
from longshore.frames.target import Backend, Column


class NumpyTarget:
    """``return_type="numpy"``."""

    backend: Backend = "masked"
    arrow_strings = False

    def build(self, columns: Sequence[Column], rows: int) -> dict[str, np.ma.MaskedArray[Any, Any]]:
        """Make a dict from name to masked array; repeated names get a suffix."""
        del rows
        names = distinct([column.name for column in columns])
        return {name: _array(column) for name, column in zip(names, columns, strict=True)}


def _array(column: Column) -> np.ma.MaskedArray[Any, Any]:
    mask = np.ma.nomask if column.mask is None else column.mask
    return np.ma.MaskedArray(column.values, mask=mask, copy=False)
