"""The limit of a client of Flight SQL: a query's messages, read by TLS and thrown away, in just enough of HTTP/2."""

import socket
import ssl
import struct
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

BUFFER = 1 << 20
FRAME = 1 << 20
#: The bytes that the server may send ahead, and after how many bytes it hears that there is room again.
WINDOW = (1 << 31) - 1
REFILL = 1 << 26
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
HEAD = 9
SERVICE = "/arrow.flight.protocol.FlightService/"
STATEMENT = b"type.googleapis.com/arrow.flight.protocol.sql.CommandStatementQuery"


def drain(query: str, url: str) -> int:
    """Run ``query``, and return the number of bytes that came back."""
    parts = urlsplit(url)
    (authority,) = parse_qs(parts.query)["tls_ca"]
    context = ssl.create_default_context(cafile=authority)
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection((parts.hostname, parts.port)) as plain,
        context.wrap_socket(plain, server_hostname=parts.hostname) as connection,
    ):
        calls = _Calls(connection, parts.netloc)
        command = _field(1, STATEMENT) + _field(2, _field(1, query.encode()))
        info = bytearray()
        # A descriptor of the kind "command".
        calls.call(1, "GetFlightInfo", b"\x08\x02" + _field(2, command), into=info)
        # Before the message are its length and whether it is compressed.
        ticket = _first(_first(bytes(info[5:]), 3), 1)
        return calls.call(3, "DoGet", ticket)


class _Calls:
    """Calls of gRPC over a connection, one after another."""

    def __init__(self, connection: ssl.SSLSocket, host: str) -> None:
        self._connection, self._host = connection, host
        self._buffer = memoryview(bytearray(BUFFER))
        self._at = self._end = 0
        settings = struct.pack(">HIHI", 4, WINDOW, 5, FRAME)
        more = struct.pack(">I", WINDOW - 65535)
        hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        connection.sendall(hello + _frame(SETTINGS, 0, 0, settings) + _frame(WINDOW_UPDATE, 0, 0, more))

    def call(self, stream: int, method: str, message: bytes, into: bytearray | None = None) -> int:
        """Make a call, and return the bytes of its answer; ``into`` keeps them."""
        pairs = [(":method", "POST"), (":scheme", "https"), (":path", SERVICE + method), (":authority", self._host)]
        pairs += [("content-type", "application/grpc"), ("te", "trailers")]
        head = b"".join(b"\0" + _text(name) + _text(value) for name, value in pairs)
        body = struct.pack(">BI", 0, len(message)) + message
        self._connection.sendall(_frame(HEADERS, END_HEADERS, stream, head) + _frame(DATA, END_STREAM, stream, body))
        return self._read(stream, into)

    def _read(self, stream: int, into: bytearray | None) -> int:
        """Read frames until the answer has ended."""
        total = since = 0
        for kind, flags, size, pieces in self._frames():
            if kind == DATA:
                for piece in pieces:
                    if into is not None:
                        into += piece
                total, since = total + size, since + size
            else:
                self._hear(kind, flags, b"".join(pieces))
            if kind in {DATA, HEADERS} and flags & END_STREAM:
                break
            if since > REFILL:
                room = struct.pack(">I", since)
                self._connection.sendall(_frame(WINDOW_UPDATE, 0, 0, room) + _frame(WINDOW_UPDATE, 0, stream, room))
                since = 0
        return total

    def _frames(self) -> Iterator[tuple[int, int, int, Iterator[memoryview]]]:
        """Give each frame: its kind, its flags, its size and its pieces, which have to be taken."""
        while True:
            head = b"".join(self._pieces(HEAD))
            size = int.from_bytes(head[:3])
            yield head[3], head[4], size, self._pieces(size)

    def _pieces(self, size: int) -> Iterator[memoryview]:
        """Give so many bytes, in the pieces that they come in."""
        while size:
            if self._at == self._end:
                self._at, self._end = 0, self._connection.recv_into(self._buffer)
                if not self._end:
                    raise ConnectionError
            piece = self._buffer[self._at : min(self._end, self._at + size)]
            self._at, size = self._at + len(piece), size - len(piece)
            yield piece

    def _hear(self, kind: int, flags: int, body: bytes) -> None:
        """Answer what the connection needs."""
        if kind in {RESET, GOAWAY}:
            raise ConnectionError(body)
        if kind in {SETTINGS, PING} and not flags & ACK:
            self._connection.sendall(_frame(kind, ACK, 0, body if kind == PING else b""))


def _frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3) + struct.pack(">BBI", kind, flags, stream) + body


def _text(text: str) -> bytes:
    """Encode a text of fewer than 127 bytes as a header has it."""
    return bytes([len(text)]) + text.encode()


def _field(number: int, value: bytes) -> bytes:
    """Encode a field of a message of Protocol Buffers."""
    size, length = len(value), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + value


def _first(message: bytes, wanted: int) -> bytes:
    """Return the first field of this number that has a length."""
    at = 0

    def number() -> int:
        nonlocal at
        found = shift = 0
        while True:
            byte = message[at]
            at, found, shift = at + 1, found | (byte & 127) << shift, shift + 7
            if byte < 128:
                return found

    while at < len(message):
        tag = number()
        if tag & 7 == 0:
            number()
            continue
        length = number()
        if tag >> 3 == wanted:
            return message[at : at + length]
        at += length
    raise ConnectionError
