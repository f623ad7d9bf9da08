"""One aggregate over a remote table, next to the same query sent by hand: prints median seconds as JSON.

python -m benches.sql_remote ROUNDS

All clients are in one process, over a warm connection each, and take turns: what disturbs one disturbs all.
"""

import asyncio
import contextlib
import datetime as dt
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping

import asyncpg
import psycopg

import longshore
from benches import lineitem

SQL, BY_HAND = "longshore.sql", "longshore.read_sql"
QUERY = "SELECT sum(l_extendedprice) FROM {} WHERE l_shipdate = '1995-06-17'"
#: A query takes milliseconds with an index.
TURNS = 10

Clients = Mapping[str, Callable[[], object]]


def main(rounds: str) -> None:
    """Measure over the whole table, and over an index that is there for as long."""
    index = "remote_shipdate"
    with lineitem.measured_server() as server:
        url = lineitem.loaded(1, server)
        with longshore.connect(url, autocommit=True) as owner, clients(url) as every:
            owner.execute(f"DROP INDEX IF EXISTS {index}")
            scanned = medians(every, int(rounds))
            owner.execute(f"CREATE INDEX {index} ON lineitem (l_shipdate)")
            try:
                found = medians(every, int(rounds))
            finally:
                owner.execute(f"DROP INDEX {index}")
    print(json.dumps({name: {"no index": scanned[name], "index": found[name]} for name in every}))


@contextlib.contextmanager
def clients(url: str) -> Iterator[Clients]:
    """Give the clients, connected."""
    query = QUERY.format("lineitem")
    with (
        longshore.connect(url, autocommit=True) as attached,
        longshore.connect(url, autocommit=True) as connection,
        psycopg.connect(url, autocommit=True) as synchronous,
        contextlib.closing(asyncio.new_event_loop()) as loop,
    ):
        asynchronous = loop.run_until_complete(asyncpg.connect(url))
        attach = {"pg": attached}
        yield {
            SQL: lambda: longshore.sql(QUERY.format("pg.lineitem"), attach=attach),
            f"{SQL}, a parameter": lambda: longshore.sql(
                QUERY.format("pg.lineitem").replace("'1995-06-17'", "?"), attach=attach, params=[dt.date(1995, 6, 17)]
            ),
            BY_HAND: lambda: longshore.read_sql(query, connection),
            "psycopg": lambda: synchronous.execute(query).fetchall(),
            "asyncpg": lambda: loop.run_until_complete(asynchronous.fetch(query)),
        }
        loop.run_until_complete(asynchronous.close())


def medians(every: Clients, rounds: int) -> dict[str, float]:
    """Return each client's median seconds, after one turn that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in every}
    for turn in range(rounds * TURNS + 1):
        for name, run in every.items():
            start = time.perf_counter()
            run()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(each) for name, each in seconds.items()}


if __name__ == "__main__":
    main(*sys.argv[1:])
