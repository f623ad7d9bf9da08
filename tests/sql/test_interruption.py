"""Ctrl-C in ``sql``: KeyboardInterrupt, soon, whatever is being done."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import longshore
from tests.sql.interrupting import chance, interrupt, kinds, remaining, usual

pytestmark = pytest.mark.packages

BATCH = pa.record_batch({"n": [1, 2, 3]})


class Blocked:
    """Tables that press Ctrl-C, and go on only when they are told to."""

    def __init__(self) -> None:
        """Wait for nothing yet."""
        self.go = threading.Event()

    def press(self, *_: object) -> Any:
        """Press Ctrl-C, and wait; give back what was given."""
        os.kill(os.getpid(), signal.SIGINT)
        assert self.go.wait(30)
        return _[0] if _ else None

    def batches(self) -> Iterator[Any]:
        """Give a batch, and another when told to."""
        yield BATCH
        self.press()
        yield BATCH

    def reader(self) -> Any:
        """Give a reader of those."""
        return pa.RecordBatchReader.from_batches(BATCH.schema, self.batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Wait before there is a stream."""
        self.press()
        return pa.RecordBatchReader.from_batches(BATCH.schema, [BATCH]).__arrow_c_stream__(requested_schema)

    def objects(self) -> Any:
        """Give a frame whose objects wait while they are converted."""
        blocked = self

        class Pressing:
            def __str__(self) -> str:
                blocked.press()
                return "text"

        return pd.DataFrame({"n": pd.Series([Pressing()], dtype=object)})

    def lazy(self) -> Any:
        """Give a lazy frame that waits while it is computed."""
        return pl.LazyFrame({"n": [1]}).map_batches(self.press, schema={"n": pl.Int64})


@pytest.fixture
def blocked() -> Iterator[Blocked]:
    """Give tables that wait; afterwards they go on, and nothing of their queries remains."""
    made = Blocked()
    yield made
    made.go.set()
    assert remaining() == (0, 0)
    assert longshore.sql("SELECT 1 AS x", return_type="arrow").to_pylist() == [{"x": 1}]


@pytest.mark.parametrize("return_type", ["pandas", "arrow_stream"])
@pytest.mark.parametrize(
    "make",
    [Blocked.reader, lambda blocked: blocked, Blocked.objects, Blocked.lazy],
    ids=["scanning", "registering", "converting", "computing"],
)
def test_ctrl_c_does_not_wait_for_a_table(make: Callable[[Blocked], Any], return_type: Any, blocked: Blocked) -> None:
    data = make(blocked)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        for _ in longshore.sql("SELECT n FROM data", data=data, return_type=return_type, options={"objects": "text"}):
            pass
    assert time.monotonic() - started < 5
    assert not blocked.go.is_set()


def test_ctrl_c_does_not_wait_for_a_statement_that_writes(blocked: Blocked, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        longshore.sql(f"COPY data TO '{tmp_path}/data.csv'", data=blocked.reader())
    assert not blocked.go.is_set()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)], ids=["KeyboardInterrupt", "SystemExit"])
@pytest.mark.parametrize("where", ["stream", "batches", "objects"])
def test_what_a_table_raises_by_itself_is_raised(error: BaseException, where: str) -> None:
    def fail(*_: object) -> Any:
        raise error

    def batches() -> Iterator[Any]:
        yield BATCH
        fail()

    class Producer:
        __arrow_c_stream__ = fail

    class Object:
        __str__ = fail

    data = {
        "stream": Producer(),
        "batches": pa.RecordBatchReader.from_batches(BATCH.schema, batches()),
        "objects": pd.DataFrame({"n": pd.Series([Object()], dtype=object)}),
    }[where]
    with pytest.raises(type(error)) as caught:
        longshore.sql("SELECT n FROM data", data=data, options={"objects": "text"})
    assert caught.value is error


def test_ctrl_c_at_any_time_is_ctrl_c(tmp_path: Path) -> None:
    # A hundred: `python -m tests.sql.interrupting 2000` does more of them.
    every = kinds(tmp_path, rows=5_000)
    for run in every.values():
        took = usual(run)
        for _ in range(7):
            outcome, seconds = interrupt(run, chance.uniform(1e-4, 1.2 * took))
            assert outcome == "KeyboardInterrupt"
            assert seconds < 5
    assert remaining() == (0, 0)
    assert longshore.sql("SELECT 1 AS x", return_type="arrow").to_pylist() == [{"x": 1}]


def test_a_query_of_a_daemon_thread_does_not_hold_up_the_end_of_the_process() -> None:
    script = """
import contextlib, threading, longshore, pyarrow as pa

batch, runs = pa.record_batch({"n": [1]}), threading.Event()

def batches():
    while True:
        runs.set()
        yield batch

def endless():
    rows = pa.RecordBatchReader.from_batches(batch.schema, batches())
    with contextlib.suppress(longshore.Error):
        longshore.sql("SELECT count(*) FROM rows", rows=rows)

threading.Thread(target=endless, daemon=True).start()
runs.wait()
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert "Traceback" not in ended.stderr


def test_a_daemon_thread_begins_nothing_once_the_process_ends() -> None:
    script = """
import atexit, threading

asked, ran = threading.Event(), threading.Event()

def end():
    asked.set()
    # It would have run in that time.
    print(ran.wait(0.5))
    print(longshore.sql("SELECT 1 AS n", return_type="arrow").to_pylist())

atexit.register(end)
import longshore

def late():
    asked.wait()
    longshore.sql("SELECT 1 AS n")
    ran.set()

longshore.sql("SELECT 1 AS n")
threading.Thread(target=late, daemon=True).start()
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert (ended.stdout, ended.stderr) == ("False\n[{'n': 1}]\n", "")
