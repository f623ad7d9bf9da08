"""A table's columns as a read has just found them, beside what the catalogue had said."""

import pyarrow as pa

from longshore.engine.remote.types import Column, Kind, Table
from longshore.engine.remote.whole import arrow_type

__all__ = ["holding", "is_current", "readable"]


def readable(table: Table) -> list[Column]:
    """Give the columns that this user may read."""
    return [column for column in table.columns if column.readable]


def holding(table: Table) -> str:
    """Give a query that reads nothing: its lock stays until the transaction ends, and its types are those of now."""
    columns = ", ".join(column.quoted for column in readable(table)) or "1"
    return f"SELECT {columns} FROM {table.sql} LIMIT 0"


def is_current(table: Table, schema: pa.Schema) -> bool:
    """Whether the columns have the types of the catalogue, which a transaction may see as of its first moment."""
    columns = readable(table)
    return all(_is_of(column, field) for column, field in zip(columns, schema, strict=bool(columns)))


def _is_of(column: Column, field: pa.Field) -> bool:
    of = column.type
    native = (field.metadata or {}).get(b"native_type", b"")
    if column.padded is not None:
        return bool(native == (b"bpchar(%d)" % column.padded if column.padded else b"bpchar"))
    # Nothing is asked of other kinds, and a form is made of any type that it fits.
    if of.kind is Kind.OTHER or of.engine is None or column.form != "{}":
        return True
    if native.startswith(b"bpchar"):
        return False
    return arrow_type(of.engine) in {None, field.type}
