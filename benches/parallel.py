"""Reading in parts next to the peers: `make bench`, or `python -m benches.parallel --only parts skew`.

Each read runs in a process of its own; the clients take turns, and the medians of all rounds are printed and kept in
benches/results, section by section.
"""

import argparse
import datetime as dt
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benches import growth, links, parts, scans, skew
from benches.lineitem import measured_server
from benches.markdown import Goal, remarks
from benches.read import RESULTS, machine
from benches.turns import Effort
from tests.servers import Missing, PostgreSQL

KEPT = RESULTS / "parallel.json"


@dataclass(frozen=True)
class Section:
    """One question, and what answers it."""

    title: str
    measure: Callable[[PostgreSQL, Effort], dict[str, Any]]
    markdown: Callable[[dict[str, Any]], list[str]]


SECTIONS = {
    "parts": Section("Parts", parts.measure, parts.markdown),
    "blocks": Section("Blocks scanned", scans.measure, scans.markdown),
    "skew": Section("Skew", skew.measure, skew.markdown),
    "scale": Section("Scale", growth.measure, growth.markdown),
    "links": Section("Links", links.measure, links.markdown),
}


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), metavar="SECTION")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1)
    arguments = parser.parse_args()
    effort = Effort(arguments.scale, arguments.rounds)
    try:
        with measured_server() as server:
            for name in (name for name in SECTIONS if name in arguments.only):
                report = measured(name, server, effort)
                keep(name, report)
                print(markdown(name, report), flush=True)
    except Missing as error:
        sys.exit(str(error))


def measured(name: str, server: PostgreSQL, effort: Effort) -> dict[str, Any]:
    """Measure a section, and say when, where and how."""
    start = time.monotonic()
    report = SECTIONS[name].measure(server, effort)
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": machine(),
        "server": f"PostgreSQL {server.version}",
        "scale": effort.scale,
        "minutes": (time.monotonic() - start) / 60,
        **report,
    }


def keep(name: str, report: dict[str, Any]) -> None:
    """Put a section among those that are there."""
    RESULTS.mkdir(exist_ok=True)
    there = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    there[name] = report
    KEPT.write_text(json.dumps({name: there[name] for name in SECTIONS if name in there}, indent=2) + "\n")


def markdown(name: str, report: dict[str, Any]) -> str:
    """Return a section as the documentation shows it."""
    rounds = sorted({row["rounds"] for row in report["rows"]})
    place = f"{report['machine']}, {report['server']}, scale factor {report['scale']:g}"
    how = f"medians of {' and '.join(map(str, rounds))}, in {report['minutes']:.1f} minutes"
    goals = [str(Goal(**goal)) for goal in report.get("goals", ())]
    head = [f"## {SECTIONS[name].title}", "", f"{report['date']}, {place}; {how}.", ""]
    lines = [*head, *SECTIONS[name].markdown(report), *goals, *remarks(report["rows"])]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
