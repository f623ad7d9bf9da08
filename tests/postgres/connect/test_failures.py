"""Nowhere: what is said, how soon, and that it never shows a password."""

import socket
import time
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest

import longshore
from tests.postgres.connect.asking import failure, hosts, read
from tests.servers import LOOPBACK, PostgreSQL, free_port
from tests.servers.answers import answering


@pytest.fixture
def silent() -> Iterator[int]:
    """Give the port of a server that accepts and says nothing."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        yield listener.getsockname()[1]


def test_the_time_to_connect_is_bounded(silent: int, bare: PostgreSQL) -> None:
    started = time.monotonic()
    error = failure(hosts(silent, user="trusted", connect_timeout="1"))
    assert 0.9 < time.monotonic() - started < 5
    assert f"127.0.0.1:{silent}" in str(error)
    assert "1 s" in str(error)
    assert read(hosts(silent, bare.port, user="trusted", connect_timeout="1")) == 1


def test_the_callers_own_deadline_ends_it_all(silent: int) -> None:
    started = time.monotonic()
    with pytest.raises(longshore.Error, match=r"0\.5 s"):
        longshore.read_sql("SELECT 1", hosts(silent, silent, user="x"), return_type="arrow", timeout=0.5)
    assert time.monotonic() - started < 5


def test_no_one_there() -> None:
    port = free_port()
    error = failure(hosts(port, user="trusted", password="hidden"))
    assert f"127.0.0.1:{port}" in str(error)
    assert "refused" in str(error)
    assert error.hint
    error = failure("postgresql://user:hidden@nowhere.invalid/db")
    assert "nowhere.invalid" in str(error)
    error = failure(f"postgresql://user@{quote('/no/such/place', safe='')}/db")
    assert "/no/such/place/.s.PGSQL.5432" in str(error)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", b"S" + bytes(40), b"R\xff\xff\xff\xff"])
@pytest.mark.parametrize("mode", ["disable", "require"])
def test_something_else_there(answer: bytes, mode: str, serve_once: Callable[[bytes], int]) -> None:
    error = failure(hosts(serve_once(answer), user="x", sslmode=mode))
    assert error.hint


@pytest.fixture
def serve_once() -> Iterator[Callable[[bytes], int]]:
    with answering() as serve:
        yield serve


def test_no_such_database(guarded: PostgreSQL) -> None:
    error = failure(guarded.url(user="trusted", database="nowhere"), longshore.ProgrammingError)
    assert error.sqlstate == "3D000"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://u:hidden@h?sslmod=require", "sslmode"),
        ("postgresql://u:hidden@h?sslmode=maybe", "verify-full"),
        ("postgresql://u:hidden/1@h/db", "%2F"),
        ("postgresql://u:%zzhidden@h/db", "%25"),
        ("postgresql://u:hidden@h:port/db", "65535"),
        ("postgresql://u:hidden@[::1/db", "]"),
        ("postgresql://u:hidden@h?connect_timeout=soon", "connect_timeout"),
        ("postgresql://u:hidden@h,i?port=1,2,3", "commas"),
        ("postgresql:u:hidden@h", "://"),
        ("://u:hidden@h", "postgresql://"),
    ],
)
def test_urls_that_are_wrong(url: str, told: str) -> None:
    assert told in str(failure(url, longshore.InterfaceError))


def test_settings_that_are_unknown() -> None:
    assert "dbname, user, password" in str(failure({"username": "u", "password": "hidden"}, longshore.InterfaceError))
    assert '"user"' in str(failure({"usr": "u", "password": "hidden"}, longshore.InterfaceError))
    assert "requirepeer" in str(failure("postgresql://h?requirepeer=x", longshore.NotSupportedError))
