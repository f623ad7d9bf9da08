"""Where a server is, and what a session begins with."""

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import longshore
from tests.mysql.asking import failure, who
from tests.mysql.reading import table, value
from tests.servers import LOOPBACK, Mysqld, MySQLEndpoint, free_port
from tests.servers.answers import answering


@pytest.fixture
def own(server: MySQLEndpoint) -> Mysqld:
    """Give the shared server, if it is one of ours."""
    if not isinstance(server, Mysqld):
        pytest.skip("the server is not ours")
    return server


def test_both_schemes(server: MySQLEndpoint) -> None:
    place = server.url().partition("://")[2]
    for scheme in ("mysql", "mariadb"):
        assert value("SELECT 1", f"{scheme}://{place}") == 1


@pytest.mark.parametrize("name", ["unix_socket", "socket"])
def test_a_unix_socket(name: str, own: Mysqld) -> None:
    url = f"mysql://root@localhost/test?{name}={quote(own.socket_path, safe='')}"
    assert str(value("SELECT user() AS u", url)) == "root@localhost"
    assert value("SELECT database() AS d", url) == "test"
    gone = failure(f"mysql://root@localhost/test?{name}=/no/such/socket")
    assert "/no/such/socket" in str(gone)
    assert gone.hint


def test_no_database(server: MySQLEndpoint) -> None:
    url = server.url().removesuffix("/test")
    assert value("SELECT database() AS d", url) is None
    with pytest.raises(longshore.ProgrammingError, match="1046"):
        table("SELECT * FROM nowhere", url)


def test_init_command(server: MySQLEndpoint) -> None:
    url = server.url(init_command="SET @place = 'dock', @@sort_buffer_size = 65536")
    assert value("SELECT concat(@place, @@sort_buffer_size) AS p", url) == "dock65536"
    with longshore.connect(url) as connection:
        assert value("SELECT @place AS p", connection) == "dock"
    error = failure(server.url(init_command="SELEC"), longshore.ProgrammingError)
    assert error.sqlstate == "42000"


def test_the_session(server: MySQLEndpoint) -> None:
    names = "@@character_set_client, @@character_set_results, @@time_zone"
    assert value(f"SELECT concat_ws(' ', {names}) AS n", server.url()) == "utf8mb4 utf8mb4 +00:00"
    mode = str(server.sql("SELECT @@global.sql_mode")[0][0])
    assert value("SELECT @@sql_mode AS m", server.url()) == mode
    assert value("SELECT @@time_zone AS z", server.url(time_zone="+05:30")) == "+05:30"
    error = failure(server.url(charset="latin1"), longshore.Error)
    assert "utf8mb4" in str(error) + (error.hint or "")


@pytest.mark.parametrize("name", ["defaults-file", "read_default_file"])
def test_an_option_file(name: str, own: Mysqld, tmp_path: Path) -> None:
    own.sql("CREATE USER IF NOT EXISTS filed IDENTIFIED BY 'h id#den\"'; GRANT SELECT ON test.* TO filed")
    if not isinstance(own, Mysqld):
        return
    file = tmp_path / "my.cnf"
    file.write_text(f"""
        # A comment
        [mysqld]
        user = stranger
        [client]
        user = filed
        password = "h id#den\\""
        host = {own.host}
        port={own.port}
        database=test
        ; another
        [other]
        user = root
        password =
    """)
    file.chmod(0o600)
    url = f"mysql://?{name}={quote(str(file), safe='')}"
    mode = "&get-server-public-key=true"
    assert who(url + mode) == "filed"
    if name == "read_default_file":
        assert who(f"{url}&read_default_group=other&host={own.host}&port={own.port}") == "root"
    # What the URL says wins.
    assert who(f"mysql://root:@{own.host}:{own.port}/test?{name}={quote(str(file), safe='')}") == "root"
    gone = failure(f"mysql://?{name}={quote(str(tmp_path / 'gone'), safe='')}", longshore.Error)
    assert "gone" in str(gone)
    own.sql("DROP USER filed")


def test_nothing_is_read_that_no_one_asked_for(own: Mysqld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".my.cnf").write_text("[client]\nuser = stranger\npassword = hidden\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert who(own.url()) == "root"


def test_no_one_there() -> None:
    port = free_port()
    error = failure(f"mysql://root:hidden@{LOOPBACK}:{port}/test")
    assert f"{LOOPBACK}:{port}" in str(error)
    assert error.hint
    assert "nowhere.invalid" in str(failure("mysql://root:hidden@nowhere.invalid/test"))


@pytest.fixture
def silent() -> Iterator[int]:
    """Give the port of a server that accepts and says nothing."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        yield listener.getsockname()[1]


def test_the_time_to_connect_is_bounded(silent: int) -> None:
    started = time.monotonic()
    error = failure(f"mysql://root:hidden@{LOOPBACK}:{silent}/test?connect_timeout=1")
    assert 0.9 < time.monotonic() - started < 5
    assert f"{LOOPBACK}:{silent}" in str(error)
    started = time.monotonic()
    with pytest.raises(longshore.Error, match=r"0\.5 s"):
        table("SELECT 1", f"mysql://root@{LOOPBACK}:{silent}/test", timeout=0.5)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"",
        b"\x00\x00\x00\x00",
        b"\xff\xff\xff\x00",
        b"\x05\x00\x00\x00\x09abcd",
        b"\x01\x00\x00\x00\x0a",
        b"\x17\x00\x00\x00\xff\x10\x04Too many connections",
        b"\x0a\x00\x00\x00\x0a8.0.0\x00\x01\x00\x00",
    ],
)
@pytest.mark.parametrize("mode", ["DISABLED", "REQUIRED"])
def test_something_else_there(answer: bytes, mode: str, serve_once: Callable[[bytes], int]) -> None:
    url = f"mysql://root:hidden@{LOOPBACK}:{serve_once(answer)}/test?ssl-mode={mode}"
    error = failure(url, longshore.DatabaseError)
    if b"Too many" in answer:
        assert "1040" in str(error)
        assert "Too many connections" in str(error)


@pytest.fixture
def serve_once() -> Iterator[Callable[[bytes], int]]:
    with answering() as serve:
        yield serve


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("mysql://u:hidden@h?ssl-mod=REQUIRED", "ssl-mode"),
        ("mysql://u:hidden@h?ssl-mode=MAYBE", "VERIFY_IDENTITY"),
        ("mysql://u:hidden@h:port/db", "port"),
        ("mysql://u:hidden@h?connect_timeout=soon", "connect-timeout"),
        ("mysql://u:hidden@h?compression=maybe", "compression"),
        ("mysql://u:hidden@h?time_zone=soon", "time-zone"),
    ],
)
def test_urls_that_are_wrong(url: str, told: str) -> None:
    assert told in str(failure(url, longshore.InterfaceError))


def test_no_secret_in_a_repr(server: MySQLEndpoint) -> None:
    pool: Any = longshore.Pool(server.url(user="u", password="hidden"), size=1)
    assert "hidden" not in repr(pool)
    pool.close()
