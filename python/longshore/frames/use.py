"""What a query does with one table, as far as its text tells."""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

__all__ = ["MANY", "Constant", "Predicate", "Rest", "Span", "Use", "Wanted"]

#: Rows of a frame from which on it pays to look what a query does with it.
MANY = 1 << 18

#: Gives the folded names that a query mentions, or None where it may read every column.
Wanted = Callable[[], frozenset[str] | None]

Constant = int | Decimal | dt.datetime | str

#: Where something stands in a query: its first byte, and the one behind its last.
Span = tuple[int, int]


@dataclass(frozen=True)
class Predicate:
    """A column beside a constant. Nothing of a result comes of a row for which it is not true."""

    #: The column's folded name.
    column: str
    #: A comparison, or where in the column's text the constant has to be.
    operator: Literal["=", "<", "<=", ">", ">=", "start", "end", "anywhere"]
    constant: Constant


@dataclass(frozen=True)
class Rest:
    """A query without those predicates that say something of texts, for when they have been looked after."""

    #: What is left out.
    spans: tuple[Span, ...]
    #: As ``Use.columns``.
    columns: frozenset[str] | None


@dataclass(frozen=True)
class Use:
    """What a query does with one table."""

    #: The folded names of the columns that it may read, and perhaps more; None for all.
    columns: frozenset[str] | None = None
    #: What is true of every row that matters.
    predicates: tuple[Predicate, ...] = ()
    #: Folded names of columns, of this table or another, whose values rows are told apart by.
    keys: frozenset[str] = frozenset()
    #: None where a predicate of texts cannot be left out.
    rest: Rest | None = None
    #: How many of the first rows matter; None for all.
    first: int | None = None
