"""Reads by one client of Flight SQL, one after another: `python -m benches.flight_read CLIENT URL QUERY LOOPS`.

It prints their figures as JSON. The first has what is done once for a process in it; Python's imports are in none.
"""

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import adbc_driver_flightsql.dbapi as flightsql
import pyarrow as pa  # noqa: F401  it belongs to the baseline
from adbc_driver_flightsql import DatabaseOptions

import longshore
from benches.drain_flight import drain

#: Larger than any message of the servers that are measured.
MESSAGE = str(1 << 30)


def _longshore(query: str, url: str, **options: Any) -> Any:
    return longshore.read_sql(query, url, return_type="arrow", **options)


def _adbc(query: str, url: str) -> Any:
    place, _, settings = url.partition("?")
    (authority,) = parse_qs(settings)["tls_ca"]
    options = {
        DatabaseOptions.TLS_ROOT_CERTS.value: Path(authority).read_text(),
        DatabaseOptions.WITH_MAX_MSG_SIZE.value: MESSAGE,
    }
    with flightsql.connect(place, db_kwargs=options, autocommit=True) as connection, connection.cursor() as cursor:
        return cursor.execute(query).fetch_arrow_table()


CLIENTS: dict[str, Callable[[str, str], Any]] = {
    "drain": drain,
    "longshore": _longshore,
    "longshore, 2 endpoints": lambda query, url: _longshore(query, url, partition_num=2),
    "adbc-driver-flightsql": _adbc,
}


def main(client: str, url: str, query: str, loops: str) -> None:
    """Read so many times, and print the seconds of each."""
    print(json.dumps([read(CLIENTS[client], url, query) for _ in range(int(loops))]))


def read(client: Callable[[str, str], Any], url: str, query: str) -> dict[str, float]:
    """Read once, and return the seconds; the result is given back after them."""
    before = seconds()
    start = time.perf_counter()
    result = client(query, url)
    wall = time.perf_counter() - start
    cpu = seconds() - before
    del result
    return {"wall": wall, "cpu": cpu}


def seconds() -> float:
    """Return the CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(*sys.argv[1:])
