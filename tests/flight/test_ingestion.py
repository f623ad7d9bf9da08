"""Bulk ingestion and options of a session, on a scripted server: no example server has them."""

import threading
from collections.abc import Iterator
from typing import Literal

import pyarrow as pa
import pytest
from pyarrow import flight

import longshore
from tests.flight.scripted import Script, ScriptedFlight, command, fields, script

Mode = Literal["fail", "append", "replace"]
ROWS = pa.table({"i": pa.array([1, None, 3], pa.int64()), "t": ["a", None, "ä"]})
TYPE = "type.googleapis.com/arrow.flight.protocol.sql."


def message(*parts: tuple[int, bytes]) -> bytes:
    """Return a short message of protocol buffers whose fields are bytes."""
    return b"".join(bytes([number << 3 | 2, len(value)]) + value for number, value in parts)


def sql_info(number: int) -> Script:
    """Return what a server says of itself, which is one thing that is true."""
    values = pa.UnionArray.from_dense(
        pa.array([1], pa.int8()),
        pa.array([0], pa.int32()),
        [pa.array([], pa.string()), pa.array([True]), pa.array([], pa.int64()), pa.array([], pa.int32())],
        ["string_value", "bool_value", "bigint_value", "int32_bitmask"],
    )
    return script(pa.table({"info_name": pa.array([number], pa.uint32()), "value": values}))


class Ingesting(ScriptedFlight):
    """Takes rows into tables, and says how many."""

    def __init__(self, *, forgets: int = 0) -> None:
        """Have taken none; of a write, so many rows are forgotten."""
        begun = message((1, f"{TYPE}ActionBeginTransactionResult".encode()), (2, message((1, b"tx"))))
        self.taken: list[tuple[dict[int, list[bytes]], pa.Table]] = []
        self.ended: list[bytes] = []
        self.forgets = forgets
        self.begun, self.over = threading.Event(), threading.Event()
        actions = {
            "BeginTransaction": lambda _: [begun],
            "EndTransaction": self.end,
            "SetSessionOptions": self.choose,
        }
        super().__init__({}, actions=actions)
        self.chosen: list[bytes] = []

    def end(self, body: bytes) -> list[bytes]:
        """Note how a transaction ends: 1 commits, 2 rolls back."""
        self.ended.append(command(body)[1][2][0])
        return []

    def choose(self, body: bytes) -> list[bytes]:
        """Take a catalogue, and no schema but one."""
        options = {entry[1][0]: fields(entry[2][0])[1][0] for entry in map(fields, fields(body)[1])}
        self.chosen += sorted(b"=".join(pair) for pair in options.items())
        wrong = message((1, b"schema"), (2, b"")) if options.get(b"schema") == b"none" else b""
        return [message((1, wrong)) if wrong else b""]

    def get_flight_info(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.FlightInfo:
        """Tell what the server can."""
        if command(descriptor.command)[0] != "CommandGetSqlInfo":
            return super().get_flight_info(context, descriptor)
        self.scripts["info"] = sql_info(10)
        schema = self.scripts["info"].schema
        return flight.FlightInfo(schema, descriptor, [flight.FlightEndpoint(b"info#0", [])], -1, -1)

    def do_put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """Take rows."""
        self.begun.set()
        try:
            kind, said = command(descriptor.command)
            assert kind == "CommandStatementIngest"
            table = reader.read_all()
            if not context.is_cancelled():
                self.taken.append((said, table))
                writer.write(bytes([1 << 3, table.num_rows - self.forgets]))
        finally:
            self.over.set()


@pytest.fixture
def server() -> Iterator[Ingesting]:
    """Give a server."""
    with Ingesting() as server:
        yield server


@pytest.mark.parametrize(
    ("mode", "absent", "present"), [("fail", b"1", b"1"), ("append", b"2", b"2"), ("replace", b"1", b"3")]
)
def test_rows_are_ingested_in_a_transaction(server: Ingesting, mode: Mode, absent: bytes, present: bytes) -> None:
    assert longshore.write_sql(ROWS, "main.boats", server.url(), if_exists=mode) == 3
    ((said, table),) = server.taken
    assert table.equals(ROWS)
    assert fields(said[1][0]) == {1: [absent], 2: [present]}
    assert (said[2], said[3]) == ([b"boats"], [b"main"])
    assert said[6] == [b"tx"]
    assert server.ended == [b"1"]


def test_an_empty_frame_makes_its_table(server: Ingesting) -> None:
    assert longshore.write_sql(ROWS.slice(0, 0), "boats", server.url()) == 0
    assert [table.num_rows for _, table in server.taken] == [0]


def test_rows_of_a_write_that_is_given_up_have_no_end(server: Ingesting) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        assert server.begun.wait(10)
        raise LookupError("no more")

    with pytest.raises(LookupError):
        longshore.write_sql(failing(), "boats", server.url())
    assert server.over.wait(10)
    assert (server.taken, server.ended) == ([], [b"2"])


def test_rows_that_the_server_has_not_taken_are_an_error() -> None:
    with Ingesting(forgets=1) as server:
        with pytest.raises(longshore.OperationalError, match="2 rows of 3"):
            longshore.write_sql(ROWS, "boats", server.url())
        assert server.ended == [b"2"]


def test_a_session_has_a_catalogue_and_a_schema(server: Ingesting) -> None:
    server.scripts["one"] = script(ROWS)
    place = f"{server.url()}/harbour?schema=main"
    assert longshore.read_sql("SELECT one", place, return_type="arrow").equals(ROWS)
    assert server.chosen == [b"catalog=harbour", b"schema=main"]
    with pytest.raises(longshore.ProgrammingError, match="schema"):
        longshore.read_sql("SELECT one", server.url(schema="none"))
