"""pyarrow: arrays of values that have an Arrow type only once somebody has looked at them."""

import math
import uuid
from typing import Any

import numpy as np

from longshore.errors import DataError
from longshore.frames.libraries import missing
from longshore.interval import Interval

try:
    import pyarrow as pa
except ImportError as error:
    raise missing(library="pyarrow", extra="arrow", purpose="writing NumPy arrays and Python objects") from error

_UUID = pa.binary(16)


class Objects:
    """What is known of one column's objects."""

    def __init__(self, name: str, *, as_text: bool, nan_is_null: bool) -> None:
        """Remember the column's name for errors, and what becomes of mixed objects and of NaN among them."""
        self.name = name
        self.as_text = as_text
        self.nan_is_null = nan_is_null
        self.metadata: dict[str, str] | None = None
        self._convert: Any = None

    def infer(self, values: Any) -> Any:
        """Find the one type of all values; raises ``DataError`` where there is none."""
        first = next((value for value in values if not _is_null(value)), None)
        if isinstance(first, uuid.UUID):
            self.metadata = {"ARROW:extension:name": "arrow.uuid"}
            self._convert = _uuid_bytes
            return _UUID
        if isinstance(first, Interval):
            self._convert = _interval
            return pa.month_day_nano_interval()
        try:
            found = pa.infer_type(values, from_pandas=self.nan_is_null)
            # A zone or a precision that one value has and another has not shows only here.
            pa.array(values, type=found, from_pandas=self.nan_is_null)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            if self.as_text:
                self._convert = str
                return pa.string()
            message = f"the objects of column {self.name!r} are of no one type: {error}"
            hint = 'convert the column, or write the text of each with options={"objects": "text"}'
            raise DataError(message, column=self.name, hint=hint) from error
        return found

    def array(self, values: Any, kind: Any) -> Any:
        """Make the array of objects, whose type ``infer`` has found."""
        if self._convert is None:
            return pa.array(values, type=kind, from_pandas=self.nan_is_null)
        try:
            converted = [None if _is_null(value) else self._convert(value) for value in values]
        except (AttributeError, TypeError) as error:
            message = f"the objects of column {self.name!r} are of no one type"
            raise DataError(message, column=self.name, hint="convert the column to one type") from error
        return pa.array(converted, type=kind)


def data_type(values: Any, objects: Objects) -> Any:
    """Give the Arrow type of a Series or of a NumPy array."""
    if values.dtype == object:
        return objects.infer(values)
    try:
        return pa.array(values[:0]).type
    except (pa.ArrowException, TypeError, ValueError) as error:
        message = f"column {objects.name!r} is of dtype {values.dtype}, which Arrow has no type for"
        raise DataError(message, column=objects.name, hint="convert the column with astype") from error


def array(values: Any, kind: Any, objects: Objects, *, nan_is_null: bool) -> Any:
    """Make the array of a Series' or a NumPy array's values; what is missing in it is NULL."""
    if values.dtype == object:
        return objects.array(values, kind)
    made = pa.array(values, type=kind, from_pandas=nan_is_null or getattr(values.dtype, "kind", "") != "f")
    return made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made


def masked(values: Any, objects: Objects) -> Any:
    """Make the array of a NumPy array, masked or not; a NaN stays one."""
    plain, mask = np.ma.getdata(values), np.ma.getmaskarray(values)
    if plain.dtype == object:
        plain = plain.copy()
        plain[mask] = None
        return objects.array(plain, objects.infer(plain))
    kind = data_type(plain, objects)
    if plain.dtype.kind in "mM":
        mask = mask | np.isnat(plain)
    return pa.array(plain, type=kind, mask=mask)


def _is_null(value: object) -> bool:
    # pandas' own names: this file does not import pandas.
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    return isinstance(value, float) and math.isnan(value)


def _uuid_bytes(value: uuid.UUID) -> bytes:
    return value.bytes


def _interval(value: Interval) -> Any:
    return pa.MonthDayNano([value.months, value.days, value.nanoseconds])
