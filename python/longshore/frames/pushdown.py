"""The parts of a query that can go down into one of its tables: the columns that it reads, and its predicates."""

import datetime as dt
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from longshore.errors import InterfaceError

#: Returns the folded names of the columns that a query reads, or None where it may read every column.
Projection = Callable[[], frozenset[str] | None]

Constant = int | Decimal | dt.datetime | str

#: A part of a query's text: its first byte, and the one behind its last.
Span = tuple[int, int]


@dataclass(frozen=True)
class Predicate:
    """A column compared with a constant. A row for which it is not true adds nothing to the result."""

    #: The column's folded name.
    column: str
    #: A comparison, or where in the column's text the constant has to be.
    operator: Literal["=", "<", "<=", ">", ">=", "start", "end", "anywhere"]
    constant: Constant


@dataclass(frozen=True)
class Remainder:
    """A query without its predicates on texts, for rows that have been filtered by them."""

    #: The predicates in its text.
    spans: tuple[Span, ...]
    #: As ``Pushdown.columns``.
    columns: frozenset[str] | None


@dataclass(frozen=True)
class Pushdown:
    """The demands of a query on one table: columns and predicates."""

    #: The folded names of the columns that it may read, and perhaps more; None for all.
    columns: frozenset[str] | None = None
    #: True for every row that adds to the result.
    predicates: tuple[Predicate, ...] = ()
    #: Folded names of columns, of this table or another, by whose values rows are grouped or told apart.
    keys: frozenset[str] = frozenset()
    #: Those of columns whose means it asks for.
    means: frozenset[str] = frozenset()
    #: None where a predicate on texts has to stay in the query.
    rest: Remainder | None = None


_FOLDING = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def fold_name(name: str) -> str:
    """Return the form in which the engine compares names: it folds ASCII letters, and no others.

    >>> fold_name("Berth"), fold_name("Ähre")
    ('berth', 'Ähre')
    """
    return name.translate(_FOLDING)


def are_distinct(names: Sequence[str]) -> bool:
    """Whether there are columns, and all have names that SQL tells apart.

    >>> are_distinct(["a", "b"]), are_distinct(["a", "A"]), are_distinct([""])
    (True, False, False)
    """
    return 0 < len(names) == len(set(map(fold_name, names))) and all(names)


def column_positions(names: Sequence[str], projection: frozenset[str] | None, table: str) -> list[int]:
    """Return the positions of the columns that a query reads; raises ``InterfaceError`` where two have one name.

    Raises it too where one has no name, and where the query reads whatever there is and there is nothing: the engine
    would call either of them something.

    >>> column_positions(["a", "b", "c"], frozenset({"b"}), "boats")
    [1]
    """
    if not names and projection is None:
        raise InterfaceError(f"{table!r} has no columns")
    positions = [at for at, name in enumerate(names) if projection is None or fold_name(name) in projection]
    seen: dict[str, str] = {}
    for at in positions:
        name = names[at]
        if not name:
            raise InterfaceError(f"column {at} of {table!r}, counted from 0, has no name", hint="rename it", column="")
        if fold_name(name) in seen:
            other = seen[fold_name(name)]
            same = f"two columns named {name!r}"
            fault = same if name == other else f"columns {other!r} and {name!r}, which SQL does not tell apart"
            raise InterfaceError(f"{table!r} has {fault}", hint="rename one of them", column=name)
        seen[fold_name(name)] = name
    return positions
