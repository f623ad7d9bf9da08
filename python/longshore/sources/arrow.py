"""pyarrow between drivers and the core: a driver's batches as a result, and frames in types that a driver keeps."""

import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from longshore.errors import DataError, Error, NotSupportedError, ProgrammingError
from longshore.sources.dialects import Dialect
from longshore.sources.session import DriverSession


def stream(session: DriverSession, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatchReader:
    """Give batches as a stream; Arrow's interface hands on a text of an error alone, so the session keeps the error."""

    def rows() -> Iterator[pa.RecordBatch]:
        try:
            with session.translating():
                yield from batches
        except Error as error:
            session.error = error
            session.clean_up()
            raise

    return pa.RecordBatchReader.from_batches(schema, rows())


def empty(schema: pa.Schema) -> pa.Table:
    """Give a result without rows: pyarrow's own makes no lists of an extension's type."""
    return pa.Table.from_batches([], schema)


def objects(batches: Iterable[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    """Give rows as objects."""
    return [row for batch in batches for row in zip(*(each.to_pylist() for each in batch.columns), strict=True)]


def bound_rows(cursor: Any, statement: str, sets: Sequence[Sequence[Any] | None]) -> pa.RecordBatch | None:
    """Give sets of parameters as the rows that are bound; pyarrow itself takes no integer of 64 bits without a sign."""
    # Drivers let values be that have no place.
    places = None if sets[0] is None else cursor.adbc_prepare(statement)
    for params in sets:
        if params is not None and places is not None and len(places) != len(params):
            raise ProgrammingError(f"the statement has {len(places)} parameters, and params {len(params)}")
    columns = [[*map(_wide, column)] for column in zip(*(params or () for params in sets), strict=True)]
    return pa.record_batch(columns, [*map(str, range(len(columns)))]) if columns else None


def _wide(value: Any) -> Any:
    return Decimal(value) if type(value) is int and value.bit_length() > _BITS else value


def numerics(frame: object) -> dict[str, str]:
    """Give PostgreSQL's type of each column of decimals, of whose digits its driver tells nothing."""
    kinds = {field.name: _exact_type(field.type, "postgresql") for field in pa.table(frame).schema}
    decimals = {name: kind for name, kind in kinds.items() if pa.types.is_decimal(kind)}
    return {name: f"numeric({kind.precision},{kind.scale})" for name, kind in decimals.items()}


#: The bits of an integer with a sign, without that.
_BITS = 63
#: The types whose values drivers change, though they take them, by their database's name.
_CUT = {
    "postgresql": {"timestamp", "time64", "duration", "uint64"},
    "mariadb": {"timestamp", "time64", "duration"},
    "duckdb": {"duration"},
}


def ingest(frame: object, dialect: Dialect | None) -> pa.Table:
    """Give the rows of an object that hands an Arrow stream over, for this database's driver."""
    table, vendor = pa.table(frame), dialect.name if dialect else ""
    for at, field in enumerate(table.schema):
        column = table.column(at)
        if pa.types.is_run_end_encoded(field.type):
            column = pc.run_end_decode(column)
            table = table.set_column(at, field.with_type(column.type), column)
        wanted = _exact_type(column.type, vendor)
        if wanted != column.type:
            column = _exact(column, wanted, field.name)
            table = table.set_column(at, field.with_type(wanted), column)
        _check(column, field.name, vendor)
    return table


def _exact_type(kind: pa.DataType, vendor: str) -> pa.DataType:
    """Give the type for one whose values the driver would cut or wrap."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_exact_type(kind.value_type, vendor))
    name = str(kind).partition("[")[0]
    if name not in _CUT.get(vendor, ()):
        for at in range(kind.num_fields):
            inner = kind.field(at).type
            if _exact_type(inner, vendor) != inner or inner == pa.month_day_nano_interval():
                raise NotSupportedError(f"{inner} within {name.partition('<')[0]} may be cut by the driver")
        return kind
    if kind == pa.uint64():
        return pa.decimal128(20, 0)
    if kind.unit != "ns":
        return kind
    return pa.timestamp("us", kind.tz) if name == "timestamp" else getattr(pa, name)("us")


def _exact(column: pa.ChunkedArray, wanted: pa.DataType, name: str) -> pa.ChunkedArray:
    try:
        return column.cast(wanted)
    except pa.ArrowInvalid:
        row = first_failure(column, lambda part: part.cast(wanted))
    raise DataError(f"{column[row]} is cut by the driver, which has microseconds", column=name, row=row)


def _check(column: pa.ChunkedArray, name: str, vendor: str) -> None:
    """Raise for what the driver would change without a type that it keeps."""
    kind = column.type
    if vendor == "sqlite" and pa.types.is_timestamp(kind) and kind.tz is not None:
        raise NotSupportedError("the driver would drop the time zone", column=name)
    if vendor == "sqlite" and pa.types.is_floating(kind):
        row = pc.index(pc.is_nan(column), value=True).as_py()
        if row >= 0:
            raise DataError("NaN would become NULL", column=name, row=row)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        _check(pc.list_flatten(column), name, vendor)
    if kind == pa.month_day_nano_interval():
        for row, value in enumerate(column.to_pylist()):
            if value is not None and value.nanoseconds % 1000:
                raise DataError(f"{value} is cut by the driver, which has microseconds", column=name, row=row)


class UnrepresentableError(Exception):
    """A value that does not fit its column, which makes an error of it; and why, where it is not the value itself."""

    def __init__(self, row: int, reason: str = "") -> None:
        """Keep the row within its batch."""
        super().__init__(reason)
        self.row = row


def refuse(are_unfit: Any, reason: str) -> None:
    """Raise ``UnrepresentableError`` for the first value of which this is true."""
    row = pc.index(are_unfit, value=True).as_py()
    if row >= 0:
        raise UnrepresentableError(row, reason)


def first_failure(values: Any, convert: Callable[[Any], object]) -> int:
    """Give the row of the first value that does not convert, where not all of them do."""

    def fails(rows: int) -> bool:
        try:
            convert(values.slice(0, rows))
        except (ValueError, pa.ArrowException, UnrepresentableError):
            return True
        return False

    return bisect.bisect_left(range(len(values) + 1), x=True, key=fails) - 1


def is_text(kind: Any) -> bool:
    """Whether its values are texts, however they lie."""
    return kind in {pa.string(), pa.large_string(), pa.string_view()}


def is_bytes(kind: Any) -> bool:
    """Whether its values are bytes, however they lie."""
    return bool(pa.types.is_fixed_size_binary(kind)) or kind in {pa.binary(), pa.large_binary(), pa.binary_view()}


def is_list(kind: Any) -> bool:
    """Whether its values are lists."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def plain_type(kind: Any) -> Any:
    """Give the type of the values that a type of Arrow's has within."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    return plain_type(kind.storage_type) if isinstance(kind, pa.BaseExtensionType) else kind


def plain(values: Any) -> Any:
    """Give the values of an Array or a ChunkedArray without an encoding or an extension around them."""
    values = decode(values)
    if not isinstance(values.type, pa.BaseExtensionType):
        return values
    if isinstance(values, pa.Array):
        return plain(values.storage)
    return plain(pa.chunked_array([chunk.storage for chunk in values.chunks], values.type.storage_type))


def decode(values: Any) -> Any:
    """Give values without an encoding around them."""
    if pa.types.is_run_end_encoded(values.type):
        return decode(pc.run_end_decode(values))
    return decode(values.cast(values.type.value_type)) if pa.types.is_dictionary(values.type) else values
