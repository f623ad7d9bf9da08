"""zstd in front of a server that has none: MySQL packs with it from 8.0.18 on, which is not to be had here.

To the client it is a server that offers zstd and packs as MySQL does, each frame by libzstd; to the server a client
that asks for no compression. See "Compressed Packet" in the manual of MySQL's protocol.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from tests.mysql.relay import exactly, packet, relay

HEADER = 4
#: CLIENT_ZSTD_COMPRESSION_ALGORITHM, in the upper half of the capabilities, and in all of them.
OFFER, ZSTD = 1 << 10, 1 << 26
#: Behind the version: the thread's number, the first part of the nonce, the lower half, the character set, the status.
UPPER = 4 + 9 + 2 + 1 + 2
#: The length below which bytes go as they are.
LEAST = 50
#: How much of what comes is packed at once: whole packets and cut ones, as they come.
CHUNK = 100_000
OK, ERROR = 0, 0xFF
#: The server waits for the client: another authentication, or all of it.
SWITCH, MORE, FULL = 0xFE, 1, 4


@dataclass
class Packed:
    """The counts of frames and bytes that have passed."""

    frames: int = 0
    plain: int = 0
    packed: int = 0


@contextlib.contextmanager
def packer(upstream: tuple[str, int], level: int | None = None) -> Iterator[tuple[int, Packed]]:
    """Give the port of a server with zstd, and the counts of what it packs."""
    counts = Packed()
    with relay(lambda client: _Carrier(client, upstream, level, counts).carry()) as port:
        yield port, counts


class _Carrier:
    def __init__(self, client: socket.socket, upstream: tuple[str, int], level: int | None, counts: Packed) -> None:
        self.client, self.upstream, self.counts = client, upstream, counts
        self.codec = pa.Codec("zstd", compression_level=level)
        #: The number of the next frame: those of the answer go on where the command's end.
        self.number = 0

    def carry(self) -> None:
        with socket.create_connection(self.upstream) as self.server:
            for side in (self.client, self.server):
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._start()
            commands = threading.Thread(target=self._commands, daemon=True)
            commands.start()
            while data := self.server.recv(CHUNK):
                self._pack(data)
            self.client.shutdown(socket.SHUT_RDWR)
            commands.join()

    def _start(self) -> None:
        greeting = bytearray(packet(self.server))
        at = greeting.index(0, HEADER + 1) + 1 + UPPER
        offered = int.from_bytes(greeting[at : at + 2], "little") | OFFER
        greeting[at : at + 2] = offered.to_bytes(2, "little")
        self.client.sendall(greeting)
        self.server.sendall(_without_zstd(packet(self.client)))
        while True:
            answer = packet(self.server)
            self.client.sendall(answer)
            kind = answer[HEADER]
            if kind in {OK, ERROR}:
                return
            if kind == SWITCH or answer[HEADER : HEADER + 2] == bytes([MORE, FULL]):
                self.server.sendall(packet(self.client))

    def _commands(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                header = exactly(self.client, 7)
                data = exactly(self.client, int.from_bytes(header[:3], "little"))
                unpacked = int.from_bytes(header[4:], "little")
                self.number = (header[3] + 1) % 256
                self.server.sendall(self.codec.decompress(data, unpacked).to_pybytes() if unpacked else data)
        with contextlib.suppress(OSError):
            self.server.shutdown(socket.SHUT_RDWR)

    def _pack(self, data: bytes) -> None:
        frame = self.codec.compress(data, asbytes=True) if len(data) >= LEAST else data
        unpacked = len(data)
        if len(frame) >= len(data):
            frame, unpacked = data, 0
        header = len(frame).to_bytes(3, "little") + bytes([self.number]) + unpacked.to_bytes(3, "little")
        self.number = (self.number + 1) % 256
        self.counts.frames += bool(unpacked)
        self.counts.plain += len(data)
        self.counts.packed += len(frame)
        self.client.sendall(header + frame)


def _without_zstd(response: bytes) -> bytes:
    wanted = int.from_bytes(response[HEADER : HEADER + 4], "little")
    if not wanted & ZSTD:
        msg = "the client has not asked for zstd"
        raise ConnectionResetError(msg)
    # The level of the packing is the last thing that it says.
    body = (wanted & ~ZSTD).to_bytes(4, "little") + response[HEADER + 4 : -1]
    return len(body).to_bytes(3, "little") + response[3:4] + body
