"""A network that takes its time: a proxy which holds every byte back, and does not bound how many pass.

python -m benches.delay HOST PORT SECONDS

It prints the port that it listens on, and ends with its input. Kernels without netem have nothing of the kind.
"""

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator

LOOPBACK = "127.0.0.1"
#: Bytes arrive and leave at these intervals: a thousand wake-ups a second, however many pieces the bytes come in.
TICK = 0.001
CHUNK = 1 << 20
#: The most that one connection has under way, as a receiver's window would have it.
WINDOW = 16 << 20


class Lane:
    """One direction of a connection."""

    def __init__(self, source: socket.socket, target: socket.socket, seconds: float) -> None:
        """Carry from source to target, in so many seconds."""
        self.source, self.target, self.seconds = source, target, seconds
        self.under_way: deque[tuple[float, memoryview]] = deque()
        self.size = 0
        self.ended = False

    def step(self) -> bool:
        """Take what has come and give what is due; tell whether anything can follow."""
        with contextlib.suppress(BlockingIOError):
            self._take()
        with contextlib.suppress(BlockingIOError):
            self._give()
        if self.ended and not self.under_way:
            with contextlib.suppress(OSError):
                self.target.shutdown(socket.SHUT_WR)
            return False
        return True

    def _take(self) -> None:
        while not self.ended and self.size < WINDOW:
            chunk = self.source.recv(CHUNK)
            self.ended = not chunk
            if chunk:
                # Half a tick went by before it was seen, and half a tick goes by once it is due.
                due = time.monotonic() + self.seconds - TICK
                self.under_way.append((due, memoryview(chunk)))
                self.size += len(chunk)

    def _give(self) -> None:
        while self.under_way and self.under_way[0][0] <= time.monotonic():
            due, chunk = self.under_way[0]
            sent = self.target.send(chunk)
            self.size -= sent
            if sent < len(chunk):
                self.under_way[0] = (due, chunk[sent:])
            else:
                self.under_way.popleft()


class Way:
    """A connection through the proxy, both directions."""

    def __init__(self, client: socket.socket, server: socket.socket, seconds: float) -> None:
        """Carry both ways."""
        self.ends = (client, server)
        for end in self.ends:
            end.settimeout(0)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.lanes = [Lane(client, server, seconds), Lane(server, client, seconds)]

    def step(self) -> bool:
        """Carry on; tell whether the connection is still there."""
        try:
            self.lanes = [lane for lane in self.lanes if lane.step()]
        except OSError:
            self.lanes = []
        if not self.lanes:
            for end in self.ends:
                end.close()
        return bool(self.lanes)


def serve(listener: socket.socket, host: str, port: int, seconds: float) -> None:
    """Carry every connection to the server, each byte in so many seconds."""
    listener.settimeout(0)
    ways: list[Way] = []
    while True:
        with contextlib.suppress(BlockingIOError):
            client, _ = listener.accept()
            ways.append(Way(client, socket.create_connection((host, port)), seconds))
        ways = [way for way in ways if way.step()]
        time.sleep(TICK)


@contextlib.contextmanager
def delayed(host: str, port: int, seconds: float) -> Iterator[int]:
    """Run the proxy in a process of its own, and give the port of this machine where the server seems to be."""
    command = [sys.executable, "-m", "benches.delay", host, str(port), str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            if process.stdout is None or not (line := process.stdout.readline()):
                message = "the proxy did not start"
                raise RuntimeError(message)
            yield int(line)
        finally:
            process.communicate()


def main(host: str, port: str, seconds: str) -> None:
    """Serve until the input ends."""
    listener = socket.create_server((LOOPBACK, 0))
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=serve, args=(listener, host, int(port), float(seconds)), daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
