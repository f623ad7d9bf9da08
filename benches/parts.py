"""Reading in parts: seconds, processor seconds and peak memory of 1 to 16 parts."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import Any

from benches.lineitem import MEBIBYTE, loaded
from benches.markdown import Goal, by_parts, cell
from benches.turns import Client, Effort, Row, Turn, counted, find, in_parts, over, take_turns
from tests.servers import PostgreSQL

QUERY = "SELECT * FROM lineitem"
COLUMN = "l_orderkey"
COUNTS = (1, 2, 4, 8, 16)
SEVERAL = COUNTS[1:]
DRAIN = Client("drain", "-", COUNTS)
LONGSHORE = Client("longshore", "arrow", COUNTS)
#: As one part it would be the plain read again.
LONGSHORE_ON = Client("longshore", "arrow", SEVERAL, COLUMN)
CONNECTORX = Client("ConnectorX", "arrow", COUNTS, COLUMN)
CLIENTS = (
    DRAIN,
    Client("drain, patient", "-", COUNTS),
    LONGSHORE,
    LONGSHORE_ON,
    CONNECTORX,
    Client("longshore", "pandas", COUNTS),
    Client("ConnectorX", "pandas", COUNTS, COLUMN),
)
#: The number of parts that the goals are about, which is measured more often.
STEADY = 2
#: The columns of a table: each figure's unit and its digits.
SHOWN = {"wall": ("seconds", 1, 2), "cpu": ("CPU seconds", 1, 2), "peak": ("peak MiB", MEBIBYTE, 0)}


def measure(server: PostgreSQL, effort: Effort) -> dict[str, Any]:
    """Measure every client with every number of parts."""
    url = loaded(effort.scale, server)
    # ConnectorX takes a minute and more for 8 and 16 parts, which no one needs on two cores.
    rounds = {STEADY: effort.rounds + 2, 8: 1, 16: 1}
    turns = [
        Turn(client, count, QUERY, url, rounds=rounds.get(count))
        for count in COUNTS
        for client in CLIENTS
        if count in client.counts
    ]
    rows = take_turns(turns, effort.rounds)
    return {"rows": rows, "goals": [asdict(goal) for goal in goals(in_parts(rows))]}


def goals(rows: list[Row]) -> Iterator[Goal]:
    """Compare two parts with the limit, and with ConnectorX at its best."""
    limit = find(rows, DRAIN, STEADY)
    for frame in ("arrow", "pandas"):
        mine = find(rows, Client("longshore", frame, COUNTS), STEADY)
        yield Goal(f"longshore {frame}, 2 parts, over drain, 2 parts", over(mine, limit), at_most=1.2)
        best = _fastest(row for row in rows if (row["client"], row["frame"]) == ("ConnectorX", frame))
        way = counted(best.get("parts", 1))
        yield Goal(
            f"ConnectorX {frame} at its best, {way}, over longshore {frame}, 2 parts", over(best, mine), at_least=2.5
        )


def _fastest(rows: Iterable[Row]) -> Row:
    return min((row for row in rows if row["wall"] is not None), key=lambda row: float(row["wall"]), default={})


def markdown(report: dict[str, Any]) -> list[str]:
    """Show one table for each figure, and the seconds next to drain's."""
    rows: list[Row] = report["rows"]
    rounds = {count: find(rows, DRAIN, count).get("rounds") for count in COUNTS}
    text = (
        f"`{QUERY}`. One part is the plain read. A client without a column splits by ranges of the table's blocks."
        f" Reads of each: {', '.join(f'{number} in {counted(count)}' for count, number in rounds.items())}."
    )
    lines = [text, ""]
    for figure, (name, _, _) in SHOWN.items():
        lines += by_parts(name, CLIENTS, COUNTS, _shown(rows, figure))
    return lines + by_parts(
        "seconds over drain's in as many parts",
        CLIENTS[1:],
        COUNTS,
        lambda client, count: cell(over(find(rows, client, count), find(rows, DRAIN, count))),
    )


def _shown(rows: list[Row], figure: str) -> Callable[[Client, int], str]:
    _, unit, digits = SHOWN[figure]
    return lambda client, count: cell(find(rows, client, count).get(figure), unit=unit, digits=digits)
