"""Reading TPC-H's lineitem next to the peers: `make bench`, or `python -m benches.read --source mariadb`.

Each read runs in a process of its own; the clients take turns, and the medians of all rounds are printed and kept in
benches/results. `drain` reads the bytes and throws them away: the limit of a client that reads them as they come. The
patient one lets a good amount gather before each read. SQLite's is a loop in C that steps and reads every column.
"""

import argparse
import datetime as dt
import json
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import psutil

from benches.lineitem import TABLES
from benches.peers import Peer
from benches.peers import peers as peers_of
from benches.sources import SOURCES, Source

RESULTS = Path(__file__).parent / "results"
MEBIBYTE = 1 << 20
FIGURES = ("wall", "cpu", "peak", "size")

Figures = dict[str, float | None]


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", choices=SOURCES, default="postgresql")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--only", nargs="*", help='clients, or clients with a frame ("ADBC arrow"); all by default')
    arguments = parser.parse_args()
    only: list[str] = arguments.only or []
    source = SOURCES[arguments.source]
    with source.open(arguments.scale) as place:
        peers = [
            peer
            for peer in peers_of(place.url)
            if not only or peer.client == peer.limit or peer.client.startswith("drain") or named(peer, only)
        ]
        report = {
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
            "machine": machine(),
            "server": place.title,
            "scale": arguments.scale,
            "rounds": arguments.rounds,
            "tables": {table: compare(peers, table, place.url, arguments.rounds) for table in TABLES},
            "select_1": fresh_connections(source, place.url),
        }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"read-{arguments.source}.json").write_text(json.dumps(report, indent=2) + "\n")
    print(markdown(report))


def named(peer: Peer, only: list[str]) -> bool:
    """Tell whether the client, or the client with its frame, was asked for."""
    return peer.client in only or f"{peer.client} {peer.frame}" in only


def machine() -> str:
    """Say what this is measured on."""
    memory = round(psutil.virtual_memory().total / (1 << 30))
    system = f"{platform.system()} {platform.machine()}, {psutil.cpu_count()} cores, {memory} GiB"
    return f"{system}, Python {platform.python_version()}"


def compare(peers: list[Peer], table: str, url: str, rounds: int) -> list[dict[str, object]]:
    """Return each peer's median figures on one table, drain's ratio next to them."""
    runs: dict[tuple[str, str], list[Figures]] = {(peer.client, peer.frame): [] for peer in peers}
    for number in range(rounds):
        for peer in peers:
            sys.stderr.write(f"{table}, round {number + 1}: {peer.client} to {peer.frame}\n")
            runs[peer.client, peer.frame].append(measure(peer, f"SELECT * FROM {table}", url))
    medians = {key: {name: median(run[name] for run in all_runs) for name in FIGURES} for key, all_runs in runs.items()}
    rows: list[dict[str, object]] = []
    for peer in peers:
        figures, limit = medians[peer.client, peer.frame], medians[peer.limit, "-"]
        ratios = {f"{name}_ratio": ratio(figures, limit, name) for name in ("wall", "cpu")}
        rows.append({"client": peer.client, "frame": peer.frame, **figures, **ratios})
    return rows


def measure(peer: Peer, query: str, url: str) -> Figures:
    """Run one read; a client that fails has no figures."""
    command = [sys.executable, "-W", "ignore", "-m", "benches.measure", peer.client, peer.frame, query, url]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        sys.stderr.write(f"{peer.client} failed: {run.stderr.strip().splitlines()[-1:]}\n")
        return dict.fromkeys(FIGURES)
    figures: Figures = json.loads(run.stdout.splitlines()[-1])
    return figures


def median(values: object) -> float | None:
    """Return the median of what was measured."""
    measured = [value for value in values if value is not None]  # type: ignore[attr-defined]
    return statistics.median(measured) if measured else None


def ratio(figures: Figures, limit: Figures, name: str) -> float | None:
    """Return a figure over the limit's."""
    mine, best = figures[name], limit[name]
    return mine / best if mine is not None and best else None


def fresh_connections(source: Source, url: str, count: int = 200) -> dict[str, float]:
    """Return the median seconds of connecting, SELECT 1 and closing; the clients take turns."""
    with source.fresh(url) as clients:
        seconds: dict[str, list[float]] = {name: [] for name in clients}
        for _ in range(count):
            for name, client in clients.items():
                start = time.perf_counter()
                client()
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(measured) for name, measured in seconds.items()}


def markdown(report: dict[str, object]) -> str:
    """Return the report as the README shows it."""
    lines = [f"{report['date']}, {report['machine']}, {report['server']}, medians of {report['rounds']}", ""]
    tables: dict[str, list[dict[str, object]]] = report["tables"]  # type: ignore[assignment]
    for table, rows in tables.items():
        lines += [
            f"| {table} | frame | seconds | x drain | CPU seconds | x drain | peak MiB | frame MiB |",
            "|---|---|---:|---:|---:|---:|---:|---:|",
            *(line(row) for row in rows),
            "",
        ]
    fresh: dict[str, float] = report["select_1"]  # type: ignore[assignment]
    lines += ["| `SELECT 1` on a fresh connection | milliseconds |", "|---|---:|"]
    lines += [f"| {name} | {seconds * 1000:.2f} |" for name, seconds in fresh.items()]
    return "\n".join(lines)


def line(row: dict[str, object]) -> str:
    """Return one client's row."""

    def number(name: str, unit: int = 1, digits: int = 2) -> str:
        value = row[name]
        return f"{value / unit:,.{digits}f}" if isinstance(value, int | float) else "-"

    cells = [number("wall"), number("wall_ratio"), number("cpu"), number("cpu_ratio")]
    cells += [number("peak", MEBIBYTE, 0), number("size", MEBIBYTE, 0)]
    return f"| {row['client']} | {row['frame']} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
