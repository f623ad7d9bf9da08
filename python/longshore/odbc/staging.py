"""Staged rows in a database's own types: of the columns of a temporary table, and of their values."""

import pyarrow as pa
import pyarrow.compute as pc

from longshore import errors
from longshore.sources.arrow import is_bytes


def sqlite_type(field: pa.Field) -> str:
    """Give the class of SQLite's values that holds those of a column of ``as_sqlite``."""
    kind = field.type
    if pa.types.is_integer(kind):
        return "INTEGER"
    return "REAL" if pa.types.is_floating(kind) else "BLOB" if pa.types.is_binary(kind) else "TEXT"


def as_sqlite(table: pa.Table) -> pa.Table:
    """Give rows in the classes of SQLite's values; raises ``DataError`` for an integer beyond 64 bits with a sign."""
    for at, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) and "uuid" not in str(kind) else kind
        column = table.column(at)
        if isinstance(kind, pa.BaseExtensionType):
            column = pa.chunked_array([pa.array([value and str(value) for value in column.to_pylist()], pa.string())])
        elif pa.types.is_nested(kind) or pa.types.is_duration(kind) or pa.types.is_interval(kind):
            message = f"SQLite has no type for {kind}: cast it, or give its text"
            raise errors.NotSupportedError(message, column=field.name)
        else:
            column = _conform(column, field.name, kind)
        table = table.set_column(at, field.name, column)
    return table


def _conform(column: pa.ChunkedArray, name: str, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        if kind == pa.uint64():
            row = pc.index(pc.greater(column, pa.scalar(2**63 - 1, kind)), value=True).as_py()
            if row >= 0:
                raise errors.DataError(f"{column[row]} is beyond SQLite's integers", column=name, row=row)
        return column.cast(pa.int64())
    if pa.types.is_floating(kind):
        return column.cast(pa.float64())
    if is_bytes(kind):
        return column.cast(pa.binary())
    if pa.types.is_date64(kind):
        try:
            return column.cast(pa.date32()).cast(pa.string())
        except pa.ArrowInvalid as error:
            raise errors.DataError(str(error), column=name) from None
    return column.cast(pa.string())


def has_empty_bytes(table: pa.Table) -> bool:
    """Whether there are empty bytes, of which SQLite's driver makes zeros where they are next to longer ones."""
    columns = [column for column in table.columns if pa.types.is_binary(column.type)]
    return any(pc.any(pc.equal(pc.binary_length(column), 0)).as_py() for column in columns)


def sqlite_new_types(frame: object) -> dict[str, str]:
    """Give the types of a new table's columns by which the driver reads what was written."""
    kinds = {field.name: field.type for field in pa.table(frame).schema}
    declared = [(pa.types.is_boolean, "BOOLEAN"), (pa.types.is_date, "DATE"), (pa.types.is_timestamp, "TIMESTAMP")]
    return {name: native for name, kind in kinds.items() for is_one, native in declared if is_one(kind)}
