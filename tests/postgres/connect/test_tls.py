"""Encrypted or not, and who has to prove what."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import longshore
from tests.certificates import Certificates
from tests.postgres.connect.asking import failure, read
from tests.servers import LOOPBACK, PostgreSQL

IS_ENCRYPTED = "SELECT CASE WHEN ssl THEN 'yes' ELSE 'no' END AS one FROM pg_stat_ssl WHERE pid = pg_backend_pid()"


@pytest.mark.parametrize(
    ("user", "mode", "encrypted"),
    [
        ("trusted", "disable", "no"),
        ("trusted", "allow", "no"),
        ("trusted", "prefer", "yes"),
        ("trusted", "require", "yes"),
        ("tls_only", "allow", "yes"),
        ("tls_only", "prefer", "yes"),
        ("bare_only", "allow", "no"),
        ("bare_only", "prefer", "no"),
    ],
)
def test_modes_with_tls_on_the_server(guarded: PostgreSQL, user: str, mode: str, encrypted: str) -> None:
    assert read(guarded.url(user=user, sslmode=mode), IS_ENCRYPTED) == encrypted


def test_modes_without_tls_on_the_server(bare: PostgreSQL, files: Certificates) -> None:
    for mode in ("disable", "allow", "prefer"):
        assert read(bare.url(user="trusted", sslmode=mode), IS_ENCRYPTED) == "no"
    for mode in ("require", "verify-ca", "verify-full"):
        error = failure(bare.url(user="trusted", sslmode=mode, sslrootcert=str(files.authority)))
        assert "TLS" in str(error)
        assert error.hint


def test_the_servers_own_refusal_is_told(guarded: PostgreSQL) -> None:
    for user, mode in (("tls_only", "disable"), ("bare_only", "require"), ("stranger", "prefer")):
        error = failure(guarded.url(user=user, sslmode=mode))
        assert error.sqlstate == "28000"
        assert "no pg_hba.conf entry" in str(error)


def test_verification(guarded: PostgreSQL, files: Certificates, tmp_path: Path) -> None:
    root = str(files.authority)
    for mode in ("require", "verify-ca", "verify-full"):
        assert read(guarded.url(user="trusted", sslmode=mode, sslrootcert=root), IS_ENCRYPTED) == "yes"
    other = str(Certificates.make(tmp_path / "other").authority)
    for mode in ("require", "verify-ca", "verify-full"):
        error = failure(guarded.url(user="trusted", sslmode=mode, sslrootcert=other))
        assert error.hint
        assert "sslrootcert" in error.hint
    by_name: dict[str, Any] = {"user": "trusted", "host": "localhost", "hostaddr": guarded.host, "sslrootcert": root}
    assert read(guarded.url(**by_name, sslmode="verify-ca")) == 1
    error = failure(guarded.url(**by_name, sslmode="verify-full"))
    assert "localhost" in str(error)
    assert error.hint


def test_the_authorities_of_the_machine(guarded: PostgreSQL) -> None:
    for url in (guarded.url(user="trusted", sslmode="verify-full"), guarded.url(user="trusted", sslrootcert="system")):
        assert "certificate" in str(failure(url))


def test_a_root_certificate_at_home(guarded: PostgreSQL, files: Certificates, tmp_path: Path) -> None:
    home = tmp_path / ".postgresql"
    home.mkdir()
    error = failure(guarded.url(user="trusted", sslmode="verify-ca"), longshore.InterfaceError)
    assert "root certificate" in str(error)
    (home / "root.crt").write_bytes(files.authority.read_bytes())
    assert read(guarded.url(user="trusted", sslmode="verify-ca")) == 1


def test_client_certificates(guarded: PostgreSQL, files: Certificates, tmp_path: Path) -> None:
    own: dict[str, Any] = {"sslcert": str(files.client), "sslkey": str(files.client_key)}
    url = guarded.url(user="certified", sslmode="require", **own)
    assert read(url, "SELECT current_user::text AS one") == "certified"
    assert "certificate" in str(failure(guarded.url(user="certified", sslmode="require")))
    key = tmp_path / "key"
    key.write_bytes(files.client_key.read_bytes())
    key.chmod(0o644)
    error = failure(guarded.url(user="certified", **{**own, "sslkey": str(key)}), longshore.InterfaceError)
    assert error.hint
    assert "chmod 600" in error.hint
    gone: dict[str, Any] = {**own, "sslkey": str(tmp_path / "gone")}
    assert "gone" in str(failure(guarded.url(user="certified", **gone), longshore.InterfaceError))


@contextlib.contextmanager
def unwrapping(upstream: tuple[str, int], files: Certificates, protocol: str) -> Iterator[int]:
    """Give the port of a proxy that takes TLS for `protocol` off, one connection at a time."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.server, files.server_key)
    context.set_alpn_protocols([protocol])

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                raw, _ = listener.accept()
                with (
                    contextlib.suppress(OSError),
                    context.wrap_socket(raw, server_side=True) as client,
                    socket.create_connection(upstream) as server,
                ):
                    back = threading.Thread(target=pump, args=(server, client))
                    back.start()
                    pump(client, server)
                    back.join()

    with socket.create_server((LOOPBACK, 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_direct_tls(bare: PostgreSQL, files: Certificates) -> None:
    own: dict[str, Any] = {"user": "trusted", "sslmode": "verify-full", "sslrootcert": str(files.authority)}
    with unwrapping((bare.host, bare.port), files, "postgresql") as port:
        assert read(bare.url(port=port, sslnegotiation="direct", **own)) == 1
    with unwrapping((bare.host, bare.port), files, "http/1.1") as port:
        assert failure(bare.url(port=port, sslnegotiation="direct", **own)).hint
    error = failure(bare.url(user="trusted", sslnegotiation="direct"), longshore.InterfaceError)
    assert "sslmode" in str(error)
