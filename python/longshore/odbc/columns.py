"""Rows of a statement as Arrow: each column decides once how it is bound, and makes an array of each fetch."""

import datetime as dt
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from longshore import _core, errors
from longshore.odbc import manager
from longshore.odbc.manager import C_BINARY, C_CHAR, C_WCHAR, NULL_DATA, Description, Statement
from longshore.sources.arrow import first_failure

if TYPE_CHECKING:
    from longshore.odbc.drivers import Driver

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

DATE_PARTS = np.dtype([("year", "i2"), ("month", "u2"), ("day", "u2")])
TIMESTAMP_PARTS = np.dtype([*DATE_PARTS.descr, ("hour", "u2"), ("minute", "u2"), ("second", "u2"), ("fraction", "u4")])
#: Signed and unsigned integers: the C types and the dtypes.
INTEGERS = {
    TINYINT: ((-26, "i1"), (-28, "u1")),
    SMALLINT: ((-15, "i2"), (-17, "u2")),
    INTEGER: ((-16, "i4"), (-18, "u4")),
    BIGINT: ((-25, "i8"), (-27, "u8")),
}
_FLOATS = {REAL, FLOAT, DOUBLE}
#: The last year that ODBC has 16 bits for.
LAST_YEAR = 32_767
#: The bytes of the text of a number, or of a date and a time.
_NUMBER = 40
_TEMPORAL = {DATE, TIME, TIMESTAMP}
_LONG = {LONGVARCHAR, WLONGVARCHAR, LONGVARBINARY}
_MICROSECONDS = 6
#: The metadata that has the core read a text as a decimal, in its own type policy.
_DECIMAL = {"ADBC:postgresql:typname": "numeric"}
_LIMIT = "give a larger max_text_size= in the address, or cast the column in the query"
_ROUNDED = (
    "read the file by sqlite:///, or the column as CASE WHEN r IS NOT NULL THEN printf('%!.17g', r) END; "
    "rounded_floats=true in the address has floats rounded"
)
_EACH = "run each statement by itself"
_CAST = "cast the column to text in the query"

#: Makes an array of the values of the rows that were fetched, and their lengths.
Make = Callable[[Any, Any], pa.Array]
#: The columns that the core makes of a block: texts in UTF-16 and UTF-8, bytes, dates, timestamps of a unit.
Kind = Literal["wide", "text", "bytes", "date", "us", "ns"]


class Column:
    """A column: its buffer, and its Arrow array of each fetch."""

    def __init__(self, number: int, description: Description, driver: "Driver") -> None:
        """Decide."""
        self.number, self.description, self.driver = number, description, driver
        self.width = 0
        self.c_type, self.dtype, self.field, self._make = self._plan()

    def _plan(self) -> tuple[int, np.dtype[Any], pa.Field, Make]:
        kind = WVARCHAR if self.description.native in self.driver.texts else self.description.sql_type
        if kind in INTEGERS or kind in _FLOATS:
            return self._number_plan(kind)
        if kind in _TEMPORAL:
            if kind == TIME or (kind == TIMESTAMP and self.driver.has_wrong_dates):
                return C_CHAR, self._units("u1", _NUMBER), self._field(self._temporal()), self._parse
            make, dtype = (self._dates, DATE_PARTS) if kind == DATE else (self._timestamps, TIMESTAMP_PARTS)
            return kind, dtype, self._field(self._temporal()), make
        if kind in {NUMERIC, DECIMAL}:
            digits = self._units("u1", max(self.description.size, _NUMBER) + 4)
            return C_CHAR, digits, self._decimal_field(), self._texts
        return self._other_plan(kind)

    def _number_plan(self, kind: int) -> tuple[int, np.dtype[Any], pa.Field, Make]:
        if self.driver.has_loose_types:
            exact = pa.int64() if kind in INTEGERS else pa.float64()
            return C_CHAR, self._units("u1", _NUMBER), self._field(exact), self._parse
        if kind == REAL:
            # MariaDB's driver takes eight bytes in a block for each float of four, and writes beyond the buffer.
            return C_DOUBLE, np.dtype("f8"), self._field(pa.float32()), self._singles
        c_type, name = INTEGERS[kind][self.description.is_unsigned] if kind in INTEGERS else (C_DOUBLE, "f8")
        dtype = np.dtype(name)
        return c_type, dtype, self._field(pa.from_numpy_dtype(dtype)), self._plain

    def _other_plan(self, kind: int) -> tuple[int, np.dtype[Any], pa.Field, Make]:
        if kind in {BINARY, VARBINARY, LONGVARBINARY}:
            return C_BINARY, self._units("u1", self._size()), self._field(pa.binary()), self._texts
        if kind == BIT:
            return C_BIT, np.dtype("u1"), self._field(pa.bool_()), self._booleans
        if kind == GUID:
            return C_GUID, np.dtype("V16"), self._field(getattr(pa, "uuid", lambda: pa.binary(16))()), self._uuids
        if self.driver.has_utf8:
            return C_BINARY, self._units("u1", self._size()), self._field(pa.string()), self._texts
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
        return self._make(self.values[:rows], self.lengths[:rows])

    def refuse(self, row: int, message: str, hint: str) -> NoReturn:
        """Raise for a value."""
        raise errors.DataError(
            message, hint=hint, column=self.description.name, row=self.before + row, native_type=self.description.native
        )

    def refuse_size(self, row: int) -> NoReturn:
        """Raise for a value that the buffer is too short for."""
        most = self.driver.max_text_size or self.width
        self.refuse(row, f"the value is longer than max_text_size={most}", _LIMIT)

    def _build(self, values: Any, lengths: Any, kind: pa.DataType | None = None) -> pa.Array:
        mask = None
        if lengths.min(initial=0) < 0:
            mask = pa.py_buffer(np.packbits(lengths != NULL_DATA, bitorder="little"))
        return pa.Array.from_buffers(kind or self.field.type, len(lengths), [mask, pa.py_buffer(values)])

    def _plain(self, values: Any, lengths: Any) -> pa.Array:
        # The buffer is filled again by the next fetch.
        return self._build(values.copy(), lengths)

    def _singles(self, values: Any, lengths: Any) -> pa.Array:
        return self._build(values.astype("f4"), lengths)

    def _booleans(self, values: Any, lengths: Any) -> pa.Array:
        return self._build(np.packbits(values != 0, bitorder="little"), lengths)

    def _block(self, kind: Kind, values: Any, lengths: Any, most: int = 0) -> pa.Array:
        """Have the core make the array."""
        place = (self.description.name, self.description.native, self.before)
        return pa.array(_core.block(kind, values, lengths, most, self._long, place))

    def _texts(self, values: Any, lengths: Any) -> pa.Array:
        kind: Kind = "wide" if self.c_type == C_WCHAR else "bytes" if self.field.type == pa.binary() else "text"
        # The driver ends a text with a zero.
        most = (self.width - (self.c_type != C_BINARY)) * values.dtype.itemsize
        return self._block(kind, values, lengths, most)

    def _dates(self, values: Any, lengths: Any) -> pa.Array:
        if self.driver.has_wrong_dates:
            self._check_days_of_today(values, lengths)
        return self._block("date", values.view("u2"), lengths)

    def _timestamps(self, values: Any, lengths: Any) -> pa.Array:
        return self._block(self.field.type.unit, values.view("u2"), lengths).view(self.field.type)

    def _check_days_of_today(self, values: Any, lengths: Any) -> None:
        """Look at the texts of dates with today's month and day, which the driver takes for what it cannot read."""
        # Both are compared as one number.
        days = np.ndarray(len(values), "u4", values, 2, values.strides)
        for mon, mday in {(each.tm_mon, each.tm_mday) for each in (self._begun, time.localtime())}:
            for row in np.flatnonzero(days == np.array([mon, mday], "u2").view("u4")).tolist():
                if lengths[row] != NULL_DATA:
                    self._check_day(row)

    def _check_day(self, row: int) -> None:
        text = (self.statement.long_value(row, self.number, C_CHAR, None) or b"").decode()
        try:
            dt.date.fromisoformat(text)
        except ValueError:
            self.refuse(row, f"{text} cannot be a {self.field.type}", _CAST)

    def _parse(self, values: Any, lengths: Any) -> pa.Array:
        """Give what the texts of a column are."""
        texts, kind = self._texts(values, lengths), self.field.type
        if self.driver.rounds_floats and pa.types.is_floating(kind) and texts.null_count < len(texts):
            self.refuse(int(np.argmax(lengths != NULL_DATA)), "the driver rounds floats to 15 digits", _ROUNDED)
        is_time = pa.types.is_time(kind)
        through = pa.timestamp("us") if is_time else pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind
        if is_time:
            texts = pc.binary_join_element_wise("1970-01-01 ", texts, "")
        try:
            array = texts.cast(through)
        except pa.ArrowInvalid:
            row = first_failure(texts, lambda part: part.cast(through))
            self.refuse(row, f"{str(texts[row])[11 * is_time :]} cannot be a {kind}", _CAST)
        if is_time:
            return array.cast(pa.int64()).cast(kind)
        if self.driver.infinity is not None and pa.types.is_timestamp(kind):
            row = pc.index(array.cast(pa.int64()), self.driver.infinity).as_py()
            if row >= 0:
                message = "the driver writes infinity as the last second of the year 9999: the two cannot be told apart"
                self.refuse(row, message, _CAST)
        return array.cast(pa.int64()).cast(kind) if kind != through else array

    def _uuids(self, values: Any, lengths: Any) -> pa.Array:
        # A GUID's first three parts are integers in the machine's order.
        parts = values.copy().view([("a", "<u4"), ("b", "<u2"), ("c", "<u2"), ("d", "u8")])
        swapped = np.empty(len(parts), [("a", ">u4"), ("b", ">u2"), ("c", ">u2"), ("d", "u8")])
        for name in "abcd":
            swapped[name] = parts[name]
        stored = self._build(swapped, lengths, pa.binary(16))
        kind = self.field.type
        return stored if kind == stored.type else pa.ExtensionArray.from_storage(kind, stored)

    def _long(self, row: int) -> bytes:
        """Give a value that does not fit the buffer."""
        unit, most = (2 if self.c_type == C_WCHAR else 1), self.driver.max_text_size
        value = None
        if self.driver.has_long_values:
            value = self.statement.long_value(row, self.number, self.c_type, None if most is None else most * unit)
        if value is None:
            self.refuse_size(row)
        return value


class Rows:
    """The rows of a statement that has run, as an Arrow stream."""

    def __init__(self, statement: Statement, driver: "Driver", rows: int) -> None:
        """Bind buffers for as many rows as fit the budget, and at most ``rows``."""
        self.columns = [Column(number, each, driver) for number, each in enumerate(statement.columns(), 1)]
        self.native = [column.description.native for column in self.columns]
        self.schema = pa.schema([column.field for column in self.columns])
        self._statement = statement
        # Of a row, with the length of each value.
        size = sum(column.dtype.itemsize + 8 for column in self.columns)
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
            if column.c_type == C_BINARY and column.lengths[row] > column.width:
                column.refuse_size(row)
        self._statement.check(-1)
        raise AssertionError

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Fetch all rows."""
        try:
            yield from self._batches()
        finally:
            # What the driver has open on the server for them goes at once.
            self._statement.free()

    def _batches(self) -> Iterator[pa.RecordBatch]:
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
