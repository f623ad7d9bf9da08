"""What a column's values mean, and what may be asked of its database without changing an answer."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum

__all__ = [
    "BASIC_PLANE",
    "Column",
    "Kind",
    "Table",
    "Trust",
    "Type",
    "Unsafe",
    "decimal",
    "same_meaning",
    "scalar",
]


#: MySQL's UTF-8 of three bytes, for which Python has no name.
BASIC_PLANE = "utf8mb3"


_MOST_DIGITS = 38


class Unsafe(Exception):  # noqa: N818  it ends an attempt, and no caller ever sees it
    """What was looked at may mean something else in the source, or is not known to mean the same."""


class Trust(IntEnum):
    """How far a test of the source is the engine's."""

    NONE = 0
    #: True wherever the engine's is, and perhaps elsewhere: good for fewer rows, which the engine tests again.
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
    INSTANT = "instant"
    UUID = "uuid"
    TEXT = "text"
    OTHER = "other"


@dataclass(frozen=True)
class Type:
    """A type, with what its source is trusted with."""

    kind: Kind
    #: The engine's name of it; None where nothing depends on it.
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
    #: Whether it is a ``char(n)``: blanks at the end of a constant are nothing to it, and LIKE would see its own.
    padded: bool = False
    #: Whether it is a ``varchar``, whose blanks mean nothing to a ``char(n)`` either, as those of a text do.
    varying: bool = field(default=False, compare=False)
    #: Texts are compared with each other where this is the same.
    collation: str | None = None
    #: What the source can write texts of the column in, as Python calls it.
    charset: str = "utf-8"


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, its name in the source's SQL, and its type."""

    name: str
    quoted: str
    type: Type
    #: What stands for its value in a pushed query; {} is the column.
    form: str = "{}"
    #: Whether this user may read it.
    readable: bool = True
    #: Whether it is loaded in that form, too.
    is_cast: bool = False
    #: The length of a PostgreSQL ``char(n)``, whose values enter without their padding; 0 where none was declared.
    padded: int | None = None
    #: The collation in which texts that differ may be equal.
    collation: str | None = None

    def sql(self, table: str) -> str:
        """Give what stands for its value."""
        return self.form.replace("{}", f"{table}.{self.quoted}")

    @property
    def loaded(self) -> str:
        """What a SELECT has for it where the engine gets the table."""
        return f"{self.form.replace('{}', self.quoted)} AS {self.quoted}" if self.is_cast else self.quoted

    @property
    def in_source(self) -> "Column":
        """The column for a query that the source answers whole: equal is what the collation says."""
        if self.collation is None or self.type.kind is not Kind.TEXT:
            return self
        return replace(self, type=replace(self.type, equal=Trust.EXACT, groups=True))


@dataclass(frozen=True)
class Table:
    """A table as the source's catalogue has it."""

    sql: str
    columns: Sequence[Column]
    #: Whether the columns have one type each, whatever rows are read.
    typed: bool = True
    #: Another one after every change of the table, even after one that was taken back; None where nothing tells.
    version: object = None


def scalar(kind: Kind, engine: str) -> Type:
    """Give a type that means the same everywhere: whole numbers, and points of time."""
    return Type(kind, engine, equal=Trust.EXACT, order=Trust.EXACT, groups=True, nulls=True, sums=True)


def decimal(precision: int, scale: int) -> Type:
    """Give the type of decimals; one that the engine's 128 bits do not hold is trusted with nothing."""
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
