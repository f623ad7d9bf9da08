"""A database whose catalogue is not asked: a table is what a query of no rows says of it, and is read by itself."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

import pyarrow as pa

from longshore import errors
from longshore.duckdb.remote.dialect import Ask, Dialect
from longshore.duckdb.remote.types import Column, Kind, Table, Trust, Type
from longshore.texts import quoted_name

#: The quotes of names: in a FROM, one that the database has for texts is an error.
_QUOTES = ('"', "`")
#: Native types of texts that every database compares with any other text.
_TEXTS = {"varchar", "nvarchar", "varchar2", "nvarchar2", "character varying", "string"}
_OTHER = Type(Kind.OTHER, nulls=True)
_INTEGER = Type(Kind.INTEGER, equal=Trust.EXACT, order=Trust.EXACT, nulls=True)
#: A collation may find more of them equal. Other letters may not have a place in the encoding of a query.
_TEXT = Type(Kind.TEXT, equal=Trust.SUPERSET, nulls=True, charset="ascii")


class Described(Dialect):
    """The SQL that databases have in common: names in quotes, and comparisons of integers and texts."""

    listing: ClassVar[str] = "read_sql with the database's own query of its tables"
    begin_snapshot: ClassVar[Sequence[str]] = ()
    has_locks: ClassVar[bool] = False
    answers_queries: ClassVar[bool] = False
    can_stop_in_transaction: ClassVar[bool] = False
    #: Whether names without quotes are in capitals.
    is_upper: ClassVar[bool] = False

    def find(self, ask: Ask, parts: Sequence[str], lossy: frozenset[Kind]) -> Table | None:
        """Look a table up by its exact name, then in capitals and in small letters; raises the database's own error."""
        del lossy
        failure: errors.DatabaseError | None = None
        for quote in _QUOTES:
            for names in self._spellings(parts):
                sql = ".".join(quoted_name(name, quote) for name in names)
                try:
                    found = ask(f"SELECT * FROM {sql} WHERE 1 = 0", [])
                except errors.TimeoutError:
                    raise
                except errors.DatabaseError as error:
                    failure = failure or error
                    continue
                return Table(sql, [_column(field, quote) for field in found.schema])
        if isinstance(failure, errors.OperationalError):
            raise failure
        message = f"the table {'.'.join(parts)} cannot be read: {failure}"
        raise errors.ProgrammingError(message, sqlstate=failure.sqlstate if failure else None)

    def _spellings(self, parts: Sequence[str]) -> Iterator[tuple[str, ...]]:
        upper, lower = tuple(map(str.upper, parts)), tuple(map(str.lower, parts))
        yield from dict.fromkeys([upper, tuple(parts), lower] if self.is_upper else [tuple(parts), upper, lower])


class DuckDB(Described):
    """DuckDB's, which begins a snapshot."""

    begin_snapshot: ClassVar[Sequence[str]] = ("BEGIN TRANSACTION",)


class Oracle(Described):
    """Oracle's, whose names are in capitals."""

    is_upper: ClassVar[bool] = True


def _column(field: pa.Field, quote: str) -> Column:
    """Give a column. Its form is without the table, which not every database takes before it."""
    name = quoted_name(field.name, quote)
    return Column(field.name, name, _OTHER if "{}" in name else _type(field), name)


def _type(field: pa.Field) -> Type:
    """Give the type of a column whose native type is told: other drivers look at the first rows for theirs."""
    told = (field.metadata or {}).get(b"native_type", b"").decode().lower()
    native = told.removeprefix("nullable(").partition("(")[0].rstrip(" )")
    is_whole = pa.types.is_decimal(field.type) and field.type.scale == 0
    if native and (pa.types.is_signed_integer(field.type) or is_whole):
        return _INTEGER
    is_text = pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
    return _TEXT if native in _TEXTS and is_text else _OTHER
