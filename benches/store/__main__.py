"""Measure: `python -m benches.store`."""

import argparse
import contextlib
import datetime as dt
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import benches.store
import longshore
from benches.lineitem import alone, say
from benches.markdown import table
from benches.read import RESULTS, machine
from benches.sources import SOURCES
from benches.store import appends, exports, ingest, queries, upserts
from benches.store.section import Clients, Figures, Section
from benches.store.tables import prepare
from tests.servers import cache

SECTIONS: dict[str, Section] = {
    "exports": exports.SECTION,
    "ingest": ingest.SECTION,
    "queries": queries.SECTION,
    "upserts": upserts.SECTION,
    "appends": appends.SECTION,
}


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=benches.store.__doc__)
    parser.add_argument("--sections", nargs="*", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--clients", nargs="*", help="clients by name; all by default")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--one", nargs=3, metavar=("SECTION", "CLIENT", "URL"), help="one piece of work; prints its figures"
    )
    arguments = parser.parse_args()
    if arguments.one:
        section, client, url = arguments.one
        print(json.dumps(SECTIONS[section].work[client](url)))
        return
    file = RESULTS / "store.json"
    # Sections are measured apart; what was not asked for stays as it was.
    report: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    with alone(cache() / "store.lock"):
        prepare()
        for section in arguments.sections:
            report[section] = {
                "date": dt.datetime.now(dt.UTC).date().isoformat(),
                "machine": machine(),
                "rounds": arguments.rounds,
                "clients": measured(section, arguments.rounds, arguments.clients),
            }
    RESULTS.mkdir(exist_ok=True)
    file.write_text(json.dumps(report, indent=2) + "\n")
    print("\n".join(line for section, part in report.items() for line in shown(section, part)))


def measured(section: str, rounds: int, only: Sequence[str] | None) -> Clients:
    """Return the medians of each client's figures; in each round every client has its turn."""
    clients = [name for name in SECTIONS[section].work if not only or name in only]
    runs: dict[str, list[Figures]] = {name: [] for name in clients}
    with contextlib.ExitStack() as stack:
        # An installed package is compiled.
        compiled = stack.enter_context(tempfile.TemporaryDirectory())
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
        package = str(Path(longshore.__file__).parent)
        subprocess.run([sys.executable, "-m", "compileall", "-q", package], env=environment, check=True)
        url = ""
        if "PostgreSQL" in clients:
            url = stack.enter_context(SOURCES["postgresql"].open(1)).url
        for number in range(rounds):
            for name in clients:
                say(f"{section}, round {number + 1}: {name}")
                command = [sys.executable, "-W", "ignore", "-m", "benches.store", "--one", section, name, url]
                run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=environment)
                runs[name].append({} if run.returncode else json.loads(run.stdout.splitlines()[-1]))
    return {name: _medians(found) for name, found in runs.items()}


def _medians(runs: Sequence[Figures]) -> Figures:
    names = dict.fromkeys(name for run in runs for name in run)
    found = {name: [value for run in runs if (value := run.get(name)) is not None] for name in names}
    return {
        name: (min if name.endswith(queries.SAME) else statistics.median)(values) if values else None
        for name, values in found.items()
    }


def shown(section: str, part: dict[str, Any]) -> list[str]:
    """Return one section's table, with what was to be reached below it."""
    title = f"{part['date']}, {part['machine']}, TPC-H at scale factor 1, medians of {part['rounds']}"
    heads, lines = SECTIONS[section].lines(section, part["clients"])
    return [title, "", *table(heads, lines, texts=1), *map(str, SECTIONS[section].goals(part["clients"])), ""]


if __name__ == "__main__":
    main()
