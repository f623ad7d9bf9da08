"""The limit of a client: a query's bytes, read and thrown away.

Speaks just enough of the protocol for a server that trusts its clients.
"""

import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import unquote, urlsplit

BUFFER = 1 << 20
LOW_WATER = 256 << 10
# Seconds and microseconds, as the socket option takes them: the end of the answer is shorter than the low water.
WAIT = struct.pack("ll", 0, 5_000)
READY = b"Z\x00\x00\x00\x05I"


def drain(query: str, url: str, *, partition_num: int = 1, patient: bool = False) -> int:
    """Run ``query`` with every column in binary, and return the number of bytes that came back.

    Several parts are ranges of a table's blocks, each read in a thread and over a connection of its own; the query is
    then ``SELECT ... FROM table``. A patient drain lets a good amount gather before each read, as Longshore does.
    """
    if partition_num == 1:
        return _drain(query, url, patient=patient)
    with ThreadPoolExecutor(partition_num) as threads:
        return sum(threads.map(partial(_drain, url=url, patient=patient), _parts(query, partition_num)))


def _parts(query: str, number: int) -> list[str]:
    """Return the queries of the parts, whose bounds the server computes: no part has to wait for an answer."""
    table = query.rpartition(" FROM ")[2]
    blocks = f"pg_relation_size('{table}') / current_setting('block_size')::bigint"
    # A subquery is computed once, and is a bound of a scan over a range of blocks.
    bounds = [f"(SELECT format('(%s,0)', {blocks} * {part} / {number})::tid)" for part in range(1, number)]
    lowest = ["", *(f"ctid >= {bound}" for bound in bounds)]
    highest = [*(f"ctid < {bound}" for bound in bounds), ""]
    ranges = zip(lowest, highest, strict=True)
    return [f"{query} WHERE {' AND '.join(filter(None, range_))}" for range_ in ranges]


def _drain(query: str, url: str, *, patient: bool) -> int:
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        _start(connection, unquote(parts.username or "postgres"), parts.path.removeprefix("/"))
        if patient:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, LOW_WATER)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, WAIT)
        text = query.encode()
        connection.sendall(
            _message(b"P", b"\0" + text + b"\0" + struct.pack("!h", 0))
            # No parameters, and one result format for all columns: binary.
            + _message(b"B", b"\0\0" + struct.pack("!hhhh", 0, 0, 1, 1))
            + _message(b"E", b"\0" + struct.pack("!i", 0))
            + _message(b"S", b"")
        )
        return _read(connection)


def _start(connection: socket.socket, user: str, database: str) -> None:
    settings = f"user\0{user}\0database\0{database}\0\0".encode()
    connection.sendall(struct.pack("!ii", len(settings) + 8, 196608) + settings)
    _read(connection)


def _message(tag: bytes, body: bytes) -> bytes:
    return tag + struct.pack("!i", len(body) + 4) + body


def _read(connection: socket.socket) -> int:
    buffer = bytearray(BUFFER)
    total = 0
    # The end marker may come in two reads.
    last = b""
    while True:
        try:
            count = connection.recv_into(buffer)
        except BlockingIOError:
            continue
        total += count
        if not count:
            message = "the server closed the connection"
            raise ConnectionError(message)
        last = (last + buffer[max(0, count - len(READY)) : count])[-len(READY) :]
        if last == READY:
            return total
