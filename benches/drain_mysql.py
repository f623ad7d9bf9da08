"""The limit of a client of MySQL's protocol: a query's bytes, read and thrown away.

Speaks just enough of the protocol for a MariaDB whose users have no password.
"""

import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Literal
from urllib.parse import unquote, urlsplit

Protocol = Literal["binary", "text"]

BUFFER = 1 << 20
#: CLIENT_LONG_PASSWORD, LONG_FLAG, CONNECT_WITH_DB, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, PLUGIN_AUTH. Without
#: DEPRECATE_EOF a result ends with a packet of five bytes.
CAPABILITIES = 0x1 | 0x4 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x80000
UTF8MB4 = 45
QUERY, PREPARE, EXECUTE = b"\x03", b"\x16", b"\x17"
EOF, ERROR = 0xFE, 0xFF
HEADER = 4
#: The last packet with its header.
END = HEADER + 5


def drain(
    query: str, url: str, *, partition_num: int = 1, partition_on: str = "l_orderkey", protocol: Protocol = "binary"
) -> int:
    """Run ``query``, and return the number of bytes that came back.

    Several parts are ranges of a key, each read in a thread and over a connection of its own; the query is then
    ``SELECT ... FROM table``.
    """
    run = partial(_drain, url=url, protocol=protocol)
    if partition_num == 1:
        return run(query)
    with ThreadPoolExecutor(partition_num) as threads:
        return sum(threads.map(run, _parts(query, partition_num, partition_on)))


def _parts(query: str, number: int, on: str) -> list[str]:
    """Return the queries of the parts, whose bounds the server finds at the end of the key's index."""
    highest = f"(SELECT max({on}) FROM {query.rpartition(' FROM ')[2]})"
    bounds = [f"{highest} * {part} DIV {number}" for part in range(1, number)]
    lower = ["", *(f"{on} > {bound}" for bound in bounds)]
    upper = [*(f"{on} <= {bound}" for bound in bounds), ""]
    return [f"{query} WHERE {' AND '.join(filter(None, both))}" for both in zip(lower, upper, strict=True)]


def _drain(query: str, url: str, protocol: Protocol) -> int:
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        server = _Server(connection)
        server.enter(unquote(parts.username or "root"), parts.path.removeprefix("/"))
        if protocol == "text":
            server.say(0, QUERY + query.encode())
        else:
            server.say(0, PREPARE + query.encode())
            _, number, columns, _ = struct.unpack_from("<BIHH", server.hear())
            for _ in range(columns + bool(columns)):
                server.hear()
            # No cursor, and run once.
            server.say(0, EXECUTE + struct.pack("<IBI", number, 0, 1))
        # One byte of columns, so many definitions, and their end.
        for _ in range(server.hear()[0] + 1):
            server.hear()
        return server.drain()


class _Server:
    """Packets from a server and to it."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.received = b""

    def enter(self, user: str, database: str) -> None:
        """Answer the greeting."""
        self.hear()
        answer = struct.pack("<IIB23x", CAPABILITIES, 1 << 24, UTF8MB4) + user.encode() + b"\0"
        self.say(1, answer + b"\0" + database.encode() + b"\0mysql_native_password\0")
        self.hear()

    def say(self, number: int, text: bytes) -> None:
        self.connection.sendall(struct.pack("<I", len(text) | number << 24) + text)

    def hear(self) -> bytes:
        """Return the next packet's content."""
        while len(self.received) < HEADER or len(self.received) < HEADER + self._length():
            data = self.connection.recv(BUFFER)
            if not data:
                message = "the server closed the connection"
                raise ConnectionError(message)
            self.received += data
        end = HEADER + self._length()
        packet, self.received = self.received[HEADER:end], self.received[end:]
        if packet[0] == ERROR:
            raise RuntimeError(packet[9:].decode(errors="replace"))
        return packet

    def _length(self) -> int:
        return int.from_bytes(self.received[:3], "little")

    def drain(self) -> int:
        """Throw away all rows, and return their bytes."""
        buffer = bytearray(BUFFER)
        total, last = len(self.received), self.received[-END:]
        while not (len(last) == END and last[:3] == b"\x05\0\0" and last[4] == EOF):
            count = self.connection.recv_into(buffer)
            if not count:
                message = "the server closed the connection"
                raise ConnectionError(message)
            total += count
            last = (last + buffer[max(0, count - END) : count])[-END:]
        return total
