"""The text of the sections: tables, and what was to be reached."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benches.turns import Client, Row, counted


@dataclass(frozen=True)
class Goal:
    """A figure, and the bound that it was to keep."""

    what: str
    figure: float | None
    at_most: float | None = None
    at_least: float | None = None

    @property
    def reached(self) -> bool:
        """Whether the figure is there and keeps its bound."""
        if self.figure is None:
            return False
        too_high = self.at_most is not None and self.figure > self.at_most
        too_low = self.at_least is not None and self.figure < self.at_least
        return not (too_high or too_low)

    def __str__(self) -> str:
        """Say it in one line."""
        bound = f"at most {self.at_most:g}" if self.at_most is not None else f"at least {self.at_least:g}"
        end = "reached" if self.reached else "not reached" if self.figure is not None else "not measured"
        return f"- {self.what}: {cell(self.figure)} (to reach: {bound}; {end})"


def table(heads: Sequence[str], lines: Iterable[Sequence[str]], *, texts: int) -> list[str]:
    """Return a table whose first columns, ``texts`` of them, are texts and whose others are numbers."""
    rule = ["---"] * texts + ["---:"] * (len(heads) - texts)
    return [f"| {' | '.join(heads)} |", f"|{'|'.join(rule)}|", *(f"| {' | '.join(line)} |" for line in lines), ""]


def by_parts(
    name: str, clients: Iterable[Client], counts: Sequence[int], number: Callable[[Client, int], str]
) -> list[str]:
    """Return a table with a row for each client and a column for each number of parts."""
    heads = [name, "frame", "split on", *map(counted, counts)]
    lines = [
        [client.name, client.frame, client.on or "-", *(number(client, count) for count in counts)]
        for client in clients
    ]
    return table(heads, lines, texts=3)


def cell(value: float | None, *, digits: int = 2, unit: float = 1) -> str:
    """Return a number as a table shows it."""
    return "-" if value is None else f"{value / unit:,.{digits}f}"


def remarks(rows: Iterable[Row]) -> list[str]:
    """Return a line for each thing that a client warned of or failed with."""
    lines = [f"- {row['client']}: {text}" for row in rows for text in (*row["warnings"], *row["errors"])]
    return list(dict.fromkeys(lines))
