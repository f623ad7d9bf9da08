"""Streams that no server should send: an error each, never a short result, a crash or a hang."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyarrow import flight

import longshore
from tests.flight.frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    RESET,
    answering,
    flight_data,
    frame,
    grpc,
    headers,
)

BATCH = pa.record_batch({"n": pa.array(range(100), pa.int64())})
SCHEMA = grpc(flight_data(BATCH.schema.serialize()))
ROWS = grpc(flight_data(BATCH.serialize()))
BEGIN = frame(HEADERS, END_HEADERS, 1, headers({":status": "200", "content-type": "application/grpc"}))
#: The good end of a stream.
GOOD = {"grpc-status": "0"}
#: A batch of no columns, whose length is the last number of its head that is not zero.
COLUMNLESS = pa.record_batch({"n": pa.array(range(77), pa.int64())}).select([])


def changed(message: pa.Buffer, old: int, new: int) -> bytes:
    """Encode a message of Arrow's in whose head a number of 64 bits is another."""
    before, after = (value.to_bytes(8, "little", signed=True) for value in (old, new))
    whole = bytes(message)
    assert whole.count(before) >= 1
    return grpc(flight_data(whole.replace(before, after)))


#: The bytes after the schema: those of DATA, whether they end the stream, and the frame after them.
STREAMS: dict[str, tuple[bytes, bool, bytes]] = {
    "cut within a batch": (ROWS[:-100], True, b""),
    "no trailers": (ROWS, True, b""),
    "good trailers within a batch": (ROWS[:-100], False, headers(GOOD)),
    "good trailers within a length": (ROWS[:3], False, headers(GOOD)),
    "trailers without a status": (ROWS, False, headers({"x": "y"})),
    "a status that is not a number": (ROWS, False, headers({"grpc-status": "well"})),
    "reset without an error": (ROWS, False, b"\0\0\0\0"),
    "reset by a cancellation": (ROWS, False, b"\0\0\0\x08"),
    "a socket that is closed": (ROWS, False, b"close"),
    "a message of two gigabytes": (grpc(b"", length=(1 << 31) - 1), False, headers(GOOD)),
    "a message that is said to be compressed": (grpc(ROWS[5:], flag=1), False, headers(GOOD)),
    "a second schema": (SCHEMA, False, headers(GOOD)),
    "rows that lie outside": (changed(BATCH.serialize(), 800, 8000), False, headers(GOOD)),
    "fewer bytes than rows": (changed(BATCH.serialize(), 100, 1000), False, headers(GOOD)),
    "fewer rows than none": (changed(BATCH.serialize(), 100, -100), False, headers(GOOD)),
    "fewer rows than none, of no columns": (changed(COLUMNLESS.serialize(), 77, -77), False, headers(GOOD)),
    "a field that is longer than its message": (grpc(b"\x12\x7f123"), False, headers(GOOD)),
    "a field of an unknown kind": (grpc(b"\x17"), False, headers(GOOD)),
    "a number without an end": (grpc(b"\xff" * 20), False, headers(GOOD)),
}


def answer(call: bytes, stream: int) -> bytes:
    """Answer a query, whose name is its result's ticket, and the ticket."""
    name = next((name for name in STREAMS if call.endswith(name.encode())), "")
    begin = BEGIN.replace(b"\0\0\0\1", stream.to_bytes(4, "big"), 1)
    if b"CommandStatementQuery" in call:
        schema = COLUMNLESS.schema if "columns" in name else BATCH.schema
        endpoints = [flight.FlightEndpoint(name.encode(), [])]
        info = flight.FlightInfo(schema, flight.FlightDescriptor.for_command(b""), endpoints, -1, -1)
        told = frame(DATA, 0, stream, grpc(info.serialize()))
        return begin + told + frame(HEADERS, END_HEADERS | END_STREAM, stream, headers(GOOD))
    if not name:
        refused = headers({":status": "200", "content-type": "application/grpc", "grpc-status": "12"})
        return frame(HEADERS, END_HEADERS | END_STREAM, stream, refused)
    data, is_end, after = STREAMS[name]
    schema = grpc(flight_data(COLUMNLESS.schema.serialize())) if "columns" in name else SCHEMA
    sent = begin + frame(DATA, END_STREAM if is_end else 0, stream, schema + data)
    if after == b"close":
        return frame(GOAWAY, payload=bytes(8)) + sent
    if len(after) == 4:
        return sent + frame(RESET, 0, stream, after)
    return sent + (frame(HEADERS, END_HEADERS | END_STREAM, stream, after) if after else b"")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Give the URL of a server that sends all of them."""
    with answering(answer) as port:
        yield f"grpc://127.0.0.1:{port}"


@pytest.mark.parametrize("form", ["arrow", "arrow_stream"])
@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_that_is_not_whole_is_an_error(url: str, name: str, form: str) -> None:
    with pytest.raises(longshore.Error) as failure:
        list(longshore.read_sql(f"SELECT {name}", url, return_type=form, timeout=20))
    assert not isinstance(failure.value, longshore.TimeoutError)
