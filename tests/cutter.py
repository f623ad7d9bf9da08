"""A network that fails on purpose: a proxy in front of a server that cuts, stalls or garbles at a chosen byte.

It takes two milliseconds an exchange, so that a test can go through every byte of one:

    with Cutter(server.socket_path) as cutter:
        whole = cutter.measure(lambda: read(cutter.port))
        for byte in range(whole.down):
            with cutter.fault("cut", byte):
                read(cutter.port)

Sockets and threads are gone when the block ends, whatever the client did.
"""

import contextlib
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Self

Action = Literal["cut", "reset", "stall", "garble"]
Way = Literal["down", "up"]

CHUNK = 1 << 16
CLOSE_SECONDS = 10.0
#: SO_LINGER with no time to linger: closing sends RST.
ABORT = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Fault:
    """What befalls a connection once `byte` bytes have gone one way: down from the server, or up to it.

    "cut" ends it properly (FIN), "reset" improperly (RST); "stall" leaves it open, and lets nothing more pass that way;
    "garble" changes the next byte by xor with `mask`.
    """

    action: Action
    byte: int
    way: Way = "down"
    mask: int = 0xFF


@dataclass
class Count:
    """How many bytes a connection has carried each way."""

    down: int = 0
    up: int = 0


class Cutter:
    """The proxy, for any number of connections one after the other or at once."""

    def __init__(self, upstream: str | tuple[str, int]) -> None:
        """Listen on `host` and `port`; `upstream` is a Unix socket's path, or a host and port."""
        self.upstream = upstream
        #: Of every connection since the last `fault` or `measure`, in the order in which they came.
        self.counts: list[Count] = []
        self._fault: Fault | None = None
        self._faulted: int | None = None
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
        self._begin(None)
        exchange()
        self.settle()
        (count,) = self.counts
        return count

    def settle(self, seconds: float = CLOSE_SECONDS) -> None:
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
        self.settle()

    def _begin(self, fault: Fault | None, connections: int | None = None) -> None:
        with self._lock:
            self._fault, self._faulted, self.counts = fault, connections, []

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
                for source in select.select(self._open, [], [])[0]:
                    alive = alive and self._pass_on(source)

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
        self._add(way, len(data))
        return self._act(way)

    def _carried(self, way: Way) -> int:
        return self.count.down if way == "down" else self.count.up

    def _add(self, way: Way, size: int) -> None:
        if way == "down":
            self.count.down += size
        else:
            self.count.up += size

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
