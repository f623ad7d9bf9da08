"""Results on their way: bounded, interruptible, closed once."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from longshore import DataError, OperationalError, sql
from longshore.duckdb.result import Form, deliver
from longshore.options import Options

pytestmark = pytest.mark.packages

#: Hours of work, at the start of a query and between its rows.
BLOCKED = "SELECT sum(a.range * b.range) AS c FROM range(10000000) AS a, range(10000000) AS b"
ENDLESS = "SELECT a.range AS c FROM range(10000000) AS a, range(10000000) AS b"
SPARSE = "SELECT n AS c FROM range(10000000000000) AS t(n) WHERE n < 300000 OR hash(n) = 0"


class Engine:
    """A relation of DuckDB's with its counted ends."""

    def __init__(self, query: str) -> None:
        """Open a connection."""
        import duckdb

        self._connection = duckdb.connect(config={"arrow_lossless_conversion": True})
        self.relation: Any = self._connection.sql(query)
        self.cancelled = 0
        self.closed = threading.Event()
        self.times_closed = 0

    def cancel(self) -> None:
        """Stop the query."""
        self.cancelled += 1
        self._connection.interrupt()

    def close(self) -> None:
        """Note that no one needs the engine."""
        self.times_closed += 1
        self.closed.set()

    def deliver(self, return_type: str) -> Any:
        """Take the result."""
        return deliver(self.relation, Form.of(return_type, None, Options()), cancel=self.cancel, close=self.close)


@pytest.mark.parametrize("return_type", ["pandas", "arrow", "polars", "numpy"])
def test_a_whole_result_closes_its_engine(return_type: Any) -> None:
    engine = Engine("SELECT 1 AS c")
    engine.deliver(return_type)
    assert (engine.times_closed, engine.cancelled) == (1, 0)


def test_a_query_that_fails_closes_its_engine() -> None:
    engine = Engine("SELECT error('broken')")
    with pytest.raises(Exception, match="broken"):
        engine.deliver("pandas")
    assert (engine.times_closed, engine.cancelled) == (1, 0)


def test_a_stream_closes_its_engine_at_its_end() -> None:
    engine = Engine("SELECT 1 AS c")
    stream = engine.deliver("arrow_stream")
    assert engine.times_closed == 0
    assert sum(batch.num_rows for batch in stream) == 1
    assert (engine.times_closed, engine.cancelled) == (1, 0)
    stream.close()
    assert engine.times_closed == 1


@pytest.mark.parametrize("query", [ENDLESS, SPARSE], ids=["endless", "sparse"])
@pytest.mark.parametrize("end", ["close", "drop", "cancel"])
def test_a_stream_that_is_left_stops_its_query(query: str, end: str) -> None:
    engine = Engine(query)
    stream = engine.deliver("arrow_stream")
    assert next(stream).num_rows > 0
    start = time.monotonic()
    if end == "drop":
        del stream
        gc.collect()
    else:
        getattr(stream, end)()
    assert engine.closed.wait(10)
    assert time.monotonic() - start < 5
    assert engine.cancelled >= 1


def test_a_wait_is_cancelled_from_another_thread() -> None:
    engine = Engine(SPARSE)
    stream = engine.deliver("arrow_stream")
    threading.Timer(0.5, stream.cancel).start()
    start = time.monotonic()
    with pytest.raises(OperationalError, match="cancel"):
        for _ in stream:
            pass
    assert time.monotonic() - start < 10
    assert engine.closed.wait(10)


@pytest.mark.costly
@pytest.mark.parametrize("query", [BLOCKED, ENDLESS, SPARSE], ids=["blocked", "endless", "sparse"])
@pytest.mark.parametrize("return_type", ["pandas", "arrow", "arrow_stream"])
def test_ctrl_c(query: str, return_type: Any) -> None:
    threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        for _ in sql(f"SELECT * FROM ({query})", return_type=return_type):
            pass
    assert time.monotonic() - start < 10


BOUNDED = """
import resource, sys
import longshore

rows = 0
with longshore.sql("SELECT range AS a, repeat('x', 100) AS b FROM range(3000000)", return_type="arrow_stream",
                   options={"threads": 2}) as stream:
    for number, batch in enumerate(stream):
        rows += batch.num_rows
        if number == 3:
            first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert rows == 3000000, rows
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - first) >> 10)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss is the system's")
def test_a_stream_holds_a_few_batches(tmp_path: Path) -> None:
    script = tmp_path / "stream.py"
    script.write_text(BOUNDED)
    grown = int(subprocess.run([sys.executable, script], check=True, capture_output=True, text=True).stdout)
    # The result is 330 MiB.
    assert grown < 120


def test_an_engine_runs_no_query_of_which_no_one_takes_a_frame() -> None:
    with pytest.raises(Exception, match="unknown dtype_backend"):
        sql(BLOCKED, dtype_backend="arrow")  # type: ignore[call-overload]


def test_wide_rows_come_in_batches_of_fewer() -> None:
    columns = ", ".join(f"'{at}' || i AS c{at}" for at in range(500))
    with sql(f"SELECT {columns} FROM range(10000) t(i)", return_type="arrow_stream") as stream:
        batches = [pa.record_batch(batch) for batch in stream]
    assert max(batch.num_rows for batch in batches) == 2048
    whole = pa.Table.from_batches(batches)
    assert whole.column("c499").to_pylist() == [f"499{row}" for row in range(10000)]


def test_an_error_within_wide_rows_is_told_as_in_others() -> None:
    columns = ", ".join(f"'{at}' || i AS c{at}" for at in range(500))
    query = f"SELECT {columns}, CAST(CASE i WHEN 9000 THEN 'x' ELSE '1' END AS INT) AS n FROM range(10000) t(i)"
    told = pytest.raises(DataError, match=r"^Conversion Error: Could not convert string 'x' to INT32")
    with told, sql(query, return_type="arrow_stream") as stream:
        list(stream)
