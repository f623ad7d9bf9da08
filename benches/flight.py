"""Flight SQL: TPC-H's lineitem at scale factor 1, decimals as floats, over TLS: `python -m benches.flight`.

The clients read from one server of ours, over DuckDB; the servers are read by one client, `drain`, which throws the
bytes away: ours over DuckDB, ours over a store, whose mapped batches are sent as they are, and one of pyarrow's that
has the same batches in memory; the gateway over PostgreSQL is next to `read_sql` itself. A client is a process, which
reads ten times, as the published comparison does: the first read, which has what is done once for a process in it, is
told apart, and the figures are the middle ones of the others. Python's start and imports are in none. The processes
take turns. JDBC reads once, and a part of the rows, for its ways take minutes: its figures are for so many rows as the
others read.

    python -m benches.flight --rounds 3 --loops 10 --only clients servers gateway jdbc
"""

import argparse
import contextlib
import datetime as dt
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import psutil
import pyarrow as pa

from benches import sql_tables
from benches.lineitem import loaded, measured_server, say
from benches.markdown import cell, table
from benches.read import RESULTS, machine
from tests.certificates import Certificates

QUERY = "SELECT * FROM lineitem_float"
NUMBERS = ("l_quantity", "l_extendedprice", "l_discount", "l_tax")
ROWS = 6_001_215
#: The rows that JDBC reads.
BY_ROWS, BY_ARROW = 20_000, 500_000
#: The kinds of measurement, and the figure that the others are compared with.
GROUPS = {"clients": "drain", "servers": "pyarrow.flight's server", "gateway": "read_sql itself", "jdbc": ""}


@dataclass(frozen=True)
class Run:
    """A process that reads: its command, the process that serves it, and the part of all rows that a read has."""

    command: list[str]
    server: psutil.Process | None = None
    part: float = 1.0


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="the processes of each")
    parser.add_argument("--loops", type=int, default=10, help="the reads of each process, of which the first is apart")
    parser.add_argument("--scale", type=float, default=1, help="that of the table behind the gateway")
    parser.add_argument("--only", nargs="*", choices=GROUPS, default=list(GROUPS))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        groups = made(Path(scratch), stack, set(arguments.only), arguments)
        figures = {name: compared(runs, 1 if name == "jdbc" else arguments.rounds) for name, runs in groups.items()}
    kept = RESULTS / "flight.json"
    report: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    for name, found in figures.items():
        report[name] = {
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
            "rounds": 1 if name == "jdbc" else arguments.rounds,
            "loops": 1 if name == "jdbc" else arguments.loops,
            "figures": found,
        }
        if name == "gateway":
            report[name]["scale"] = arguments.scale
    report["machine"] = machine()
    RESULTS.mkdir(exist_ok=True)
    kept.write_text(json.dumps(report, indent=2) + "\n")
    print(markdown(report))


def made(
    scratch: Path, stack: contextlib.ExitStack, wanted: set[str], arguments: argparse.Namespace
) -> dict[str, dict[str, Run]]:
    """Start the servers, and return the reads of each group."""
    files = Certificates.make(scratch / "tls")
    groups: dict[str, dict[str, Run]] = {}

    def read(way: str, place: str) -> list[str]:
        return ["benches.flight_read", way, place, QUERY, str(arguments.loops)]

    engine, url = stack.enter_context(serving(f"duckdb:///{database(scratch)}", files))
    if "clients" in wanted:
        ways = ("drain", "longshore", "longshore, 2 endpoints", "adbc-driver-flightsql")
        groups["clients"] = {way: Run(read(way, url), engine) for way in ways}
    if "servers" in wanted:
        memory, place = stack.enter_context(from_memory(scratch, url, files))
        groups["servers"] = {"pyarrow.flight's server": Run(read("drain", place), memory)}
        groups["servers"]["ours, over DuckDB"] = Run(read("drain", url), engine)
        lake, place = stack.enter_context(serving(stored(scratch, url), files))
        groups["servers"]["ours, over a store"] = Run(read("drain", place), lake)
    if "gateway" in wanted:
        source = loaded(arguments.scale, stack.enter_context(measured_server()))
        gateway, place = stack.enter_context(serving(source, files))
        groups["gateway"] = {"read_sql itself": Run(read("longshore", source))}
        groups["gateway"]["through the gateway"] = Run(read("longshore", place), gateway)
    if "jdbc" in wanted:
        jdbc = ["benches.jdbc_flight"]
        for way, rows in (("rows", BY_ROWS), ("arrow", BY_ARROW)):
            run = Run([*jdbc, way, url, f"{QUERY} LIMIT {rows}"], engine, rows / ROWS)
            groups.setdefault("jdbc", {})[f"flight-sql-jdbc-driver, {way}"] = run
    return groups


def database(scratch: Path) -> Path:
    """Return a DuckDB file with the table."""
    file = scratch / "lineitem.duckdb"
    say("loading lineitem")
    with duckdb.connect(str(file)) as connection:
        floats = ", ".join(f"{name}::DOUBLE AS {name}" for name in NUMBERS)
        source = f"read_parquet('{sql_tables.lineitem()}')"
        connection.execute(f"CREATE TABLE lineitem_float AS SELECT * REPLACE ({floats}) FROM {source}")
    return file


def stored(scratch: Path, url: str) -> str:
    """Return the URL of a store with the table of a server."""
    import longshore

    lake = f"store:///{scratch / 'lake'}"
    longshore.copy(QUERY, url, "lineitem_float", lake)
    return lake


@contextlib.contextmanager
def serving(served: str, files: Certificates) -> Iterator[tuple[psutil.Process, str]]:
    """Serve by the command, and give the process and the clients' URL."""
    tls = [str(files.server), str(files.server_key)]
    command = [sys.executable, "-m", "longshore", "serve", served, "--port", "0", "--tls", *tls]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            url = json.loads(first_line(process))["url"]
            yield psutil.Process(process.pid), f"{url}?tls_ca={files.authority}"
        finally:
            process.terminate()


@contextlib.contextmanager
def from_memory(scratch: Path, url: str, files: Certificates) -> Iterator[tuple[psutil.Process, str]]:
    """Serve the batches of a server by one of pyarrow's that has them in memory."""
    import longshore

    kept = scratch / "lineitem.arrow"
    batches = longshore.read_sql(QUERY, url, return_type="arrow_stream")
    reader = pa.RecordBatchReader.from_stream(batches)
    with pa.OSFile(str(kept), "wb") as sink, pa.ipc.new_file(sink, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
    command = [sys.executable, "-m", "benches.flight_server", str(kept), str(files.server), str(files.server_key)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            port = int(first_line(process))
            yield psutil.Process(process.pid), f"grpc+tls://127.0.0.1:{port}?tls_ca={files.authority}"
        finally:
            process.terminate()


def first_line(process: "subprocess.Popen[str]") -> str:
    """Return what a server says when it listens."""
    if process.stdout is None:
        raise BrokenPipeError
    return process.stdout.readline()


def compared(runs: dict[str, Run], rounds: int) -> dict[str, dict[str, float]]:
    """Return the figures of each."""
    found: dict[str, list[list[dict[str, float]]]] = {name: [] for name in runs}
    for number in range(rounds):
        for name, run in runs.items():
            sys.stderr.write(f"round {number + 1}: {name}\n")
            found[name].append(measured(run))
    return {name: summary(each) for name, each in found.items()}


def summary(processes: list[list[dict[str, float]]]) -> dict[str, float]:
    """Return the figures of processes: those of their first reads, and the middle and the least ones of the others."""
    # One that has read once has no others.
    others = [read for reads in processes for read in reads[1:] or reads]
    figures = {key: statistics.median(read[key] for read in others) for key in ("wall", "cpu", "server")}
    for key in ("wall", "cpu"):
        figures[f"first {key}"] = statistics.median(reads[0][key] for reads in processes)
        figures[f"least {key}"] = min(read[key] for read in others)
    return figures


def measured(run: Run) -> list[dict[str, float]]:
    """Run one process, and return the figures of each of its reads for all rows."""
    before = seconds(run.server)
    command = [sys.executable, "-W", "ignore", "-m", *run.command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    reads: list[dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    server = (seconds(run.server) - before) / len(reads)
    return [{name: value / run.part for name, value in {**read, "server": server}.items()} for read in reads]


def seconds(process: psutil.Process | None) -> float:
    """Return the CPU seconds of a server."""
    if process is None:
        return 0.0
    times = process.cpu_times()
    return float(times.user + times.system)


def markdown(report: dict[str, Any]) -> str:
    """Return the report as tables."""
    lines = [report["machine"], ""]
    for group, base_name in GROUPS.items():
        if group not in report:
            continue
        figures = report[group]["figures"]
        base = figures.get(base_name)
        heads = [group, "seconds", "least", "first", "x", "CPU seconds", "least", "first", "x", "server's CPU seconds"]
        rows = []
        for name, each in figures.items():
            texts = [name]
            for key in ("wall", "cpu"):
                ratio = each[key] / base[key] if base and base[key] else None
                texts += map(cell, (each[key], each.get(f"least {key}"), each.get(f"first {key}"), ratio))
            rows.append([*texts, cell(each["server"])])
        lines += table(heads, rows, texts=1)
    return "\n".join(lines)


if __name__ == "__main__":
    main()
