"""Writing TPC-H's lineitem next to the peers: `python -m benches.write --source postgresql`.

The rows lie ready as an Arrow table. Each write runs in a process of its own, and counts from the call to its return;
the clients take turns, and medians are printed and kept in benches/results. The limit is the server's own load of the
same rows from a file, or in SQLite Python's own loop of bind and step. `parallel=2` has a limit of its own: two such
loads at once, of half the rows each.

    python -m benches.write --only "COPY FROM two files at once" "longshore, parallel=2"
"""

import argparse
import datetime as dt
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

import longshore
from benches import lineitem, lineitem_mariadb
from benches.read import RESULTS, machine
from benches.writers import SOURCES, Writer
from tests.servers import cache

FIGURES = ("wall", "cpu")
#: Rows that are written: as many as the peers' figures are known for.
ROWS = {"postgresql": 2_000_000, "mariadb": 2_000_000, "sqlite": 500_000}


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", choices=SOURCES, default="postgresql")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", help="writers; all by default, but those that take minutes")
    arguments = parser.parse_args()
    rows = ROWS[arguments.source]
    data = ready(rows)
    with place(arguments.source) as url:
        chosen = [
            writer
            for writer in SOURCES[arguments.source]
            if (writer.name in arguments.only if arguments.only else not writer.is_slow)
        ]
        runs: dict[str, list[dict[str, float]]] = {writer.name: [] for writer in chosen}
        for number in range(arguments.rounds):
            for writer in chosen:
                sys.stderr.write(f"round {number + 1}: {writer.name}\n")
                runs[writer.name].append(measured(arguments.source, writer, data, url))
    report = {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": machine(),
        "source": arguments.source,
        "rows": rows,
        "rounds": arguments.rounds,
        "writers": {
            name: {figure: statistics.median(run[figure] for run in measured) for figure in FIGURES}
            for name, measured in runs.items()
        },
    }
    (RESULTS / f"write-{arguments.source}.json").write_text(json.dumps(report, indent=2) + "\n")
    print(markdown(report))


@contextmanager
def place(source: str) -> Iterator[str]:
    """Give the URL of an empty place."""
    if source == "postgresql":
        with lineitem.measured_server() as server:
            server.psql("DROP DATABASE IF EXISTS written WITH (FORCE); CREATE DATABASE written")
            yield server.url(database="written")
    elif source == "mariadb":
        with lineitem_mariadb.measured_mariadb() as server:
            server.sql("DROP DATABASE IF EXISTS written; CREATE DATABASE written; SET GLOBAL local_infile = 1")
            yield server.url(database="written")
    else:
        yield f"sqlite:///{cache() / 'written.sqlite'}?mode=rwc"


def ready(rows: int) -> Path:
    """Return the file that holds the first rows of lineitem in Arrow's IPC format."""
    file = cache() / f"lineitem-{rows}.arrow"
    if file.exists():
        return file
    with lineitem.measured_server() as server:
        url = lineitem.loaded(1, server)
        table = longshore.read_sql(f"SELECT * FROM lineitem LIMIT {rows}", url, return_type="arrow")
    plain = pa.schema([field.remove_metadata() for field in table.schema])
    new = file.with_suffix(".new")
    with pa.OSFile(str(new), "wb") as sink, pa.ipc.new_file(sink, plain) as writer:
        writer.write_table(table.replace_schema_metadata(None).cast(plain), max_chunksize=1 << 16)
    new.rename(file)
    return file


def measured(source: str, writer: Writer, data: Path, url: str) -> dict[str, float]:
    """Write once."""
    command = [sys.executable, "-W", "ignore", "-m", "benches.writers", source, writer.name, str(data), url]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return figures


def markdown(report: dict[str, object]) -> str:
    """Show the report as the documentation has it."""
    writers: dict[str, dict[str, float]] = report["writers"]  # type: ignore[assignment]
    limit, rows = next(iter(writers.values())), report["rows"]
    lines = [
        f"{report['date']}, {report['machine']}, {report['source']}, {rows:,} rows, medians of {report['rounds']}",
        "",
        "| writer | seconds | x limit | CPU seconds of the client |",
        "|---|---:|---:|---:|",
    ]
    lines += [
        f"| {name} | {figures['wall']:.2f} | {figures['wall'] / limit['wall']:.2f} | {figures['cpu']:.2f} |"
        for name, figures in writers.items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
