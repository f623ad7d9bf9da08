"""TLS as of today in front of MySQL 8.0.15, whose OpenSSL of 2016 offers only key exchanges that are given up since.

The bridge speaks each kind of TLS to the one who knows it, and hands over all else as it is: the server sees a client
that has encrypted, and asks for what it asks for then.
"""

import contextlib
import select
import socket
import ssl
from collections.abc import Iterator

from tests.certificates import Certificates
from tests.mysql.relay import HEADER, packet, relay

#: A client's answer that is this short asks for TLS.
SSL_REQUEST = 32
CHUNK = 1 << 16


@contextlib.contextmanager
def bridge(upstream: tuple[str, int], files: Certificates) -> Iterator[int]:
    """Give the port of a bridge to a server, with the certificate of the same server."""
    with relay(lambda client: _carry(client, upstream, files)) as port:
        yield port


def _carry(client: socket.socket, upstream: tuple[str, int], files: Certificates) -> None:
    with socket.create_connection(upstream) as server:
        client.sendall(packet(server))
        answer = packet(client)
        server.sendall(answer)
        if len(answer) == HEADER + SSL_REQUEST:
            with (
                _towards_clients(files).wrap_socket(client, server_side=True) as inner,
                _towards_server().wrap_socket(server) as outer,
            ):
                _pump(inner, outer)
        else:
            _pump(client, server)


def _towards_clients(files: Certificates) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.server, files.server_key)
    return context


def _towards_server() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    return context


def _pump(one: socket.socket, other: socket.socket) -> None:
    """Carry bytes both ways until either side ends."""
    facing = {one: other, other: one}
    while True:
        pending = [side for side in facing if isinstance(side, ssl.SSLSocket) and side.pending()]
        ready = pending or select.select(list(facing), [], [])[0]
        for side in ready:
            data = side.recv(CHUNK)
            if not data:
                return
            facing[side].sendall(data)
