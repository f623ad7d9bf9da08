"""The limit of a client of SQL Server: a query's bytes, read and thrown away, in just enough of TDS to log in."""

import socket
import struct
from urllib.parse import unquote, urlsplit

BUFFER = 1 << 20
#: The packet's size that Microsoft's clients ask for.
PACKET = 8_000
BATCH, LOGIN7, PRELOGIN = 1, 16, 18
#: Headers of which there is one: no transaction.
HEADERS = struct.pack("<IIHQI", 22, 18, 2, 0, 1)
VERSION = 0x74000004


def drain(query: str, url: str) -> int:
    """Run ``query`` without encryption, and return the number of bytes that came back."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        # It cannot encrypt.
        connection.sendall(_packet(PRELOGIN, b"\1\0\6\0\1\xff\2"))
        _read(connection)
        connection.sendall(_packet(LOGIN7, _login(unquote(parts.username or ""), unquote(parts.password or ""))))
        _read(connection)
        connection.sendall(_packet(BATCH, HEADERS + query.encode("utf-16-le")))
        return _read(connection)


def _packet(kind: int, body: bytes) -> bytes:
    return struct.pack(">BBHHBB", kind, 1, len(body) + 8, 0, 1, 0) + body


def _login(user: str, password: str) -> bytes:
    fixed = struct.pack("<IIIIIBBBBiI", VERSION, PACKET, 0, 0, 0, 0xE0, 0x03, 0, 0, 0, 0)
    # Each byte has its halves swapped, and is changed by xor.
    hidden = bytes(((byte << 4 | byte >> 4) & 0xFF) ^ 0xA5 for byte in password.encode("utf-16-le"))
    texts = [b"", user.encode("utf-16-le"), hidden, *[b""] * 6]
    at = 94
    places = b""
    for text in texts:
        places += struct.pack("<HH", at, len(text) // 2)
        at += len(text)
    body = fixed + places + bytes(6) + struct.pack("<HHHHHHI", at, 0, at, 0, at, 0, 0) + b"".join(texts)
    return struct.pack("<I", len(body) + 4) + body


def _read(connection: socket.socket) -> int:
    """Read a message to its end, which a packet's header tells."""
    buffer = memoryview(bytearray(BUFFER))
    held = total = at = 0
    while True:
        got = connection.recv_into(buffer[held:])
        if not got:
            raise ConnectionError
        held += got
        while held - at >= 8:
            status, length = buffer[at + 1], int.from_bytes(buffer[at + 2 : at + 4])
            if at + length > held:
                break
            at, total = at + length, total + length
            if status & 1:
                return total
        # What is left of a packet begins the next read.
        rest = bytes(buffer[at:held])
        buffer[: len(rest)] = rest
        held, at = len(rest), 0
