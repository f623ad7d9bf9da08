"""Servers that say one thing to everybody."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

from tests.servers import LOOPBACK


@contextlib.contextmanager
def answering() -> Iterator[Callable[[bytes], int]]:
    """Give a function that starts a server with one answer to everybody, and returns its port."""
    listeners = []

    def serve(answer: bytes) -> int:
        listener = socket.create_server((LOOPBACK, 0))
        listeners.append(listener)

        def run() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                # A client may be gone at any time.
                with connection, contextlib.suppress(OSError):
                    connection.sendall(answer)
                    connection.shutdown(socket.SHUT_WR)
                    connection.settimeout(1)
                    while connection.recv(1000):
                        pass

        threading.Thread(target=run, daemon=True).start()
        port: int = listener.getsockname()[1]
        return port

    yield serve
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
