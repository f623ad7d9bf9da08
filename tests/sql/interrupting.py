"""Ctrl-C at random times over every kind of table.

``python -m tests.sql.interrupting 2000`` counts what comes of so many.
"""

import contextlib
import gc
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import longshore

_AGGREGATE = "SELECT a % 7 AS a, count(*) AS n, max(t) AS t FROM big GROUP BY 1 ORDER BY 1"
_FAULTY = "SELECT a, missing FROM big"


#: When to interrupt.
chance = np.random.default_rng()


class Produced:
    """A stream of batches that Python makes one by one."""

    def __init__(self, table: Any) -> None:
        """Keep what is streamed."""
        self._table = table

    def _batches(self) -> Iterator[Any]:
        yield from self._table.to_batches(max_chunksize=5_000)

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Stream it from the start."""
        reader = pa.RecordBatchReader.from_batches(self._table.schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)


def kinds(directory: Path, rows: int = 60_000) -> dict[str, Callable[[], Any]]:
    """Give what makes a query's result, by the kind of its table; with so many rows it takes tens of milliseconds."""
    numbers = np.arange(rows)
    texts = [f"text {at}" for at in range(rows)]
    records = [{"a": at, "t": text} for at, text in enumerate(texts)]
    table = pa.table({"a": numbers, "t": texts})
    frame = pd.DataFrame({"a": numbers, "t": pd.Series(texts, dtype=object)})
    columns = {"a": list(range(rows)), "t": texts}
    url = f"sqlite:///{directory}/big.db?mode=rwc"
    longshore.write_sql(table, "big", url)

    def query(data: Callable[[], Any], text: str = _AGGREGATE, **keywords: Any) -> Callable[[], Any]:
        return lambda: longshore.sql(text, big=data(), **keywords)

    def streamed() -> Any:
        with longshore.sql(_AGGREGATE, big=frame, return_type="arrow_stream") as stream:
            return list(stream)

    return {
        "pandas": query(lambda: frame),
        "polars": query(lambda: pl.DataFrame(table), return_type="polars"),
        "lazy": query(lambda: pl.LazyFrame(table).with_columns(pl.col("a") + 1), return_type="polars"),
        "pyarrow": query(lambda: table, return_type="arrow"),
        "dict": query(lambda: columns),
        "list of dicts": query(lambda: records, return_type="numpy"),
        "reader": query(lambda: pa.RecordBatchReader.from_stream(Produced(table))),
        "producer": query(lambda: Produced(table), return_type="arrow"),
        "stream": query(lambda: longshore.read_sql("SELECT a, t FROM big", url, return_type="arrow_stream")),
        "attached": lambda: longshore.sql("SELECT max(a) AS a FROM pg.big", attach={"pg": url}),
        "result as a stream": streamed,
        "wrong query": query(lambda: frame, _FAULTY),
        "wrong query of a producer": query(lambda: Produced(table), _FAULTY),
        "several statements": query(lambda: table, "CREATE TABLE c AS FROM big; SELECT sum(a) AS a FROM c"),
        "plan": query(lambda: frame, explain=True),
    }


def interrupt(run: Callable[[], Any], delay: float) -> tuple[str, float]:
    """Interrupt it after so many seconds; tell the class of what it raised, and how long that took."""
    struck: list[float] = []

    def strike(_number: int, _frame: object) -> None:
        struck.append(time.perf_counter())
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, strike)
    # Python drops what is raised within a callback of its collector, and hypothesis has one.
    callbacks, gc.callbacks[:] = gc.callbacks[:], []
    outcome = "nothing"
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        # Struck in between is struck, too.
        while not struck:
            try:
                run()
            except longshore.Error as error:
                outcome = _said(error)
    except BaseException as error:  # noqa: BLE001  what it is, is what is asked
        outcome = type(error).__name__ if isinstance(error, KeyboardInterrupt) else repr(error)
    ended = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    gc.callbacks[:] = callbacks
    return outcome, ended - struck[0] if struck else 0.0


def _said(error: longshore.Error) -> str:
    text = f"{type(error).__name__}: {error}"
    # The query that is wrong says so until it is struck.
    return "nothing" if "missing" in text and "KeyboardInterrupt" not in text else text


def usual(run: Callable[[], Any]) -> float:
    """Tell how long it takes."""
    for _ in range(2):
        started = time.perf_counter()
        with contextlib.suppress(longshore.ProgrammingError):
            run()
    return time.perf_counter() - started


def remaining() -> tuple[int, int]:
    """Count the tasks that go on, and the connections that are not closed, when they had time to end."""
    from longshore.duckdb.instance import shared
    from longshore.duckdb.waiting import running_tasks

    deadline = time.monotonic() + 5
    while (running_tasks or shared.open) and time.monotonic() < deadline:
        time.sleep(0.01)
    return len(running_tasks), shared.open


def _main(count: int, *names: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        all_kinds = {name: run for name, run in kinds(Path(directory)).items() if name in names or not names}
        each = -(-count // len(all_kinds))
        total: Counter[str] = Counter()
        for name, run in all_kinds.items():
            took = usual(run)
            found = [interrupt(run, chance.uniform(1e-4, 1.2 * took)) for _ in range(each)]
            outcomes = Counter(outcome for outcome, _ in found)
            total += outcomes
            lasted = sorted(seconds for _, seconds in found)
            median, most = lasted[len(lasted) // 2] * 1e3, lasted[-1] * 1e3
            counts = f"{dict(outcomes)}, left: {remaining()}"
            sys.stdout.write(
                f"{name:26} {took * 1e3:4.0f} ms, to the end {median:3.0f}, at most {most:3.0f}: {counts}\n"
            )
            sys.stdout.flush()
            assert longshore.sql("SELECT 1 AS x", return_type="arrow").to_pylist() == [{"x": 1}]
        sys.stdout.write(f"{total.total()} interrupts: {dict(total)}\n")


if __name__ == "__main__":
    _main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000, *sys.argv[2:])
