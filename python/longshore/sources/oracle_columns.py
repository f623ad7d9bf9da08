"""The columns of Oracle's results, made exact: what the driver's Arrow types would lose, the query gives as text.

Read from oracledb's source: a NUMBER without precision becomes a double, one of a negative scale is off by powers of
ten, a TIMESTAMP goes through Python's microseconds, and one with a time zone becomes local time without it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import oracledb
import pyarrow as pa
import pyarrow.compute as pc

from longshore.errors import DataError, NotSupportedError
from longshore.sources import oracle_lobs
from longshore.sources.arrow import UnrepresentableError, stream

if TYPE_CHECKING:
    from longshore.sources.oracle import Session

Convert = Callable[[Any], Any]

#: Rows of a batch, and those of one with values that may be long.
_ROWS, _ROWS_OF_LONG = 65_536, 1024
#: Bytes of a text that many of a batch may have within offsets of 32 bits.
_SHORT = 4000
#: Digits of Arrow's decimals of 128 bits, and what stands for the scale of a NUMBER that has none.
_DIGITS, _NO_SCALE = 38, -127
#: Digits of the column that others have for integers of 64 bits, which do not hold all of its numbers.
_INTEGER_DIGITS = 19
_MICROSECONDS = 6
_NAMES = "give every column of the query a name of its own: AS name"
_NUMBER = "TO_CHAR({}, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,''')"
_TIME = "TO_CHAR({}, 'SYYYY-MM-DD HH24:MI:SS.FF9')"
_UTC = "SYS_EXTRACT_UTC({})"
_TIME_LENGTH, _SECONDS_LENGTH = 29, 19
_INTERVAL = re.compile(r"([+-])(\d+) (\d+):(\d+):(\d+)(?:\.(\d+))?|([+-])(\d+)-(\d+)")


@dataclass(frozen=True)
class Column:
    """One column: what the query gives in its place, its type, and how the driver's values become that."""

    name: str
    native: str
    kind: pa.DataType
    #: SQL around the column's name; "{}" where the column comes as it is.
    expression: str = "{}"
    convert: Convert | None = None
    is_long: bool = False
    is_lob: bool = False
    #: More of the field's metadata.
    metadata: tuple[tuple[str, str], ...] = ()

    @property
    def field(self) -> pa.Field:
        """The field of the result."""
        return pa.field(self.name, self.kind, metadata={"oracle:type": self.native, **dict(self.metadata)})

    def conform(self, values: pa.ChunkedArray, before: int) -> pa.ChunkedArray:
        """Give the driver's values as the field's; raises ``DataError`` for one that it cannot hold."""
        try:
            values = values if self.convert is None or pa.types.is_null(values.type) else self.convert(values)
            return values if values.type == self.kind else values.cast(self.kind)
        except UnrepresentableError as unfit:
            row = before + unfit.row
            raise DataError(str(unfit), column=self.name, row=row, native_type=self.native, hint=_AS_TEXT) from None
        except pa.ArrowInvalid as error:
            raise DataError(str(error), column=self.name, native_type=self.native, hint=_AS_TEXT) from None


_AS_TEXT = "read it as text: TO_CHAR in the query"


@dataclass(frozen=True)
class Columns:
    """The columns of a query."""

    session: "Session"
    columns: Sequence[Column]

    @classmethod
    def of(cls, session: "Session", statement: str) -> "Columns":
        """Ask the database for them; the query is not run."""
        cursor = session.open_cursor()
        cursor.parse(statement)
        return cls(session, [column(info) for info in cursor.description or ()])

    @property
    def schema(self) -> pa.Schema:
        """The schema of the result."""
        return pa.schema([each.field for each in self.columns])

    def statement(self, query: str) -> str:
        """Give the query, within another where a column does not come as it is; locators of LOBs are at its end."""
        wrapped = next((each for each in self.columns if each.expression != "{}"), None)
        if wrapped is None:
            return query
        names = [each.name for each in self.columns]
        if len({*names}) < len(names) or any('"' in name for name in names):
            message = (
                f"a column of {wrapped.native} is read through a query around this one, whose columns' names are not"
            )
            raise NotSupportedError(f"{message} all different", column=wrapped.name, hint=_NAMES)
        quoted = [f'"{name}"' for name in names]
        items = [f"{each.expression.format(name)} AS {name}" for each, name in zip(self.columns, quoted, strict=True)]
        lobs = [at for at, each in enumerate(self.columns) if each.is_lob]
        items += [f'{oracle_lobs.LONG.format(quoted[at])} AS "{oracle_lobs.LOCATOR}{at}"' for at in lobs]
        return f"SELECT {', '.join(items)} FROM (\n{query}\n)"  # noqa: S608  names in quotes, and the caller's query

    def read(self, query: str, params: Any, rows: int) -> pa.RecordBatchReader:
        """Run the query; its first rows are there."""
        statement, session = self.statement(query), self.session
        if any(each.is_lob for each in self.columns):
            tables = oracle_lobs.read(session.open_cursor_for(params), statement, params, self.columns, rows)
        else:
            most = _ROWS_OF_LONG if any(each.is_long for each in self.columns) else _ROWS
            batches = session.connection.fetch_df_batches(
                statement, session.typed_params(params) or None, size=min(rows, most), fetch_decimals=True
            )
            tables = ([*pa.table(batch).columns] for batch in batches)
        first = next(tables, None)
        return stream(session, self.schema, self._batches(first, tables))

    def _batches(self, batch: Any, rest: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        before = 0
        while batch is not None:
            arrays = [each.conform(batch[at], before) for at, each in enumerate(self.columns)]
            before += len(batch[0])
            yield from pa.table(arrays, schema=self.schema).to_batches()
            batch = next(rest, None)


def column(info: Any) -> Column:
    """Give what becomes of one column, by the driver's description."""
    make = _TYPES.get(info.type_code)
    if make is None:
        native = str(getattr(info.type_code, "name", info.type_code)).removeprefix("DB_TYPE_").lower()
        message = f"a column of {native} cannot be read"
        hint = "select its attributes or its text, or leave it out"
        raise NotSupportedError(message, column=info.name, native_type=native, hint=hint)
    return make(info)


def _number(info: Any) -> Column:
    precision, scale = info.precision or 0, _NO_SCALE if info.scale is None else info.scale
    if scale == _NO_SCALE or not precision:
        return _number_as_text(info, f"float({precision})" if precision else "number")
    native = f"number({precision},{scale})"
    if scale == 0 and precision <= _INTEGER_DIGITS:
        return Column(info.name, native, pa.int64(), convert=_integers)
    if 0 <= scale <= precision <= _DIGITS:
        return Column(info.name, native, pa.decimal128(precision, scale))
    digits, places = (precision - scale, 0) if scale < 0 else (max(precision, scale), scale)
    if digits > _DIGITS:
        return _number_as_text(info, native)
    return Column(info.name, native, pa.decimal128(digits, places), _NUMBER)


def _number_as_text(info: Any, native: str) -> Column:
    """Give the column of numbers that no Arrow type holds all of, whether they are streamed or read whole."""
    return Column(info.name, native, pa.string(), _NUMBER, _with_zeros)


def _with_zeros(values: Any) -> Any:
    """Give Oracle's texts of numbers with the digit before the point that it leaves out."""
    return pc.replace_substring_regex(values, r"^(-?)\.", r"\10.")


def _integers(values: Any) -> Any:
    digits = pa.decimal128(_INTEGER_DIGITS, 0)
    integers = values.cast(pa.int64(), safe=False)
    is_beyond = pc.not_equal(integers.cast(digits), values.cast(digits))
    _refuse(is_beyond, values, "an integer of 64 bits does not hold it")
    return integers


def _text(native: str) -> Callable[[Any], Column]:
    def make(info: Any) -> Column:
        kind = pa.string() if (info.internal_size or 0) <= _SHORT else pa.large_string()
        return Column(info.name, f"{native}({info.display_size})", kind)

    return make


def _raw(info: Any) -> Column:
    size = info.internal_size or 0
    return Column(info.name, f"raw({size})", pa.binary() if size <= _SHORT else pa.large_binary())


def _as(native: str, kind: pa.DataType, expression: str = "{}", **more: Any) -> Callable[[Any], Column]:
    """Give a column whose type says all of it."""
    return lambda info: Column(info.name, native, kind, expression, **more)


def _timestamp(suffix: str) -> Callable[[Any], Column]:
    def make(info: Any) -> Column:
        places = _MICROSECONDS if info.scale is None else info.scale
        native = f"timestamp({places}){suffix}"
        at, zone = (_UTC, "UTC") if suffix else ("{}", None)
        if places > _MICROSECONDS:
            expression = _TIME.format(at)
            return Column(info.name, native, pa.timestamp("ns", zone), expression, _nanoseconds)
        expression = f"CAST({at} AS TIMESTAMP({_MICROSECONDS}))" if suffix else "{}"
        return Column(info.name, native, pa.timestamp("us", zone), expression, _microseconds(zone))

    return make


def _microseconds(zone: str | None) -> Convert:
    def convert(values: Any) -> Any:
        naive = values.cast(pa.timestamp("us"))
        return naive if zone is None else pc.assume_timezone(naive, zone)

    return convert


def _nanoseconds(values: Any) -> Any:
    """Give the nanoseconds of texts; pyarrow's own cast wraps those beyond 64 bits."""
    texts = pc.utf8_ltrim_whitespace(values)
    is_far = pc.or_(pc.not_equal(pc.utf8_length(texts), _TIME_LENGTH), pc.starts_with(texts, "-"))
    _refuse(is_far, texts, "its year is not one of 1 to 9999")
    seconds = pc.utf8_slice_codeunits(texts, 0, _SECONDS_LENGTH).cast(pa.timestamp("s")).cast(pa.int64())
    fractions = pc.utf8_slice_codeunits(texts, _SECONDS_LENGTH + 1, _TIME_LENGTH).cast(pa.int64())
    is_beyond = pc.greater(pc.abs(seconds), _MOST_SECONDS)
    _refuse(is_beyond, texts, "nanoseconds of 64 bits end at the year 2262")
    return pc.add_checked(pc.multiply_checked(seconds, 1_000_000_000), fractions).cast(pa.timestamp("ns"))


#: A second less than nanoseconds of 64 bits can count.
_MOST_SECONDS = 9_223_372_035


def _refuse(is_odd: Any, texts: Any, why: str) -> None:
    row = pc.index(is_odd, value=True).as_py()
    if row >= 0:
        raise UnrepresentableError(row, f"{texts[row]}: {why}")


def _intervals(values: Any) -> Any:
    """Give the months, days and nanoseconds of texts, every part with the sign of the whole."""

    def interval(row: int, text: str | None) -> tuple[int, int, int] | None:
        found = None if text is None else _INTERVAL.fullmatch(text.strip())
        if found is None:
            if text is None:
                return None
            raise UnrepresentableError(row, f"{text} is not an interval")
        sign, days, hours, minutes, seconds, fraction, sign_of_months, years, months = found.groups()
        if years is not None:
            return (-1 if sign_of_months == "-" else 1) * (int(years) * 12 + int(months)), 0, 0
        count = ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 10**9 + int((fraction or "").ljust(9, "0"))
        factor = -1 if sign == "-" else 1
        return 0, factor * int(days), factor * count

    rows = [interval(row, text) for row, text in enumerate(values.to_pylist())]
    return pa.chunked_array([pa.array(rows, pa.month_day_nano_interval())])


_INTERVAL_TYPE = pa.month_day_nano_interval()
_EXACT: dict[str, Any] = {"expression": "TO_CHAR({})", "convert": _intervals, "metadata": (("longshore:exact", ""),)}
_JSON = (("ARROW:extension:name", "arrow.json"),)
_NUMBERS = {
    oracledb.VECTOR_FORMAT_FLOAT32: pa.float32(),
    oracledb.VECTOR_FORMAT_FLOAT64: pa.float64(),
    oracledb.VECTOR_FORMAT_INT8: pa.int8(),
    oracledb.VECTOR_FORMAT_BINARY: pa.uint8(),
}


def _vector(info: Any) -> Column:
    number = _NUMBERS.get(info.vector_format)
    if number is None or info.vector_is_sparse:
        return Column(info.name, "vector", pa.large_string(), "FROM_VECTOR({} RETURNING CLOB)", is_long=True)
    return Column(info.name, "vector", pa.list_(number), is_long=True)


_ROWID = "CAST({} AS VARCHAR2(4000))"

#: The column for each of Oracle's types.
_TYPES: dict[Any, Callable[[Any], Column]] = {
    oracledb.DB_TYPE_NUMBER: _number,
    oracledb.DB_TYPE_BINARY_FLOAT: _as("binary_float", pa.float32()),
    oracledb.DB_TYPE_BINARY_DOUBLE: _as("binary_double", pa.float64()),
    oracledb.DB_TYPE_BOOLEAN: _as("boolean", pa.bool_()),
    oracledb.DB_TYPE_VARCHAR: _text("varchar2"),
    oracledb.DB_TYPE_CHAR: _text("char"),
    oracledb.DB_TYPE_NVARCHAR: _text("nvarchar2"),
    oracledb.DB_TYPE_NCHAR: _text("nchar"),
    oracledb.DB_TYPE_LONG: _as("long", pa.large_string(), is_long=True),
    oracledb.DB_TYPE_CLOB: _as("clob", pa.large_string(), oracle_lobs.SHORT, is_lob=True),
    oracledb.DB_TYPE_NCLOB: _as("nclob", pa.large_string(), oracle_lobs.SHORT, is_lob=True),
    oracledb.DB_TYPE_RAW: _raw,
    oracledb.DB_TYPE_LONG_RAW: _as("long raw", pa.large_binary(), is_long=True),
    oracledb.DB_TYPE_BLOB: _as("blob", pa.large_binary(), oracle_lobs.SHORT, is_lob=True),
    oracledb.DB_TYPE_DATE: _as("date", pa.timestamp("us"), convert=_microseconds(None)),
    oracledb.DB_TYPE_TIMESTAMP: _timestamp(""),
    oracledb.DB_TYPE_TIMESTAMP_TZ: _timestamp(" with time zone"),
    oracledb.DB_TYPE_TIMESTAMP_LTZ: _timestamp(" with local time zone"),
    oracledb.DB_TYPE_INTERVAL_DS: _as("interval day to second", _INTERVAL_TYPE, **_EXACT),
    oracledb.DB_TYPE_INTERVAL_YM: _as("interval year to month", _INTERVAL_TYPE, **_EXACT),
    oracledb.DB_TYPE_ROWID: _as("rowid", pa.string(), _ROWID),
    oracledb.DB_TYPE_UROWID: _as("urowid", pa.string(), _ROWID),
    oracledb.DB_TYPE_JSON: _as(
        "json", pa.large_string(), "JSON_SERIALIZE({} RETURNING CLOB)", is_long=True, metadata=_JSON
    ),
    oracledb.DB_TYPE_XMLTYPE: _as("xmltype", pa.large_string(), "XMLSERIALIZE(CONTENT {} AS CLOB)", is_long=True),
    oracledb.DB_TYPE_VECTOR: _vector,
}
