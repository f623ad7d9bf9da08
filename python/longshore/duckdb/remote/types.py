"""The types of attached tables' columns: what of them a database computes as the engine does."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum

import pyarrow as pa

#: MySQL's UTF-8 of three bytes, for which Python has no name.
BASIC_PLANE = "utf8mb3"


_MOST_DIGITS = 38


class Unsafe(Exception):  # noqa: N818  it ends an attempt, and does not reach a caller
    """An expression that may mean something else in the source, or is not known to mean the same."""


class Trust(IntEnum):
    """How far a source's test agrees with the engine's."""

    NONE = 0
    #: True wherever the engine's is, and perhaps elsewhere: a filter of rows, which the engine tests again.
    SUPERSET = 1
    #: True, false and NULL where the engine's is.
    EXACT = 2


class Kind(Enum):
    """The classes of values that are compared with each other."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    DOUBLE = "double"
    DECIMAL = "decimal"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamptz"
    UUID = "uuid"
    TEXT = "text"
    OTHER = "other"


@dataclass(frozen=True)
class Type:
    """A type, and how far its source agrees with the engine on its values."""

    kind: Kind
    #: The engine's name of it; None where it does not matter.
    engine: str | None = None
    equal: Trust = Trust.NONE
    order: Trust = Trust.NONE
    #: Whether values that are equal are the same, so that one of them may stand for all.
    groups: bool = False
    #: Whether the source's NULLs are the engine's.
    nulls: bool = False
    #: Whether the source's sums are the engine's.
    sums: bool = False
    precision: int = 0
    scale: int = 0
    #: Whether it is a ``char(n)``: it ignores blanks at the end of a constant, and LIKE sees its padding.
    padded: bool = False
    #: Whether it is a ``varchar``, whose blanks a ``char(n)`` ignores, too; those of a ``text`` count.
    varying: bool = field(default=False, compare=False)
    #: Texts of one collation are compared with each other.
    collation: str | None = None
    #: The encoding of the column's texts in the source, as Python calls it.
    charset: str = "utf-8"


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, its name in the source's SQL, and its type."""

    name: str
    quoted: str
    type: Type
    #: Its value in a pushed query; {} is the column.
    form: str = "{}"
    #: Whether this user may read it.
    readable: bool = True
    #: Whether it is loaded in this form, too.
    is_cast: bool = False
    #: The length of a PostgreSQL ``char(n)``, whose values enter without their padding; 0 where none was declared.
    padded: int | None = None
    #: The collation in which texts that differ may be equal.
    collation: str | None = None

    def sql(self, table: str) -> str:
        """Give its value under a table's alias."""
        return self.form.replace("{}", f"{table}.{self.quoted}")

    @property
    def select_item(self) -> str:
        """Its item in the SELECT that loads the table."""
        return f"{self.form.replace('{}', self.quoted)} AS {self.quoted}" if self.is_cast else self.quoted

    @property
    def in_source(self) -> "Column":
        """The column in a query that the source answers whole: its collation decides what is equal."""
        if self.collation is None or self.type.kind is not Kind.TEXT:
            return self
        return replace(self, type=replace(self.type, equal=Trust.EXACT, groups=True))


@dataclass(frozen=True)
class Table:
    """A table of a source's catalogue."""

    sql: str
    columns: Sequence[Column]
    #: Whether the columns have one type each, whatever rows are read.
    is_typed: bool = True
    #: A value that every change of the table changes, even one that was undone; None where there is none.
    version: object = None


def scalar(kind: Kind, engine: str) -> Type:
    """Give a type on which all sources agree with the engine: integers, dates and timestamps."""
    return Type(kind, engine, equal=Trust.EXACT, order=Trust.EXACT, groups=True, nulls=True, sums=True)


def decimal(precision: int, scale: int) -> Type:
    """Give a type of decimals; one beyond the engine's 128 bits is loaded only."""
    if not 0 <= scale <= precision <= _MOST_DIGITS:
        return Type(Kind.OTHER)
    return Type(
        Kind.DECIMAL,
        f"DECIMAL({precision},{scale})",
        equal=Trust.EXACT,
        order=Trust.EXACT,
        groups=True,
        nulls=True,
        sums=True,
        precision=precision,
        scale=scale,
    )


def same_meaning(left: Type, right: Type) -> None:
    """Raise ``Unsafe`` where two columns are not compared as their values are."""
    if left.kind is not right.kind or left.kind is Kind.OTHER:
        raise Unsafe
    if left.kind is Kind.TEXT and (left.collation is None or left.collation != right.collation):
        raise Unsafe
    if left.padded is not right.padded and (left.varying or right.varying):
        raise Unsafe
    before = max(left.precision - left.scale, right.precision - right.scale)
    if before + max(left.scale, right.scale) > _MOST_DIGITS:
        raise Unsafe


_ARROW = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(),
    "USMALLINT": pa.uint16(),
    "UINTEGER": pa.uint32(),
    "UBIGINT": pa.uint64(),
    "HUGEINT": pa.decimal128(38, 0),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", "UTC"),
}
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")


def arrow_type(engine: str) -> pa.DataType | None:
    """Give the Arrow type of the engine's type; None where it is not on the list."""
    number = _DECIMAL.fullmatch(engine)
    return pa.decimal128(int(number[1]), int(number[2])) if number else _ARROW.get(engine)
