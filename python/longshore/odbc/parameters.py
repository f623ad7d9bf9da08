"""Arrow's values as parameters of a statement: one set for each row of a batch."""

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from longshore import errors
from longshore.odbc import columns, manager
from longshore.odbc.manager import C_BINARY, C_CHAR, C_WCHAR, NULL_DATA, Statement
from longshore.sources.arrow import is_bytes, is_text

_C_BIGINT = -25
#: Drivers differ in what they make of the years before.
_FIRST_YEAR = 1
#: The size of a text from which its type is the one of long texts, and the same of bytes.
_LONG = 4000


class Bound(NamedTuple):
    """A column's values as ODBC takes them."""

    c_type: int
    sql_type: int
    size: int
    digits: int
    values: Any
    #: The bytes of each value; None where all have those of the buffer.
    lengths: Any = None


def rows_of(sets: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Give sets of parameters, whose values have one type in each place, as a batch of a row each."""
    columns = [pa.array([*map(_plain, values)]) for values in zip(*sets, strict=True)]
    return pa.record_batch(columns, [*map(str, range(len(columns)))])


def _plain(value: Any) -> Any:
    """Give a value as one that Arrow and ODBC have."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 63:  # noqa: PLR2004  and a sign
        return Decimal(value)
    if isinstance(value, dt.time) and value.tzinfo is not None:
        return value.isoformat()
    if isinstance(value, list | tuple | dict | dt.timedelta) or type(value).__name__ == "Interval":
        raise errors.NotSupportedError(f"ODBC has no parameter of Python's {type(value).__name__}: give its text")
    return str(value) if type(value).__name__ == "UUID" else value


def bind(statement: Statement, batch: pa.RecordBatch, *, is_utc: bool) -> None:
    """Bind the rows of a batch; the statement then runs once for each.

    Where the session's zone is UTC, a timestamp with a time zone goes as one, and else as a text with its offset.
    """
    for number, (name, array) in enumerate(zip(batch.schema.names, batch.columns, strict=True), 1):
        valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
        is_text = not is_utc and pa.types.is_timestamp(array.type) and array.type.tz is not None
        _refuse_years(name, array)
        if not statement.driver.keeps_zeros:
            _refuse_zeros(name, array)
        bound = _bind(name, pc.strftime(array, "%Y-%m-%d %H:%M:%S+00:00") if is_text else array)
        values = np.ascontiguousarray(bound.values)
        lengths = values.dtype.itemsize if bound.lengths is None else bound.lengths
        sizes = np.where(valid, lengths, NULL_DATA).astype("i8")
        types = (bound.c_type, bound.sql_type, bound.size, bound.digits)
        statement.bind_parameter(number, types, values, values.dtype.itemsize, sizes)
    statement.set(manager.ATTR_PARAMSET_SIZE, batch.num_rows)


def _refuse_years(name: str, array: Any) -> None:
    """Raise ``DataError`` for a date whose year ODBC does not have."""
    if pa.types.is_dictionary(array.type):
        _refuse_years(name, array.dictionary_decode())
    elif pa.types.is_date(array.type) or pa.types.is_timestamp(array.type):
        # pyarrow's years have 16 bits, too.
        points = _days(array) if pa.types.is_date(array.type) else _points(array)
        years = _years(points)
        rows = np.flatnonzero((years < _FIRST_YEAR) | (years > columns.LAST_YEAR))
        if len(rows):
            message = f"ODBC has the years {_FIRST_YEAR} to {columns.LAST_YEAR}, and not {years[rows[0]]}"
            raise errors.DataError(message, column=name, row=int(rows[0]), hint="write it as text, and cast that")


def _refuse_zeros(name: str, array: Any) -> None:
    """Raise ``DataError`` for a text that the driver would cut."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        _refuse_zeros(name, array.dictionary_decode())
    elif is_text(kind):
        row = pc.index(pc.match_substring(array.cast(pa.large_string()), "\0"), value=True).as_py()
        if row >= 0:
            message = "a text with a zero character, where the driver would cut it"
            raise errors.DataError(message, column=name, row=row, hint="write its bytes")


def _bind(name: str, array: Any) -> Bound:
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _bind(name, array.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return _bind(name, pc.run_end_decode(array))
    if pa.types.is_null(kind):
        return Bound(C_WCHAR, columns.WVARCHAR, 1, 0, np.zeros(len(array), "u2"))
    if isinstance(array, pa.ExtensionArray):
        if "uuid" not in str(kind):
            return _bind(name, array.storage)
        return _texts(pa.array([None if value is None else str(value) for value in array.to_pylist()], pa.string()))
    make = next((make for is_one, make in _KINDS if is_one(kind)), None)
    if make is None:
        raise errors.NotSupportedError(f"ODBC has no parameter of {kind}: cast it, or give its text", column=name)
    return make(array)


#: The bytes of the buffers that rows are written from, the most rows at once, and the bytes of most values.
_BUDGET, _MOST_ROWS, _FIXED = 4 << 20, 1000, 80


def execute_all(statement: Statement, batch: pa.RecordBatch, *, is_utc: bool, most: int = _MOST_ROWS) -> int:
    """Run a prepared statement for each row of a batch, many at a time, and tell how many rows it changed, or -1."""
    start, counts = 0, [0]
    while start < batch.num_rows:
        part = batch.slice(start, most)
        # In a buffer, all values of a column have the bytes of the longest one.
        part = part.slice(0, max(1, _BUDGET // (sum(map(_longest, part.columns)) + 1)))
        statement.buffers.clear()
        bind(statement, part, is_utc=is_utc)
        counts.append(statement.execute_sets(part.num_rows))
        start += part.num_rows
    return -1 if min(counts) < 0 else sum(counts)


_VARYING = {pa.string(), pa.large_string(), pa.binary(), pa.large_binary()}
#: Views, of which pyarrow tells no lengths, and the same values as they are elsewhere.
_VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def _longest(array: Any) -> int:
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _longest(array.dictionary)
    if kind in _VIEWS:
        return _longest(array.cast(_VIEWS[kind]))
    if kind not in _VARYING:
        return _FIXED
    return 2 * (pc.max(pc.binary_length(array)).as_py() or 0)


def _numbers(array: pa.Array, dtype: str) -> Any:
    return pc.fill_null(array, 0).to_numpy(zero_copy_only=False).astype(dtype)


def _ascii(texts: list[str | None], sql_type: int, size: int, digits: int) -> Bound:
    return Bound(C_CHAR, sql_type, size, digits, *_pad([(text or "").encode() for text in texts], 1))


def _decimals(array: pa.Array) -> Bound:
    scale = max(0, array.type.scale)
    texts = [None if value is None else f"{value:f}" for value in array.to_pylist()]
    return _ascii(texts, columns.DECIMAL, max(array.type.precision, scale), scale)


def _days(array: pa.Array) -> Any:
    array = array.cast(pa.date32())
    return pc.fill_null(array.cast(pa.int32()), 0).to_numpy().astype("M8[D]")


def _points(array: pa.Array) -> Any:
    return pc.fill_null(array.cast(pa.int64()), 0).to_numpy().astype(f"M8[{array.type.unit}]")


def _years(points: Any) -> Any:
    return points.astype("M8[Y]").astype("i8") + 1970


def _timestamps(array: pa.Array) -> Bound:
    counts = _points(array)
    values = _parts(counts.astype("M8[D]"), columns.TIMESTAMP_PARTS)
    seconds = counts.astype("M8[s]")
    of_day = (seconds - counts.astype("M8[D]")).astype("i8")
    values["hour"], values["minute"], values["second"] = of_day // 3600, of_day // 60 % 60, of_day % 60
    values["fraction"] = (counts - seconds).astype("m8[ns]").astype("i8")
    digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[array.type.unit]
    return Bound(columns.C_TIMESTAMP, columns.TIMESTAMP, 20 + digits, digits, values)


def _parts(days: Any, dtype: Any) -> Any:
    values, months = np.zeros(len(days), dtype), days.astype("M8[M]")
    years = days.astype("M8[Y]")
    values["year"] = _years(days)
    values["month"], values["day"] = (months - years).astype("i8") + 1, (days - months).astype("i8") + 1
    return values


def _spans(array: pa.Array) -> Bound:
    counts = array.cast(pa.duration("us")).cast(pa.int64()).to_pylist()
    return _texts(pa.array([None if count is None else f"{count} microseconds" for count in counts], pa.string()))


def _intervals(array: pa.Array) -> Bound:
    texts = [
        value and f"{value[0]} months {value[1]} days {value[2] // 1000} microseconds" for value in array.to_pylist()
    ]
    return _texts(pa.array(texts, pa.string()))


def _texts(array: pa.Array) -> Bound:
    values, lengths = _pad([(text or "").encode("utf-16-le") for text in array.to_pylist()], 2)
    size = max(1, values.dtype.itemsize // 2 - 1)
    return Bound(C_WCHAR, columns.WVARCHAR if size < _LONG else columns.WLONGVARCHAR, size, 0, values, lengths)


def _binaries(array: pa.Array) -> Bound:
    values, lengths = _pad([value or b"" for value in array.to_pylist()], 1)
    size = values.dtype.itemsize - 1
    kind = columns.VARBINARY if size < _LONG else columns.LONGVARBINARY
    return Bound(C_BINARY, kind, max(1, size), 0, values, lengths)


def _pad(data: list[bytes], unit: int) -> tuple[Any, Any]:
    """Give values in buffers of one size, with a zero at each end, and their lengths."""
    width = max(map(len, data), default=0) + unit
    return np.frombuffer(b"".join(each.ljust(width, b"\0") for each in data), f"V{width}"), [*map(len, data)]


_types = pa.types
_KINDS: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], Bound]]] = [
    (_types.is_boolean, lambda array: Bound(columns.C_BIT, columns.BIT, 1, 0, _numbers(array.cast("uint8"), "u1"))),
    (lambda kind: kind == pa.uint64(), lambda array: _ascii(array.cast("string").to_pylist(), columns.DECIMAL, 20, 0)),
    (_types.is_integer, lambda array: Bound(_C_BIGINT, columns.BIGINT, 19, 0, _numbers(array, "i8"))),
    (_types.is_floating, lambda array: Bound(columns.C_DOUBLE, columns.DOUBLE, 53, 0, _numbers(array, "f8"))),
    (_types.is_decimal, _decimals),
    (is_text, _texts),
    (is_bytes, _binaries),
    (_types.is_date, lambda a: Bound(columns.C_DATE, columns.DATE, 10, 0, _parts(_days(a), columns.DATE_PARTS))),
    (_types.is_timestamp, _timestamps),
    (_types.is_time, lambda array: _texts(array.cast("string"))),
    (_types.is_duration, _spans),
    (lambda kind: kind == pa.month_day_nano_interval(), _intervals),
]
