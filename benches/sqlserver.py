"""Reading a million rows from the server that speaks TDS to the tests: `python -m benches.sqlserver`.

Each read runs in a process of its own, and the medians are printed. `drain` says again what a client of ours has said,
and throws the answer away: the limit of a client that reads the bytes as they come.
"""

import argparse
import datetime as dt
import json
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import longshore
from tests.mssql.reading import prepare, url
from tests.servers import MSSQL
from tests.tds.tokens import Column, Rows
from tests.tds.types import DATE, datetime2, decimal, nvarchar, simple

QUERY = "SELECT * FROM boats"
ROWS, TIMES = 1000, 1000
COLUMNS = (
    Column("id", simple("bigint")),
    Column("quay", simple("int")),
    Column("length", simple("float")),
    Column("price", decimal(12, 2)),
    Column("name", nvarchar(40)),
    Column("kind", nvarchar(10)),
    Column("built", DATE),
    Column("seen", datetime2(3)),
)
BUFFER = 1 << 20


def main() -> None:
    """Measure, or read once where a client is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--client", nargs=2, metavar=("NAME", "URL"))
    parser.add_argument("--said", type=Path)
    arguments = parser.parse_args()
    if arguments.client:
        name, address = arguments.client
        begun, cpu = time.perf_counter(), time.process_time()
        CLIENTS[name](address, arguments.said)
        print(json.dumps([time.perf_counter() - begun, time.process_time() - cpu]))
        return
    with MSSQL() as server:
        answer(server)
        said = server.home / "said"
        said.write_text(json.dumps(conversation(server)))
        for name in CLIENTS:
            runs = [once(name, server, said) for _ in range(arguments.rounds)]
            wall, cpu = (statistics.median(figures) for figures in zip(*runs, strict=True))
            rate = ROWS * TIMES / cpu / 1e6
            print(f"{name:12} {wall:6.2f} s, {cpu:6.2f} s of CPU, {rate:6.2f} million rows a CPU second")


def answer(server: MSSQL) -> None:
    """Have the server answer the query, and whatever else a client asks about it."""
    prepare(server)
    days = [dt.date(2000, 1, 1) + dt.timedelta(days=at) for at in range(ROWS)]
    rows = [
        (at, at % 7, at / 3, Decimal(f"{at}.25"), f"boat number {at}", "sloop", str(day), f"{day} 12:34:56.789")
        for at, day in enumerate(days)
    ]
    server.answer("boats", Rows(COLUMNS, rows), match="contains")
    server.answer(QUERY, Rows(COLUMNS, rows, times=TIMES))


def conversation(server: MSSQL) -> list[tuple[str, int]]:
    """Return what a client says, each time with the number of bytes that answer it."""
    turns: list[tuple[bytearray, list[int]]] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def relay() -> None:
            client, _ = listener.accept()
            with client, socket.create_connection(("127.0.0.1", server.port)) as upstream:
                back = threading.Thread(target=copy, args=(upstream, client, heard))
                back.start()
                copy(client, upstream, say)
                back.join()

        def say(data: bytes) -> None:
            if not turns or turns[-1][1]:
                turns.append((bytearray(), []))
            turns[-1][0].extend(data)

        def heard(data: bytes) -> None:
            turns[-1][1].append(len(data))

        thread = threading.Thread(target=relay)
        thread.start()
        longshore.read_sql(QUERY, url(server, port=str(port)), return_type="arrow")
        thread.join()
    return [(said.hex(), sum(counts)) for said, counts in turns]


def copy(source: socket.socket, target: socket.socket, note: Callable[[bytes], None]) -> None:
    """Hand bytes on until the source ends."""
    while data := source.recv(BUFFER):
        note(data)
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)


def once(name: str, server: MSSQL, said: Path) -> list[float]:
    """Run a client in a process of its own, and return its seconds and those of its CPU."""
    command = [sys.executable, "-m", "benches.sqlserver", "--said", str(said), "--client", name]
    # ConnectorX does not log in without encryption.
    command.append(url(server, port=str(server.login_port if name == "ConnectorX" else server.port)))
    figures: list[float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return figures


def drain(address: str, said: Path) -> None:
    """Say what was said, and throw the answers away."""
    host, port = address.split("@")[1].split("/", maxsplit=1)[0].split(":")
    buffer = bytearray(BUFFER)
    with socket.create_connection((host, int(port))) as connection:
        for text, count in json.loads(said.read_text()):
            connection.sendall(bytes.fromhex(text))
            left = count
            while left > 0:
                left -= connection.recv_into(buffer)


def read(address: str, _: Path) -> None:
    """Read into Arrow."""
    table = longshore.read_sql(QUERY, address, return_type="arrow")
    check(table.num_rows)


def check(rows: int) -> None:
    """Refuse a result that is not whole."""
    if rows != ROWS * TIMES:
        message = f"{rows} rows have come"
        raise ValueError(message)


def connectorx(address: str, _: Path) -> None:
    """Read into Arrow by ConnectorX."""
    import connectorx as cx

    address = address.partition("?")[0] + "?encrypt=false&trust_server_certificate=true"
    table = cx.read_sql(address, QUERY, return_type="arrow")
    check(len(table))


CLIENTS: dict[str, Callable[[str, Path], None]] = {"drain": drain, "longshore": read, "ConnectorX": connectorx}

if __name__ == "__main__":
    main()
