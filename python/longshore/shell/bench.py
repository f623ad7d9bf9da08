"""``longshore bench``: how long a query takes into each frame that is installed."""

import contextlib
import importlib.util
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from longshore import errors
from longshore.errors import InterfaceError
from longshore.shell import arguments as given
from longshore.shell.measured import LIBRARIES
from longshore.shell.pairs import options, pairs
from longshore.shell.places import database
from longshore.shell.queries import statement
from longshore.shell.speaking import say, whisper

__all__ = ["bench", "compared", "installed"]

MEBIBYTE = 1 << 20
_Into = Annotated[
    list[str] | None,
    typer.Option("--into", metavar="FRAME", help=f"Only these: {', '.join(LIBRARIES)}.", show_default=False),
]
_Repeat = Annotated[int, typer.Option(metavar="N", min=1, help="Reads into each; the median counts.")]


def bench(
    *,
    query: given.Query,
    from_: given.From = None,
    into: _Into = None,
    repeat: _Repeat = 3,
    params: given.Params = None,
    args: given.Args = None,
    schema: given.Schema = None,
    partition_on: given.PartitionOn = None,
    partition_num: given.PartitionNum = None,
    timeout: given.Timeout = None,
    option: given.Options = None,
    as_json: given.Json = False,
    quiet: given.Quiet = False,
) -> None:
    """Time reads of a query into each kind of frame that is installed, each in a process of its own."""
    url = database(from_, "--from")
    chosen = {
        "query": statement(query),
        "conn": url,
        "params": params,
        "args": args,
        "schema": pairs(schema, "--schema"),
        "partition_on": partition_on,
        "partition_num": given.number_of_parts(partition_num),
        "timeout": timeout,
        "options": options(option),
    }
    figures = list(compared(_wanted(into), repeat, chosen, quiet=quiet))
    if as_json:
        say(json.dumps({"repeat": repeat, "results": figures}, ensure_ascii=False))
        return
    for warning in dict.fromkeys(warning for run in figures for warning in run["warnings"]):
        whisper(f"warning: {warning.partition(': ')[2]}")
    show(figures)


def installed() -> list[str]:
    """Give the frames whose library is there, without importing it."""
    return [name for name, library in LIBRARIES.items() if importlib.util.find_spec(library) is not None]


def compared(frames: Sequence[str], repeat: int, chosen: dict[str, Any], *, quiet: bool) -> Iterator[dict[str, Any]]:
    """Read into each frame so many times, and give the medians; the frames take turns."""
    runs: dict[str, list[dict[str, Any]]] = {frame: [] for frame in frames}
    for turn in range(repeat):
        for frame in frames:
            if not quiet and sys.stderr.isatty():
                whisper(f"{frame}, {turn + 1} of {repeat}")
            runs[frame].append(_once({"return_type": frame, **chosen}))
    for frame, taken in runs.items():
        seconds = statistics.median(run["seconds"] for run in taken)
        rows, size = taken[-1]["rows"], taken[-1]["bytes"]
        yield {
            "into": frame,
            "rows": rows,
            "bytes": size,
            "seconds": seconds,
            "rows_per_second": rows / seconds,
            "megabytes_per_second": size / seconds / 1e6,
            "peak_bytes": max(run["peak_bytes"] for run in taken),
            "warnings": taken[-1]["warnings"],
        }


def show(figures: Sequence[dict[str, Any]]) -> None:
    """Show the figures as a table."""
    from rich import box
    from rich.table import Table

    from longshore.shell.tables import printed

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("into")
    for heading in ("rows", "seconds", "rows/s", "MB/s", "peak MiB"):
        table.add_column(heading, justify="right")
    for run in figures:
        table.add_row(
            run["into"],
            f"{run['rows']:,}",
            f"{run['seconds']:.3f}",
            f"{run['rows_per_second']:,.0f}",
            f"{run['megabytes_per_second']:,.1f}",
            f"{run['peak_bytes'] / MEBIBYTE:,.0f}",
        )
    printed(table)


def _wanted(into: Sequence[str] | None) -> list[str]:
    for name in into or ():
        if name not in LIBRARIES:
            message = f"unknown --into {name!r}; choose one of {', '.join(LIBRARIES)}"
            raise InterfaceError(message)
    return list(into) if into else installed()


def _once(asked: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, "-m", "longshore.shell.measured"]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child,  # noqa: S603  Longshore itself
        _ended(child),
    ):
        said, _ = child.communicate(json.dumps(asked).encode())
    if not said:
        message = f"the process that read into {asked['return_type']} ended with {child.returncode}, and said nothing"
        raise errors.OperationalError(message)
    figures: dict[str, Any] = json.loads(said)
    if "error" not in figures:
        return figures
    raise _raised(figures["error"])


@contextlib.contextmanager
def _ended(child: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Have the child end before an exception leaves the block: it cancels its query, as on Ctrl-C."""
    try:
        yield
    except BaseException:
        # Unlike Ctrl-C, it is not ignored where a shell has started this process in the background.
        child.terminate()
        child.wait()
        raise


def _raised(said: dict[str, Any]) -> Exception:
    """Make the child's exception again."""
    kind = getattr(errors, said.pop("kind"), errors.InternalError)
    message = said.pop("message")
    hint = said.get("hint")
    return kind(f"{message}\nHint: {hint}" if hint else message, **said)
