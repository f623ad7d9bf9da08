"""pyarrow: arrays of values that have an Arrow type only once somebody has looked at them."""

import datetime as dt
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

#: Of each of these Arrow would take the other's values, and lose a part of them or what they are.
_APART = ((dt.datetime, dt.date), (bytes, str))


class Objects:
    """What is known of one column's objects."""

    def __init__(self, name: str, *, as_text: bool, nan_is_null: bool) -> None:
        """Remember the column's name for errors, and what becomes of mixed objects and of NaN among them."""
        self.name = name
        self.as_text = as_text
        self.nan_is_null = nan_is_null
        self.metadata: dict[str, str] | None = None
        self._convert: Any = None
        self._is_nested = False

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
        self._is_nested = isinstance(first, list | tuple | dict | np.ndarray)
        try:
            _refuse_loss(values)
            found = self._plain(pa.infer_type, values)
            # A zone or a precision that one value has and another has not shows only here.
            self._plain(pa.array, values, type=found)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            if self.as_text:
                self._convert = str
                return pa.string()
            hint = 'convert the column, or write the text of each with options={"objects": "text"}'
            message = f"the objects of column {self.name!r} are of no one type: {error}\nHint: {hint}"
            raise DataError(message, column=self.name, hint=hint) from error
        return found

    def array(self, values: Any, kind: Any) -> Any:
        """Make the array of objects, whose type ``infer`` has found."""
        if self._convert is None:
            return self._plain(pa.array, values, type=kind)
        try:
            converted = [None if _is_null(value) else self._convert(value) for value in values]
        except (AttributeError, TypeError) as error:
            hint = "convert the column to one type"
            message = f"the objects of column {self.name!r} are of no one type\nHint: {hint}"
            raise DataError(message, column=self.name, hint=hint) from error
        return pa.array(converted, type=kind)

    def _plain(self, make: Any, values: Any, **arguments: Any) -> Any:
        if self.nan_is_null and self._is_nested:
            # Within a list a NaN is a value, and stays one.
            return make([None if _is_null(value) else value for value in values], **arguments)
        return make(values, from_pandas=self.nan_is_null, **arguments)


def data_type(values: Any, objects: Objects) -> Any:
    """Give the Arrow type of a Series or of a NumPy array."""
    if values.dtype == object:
        # A Series with labels of its own is no sequence to every pyarrow.
        return objects.infer(np.asarray(values))
    try:
        found = pa.array(values[:0]).type
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise _no_type(values, objects) from error
    # A period would be the number of it, and an interval would lose which of its ends belong to it.
    inner = found.value_type if pa.types.is_dictionary(found) else found
    if getattr(inner, "extension_name", "").startswith("pandas."):
        raise _no_type(values, objects)
    return found


def _no_type(values: Any, objects: Objects) -> DataError:
    hint = "convert the column, with astype(str) for example"
    message = f"column {objects.name!r} is of dtype {values.dtype}, which Arrow has no type for\nHint: {hint}"
    return DataError(message, column=objects.name, hint=hint)


def array(values: Any, kind: Any, objects: Objects, *, nan_is_null: bool) -> Any:
    """Make the array of a Series' or a NumPy array's values; what is missing in it is NULL."""
    if values.dtype == object:
        return objects.array(np.asarray(values), kind)
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


def _refuse_loss(values: Any) -> None:
    """Raise ``TypeError`` for objects that Arrow would make one type of by dropping a part of some."""
    kinds = {kind for kind in map(type, values) if kind.__name__ not in {"NAType", "NaTType"}}
    for one, other in _APART:
        if any(issubclass(kind, one) for kind in kinds) and any(
            issubclass(kind, other) and not issubclass(kind, one) for kind in kinds
        ):
            message = f"some are {one.__name__}, some {other.__name__}"
            raise TypeError(message)
    if any(issubclass(kind, dt.datetime | dt.time | dt.timedelta) for kind in kinds):
        _refuse_parts(values)
    elements = [element for value in values if isinstance(value, list | tuple) for element in value]
    if elements:
        _refuse_loss(elements)
    members: dict[Any, list[Any]] = {}
    for key, member in (pair for value in values if isinstance(value, dict) for pair in value.items()):
        members.setdefault(key, []).append(member)
    for each in members.values():
        _refuse_loss(each)


def _refuse_parts(values: Any) -> None:
    moments = [value for value in values if isinstance(value, dt.datetime) and not _is_null(value)]
    if len({value.tzinfo is None for value in moments}) > 1:
        message = "some datetimes have a time zone, some have none"
        raise TypeError(message)
    if any(isinstance(value, dt.time) and value.tzinfo is not None for value in values):
        message = "a time has a time zone, which Arrow's times have not"
        raise TypeError(message)
    # pandas' own moments and spans, of which Arrow takes the microseconds.
    if any(getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0) for value in values):
        message = "some have nanoseconds: pandas.to_datetime or to_timedelta makes a column of them"
        raise TypeError(message)


def _is_null(value: object) -> bool:
    # pandas' own names: this file does not import pandas.
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    return isinstance(value, float) and math.isnan(value)


def _uuid_bytes(value: uuid.UUID) -> bytes:
    return value.bytes


def _interval(value: Interval) -> Any:
    return pa.MonthDayNano([value.months, value.days, value.nanoseconds])
