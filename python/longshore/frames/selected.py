"""Which columns of a table a query reads, by their names as SQL tells them apart."""

import string
from collections.abc import Sequence

from longshore.errors import InterfaceError

_FOLDING = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def folded(name: str) -> str:
    """Give the form in which the engine compares names: it folds ASCII letters, and no others.

    >>> folded("Berth"), folded("Ähre")
    ('berth', 'Ähre')
    """
    return name.translate(_FOLDING)


def are_clear(names: Sequence[str]) -> bool:
    """Whether there are columns, and all have names that SQL tells apart.

    >>> are_clear(["a", "b"]), are_clear(["a", "A"]), are_clear([""])
    (True, False, False)
    """
    return 0 < len(names) == len(set(map(folded, names))) and all(names)


def selected(names: Sequence[str], wanted: frozenset[str] | None, table: str) -> list[int]:
    """Give the positions of the columns that a query reads; raises ``InterfaceError`` where two have one name.

    Raises it too where one has no name, and where the query reads whatever there is and there is nothing: the engine
    would call either of them something.

    >>> selected(["a", "b", "c"], frozenset({"b"}), "boats")
    [1]
    """
    if not names and wanted is None:
        message = f"{table!r} has no columns"
        raise InterfaceError(message)
    places = [at for at, name in enumerate(names) if wanted is None or folded(name) in wanted]
    seen: dict[str, int] = {}
    for at in places:
        if not names[at]:
            raise _nameless(at, table)
        before = seen.setdefault(folded(names[at]), at)
        if before != at:
            raise _twice(names[before], names[at], table)
    return places


def _nameless(at: int, table: str) -> InterfaceError:
    hint = "rename it"
    return InterfaceError(f"column {at} of {table!r}, counted from 0, has no name\nHint: {hint}", hint=hint, column="")


def _twice(one: str, other: str, table: str) -> InterfaceError:
    hint = "rename one of them"
    fault = f"two columns named {one!r}"
    if one != other:
        fault = f"columns {one!r} and {other!r}, which SQL does not tell apart"
    message = f"{table!r} has {fault}\nHint: {hint}"
    return InterfaceError(message, hint=hint, column=other)
