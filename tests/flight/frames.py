"""HTTP/2 and gRPC by hand: what no library would send."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pyarrow as pa

from tests.servers import LOOPBACK

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
ACK = END_STREAM = 1
END_HEADERS = 4

#: A frame: its kind, flags, stream and bytes.
Frame = tuple[int, int, int, bytes]


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    """Encode a frame."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def headers(pairs: dict[str, str]) -> bytes:
    """Encode short headers, none of which is remembered."""
    texts = (text.encode() for pair in pairs.items() for text in pair)
    lengths = [bytes([len(text)]) + text for text in texts]
    return b"".join(b"\0" + name + value for name, value in zip(lengths[::2], lengths[1::2], strict=True))


def frames(connection: socket.socket) -> Iterator[Frame]:
    """Give the frames of a peer until it closes; its settings and pings are answered."""
    reader = connection.makefile("rb")
    while len(head := reader.read(9)) == 9:
        kind, flags, stream = head[3], head[4], struct.unpack(">I", head[5:])[0]
        payload = reader.read(int.from_bytes(head[:3], "big"))
        if kind in (SETTINGS, PING) and not flags & ACK:
            connection.sendall(frame(kind, ACK, 0, payload if kind == PING else b""))
        yield kind, flags, stream, payload


def number(value: int) -> bytes:
    """Encode a number as Protocol Buffers have it."""
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + number(value >> 7)


def field(at: int, value: bytes) -> bytes:
    """Encode a field of a message: its bytes, text or message."""
    return number(at << 3 | 2) + number(len(value)) + value


def flight_data(message: pa.Buffer | bytes, descriptor: bytes = b"") -> bytes:
    """Encode a message of Arrow's as Flight has it."""
    whole = bytes(message)
    end = 8 + int.from_bytes(whole[4:8], "little")
    return descriptor + field(2, whole[8:end]) + field(1000, whole[end:])


def grpc(message: bytes, *, length: int | None = None, flag: int = 0) -> bytes:
    """Encode a message of gRPC, or one whose length is a lie."""
    return struct.pack(">BI", flag, len(message) if length is None else length) + message


@contextmanager
def answering(answer: Callable[[bytes, int], bytes]) -> Iterator[int]:
    """Serve HTTP/2 on a port, on whose calls, their bytes and stream, frames are sent; after a GOAWAY no byte more."""

    def serve(connection: socket.socket) -> None:
        calls: dict[int, bytes] = {}
        with connection, suppress(OSError):
            connection.sendall(frame(SETTINGS))
            if connection.recv(len(PREFACE), socket.MSG_WAITALL) != PREFACE:
                return
            for kind, flags, stream, payload in frames(connection):
                if kind == DATA:
                    calls[stream] = calls.get(stream, b"") + payload
                if kind in (DATA, HEADERS) and flags & END_STREAM:
                    sent = answer(calls.pop(stream, b""), stream)
                    connection.sendall(sent)
                    if sent.startswith(frame(GOAWAY, payload=bytes(8))):
                        return

    with socket.create_server((LOOPBACK, 0)) as listening:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
