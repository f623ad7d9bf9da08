"""How a caller wants a read to be split, in the core's words."""

import os
from collections.abc import Sequence
from typing import Any, Literal, TypedDict

from longshore.errors import InterfaceError
from longshore.texts import display, name_text

__all__ = ["Number", "Partition", "partition", "unasked"]

Number = int | Literal["auto"]

#: Parts that no one asked for by number: more than this wins nothing, and servers have other clients.
_MOST = 8
#: A list's queries are read this many at once even where there are fewer cores: the server works, too.
_LIST = 4
#: A caller may ask for more parts than any server has connections, but not for a number that is a mistake.
_LIMIT = 4096
_ENDS = 2


class Partition(TypedDict):
    """A split: the parts that the caller wants, or the most that the source may choose, and by which column."""

    number: int | None
    most: int | None
    unasked: bool
    on: str | None
    range: tuple[Any, Any] | None


def partition(query: object, on: str | None, number: Number | None, range_: Sequence[Any] | None) -> Partition | None:
    """Give the split that the arguments ask for; None for a read over one connection.

    Raises ``InterfaceError`` for arguments that contradict each other.
    """
    on, number = _column(on), _number(number)
    ends = _ends(range_, on)
    queries = 1 if isinstance(query, str) or not isinstance(query, Sequence) else len(query)
    if queries != 1 and on is not None:
        message = "a list of queries is its own partitioning: give either the list or partition_on"
        raise InterfaceError(message)
    if number is None and queries > 1:
        return _partition(most=min(queries, max(_LIST, _cores())))
    if on is None and number in {None, 1}:
        return None
    if isinstance(number, int):
        return _partition(number=number, on=on, range_=ends)
    return _partition(most=min(_MOST, _cores()), on=on, range_=ends)


def unasked() -> Partition:
    """Give the split of a whole result for which no one asked: a source whose readers burden no one may take it."""
    return _partition(most=min(_MOST, _cores()), unasked=True)


def _partition(
    *,
    number: int | None = None,
    most: int | None = None,
    unasked: bool = False,
    on: str | None = None,
    range_: tuple[Any, Any] | None = None,
) -> Partition:
    return Partition(number=number, most=most, unasked=unasked, on=on, range=range_)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _column(on: object) -> str | None:
    if on is None:
        return None
    if isinstance(on, str):
        return name_text(on, "partition_on")
    message = f"partition_on is the name of a column of the result, not {display(on)}"
    raise InterfaceError(message)


def _number(number: object) -> Number | None:
    if number is None:
        return None
    # An array would be compared element by element.
    if isinstance(number, str) and number == "auto":
        return "auto"
    if isinstance(number, int) and not isinstance(number, bool) and 0 < number <= _LIMIT:
        return number
    message = f'partition_num is a number of parts from 1 to {_LIMIT}, or "auto", not {display(number)}'
    raise InterfaceError(message)


def _ends(range_: object, on: str | None) -> tuple[Any, Any] | None:
    if range_ is None:
        return None
    if on is None:
        message = "partition_range needs partition_on: the column whose values it tells"
        raise InterfaceError(message)
    if not isinstance(range_, Sequence) or isinstance(range_, str) or len(range_) != _ENDS:
        message = f"partition_range is the column's lowest and highest value, not {display(range_)}"
        raise InterfaceError(message)
    for end in range_:
        if isinstance(end, str):
            name_text(end, "partition_range")
    return (range_[0], range_[1])
