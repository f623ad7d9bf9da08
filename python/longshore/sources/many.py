"""One statement with many sets of parameters: which of them a driver may take at once."""

import datetime as dt
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

_NAME = r'(?:\w+|"(?:[^"]|"")+")'
_NAMES = rf"\(\s*{_NAME}(?:\s*,\s*{_NAME})*\s*\)"
_PLACE = r"(?:\?|\$\w+)"
_INSERT = re.compile(
    rf"(\s*INSERT\s+INTO\s+{_NAME}(?:\s*\.\s*{_NAME})*\s*(?:{_NAMES})?)\s*"
    rf"\bVALUES\s*\(\s*({_PLACE}(?:\s*,\s*{_PLACE})*)\s*\)[\s;]*",
    re.IGNORECASE,
)

#: Types whose values all have one type in each database.
_SCALARS = {bool, int, float, str, bytes, dt.date, dt.datetime, dt.time, dt.timedelta, uuid.UUID, Decimal}
_TIMES = {dt.datetime, dt.time}
_BITS = 63
#: Fewer rows are not worth the question whether they may go at once.
FEW = 16
_OTHER = object()

#: The values of a set, by place, and what those of each place have in common; None where all are NULL.
Row = Sequence[Any]
Kinds = list[Any]


class Insert(NamedTuple):
    """An INSERT of one row of nothing but parameters."""

    #: The statement up to VALUES.
    head: str
    #: Each parameter: "?", or "$" with a number or a name.
    places: list[str]

    @property
    def by_place(self) -> str:
        """The statement with its parameters in the order of their places."""
        is_numbered = self.places[0] != "?"
        places = (f"${at}" if is_numbered else "?" for at in range(1, len(self.places) + 1))
        return f"{self.head} VALUES ({', '.join(places)})"

    def rows(self, sets: Sequence[Any]) -> list[Row] | None:
        """Give the values of each set in the order of their places; None where a set has others than the statement."""
        if "?" in self.places:
            keys: list[Any] = [*range(len(self.places))]
        else:
            names = [place[1:] for place in self.places]
            keys = [int(name) - 1 if name.isdecimal() else name for name in names]
        wanted = {*keys}
        fit = (wanted == (each.keys() if isinstance(each, dict) else {*range(len(each or ()))}) for each in sets)
        return [[each[key] for key in keys] for each in sets] if all(fit) else None


def plain_insert(statement: str) -> Insert | None:
    """Take a statement apart, if it is one.

    >>> plain_insert('INSERT INTO "a b" (x, y) VALUES ($y, $x);')
    Insert(head='INSERT INTO "a b" (x, y)', places=['$y', '$x'])
    >>> plain_insert("INSERT INTO t VALUES (?, 1)")
    """
    found = _INSERT.fullmatch(statement)
    return None if found is None else Insert(found[1].strip(), re.split(r"\s*,\s*", found[2]))


def runs(rows: Iterable[Row]) -> Iterator[tuple[list[Row], Kinds | None]]:
    """Give rows in runs in which the values of each place have one type, NULL aside, with the kinds of the places.

    Without kinds are rows with a value of a type that not all databases have, or whose values differ in theirs.

    >>> [(run, kinds is None) for run, kinds in runs([[1, "a"], [2, None], [0.5, "b"], [[3], "c"], [{}, "d"]])]
    [([[1, 'a'], [2, None]], False), ([[0.5, 'b']], False), ([[[3], 'c'], [{}, 'd']], True)]
    """
    run: list[Row] = []
    known: Kinds | None = None
    for each in rows:
        kinds = [*map(_kind, each)]
        found = None if _OTHER in kinds else kinds
        if run and not _are_compatible(known, found):
            yield run, known
            run, known = [], None
        if known is None or found is None:
            known = found
        elif known != found:
            known = [one or other for one, other in zip(known, found, strict=True)]
        run.append(each)
    if run:
        yield run, known


def _are_compatible(known: Kinds | None, found: Kinds | None) -> bool:
    if known is None or found is None or known == found:
        return known is found or known == found
    are_as_many = len(known) == len(found)
    return are_as_many and all(
        one == other or one is None or other is None for one, other in zip(known, found, strict=True)
    )


def _kind(value: Any) -> Any:
    """Give what all values have in common to which a database gives one type and none a change; None of a NULL."""
    kind = type(value)
    if value is None:
        return None
    if kind not in _SCALARS or (kind is int and value.bit_length() > _BITS):
        return _OTHER
    if kind is Decimal:
        exponent = value.as_tuple().exponent
        return (kind, exponent) if isinstance(exponent, int) and exponent <= 0 else _OTHER
    # A time of another zone would be written in the first one's.
    return (kind, value.tzinfo) if kind in _TIMES else kind
