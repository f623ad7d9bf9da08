"""A network that fails on purpose: a proxy in front of a server that cuts, stalls or garbles at a chosen byte.

It takes two milliseconds an exchange, so that a long run can go through every byte of one. A short run goes through the
messages, for the Rust tests play recorded conversations again with a fault at every byte:

    with Cutter(server.socket_path) as cutter:
        whole = cutter.measure(lambda: read(cutter.port))
        for byte in bytes_of_messages(whole.said_down, postgresql_messages):
            with cutter.fault("cut", byte):
                read(cutter.port)

Sockets and threads are gone when the block ends, whatever the client did.
"""

import contextlib
import itertools
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Self

from tests.long import IS_LONG

Action = Literal["cut", "reset", "stall", "garble"]
Way = Literal["down", "up"]

CHUNK = 1 << 16
CLOSE_SECONDS = 10.0
#: SO_LINGER with no time to linger: closing sends RST.
ABORT = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Fault:
    """The fault of a connection once `byte` bytes have gone one way: down from the server, or up to it.

    "cut" ends it properly (FIN), "reset" improperly (RST); "stall" leaves it open, and lets nothing more pass that way;
    "garble" changes the next byte by xor with `mask`.
    """

    action: Action
    byte: int
    way: Way = "down"
    mask: int = 0xFF


@dataclass
class Count:
    """How many bytes a connection has carried each way, and which, if it was measured."""

    down: int = 0
    up: int = 0
    said_down: bytearray | None = None
    said_up: bytearray | None = None


class Cutter:
    """The proxy, for any number of connections one after the other or at once."""

    def __init__(self, upstream: str | tuple[str, int]) -> None:
        """Listen on `host` and `port`; `upstream` is a Unix socket's path, or a host and port."""
        self.upstream = upstream
        #: Of every connection since the last `fault` or `measure`, in the order in which they came.
        self.counts: list[Count] = []
        self._fault: Fault | None = None
        self._faulted: int | None = None
        self._recording = False
        self._closing = False
        self._links: dict[threading.Thread, _Link] = {}
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.host, self.port = "127.0.0.1", int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._accept, name="cutter", daemon=True)

    def __enter__(self) -> Self:
        """Accept connections."""
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        """End every connection, and wait until nothing is left."""
        self._closing = True
        # A caller of our own wakes the thread that waits for one.
        with contextlib.suppress(OSError):
            socket.create_connection((self.host, self.port)).close()
        self._thread.join()
        self._listener.close()
        self.drop()

    @contextlib.contextmanager
    def fault(
        self, action: Action, byte: int, *, way: Way = "down", mask: int = 0xFF, connections: int | None = None
    ) -> Iterator[None]:
        """Have the connections that are made meanwhile fail: all of them, or the first few."""
        self._begin(Fault(action, byte, way, mask), connections)
        try:
            yield
        finally:
            self._begin(None)

    def measure(self, exchange: Callable[[], object]) -> Count:
        """Return how many bytes an exchange over one connection takes where nothing fails, its goodbye included."""
        self._begin(None, recording=True)
        exchange()
        self.wait()
        (count,) = self.counts
        self._begin(None)
        return count

    def wait(self, seconds: float = CLOSE_SECONDS) -> None:
        """Wait until the clients have closed all their connections."""
        deadline = time.monotonic() + seconds
        for thread in self._threads():
            thread.join(max(0.0, deadline - time.monotonic()))
        if left := len(self._threads()):
            message = f"{left} connections are still open"
            raise TimeoutError(message)

    def drop(self) -> None:
        """End the connections that are open now."""
        with self._lock:
            for link in self._links.values():
                link.interrupt()
        self.wait()

    def _begin(self, fault: Fault | None, connections: int | None = None, *, recording: bool = False) -> None:
        with self._lock:
            self._fault, self._faulted, self._recording, self.counts = fault, connections, recording, []

    def _threads(self) -> list[threading.Thread]:
        with self._lock:
            return list(self._links)

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            if self._closing:
                client.close()
                return
            try:
                server = self._dial()
            except OSError:
                client.close()
                continue
            self._open(client, server)

    def _dial(self) -> socket.socket:
        if isinstance(self.upstream, tuple):
            return socket.create_connection(self.upstream)
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self.upstream)
        except OSError:
            server.close()
            raise
        return server

    def _open(self, client: socket.socket, server: socket.socket) -> None:
        with self._lock:
            spared = self._faulted is not None and len(self.counts) >= self._faulted
            link = _Link(client, server, None if spared else self._fault)
            if self._recording:
                link.count.said_down, link.count.said_up = bytearray(), bytearray()
            self.counts.append(link.count)
            thread = threading.Thread(target=self._carry, args=(link,), daemon=True)
            self._links[thread] = link
            thread.start()

    def _carry(self, link: "_Link") -> None:
        try:
            link.run()
        finally:
            with self._lock:
                del self._links[threading.current_thread()]


class _Link:
    """One connection: a socket each side, and one thread that carries bytes between them."""

    def __init__(self, client: socket.socket, server: socket.socket, fault: Fault | None) -> None:
        self.client, self.server, self.fault = client, server, fault
        self.count = Count()
        self._open = [client, server]
        self._deaf = False
        # A stream of small messages must not wait to become a large one.
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def run(self) -> None:
        """Carry bytes until either side ends, or the fault ends both."""
        # Either side may reset its connection at any time; that, too, is an end.
        with self.client, self.server, contextlib.suppress(OSError):
            alive = self._act("down") and self._act("up")
            while alive and self._open:
                for source in self._readable():
                    alive = alive and self._pass_on(source)

    def _readable(self) -> list[socket.socket]:
        """Wait until there is something to read."""
        waiting = select.poll()  # select.select() takes no descriptor above 1,023
        for source in self._open:
            waiting.register(source, select.POLLIN)
        ready = {descriptor for descriptor, _ in waiting.poll()}
        return [source for source in self._open if source.fileno() in ready]

    def interrupt(self) -> None:
        """End the connection, from another thread."""
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _pass_on(self, source: socket.socket) -> bool:
        """Carry what there is one way; tell whether to go on."""
        way: Way = "down" if source is self.server else "up"
        target = self.client if source is self.server else self.server
        data = source.recv(CHUNK if self._deaf else self._room(way))
        if not data:
            if source is self.server:
                self._part()
            return False
        if self._deaf and source is self.client:
            return True
        target.sendall(self._garbled(data, way))
        self._add(way, data)
        return self._act(way)

    def _carried(self, way: Way) -> int:
        return self.count.down if way == "down" else self.count.up

    def _add(self, way: Way, data: bytes) -> None:
        said = self.count.said_down if way == "down" else self.count.said_up
        if said is not None:
            said += data
        if way == "down":
            self.count.down += len(data)
        else:
            self.count.up += len(data)

    def _room(self, way: Way) -> int:
        """Return how much may be read before the fault is due."""
        if self.fault is None or self.fault.way != way or self.fault.action == "garble":
            return CHUNK
        return min(CHUNK, self.fault.byte - self._carried(way))

    def _garbled(self, data: bytes, way: Way) -> bytes:
        if self.fault is None or self.fault.way != way or self.fault.action != "garble":
            return data
        at = self.fault.byte - self._carried(way)
        if not 0 <= at < len(data):
            return data
        return data[:at] + bytes([data[at] ^ self.fault.mask]) + data[at + 1 :]

    def _act(self, way: Way) -> bool:
        """Do what the fault says if its byte is reached; tell whether to go on."""
        fault = self.fault
        if fault is None or fault.way != way or fault.action == "garble" or self._carried(way) < fault.byte:
            return True
        if fault.action == "stall":
            self._stall(way)
            return True
        if fault.action == "reset":
            self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
            return False
        self._part()
        return False

    def _stall(self, way: Way) -> None:
        """Let nothing more pass. What the client says is still read, for its end is to be noticed."""
        if way == "up":
            self._deaf = True
        elif self.server in self._open:
            self._open.remove(self.server)

    def _part(self) -> None:
        """End both sides properly, once the client has seen all that was sent to it."""
        self.server.close()
        self.client.shutdown(socket.SHUT_WR)
        # Closing while bytes of the client are unread would reset the connection.
        self.client.settimeout(CLOSE_SECONDS)
        while self.client.recv(CHUNK):
            pass


Messages = Callable[[bytearray], Iterator[int]]


def bytes_of_messages(said: bytearray | None, messages: Messages) -> list[int]:
    """Return the bytes to fail at: in a long run all, else the first of each message and one of its middle.

    The end of what was said is the last.
    """
    assert said
    if IS_LONG:
        return list(range(len(said) + 1))
    starts = [*messages(said), len(said)]
    found = {len(said)}
    for start, end in itertools.pairwise(starts):
        found.update((start, (start + end) // 2))
    return sorted(found)


def spread(size: int, step: int) -> range:
    """Return the bytes to fail at, from the first to the end: each `step`th, and a third of those in a short run."""
    return range(0, size + 1, step if IS_LONG else 3 * step)


def postgresql_messages(said: bytearray) -> Iterator[int]:
    """Find where each message begins: a letter and a length; the client's first has no letter."""
    at = 0
    if not said[:1].isalpha():
        yield at
        at = int.from_bytes(said[:4])
    while at < len(said):
        yield at
        at += 1 + int.from_bytes(said[at + 1 : at + 5])


def mysql_messages(said: bytearray) -> Iterator[int]:
    """Find where each packet begins: a length of three bytes and a number."""
    at = 0
    while at < len(said):
        yield at
        at += 4 + int.from_bytes(said[at : at + 3], "little")


def http2_messages(said: bytearray) -> Iterator[int]:
    """Find where each frame begins: a length of three bytes, then six bytes more; the client says hello first."""
    at = 0
    if said.startswith(b"PRI "):
        yield at
        at = 24
    while at < len(said):
        yield at
        at += 9 + int.from_bytes(said[at : at + 3])
