"""Reading Trino next to its Python client, and to draining its pages: `python -m benches.trino`.

The table is TPC-H's lineitem in Trino's memory. The clients take turns; seconds and this process's CPU seconds are
medians of all rounds. `drain` gets the pages over one connection and throws them away. Needs `pip install trino`.
"""

import argparse
import contextlib
import http.client
import importlib
import json
import statistics
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import longshore
from benches.read import machine
from tests.servers import Trino

QUERY = "SELECT * FROM memory.bench.lineitem"
Client = Callable[[Trino], int]


def drained(server: Trino) -> int:
    """Get the pages, and count their bytes."""
    headers, size = {"X-Trino-User": "me", "X-Trino-Query-Data-Encoding": "json+zstd,json+lz4,json"}, 0
    with contextlib.closing(http.client.HTTPConnection(server.host, server.port)) as connection:
        connection.request("POST", "/v1/statement", QUERY, headers)
        while True:
            body = connection.getresponse().read()
            size += len(body)
            # The address of the next page is before the rows.
            _, found, rest = body.partition(b'"nextUri":"')
            if not found:
                return size
            connection.request("GET", urlsplit(rest[: rest.index(b'"')].decode()).path, headers={"X-Trino-User": "me"})


def by_longshore(server: Trino) -> int:
    """Read into an Arrow table."""
    return int(longshore.read_sql(QUERY, server.url(database="memory/bench"), return_type="arrow").num_rows)


def by_client(server: Trino) -> int:
    """Fetch all rows by Trino's own client."""
    dbapi: Any = importlib.import_module("trino.dbapi")
    with contextlib.closing(dbapi.connect(host=server.host, port=server.port, user="me")) as connection:
        cursor = connection.cursor()
        cursor.execute(QUERY)
        return len(cursor.fetchall())


CLIENTS: dict[str, Client] = {"drain": drained, "longshore": by_longshore, "trino": by_client}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=600_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in CLIENTS}
    with Trino() as server:
        with longshore.connect(server.url(), autocommit=True) as connection:
            connection.execute("CREATE SCHEMA memory.bench")
            source = f"SELECT * FROM tpch.sf1.lineitem LIMIT {arguments.rows}"
            connection.execute(f"CREATE TABLE memory.bench.lineitem AS {source}")
        for number in range(arguments.rounds + 1):
            for name, client in CLIENTS.items():
                wall, cpu = time.perf_counter(), time.process_time()
                count = client(server)
                if name != "drain" and count != arguments.rows:
                    message = f"{name} has read {count} rows"
                    raise SystemExit(message)
                # The first round warms the server up.
                if number:
                    figures[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    medians = {name: [*map(statistics.median, zip(*runs, strict=True))] for name, runs in figures.items()}
    print(json.dumps({"machine": machine(), "rows": arguments.rows, "rounds": arguments.rounds}))
    for name, (wall, cpu) in medians.items():
        ratios = f"{wall / medians['drain'][0]:.2f} x drain, {cpu / medians['trino'][1]:.2f} x the client's CPU"
        print(f"{name:10} {wall:6.2f} s {cpu:6.2f} s CPU  {ratios}")


if __name__ == "__main__":
    main()
