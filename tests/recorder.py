"""A network that remembers: which messages a client sends, and in how many flights.

with Recorder((server.host, server.port)) as recorder:
    read(recorder.port)
    assert recorder.flights() == ["PDH", "BES", "X"]
"""

import contextlib
import select
import socket
import threading
from typing import Self


class Recorder:
    """A proxy that remembers the first connection; each letter of a flight is the type of a client's message."""

    def __init__(self, upstream: tuple[str, int]) -> None:
        """Listen on `host` and `port`."""
        self.upstream = upstream
        self._chunks: list[tuple[bool, bytes]] = []
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = "127.0.0.1", int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        """Accept connections."""
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        """Accept no more."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def flights(self) -> list[str]:
        """Return what the first connection said after its start-up, once it is over: one text for each flight."""
        assert self._over.wait(10)
        flights: list[bytes] = []
        spoken = False
        for up, data in self._chunks:
            if up and spoken:
                flights[-1] += data
            elif up:
                flights.append(data)
            spoken = up
        # The first is the start-up packet, which has no type; a password is the start-up's, too.
        letters = [_letters(flight) for flight in flights[1:]]
        return [flight for flight in letters if flight != "p"]

    def _accept(self) -> None:
        chunks: list[tuple[bool, bytes]] | None = self._chunks
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client, chunks), daemon=True).start()
                chunks = None

    def _serve(self, client: socket.socket, chunks: list[tuple[bool, bytes]] | None) -> None:
        with client, socket.create_connection(self.upstream) as server, contextlib.suppress(OSError):
            _carry(client, server, chunks)
        if chunks is not None:
            self._over.set()


def _carry(client: socket.socket, server: socket.socket, chunks: list[tuple[bool, bytes]] | None) -> None:
    while True:
        for source in select.select([client, server], [], [])[0]:
            data = source.recv(1 << 16)
            if not data:
                return
            if chunks is not None:
                chunks.append((source is client, data))
            (server if source is client else client).sendall(data)


def _letters(flight: bytes) -> str:
    letters, at = "", 0
    while at < len(flight):
        letters += chr(flight[at])
        at += 1 + int.from_bytes(flight[at + 1 : at + 5])
    return letters
