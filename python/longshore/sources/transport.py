"""Connections of HTTP, which what runs elsewhere may end: what their sources share."""

import contextlib
import http.client
import select
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from longshore import _core
from longshore.errors import InterfaceError
from longshore.sources.files import flag, port

CUT = "the answer is cut: the connection was lost, or the server has stopped"


def tcp(
    host: str, port: int, context: ssl.SSLContext | None, connect_timeout: float, timeout: float | None
) -> http.client.HTTPConnection:
    """Open a connection of HTTP, with TLS where there is a context."""
    kind: Any = http.client.HTTPConnection
    more = {}
    if context is not None:
        kind, more = http.client.HTTPSConnection, {"context": context}
    connection: http.client.HTTPConnection = kind(host, port, timeout=connect_timeout, **more)
    try:
        connection.connect()
    except (ConnectionRefusedError, socket.gaierror) as error:
        message = f"{host}:{port}: {error.strerror}\nHint: check that the server is running and that it listens there"
        raise ConnectionError(message) from None
    connection.sock.settimeout(timeout)
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return connection


class Place(NamedTuple):
    """Where a server of HTTP is, of an address."""

    host: str
    port: int
    #: For HTTPS; None without encryption.
    context: ssl.SSLContext | None
    connect_timeout: float


def parts_of(rest: str, keywords: Mapping[str, str]) -> dict[str, str]:
    """Give host, port, user, password, database and the settings of what follows a scheme; keywords win."""
    told = {"host": "localhost", "port": "", "user": "", "password": "", "database": ""}
    return told | dict(_core.url_settings(rest)) | dict(keywords)


def place_of(told: dict[str, str], *, plain: int, encrypted: int) -> Place:
    """Take what says where the server is out of an address's settings; the ports are those without one."""
    secure = flag(told.pop("secure", "false"), "secure")
    authority, seconds, number = told.pop("ca", None), told.pop("connect_timeout", "10"), told.pop("port")
    try:
        timeout = float(seconds)
    except ValueError:
        raise InterfaceError("connect_timeout is not a number") from None
    default = encrypted if secure else plain
    context = ssl.create_default_context(cafile=authority) if secure else None
    return Place(told.pop("host"), port(number) if number else default, context, timeout)


def is_open(connection: http.client.HTTPConnection | None) -> bool:
    """Whether a request can go over a connection that waits: one that the server has closed can be read from."""
    if connection is None or connection.sock is None:
        return False
    waiting = select.poll()  # select.select() takes no descriptor above 1,023
    waiting.register(connection.sock, select.POLLIN)
    return not waiting.poll(0)


@contextlib.contextmanager
def network(failure: type[Exception]) -> Iterator[None]:
    """Raise the network's failures as a driver's."""
    try:
        yield
    except http.client.IncompleteRead:
        raise failure(CUT) from None
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, pa.ArrowException):
            raise
        message = f"the server cannot be reached, or the connection was lost: {error or type(error).__name__}"
        raise failure(message) from None
