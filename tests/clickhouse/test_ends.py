"""The end of an answer: whole, or an error, never a shorter result that looks whole."""

import contextlib
import re
import select
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

import longshore
from longshore.sources.clickhouse_http import Address, Connection, Running, ServerError
from longshore.sources.session import Interruption
from tests.contract.conftest import wait
from tests.cutter import Cutter, spread
from tests.servers import ClickHouse

QUERY = "SELECT number AS n, toString(number) AS t FROM numbers(20)"
WHOLE = [{"n": n, "t": str(n)} for n in range(20)]


@pytest.fixture
def cutter(clickhouse: ClickHouse) -> Iterator[Cutter]:
    """Give a network to the stand-in that fails where it is told to."""
    with Cutter((clickhouse.host, clickhouse.port)) as cutter:
        yield cutter


def through(place: str, cutter: Cutter) -> str:
    parts = urlsplit(place)
    return place.replace(f":{parts.port}/", f":{cutter.port}/")


def read(url: str) -> Any:
    return longshore.read_sql(QUERY, url, return_type="arrow").to_pylist()


@pytest.mark.parametrize("action", ["cut", "reset"])
def test_an_answer_that_is_cut_is_an_error(place: str, cutter: Cutter, action: Any) -> None:
    url = through(place, cutter)
    said = bytes(cutter.measure(lambda: read(url)).said_down or b"")
    answers = [found.start() for found in re.finditer(rb"HTTP/1\.1 ", said)]
    # Settings, types, rows, and the end of the session.
    assert len(answers) == 4
    whole = 0
    for byte in spread(answers[3], 20):
        with cutter.fault(action, byte):
            started = time.monotonic()
            try:
                # Between two answers another connection takes over.
                assert read(url) == WHOLE
                whole += 1
            except longshore.OperationalError as error:
                assert "lost" in str(error)  # noqa: PT017  one or the other
            assert time.monotonic() - started < 5
    assert whole < 3
    for byte in range(answers[3], len(said), 50):
        with cutter.fault(action, byte):
            assert read(url) == WHOLE


def test_a_cancelled_query_ends_although_no_one_reads_its_rows() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as ours:
        theirs, _ = listener.accept()
        theirs.settimeout(0)
        while select.select([], [theirs], [], 0.3)[1]:
            theirs.send(bytes(1 << 16))
        theirs.settimeout(None)
        ends = threading.Event()

        def send() -> None:
            with theirs, contextlib.suppress(ConnectionError):
                while True:
                    theirs.sendall(bytes(1 << 20))
            ends.set()

        sender = threading.Thread(target=send)
        sender.start()
        Running(ours).cut()
        assert ends.wait(10)
        sender.join()


#: The ends that the server writes after the first rows, in versions before 25.11 and since.
ENDS = {
    "tagged": b"__exception__\r\nabcdefghijklmnop\r\nCode: 395. DB::Exception: the sea. (X) (version 26.9.2.1)\n"
    b"67 abcdefghijklmnop\r\n__exception__\r\n",
    "before": b"__exception__\r\nCode: 395. DB::Exception: the sea. (X) (version 25.3.1.1 (official build))\n",
    "plain": b"Code: 395. DB::Exception: the sea. (X) (version 21.8.1.1)\n",
}


@pytest.mark.parametrize("is_whole_message", [True, False])
@pytest.mark.parametrize("end", ENDS)
def test_an_error_after_the_first_rows(end: str, is_whole_message: bool) -> None:  # noqa: FBT001
    import http.client
    import io
    import socket

    import pyarrow as pa

    from longshore.sources.clickhouse_http import Address, Connection, ServerError

    sink = io.BytesIO()
    table = pa.table({"n": range(1000)})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    rows = sink.getvalue()[:-8] if is_whole_message else sink.getvalue()[:-100]
    for has_length in (True, False):
        body = rows + ENDS[end]
        head = b"HTTP/1.1 200 OK\r\nX-ClickHouse-Format: ArrowStream\r\n"
        head += b"Content-Length: %d\r\n\r\n" % len(body) if has_length else b"Transfer-Encoding: chunked\r\n\r\n"
        answer = head + (body if has_length else b"%x\r\n%b\r\n" % (len(body), body))
        ours, theirs = socket.socketpair()
        connection = Connection(Address.of("me@localhost", {"session": "false"}))
        connection._http = http.client.HTTPConnection("localhost")  # noqa: SLF001  a server of our own
        connection._http.sock = ours  # noqa: SLF001
        with theirs:
            # After the check that nothing waits to be read.
            connection.close_answer = lambda: None  # type: ignore[method-assign]
            theirs.sendall(b"")
            sender = _answering(theirs, answer)
            found = connection.run(QUERY, streams=True)
            assert found.rows is not None
            with pytest.raises(ServerError, match="the sea") as caught:
                found.rows.read_all()
            assert caught.value.code == 395
            sender.join()


def _answering(side: Any, answer: bytes) -> Any:
    """Answer one request, and hang up."""
    import threading

    def answer_it() -> None:
        while b"numbers(20)" not in side.recv(1 << 16):
            pass
        side.sendall(answer)
        side.close()

    thread = threading.Thread(target=answer_it)
    thread.start()
    return thread


@pytest.fixture
def connection(place: str) -> Iterator[Connection]:
    """Give a connection of the driver's own."""
    with contextlib.closing(Connection(Address.of(place.partition("://")[2], {}))) as connection:
        yield connection


@contextlib.contextmanager
def left_in(connection: Connection, place: str) -> Iterator[None]:
    """Have a statement, whose answer no one waits for, run in the connection's session."""
    connection.run("SELECT 1")
    with contextlib.closing(Connection(connection.address)) as other:
        other._session = connection._session  # noqa: SLF001  as of a connection that was given up
        left = threading.Thread(target=other.run, args=("SELECT sleep(1) AS left_alone",))
        left.start()
        query = "SELECT count() FROM system.processes WHERE query LIKE 'SELECT sleep(1) AS left_alone%'"
        wait(lambda: longshore.read_sql(query, place, return_type="arrow").column(0).to_pylist() == [1])
        yield
        left.join()


def test_a_statement_waits_for_one_that_was_left_in_its_session(place: str, connection: Connection) -> None:
    with left_in(connection, place):
        answer = connection.run("SELECT 7 AS n")
        assert answer.rows is not None
        assert answer.rows.read_all().to_pylist() == [{"n": 7}]


def test_a_session_that_stays_in_use_is_an_error(
    place: str, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longshore.sources.clickhouse_http._END_SECONDS", 0)
    with left_in(connection, place), pytest.raises(ServerError, match="locked"):
        connection.run("SELECT 7 AS n")


def test_a_cancel_does_not_wait_for_ever() -> None:
    interruption = Interruption()
    with interruption.suspend(), interruption.permit(0):
        pass
    with interruption.suspend():
        pass


def test_what_makes_a_table_is_not_cancelled(connection: Connection) -> None:
    connection.run("SELECT 1")
    cancel = threading.Thread(target=connection.cancel)
    with connection.interruption.suspend():
        cancel.start()
        answer = connection.run("SELECT sleep(0.1), 7 AS n")
        assert answer.rows is not None
        assert [row["n"] for row in answer.rows.read_all().to_pylist()] == [7]
        assert cancel.is_alive()
    cancel.join()
