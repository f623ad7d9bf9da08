"""Reading over links of 10 Gbit/s, 1 Gbit/s and 200 Mbit/s, and over one that is 20 ms long."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benches.cable import ADDRESS, WITHIN, cable, limit
from benches.delay import LOOPBACK, delayed
from benches.lineitem import loaded
from benches.markdown import cell, table
from benches.parts import COLUMN, QUERY
from benches.turns import Client, Effort, Row, Turn, find, take_turns
from tests.servers import Missing, PostgreSQL


@dataclass(frozen=True)
class Link:
    """A link's rate as tc writes it, and how much of the table is read over it: a slow one has less to do."""

    name: str
    rate: str
    share: float = 1


LINKS = (Link("10 Gbit/s", "10gbit"), Link("1 Gbit/s", "1gbit", 0.1), Link("200 Mbit/s", "200mbit", 0.1))
LONG = "20 ms"
ROUND_TRIP = 0.02
COUNTS = (1, 2, 4)
CLIENTS = (
    Client("drain", "-", (1,)),
    Client("longshore", "arrow", COUNTS),
    Client("ConnectorX", "arrow", COUNTS, COLUMN),
)


def measure(server: PostgreSQL, effort: Effort) -> dict[str, Any]:
    """Measure every client over every link that can be had here."""
    scales = {link.name: link.share * effort.scale for link in LINKS} | {LONG: effort.scale}
    databases = {name: loaded(scale, server).rpartition("/")[2] for name, scale in scales.items()}
    left_out = []
    rows: list[Row] = []
    try:
        with cable(), _listening(server, ADDRESS):
            for link in LINKS:
                limit(link.rate)
                url = server.url(host=ADDRESS, database=databases[link.name])
                rows += take_turns(_turns(url, link.name, WITHIN), effort.rounds)
    except Missing as error:
        left_out.append(f"- Links of a bounded rate are left out: {error}.")
    with delayed(server.host, server.port, ROUND_TRIP / 2) as port:
        url = server.url(host=LOOPBACK, port=port, database=databases[LONG])
        rows += take_turns(_turns(url, LONG), effort.rounds)
    return {"scales": scales, "rows": rows, "left_out": left_out}


def _turns(url: str, case: str, within: tuple[str, ...] = ()) -> list[Turn]:
    return [Turn(client, count, QUERY, url, case=case, within=within) for client in CLIENTS for count in client.counts]


@contextlib.contextmanager
def _listening(server: PostgreSQL, address: str) -> Iterator[None]:
    """Have the server listen on one more address for a while."""
    server.config["listen_addresses"] = f"{server.host},{address}"
    server.restart()
    try:
        yield
    finally:
        del server.config["listen_addresses"]
        server.restart()


def markdown(report: dict[str, Any]) -> list[str]:
    """Show seconds: a row for each client, a column for each link."""
    rows: list[Row] = report["rows"]
    scales = {case: scale for case, scale in report["scales"].items() if any(row["case"] == case for row in rows)}
    lines = []
    for client in CLIENTS:
        for count in client.counts:
            seconds = [cell(find(rows, client, count, case).get("wall")) for case in scales]
            lines.append([client.name, client.frame, client.on or "-", str(count), *seconds])
    heads = ["seconds", "frame", "split on", "parts", *(f"{case}, scale {scale:g}" for case, scale in scales.items())]
    text = (
        f"`{QUERY}`. A bounded rate is a token bucket at the server's end of a cable into the client's own network"
        f" namespace. On the link of {LONG}, a proxy holds every byte back for half of that in each direction. One"
        " part is the plain read."
    )
    return [text, "", *table(heads, lines, texts=3), *report["left_out"]]
