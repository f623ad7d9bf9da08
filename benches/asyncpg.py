"""One library's fetches of the published query: `longshore.asyncpg`, or asyncpg-rkt where that is installed instead.

`python -m benches.drop_in` sets one next to the other. Its processes are `python -m benches.asyncpg WAY ROWS SECONDS`,
with the server in LONGSHORE_POSTGRESQL_URL, and print their figures as JSON. pytest-benchmark makes a table of them:

    LONGSHORE_POSTGRESQL_URL=postgresql://... python -m pytest benches/asyncpg.py --benchmark-timer=time.process_time

`min` is the server alone: no row is sent. `dummy` receives the rows and throws them away. `record`, `numpy` and `block`
give them.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

try:
    from longshore import asyncpg
    from longshore.asyncpg import set_query_dtype
except ImportError:
    import asyncpg  # type: ignore[no-redef]
    from asyncpg.rkt import set_query_dtype  # type: ignore[no-redef]

ROWS = [100, 1_000, 10_000, 50_000]

QUERY = """\
SELECT i % 2 = 0 AS b0, i % 3 = 0 AS b1, i AS i0, 3 * i AS i1, 1000003 * i AS i2, -i AS i3, i + 7 AS i4,
       (i / 3.0)::float4 AS f,
       '2022-01-01'::timestamp + i * '1 s'::interval AS t0, '2022-02-01'::timestamp + i * '1 min'::interval AS t1,
       '2022-03-01'::timestamp + i * '1 h'::interval AS t2, '2022-04-01'::timestamptz + i * '1 ms'::interval AS t3,
       '00:00'::time + i * '1 ms'::interval AS c0, '12:00'::time + i * '1 us'::interval AS c1,
       decode(md5(i::text), 'hex') AS y0, decode(md5((i + 1)::text), 'hex') AS y1,
       left(md5(i::text), 5) AS s0, left(md5(i::text), 10) AS s1
FROM generate_series(1::int8, $1) AS i"""

KINDS = ["?"] * 2 + ["i8"] * 5 + ["f4"] + ["M8[us]"] * 4 + ["m8[us]"] * 2 + ["S16"] * 2 + ["S5", "S10"]
FIELDS: Any = [(f"f{number}", kind) for number, kind in enumerate(KINDS)]
RECORDS, BLOCKS = np.dtype(FIELDS), np.dtype(FIELDS, metadata={"blocks": True})
ALL, ONE = "SELECT * FROM published", "SELECT * FROM published LIMIT 1"

#: How many groups of fetches are measured at least; the least time of them counts.
GROUPS = 5
GROUP_SECONDS = 0.02


class Client:
    """A connection, and the loop that it lives on."""

    def __init__(self, rows: int) -> None:
        """Connect, and make the rows: a table, so that the server has little to do."""
        self.loop = asyncio.new_event_loop()
        self.connection = self.run(asyncpg.connect(os.environ["LONGSHORE_POSTGRESQL_URL"]))
        # No parameter: a utility statement has none.
        filled = QUERY.replace("$1", str(rows))
        self.run(self.connection.execute(f"CREATE TEMP TABLE published AS {filled}"))

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Wait for a coroutine."""
        return self.loop.run_until_complete(coroutine)

    def close(self) -> None:
        """Leave nothing behind."""
        self.run(self.connection.close())
        self.loop.close()


Fetch = Callable[[], Coroutine[Any, Any, Any]]

#: The ways of fetching: each makes of a query what fetches it, whose dtype is set once.
WAYS: dict[str, Callable[[Client, str], Fetch]] = {
    "min": lambda client, query: partial(client.connection.fetchval, f"SELECT count(rows) FROM ({query}) AS rows"),
    "dummy": lambda client, query: partial(client.connection.executemany, query, [()]),
    "record": lambda client, query: partial(client.connection.fetch, query),
    "numpy": lambda client, query: partial(client.connection.fetch, set_query_dtype(query, RECORDS)),
    "block": lambda client, query: partial(client.connection.fetch, set_query_dtype(query, BLOCKS)),
}


def main(way: str, rows: int, seconds: float) -> None:
    """Print the memory of the first fetch, and the least wall and processor seconds of one."""
    client = Client(rows)
    print(json.dumps(client.run(figures(WAYS[way](client, ONE), WAYS[way](client, ALL), seconds))))
    client.close()


async def figures(one: Fetch, fetch: Fetch, seconds: float) -> dict[str, int | float | None]:
    """Measure fetch after fetch on one loop."""
    # What a first fetch needs for ever is not the result's.
    await one()
    before = memory("VmRSS")
    forget_peak()
    size = held(await fetch())
    peak = memory("VmHWM") - before

    async def group(times: int) -> tuple[float, float]:
        wall, processor = time.perf_counter(), time.process_time()
        for _ in range(times):
            await fetch()
        return (time.perf_counter() - wall) / times, (time.process_time() - processor) / times

    first, _ = await group(1)
    times, end = max(1, round(GROUP_SECONDS / first)), time.perf_counter() + seconds
    groups = [await group(times) for _ in range(GROUPS)]
    while time.perf_counter() < end:
        groups.append(await group(times))
    walls, processors = zip(*groups, strict=True)
    return {"wall": min(walls), "cpu": min(processors), "peak": peak, "size": size}


def forget_peak() -> None:
    """Have the highest memory of this process counted from now on. Linux alone can."""
    Path("/proc/self/clear_refs").write_text("5")


def memory(name: str) -> int:
    """Return a figure of this process's memory, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kibibytes = next(line.split()[1] for line in lines if line.startswith(name))
    return int(kibibytes) << 10


def held(result: Any) -> int | None:
    """Return the bytes of a result's arrays; None where it has none."""
    if not isinstance(result, tuple):
        return None
    array = result[0]
    columns = [array] if isinstance(array, np.ndarray) else array
    return sum(column.nbytes for column in columns)


@pytest.fixture(params=ROWS)
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    """Give a client of a table of so many rows."""
    client = Client(request.param)
    yield client
    client.close()


@pytest.mark.parametrize("way", WAYS)
def test_fetch(way: str, client: Client, benchmark: Any) -> None:
    """Measure one fetch after the other."""
    benchmark.group = f"{client.run(client.connection.fetchval('SELECT count(*) FROM published')):,} rows"
    fetch = WAYS[way](client, ALL)
    benchmark(lambda: client.run(fetch()))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
