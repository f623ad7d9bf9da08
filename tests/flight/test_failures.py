"""Servers that are dead, stalled, or lie: an error by the deadline, never a hang or a short result."""

import contextlib
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator

import psutil
import pyarrow as pa
import pytest
from pyarrow import flight

import longshore
from tests.cutter import Action, Cutter
from tests.flight.scripted import Part, Script, script, serving

NUMBERS = pa.table({"n": pa.array(range(1000), pa.int64())})
#: The errors of a network that fails.
KINDS = {"cut": longshore.OperationalError, "reset": longshore.OperationalError, "stall": longshore.TimeoutError}
OTHER = pa.table({"n": pa.array(["a"])})


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail where the block takes longer, or hardly any time."""
    since = time.monotonic()
    yield
    assert time.monotonic() - since < seconds


def cut_off(error: BaseException) -> Callable[[], flight.FlightDataStream]:
    """Return a stream that fails after its first batches."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield from NUMBERS.to_batches(max_chunksize=100)
        raise error

    return lambda: flight.GeneratorStream(NUMBERS.schema, batches())


def test_no_one_listens() -> None:
    with pytest.raises(longshore.OperationalError, match="cannot connect") as failure:
        longshore.read_sql("SELECT 1", "grpc://127.0.0.1:1")
    assert failure.value.sqlstate == "08001"
    assert "listens" in (failure.value.hint or "")


@pytest.mark.parametrize("scheme", ["grpc", "grpc+tls"])
def test_a_peer_that_says_nothing_is_given_up_at_the_deadline(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, within(3):
        url = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(longshore.TimeoutError, match=r"0\.3 s"):
            longshore.read_sql("SELECT 1", url, timeout=0.3)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other options")
def test_the_system_looks_for_a_peer_that_is_gone() -> None:
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE), (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)]
    names = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
    options += [(socket.IPPROTO_TCP, name) for name in names]
    with serving({"one": script(NUMBERS)}) as server, longshore.connect(server.url(), autocommit=True):
        found = [each.fd for each in psutil.Process().net_connections("tcp") if each.raddr[1:] == (server.port,)]
        with contextlib.ExitStack() as stack:
            links = [stack.enter_context(socket.socket(fileno=os.dup(number))) for number in found]
            assert [[link.getsockopt(*option) for option in options] for link in links] == [[1, 120_000, 60, 10, 6]]


def test_a_peer_of_another_protocol_is_told_of() -> None:
    def answer(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(100)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer, args=(server,))
        thread.start()
        with pytest.raises(longshore.OperationalError, match=r"lost|gRPC"):
            longshore.read_sql("SELECT 1", f"grpc://127.0.0.1:{server.getsockname()[1]}", timeout=5)
        thread.join()


@pytest.mark.parametrize("form", ["arrow", "arrow_stream", "pandas"])
def test_a_stalled_stream_ends_at_the_deadline_and_is_cancelled(form: str) -> None:
    stalled, gone = threading.Event(), threading.Event()

    def batches() -> Iterator[pa.RecordBatch]:
        yield from NUMBERS.to_batches()
        stalled.set()
        gone.wait(20)

    stream = Part(lambda: flight.GeneratorStream(NUMBERS.schema, batches()))
    with serving({"stalled": Script([stream], NUMBERS.schema)}) as server, within(10):
        with pytest.raises(longshore.TimeoutError, match=r"0\.5 s"):
            list(longshore.read_sql("SELECT stalled", server.url(), return_type=form, timeout=0.5))
        assert stalled.is_set()
        assert ("DoAction", "CancelFlightInfo") in server.seen.calls
        gone.set()


@pytest.mark.parametrize("parts", [1, 3])
def test_a_stream_that_fails_is_not_a_short_result(parts: int) -> None:
    good = Part(lambda: flight.RecordBatchStream(NUMBERS))
    bad = Part(cut_off(flight.FlightServerError("the disk is gone")))
    with serving({"bad": Script([good] * (parts - 1) + [bad], NUMBERS.schema)}) as server:
        with pytest.raises(longshore.Error, match="the disk is gone"):
            longshore.read_sql("SELECT bad", server.url(), return_type="arrow")
        stream = longshore.read_sql("SELECT bad", server.url(), return_type="arrow_stream")
        with pytest.raises(longshore.Error, match="the disk is gone"):
            list(stream)


@pytest.mark.parametrize("action", ["cut", "reset", "stall", "garble"])
def test_a_network_that_fails_is_not_the_end(action: Action) -> None:
    wide = pa.table({"b": pa.array([bytes([n % 256]) * 1000 for n in range(1000)])})
    with serving({"wide": script(wide)}) as server, Cutter(("127.0.0.1", server.port)) as cutter:
        url = f"grpc://127.0.0.1:{cutter.port}"

        def read() -> pa.Table:
            return longshore.read_sql("SELECT wide", url, return_type="arrow", timeout=0.5 if action == "stall" else 10)

        size = cutter.measure(read).down
        for byte in [*range(20, 400, 90), *range(400, size - 40, size // 4)]:
            with cutter.fault(action, byte), within(15):
                # Without TLS no one sees that a value is another.
                fails = contextlib.suppress(longshore.Error) if action == "garble" else pytest.raises(KINDS[action])
                with fails:
                    read()


def test_each_endpoint_has_the_declared_schema() -> None:
    parts = [Part(lambda: flight.RecordBatchStream(NUMBERS)), Part(lambda: flight.RecordBatchStream(OTHER))]
    with serving({"lies": Script(parts, NUMBERS.schema), "all": Script(parts[1:], NUMBERS.schema)}) as server:
        for query, at in (("lies", 1), ("all", 0)):
            with pytest.raises(longshore.InternalError, match=f"endpoint {at}.*Utf8.*Int64") as failure:
                longshore.read_sql(f"SELECT {query}", server.url())
            assert failure.value.column == "n"


def test_a_null_against_the_promise_is_an_error() -> None:
    strict = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    nulls = pa.table({"n": pa.array([1, None])})
    part = Part(lambda: flight.RecordBatchStream(nulls))
    with serving({"nulls": Script([part], strict)}) as server, pytest.raises(longshore.InternalError, match="null"):
        longshore.read_sql("SELECT nulls", server.url())


def test_a_server_that_knows_no_query_tells_why_and_the_session_goes_on() -> None:
    with serving({"one": script(NUMBERS)}) as server, longshore.connect(server.url(), autocommit=True) as connection:
        for _ in range(2):
            with pytest.raises(longshore.Error, match="no such query"):
                longshore.read_sql("SELECT two", connection)
            assert len(longshore.read_sql("SELECT one", connection)) == 1000
    with pytest.raises(longshore.Error):
        longshore.read_sql("SELECT one", server.url())


def test_a_dropped_stream_cancels() -> None:
    ended = threading.Event()

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            while True:
                yield from NUMBERS.to_batches()
        finally:
            ended.set()

    stream = Part(lambda: flight.GeneratorStream(NUMBERS.schema, batches()))
    cancelled = []

    def cancel(body: bytes) -> list[bytes]:
        cancelled.append(body)
        return [b"\x08\x01"]

    actions = {"CancelFlightInfo": cancel}
    with serving({"endless": Script([stream], NUMBERS.schema)}, actions=actions) as server:
        found = longshore.read_sql("SELECT endless", server.url(), return_type="arrow_stream")
        next(iter(found))
        found.close()
        assert len(cancelled) == 1
