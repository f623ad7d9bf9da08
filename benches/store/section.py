"""A section of the measurements: the clients' work, and what was to be reached."""

import dataclasses
from collections.abc import Callable, Iterator

from benches.markdown import Goal, cell

MEBIBYTE = 1 << 20
#: The figures of each client by name.
Figures = dict[str, float | None]
#: A client's work: takes PostgreSQL's URL, where it needs that.
Work = Callable[[str], Figures]
Clients = dict[str, Figures]
#: The heads and the lines of a table.
Lines = tuple[list[str], list[list[str]]]


def over(one: float | None, other: float | None) -> float | None:
    """Return a figure as a multiple of another."""
    return one / other if one is not None and other else None


def by_client(section: str, clients: Clients) -> Lines:
    """Return a line for each client."""
    names = list(dict.fromkeys(name for figures in clients.values() for name in figures))
    lines = [[client, *(_number(name, figures.get(name)) for name in names)] for client, figures in clients.items()]
    return [section, *map(_head, names)], lines


def _head(name: str) -> str:
    if name in {"anonymous", "bytes"}:
        return f"{name}, MiB"
    return name if name in {"seconds", "chunks", "MB/s"} else f"{name}, s"


def _number(name: str, value: float | None) -> str:
    if name in {"anonymous", "bytes"}:
        return cell(value, digits=0, unit=MEBIBYTE)
    return cell(value, digits=0 if name in {"chunks", "MB/s"} else 4)


@dataclasses.dataclass(frozen=True)
class Section:
    """The work that is measured, the goals that it has, and the table that is printed."""

    work: dict[str, Work]
    goals: Callable[[Clients], Iterator[Goal]]
    lines: Callable[[str, Clients], Lines] = by_client
