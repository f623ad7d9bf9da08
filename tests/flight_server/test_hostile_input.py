"""Bytes and messages that no client should send, and clients that never end what they begin."""

import os
import random
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl
import pytest

import longshore
from longshore import _core
from tests.flight.frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PING,
    PREFACE,
    SETTINGS,
    flight_data,
    frame,
    frames,
    grpc,
    headers,
)
from tests.flight_server.conftest import made
from tests.flight_server.test_server import field, message, plain

SOON = fl.FlightCallOptions(timeout=20)
COMMANDS = ["StatementQuery", "StatementUpdate", "StatementIngest", "PreparedStatementQuery", "StatementSubstraitPlan"]
QUESTIONS = ["GetTables", "GetSqlInfo", "GetXdbcTypeInfo", "GetCrossReference"]
MESSAGES = [*(f"Command{name}" for name in COMMANDS + QUESTIONS), "TicketStatementQuery"]
ACTIONS = ["CreatePreparedStatement", "EndTransaction", "CancelQuery"]
ACTIONS += ["ClosePreparedStatement", "CancelFlightInfo", "SetSessionOptions", "CloseSession", "NoSuchAction"]
REFUSED = (fl.FlightError, pa.ArrowException, KeyError, OSError)


def answers(server: longshore.Server) -> bool:
    """Tell whether a client that has done nothing wrong is served."""
    flight, descriptor = plain(server, "SELECT count(*) AS n FROM berths")
    with flight:
        table = flight.do_get(flight.get_flight_info(descriptor, SOON).endpoints[0].ticket, SOON).read_all()
    return bool(table["n"].to_pylist() == [10])


def test_messages_of_any_bytes_are_refused(tmp_path: Path) -> None:
    chance = random.Random(20)  # noqa: S311  the same in each run
    with longshore.serve(made("duckdb", tmp_path), port=0) as server:
        flight, _ = plain(server, "")
        for _ in range(400):
            body = chance.randbytes(chance.randrange(60))
            if chance.random() < 0.5:
                body = field(chance.randrange(1, 8), body)
            named = message(chance.choice(MESSAGES), body)
            sent = chance.choice((named, named, body))
            calls: list[Any] = [
                lambda sent=sent: flight.get_flight_info(fl.FlightDescriptor.for_command(sent), SOON),
                lambda sent=sent: flight.get_schema(fl.FlightDescriptor.for_command(sent), SOON),
                lambda sent=sent: flight.do_get(fl.Ticket(sent), SOON).read_all(),
                lambda sent=sent: list(flight.do_action(fl.Action(chance.choice(ACTIONS), sent), SOON)),
            ]
            # A defect of the server's would be an internal error, and a call that hangs a late one.
            with suppress(pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowNotImplementedError):
                chance.choice(calls)()
        flight.close()
        assert answers(server)


def test_rows_of_any_bytes_are_refused(tmp_path: Path) -> None:
    """Messages of Arrow that were changed on their way: what is ingested is whole, or nothing is."""
    chance = random.Random(20)  # noqa: S311  the same in each run
    with longshore.serve(made("duckdb", tmp_path), port=0) as server:
        flight, _ = plain(server, "")
        append = message("CommandStatementIngest", field(1, b"\x08\x02\x10\x02") + field(2, b"berths"))
        for at in range(60):
            names = pa.array([f"quay {at}"] * 3)
            _, offsets, values = (bytearray(buffer or b"") for buffer in names.buffers())
            # The first and the last are checked here already.
            offsets[4 + chance.randrange(8)] = chance.randrange(256)
            values[chance.randrange(len(values))] = chance.randrange(256)
            buffers = [None, pa.py_buffer(offsets), pa.py_buffer(values)]
            broken = pa.Array.from_buffers(pa.string(), 3, buffers)
            numbers = pa.array(range(100 + 3 * at, 103 + 3 * at), pa.int64())
            batch = pa.RecordBatch.from_arrays([numbers, broken], ["berth", "name"])
            with suppress(*REFUSED):
                put(flight, append, batch)
        flight.close()
        rows: Any = longshore.read_sql("SELECT count(*) AS n FROM berths", server.url, return_type="arrow")
        assert rows["n"][0].as_py() % 3 == 10 % 3


def packed(batch: pa.RecordBatch, length: int) -> bytes:
    """Encode a batch whose one buffer of 8000 bytes is compressed, and is said to have another length."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_batch(batch)
    stream, true = bytes(sink.getvalue()), (8000).to_bytes(8, "little")
    assert stream.count(true) == 1
    rows = stream[8 + int.from_bytes(stream[4:8], "little") :]
    return flight_data(rows.replace(true, length.to_bytes(8, "little")))


FIRST, SECOND = (
    pa.record_batch({"berth": pa.array([berth, berth + 1], pa.int64()), "name": ["a", "b"]}) for berth in (101, 103)
)
ROWS = flight_data(SECOND.serialize())
OUTSIDE = ROWS.replace((16).to_bytes(8, "little"), (1 << 20).to_bytes(8, "little"))
PACKED = pa.record_batch({"berth": pa.array(range(1000), pa.int64()), "name": pa.array([""] * 1000)})
#: The bytes after two rows: no end, an end that is a lie, and all of it.
ENDS = {
    "cut": grpc(ROWS)[:-20],
    "outside": grpc(OUTSIDE),
    "compressed": grpc(ROWS, flag=1),
    "packed, of 32 TiB": grpc(packed(PACKED, 1 << 45)),
    "packed, of no possible length": grpc(packed(PACKED, 1 << 62)),
    "packed, of fewer bytes than none": grpc(packed(PACKED, (1 << 64) - 2)),
    "packed, of too many bytes": grpc(packed(PACKED, 8001)),
    "whole": grpc(ROWS),
}


def upload(server: longshore.Server, data: bytes) -> None:
    """Have a call of DoPut send bytes, and wait for its end."""
    path = "/arrow.flight.protocol.FlightService/DoPut"
    call = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "x"}
    call |= {"content-type": "application/grpc", "te": "trailers"}
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(PREFACE + frame(SETTINGS) + frame(HEADERS, END_HEADERS, 1, headers(call)))
        if data:
            connection.sendall(frame(DATA, END_STREAM, 1, data))
        next(each for each in frames(connection) if each[0] == HEADERS and each[1] & END_STREAM)


@pytest.mark.parametrize("end", ENDS, ids=lambda end: f"rows that end {end}")
def test_rows_that_do_not_come_whole_are_not_ingested(tmp_path: Path, end: str) -> None:
    """Two batches, of which the second is cut, or lies about itself: none of them is kept."""
    assert OUTSIDE != ROWS
    append = message("CommandStatementIngest", field(1, b"\x08\x02\x10\x02") + field(2, b"berths"))
    descriptor = field(1, b"\x08\x02" + field(2, append))
    begin = grpc(flight_data(FIRST.schema.serialize(), descriptor)) + grpc(flight_data(FIRST.serialize()))
    with longshore.serve(made("duckdb", tmp_path), port=0) as server:
        upload(server, begin + ENDS[end])
        kept: Any = longshore.read_sql("SELECT count(*) AS n FROM berths", server.url, return_type="arrow")
        assert kept["n"].to_pylist() == [14 if end == "whole" else 10]


def test_rows_that_are_too_many_bytes_once_unpacked_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longshore.server._MESSAGE", 1 << 20)
    with longshore.serve(made("duckdb", tmp_path), port=0) as server:
        flight, _ = plain(server, "")
        append = message("CommandStatementIngest", field(1, b"\x08\x02\x10\x02") + field(2, b"berths"))
        batch = pa.record_batch({"berth": pa.array(range(200_000), pa.int64()), "name": pa.array([""] * 200_000)})
        options = fl.FlightCallOptions(20, write_options=pa.ipc.IpcWriteOptions(compression="zstd"))
        with pytest.raises(REFUSED, match="unpacked"):
            put(flight, append, batch, options)
        flight.close()


def put(flight: Any, command: bytes, batch: pa.RecordBatch, options: fl.FlightCallOptions = SOON) -> None:
    """Send rows."""
    writer, reader = flight.do_put(fl.FlightDescriptor.for_command(command), batch.schema, options)
    writer.write_batch(batch)
    writer.done_writing()
    reader.read()
    writer.close()


def test_an_upload_that_never_begins_ends(tmp_path: Path) -> None:
    with longshore.serve(made("duckdb", tmp_path), port=0, idle_timeout=0.3) as server:
        upload(server, b"")
        assert answers(server)


@pytest.mark.parametrize(
    "sent",
    [b"GET / HTTP/1.1\r\n\r\n", os.urandom(3000), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9) + os.urandom(3000)],
    ids=["http", "noise", "frames"],
)
def test_a_socket_of_another_protocol_is_closed(tmp_path: Path, sent: bytes) -> None:
    with longshore.serve(made("duckdb", tmp_path), port=0) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as noise, suppress(ConnectionError):
            noise.sendall(sent)
            while noise.recv(1000):
                pass
        assert answers(server)


@pytest.mark.parametrize("sent", [b"", b"PRI * HTTP/2"], ids=["nothing", "a part of the greeting"])
def test_a_socket_that_says_nothing_gives_its_place_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr("longshore.server._GREETING", 0.3)
    with longshore.serve(made("duckdb", tmp_path), port=0, max_connections=2) as server:
        silent = [socket.create_connection(("127.0.0.1", server.port), timeout=20) for _ in range(2)]
        for each in silent:
            each.sendall(sent)
        assert answers(server)
        for each in silent:
            each.close()


def test_a_client_that_answers_pings_keeps_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.server._SILENCE", 0.3)
    with longshore.serve(made("duckdb", tmp_path), port=0, max_connections=1) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as quiet:
            quiet.sendall(PREFACE + frame(SETTINGS))
            pings = (each for each in frames(quiet) if each[0] == PING)
            # A ping comes after half of the time that it may be silent.
            for _ in range(4):
                next(pings)
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as silent:
            silent.sendall(PREFACE + frame(SETTINGS))
            with suppress(ConnectionError):
                while silent.recv(1000):
                    pass
            assert answers(server)


def test_a_user_holds_so_much_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.server._HANDLES", 3)
    prepare = fl.Action(
        "CreatePreparedStatement", message("ActionCreatePreparedStatementRequest", field(1, b"SELECT 1"))
    )
    with longshore.serve(made("duckdb", tmp_path), port=0) as server:
        flight, descriptor = plain(server, "SELECT range FROM range(1000000)")
        made_by: dict[str, Any] = {
            "results": lambda: flight.get_flight_info(descriptor, SOON),
            "prepared statements": lambda: list(flight.do_action(prepare, SOON)),
            "sessions": lambda: list(flight.do_action(fl.Action("SetSessionOptions", b""), SOON)),
        }
        for name, make in made_by.items():
            held = [make() for _ in range(3)]
            with pytest.raises(REFUSED, match=f"3 {name} are open already"):
                make()
            if name == "results":
                # One that is read makes room.
                assert flight.do_get(held[0].endpoints[0].ticket, SOON).read_all().num_rows == 1_000_000
                make()
        flight.close()


def test_a_strangers_message_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.server._MESSAGE", 1 << 20)
    users = tmp_path / "users"
    users.write_text(_core.user_line("ada", "a password", "writer") + "\n")
    with longshore.serve(made("duckdb", tmp_path), port=0, auth=users) as server:
        flight, descriptor = plain(server, "SELECT '" + "x" * (2 << 20) + "'")
        with pytest.raises(fl.FlightUnauthenticatedError):
            flight.get_flight_info(descriptor, SOON)
        known = fl.FlightCallOptions(20, headers=[flight.authenticate_basic_token("ada", "a password")])
        with pytest.raises(REFUSED, match="too large"):
            flight.get_flight_info(descriptor, known)
        flight.close()


def test_what_is_left_open_has_a_limit(tmp_path: Path) -> None:
    with longshore.serve(made("duckdb", tmp_path), port=0, max_connections=3) as server:
        flight, _ = plain(server, "")
        begin = fl.Action("BeginTransaction", message("ActionBeginTransactionRequest", b""))
        for _ in range(3):
            list(flight.do_action(begin, SOON))
        with pytest.raises(REFUSED, match="3 transactions are open already"):
            list(flight.do_action(begin, SOON))
        flight.close()
        assert answers(server)
