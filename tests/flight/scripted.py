"""A Flight SQL server that answers as a test has it."""

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
from pyarrow import flight

from tests.servers import LOOPBACK


@dataclass(frozen=True)
class Part:
    """An endpoint of a scripted result: what its stream is, and where it is said to be."""

    stream: Callable[[], flight.FlightDataStream]
    locations: Sequence[str] = ()


@dataclass(frozen=True)
class Script:
    """A scripted result."""

    parts: Sequence[Part]
    #: The schema that is declared of it.
    schema: pa.Schema
    ordered: bool = False


@dataclass
class Seen:
    """The requests that a scripted server has had."""

    calls: list[tuple[str, str]] = field(default_factory=list)
    headers: list[Mapping[str, list[str]]] = field(default_factory=list)


def script(*tables: pa.Table, options: pa.ipc.IpcWriteOptions | None = None, **more: Any) -> Script:
    """Return a result of one endpoint for each table."""
    parts = [Part(partial(flight.RecordBatchStream, table, options=options)) for table in tables]
    return Script(parts, tables[0].schema, **more)


class _Headers(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Keeps the headers of calls, and answers with others."""

    def __init__(self, seen: Seen, answer: Callable[[Mapping[str, list[str]]], Mapping[str, str]]) -> None:
        self.seen = seen
        self.answer = answer

    def start_call(self, _info: flight.CallInfo, headers: Mapping[str, list[str]]) -> flight.ServerMiddleware:
        self.seen.headers.append(headers)
        answer = self.answer(headers)

        class Answers(flight.ServerMiddleware):  # type: ignore[misc]
            def sending_headers(self) -> Mapping[str, str]:
                return answer

        return Answers()


class ScriptedFlight(flight.FlightServerBase):  # type: ignore[misc]
    """A Flight SQL server whose results are a test's own: `SELECT name` is read as the script of this name."""

    def __init__(
        self,
        scripts: Mapping[str, Script],
        *,
        answer: Callable[[Mapping[str, list[str]]], Mapping[str, str]] = lambda _headers: {},
        actions: Mapping[str, Callable[[bytes], Iterable[bytes]]] | None = None,
        tls: bool = False,
        **options: Any,
    ) -> None:
        """Listen on a free port."""
        self.scripts = dict(scripts)
        self.actions = dict(actions or {})
        self.seen = Seen()
        self.scheme = "grpc+tls" if tls else "grpc"
        middleware = {"headers": _Headers(self.seen, answer)}
        super().__init__(f"{self.scheme}://{LOOPBACK}:0", middleware=middleware, **options)

    def url(self, **parameters: Any) -> str:
        """Return the URL."""
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        return f"{self.scheme}://{LOOPBACK}:{self.port}" + ("?" + query if query else "")

    @property
    def location(self) -> str:
        """Return the location of its endpoints."""
        return f"{self.scheme}://{LOOPBACK}:{self.port}"

    def get_flight_info(
        self, _context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.FlightInfo:
        """Tell of a scripted result."""
        kind, fields = command(descriptor.command)
        text = _name(fields)
        self.seen.calls.append((kind, text))
        script = self.scripts.get(text)
        if kind != "CommandStatementQuery" or script is None:
            raise flight.FlightServerError(f"no such query: {text}")
        endpoints = [
            flight.FlightEndpoint(f"{text}#{at}".encode(), list(part.locations)) for at, part in enumerate(script.parts)
        ]
        return flight.FlightInfo(script.schema, descriptor, endpoints, -1, -1, ordered=script.ordered)

    def get_schema(
        self, _context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.SchemaResult:
        """Tell the schema of a scripted result."""
        _, fields = command(descriptor.command)
        return flight.SchemaResult(self.scripts[_name(fields)].schema)

    def do_get(self, _context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.FlightDataStream:
        """Send a part."""
        text, _, at = ticket.ticket.decode().rpartition("#")
        self.seen.calls.append(("DoGet", ticket.ticket.decode()))
        return self.scripts[text].parts[int(at)].stream()

    def do_action(self, _context: flight.ServerCallContext, action: flight.Action) -> Iterator[bytes]:
        """Do what the test has for an action, if anything."""
        self.seen.calls.append(("DoAction", action.type))
        if action.type not in self.actions:
            raise NotImplementedError(action.type)
        yield from self.actions[action.type](action.body.to_pybytes())


@contextlib.contextmanager
def serving(scripts: Mapping[str, Script], **options: Any) -> Iterator[ScriptedFlight]:
    """Give a scripted server, which ends with the block."""
    server = ScriptedFlight(scripts, **options)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()


def _name(fields: dict[int, list[bytes]]) -> str:
    """Return the name of a script, which is read by `SELECT name`."""
    return fields.get(1, [b""])[0].decode().removeprefix("SELECT ")


def command(message: bytes) -> tuple[str, dict[int, list[bytes]]]:
    """Take a command of Flight SQL apart: its name, and its fields by number."""
    outer = fields(message)
    return outer[1][0].decode().rpartition(".")[2], fields(outer.get(2, [b""])[0])


def fields(message: bytes) -> dict[int, list[bytes]]:
    """Take a message of protocol buffers apart, whose fields are texts, bytes, messages and numbers."""
    found: dict[int, list[bytes]] = {}
    at = 0

    def number() -> int:
        nonlocal at
        value = 0
        for shift in itertools.count(0, 7):
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise AssertionError

    while at < len(message):
        key = number()
        if key & 7 == 0:
            value = str(number()).encode()
        else:
            length = number()
            value = message[at : at + length]
            at += length
        found.setdefault(key >> 3, []).append(value)
    return found
