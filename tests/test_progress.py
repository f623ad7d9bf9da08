"""Progress: figures that are right, a bar where somebody sees it, and silence where no one does."""

import itertools
import os
import pty
import subprocess
import sys
import textwrap
from typing import Any

import pyarrow as pa
import pytest

import longshore
from longshore import Progress, read_sql
from tests.terminal import seen_on_a_terminal

QUERY = "SELECT i, i::text AS t FROM generate_series(1, 2000000) AS i"


@pytest.mark.parametrize("return_type", ["pandas", "arrow", "polars", "numpy", "arrow_stream"])
def test_a_callable(return_type: Any, url: str) -> None:
    seen: list[Progress] = []
    result: Any = read_sql(QUERY, url, return_type=return_type, progress=seen.append)
    if return_type == "arrow_stream":
        assert sum(batch.num_rows for batch in result) == 2_000_000
    assert len(seen) > 2
    assert [progress.ended for progress in seen] == [False] * (len(seen) - 1) + [True]
    for earlier, later in itertools.pairwise(seen):
        assert earlier.rows <= later.rows
        assert earlier.bytes <= later.bytes
        assert earlier.seconds < later.seconds
        assert earlier.fraction is None or earlier.fraction < 1
    last = seen[-1]
    # A row's message: 7 bytes, 4 for each length, 4 for the integer, and the digits.
    digits = sum(len(str(i)) for i in range(1, 2_000_001))
    assert (last.rows, last.bytes) == (2_000_000, 2_000_000 * 19 + digits)
    assert (last.expected_rows, last.fraction, last.remaining_seconds) == (2_000_000, 1, 0)


def test_an_empty_result_ends_too(url: str) -> None:
    seen: list[Progress] = []
    read_sql("SELECT 1 AS a WHERE false", url, progress=seen.append)
    assert [(progress.rows, progress.bytes, progress.fraction) for progress in seen] == [(0, 0, 1)]


def test_reports_come_while_the_server_computes(url: str) -> None:
    seen: list[Progress] = []
    read_sql("SELECT pg_sleep(0.6)::text", url, progress=seen.append)
    assert len(seen) >= 4
    assert [progress.rows for progress in seen] == [0] * (len(seen) - 1) + [1]


def test_the_figures() -> None:
    progress = Progress(rows=250, bytes=1000, seconds=2.0, expected_rows=1000)
    assert (progress.rows_per_second, progress.fraction, progress.remaining_seconds) == (125, 0.25, 6)
    unknown = Progress(rows=250, bytes=1000, seconds=2.0)
    assert (unknown.fraction, unknown.remaining_seconds) == (None, None)
    # An estimate that was too low.
    beyond = Progress(rows=1001, bytes=1000, seconds=2.0, expected_rows=1000)
    assert (beyond.fraction, beyond.remaining_seconds) == (0.99, None)
    none = Progress(rows=0, bytes=0, seconds=0.0, expected_rows=0)
    assert (none.rows_per_second, none.fraction, none.remaining_seconds) == (None, 0, None)


@pytest.mark.parametrize("return_type", ["pandas", "arrow", "arrow_stream"])
def test_what_a_callable_raises_ends_the_read(return_type: Any, url: str) -> None:
    def fail(progress: Progress) -> None:
        message = f"enough after {progress.rows > 0}"
        raise RuntimeError(message)

    def read() -> None:
        result: Any = read_sql(QUERY, url, return_type=return_type, progress=fail)
        list(result)

    with pytest.raises(RuntimeError, match="enough after"):
        read()


def test_what_a_callable_raises_passes_through_a_consumer(url: str) -> None:
    def fail(_: Progress) -> None:
        message = "enough"
        raise RuntimeError(message)

    stream = read_sql("SELECT 1 AS a", url, return_type="arrow_stream", progress=fail)
    with pytest.raises((pa.ArrowException, OSError), match="RuntimeError: enough"):
        pa.RecordBatchReader.from_stream(stream).read_all()


def test_nothing_is_reported_after_the_read(url: str) -> None:
    seen: list[Progress] = []
    with longshore.connect(url) as connection:
        read_sql("SELECT 1", connection, progress=seen.append)
        connection.execute("SELECT pg_sleep(0.3)")
    assert len(seen) == 1


SCRIPT = """
import sys
import longshore
query = "SELECT i, pg_sleep(0.002)::text AS s FROM generate_series(1, 200) AS i"
{before}
{read}
print("done")
"""
READS = {
    "whole": "longshore.read_sql(query, sys.argv[1], progress=True)",
    "stream": "list(longshore.read_sql(query, sys.argv[1], return_type='arrow_stream', progress=True))",
    "dropped": "next(longshore.read_sql(query, sys.argv[1], return_type='arrow_stream', batch_size=9, progress=True))",
}


def run(script: str, url: str, errors: int, **environment: str) -> str:
    """Run a program whose standard error is the file descriptor `errors`; give what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), url],
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0
    return done.stdout


def on_a_terminal(script: str, url: str, **environment: str) -> str:
    """Run a program whose standard error is a terminal; give what is seen there."""

    def done(errors: int) -> None:
        assert run(script, url, errors, TERM="xterm", COLUMNS="120", **environment) == "done\n"

    return seen_on_a_terminal(done)


@pytest.mark.parametrize("how", READS)
def test_a_bar_on_a_terminal(how: str, url: str) -> None:
    seen = on_a_terminal(SCRIPT.format(before="", read=READS[how]), url)
    assert "rows/s" in seen
    assert ("200 rows, 0.0 MB" in seen) == (how != "dropped")
    # The cursor is hidden while the bar is there.
    assert seen.count("\x1b[?25l") == seen.count("\x1b[?25h") == 1


def test_a_failed_read_leaves_the_terminal_as_it_was(url: str) -> None:
    read = "query = query.replace('AS i, ', 'AS i, 1 / (150 - i), ').replace('SELECT i', 'SELECT 1 / (150 - i)')\n"
    read += "try:\n    longshore.read_sql(query, sys.argv[1], progress=True)\nexcept longshore.DataError:\n    pass"
    seen = on_a_terminal(SCRIPT.format(before="", read=read), url)
    assert seen.count("\x1b[?25l") == seen.count("\x1b[?25h") == 1


@pytest.mark.costly
@pytest.mark.parametrize(
    "before",
    ["", "sys.stderr = None", "sys.stderr.close()"],
    ids=["a pipe", "no standard error", "a closed standard error"],
)
@pytest.mark.parametrize("how", READS)
def test_silence_without_a_terminal(how: str, before: str, url: str) -> None:
    reading, writing = os.pipe()
    printed = run(SCRIPT.format(before=before, read=READS[how]), url, writing)
    os.close(writing)
    with os.fdopen(reading) as errors:
        assert (printed, errors.read()) == ("done\n", "")


def test_silence_on_a_terminal_that_cannot_draw(url: str) -> None:
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    assert run(SCRIPT.format(before="", read=READS["whole"]), url, theirs, TERM="dumb") == "done\n"
    with pytest.raises(BlockingIOError):
        os.read(ours, 1)
    os.close(ours)
    os.close(theirs)


# What rich looks for, and what it draws on, as far as it uses them.
NOTEBOOK = """
import builtins, types
from unittest import mock

class ZMQInteractiveShell: pass

shown = []
widget = mock.MagicMock()
builtins.get_ipython = ZMQInteractiveShell
sys.modules["IPython"] = types.ModuleType("IPython")
sys.modules["IPython.display"] = display = types.ModuleType("IPython.display")
display.display = shown.append
display.HTML = str
sys.modules["ipywidgets"] = widgets = types.ModuleType("ipywidgets")
widgets.Output = lambda: widget
"""
DRAWN = """
assert shown[0] is widget
assert widget.clear_output.call_count > 2
"""


def test_a_bar_in_a_notebook(url: str) -> None:
    reading, writing = os.pipe()
    printed = run(SCRIPT.format(before=NOTEBOOK, read=READS["whole"] + DRAWN), url, writing)
    os.close(writing)
    os.close(reading)
    assert printed.endswith("done\n")
