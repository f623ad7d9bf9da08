"""Arrow columns as texts, which say their values exactly."""

import contextlib
import decimal
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from longshore.errors import DataError, NotSupportedError


class UnrepresentableError(Exception):
    """A value that a format does not have, by its index in the array."""

    def __init__(self, index: int, problem: str, hint: str) -> None:
        """Keep the index, the problem and the remedy."""
        super().__init__(problem)
        self.index = index
        self.problem = problem
        self.hint = hint


@contextlib.contextmanager
def locating_value(column: str, first: int) -> Iterator[None]:
    """Locate an unrepresentable value of a batch, whose first row has the number ``first``, in a ``DataError``."""
    try:
        yield
    except UnrepresentableError as fault:
        row = first + fault.index
        message = f'column "{column}", row {row}: {fault.problem}\nHint: {fault.hint}'
        raise DataError(message, column=column, row=row, hint=fault.hint) from fault


_UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_NANO = 10**9
_MINUTE = 60
_YEARS = ("0001-01-01", "9999-12-31T23:59:59")
_EXTENSION = b"ARROW:extension:name"


def extension_name(field: pa.Field) -> str | None:
    """Return the name of a field's extension type; pyarrow that does not know it leaves it in the metadata."""
    if isinstance(field.type, pa.BaseExtensionType):
        return str(field.type.extension_name)
    name = (field.metadata or {}).get(_EXTENSION)
    return None if name is None else name.decode()


def plain_values(array: pa.Array) -> pa.Array:
    """Return an array's values without an extension type and without a dictionary."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def to_text(field: pa.Field, array: pa.Array) -> pa.Array:
    """Return each value of a flat column as text; NULL stays.

    Raises ``NotSupportedError`` for a type that has none.
    """
    array = plain_values(array)
    if extension_name(field) == "arrow.uuid":
        return _each(array, lambda value: str(UUID(bytes=value)))
    for matches, convert in _CONVERSIONS:
        if matches(array.type):
            return convert(array)
    raise no_text_form(field)


def no_text_form(field: pa.Field) -> NotSupportedError:
    """Make the error for a type that has no form as text."""
    hint = f'cast it in the query, give --schema "{field.name}=string", or write a parquet or arrow file'
    message = f'column "{field.name}" is {field.type}, which has no text here\nHint: {hint}'
    return NotSupportedError(message, column=field.name, hint=hint)


def _each(array: pa.Array, convert: Callable[[Any], str]) -> pa.Array:
    return pa.array([None if value is None else convert(value) for value in array.to_pylist()], pa.string())


def _cast(array: pa.Array) -> pa.Array:
    return array.cast(pa.string())


def _decimals(array: pa.Array) -> pa.Array:
    texts = array.cast(pa.string())
    if not pc.any(pc.match_substring(texts, "E")).as_py():
        return texts
    return _each(texts, lambda text: format(decimal.Decimal(text), "f"))


def _halves(array: pa.Array) -> pa.Array:
    return array.cast(pa.float32()).cast(pa.string())


def _dates_and_times(array: pa.Array) -> pa.Array:
    """Return dates and timestamps in the form of ISO 8601, those with a time zone in UTC with a Z."""
    if pa.types.is_timestamp(array.type) and array.type.tz not in {None, "UTC"}:
        array = array.cast(pa.timestamp(array.type.unit, "UTC"))
    if pa.types.is_date64(array.type):
        array = array.cast(pa.date32())
    unit: Any
    unit, end = ("D", "") if pa.types.is_date(array.type) else (array.type.unit, "Z" if array.type.tz else "")
    counts = array.cast(pa.int32() if unit == "D" else pa.int64())
    if not _is_beyond(counts, unit):
        return array.cast(pa.string())
    # Arrow truncates such a year to sixteen bits.
    return _each(counts, lambda count: str(np.datetime64(count, unit)).replace("T", " ") + end)


def _is_beyond(counts: pa.Array, unit: Any) -> bool:
    """Whether a year does not have four digits; those of nanoseconds do."""
    if unit == "ns":
        return False
    lowest, highest = (np.datetime64(day, unit).astype(np.int64).item() for day in _YEARS)
    return bool(pc.any(pc.or_(pc.less(counts, lowest), pc.greater(counts, highest))).as_py())


def _bytes(array: pa.Array) -> pa.Array:
    return _each(array, lambda value: f"\\x{value.hex()}")


def _durations(array: pa.Array) -> pa.Array:
    digits = _UNITS[array.type.unit]
    return _each(array.cast(pa.int64()), lambda count: _duration(count, digits))


def _duration(count: int, digits: int) -> str:
    """Return hours, of any number of digits, minutes and seconds.

    >>> _duration(-90_000_500, 6)
    '-00:01:30.000500'
    """
    seconds, fraction = divmod(abs(count), 10**digits)
    minutes, seconds = divmod(seconds, _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    end = f".{fraction:0{digits}}" if fraction else ""
    return f"{'-' if count < 0 else ''}{hours:02}:{minutes:02}:{seconds:02}{end}"


def _intervals(array: pa.Array) -> pa.Array:
    return _each(array, lambda value: _interval(value.months, value.days, value.nanoseconds))


def _interval(months: int, days: int, nanoseconds: int) -> str:
    """Return an interval's three parts as ISO 8601 does, none carried into another.

    >>> _interval(14, -3, -1_500_000_000), _interval(0, 0, 0)
    ('P14M-3DT-1.5S', 'PT0S')
    """
    seconds, fraction = divmod(abs(nanoseconds), _NANO)
    end = f".{fraction:09}".rstrip("0") if fraction else ""
    date = (f"{months}M" if months else "") + (f"{days}D" if days else "")
    time = f"T{'-' if nanoseconds < 0 else ''}{seconds}{end}S" if nanoseconds or not date else ""
    return f"P{date}{time}"


def _is_any(*tests: Callable[[pa.DataType], bool]) -> Callable[[pa.DataType], bool]:
    return lambda kind: any(test(kind) for test in tests)


_types = pa.types
_CONVERSIONS: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array]]] = [
    (_is_any(_types.is_null, _types.is_boolean, _types.is_integer, _types.is_float32, _types.is_float64), _cast),
    (_is_any(_types.is_string, _types.is_large_string, pa.string_view().equals, _types.is_time), _cast),
    (_types.is_decimal, _decimals),
    (_types.is_float16, _halves),
    (_is_any(_types.is_date, _types.is_timestamp), _dates_and_times),
    (_types.is_duration, _durations),
    (_types.is_interval, _intervals),
    (_is_any(_types.is_binary, _types.is_large_binary, _types.is_fixed_size_binary), _bytes),
]
