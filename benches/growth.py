"""Seconds per million rows, as the table grows."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from benches.lineitem import loaded
from benches.markdown import Goal, cell, table
from benches.parts import QUERY
from benches.turns import Client, Effort, Row, Turn, counted, find, in_parts, take_turns
from tests.servers import PostgreSQL

FACTORS = (0.1, 1, 3)
LONGSHORE = Client("longshore", "arrow", (1, 2))
MILLION = 1_000_000


def measure(server: PostgreSQL, effort: Effort) -> dict[str, Any]:
    """Measure a table a tenth as large, as large, and three times as large."""
    urls = {f"{factor * effort.scale:g}": loaded(factor * effort.scale, server) for factor in FACTORS}
    # Nothing but these tables is to be in the server's memory, which has room for the three of them.
    server.restart()
    turns = [Turn(LONGSHORE, count, QUERY, url, case=case) for case, url in urls.items() for count in LONGSHORE.counts]
    rows = take_turns(turns, effort.rounds)
    return {"cases": list(urls), "rows": rows, "goals": [asdict(goal) for goal in goals(in_parts(rows), *urls)]}


def goals(rows: list[Row], _small: str, middle: str, large: str) -> Iterator[Goal]:
    """Compare a row's time in the largest table with a row's in the middle one: the small one feels the connecting."""
    for count in LONGSHORE.counts:
        seconds, fewer = (_per_million(rows, count, case) for case in (large, middle))
        figure = seconds / fewer if seconds is not None and fewer else None
        what = f"longshore, {counted(count)}: a row's time at scale factor {large} over its time at {middle}"
        yield Goal(what, figure, at_most=1.15)


def _per_million(rows: list[Row], count: int, case: str) -> float | None:
    row = find(rows, LONGSHORE, count, case)
    number = _number(row)
    return row["wall"] / number * MILLION if number else None


def _number(row: Row) -> int | None:
    return int(row["rows"][0]) if row.get("rows") else None


def markdown(report: dict[str, Any]) -> list[str]:
    """Show seconds, and seconds per million rows."""
    rows: list[Row] = report["rows"]
    lines = []
    for case in report["cases"]:
        for count in LONGSHORE.counts:
            row = find(rows, LONGSHORE, count, case)
            numbers = [
                cell(_number(row), digits=0),
                cell(row.get("wall")),
                cell(_per_million(rows, count, case), digits=3),
            ]
            lines.append([case, counted(count), *numbers])
    heads = ["scale factor", "longshore arrow", "rows", "seconds", "per million rows"]
    return [f"`{QUERY}`.", "", *table(heads, lines, texts=2)]
