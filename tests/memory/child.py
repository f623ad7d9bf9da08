"""Processes that do one thing again and again with little memory, and say how each time ended.

python -m tests.memory.child <<< '{"way": "read arrow", "source": "...", "limits": [0, 64], ..., "said": "/tmp/said"}'

Each line is a task, for which this process forks, since its imports take longer than most tasks. It answers with the
exit code; what the child writes is in the files that `said` and `errors` name.
"""

import asyncio
import itertools
import json
import logging
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypedDict

import numpy as np
import pandas as pd
import pyarrow as pa

import longshore
import longshore.asyncpg

_SECONDS = 20.0
_MIB = 1 << 20


class Task(TypedDict):
    """The process's task."""

    way: str
    source: str
    #: The query, and one of the same columns with ten rows.
    query: str
    small: str
    #: The rows of the query.
    rows: int
    #: Where a write or a copy goes.
    table: str
    #: Tells, as `n`, how many statements of other sessions go on.
    watching: str
    #: Which limit is set, and to how many MiB above what the process has taken by then.
    resource: str
    limits: list[int]
    #: The values of `memory_limit`, in turn.
    budgets: list[str | None]
    #: The files for standard output and standard error.
    said: str
    errors: str


Work = Callable[[str | None], int]


def main(task: Task) -> None:
    """Do the task under each of its limits, and say in a line how it ended."""
    warnings.simplefilter("ignore", longshore.SerialReadWarning)
    # Whatever is imported, started or kept at first use.
    WAYS[task["way"]]({**task, "query": task["small"], "rows": 10})(None)
    work = WAYS[task["way"]](task)
    for limit, budget in zip(task["limits"], itertools.cycle(task["budgets"]), strict=False):
        rows, ended = _limited(limit, budget, work, task["resource"])
        _see_that_none_goes_on(task)
        sys.stdout.write(json.dumps({"limit": limit, "budget": budget, "rows": rows, "ended": ended}) + "\n")
        sys.stdout.flush()


def _limited(limit: int, budget: str | None, work: Work, name: str) -> tuple[int | None, str | None]:
    kind = getattr(resource, name)
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (_taken(name) + limit * _MIB, hard))
    try:
        return work(budget), None
    except MemoryError as error:
        return None, f"{type(error).__name__}: {error}"
    finally:
        resource.setrlimit(kind, (hard, hard))


def _taken(name: str) -> int:
    field = {"RLIMIT_AS": "VmSize:", "RLIMIT_DATA": "VmData:"}[name]
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(field)) << 10


def _see_that_none_goes_on(task: Task) -> None:
    until = time.monotonic() + _SECONDS
    while longshore.read_sql(task["watching"], task["source"], return_type="numpy")["n"][0]:
        assert time.monotonic() < until, "a statement goes on"
        time.sleep(0.02)


def _rows(frame: Any) -> int:
    """Give the number of rows, each of which has its id."""
    ids = np.asarray(frame["id"])
    assert len(ids) == len(frame["text"])
    assert int(ids.sum()) == len(ids) * (len(ids) - 1) // 2
    return len(ids)


def _read(return_type: str, **more: Any) -> Callable[[Task], Work]:
    def make(task: Task) -> Work:
        def work(budget: str | None) -> int:
            more["options"] = {"memory_limit": budget}
            frame: Any = longshore.read_sql(task["query"], task["source"], return_type=return_type, **more)
            return _rows(frame)

        return work

    return make


def _table_of_stream(task: Task) -> Work:
    def work(budget: str | None) -> int:
        options = {"memory_limit": budget}
        with longshore.read_sql(task["query"], task["source"], return_type="arrow_stream", options=options) as stream:
            return _rows(pa.table(stream))

    return work


def _consumed(task: Task) -> Work:
    def work(budget: str | None) -> int:
        options = {"memory_limit": budget}
        with longshore.read_sql(task["query"], task["source"], return_type="arrow_stream", options=options) as stream:
            return sum(len(batch) for batch in stream)

    return work


def _sql(return_type: str) -> Callable[[Task], Work]:
    def make(task: Task) -> Work:
        query = f"SELECT i AS id, i / 3 AS number, repeat(i::text, 20) AS text FROM range({task['rows']}) t(i)"

        def work(budget: str | None) -> int:
            frame: Any = longshore.sql(query, return_type=return_type, options={"memory_limit": budget})
            return _rows(frame)

        return work

    return make


def _frame(rows: int) -> pd.DataFrame:
    texts = np.array([f"{number} {'x' * 100}" for number in range(rows)], dtype=object)
    return pd.DataFrame({"id": np.arange(rows), "number": np.arange(rows) / 3, "text": texts})


def _write(task: Task) -> Work:
    frame = _frame(task["rows"])

    def work(budget: str | None) -> int:
        options = {"memory_limit": budget}
        return longshore.write_sql(frame, task["table"], task["source"], if_exists="replace", options=options)

    return work


def _copy(task: Task) -> Work:
    def work(budget: str | None) -> int:
        options, source = {"memory_limit": budget}, task["source"]
        return longshore.copy(task["query"], source, task["table"], source, if_exists="replace", options=options)

    return work


def _asyncpg(method: str, dtype: Literal["auto"] | None = None) -> Callable[[Task], Work]:
    def make(task: Task) -> Work:
        # The event loop tells on its own where it had no memory for what it received.
        logging.getLogger("asyncio").disabled = True
        query: Any = task["query"]
        if dtype is not None:
            query = longshore.asyncpg.set_query_dtype(f"SELECT id, number, at FROM ({query}) AS q", dtype)
        more: dict[str, Any] = {}

        async def fetched() -> int:
            connection = await longshore.asyncpg.connect(task["source"])
            try:
                found = await getattr(connection, method)(query, **more)
                return len(found if dtype is None else found[0])
            finally:
                connection.terminate()

        def work(budget: str | None) -> int:
            if method != "fetch":
                more["options"] = {"memory_limit": budget}
            return asyncio.run(fetched())

        return work

    return make


WAYS: dict[str, Callable[[Task], Work]] = {
    "read pandas": _read("pandas"),
    "read objects": _read("pandas", dtype_backend="numpy"),
    "read arrow": _read("arrow"),
    "read polars": _read("polars"),
    "read numpy": _read("numpy"),
    "read in parts": _read("arrow", partition_num=3),
    "table of a stream": _table_of_stream,
    "consumed stream": _consumed,
    "sql pandas": _sql("pandas"),
    "sql arrow": _sql("arrow"),
    "sql polars": _sql("polars"),
    "sql numpy": _sql("numpy"),
    "write": _write,
    "copy": _copy,
    "asyncpg numpy": _asyncpg("fetch", "auto"),
    "asyncpg arrow": _asyncpg("fetch_arrow"),
}


def serve() -> None:
    """Do each task of standard input in a child; returns in the child, too, when it is done."""
    for line in sys.stdin:
        task: Task = json.loads(line)
        child = os.fork()
        if child == 0:
            _redirect(1, task["said"])
            _redirect(2, task["errors"])
            main(task)
            return
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _redirect(descriptor: int, path: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, descriptor)
    os.close(file)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ["POLARS_MAX_THREADS"] = "2"
    serve()
