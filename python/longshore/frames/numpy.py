"""NumPy: a dict of masked arrays, exact in every type."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from longshore.frames.target import Backend, Column


class NumpyTarget:
    """``return_type="numpy"``."""

    backend: Backend = "masked"
    arrow_strings = False

    def build(self, columns: Sequence[Column], rows: int) -> dict[str, np.ma.MaskedArray[Any, Any]]:
        """Make a dict from name to masked array; the core has given repeated names a suffix."""
        del rows
        return {column.name: _array(column) for column in columns}


def _array(column: Column) -> np.ma.MaskedArray[Any, Any]:
    mask = np.ma.nomask if column.mask is None else column.mask
    return np.ma.MaskedArray(column.data, mask=mask, copy=False)
