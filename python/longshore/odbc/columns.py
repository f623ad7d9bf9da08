"""Rows of a statement as Arrow: each column decides once how it is bound, and makes an array of each fetch."""

import datetime as dt
import functools
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from longshore import errors
from longshore.odbc import manager
from longshore.odbc.manager import C_BINARY, C_CHAR, C_WCHAR, NO_TOTAL, NULL_DATA, Description, Statement

#: The bytes of the buffers that rows are fetched into, and of a text's or a binary's own at first.
BUDGET = 8 << 20
_SHORT = 512
#: The most rows of a block: a driver goes through them for each value that is asked for by itself.
_BLOCK = 4096
#: The most characters or bytes of a value where the driver does not hand over a long one by itself.
_MOST = 8 << 10

#: ODBC's numbers of SQL types, and of the C types that values are fetched as.
CHAR, NUMERIC, DECIMAL, INTEGER, SMALLINT, FLOAT, REAL, DOUBLE, VARCHAR = 1, 2, 3, 4, 5, 6, 7, 8, 12
DATE, TIME, TIMESTAMP, LONGVARCHAR, BINARY, VARBINARY, LONGVARBINARY = 91, 92, 93, -1, -2, -3, -4
BIGINT, TINYINT, BIT, WCHAR, WVARCHAR, WLONGVARCHAR, GUID = -5, -6, -7, -8, -9, -10, -11
C_BIT, C_DOUBLE, C_DATE, C_TIMESTAMP, C_GUID = -7, 8, 91, 93, -11

_DATE = np.dtype([("year", "i2"), ("month", "u2"), ("day", "u2")])
_TIMESTAMP = np.dtype([*_DATE.descr, ("hour", "u2"), ("minute", "u2"), ("second", "u2"), ("fraction", "u4")])
DATE_PARTS, TIMESTAMP_PARTS = _DATE, _TIMESTAMP
#: Signed and unsigned integers: the C types and the dtypes.
INTEGERS = {
    TINYINT: ((-26, "i1"), (-28, "u1")),
    SMALLINT: ((-15, "i2"), (-17, "u2")),
    INTEGER: ((-16, "i4"), (-18, "u4")),
    BIGINT: ((-25, "i8"), (-27, "u8")),
}
_FLOATS = {REAL, FLOAT, DOUBLE}
_MONTHS, _SHORTEST = 12, 28
#: The last year that ODBC has 16 bits for.
LAST_YEAR = 32_767
#: The bytes of the text of a number, or of a date and a time.
_NUMBER = 40
#: The seconds since 1970 beyond which 64 bits of nanoseconds end, less one.
_NANOSECONDS = 9_223_372_035
#: Characters of one byte in UTF-8, and of two at most; halves of a character in UTF-16, and the second ones.
_ONE, _TWO, _HALF, _SECOND = 0x80, 0x800, 0xD800, 0xDC00
#: A block with more empty room than this is not gathered by a mask.
_SPARSE, _SMALL = 8, 1 << 16
_TEMPORAL = {DATE, TIME, TIMESTAMP}
_LONG = {LONGVARCHAR, WLONGVARCHAR, LONGVARBINARY}
_MICROSECONDS = 6
#: The bytes that the offsets of Arrow's texts count.
_MOST_BYTES = 2**31 - 1
#: The metadata that has the core read a text as a decimal, in its own type policy.
_DECIMAL = {"ADBC:postgresql:typname": "numeric"}
_LIMIT = "give a larger max_text_size= in the address, or cast the column in the query"
_ROUNDED = (
    "read the file by sqlite:///, or the column as CASE WHEN r IS NOT NULL THEN printf('%!.17g', r) END; "
    "rounded_floats=true in the address has floats rounded"
)
_EACH = "run each statement by itself"
_CAST = "cast the column to text in the query"

#: The values of the rows that were fetched, the lengths, and which are not NULL.
Make = Callable[[Any, Any, Any], pa.Array]


class Driver(NamedTuple):
    """The ways in which drivers differ."""

    #: Whether it hands over a value of a fetched block by itself.
    has_long_values: bool
    #: The caller's limit.
    max_text_size: int | None
    #: Types of this name are timestamps of UTC; those of these sizes are decimals without a declared scale.
    zoned: frozenset[str] = frozenset()
    undeclared: frozenset[int] = frozenset()
    #: Whether a column has values of any type, of which its own C type would make others.
    has_loose_types: bool = False
    #: Whether it rounds floats to 15 digits, and the caller has not said that this may be.
    rounds_floats: bool = False
    #: Whether it calls an error of the server's whose state is that of a warning a success.
    hides_failures: bool = False
    #: Whether it hands over texts as their bytes in UTF-8: of UTF-16, it cuts what follows a zero.
    has_utf8: bool = False
    #: Whether it takes a text as a parameter with a zero in it, and does not cut it there.
    keeps_zeros: bool = False
    #: Whether it fetches a whole result at once, which it frees on a cancel.
    fetches_whole: bool = False
    #: Whether it takes statements in UTF-8: of UTF-16, it cuts characters beyond 16 bits.
    takes_utf8: bool = False
    #: Types that are read as texts, of which their own C type would lose something.
    texts: frozenset[str] = frozenset()
    #: Whether it fills dates that it cannot read with today's, and the timestamp that it makes of infinity.
    has_wrong_dates: bool = False
    infinity: int | None = None


class Column:
    """A column: its buffer, and its Arrow array of each fetch."""

    def __init__(self, number: int, description: Description, driver: Driver) -> None:
        """Decide."""
        self.number, self.description, self.driver = number, description, driver
        self.width = 0
        self.c_type, self.dtype, self.field, self._make = self._plan()

    @property
    def row_size(self) -> int:
        """The bytes of a row in its buffers."""
        return int(self.dtype.itemsize) + 8

    def _plan(self) -> tuple[int, np.dtype[Any], pa.Field, Make]:
        kind = WVARCHAR if self.description.native in self.driver.texts else self.description.sql_type
        if kind in INTEGERS or kind in _FLOATS:
            return self._number_plan(kind)
        if kind in _TEMPORAL:
            if kind == TIME or (kind == TIMESTAMP and self.driver.has_wrong_dates):
                return C_CHAR, self._units("u1", _NUMBER), self._field(self._temporal()), self._parsed
            make, dtype = (self._dates, _DATE) if kind == DATE else (self._timestamps, _TIMESTAMP)
            return kind, dtype, self._field(self._temporal()), make
        if kind in {NUMERIC, DECIMAL}:
            return (
                C_CHAR,
                self._units("u1", max(self.description.size, _NUMBER) + 4),
                self._decimal_field(),
                self._texts,
            )
        return self._other_plan(kind)

    def _number_plan(self, kind: int) -> tuple[int, np.dtype[Any], pa.Field, Make]:
        if self.driver.has_loose_types:
            exact = pa.int64() if kind in INTEGERS else pa.float64()
            return C_CHAR, self._units("u1", _NUMBER), self._field(exact), self._parsed
        if kind == REAL:
            # MariaDB's driver takes eight bytes in a block for each float of four, and writes beyond the buffer.
            return C_DOUBLE, np.dtype("f8"), self._field(pa.float32()), self._singles
        c_type, name = INTEGERS[kind][self.description.is_unsigned] if kind in INTEGERS else (C_DOUBLE, "f8")
        dtype = np.dtype(name)
        return c_type, dtype, self._field(pa.from_numpy_dtype(dtype)), self._plain

    def _other_plan(self, kind: int) -> tuple[int, np.dtype[Any], pa.Field, Make]:
        if kind in {BINARY, VARBINARY, LONGVARBINARY}:
            return C_BINARY, self._units("u1", self._size()), self._field(pa.binary()), self._binaries
        if kind == BIT:
            return C_BIT, np.dtype("u1"), self._field(pa.bool_()), self._booleans
        if kind == GUID:
            return C_GUID, np.dtype("V16"), self._field(getattr(pa, "uuid", lambda: pa.binary(16))()), self._uuids
        if self.driver.has_utf8:
            return C_BINARY, self._units("u1", self._size()), self._field(pa.string()), self._bytes_as_texts
        return C_WCHAR, self._units("u2", self._size() + 1), self._field(pa.string()), self._texts

    def _temporal(self) -> pa.DataType:
        description = self.description
        if description.sql_type != TIMESTAMP:
            return pa.date32() if description.sql_type == DATE else pa.time64("us")
        unit = "us" if description.digits <= _MICROSECONDS else "ns"
        return pa.timestamp(unit, "UTC" if description.native.lower() in self.driver.zoned else None)

    def _field(self, kind: pa.DataType, metadata: dict[str, str] | None = None) -> pa.Field:
        return pa.field(self.description.name, kind, metadata=metadata)

    def _decimal_field(self) -> pa.Field:
        more = dict(_DECIMAL)
        if self.description.size not in self.driver.undeclared:
            more["POSTGRESQL:typmod"] = str((self.description.size << 16 | self.description.digits & 0x7FF) + 4)
        return self._field(pa.string(), more)

    def _size(self) -> int:
        """Give the characters or bytes of the buffer."""
        size, most = self.description.size, self.driver.max_text_size
        if not self.driver.has_long_values:
            return most or _MOST
        # Of the characters that are told, each may have two units of UTF-16.
        short = 2 * size if 0 < 2 * size <= _SHORT and self.description.sql_type not in _LONG else _SHORT
        return min(short, most or short)

    def _units(self, unit: str, width: int) -> np.dtype[Any]:
        self.width = width
        return np.dtype((unit, (width,)))

    def bind(self, statement: Statement, rows: int) -> None:
        """Have the driver fetch so many rows into the column's buffers."""
        self.statement, self._begun = statement, time.localtime()
        self.values, self.lengths = np.zeros(rows, self.dtype), np.zeros(rows, "i8")
        statement.bind_column(self.number, self.c_type, self.values, self.dtype.itemsize, self.lengths)

    def array(self, rows: int, before: int) -> pa.Array:
        """Give the rows that were fetched, before which there were others."""
        self.before = before
        lengths = self.lengths[:rows]
        return self._make(self.values[:rows], lengths, lengths != NULL_DATA)

    def refuse(self, row: int, message: str, hint: str) -> NoReturn:
        """Raise for a value."""
        raise errors.DataError(
            message, hint=hint, column=self.description.name, row=self.before + row, native_type=self.description.native
        )

    def check_size(self, row: int) -> None:
        """Raise for a binary that the buffer is too short for."""
        if self.c_type == C_BINARY and self.lengths[row] > self.width:
            self._refuse_size(row)

    def _refuse_size(self, row: int) -> NoReturn:
        most = self.driver.max_text_size or self.width
        self.refuse(row, f"the value is longer than max_text_size={most}", _LIMIT)

    def _built(self, buffers: list[Any], valid: Any, kind: pa.DataType | None = None) -> pa.Array:
        mask = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
        return pa.Array.from_buffers(kind or self.field.type, len(valid), [mask, *map(pa.py_buffer, buffers)])

    def _plain(self, values: Any, _lengths: Any, valid: Any) -> pa.Array:
        return self._built([values.copy()], valid)

    def _singles(self, values: Any, lengths: Any, valid: Any) -> pa.Array:
        return self._plain(values.astype("f4"), lengths, valid)

    def _booleans(self, values: Any, _lengths: Any, valid: Any) -> pa.Array:
        return self._built([np.packbits(values != 0, bitorder="little")], valid)

    def _days(self, values: Any, valid: Any) -> Any:
        """Give the days since 1970 of dates in parts."""
        if values.dtype == _DATE and not valid.all():
            values = np.where(valid, values, np.array((1970, 1, 1), _DATE))
        year, month, day = (values[part].astype("i4") for part in ("year", "month", "day"))
        months, first_days = year * 12 + month - 1, _first_days()
        days = first_days.take(months, mode="clip") + day - 1
        wrong = (month < 1) | (year < 1) | (month > _MONTHS) | (day < 1)
        # A month has as many days at least.
        late = np.flatnonzero(day > _SHORTEST)
        wrong[late] |= days[late] >= first_days.take(months[late] + 1, mode="clip")
        if (wrong := wrong & valid).any():
            row = int(np.argmax(wrong))
            text = f"{year[row]:04}-{month[row]:02}-{day[row]:02}"
            self.refuse(row, f"{text} is not a date that the driver can mean", _CAST)
        return days

    def _dates(self, values: Any, _lengths: Any, valid: Any) -> pa.Array:
        if self.driver.has_wrong_dates:
            self._check_days_of_today(values, valid)
        return self._built([self._days(values, valid)], valid)

    def _check_days_of_today(self, values: Any, valid: Any) -> None:
        """Look at the texts of dates with today's month and day, which the driver takes for what it cannot read."""
        is_todays = np.zeros(len(values), "?")
        for day in (self._begun, time.localtime()):
            is_todays |= (values["month"] == day.tm_mon) & (values["day"] == day.tm_mday)
        for row in np.flatnonzero(is_todays & valid):
            text = (self.statement.long_value(int(row), self.number, C_CHAR, None) or b"").decode()
            try:
                dt.date.fromisoformat(text)
            except ValueError:
                self.refuse(int(row), f"{text} cannot be a {self.field.type}", _CAST)

    def _timestamps(self, values: Any, _lengths: Any, valid: Any) -> pa.Array:
        days = self._days(values, valid).astype("i8")
        seconds = ((days * 24 + values["hour"]) * 60 + values["minute"]) * 60 + values["second"]
        fraction, is_fine = values["fraction"].astype("i8"), self.field.type.unit == "ns"
        if not is_fine:
            if (cut := (fraction % 1000 != 0) & valid).any():
                self.refuse(int(np.argmax(cut)), "a timestamp finer than the microseconds that the driver told", _CAST)
            return self._built([seconds * 1_000_000 + fraction // 1000], valid)
        # Of 64 bits of nanoseconds, the first and the last second are left out.
        if (beyond := (np.abs(seconds) > _NANOSECONDS) & valid).any():
            row = int(np.argmax(beyond))
            self.refuse(row, f"the year {values[row]['year']} does not fit 64 bits of nanoseconds", _CAST)
        return self._built([seconds * 1_000_000_000 + fraction], valid)

    def _parsed(self, values: Any, lengths: Any, valid: Any) -> pa.Array:
        """Give what the texts of a column are."""
        texts, kind = self._texts(values, lengths, valid, pa.string()), self.field.type
        if self.driver.rounds_floats and pa.types.is_floating(kind) and valid.any():
            self.refuse(int(np.argmax(valid)), "the driver rounds floats to 15 digits", _ROUNDED)
        is_time = pa.types.is_time(kind)
        through = pa.timestamp("us") if is_time else pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind
        if is_time:
            texts = pc.binary_join_element_wise("1970-01-01 ", texts, "")
        try:
            array = texts.cast(through)
        except pa.ArrowInvalid:
            row = next(row for row, text in enumerate(texts) if not _is(text, through))
            self.refuse(row, f"{str(texts[row])[11 * is_time :]} cannot be a {kind}", _CAST)
        if is_time:
            return array.cast(pa.int64()).cast(kind)
        if self.driver.infinity is not None and pa.types.is_timestamp(kind):
            row = pc.index(array.cast(pa.int64()), self.driver.infinity).as_py()
            if row >= 0:
                message = "the driver writes infinity as the last second of the year 9999: the two cannot be told apart"
                self.refuse(row, message, _CAST)
        return array.cast(pa.int64()).cast(kind) if kind != through else array

    def _uuids(self, values: Any, _lengths: Any, valid: Any) -> pa.Array:
        # A GUID's first three parts are integers in the machine's order.
        parts = values.copy().view([("a", "<u4"), ("b", "<u2"), ("c", "<u2"), ("d", "u8")])
        swapped = np.empty(len(parts), [("a", ">u4"), ("b", ">u2"), ("c", ">u2"), ("d", "u8")])
        for name in "abcd":
            swapped[name] = parts[name]
        stored = self._built([swapped], valid, pa.binary(16))
        kind = self.field.type
        return stored if kind == stored.type else pa.ExtensionArray.from_storage(kind, stored)

    def _binaries(self, values: Any, lengths: Any, valid: Any) -> pa.Array:
        data, sizes = self._joined(values, lengths, valid, 0)
        return self._built([self._narrow(_offsets(sizes)), data], valid)

    def _bytes_as_texts(self, values: Any, lengths: Any, valid: Any) -> pa.Array:
        data, sizes = self._joined(values, lengths, valid, 0)
        stored = self._built([self._narrow(_offsets(sizes)), data], valid, pa.binary())
        try:
            return stored.cast(pa.string())
        except pa.ArrowInvalid:
            row = next(row for row, value in enumerate(stored) if not _is(value, pa.string()))
            self.refuse(row, "a text that is not UTF-8", _CAST)

    def _texts(self, values: Any, lengths: Any, valid: Any, kind: pa.DataType | None = None) -> pa.Array:
        units, sizes = self._joined(values, lengths, valid, 1)
        offsets = _offsets(sizes)
        if units.size and units.max() >= _ONE:
            units, offsets = self._utf8(units, offsets)
        data = units.astype("u1", copy=False)
        return self._built([self._narrow(offsets), data], valid, kind)

    def _narrow(self, offsets: Any) -> Any:
        if offsets[-1] > _MOST_BYTES:
            row = int(np.argmax(offsets > _MOST_BYTES)) - 1
            self.refuse(row, "the values of one batch have more than two gigabytes", "give a smaller batch_size=")
        return offsets.astype("i4")

    def _utf8(self, units: Any, offsets: Any) -> tuple[Any, Any]:
        """Give UTF-16 as UTF-8, and where each text begins there."""
        if units.dtype == np.uint8:
            row = int(np.searchsorted(offsets, np.argmax(units >= _ONE), side="right")) - 1
            self.refuse(row, "a number with a letter that is not ASCII", _CAST)
        is_low = (units & 0xFC00) == _SECOND
        is_half = (units & 0xF800) == _HALF
        try:
            data = units.tobytes().decode("utf-16-le").encode()
            position = -1
        except UnicodeDecodeError as error:
            position = error.start // 2
        starts = offsets[:-1][offsets[:-1] < offsets[1:]]
        if position < 0 and is_low[starts].any():
            position = int(starts[np.argmax(is_low[starts])])
        if position >= 0:
            row = int(np.searchsorted(offsets, position, side="right")) - 1
            self.refuse(row, "the driver's UTF-16 has half a character, which UTF-8 has not", _CAST)
        sizes = 1 + (units >= _ONE).astype("i8") + ((units >= _TWO) & ~is_half)
        return np.frombuffer(data, "u1"), np.concatenate(([0], np.cumsum(sizes)))[offsets]

    def _joined(self, values: Any, lengths: Any, valid: Any, end: int) -> tuple[Any, Any]:
        """Give all values one after another, and the size of each in units; ``end`` is that of a value's end."""
        unit = values.dtype.itemsize
        sizes = np.where(valid, lengths // unit, 0)
        apart: dict[int, Any] = {}
        for row in np.flatnonzero((sizes > self.width - end) | (lengths == NO_TOTAL)):
            apart[int(row)] = np.frombuffer(self._long(int(row)), values.dtype)
            sizes[row] = len(apart[int(row)])
        longest, total = int(sizes.max(initial=0)), int(sizes.sum())
        if apart or longest * len(values) > _SPARSE * total + _SMALL:
            pieces = [apart.get(row, values[row, :size]) for row, size in enumerate(sizes)]
            return np.concatenate(pieces) if pieces else values[:0, 0], sizes
        block = values[:, :longest]
        # The buffer is filled again by the next fetch.
        if total == block.size:
            return block.flatten(), sizes
        # Of few bytes, they are compared in half the time.
        kind = np.min_scalar_type(longest)
        return block[np.arange(longest, dtype=kind) < sizes.astype(kind)[:, None]], sizes

    def _long(self, row: int) -> bytes:
        """Give a value that does not fit the buffer."""
        unit, most = (2 if self.c_type == C_WCHAR else 1), self.driver.max_text_size
        value = None
        if self.driver.has_long_values:
            value = self.statement.long_value(row, self.number, self.c_type, None if most is None else most * unit)
        if value is None:
            self._refuse_size(row)
        return value


def _is(text: pa.Scalar, kind: pa.DataType) -> bool:
    try:
        text.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


@functools.cache
def _first_days() -> Any:
    """Give the day on which each month from the year 0 on begins: numpy's own dates take three times as long."""
    months = np.arange(12 * (LAST_YEAR + 1) + 1) - 12 * 1970
    return months.astype("M8[M]").astype("M8[D]").astype("i4")


def _offsets(sizes: Any) -> Any:
    return np.concatenate(([0], np.cumsum(sizes)))


class Rows:
    """The rows of a statement that has run, as an Arrow stream."""

    def __init__(self, statement: Statement, driver: Driver, rows: int) -> None:
        """Bind buffers for as many rows as fit the budget, and at most ``rows``."""
        self.columns = [Column(number, each, driver) for number, each in enumerate(statement.columns(), 1)]
        self.native = [column.description.native for column in self.columns]
        self.schema = pa.schema([column.field for column in self.columns])
        self._statement = statement
        size = sum(column.row_size for column in self.columns)
        self._size = max(1, min(rows, _BLOCK, BUDGET // max(1, size)))

    def _bind(self) -> tuple[Any, Any]:
        statement, status, fetched = self._statement, np.zeros(self._size, "u2"), np.zeros(1, "u8")
        statement.buffers += [status, fetched]
        statement.set(manager.ATTR_ROW_ARRAY_SIZE, self._size)
        statement.set(manager.ATTR_ROW_STATUS, status.ctypes.data)
        statement.set(manager.ATTR_ROWS_FETCHED, fetched.ctypes.data)
        for column in self.columns:
            column.bind(statement, self._size)
        return status, fetched

    def _refuse(self, row: int, before: int) -> NoReturn:
        """Raise for a row that the driver could not fetch: FreeTDS has no word about a binary that does not fit."""
        for column in self.columns:
            column.before = before
            column.check_size(row)
        self._statement.check(-1)
        raise AssertionError

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Fetch all rows."""
        status, fetched = self._bind()
        before = 0
        while self._statement.fetch():
            rows = int(fetched[0])
            if (failed := status[:rows] == manager.ROW_ERROR).any():
                self._refuse(int(np.argmax(failed)), before)
            yield pa.RecordBatch.from_arrays([each.array(rows, before) for each in self.columns], schema=self.schema)
            before += rows
        if self._statement.has_another:
            message = "the statement has more than one result, of which this is the first"
            raise errors.ProgrammingError(message, hint=_EACH)
