"""Where to: every form in which a server can be named."""

import contextlib
import socket
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import longshore
from tests.postgres.connect.asking import PASSWORD, failure, read
from tests.servers import PostgreSQL


def test_tcp(guarded: PostgreSQL) -> None:
    assert read(guarded.url(user="trusted")) == 1
    assert read(guarded.url(user="trusted"), "SELECT current_user::text AS one") == "trusted"


def test_a_unix_socket(guarded: PostgreSQL) -> None:
    directory, port = guarded.socket_directory, guarded.port
    for connection in (
        guarded.url(host=directory),
        f"postgresql://postgres@{quote(directory, safe='')}:{port}/postgres",
        {"host": directory, "port": port, "user": "postgres", "dbname": "postgres"},
    ):
        assert read(connection, "SELECT coalesce(host(inet_client_addr()), 'none') AS one") == "none"
    assert read(guarded.url(host=directory, user="local", password=PASSWORD)) == 1


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "redshift", "cockroachdb"])
def test_every_scheme(guarded: PostgreSQL, scheme: str) -> None:
    assert read(guarded.url(user="trusted").replace("postgresql", scheme, 1)) == 1


def test_keywords(guarded: PostgreSQL) -> None:
    keywords = {"host": guarded.host, "port": guarded.port, "user": "scram", "dbname": "postgres"}
    assert read({**keywords, "password": PASSWORD}) == 1
    assert read({**keywords, "port": str(guarded.port), "password": PASSWORD, "sslmode": "require"}) == 1


def test_an_address_next_to_the_name(guarded: PostgreSQL) -> None:
    assert read(guarded.url(user="trusted", host="nowhere.invalid", hostaddr=guarded.host)) == 1


def test_the_environment(guarded: PostgreSQL, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"PGHOST": guarded.host, "PGPORT": str(guarded.port), "PGUSER": "scram", "PGDATABASE": "postgres"}
    for name, value in {**settings, "PGPASSWORD": PASSWORD, "PGAPPNAME": "mine", "PGTZ": "Asia/Tokyo"}.items():
        monkeypatch.setenv(name, value)
    assert read("postgresql://") == 1
    assert read("postgresql://", "SELECT current_setting('application_name') AS one") == "mine"
    assert read("postgresql://", "SELECT current_setting('TimeZone') AS one") == "Asia/Tokyo"
    assert read("postgresql://trusted@", "SELECT current_user::text AS one") == "trusted"


def test_a_service_file(guarded: PostgreSQL, tmp_path: Path) -> None:
    text = f"[mine]\nhost={guarded.host}\nport={guarded.port}\nuser=trusted\ndbname=postgres\n"
    (tmp_path / ".pg_service.conf").write_text(text)
    assert read("postgresql://?service=mine") == 1
    assert "yours" in str(failure("postgresql://?service=yours", longshore.InterfaceError))


def test_settings_of_the_session(guarded: PostgreSQL) -> None:
    def setting(name: str, **parameters: Any) -> object:
        return read(guarded.url(user="trusted", **parameters), f"SELECT current_setting('{name}') AS one")

    assert setting("application_name") == "longshore"
    assert setting("application_name", fallback_application_name="fallen") == "fallen"
    assert setting("application_name", application_name="my app") == "my app"
    assert setting("work_mem", options="-c work_mem=5MB") == "5MB"
    assert setting("DateStyle").startswith("ISO")  # type: ignore[attr-defined]
    assert setting("client_encoding") == "UTF8"


def test_keepalives(guarded: PostgreSQL) -> None:
    parameters: dict[str, Any] = {
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 9000,
    }
    assert read(guarded.url(user="trusted", **parameters)) == 1
    names = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
    assert _of_the_kernel(guarded, names, **parameters) == (1, [5, 2, 3, 9000])
    error = failure(guarded.url(user="trusted", keepalives_idle="long"), longshore.InterfaceError)
    assert "keepalives_idle" in str(error)


def test_no_keepalives(guarded: PostgreSQL) -> None:
    assert read(guarded.url(user="trusted", keepalives=0)) == 1
    assert _of_the_kernel(guarded, (), keepalives=0) == (0, [])
    assert _of_the_kernel(guarded, ()) == (1, [])


def _of_the_kernel(server: PostgreSQL, names: tuple[int, ...], **parameters: Any) -> tuple[int, list[int]]:
    """Return whether the connection of an open stream is kept alive, and its TCP options of these names."""
    url = server.url(user="trusted", **parameters)
    with longshore.read_sql("SELECT 1 AS one", url, return_type="arrow_stream"), contextlib.ExitStack() as stack:
        found = []
        for descriptor in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
            # Some are no sockets, and that of the listing itself is gone.
            with contextlib.suppress(OSError):
                duplicate = stack.enter_context(socket.fromfd(descriptor, socket.AF_INET, socket.SOCK_STREAM))
                if duplicate.getpeername()[:2] == (server.host, server.port):
                    found.append(duplicate)
        (connection,) = found
        kept = connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        return kept, [connection.getsockopt(socket.IPPROTO_TCP, name) for name in names]
