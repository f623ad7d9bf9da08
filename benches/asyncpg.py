"""asyncpg's records beside arrays of NumPy: python -m pytest benches/asyncpg.py, with pytest-benchmark.

With ``--benchmark-timer=time.process_time`` it measures the client's processor time. LONGSHORE_POSTGRESQL_URL names
the server. Where asyncpg-rkt 0.27.3 is installed, with NumPy 1.26, and Longshore is not, it measures asyncpg-rkt.

``min`` is the server alone: no row is sent. ``dummy`` receives the rows and throws them away. ``record``, ``numpy`` and
``block`` give them.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator
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
RECORDS = set_query_dtype("SELECT * FROM published", np.dtype(FIELDS))
BLOCKS = set_query_dtype("SELECT * FROM published", np.dtype(FIELDS, metadata={"blocks": True}))


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


@pytest.fixture(params=ROWS)
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    """Give a client of a table of so many rows."""
    client = Client(request.param)
    yield client
    client.close()


MODES: dict[str, Callable[[Client], Coroutine[Any, Any, Any]]] = {
    "min": lambda client: client.connection.fetchval("SELECT count(published) FROM published"),
    "dummy": lambda client: client.connection.executemany("SELECT * FROM published", [()]),
    "record": lambda client: client.connection.fetch("SELECT * FROM published"),
    "numpy": lambda client: client.connection.fetch(RECORDS),
    "block": lambda client: client.connection.fetch(BLOCKS),
}


@pytest.mark.parametrize("mode", MODES)
def test_fetch(mode: str, client: Client, benchmark: Any) -> None:
    """Measure one fetch after the other."""
    benchmark.group = f"{len(client.run(client.connection.fetch('SELECT FROM published'))):,} rows"
    benchmark(lambda: client.run(MODES[mode](client)))
