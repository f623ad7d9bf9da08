"""``longshore bench`` and ``longshore demo``: how long a query takes into each frame that is installed."""

import contextlib
import importlib
import importlib.util
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Annotated, Any

import typer

import longshore
from longshore import errors
from longshore.errors import InterfaceError
from longshore.progress import Progress
from longshore.shell import arguments
from longshore.shell.arguments import database, named_values, options, parameters, query_text
from longshore.shell.errors import error_fields
from longshore.shell.output import collect_warnings, duration, print_table, row_count, write_error, write_output
from longshore.shell.signals import listen, stop_repeating

#: The library that each return type needs.
LIBRARIES = {"pandas": "pandas", "arrow": "pyarrow", "polars": "polars", "numpy": "numpy", "arrow_stream": "pyarrow"}


def main() -> None:
    """Read once, in a process whose memory is the reader's alone; the figures go to standard output as JSON.

    What to read comes over standard input: a URL may hold a password, and everybody can see a process's arguments.
    """
    listen()
    read = json.load(sys.stdin)
    importlib.import_module(LIBRARIES[read["return_type"]])
    try:
        params = parameters(read.pop("params", None), read.pop("args", None))
        with collect_warnings(as_json=True) as warnings:
            figures = measure_read(params=params, **read)
        figures["warnings"] = warnings
    except Exception as error:  # noqa: BLE001  the parent process raises it
        figures = {"error": error_fields(error)}
    except KeyboardInterrupt:
        stop_repeating()
        # The parent process has been interrupted, and says so.
        return
    sys.stdout.write(json.dumps(figures))


def measure_read(return_type: str, **arguments: Any) -> dict[str, Any]:
    """Read once, and give the figures."""
    size = 0

    def listen_to(progress: Progress) -> None:
        nonlocal size
        size = progress.bytes

    before = _peak_bytes()
    began = time.perf_counter()
    result: Any = longshore.read_sql(return_type=return_type, progress=listen_to, **arguments)
    rows = _row_count(result)
    seconds = time.perf_counter() - began
    return {"rows": rows, "bytes": size, "seconds": seconds, "peak_bytes": _peak_bytes() - before}


def _row_count(result: Any) -> int:
    if isinstance(result, longshore.Stream):
        return sum(batch.num_rows for batch in result)
    if isinstance(result, dict):
        return len(next(iter(result.values()), ()))
    return int(getattr(result, "num_rows", None) or len(result))


def _peak_bytes() -> int:
    """Return the most memory that this process has had, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # On Linux the usage begins with that of the process that started this one.
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


_MEBIBYTE = 1 << 20
_Into = Annotated[
    list[str] | None,
    typer.Option(metavar="FRAME", help=f"Only these: {', '.join(LIBRARIES)}.", show_default=False),
]
_Repeat = Annotated[int, typer.Option(metavar="N", min=1, help="Reads into each; the median counts.")]


def bench(
    *,
    query: arguments.Query,
    from_: arguments.From = None,
    into: _Into = None,
    repeat: _Repeat = 3,
    params: arguments.Params = None,
    args: arguments.Args = None,
    schema: arguments.Schema = None,
    partition_on: arguments.PartitionOn = None,
    partition_num: arguments.PartitionNum = None,
    timeout: arguments.Timeout = None,
    option: arguments.Options = None,
    as_json: arguments.Json = False,
    quiet: arguments.Quiet = False,
) -> None:
    """Time reads of a query into each kind of frame that is installed, each in a process of its own."""
    url = database(from_, "--from")
    read = {
        "query": query_text(query),
        "conn": url,
        "params": params,
        "args": args,
        "schema": named_values(schema, "--schema"),
        "partition_on": partition_on,
        "partition_num": arguments.partition_count(partition_num),
        "timeout": timeout,
        "options": options(option),
    }
    figures = list(measure_frames(_frames(into), repeat, read, quiet=quiet))
    if as_json:
        write_output(json.dumps({"repeat": repeat, "results": figures}, ensure_ascii=False))
        return
    for warning in dict.fromkeys(warning for run in figures for warning in run["warnings"]):
        write_error(f"warning: {warning.partition(': ')[2]}")
    show_measurements(figures)


def installed_frames() -> list[str]:
    """Return the frames whose library is installed, without importing it."""
    # The path itself, as the shell's process says that pandas is not there.
    return [name for name, library in LIBRARIES.items() if PathFinder.find_spec(library) is not None]


def measure_frames(
    frames: Sequence[str], repeat: int, read: dict[str, Any], *, quiet: bool
) -> Iterator[dict[str, Any]]:
    """Read into each frame so many times, and give the medians; the frames take turns."""
    runs: dict[str, list[dict[str, Any]]] = {frame: [] for frame in frames}
    for turn in range(repeat):
        for frame in frames:
            if not quiet and sys.stderr.isatty():
                write_error(f"{frame}, {turn + 1} of {repeat}")
            runs[frame].append(_measure({"return_type": frame, **read}))
    for frame, measured in runs.items():
        seconds = statistics.median(run["seconds"] for run in measured)
        rows, size = measured[-1]["rows"], measured[-1]["bytes"]
        yield {
            "into": frame,
            "rows": rows,
            "bytes": size,
            "seconds": seconds,
            "rows_per_second": rows / seconds,
            "megabytes_per_second": size / seconds / 1e6,
            "peak_bytes": max(run["peak_bytes"] for run in measured),
            "warnings": measured[-1]["warnings"],
        }


def show_measurements(figures: Sequence[dict[str, Any]]) -> None:
    """Show the figures as a table."""
    from rich import box
    from rich.table import Table

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
            f"{run['peak_bytes'] / _MEBIBYTE:,.0f}",
        )
    print_table(table)


def _frames(into: Sequence[str] | None) -> list[str]:
    for name in into or ():
        if name not in LIBRARIES:
            raise InterfaceError(f"unknown --into {name!r}; choose one of {', '.join(LIBRARIES)}")
    return list(into) if into else installed_frames()


def _measure(read: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, "-m", "longshore.shell.bench"]
    with subprocess.Popen(  # noqa: S603  Longshore itself
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        try:
            answer, _ = child.communicate(json.dumps(read).encode())
        except BaseException:
            # It cancels its query; unlike Ctrl-C, this is not ignored where a shell runs the command in the background.
            child.terminate()
            child.wait()
            raise
    if not answer:
        message = f"the process that read into {read['return_type']} ended with {child.returncode}, and said nothing"
        raise errors.OperationalError(message)
    figures: dict[str, Any] = json.loads(answer)
    if fields := figures.get("error"):
        raise getattr(errors, fields.pop("kind"), errors.InternalError)(**fields)
    return figures


# SQLite generates the rows, since it is always there; they are copied like those of any other database.
_BOATS = """
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :rows)
    SELECT n AS id, 'boat ' || n AS name, n * 0.125 AS length, printf('%d.%02d', n % 5000, n % 100) AS fee,
        date('2026-01-01', (n % 365) || ' days') AS arrived, CASE WHEN n % 10 <> 0 THEN n % 64 END AS berth
    FROM numbers
"""
_TYPES = {
    "id": "int64",
    "name": "string",
    "length": "float64",
    "fee": "decimal128(12, 2)",
    "arrived": "date32[day]",
    "berth": "int32",
}
_DemoFrom = Annotated[
    str | None,
    typer.Option(
        "--from",
        help="A database that may hold the table meanwhile: a URL, a file, or env:NAME; else SQLite.",
        show_default=False,
    ),
]
_DemoRows = Annotated[int, typer.Option(metavar="N", min=1, help="The rows of the table.")]


def demo(
    *,
    from_: _DemoFrom = None,
    rows: _DemoRows = 500_000,
    as_json: arguments.Json = False,
    quiet: arguments.Quiet = False,
) -> None:
    """Write a table, read it into each kind of frame that is installed, tell how long each took, and drop it."""
    with _demo_database(from_) as url, _demo_table(url) as table:
        began = time.monotonic()
        with collect_warnings(as_json=as_json) as warnings:
            written = longshore.copy(
                _BOATS, "sqlite:///:memory:", table, url, params={"rows": rows}, schema=_TYPES, key="id"
            )
        seconds = time.monotonic() - began
        scheme, query = url.partition("://")[0], f"SELECT * FROM {table}"  # noqa: S608  a name of this file's own
        if not as_json:
            sentence = f"{row_count(written)} written into {scheme} in {duration(seconds)}"
            write_output(f"{sentence}; read again, each in its own process:")
        figures = list(measure_frames(installed_frames(), 1, {"query": query, "conn": url}, quiet=quiet))
        if as_json:
            written_figures = {"source": scheme, "rows": written, "seconds": seconds, "warnings": warnings}
            write_output(json.dumps({"written": written_figures, "results": figures}))
            return
        show_measurements(figures)
        _show_rows(query, url)


@contextlib.contextmanager
def _demo_database(url: str | None) -> Iterator[str]:
    if url is not None:
        yield database(url, "--from")
        return
    with tempfile.TemporaryDirectory(prefix="longshore-") as directory:
        yield f"sqlite:///{directory}/demo.db?mode=rwc"


@contextlib.contextmanager
def _demo_table(url: str) -> Iterator[str]:
    """Return the name of a new table, which is dropped at the end."""
    name = f"longshore_demo_{uuid.uuid4().hex[:8]}"
    try:
        yield name
    finally:
        with longshore.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP TABLE IF EXISTS {name}")


def _show_rows(query: str, url: str) -> None:
    if importlib.util.find_spec("pyarrow") is None:
        return
    from longshore.shell.preview import show_preview

    stream: Any = longshore.read_sql(f"{query} ORDER BY id LIMIT 5", url, return_type="arrow_stream")
    with stream:
        show_preview(stream.schema, list(stream), 5)


if __name__ == "__main__":
    main()
