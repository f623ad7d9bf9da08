"""Longshore as an ADBC driver: `python -m benches.adbc`.

Reading lineitem through Python's and Go's driver managers next to `read_sql`, PostgreSQL's own ADBC driver and pgx, and
`adbc_ingest` next to `write_sql`. Each read runs in a process of its own; the clients take turns, and medians are
printed and kept.
"""

import argparse
import datetime as dt
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import longshore.adbc
from benches.lineitem import TABLES
from benches.peers import DRIVER, POSTGRESQL
from benches.read import RESULTS, Figures, line, machine, measure, median, ratio
from benches.sources import SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable

#: The client that the others are compared with, and those that read.
LIMIT = ("longshore", "arrow")
PEERS = [
    peer for peer in (*POSTGRESQL, *DRIVER) if peer in DRIVER or (peer.client, peer.frame) in {LIMIT, ("ADBC", "arrow")}
]
#: Programs that read in Go: through the driver manager, and by pgx.
MANAGER = Path(__file__).parents[1] / "tests" / "driver" / "go"
PGX = Path(__file__).parent / "go"
FIGURES = ("wall", "cpu", "peak", "size")
INGESTED = 1_000_000


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1)
    arguments = parser.parse_args()
    with SOURCES["postgresql"].open(arguments.scale) as place, tempfile.TemporaryDirectory() as folder:
        programs = {name: Path(folder) / name for name in ("driver", "pgx")}
        for name, source in (("driver", MANAGER), ("pgx", PGX)):
            subprocess.run(["go", "build", "-o", programs[name], "."], cwd=source, check=True)  # noqa: S607
        report = {
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
            "machine": machine(),
            "server": place.title,
            "scale": arguments.scale,
            "rounds": arguments.rounds,
            "tables": {table: compare(table, place.url, programs, arguments.rounds) for table in TABLES},
            "ingested": ingested(place.url, arguments.rounds),
        }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "adbc.json").write_text(json.dumps(report, indent=2) + "\n")
    print(markdown(report))


def compare(table: str, url: str, programs: dict[str, Path], rounds: int) -> list[dict[str, object]]:
    """Return each client's median figures on one table."""
    query = f"SELECT * FROM {table}"
    clients: dict[tuple[str, str], Callable[[], Figures]] = {
        (peer.client, peer.frame): partial(measure, peer, query, url) for peer in PEERS
    }
    manager = partial(go, programs["driver"], longshore.adbc.driver_path(), url, "-", query)
    clients["longshore.adbc", "Go"] = manager
    clients["longshore.adbc", "Go, two parts"] = partial(manager, "longshore.partition_num", "2")
    clients["pgx", "Go rows"] = partial(go, programs["pgx"], url, query)
    runs: dict[tuple[str, str], list[Figures]] = {key: [] for key in clients}
    for number in range(rounds):
        for key, run in clients.items():
            sys.stderr.write(f"{table}, round {number + 1}: {' '.join(key)}\n")
            runs[key].append(run())
    medians = {key: {name: median(run[name] for run in found) for name in FIGURES} for key, found in runs.items()}
    rows: list[dict[str, object]] = []
    for (client, frame), figures in medians.items():
        ratios = {f"{name}_ratio": ratio(figures, medians[LIMIT], name) for name in ("wall", "cpu")}
        rows.append({"client": client, "frame": frame, **figures, **ratios})
    return rows


def go(program: Path, *arguments: str) -> Figures:
    """Read by a program in Go, which tells its seconds; the CPU is the whole process's."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return dict.fromkeys(FIGURES) | {"wall": float(run.stderr.split()[-1]), "cpu": cpu}


def ingested(url: str, rounds: int) -> dict[str, float]:
    """Return the median seconds of writing rows into a new table, by both ways in turns."""
    data: Any = longshore.read_sql(f"SELECT * FROM lineitem LIMIT {INGESTED}", url, return_type="arrow")

    def by_driver() -> None:
        with longshore.adbc.connect(url) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("lineitem_ingested", data, mode="create")
            connection.commit()

    ways = {
        "write_sql": lambda: longshore.write_sql(data, "lineitem_ingested", url),
        "adbc_ingest": by_driver,
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    # The manager and the library are loaded once.
    longshore.adbc.connect(url).close()
    for _ in range(rounds):
        for name, way in ways.items():
            with longshore.connect(url, autocommit=True) as connection:
                connection.execute("DROP TABLE IF EXISTS lineitem_ingested")
                start = time.perf_counter()
                way()
                seconds[name].append(time.perf_counter() - start)
                connection.execute("DROP TABLE lineitem_ingested")
    return {name: statistics.median(measured) for name, measured in seconds.items()}


def markdown(report: dict[str, Any]) -> str:
    """Return the report as tables."""
    lines = [f"{report['date']}, {report['machine']}, {report['server']}, medians of {report['rounds']}", ""]
    for table, rows in report["tables"].items():
        lines += [
            f"| {table} | into | seconds | x read_sql | CPU seconds | x read_sql | peak MiB | frame MiB |",
            "|---|---|---:|---:|---:|---:|---:|---:|",
            *(line(row) for row in rows),
            "",
        ]
    lines += [f"| {INGESTED:,} rows of lineitem into a new table | seconds |", "|---|---:|"]
    lines += [f"| {name} | {seconds:.2f} |" for name, seconds in report["ingested"].items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
