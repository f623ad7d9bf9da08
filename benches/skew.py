"""Splitting by a column whose values are uneven: 80% of the rows have one of five keys."""

import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

from benches.lineitem import kept
from benches.markdown import Goal, cell, table
from benches.turns import Client, Effort, Row, Turn, find, in_parts, over, take_turns
from tests.servers import Endpoint, PostgreSQL

ROWS = 6_000_000
EVEN = "(number * 7919 % 1000003)::integer"
#: The tables, whose rows are the same but for their keys, and lie in no order of them.
KEYS = {"even": EVEN, "skewed": f"CASE WHEN number % 10 < 8 THEN (number / 10 % 5)::integer ELSE {EVEN} END"}
COUNTS = (2, 4)
LONGSHORE = Client("longshore", "arrow", (1, *COUNTS), "key")
CLIENTS = (LONGSHORE, Client("ConnectorX", "arrow", COUNTS, "key"))


def measure(server: PostgreSQL, effort: Effort) -> dict[str, Any]:
    """Measure both tables, split by the key."""
    number = round(ROWS * effort.scale)
    url = kept(f"keys_{number}", server, partial(_load, number, server))
    turns = [
        Turn(client, count, f"SELECT * FROM {case}", url, case=case)
        for client in CLIENTS
        for count in client.counts
        for case in KEYS
    ]
    rows = take_turns(turns, effort.rounds)
    return {"table_rows": number, "rows": rows, "goals": [asdict(goal) for goal in goals(in_parts(rows))]}


def _load(rows: int, server: Endpoint, database: str) -> None:
    for name, key in KEYS.items():
        sys.stderr.write(f"loading {rows:,} rows with the key {name}\n")
        sql = f"""
            CREATE TABLE {name} AS
            SELECT {key} AS key, number, number / 7.0::double precision AS amount, md5(number::text) AS word
            FROM generate_series(1, {rows}::bigint) AS numbers (number);
            VACUUM (FREEZE, ANALYZE) {name};
            CHECKPOINT
        """
        server.psql(sql, database=database)


def goals(rows: list[Row]) -> Iterator[Goal]:
    """Compare the skewed key with the even one."""
    for count in COUNTS:
        figure = _skewed_over_even(rows, LONGSHORE, count)
        yield Goal(f"longshore, {count} parts, skewed over even", figure, at_most=1.3)


def _skewed_over_even(rows: list[Row], client: Client, count: int) -> float | None:
    even, skewed = (find(rows, client, count, case) for case in KEYS)
    return over(skewed, even)


def markdown(report: dict[str, Any]) -> list[str]:
    """Show seconds of both tables, side by side."""
    rows: list[Row] = report["rows"]
    lines = []
    for client in CLIENTS:
        for count in client.counts:
            seconds = [cell(find(rows, client, count, case).get("wall")) for case in KEYS]
            lines.append([client.name, str(count), *seconds, cell(_skewed_over_even(rows, client, count))])
    text = (
        f"{report['table_rows']:,} rows of a key and three more columns, without an index, read to Arrow in parts by"
        " the key. In the skewed table, 80% of the rows have one of five keys. One part is the plain read."
    )
    heads = ["client", "parts", "even: seconds", "skewed: seconds", "skewed over even"]
    return [text, "", *table(heads, lines, texts=1)]
