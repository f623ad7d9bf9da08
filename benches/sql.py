"""SQL over Parquet files, DataFrames and a remote table next to the peers: `python -m benches.sql`.

Each engine runs a section in a process of its own; the medians of its rounds are printed and kept in benches/results.
The limit of an export is DuckDB's own into Arrow; every other figure is compared with DuckDB into pandas,
and a remote table's with the same query sent by hand.

    python -m benches.sql --sections exports --engines "longshore, pandas" chDB
"""

import argparse
import datetime as dt
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from benches.markdown import Goal, cell, table
from benches.read import RESULTS, machine
from benches.sql_peers import ENGINES
from benches.sql_remote import BY_HAND, SQL

OURS, DUCKDB, ARROW, CHDB = "longshore, pandas", "DuckDB .df()", "DuckDB .to_arrow_table()", "chDB"
REMOTE = "remote"
#: Which engines a section has: those that make a DataFrame, and what limits them.
ENGINES_OF = {
    "exports": [engine.name for engine in ENGINES],
    "queries": [OURS, DUCKDB, CHDB, "Polars"],
    "operations": [OURS, DUCKDB, CHDB, "Polars", "pandas"],
    "fixed": [OURS, DUCKDB],
    "objects": [OURS, DUCKDB],
}
ROWS = {
    "exports": [5_000_000],
    "queries": [1_000_000],
    "operations": [100_000, 1_000_000, 10_000_000],
    "fixed": [10],
    "objects": [2_000_000],
    REMOTE: [6_001_215],
}

Figures = dict[str, dict[str, float | None]]


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sections", nargs="*", choices=ROWS, default=list(ROWS))
    parser.add_argument("--engines", nargs="*", help="engines by name; all by default")
    parser.add_argument("--rows", nargs="*", type=int, help="rows of hits or of the frames")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    file = RESULTS / "sql.json"
    # Sections are measured apart; what was not asked for stays as it was.
    report: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    for section in arguments.sections:
        for rows in (section != REMOTE and arguments.rows) or ROWS[section]:
            report[f"{section}, {rows:,} rows"] = {
                "date": dt.datetime.now(dt.UTC).date().isoformat(),
                "machine": machine(),
                "command": f"python -m benches.sql --sections {section} --rows {rows} --rounds {arguments.rounds}",
                "seconds": figures(section, rows, arguments.rounds, arguments.engines),
            }
    RESULTS.mkdir(exist_ok=True)
    file.write_text(json.dumps(report, indent=2) + "\n")
    print("\n".join(line for title, part in report.items() for line in shown(title, part)))


def figures(section: str, rows: int, rounds: int, engines: Sequence[str] | None) -> Figures:
    """Run a section, each engine in a process of its own; a remote table's clients have one together."""
    if section == REMOTE:
        found: Figures = printed(section, rows, "benches.sql_remote", str(rounds))
        return found
    return {
        name: printed(f"{section}: {name}", rows, "benches.sql_measure", section, name, str(rows), str(rounds))
        for name in ENGINES_OF[section]
        if not engines or name in engines
    }


def printed(title: str, rows: int, module: str, *arguments: str) -> dict[str, Any]:
    """Give what a process of its own prints; one that fails has no figures."""
    sys.stderr.write(f"{title}, {rows:,} rows\n")
    command = [sys.executable, "-W", "ignore", "-m", module, *arguments]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    return {} if run.returncode else dict(json.loads(run.stdout.splitlines()[-1]))


def shown(title: str, part: dict[str, Any]) -> list[str]:
    """Return one section's table, with what was to be reached below it."""
    seconds: Figures = part["seconds"]
    engines = list(seconds)
    tasks = list(dict.fromkeys(task for figures in seconds.values() for task in figures))
    lines = [[task, *(cell(seconds[engine].get(task), digits=4) for engine in engines)] for task in tasks]
    heads = [f"{title}: seconds", *engines]
    return [
        f"{part['date']}, {part['machine']}: `{part['command']}`",
        "",
        *table(heads, lines, texts=1),
        *map(str, goals(title, seconds)),
        "",
    ]


def goals(title: str, seconds: Figures) -> list[Goal]:
    """Return what a section was to reach, where both sides were measured."""
    ours, duckdb, arrow, chdb = (seconds.get(name, {}) for name in (OURS, DUCKDB, ARROW, CHDB))
    match title.partition(",")[0]:
        case "exports":
            limits = [Goal(f"{task} over DuckDB to Arrow", ratio(ours, arrow, task), at_most=1.25) for task in ours]
            return limits + [Goal(f"{task} over chDB", ratio(ours, chdb, task), at_most=1) for task in ours]
        case "queries":
            return [
                Goal("geometric mean over DuckDB", mean_ratio(ours, duckdb), at_most=1.03),
                Goal("geometric mean over chDB", mean_ratio(ours, chdb), at_most=1),
            ]
        case "operations":
            pandas = seconds.get("pandas", {})
            ahead = [all((ratio(ours, other, task) or 2) < 1 for other in (chdb, pandas)) for task in ours]
            return [Goal("operations ahead of chDB and pandas", sum(ahead), at_least=11)]
        case "remote":
            mine, theirs = seconds.get(SQL, {}), seconds.get(BY_HAND, {})
            return [Goal(f"milliseconds above by hand, {task}", above(mine, theirs, task), at_most=10) for task in mine]
        case "objects":
            dicts = ratio(duckdb, ours, "uniform: dicts")
            return [
                *(
                    Goal(f"{task} over DuckDB", ratio(ours, duckdb, task), at_most=1)
                    for task in ours
                    if "dicts" not in task
                ),
                Goal("uniform dicts, times as fast as DuckDB", dicts, at_least=3),
            ]
        case _:
            task = next(iter(ours), "")
            each = above(ours, duckdb, task, queries=100)
            return [Goal("milliseconds of one query above DuckDB's own", each, at_most=1)]


def ratio(ours: dict[str, float | None], theirs: dict[str, float | None], task: str) -> float | None:
    """Return a figure over another's."""
    mine, other = ours.get(task), theirs.get(task)
    return mine / other if mine is not None and other else None


def above(ours: dict[str, float | None], theirs: dict[str, float | None], task: str, queries: int = 1) -> float | None:
    """Return by how many milliseconds a query's figure is above another's."""
    mine, other = ours.get(task), theirs.get(task)
    return (mine - other) * 1000 / queries if mine is not None and other is not None else None


def mean_ratio(ours: dict[str, float | None], theirs: dict[str, float | None]) -> float | None:
    """Return the geometric mean over the tasks that both can do."""
    ratios = [value for task in ours if (value := ratio(ours, theirs, task)) is not None]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


if __name__ == "__main__":
    main()
