"""How late an event loop wakes while a read runs in its process, next to a read in another process.

python -m benches.asyncio_delay

The control has the same load on the machine, the same read in a process of its own, and no Longshore in the loop's.
"""

import asyncio
import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import longshore
from tests.servers import postgresql

ROWS = 3_000_000
QUERY = f"SELECT i, i * 7 AS n, 'container ' || i AS t, 'berth ' || i % 100 AS b FROM generate_series(1, {ROWS}) AS i"
#: The loop wants to wake this often.
TICK = 0.001
RUNS = 9
READY = b"ready\n"

READS: dict[str, dict[str, Any]] = {
    "pandas": {"return_type": "pandas"},
    "pandas, text as objects": {"return_type": "pandas", "dtype_backend": "numpy"},
    "arrow": {"return_type": "arrow"},
    "arrow_stream": {"return_type": "arrow_stream"},
}


async def delays(work: Callable[[], Awaitable[object]]) -> list[float]:
    """Give how late the loop woke each time, in milliseconds, while `work` was under way."""
    late: list[float] = []

    async def tick() -> None:
        while True:
            due = time.perf_counter() + TICK
            await asyncio.sleep(TICK)
            late.append(1000 * (time.perf_counter() - due))

    ticker = asyncio.create_task(tick())
    await work()
    ticker.cancel()
    return late


async def read(query: str, url: str, arguments: dict[str, Any]) -> None:
    """Read once, in this process."""
    result: Any = await longshore.read_sql_async(query, url, **arguments)
    if isinstance(result, longshore.Stream):
        async for _ in result:
            pass


@contextlib.contextmanager
def elsewhere(url: str, name: str) -> Iterator[Callable[[], Awaitable[object]]]:
    """Give what has the same read done by a process of its own, which has started and imported before."""
    command = [sys.executable, "-m", "benches.asyncio_delay", url, name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        if process.stdin is None or process.stdout is None or process.stdout.readline() != READY:
            message = "the control did not start"
            raise RuntimeError(message)
        to_child, from_child = process.stdin, process.stdout

        async def work() -> None:
            to_child.write(READY)
            to_child.flush()
            await asyncio.get_running_loop().run_in_executor(None, from_child.readline)

        yield work


def child(url: str, name: str) -> None:
    """Read once, when `elsewhere` says so."""
    asyncio.run(read("SELECT 1", url, READS[name]))
    sys.stdout.buffer.write(READY)
    sys.stdout.flush()
    sys.stdin.buffer.readline()
    asyncio.run(read(QUERY, url, READS[name]))
    sys.stdout.buffer.write(READY)


def p99(late: list[float]) -> float:
    """Give the 99th percentile."""
    return statistics.quantiles(late, n=100)[98]


def measure(url: str, name: str) -> str:
    """Compare the 99th percentiles over all runs, which take turns: the machine's other load is on both sides."""
    here: list[float] = []
    there: list[float] = []
    asyncio.run(read("SELECT 1", url, READS[name]))
    for _ in range(RUNS):
        here += asyncio.run(delays(lambda: read(QUERY, url, READS[name])))
        with elsewhere(url, name) as work:
            there += asyncio.run(delays(work))
    ours, control = p99(here), p99(there)
    return f"{name:24} p99 {ours:6.2f}  control {control:6.2f}  x {ours / control:4.2f}  of {len(here):,} wake-ups"


def main() -> None:
    """Print a line for each return type."""
    print(f"{ROWS:,} rows, {RUNS} runs in turn, milliseconds")
    with postgresql() as server:
        for name in READS:
            print(measure(server.url(), name), flush=True)


if __name__ == "__main__":
    child(*sys.argv[1:]) if sys.argv[1:] else main()
