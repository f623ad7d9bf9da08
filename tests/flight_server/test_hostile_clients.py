"""Clients that ask for what is not theirs, ask twice, all at once, or stop in the middle."""

import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.flight as fl
import pytest

import longshore
from longshore import _core
from tests.certificates import Certificates
from tests.flight.frames import DATA, END_HEADERS, HEADERS, PREFACE, RESET, SETTINGS, frame, frames, grpc, headers
from tests.flight_server.conftest import made
from tests.flight_server.test_hostile_input import REFUSED, SOON, answers, put
from tests.flight_server.test_server import field, message, parts, plain

BERTHS = pa.record_batch({"berth": pa.array([11, 12], pa.int64()), "name": ["a", "b"]})
APPEND = message("CommandStatementIngest", field(1, b"\x08\x02\x10\x02") + field(2, b"berths"))
FLIGHT = "/arrow.flight.protocol.FlightService"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[longshore.Server]:
    with longshore.serve(made("duckdb", tmp_path_factory.mktemp("served")), port=0) as running:
        yield running
        assert answers(running)


@pytest.fixture
def flight(server: longshore.Server) -> Iterator[fl.FlightClient]:
    with plain(server, "")[0] as client:
        yield client


def query(statement: str) -> fl.FlightDescriptor:
    return fl.FlightDescriptor.for_command(message("CommandStatementQuery", field(1, statement.encode())))


def act(flight: fl.FlightClient, name: str, body: bytes = b"") -> bytes:
    """Do an action, and give the handle that it answers with."""
    results = list(flight.do_action(fl.Action(name, message(f"Action{name}Request", body)), SOON))
    return b"".join(re.findall(rb"[0-9a-f]{32}", results[0].body.to_pybytes())) if results else b""


def outcomes(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Do work on so many threads at once; give what each has found, or the error's text."""
    found: list[Any] = []

    def run(number: int) -> None:
        try:
            found.append(work(number))
        except REFUSED as error:
            found.append(str(error))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_of_several_who_read_a_part_at_once_one_has_it(flight: fl.FlightClient) -> None:
    endpoints = flight.get_flight_info(query("SELECT range AS n FROM range(20000)"), parts(2)).endpoints
    found = outcomes(6, lambda at: flight.do_get(endpoints[at % 2].ticket, SOON).read_all().num_rows)
    assert sum(rows for rows in found if isinstance(rows, int)) == 20000
    assert [("has been read" in each) for each in found if isinstance(each, str)] == [True] * 4


@pytest.mark.parametrize(
    "change", [b"", b"/", b"{}", b"{}/", b"{}/0", b"{}/2", b"{}/-1", b"{}/%d" % 2**70, b"{}/1/1", b"\xff"]
)
def test_a_ticket_that_is_not_the_servers_is_refused(flight: fl.FlightClient, change: bytes) -> None:
    (endpoint,) = flight.get_flight_info(query("SELECT 1 AS n"), SOON).endpoints
    handle = endpoint.ticket.ticket[-34:-2]
    forged = fl.Ticket(message("TicketStatementQuery", field(1, change.replace(b"{}", handle))))
    with pytest.raises((pa.ArrowInvalid, KeyError), match=r"not one of Flight SQL|no such part of the result"):
        flight.do_get(forged, SOON).read_all()
    assert flight.do_get(endpoint.ticket, SOON).read_all()["n"].to_pylist() == [1]


@pytest.mark.parametrize("name", ["CommandNoSuchThing", "ActionBeginTransactionRequest", "x" * (1 << 20)], ids=len)
def test_a_message_of_another_kind_is_refused(flight: fl.FlightClient, name: str) -> None:
    sent = message(name, b"\x0a\x01x")
    for call in (
        lambda: flight.get_flight_info(fl.FlightDescriptor.for_command(sent), SOON),
        lambda: flight.get_flight_info(fl.FlightDescriptor.for_path(name), SOON),
        lambda: flight.get_schema(fl.FlightDescriptor.for_command(sent), SOON),
        lambda: flight.do_get(fl.Ticket(sent), SOON).read_all(),
        lambda: put(flight, sent, BERTHS),
    ):
        with pytest.raises(pa.ArrowInvalid, match="not one of Flight SQL"):
            call()
    with pytest.raises(pa.ArrowNotImplementedError, match="the server has no action"):
        list(flight.do_action(fl.Action(name, sent), SOON))


@pytest.mark.parametrize("letter", ["x", " ", "é", "漢"])
def test_the_words_of_a_long_error_arrive(server: longshore.Server, flight: fl.FlightClient, letter: str) -> None:
    """They travel in a header, where most letters take several bytes for each of their own."""
    statement = f"SELECT '{letter * 10_000}'::INTEGER AS n"
    with pytest.raises(pa.ArrowInvalid, match=rf"Could not convert string '{letter * 100}"):
        flight.get_flight_info(query(statement), SOON)
    with pytest.raises(longshore.DataError, match=rf"Could not convert string '{letter * 100}"):
        longshore.read_sql(statement, server.url)


def test_a_prepared_statement_that_is_closed_is_gone(flight: fl.FlightClient) -> None:
    handle = field(1, act(flight, "CreatePreparedStatement", field(1, b"SELECT ?::BIGINT AS n")))
    act(flight, "ClosePreparedStatement", handle)
    asked, changed = (message(f"CommandPreparedStatement{what}", handle) for what in ("Query", "Update"))
    for call in (
        lambda: flight.get_flight_info(fl.FlightDescriptor.for_command(asked), SOON),
        lambda: flight.get_schema(fl.FlightDescriptor.for_command(asked), SOON),
        lambda: put(flight, asked, BERTHS),
        lambda: put(flight, changed, BERTHS),
    ):
        with pytest.raises(KeyError, match="no such prepared statement"):
            call()
    assert act(flight, "ClosePreparedStatement", handle) == b""


def test_calls_at_once_in_one_transaction_are_done_or_fail(flight: fl.FlightClient) -> None:
    transaction = act(flight, "BeginTransaction")

    def update(number: int) -> str:
        row = b"INSERT INTO berths VALUES (%d, NULL)" % (1000 + number)
        put(flight, message("CommandStatementUpdate", field(1, row) + field(2, transaction)), BERTHS)
        return "done"

    found = outcomes(6, update)
    act(flight, "EndTransaction", field(1, transaction) + b"\x10\x01")
    (endpoint,) = flight.get_flight_info(query("SELECT count(*) AS n FROM berths WHERE berth >= 1000"), SOON).endpoints
    assert flight.do_get(endpoint.ticket, SOON).read_all()["n"].to_pylist() == [found.count("done")]
    put(flight, message("CommandStatementUpdate", field(1, b"DELETE FROM berths WHERE berth >= 1000")), BERTHS)
    assert all(each == "done" or "in use" in each for each in found)
    with pytest.raises(KeyError, match="no such transaction"):
        update(0)


def test_headers_of_any_size_leave_the_server_as_it_was(server: longshore.Server) -> None:
    for size in (10_000, 20_000, 4_000_000):
        with plain(server, "")[0] as flight, suppress(fl.FlightError):
            options = fl.FlightCallOptions(20, headers=[(b"x-large", b"x" * size)])
            assert flight.get_flight_info(query("SELECT 1 AS n"), options).total_records == -1
            assert size == 10_000


def call(path: str, stream: int) -> bytes:
    """Encode the beginning of a call."""
    pairs = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "x"}
    return frame(HEADERS, END_HEADERS, stream, headers({**pairs, "content-type": "application/grpc", "te": "trailers"}))


def test_a_message_that_claims_to_be_long_takes_no_memory(server: longshore.Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        claims = [
            call(f"{FLIGHT}/GetFlightInfo", at) + frame(DATA, 0, at, grpc(b"xx", length=200 << 20))
            for at in range(1, 200, 2)
        ]
        before = psutil.Process().memory_info().rss
        connection.sendall(PREFACE + frame(SETTINGS) + b"".join(claims))
        assert answers(server)
        assert psutil.Process().memory_info().rss - before < 100 << 20


def test_a_stranger_has_no_long_message_read_by_the_health_service(server: longshore.Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        asked = call("/grpc.health.v1.Health/Check", 1) + frame(DATA, 0, 1, grpc(b"\x0a", length=1 << 20))
        connection.sendall(PREFACE + frame(SETTINGS) + asked)
        ended = next(payload for kind, _, stream, payload in frames(connection) if (kind, stream) == (HEADERS, 1))
        # The status 11 as HTTP/2 packs it, OUT_OF_RANGE, before the rest has come.
        assert b"\x82\x08\x7f" in ended


def test_calls_that_are_reset_at_once_end_the_connection_alone(server: longshore.Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection, suppress(ConnectionError):
        connection.sendall(PREFACE + frame(SETTINGS))
        for first in range(1, 20_000, 2_000):
            calls = (
                call(f"{FLIGHT}/ListFlights", at) + frame(RESET, 0, at, bytes(4))
                for at in range(first, first + 2_000, 2)
            )
            connection.sendall(b"".join(calls))
    assert answers(server)
    assert server._core.held < 10  # noqa: SLF001  what clients hold is told to tests alone


def test_a_crowd_that_says_nothing_gives_its_places_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.server._GREETING", 0.05)
    with longshore.serve(made("duckdb", tmp_path), port=0, max_connections=50) as server, ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
        assert answers(server)


def test_half_a_handshake_gives_its_place_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.server._GREETING", 0.3)
    files = Certificates.make(tmp_path / "tls")
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context(cafile=str(files.authority))
    half = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        half.do_handshake()
    tls = [files.server, files.server_key]
    with (
        longshore.serve(made("duckdb", tmp_path), port=0, tls=tls, max_connections=1) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection,
    ):
        connection.sendall(outgoing.read()[:100])
        url = f"{server.url}/?tls_ca={files.authority}"
        assert longshore.read_sql("SELECT 1 AS n", url, timeout=20)["n"].tolist() == [1]


def test_passwords_are_checked_a_few_at_a_time(tmp_path: Path) -> None:
    """Each check takes 19 MiB, and a stranger may ask for hundreds at once."""
    users = tmp_path / "users"
    users.write_text(_core.user_line("ada", "a password", "writer") + "\n")
    with longshore.serve(made("duckdb", tmp_path), port=0, auth=users) as server, plain(server, "")[0] as flight:
        wrong = fl.FlightCallOptions(20, headers=[(b"authorization", b"Basic YWRhOndyb25n")])
        found = outcomes(4, lambda _: flight.get_flight_info(query("SELECT 1 AS n"), wrong))
        assert ["the user or the password is wrong" in each for each in found] == [True] * 4
        header = flight.authenticate_basic_token("ada", "a password")
        right = fl.FlightCallOptions(20, headers=[header])
        assert flight.get_flight_info(query("SELECT 1 AS n"), right).total_records == -1


def ended(writer: Any, reader: Any) -> None:
    """Wait for what the server says of an upload."""
    reader.read()
    writer.close()


def answers_soon(server: longshore.Server) -> bool:
    """Tell whether others are served, who wait for their session no longer than a statement has."""
    for _ in range(20):
        with suppress(fl.FlightTimedOutError):
            return answers(server)
    return False


@pytest.fixture
def hurried(tmp_path: Path) -> Iterator[longshore.Server]:
    """Give a server with one session, whose statements have a second and a half."""
    with longshore.serve(made("duckdb", tmp_path), port=0, statement_timeout=1.5, max_sessions=1) as running:
        yield running


def test_an_ingestion_that_stalls_ends_with_its_statements_time(hurried: longshore.Server) -> None:
    with plain(hurried, "")[0] as flight:
        writer, reader = flight.do_put(fl.FlightDescriptor.for_command(APPEND), BERTHS.schema, SOON)
        writer.write_batch(BERTHS)
        with pytest.raises(fl.FlightTimedOutError, match=r"within 1.5 s"):
            ended(writer, reader)
        # There is one session, and none of the rows is kept.
        assert answers_soon(hurried)


def test_a_reader_that_stalls_keeps_its_session_no_longer_than_its_statements_time(hurried: longshore.Server) -> None:
    with plain(hurried, "")[0] as flight:
        wide = query("SELECT range, repeat('x', 1000) AS wide FROM range(1000000)")
        stream = flight.do_get(flight.get_flight_info(wide, SOON).endpoints[0].ticket, SOON)
        assert stream.read_chunk().data.num_rows > 0
        assert answers_soon(hurried)
        with pytest.raises(fl.FlightTimedOutError, match=r"no answer within 1.5 s"):
            stream.read_all()


def test_parameters_that_are_kept_have_one_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.server._MESSAGE", 1 << 20)
    with longshore.serve(made("duckdb", tmp_path), port=0) as server, plain(server, "")[0] as flight:
        prepared = [
            field(1, act(flight, "CreatePreparedStatement", field(1, b"SELECT ?::VARCHAR AS n"))) for _ in range(3)
        ]
        first, second, third = (message("CommandPreparedStatementQuery", handle) for handle in prepared)
        rows = pa.record_batch({"n": ["x" * 400_000]})
        for command in (first, second, second):
            # The parameters that come again take the place of those before.
            put(flight, command, rows)
        with pytest.raises(REFUSED, match=f"parameters of prepared statements take more than {1 << 20} bytes"):
            put(flight, third, rows)
        act(flight, "ClosePreparedStatement", prepared[0])
        put(flight, third, rows)
        (endpoint,) = flight.get_flight_info(fl.FlightDescriptor.for_command(third), SOON).endpoints
        assert flight.do_get(endpoint.ticket, SOON).read_all()["n"].to_pylist() == rows["n"].to_pylist()


def test_each_part_fails_where_the_disk_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.server._PART_MEMORY", 1 << 20)
    with longshore.serve(made("duckdb", tmp_path), port=0) as server, plain(server, "")[0] as flight:
        rows = query("SELECT range, repeat('x', 100) AS wide FROM range(200000)")
        longshore.read_sql("SELECT 1", server.url)
        monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
        for endpoint in flight.get_flight_info(rows, parts(2)).endpoints:
            with pytest.raises(REFUSED, match="the parts of a result cannot wait on the disk"):
                flight.do_get(endpoint.ticket, SOON).read_all()
        deadline = time.monotonic() + 20
        while server._core.held and time.monotonic() < deadline:  # noqa: SLF001  what clients hold is told to tests alone
            time.sleep(0.02)
        assert server._core.held == 0  # noqa: SLF001
