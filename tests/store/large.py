"""A process that has less memory than a table: it writes the table and reads it, and says what memory that took."""

import json
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import longshore

BATCH_ROWS = 1 << 17
SCHEMA = pa.schema([(name, pa.int64()) for name in ("n", "v", "w")])
#: The memory that writing and SQL may have besides what the process has at the start.
ROOM = 320 << 20


def batches(rows: int) -> Iterator[pa.RecordBatch]:
    """Make rows as they are wanted."""
    for start in range(0, rows, BATCH_ROWS):
        numbers = np.arange(start, min(start + BATCH_ROWS, rows))
        yield pa.record_batch([pa.array(numbers), pa.array(numbers % 1000), pa.array(numbers * 7)], schema=SCHEMA)


def in_use(field: str) -> int:
    """Give a figure of this process's memory, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) * 1024


def growth(work: Callable[[], Any]) -> tuple[Any, int]:
    """Give what work returns, and the most memory without a file that it had, looked at again and again."""
    before = most = in_use("RssAnon")
    is_done = threading.Event()

    def look() -> None:
        nonlocal most
        while not is_done.wait(0.005):
            most = max(most, in_use("RssAnon"))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        result = work()
        most = max(most, in_use("RssAnon"))
    finally:
        is_done.set()
        looking.join()
    return result, most - before


def main(path: str, rows: int) -> None:
    """Write so many rows and read them."""
    said: dict[str, Any] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result, grown = growth(work)
        said[name] = {"seconds": time.perf_counter() - start, "grown": grown}
        return result

    with longshore.open(path) as store:
        store.sql("SELECT 1")
        free = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (in_use("VmData") + ROOM, free[1]))
        timed("write", lambda: store.write("t", pa.RecordBatchReader.from_batches(SCHEMA, batches(rows))))
        query = "SELECT count(*) AS c, sum(v)::BIGINT AS v, max(w) AS w FROM t"
        said["totals"] = timed("sql", lambda: store.sql(query, return_type="arrow")).to_pylist()[0]
        query = "SELECT v, count(*) AS c, min(n) AS n FROM t GROUP BY v ORDER BY v"
        groups = timed("groups", lambda: store.sql(query, return_type="arrow"))
        said["groups_are_right"] = groups["n"].to_pylist() == groups["v"].to_pylist() == list(range(1000))
        # A private map counts as memory that may be written.
        resource.setrlimit(resource.RLIMIT_DATA, free)

        def streamed() -> tuple[int, int]:
            count = total = 0
            for batch in store.read("t", return_type="arrow_stream"):
                count, total = count + batch.num_rows, total + pc.sum(batch.column("n")).as_py()
            return count, total

        said["streamed"] = timed("stream", streamed)
        table = timed("map", lambda: store.read("t", return_type="arrow"))
        said |= {"rows": table.num_rows, "bytes": table.nbytes, "last": table.slice(rows - 1).to_pylist()[0]}
        some = "SELECT n, v, w FROM t WHERE n BETWEEN 1000 AND 1002 ORDER BY n"
        said["some"] = timed("range", lambda: store.sql(some, return_type="arrow")).to_pylist()
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
