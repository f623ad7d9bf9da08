"""Blocks that the server touches for one read, by its own count: the price of splitting by a column."""

import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from benches.lineitem import loaded
from benches.markdown import Goal, by_parts, cell
from benches.parts import COLUMN, CONNECTORX, COUNTS, DRAIN, LONGSHORE, LONGSHORE_ON
from benches.turns import Effort, Row, Turn, find, in_parts, medians
from benches.turns import measure as run
from tests.servers import PostgreSQL

TABLE = "lineitem"
#: A scan touches the same blocks for two columns as for all.
QUERY = f"SELECT {COLUMN}, l_quantity FROM {TABLE}"
CLIENTS = (DRAIN, LONGSHORE, LONGSHORE_ON, CONNECTORX)
STEADY_SECONDS = 10


def measure(server: PostgreSQL, effort: Effort) -> dict[str, Any]:
    """Read once in every number of parts: the server's count is the same each time."""
    url = loaded(effort.scale, server)
    database = url.rpartition("/")[2]
    rows = []
    for count in COUNTS:
        for client in (client for client in CLIENTS if count in client.counts):
            turn = Turn(client, count, QUERY, url)
            sys.stderr.write(f"{turn}\n")
            before = touched(server, database)
            figures = run(turn)
            blocks = None if "error" in figures else touched(server, database) - before
            rows.append({**medians(turn, [figures]), "blocks": blocks})
    return {"rows": rows, "goals": [asdict(goal) for goal in goals(in_parts(rows))]}


def touched(server: PostgreSQL, database: str) -> int:
    """Return how many of the table's blocks were found or read so far, once every backend has told."""
    deadline = time.monotonic() + STEADY_SECONDS
    # A backend tells when it ends, and leaves the list of activity after that.
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    while server.psql(others, database=database) != "0":
        if time.monotonic() > deadline:
            message = "a connection outlives its client: the server's count is not complete"
            raise RuntimeError(message)
    count = f"SELECT heap_blks_hit + heap_blks_read FROM pg_statio_user_tables WHERE relname = '{TABLE}'"
    return int(server.psql(count, database=database))


def goals(rows: list[Row]) -> Iterator[Goal]:
    """Compare the parts that longshore makes by itself with one serial scan."""
    serial = find(rows, DRAIN, 1)["blocks"]
    for count in LONGSHORE.counts[1:]:
        blocks = find(rows, LONGSHORE, count).get("blocks")
        figure = None if blocks is None else blocks / serial
        yield Goal(f"longshore's own {count} parts over one serial scan", figure, at_most=1.05)


def markdown(report: dict[str, Any]) -> list[str]:
    """Show how many times the table's blocks each read touches."""
    rows: list[Row] = report["rows"]
    serial = find(rows, DRAIN, 1)["blocks"]
    lines = by_parts(
        "blocks over one serial scan's",
        CLIENTS,
        COUNTS,
        lambda client, count: cell(find(rows, client, count).get("blocks"), unit=serial),
    )
    text = f"`{QUERY}`, whose serial scan touches {serial:,} blocks. One read each, by the server's own count."
    return [text, "", *lines]
