"""The ground itself: servers start, end and leave nothing behind, and the network fails exactly where it is told to."""

import contextlib
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pymysql
import pytest

from tests.certificates import Certificates
from tests.cutter import Action, Cutter, Way
from tests.fixtures import require
from tests.servers import Endpoint, MariaDB, MySQL, Mysqld, MySQLEndpoint, PgBouncer, PostgreSQL

Make = Callable[..., PostgreSQL]

ROOT = Path(__file__).parent.parent
#: The exchange with `echo`, whose answer is all bytes in order.
QUESTION, ANSWER = bytes(10), bytes(range(100))
SSL_REQUEST = struct.pack(">ii", 8, 80877103)


@pytest.fixture(scope="module")
def echo() -> Iterator[tuple[str, int]]:
    """Give a server that hears a question and answers it."""

    def serve() -> None:
        while True:
            connection, _ = listener.accept()
            with connection:
                question = connection.recv(len(QUESTION), socket.MSG_WAITALL)
                if question == b"end":
                    return
                if len(question) == len(QUESTION):
                    connection.sendall(ANSWER)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        thread = threading.Thread(target=serve)
        thread.start()
        yield address
        with socket.create_connection(address) as client:
            client.sendall(b"end")
        thread.join()


def ask(port: int, seconds: float = 5) -> bytes:
    """Ask, and return what is heard until the connection ends; a reset or a silence is an exception."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as client:
        client.sendall(QUESTION)
        heard = b""
        while len(heard) < len(ANSWER) and (data := client.recv(1000)):
            heard += data
        return heard


def gone(process: psutil.Process, seconds: float = 10) -> bool:
    """Tell whether a process that is no one's child here is gone, or soon will be."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


def test_urls_are_encoded() -> None:
    endpoint = Endpoint(port=1, user="a b", password="p@/:%", database="d?")
    assert endpoint.url() == "postgresql://a%20b:p%40%2F%3A%25@127.0.0.1:1/d%3F"
    assert endpoint.url(user="u", sslmode="disable") == "postgresql://u@127.0.0.1:1/d%3F?sslmode=disable"
    assert endpoint.url(user="u", host="/s") == "postgresql://u@/d%3F?host=%2Fs&port=1"
    assert Endpoint.parse(endpoint.url()).url() == endpoint.url()


@pytest.mark.server
def test_a_shared_server_answers(postgres: Endpoint) -> None:
    assert postgres.psql("SELECT 41 + 1; SELECT NULL, 'two'") == "42\n|two"
    with pytest.raises(RuntimeError, match="syntax error"):
        postgres.psql("SELEC")


@pytest.mark.server
def test_postgresql_survives_a_crash_and_leaves_nothing(make_server: Make) -> None:
    server = make_server()
    server.psql("CREATE TABLE kept AS SELECT 1 AS one; CHECKPOINT")
    server.restart()
    server.kill()
    assert not server.running
    server.start()
    assert server.psql("SELECT one FROM kept") == "1"
    processes = [psutil.Process(server.pid), *psutil.Process(server.pid).children()]
    server.close()
    assert all(gone(process) for process in processes)
    assert not server.home.exists()


def test_urls_of_mysql() -> None:
    endpoint = MySQLEndpoint(port=1, user="a b", password="p@/:%", database="d?")
    assert endpoint.url() == "mysql://a%20b:p%40%2F%3A%25@127.0.0.1:1/d%3F"
    assert endpoint.url(user="u", host="/s") == "mysql://u@/d%3F?unix_socket=%2Fs"
    assert MySQLEndpoint.parse(endpoint.url()).url() == endpoint.url()
    assert MySQLEndpoint.parse("mysql://localhost").url() == "mysql://root@localhost:3306/test"


@pytest.mark.parametrize("name", ["mariadb", "mysql"])
def test_a_shared_mysql_answers(name: str, request: pytest.FixtureRequest) -> None:
    server: MySQLEndpoint = request.getfixturevalue(name)
    assert server.sql("SELECT 41 + 1; SET @two = 'two'; SELECT NULL, @two; SET @two = NULL") == [(None, "two")]
    with pytest.raises(pymysql.err.ProgrammingError, match="SELEC"):
        server.sql("SELEC")


@pytest.mark.parametrize("kind", [MariaDB, MySQL])
def test_mysql_survives_a_crash_and_leaves_nothing(kind: type[Mysqld]) -> None:
    with require(lambda: kind(config={"max-connections": "17"})) as server:
        server.sql("CREATE TABLE kept AS SELECT 1 AS one")
        server.restart()
        server.kill()
        assert not server.running
        server.start()
        assert server.sql("SELECT one, @@max_connections FROM kept") == [(1, 17)]
        process = psutil.Process(server.pid)
    assert gone(process)
    assert not server.home.exists()


def test_a_kept_directory_of_mysql_is_taken_over(make_server: Make) -> None:
    kept = make_server().home / "kept" / "data"
    with require(lambda: MariaDB(data=kept)) as left:
        left.sql("CREATE TABLE kept AS SELECT 1 AS one")
        process = psutil.Process(left.pid)
        with MariaDB(data=kept) as server:
            assert gone(process)
            assert server.sql("SELECT one FROM kept") == [(1,)]


@pytest.mark.parametrize("kind", [MariaDB, MySQL])
def test_mysql_speaks_tls(kind: type[Mysqld], rsa_certificates: Certificates) -> None:
    context = ssl.create_default_context(cafile=str(rsa_certificates.authority))
    with require(lambda: kind(certificates=rsa_certificates)) as server:
        tls = server.client(host="localhost", port=server.port, unix_socket=None, ssl=context)
        with contextlib.closing(tls) as client, client.cursor() as cursor:
            cursor.execute("SHOW STATUS LIKE 'Ssl_version'")
            assert "TLS" in cursor.fetchall()[0][1]


@pytest.mark.server
def test_settings_and_hba_lines(make_server: Make) -> None:
    server = make_server(hba=["host all bob all scram-sha-256"], config={"work_mem": "5MB"})
    server.psql("CREATE ROLE bob LOGIN PASSWORD 'it''s'")
    assert server.psql("SHOW work_mem") == "5MB"
    assert len(server.socket_path) < 100
    bob = Endpoint.parse(server.url(user="bob", password="it's"))
    assert bob.psql("SELECT current_user") == "bob"
    bob.password = "wrong"
    with pytest.raises(RuntimeError, match="password authentication failed"):
        bob.psql("SELECT 1")


@pytest.mark.server
def test_postgresql_speaks_tls(make_server: Make, certificates: Certificates) -> None:
    server = make_server(certificates=certificates)
    context = ssl.create_default_context(cafile=str(certificates.authority))
    context.load_cert_chain(certificates.client, certificates.client_key)
    with socket.create_connection((server.host, server.port), timeout=5) as client:
        client.sendall(SSL_REQUEST)
        assert client.recv(1) == b"S"
        with context.wrap_socket(client, server_hostname="localhost") as secure:
            assert secure.version() == "TLSv1.3"


@pytest.mark.server
def test_a_kept_directory_is_taken_over(make_server: Make) -> None:
    # In the directory of another server, which the servers' user can enter, whoever that is.
    kept = make_server().home / "kept"
    left = make_server(data=kept)
    process = psutil.Process(left.pid)
    left.psql("CREATE TABLE kept AS SELECT 1 AS one; CHECKPOINT")
    assert make_server(data=kept).psql("SELECT one FROM kept") == "1"
    assert gone(process)


def test_a_server_dies_with_its_python() -> None:
    script = """
import time
from tests.servers import PostgreSQL
with PostgreSQL() as server:
    print(server.pid, server.home, flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True) as python:
        assert python.stdout is not None
        pid, home = python.stdout.readline().split()
        server = psutil.Process(int(pid))
        python.kill()
    assert gone(server)
    deadline = time.monotonic() + 10
    while Path(home).exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(home).exists()


@pytest.mark.server
def test_pgbouncer_shares_connections(pgbouncer: PgBouncer) -> None:
    assert pgbouncer.psql("SELECT 1") == "1"


@pytest.mark.parametrize("action", ["cut", "reset"])
@pytest.mark.parametrize("way", ["down", "up"])
def test_a_cut_at_every_byte(echo: tuple[str, int], action: Action, way: Way) -> None:
    with Cutter(echo) as cutter:
        whole = cutter.measure(lambda: ask(cutter.port))
        assert (whole.down, whole.up) == (len(ANSWER), len(QUESTION))
        for byte in range(getattr(whole, way)):
            with cutter.fault(action, byte, way=way):
                heard = None
                try:
                    heard = ask(cutter.port)
                except ConnectionError:
                    assert action == "reset"
                assert heard in (None, ANSWER[:byte] if way == "down" else b"")
                cutter.wait()
                assert getattr(cutter.counts[0], way) == byte


def test_a_garbled_byte(echo: tuple[str, int]) -> None:
    with Cutter(echo) as cutter:
        for byte in range(len(ANSWER)):
            with cutter.fault("garble", byte, mask=1):
                garbled = bytearray(ANSWER)
                garbled[byte] ^= 1
                assert ask(cutter.port) == garbled


@pytest.mark.parametrize("way", ["down", "up"])
def test_a_stall_spares_later_connections(echo: tuple[str, int], way: Way) -> None:
    with Cutter(echo) as cutter, cutter.fault("stall", 5, way=way, connections=1):
        with pytest.raises(TimeoutError):
            ask(cutter.port, seconds=0.1)
        assert ask(cutter.port) == ANSWER


def test_the_cutter_leaks_nothing(echo: tuple[str, int]) -> None:
    before = psutil.Process(os.getpid()).num_fds(), threading.active_count()
    with Cutter(echo) as cutter, cutter.fault("stall", 5):
        left = [socket.create_connection(("127.0.0.1", cutter.port)) for _ in range(10)]
    for client in left:
        client.close()
    # The server behind it is of this process too, and notices soon that its callers are gone.
    deadline = time.monotonic() + 10
    while left_over := (psutil.Process(os.getpid()).num_fds(), threading.active_count()):
        # A thread of a test before may end meanwhile.
        if all(now <= then for now, then in zip(left_over, before, strict=True)):
            break
        assert time.monotonic() < deadline, f"{left_over} of {before} descriptors and threads"
        time.sleep(0.01)
