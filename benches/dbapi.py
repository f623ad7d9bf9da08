"""Rows as Python objects and statements, next to other drivers: `python -m benches.dbapi --source postgresql`.

Each call runs in a process of its own and counts from the call to its return; the clients take turns, and medians
are printed and kept in benches/results. The works: `fetchall` of a million rows of lineitem, `executemany` of 100,000
INSERTs of five columns, `ingest` of the same rows next to `write_sql`, and `one`, a thousand times `SELECT 1` with its
row on an open connection.
"""

import argparse
import asyncio
import datetime as dt
import json
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

import longshore
from benches import lineitem, lineitem_mariadb, lineitem_sqlite
from benches.drain_sqlite import path
from benches.read import RESULTS, machine

ROWS = 1_000_000
FETCH = f"SELECT * FROM lineitem LIMIT {ROWS}"
INSERTED = [(n, n * 2, n / 3, f"name {n}", dt.date(2020, 1, 1)) for n in range(100_000)]
MAKE = "CREATE TABLE bench_dbapi (a int, b bigint, c double precision, d varchar(20), e date)"
DROP = "DROP TABLE IF EXISTS bench_dbapi"
INSERT = "INSERT INTO bench_dbapi (a, b, c, d, e) VALUES ({})"
CALLS = 1000

#: A client's work: it gets a connection of its own, and gives the seconds.
Work = Callable[[str], float]


def timed(work: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def works(opened: Callable[[str], Any], places: str, *, commits: bool = True) -> dict[str, Work]:
    """Return the works of a client of PEP 249."""

    def fetchall(url: str) -> float:
        with closing(opened(url)) as connection:
            cursor = connection.cursor()

            def work() -> None:
                cursor.execute(FETCH)
                assert len(cursor.fetchall()) == ROWS  # noqa: S101  a benchmark of something else is worth nothing

            return timed(work)

    def executemany(url: str) -> float:
        with closing(opened(url)) as connection:
            cursor = connection.cursor()
            cursor.execute(DROP)
            cursor.execute(MAKE)
            connection.commit()

            def work() -> None:
                cursor.executemany(INSERT.format(places), INSERTED)
                connection.commit()

            return timed(work)

    def one(url: str) -> float:
        with closing(opened(url)) as connection:
            cursor = connection.cursor()
            cursor.execute("SELECT 1")
            if commits:
                connection.commit()

            def work() -> None:
                for _ in range(CALLS):
                    cursor.execute("SELECT 1")
                    cursor.fetchone()

            return timed(work) / CALLS

    return {"fetchall": fetchall, "executemany": executemany, "one": one}


def _psycopg(url: str) -> Any:
    import psycopg

    # Binary results, of the implementation in C.
    return psycopg.connect(url, cursor_factory=_binary_cursor(psycopg))


def _binary_cursor(psycopg: Any) -> Any:
    class BinaryCursor(psycopg.Cursor):  # type: ignore[misc]  # it is not known here
        def execute(self, query: Any, params: Any = None, **keywords: Any) -> Any:
            return super().execute(query, params, binary=True, **keywords)

    return BinaryCursor


def _pymysql(url: str) -> Any:
    import pymysql

    place = urlsplit(url)
    return pymysql.connect(
        host=place.hostname, port=place.port or 3306, user=place.username, password=place.password or "",
        database=place.path[1:],
    )  # fmt: skip


def _asyncpg_fetch(url: str) -> float:
    import asyncpg

    async def fetch() -> float:
        connection = await asyncpg.connect(url)
        start = time.perf_counter()
        assert len(await connection.fetch(FETCH)) == ROWS  # noqa: S101  as above
        seconds = time.perf_counter() - start
        await connection.close()
        return seconds

    return asyncio.run(fetch())


def _into(write: Callable[[Any, Any], object]) -> Work:
    """Return what writes the rows of `executemany` as an Arrow table."""

    def work(url: str) -> float:
        import pyarrow as pa

        columns = zip(*INSERTED, strict=True)
        data = pa.table(dict(zip("abcde", map(list, columns), strict=True)))
        with longshore.connect(url) as connection:
            connection.execute(DROP)
            connection.execute(MAKE)
            connection.commit()

            def write_all() -> None:
                write(data, connection)
                connection.commit()

            return timed(write_all)

    return work


def _ingest(data: Any, connection: longshore.Connection) -> None:
    with connection.cursor() as cursor:
        cursor.adbc_ingest("bench_dbapi", data, "append")


def _write(data: Any, connection: longshore.Connection) -> None:
    longshore.write_sql(data, "bench_dbapi", connection, if_exists="append")


OURS = {"adbc_ingest": {"ingest": _into(_ingest)}, "write_sql": {"ingest": _into(_write)}}
CLIENTS: dict[str, dict[str, dict[str, Work]]] = {
    "postgresql": {
        "longshore": works(longshore.connect, "$1, $2, $3, $4, $5"),
        "psycopg": works(_psycopg, "%s, %s, %s, %s, %s"),
        "asyncpg": {"fetchall": _asyncpg_fetch},
        **OURS,
    },
    "mariadb": {
        "longshore": works(longshore.connect, "?, ?, ?, ?, ?"),
        "pymysql": works(_pymysql, "%s, %s, %s, %s, %s"),
        **OURS,
    },
    "sqlite": {
        "longshore": works(longshore.connect, "?, ?, ?, ?, ?"),
        "sqlite3": works(lambda url: sqlite3.connect(path(url)), "?, ?, ?, ?, ?"),
        **OURS,
    },
}


def main() -> None:
    """Measure, print and keep; or, with a client and a work, measure once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", choices=CLIENTS, default="postgresql")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--works", nargs="*", default=["fetchall", "executemany", "ingest", "one"])
    parser.add_argument("--once", nargs=3, metavar=("CLIENT", "WORK", "URL"))
    arguments = parser.parse_args()
    if arguments.once:
        client, work, url = arguments.once
        print(CLIENTS[arguments.source][client][work](url))
        return
    clients = CLIENTS[arguments.source]
    runs: dict[str, list[float]] = {}
    with place(arguments.source) as url:
        for number in range(arguments.rounds):
            for client, work in [(name, work) for name, its in clients.items() for work in its]:
                if work in arguments.works:
                    sys.stderr.write(f"round {number + 1}: {client} {work}\n")
                    runs.setdefault(f"{work}: {client}", []).append(measured(arguments.source, client, work, url))
    report = {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": machine(),
        "source": arguments.source,
        "rounds": arguments.rounds,
        "seconds": {name: statistics.median(seconds) for name, seconds in sorted(runs.items())},
    }
    print(json.dumps(report, indent=4))
    (RESULTS / f"dbapi-{arguments.source}.json").write_text(json.dumps(report, indent=4) + "\n")


@contextmanager
def place(source: str) -> Iterator[str]:
    """Give the URL of the database that has lineitem."""
    if source == "sqlite":
        yield lineitem_sqlite.loaded(1)
    elif source == "mariadb":
        with lineitem_mariadb.measured_mariadb() as server:
            yield lineitem_mariadb.loaded(1, server)
    else:
        with lineitem.measured_server() as postgresql:
            yield lineitem.loaded(1, postgresql)


def measured(source: str, client: str, work: str, url: str) -> float:
    """Run a client in a process of its own, and return its seconds."""
    command = [sys.executable, "-m", "benches.dbapi", "--source", source, "--once", client, work, url]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main()
