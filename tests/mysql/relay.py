"""A relay between a client and a server, which changes what passes."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

from tests.servers import LOOPBACK

HEADER = 4


@contextlib.contextmanager
def relay(carry: Callable[[socket.socket], None]) -> Iterator[int]:
    """Give a port each of whose connections `carry` is given, on a thread of its own."""
    listener = socket.create_server((LOOPBACK, 0))

    def carry_one(client: socket.socket) -> None:
        with contextlib.suppress(OSError), client:
            carry(client)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=carry_one, args=(client,), daemon=True).start()

    thread = threading.Thread(target=serve)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


def exactly(source: socket.socket, count: int) -> bytes:
    """Receive so many bytes, or fail."""
    data = source.recv(count, socket.MSG_WAITALL) if count else b""
    if len(data) < count:
        raise ConnectionResetError
    return data


def packet(source: socket.socket) -> bytes:
    """Receive a packet of the start-up, with its header."""
    header = exactly(source, HEADER)
    return header + exactly(source, int.from_bytes(header[:3], "little"))
