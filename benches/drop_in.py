"""`longshore.asyncpg` next to asyncpg-rkt: `python -m benches.drop_in`.

Each fetch of `benches.asyncpg` is repeated in a process of its own; the two libraries take turns, and the medians of
all rounds are printed and kept in benches/results. asyncpg-rkt needs another NumPy: it has an environment of its own,
which is made once and stays in the cache.

    python -m benches.drop_in --rows 100 --rounds 5
"""

import argparse
import datetime as dt
import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

from benches.asyncpg import ROWS, WAYS
from benches.markdown import Goal, cell, table
from benches.read import MEBIBYTE, RESULTS, machine, median
from tests.servers import PostgreSQL, cache

OURS, RKT = "longshore.asyncpg", "asyncpg-rkt 0.27.3"
#: pytest-benchmark is for a reader who measures it there.
PACKAGES = ["asyncpg-rkt==0.27.3", "numpy==1.26.4", "pytest", "pytest-benchmark"]
FIGURES = ("wall", "cpu", "peak", "size")
#: Fewer rows are hardly more than the exchange itself, and a fetch's own needs are no less than their memory.
WORTH_TIMING, LONG, WORTH_WEIGHING = 1_000, 10_000, 50_000

Figures = dict[str, float | None]
#: By library and way.
Section = dict[str, dict[str, Figures]]


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="*", type=int, choices=ROWS, default=ROWS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of fetching in each process")
    arguments = parser.parse_args()
    file = RESULTS / "asyncpg.json"
    # What was not asked for stays as it was.
    report: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    libraries = {OURS: Path(sys.executable), RKT: peer()}
    with PostgreSQL() as server:
        for rows in arguments.rows:
            report[f"{rows:,} rows"] = {
                "date": dt.datetime.now(dt.UTC).date().isoformat(),
                "machine": machine(),
                "command": f"python -m benches.drop_in --rows {rows} --rounds {arguments.rounds}",
                "server": f"PostgreSQL {server.version}",
                "figures": compared(libraries, server.url(), rows, arguments.rounds, arguments.seconds),
            }
    RESULTS.mkdir(exist_ok=True)
    file.write_text(json.dumps(report, indent=2) + "\n")
    print("\n".join(line for title, part in report.items() for line in shown(title, part)))


def peer() -> Path:
    """Return the Python of an environment that has asyncpg-rkt."""
    home = cache() / "asyncpg-rkt"
    python, made = home / "bin" / "python", home / "made"
    if not made.exists():
        venv.create(home, clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        made.touch()
    return python


def compared(libraries: dict[str, Path], url: str, rows: int, rounds: int, seconds: float) -> Section:
    """Return the medians of both libraries' figures, way by way."""
    section: Section = {library: {} for library in libraries}
    for way in WAYS:
        sys.stderr.write(f"{rows:,} rows: {way}\n")
        runs: dict[str, list[Figures]] = {library: [] for library in libraries}
        for _ in range(rounds):
            for library, python in libraries.items():
                runs[library].append(measured(python, url, way, rows, seconds))
        for library, all_runs in runs.items():
            section[library][way] = {name: median(run[name] for run in all_runs) for name in FIGURES}
    return section


def measured(python: Path, url: str, way: str, rows: int, seconds: float) -> Figures:
    """Run one process; its threads for linear algebra, which wait by working, would count as the client's."""
    environment = {**os.environ, "LONGSHORE_POSTGRESQL_URL": url, "OPENBLAS_NUM_THREADS": "1"}
    command = [str(python), "-W", "ignore", "-m", "benches.asyncpg", way, str(rows), str(seconds)]
    run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    figures: Figures = json.loads(run.stdout)
    return figures


def shown(title: str, part: dict[str, Any]) -> list[str]:
    """Return one number of rows as tables, with what was to be reached below them."""
    section: Section = part["figures"]
    heads = [title, *(f"{library}, {name}" for name in ("CPU ms", "ms", "peak MiB") for library in section)]
    units = {"cpu": 1e-3, "wall": 1e-3, "peak": MEBIBYTE}
    lines = [
        [
            way,
            *(
                cell(section[library][way][name], digits=3, unit=unit)
                for name, unit in units.items()
                for library in section
            ),
        ]
        for way in WAYS
    ]
    return [
        f"{part['date']}, {part['machine']}, {part['server']}: `{part['command']}`",
        "",
        *table(heads, lines, texts=1),
        *map(str, goals(int(title.partition(" ")[0].replace(",", "")), section)),
        "",
    ]


def goals(rows: int, section: Section) -> list[Goal]:
    """Return what fetches of so many rows were to reach."""
    ours, theirs = section[OURS], section[RKT]
    found: list[Goal] = []
    for way in ("numpy", "block"):
        mine = ours[way]
        most = 0.6 if rows >= LONG else 1
        found.append(Goal(f"{way}: CPU over asyncpg-rkt", ratio(mine["cpu"], theirs[way]["cpu"]), at_most=most))
        if rows >= WORTH_TIMING:
            found.append(Goal(f"{way}: seconds over dummy", ratio(mine["wall"], ours["dummy"]["wall"]), at_most=1.1))
        if rows >= WORTH_WEIGHING:
            found.append(Goal(f"{way}: peak over the array", ratio(mine["peak"], mine["size"]), at_most=1.2))
    return found


def ratio(mine: float | None, other: float | None) -> float | None:
    """Return one figure over another, where both were measured."""
    return mine / other if mine is not None and other else None


if __name__ == "__main__":
    main()
