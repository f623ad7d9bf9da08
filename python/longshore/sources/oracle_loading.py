"""Rows into an Oracle table by array DML: in one transaction, and each value as it was or a word about it.

CREATE, DROP and ALTER commit whatever is open: a table that is replaced stays until the rows of the new one are there,
and a write that makes a table takes no transaction of the caller's.
"""

import contextlib
import math
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import oracledb
import pyarrow as pa
import pyarrow.compute as pc

from longshore.errors import DataError, Error, NotSupportedError, ProgrammingError
from longshore.sources import arrow
from longshore.sources.arrow import UnrepresentableError, first_failure, plain, plain_type, refuse
from longshore.sources.dialects import literal
from longshore.sources.loading import CONVERT, EXISTS, MISSING, Load, check_unique, match_columns

if TYPE_CHECKING:
    from longshore.sources.oracle import Session

_COMMIT = "commit first, or write into a table that is there"
_EMPTY = "an empty text or bytes would become NULL"
_NOT_A_NUMBER = "it is not a number: a NUMBER has no NaN and no infinity"
_TEXTS = {oracledb.DB_TYPE_VARCHAR, oracledb.DB_TYPE_CHAR, oracledb.DB_TYPE_NVARCHAR, oracledb.DB_TYPE_NCHAR}
_TEXTS |= {oracledb.DB_TYPE_LONG, oracledb.DB_TYPE_CLOB, oracledb.DB_TYPE_NCLOB, oracledb.DB_TYPE_JSON}
_BYTES = {oracledb.DB_TYPE_RAW, oracledb.DB_TYPE_LONG_RAW, oracledb.DB_TYPE_BLOB}
_ZONED = {oracledb.DB_TYPE_TIMESTAMP_TZ, oracledb.DB_TYPE_TIMESTAMP_LTZ}
_FLOATS = {oracledb.DB_TYPE_BINARY_FLOAT, oracledb.DB_TYPE_BINARY_DOUBLE}
_DIGITS, _NO_SCALE, _MICROSECONDS = 38, -127, 6
#: A number in a text.
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
#: The column that an error of the server's names: the last name in quotes.
_NAMED = re.compile(r'ORA-(?:01400|12899).*"([^"]+)"')
_KEYS = (
    "SELECT c.index_name, c.column_name FROM all_ind_columns c JOIN all_indexes i "
    "ON i.owner = c.index_owner AND i.index_name = c.index_name WHERE i.uniqueness = 'UNIQUE' "
    "AND i.table_owner = {owner} AND i.table_name = {table}"
)
_OWNER = "SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA')"


def fold(name: str) -> str:
    """Give a name as SQL without quotes would: one of small letters alone is one of capitals."""
    return name.upper() if name == name.lower() else name


def _quoted_name(*names: str) -> str:
    return ".".join(f'"{name}"' for name in names)


class TableLoader:
    """Rows on their way into a table."""

    def __init__(self, session: "Session", load: Load) -> None:
        """Make the table, or look at the one that is there."""
        self._session, self._key, self._is_upsert = session, list(load.key), load.if_exists == "upsert"
        path = [fold(part) for part in (load.schema, load.table) if part is not None]
        schema = pa.table(load.columns).schema
        if bad := [name for name in [*path, *schema.names] if '"' in name or "\0" in name]:
            raise ProgrammingError(f"the name {bad[0]!r} has a quote or a zero byte, which Oracle's names cannot")
        self._name, self._target, self._into = ".".join(path), _quoted_name(*path), _quoted_name(*path)
        self._owns = session.transaction == "none"
        #: The statements that undo what is there before the rows, and those that make the rows the table's.
        self._undo: list[str] = []
        self._finish: list[str] = []
        if load.if_exists in {"fail", "replace"}:
            self._make(schema, path, {*load.required}, load.types, replaces=load.if_exists == "replace")
        self._savepoint = "" if self._owns else f"longshore_{secrets.token_hex(8)}"
        try:
            if self._owns:
                session.begin()
            else:
                session.execute(f"SAVEPOINT {self._savepoint}")
            self._begin(schema, path, load.if_exists)
        except BaseException:
            self.abort()
            raise

    def _describe(self, target: str) -> list[Any] | None:
        """Give the driver's descriptions of the table's columns; None where there is none."""
        cursor = self._session.open_cursor()
        try:
            cursor.parse(f"SELECT * FROM {target}")  # noqa: S608  names in quotes
        except oracledb.Error as error:
            if getattr(error.args[0], "code", 0) == 942:  # noqa: PLR2004  ORA-00942
                return None
            raise self._session.translate(error) from None
        return list(cursor.description)

    def _make(
        self, schema: Any, path: Sequence[str], required: set[str], types: Mapping[str, str], *, replaces: bool
    ) -> None:
        if not self._owns:
            raise NotSupportedError("CREATE TABLE commits an open transaction in Oracle", hint=_COMMIT)
        is_there = self._describe(self._target) is not None
        if is_there and not replaces:
            raise ProgrammingError(f"the table {self._name} is there already", hint=EXISTS)
        lines = [
            f"{_quoted_name(fold(field.name))} {types.get(field.name) or _new_type(field, field.name in self._key)}"
            f"{' NOT NULL' if field.name in required else ''}"
            for field in schema
        ]
        if self._key:
            lines.append(f"PRIMARY KEY ({', '.join(_quoted_name(fold(name)) for name in self._key)})")
        if is_there:
            staging = f"LONGSHORE_{secrets.token_hex(8).upper()}"
            self._into = _quoted_name(*path[:-1], staging)
            self._finish = [
                f"DROP TABLE {self._target}",
                f"ALTER TABLE {self._into} RENAME TO {_quoted_name(path[-1])}",
            ]
        with self._session.interruption.suspend():
            self._session.execute(f"CREATE TABLE {self._into} ({', '.join(lines)})")
            self._undo = [f"DROP TABLE {self._into}"]

    def _begin(self, schema: Any, path: Sequence[str], if_exists: str) -> None:
        described = self._describe(self._into)
        if described is None:
            raise ProgrammingError(f"there is no table {self._name}", hint=MISSING)
        known = {info.name: info for info in described}
        found = match_columns(self._name, schema.names, known, fold, known)
        self._columns = [Target(field.name, field.type, info) for field, info in zip(schema, found, strict=True)]
        if if_exists == "truncate":
            self._session.execute(f"DELETE FROM {self._target}")  # noqa: S608  names in quotes
        if self._is_upsert:
            self._check_key(path)
        self._statement = self._merge() if self._is_upsert else self._insert()

    def _check_key(self, path: Sequence[str]) -> None:
        owner = literal(path[0]) if path[1:] else _OWNER
        keys: Any = self._session.rows(_KEYS.format(owner=owner, table=literal(path[-1])))
        check_unique(self._name, self._key, keys, {each.info.name for each in self._columns if each.name in self._key})

    def _insert(self) -> str:
        names = ", ".join(_quoted_name(each.info.name) for each in self._columns)
        places = ", ".join(each.place.format(f":{at}") for at, each in enumerate(self._columns, 1))
        return f"INSERT INTO {self._into} ({names}) VALUES ({places})"  # noqa: S608  names in quotes

    def _merge(self) -> str:
        names = [_quoted_name(each.info.name) for each in self._columns]
        places = enumerate(zip(self._columns, names, strict=True), 1)
        values = ", ".join(f"{each.place.format(f':{at}')} AS {name}" for at, (each, name) in places)
        is_key = [each.name in self._key for each in self._columns]
        same = " AND ".join(f"t.{name} = s.{name}" for name, is_one in zip(names, is_key, strict=True) if is_one)
        changes = ", ".join(f"t.{name} = s.{name}" for name, is_one in zip(names, is_key, strict=True) if not is_one)
        update = f"WHEN MATCHED THEN UPDATE SET {changes} " if changes else ""
        return (
            f"MERGE INTO {self._into} t USING (SELECT {values} FROM dual) s ON ({same}) {update}"  # noqa: S608
            f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) VALUES ({', '.join(f's.{name}' for name in names)})"
        )

    def push(self, frame: object, before: int) -> None:
        """Write rows; raises ``DataError`` for a value that the column does not hold exactly."""
        table = pa.table(frame)
        arrays = []
        for at, column in enumerate(self._columns):
            values = table.column(at)
            if column.name in self._key and values.null_count:
                row = pc.index(pc.is_null(values), value=True).as_py()
                raise DataError("NULL in a column of the key", column=column.name, row=before + row)
            arrays.append(column.bind(values, before))
        rows = pa.table(arrays, names=[str(at) for at in range(1, len(arrays) + 1)])
        cursor = self._session.open_cursor()
        try:
            cursor.executemany(self._statement, rows)
        except oracledb.Error as error:
            translated = self._session.translate(error)
            named = _NAMED.search(str(error))
            names = {each.info.name: each.name for each in self._columns}
            row = before + getattr(error.args[0], "offset", 0)
            raise type(translated)(str(translated), column=named and names.get(named[1]), row=row) from None
        if not self._is_upsert and cursor.rowcount != len(table):
            message = f"of {len(table)} rows the table took {cursor.rowcount}; nothing was written"
            raise DataError(message, hint="a trigger of the table leaves rows out")

    def commit(self) -> None:
        """Make the rows the table's, unless a transaction of the caller's is open."""
        if not self._owns:
            return
        self._session.commit()
        # Of a new table the rows are there now.
        undo, self._undo = self._undo, []
        try:
            with self._session.interruption.suspend():
                for statement in self._finish:
                    self._session.execute(statement)
                    undo = []
        except Error:
            self._undo = undo
            raise

    def abort(self) -> None:
        """Leave the table as it was, and a transaction of the caller's too, whatever was cancelled."""
        with self._session.interruption.suspend():
            self._leave()

    def _leave(self) -> None:
        with contextlib.suppress(Error):
            if not self._owns:
                self._session.execute(f"ROLLBACK TO SAVEPOINT {self._savepoint}")
            elif self._session.transaction != "none":
                self._session.rollback()
        undo, self._undo = self._undo, []
        for statement in undo:
            self._session.execute(statement)


class Target:
    """A column of the table, and how the data's values are bound for it."""

    #: SQL around the placeholder.
    place = "{}"

    def __init__(self, name: str, kind: Any, info: Any) -> None:
        """Refuse a type that the column does not take."""
        self.name, self.info, self.native = name, info, info.type_code
        self.kind = plain_type(kind)
        self._convert = self._conversion()
        if self.native in _ZONED:
            self.place = "FROM_TZ({}, 'UTC')"
        if self.native == oracledb.DB_TYPE_INTERVAL_DS:
            self.place = "NUMTODSINTERVAL({}, 'SECOND')"

    def bind(self, values: Any, before: int) -> Any:
        """Give the values as they are bound."""
        values = plain(values)
        try:
            return self._convert(values)
        except UnrepresentableError as unfit:
            raise self._misfit(values, unfit.row, before, str(unfit)) from None
        except pa.ArrowInvalid:
            row = first_failure(values, self._convert)
            raise self._misfit(values, row, before, "the column would change it") from None

    def _misfit(self, values: Any, row: int, before: int, why: str) -> DataError:
        native = self.native.name.removeprefix("DB_TYPE_").lower()
        value = values[row]
        if pa.types.is_timestamp(values.type):
            # Without pandas, pyarrow shows no nanoseconds.
            value = values.slice(row, 1).cast(pa.timestamp(values.type.unit)).cast(pa.string())[0]
        return DataError(f"{value}: {why}", column=self.name, row=before + row, native_type=native, hint=CONVERT)

    def _conversion(self) -> Callable[[Any], Any]:  # noqa: C901, PLR0911, PLR0912  one line a type
        kind, native, types = self.kind, self.native, pa.types
        scale = self.info.scale if self.info.scale is not None else _NO_SCALE
        if types.is_null(kind):
            return lambda values: values.cast(pa.string())
        if arrow.is_text(kind):
            if native == oracledb.DB_TYPE_NUMBER:
                return lambda values: _of_numbers(values, scale, _parse)
            if native in _TEXTS:
                return lambda values: _fill(
                    values, pc.utf8_length, kind if types.is_large_string(kind) else pa.string()
                )
        elif arrow.is_bytes(kind):
            if native in _BYTES:
                return lambda values: _fill(
                    values, pc.binary_length, pa.binary() if types.is_binary_view(kind) else kind
                )
        elif types.is_boolean(kind):
            if native == oracledb.DB_TYPE_BOOLEAN:
                return lambda values: values
            if native == oracledb.DB_TYPE_NUMBER:
                return lambda values: values.cast(pa.int8())
        elif native == oracledb.DB_TYPE_NUMBER:
            if types.is_integer(kind) and (scale >= 0 or scale == _NO_SCALE):
                return lambda values: values
            if types.is_decimal(kind) or types.is_integer(kind):
                digits = kind.scale if types.is_decimal(kind) and scale == _NO_SCALE else scale
                return lambda values: _exact_decimals(values, digits)
            if types.is_floating(kind):
                return lambda values: _of_floats(values, scale)
        elif native in _FLOATS:
            if types.is_floating(kind) or types.is_integer(kind):
                float_type = pa.float64() if native == oracledb.DB_TYPE_BINARY_DOUBLE else pa.float32()
                return lambda values: _same(values, float_type)
        elif types.is_date(kind):
            if native in {oracledb.DB_TYPE_DATE, oracledb.DB_TYPE_TIMESTAMP}:
                return lambda values: values.cast(pa.date32()).cast(pa.timestamp("us"))
        elif types.is_timestamp(kind):
            if (kind.tz is not None and native in _ZONED) or (kind.tz is None and native == oracledb.DB_TYPE_TIMESTAMP):
                return lambda values: _in_places(values, scale)
            if kind.tz is None and native == oracledb.DB_TYPE_DATE:
                return lambda values: values.cast(pa.timestamp("s"))
        elif types.is_duration(kind):
            if native == oracledb.DB_TYPE_INTERVAL_DS:
                return _seconds
        elif _is_vector(kind) and native == oracledb.DB_TYPE_VECTOR:
            return lambda values: values
        name = native.name.removeprefix("DB_TYPE_").lower()
        message = f"{kind} does not go into a column of {name}"
        raise NotSupportedError(message, column=self.name, native_type=name, hint=CONVERT)


def _is_vector(kind: Any) -> bool:
    """Whether its values are lists that go into a VECTOR."""
    return bool(pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind))


def _fill(values: Any, length: Callable[[Any], Any], kind: Any) -> Any:
    # Before the cast, a view has no length.
    filled = values.cast(kind)
    refuse(pc.equal(length(filled), 0), _EMPTY)
    return filled


def _same(values: Any, kind: Any) -> Any:
    values = values.cast(pa.float32()) if pa.types.is_float16(values.type) else values
    cast = values.cast(kind, safe=False)
    back = cast.cast(values.type, safe=False)
    are_numbers = pc.is_nan(values) if pa.types.is_floating(values.type) else pc.is_null(values)
    refuse(pc.and_(pc.not_equal(back, values), pc.invert(are_numbers)), "a float of the column would round it")
    return cast


def _exact_decimals(values: Any, scale: int) -> Any:
    wide = values if pa.types.is_decimal(values.type) else values.cast(pa.decimal128(_DIGITS, 0))
    exact = wide.cast(pa.decimal256(2 * _DIGITS, scale))
    return exact.cast(pa.decimal128(_DIGITS, max(scale, 0)))


def _of_numbers(values: Any, scale: int, parse: Callable[[Any], Decimal | None]) -> Any:
    """Give decimals, which the server would round beyond its scale; without one, of the digits that there are."""
    numbers: list[Decimal | None] = []
    for row, value in enumerate(values.to_pylist()):
        number = None if value is None else parse(value)
        if value is not None and number is None:
            raise UnrepresentableError(row, _NOT_A_NUMBER)
        if number and scale != _NO_SCALE and _places(number) > scale:
            raise UnrepresentableError(row, f"the column has {scale} digits after the point, and would round it")
        numbers.append(number)
    if scale == _NO_SCALE:
        scale = min(max((_places(number) for number in numbers if number), default=0), _DIGITS)
    return pa.chunked_array([pa.array(numbers, pa.decimal128(_DIGITS, max(scale, 0)))])


def _places(number: Decimal) -> int:
    """Count the digits after the point, without zeros at the end; below zero, those before it that are zeros."""
    _, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits))
    return len(text.rstrip("0")) - len(text) - int(exponent)


def _parse(text: str) -> Decimal | None:
    return Decimal(text.strip()) if _NUMBER.fullmatch(text.strip()) else None


def _of_floats(values: Any, scale: int) -> Any:
    """Give the decimals that tell floats from all others."""
    if scale != _NO_SCALE:
        return _of_numbers(values, scale, lambda value: Decimal(repr(value)) if math.isfinite(value) else None)
    doubles = values.cast(pa.float64())
    refuse(pc.invert(pc.is_finite(doubles)), _NOT_A_NUMBER)
    return doubles


def _in_places(values: Any, places: int) -> Any:
    """Give timestamps of at most so many digits after the second; the driver has six."""
    exact = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.timestamp("us"))
    unit = 10 ** (_MICROSECONDS - min(max(places, 0), _MICROSECONDS))
    counts = exact.cast(pa.int64())
    refuse(
        pc.not_equal(pc.multiply(pc.divide(counts, unit), unit), counts),
        f"the column has {places} digits after the second, and would round it",
    )
    return exact


def _seconds(values: Any) -> Any:
    counts = values.cast(pa.duration("us")).cast(pa.int64())
    return pa.chunked_array(
        [
            pa.array(
                [None if count is None else Decimal(count).scaleb(-_MICROSECONDS) for count in counts.to_pylist()],
                pa.decimal128(_DIGITS, _MICROSECONDS),
            )
        ]
    )


_EXTENSIONS = {"arrow.uuid": "RAW(16)", "arrow.json": "JSON"}
_PLACES = {"s": 0, "ms": 3, "us": 6, "ns": 6}


#: The types of a new table's columns.
_NEW: Sequence[tuple[Callable[[Any], bool], Callable[[Any], str]]] = (
    (pa.types.is_boolean, lambda _kind: "NUMBER(1,0)"),
    (pa.types.is_integer, lambda kind: f"NUMBER({_digits(kind)},0)"),
    (pa.types.is_float64, lambda _kind: "BINARY_DOUBLE"),
    (pa.types.is_floating, lambda _kind: "BINARY_FLOAT"),
    (
        lambda kind: pa.types.is_decimal(kind) and kind.precision <= _DIGITS,
        lambda kind: f"NUMBER({kind.precision},{kind.scale})",
    ),
    (pa.types.is_date, lambda _kind: "DATE"),
    (pa.types.is_timestamp, lambda kind: f"TIMESTAMP({_PLACES[kind.unit]}){' WITH TIME ZONE' if kind.tz else ''}"),
    (pa.types.is_duration, lambda _kind: "INTERVAL DAY(9) TO SECOND(6)"),
    (lambda kind: arrow.is_text(kind) or pa.types.is_null(kind), lambda _kind: "VARCHAR2(4000)"),
    (arrow.is_bytes, lambda _kind: "BLOB"),
    (lambda kind: _is_vector(kind) and pa.types.is_floating(kind.value_type), lambda _kind: "VECTOR"),
)


def _digits(kind: Any) -> int:
    return len(str(2 ** (kind.bit_width - pa.types.is_signed_integer(kind)) - 1))


def _new_type(field: Any, is_key: bool) -> str:  # noqa: FBT001
    """Give the type of a new table's column."""
    extension = getattr(field.type, "extension_name", "")
    if extension in _EXTENSIONS:
        return _EXTENSIONS[extension]
    kind = plain_type(field.type)
    native = next((name_of(kind) for is_one, name_of in _NEW if is_one(kind)), None)
    if native is not None:
        return "RAW(2000)" if is_key and native == "BLOB" else native
    hint = f'name a type: types={{"{field.name}": ...}}, or leave the column out'
    raise NotSupportedError(f"Oracle has no type for {kind}", column=field.name, hint=hint)
