"""Redshift's ways, on a PostgreSQL that says that it is 8.0.2. It was not run against Redshift."""

import contextlib
import re
import socket
import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

import longshore
from tests.servers import Endpoint

VERSION = re.compile(rb"(server_version\0)([^\0]*)\0")


def pretended(told: re.Match[bytes]) -> bytes:
    """Return Redshift's version, as long as the server's own."""
    size = len(told[2])
    return told[1] + b"8.0.2"[:size].ljust(size) + b"\0"


class Pretender:
    """A proxy of one connection after the other, in front of a PostgreSQL."""

    def __init__(self, server: Endpoint) -> None:
        """Listen."""
        self._place = (server.host, server.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        #: The bytes that clients have sent, and the server.
        self.up, self.down = bytearray(), bytearray()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._place)
                threading.Thread(target=self._pump, args=(client, server, self.up), daemon=True).start()
                threading.Thread(target=self._pump, args=(server, client, self.down), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, seen: bytearray) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                seen += data
                # As long as it was: the frames around it count their bytes.
                target.sendall(VERSION.sub(pretended, data))
            target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Accept no more."""
        self._listener.close()


@pytest.fixture
def redshift(postgres: Endpoint) -> Iterator[Pretender]:
    """Give the proxy."""
    proxy = Pretender(postgres)
    yield proxy
    proxy.close()


@pytest.fixture
def address(postgres: Endpoint, redshift: Pretender) -> str:
    """Give the address of the proxy."""
    return f"redshift://{postgres.user}@127.0.0.1:{redshift.port}/{postgres.database}?sslmode=disable"


def test_values_come_as_text_with_all_digits(address: str, redshift: Pretender) -> None:
    query = (
        "SELECT 258::int4 AS n, 0.1::float8 + 0.2 AS f, 1.50::numeric(9,2) AS d, 'ä' AS t, '2024-02-29'::date AS day"
    )
    with longshore.connect(address, autocommit=True) as connection:
        connection.execute("SET extra_float_digits = 0")
        found = longshore.read_sql(query, connection, return_type="arrow")
    assert str(found.to_pylist()) == (
        "[{'n': 258, 'f': 0.30000000000000004, 'd': Decimal('1.50'), 't': 'ä', 'day': datetime.date(2024, 2, 29)}]"
    )
    assert b"258" in redshift.down
    assert b"SET LOCAL extra_float_digits = 2" in redshift.up


def test_the_catalogue_is_not_asked(address: str, redshift: Pretender) -> None:
    frame = longshore.read_sql("SELECT oid FROM pg_class LIMIT 1", address, return_type="arrow")
    assert frame.schema.field("oid").nullable
    assert b"pg_catalog" not in redshift.up


def test_parts_are_read_by_one(address: str) -> None:
    with pytest.warns(longshore.SerialReadWarning, match="Redshift has no snapshot that other sessions can join"):
        found = longshore.read_sql(
            "SELECT g FROM generate_series(1, 10) AS g", address, return_type="arrow", partition_on="g", partition_num=2
        )
    assert found["g"].to_pylist() == [*range(1, 11)]


def test_parameters(address: str) -> None:
    found = longshore.read_sql("SELECT $1::int AS n, $2 AS t", address, params=[7, "é"], return_type="arrow")
    assert found.to_pylist() == [{"n": 7, "t": "é"}]
    assert found.schema.field("n").type == pa.int32()
