"""Reads that take turns, each in a process of its own, and the medians of all their rounds."""

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from benches.drain import drain
from benches.read import median

FIGURES = ("wall", "cpu", "peak", "size")

Row = dict[str, Any]


@dataclass(frozen=True)
class Effort:
    """How much is measured: TPC-H's scale factor, and how many times each read has its turn."""

    scale: float = 1
    rounds: int = 3


@dataclass(frozen=True)
class Client:
    """Who reads into which frame, in which numbers of parts.

    `on`: the column that parts the read. Without one, the client splits by itself. One part is the plain read.
    """

    name: str
    frame: str
    counts: tuple[int, ...]
    on: str | None = None


@dataclass(frozen=True)
class Turn:
    """One read, which is measured again in every round.

    `case`: what else sets it apart, such as a link's name. `within`: the command that runs it elsewhere. `rounds`: how
    many it has, where that is not what the others have.
    """

    client: Client
    parts: int
    query: str
    url: str
    case: str = ""
    within: tuple[str, ...] = ()
    rounds: int | None = None

    def __str__(self) -> str:
        """Say who reads what."""
        way = f" on {self.client.on}" if self.client.on and self.parts > 1 else ""
        return f"{self.client.name} {self.client.frame}, {counted(self.parts)}{way} {self.case}".rstrip()


def take_turns(turns: Sequence[Turn], rounds: int) -> list[Row]:
    """Measure all, round by round, and return a row of medians for each."""
    for query, url in dict.fromkeys((turn.query, turn.url) for turn in turns):
        # So that no read is the first, which fills the server's memory for the others. A plain scan of a table larger
        # than a quarter of that memory would leave it as it is; parts do not.
        drain(query, url, partition_num=2)
    runs: dict[Turn, list[Row]] = {turn: [] for turn in turns}
    for number in range(max(turn.rounds or rounds for turn in turns)):
        for turn in (turn for turn in turns if number < (turn.rounds or rounds)):
            sys.stderr.write(f"round {number + 1}: {turn}\n")
            runs[turn].append(measure(turn))
    return [medians(turn, measured) for turn, measured in runs.items()]


def measure(turn: Turn) -> Row:
    """Run one read; of a client that fails there is only its error."""
    client = turn.client
    command = [*turn.within, sys.executable, "-W", "ignore", "-m", "benches.measure"]
    command += [client.name, client.frame, turn.query, turn.url, str(turn.parts)]
    if client.on and turn.parts > 1:
        command.append(client.on)
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        error = "".join(run.stderr.strip().splitlines()[-1:])
        sys.stderr.write(f"{turn} failed: {error}\n")
        return {"error": error}
    figures: Row = json.loads(run.stdout.splitlines()[-1])
    return figures


def medians(turn: Turn, runs: Sequence[Row]) -> Row:
    """Return a turn's medians, with what was read and what the client warned of or failed with."""
    return {
        "case": turn.case,
        "client": turn.client.name,
        "frame": turn.client.frame,
        "on": turn.client.on,
        "parts": turn.parts,
        "rounds": len(runs),
        **{figure: median(run.get(figure) for run in runs) for figure in FIGURES},
        "rows": _distinct(run.get("rows") for run in runs),
        "warnings": _distinct(warning for run in runs for warning in run.get("warnings", ())),
        "errors": _distinct(run.get("error") for run in runs),
    }


def in_parts(rows: Iterable[Row]) -> list[Row]:
    """Leave out the rows of clients that warn that they read over one connection after all."""
    return [row for row in rows if not any(text.startswith("SerialReadWarning") for text in row["warnings"])]


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(value for value in values if value is not None))


def find(rows: Iterable[Row], client: Client, parts: int, case: str = "") -> Row:
    """Return a client's row; an empty one where it was not measured."""
    wanted = (client.name, client.frame, client.on, parts, case)
    keys = ("client", "frame", "on", "parts", "case")
    return next((row for row in rows if tuple(row[key] for key in keys) == wanted), {})


def over(row: Row, other: Row) -> float | None:
    """Return one row's seconds over another's, where both were measured."""
    mine, others = row.get("wall"), other.get("wall")
    return mine / others if mine is not None and others else None


def counted(parts: int) -> str:
    """Say how many parts."""
    return f"{parts} part{'s' if parts > 1 else ''}"
