"""ClickHouse's HTTP interface: a request, its answer, and the end of an answer."""

import contextlib
import http.client
import json
import re
import socket
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa

from longshore.sources.files import flag
from longshore.sources.session import Interruption
from longshore.sources.transport import CUT, Place, is_open, network, parts_of, place_of, tcp

#: The marker at the end of an Arrow stream: without it, an answer is cut.
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
#: How an answer ends whose query has failed on its way: in a block of its own, or as it is before version 25.11.
_FAILED = re.compile(rb"Code: (\d+)\. (DB::[\s\S]+?)(?=\s*\d*(?: \w+)?\s*(?:__exception__\s*)?\Z)")
_TEXT = re.compile(r"Code: (\d+)\. (?:DB::Exception: )?([\s\S]*?)(?: \(version [^()]*(?:\([^()]*\))?\))?\s*", re.ASCII)
#: The most of the text of an error that is kept, and the most that is read of one.
_TAIL = 1 << 16
#: More than a socket's buffer holds.
_DRAINED = 1 << 26
_KILL_SECONDS = 2.0
#: The server's number for a session that another statement is in, and how long one that was left may take to end.
_IN_USE, _END_SECONDS = 373, 2.0
#: The settings that have each value arrive as it was, a NULL stay a NULL, and a query end with who asked for it.
_SETTINGS = {
    "output_format_arrow_string_as_string": "1",
    "output_format_arrow_fixed_string_as_fixed_byte_array": "1",
    "output_format_arrow_variant_as_string": "1",
    "output_format_arrow_date_as_uint16": "0",
    "input_format_null_as_default": "0",
    "insert_null_as_default": "0",
    "date_time_overflow_behavior": "throw",
    "cancel_http_readonly_queries_on_client_close": "1",
}
_KNOWN = "SELECT name FROM system.settings WHERE name IN ({})"


class ServerError(Exception):
    """The error that the server answers in place of a result, or the network: then without a code."""

    def __init__(self, text: str, code: int = 0) -> None:
        """Keep the server's number of the error."""
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class Address:
    """Where the server is, and as whom to go there."""

    place: Place
    user: str
    password: str = field(repr=False)
    database: str
    has_session: bool
    #: ClickHouse's own settings.
    settings: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, rest: str, keywords: Mapping[str, str]) -> "Address":
        """Take apart what follows the scheme; keywords win."""
        told = parts_of(rest, keywords)
        return cls(
            place=place_of(told, plain=8123, encrypted=8443),
            user=told.pop("user") or "default",
            password=told.pop("password"),
            database=told.pop("database"),
            has_session=flag(told.pop("session", "true"), "session"),
            settings=told,
        )

    def connect(self, timeout: float | None = None) -> http.client.HTTPConnection:
        """Open a connection, whose reads wait without an end unless a time is given."""
        return tcp(*self.place, timeout)


@dataclass
class Answer:
    """A statement's result, with PEP 249's names: its rows, and how many the statement has written."""

    rows: pa.RecordBatchReader | None
    rowcount: int

    @property
    def description(self) -> list[str] | None:
        """The names of the columns; None where there are no rows."""
        return None if self.rows is None else self.rows.schema.names

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Give all rows as objects."""
        found: list[tuple[Any, ...]] = []
        for batch in self.rows or ():
            # By a setting of the caller's, texts come as bytes.
            texts = (each.cast(pa.string()) if pa.types.is_binary(each.type) else each for each in batch.columns)
            found += zip(*(column.to_pylist() for column in texts), strict=True)
        return found


class Running:
    """A query that runs, and the socket that its answer comes from."""

    def __init__(self, socket: socket.socket) -> None:
        """Name it."""
        self.query_id = str(uuid.uuid4())
        self.is_cancelled = False
        self._socket = socket

    def cut(self) -> None:
        """Leave its answer, whatever thread reads it: a server that waits until it can send more must see that, too."""
        self.is_cancelled = True
        with contextlib.suppress(OSError):
            self._drain()
            # Not that of TLS, which would wait for the server.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
            self._drain()

    def _drain(self) -> None:
        """Take what has come: only what comes after it tells the server that there is no reader."""
        with contextlib.suppress(BlockingIOError):
            for _ in range(_DRAINED // _TAIL):
                if not socket.socket.recv(self._socket, _TAIL, socket.MSG_DONTWAIT):
                    return

    def check(self) -> None:
        """Raise where it was cut: what has been read may lack something."""
        if self.is_cancelled:
            raise ServerError(CUT)


class Connection:
    """A connection, and the server's session that temporary tables and settings live in."""

    def __init__(self, address: Address, settings: Mapping[str, str] = MappingProxyType({})) -> None:
        """Keep where the server is, and what each statement is told."""
        self.address, self.settings = address, settings
        self._http: http.client.HTTPConnection | None = None
        self._running: Running | None = None
        self._response: http.client.HTTPResponse | None = None
        self._session = f"longshore-{uuid.uuid4()}" if address.has_session else None
        self._is_known = False
        self.interruption = Interruption()

    @classmethod
    def open(cls, address: Address) -> "Connection":
        """Open one, whose statements are told those of our settings that the server knows."""
        connection = cls(address)
        try:
            names = ", ".join(f"'{name}'" for name in _SETTINGS)
            known = {name for (name,) in connection.run(_KNOWN.format(names)).fetchall()}
        except BaseException:
            connection.close()
            raise
        connection.settings = {name: value for name, value in _SETTINGS.items() if name in known} | {**address.settings}
        return connection

    def another(self) -> "Connection":
        """Give one more to the same server."""
        return Connection(self.address, self.settings)

    def run(
        self,
        text: str,
        params: Mapping[str, str] | None = None,
        *,
        data: bytes | None = None,
        streams: bool = False,
        more: Mapping[str, str] | None = None,
    ) -> Answer:
        """Run a statement; ``data`` are the rows of an INSERT, and an answer that ``streams`` is read later."""
        url = {"default_format": "ArrowStream", **self.settings, **self._in_session()}
        url |= {} if streams else {"wait_end_of_query": "1"}
        url |= {**{f"param_{name}": value for name, value in (params or {}).items()}, **(more or {})}
        body = text.encode() if data is None else data
        if data is not None:
            url["query"] = text
        running, response = self._ask(url, body)
        self._is_known = True
        form = response.headers.get("X-ClickHouse-Format", "")
        # Headers that are cut look like an answer whose end nothing tells.
        if not form or (response.length is None and not response.chunked):
            self._disconnect()
            raise ServerError(CUT)
        if form != "ArrowStream" and response.length != 0:
            self.close_answer()
            raise ServerError(f"the result comes in the format {form}: leave FORMAT out of the query")
        summary = json.loads(response.headers.get("X-ClickHouse-Summary") or "{}")
        return Answer(self._rows(running, response), int(summary.get("written_rows", 0)))

    def _ask(self, url: Mapping[str, str], body: bytes) -> tuple[Running, http.client.HTTPResponse]:
        deadline = time.monotonic() + _END_SECONDS
        while True:
            try:
                with network(ServerError):
                    running, response = self._request(url, body)
                    if response.status != http.client.OK:
                        self._fail(response)
            except ServerError as error:
                # The session is ours alone: a statement whose answer was left is still in it.
                if error.code != _IN_USE or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            else:
                return running, response

    def _in_session(self) -> dict[str, str]:
        if self._session is None:
            return {"database": self.address.database} if self.address.database else {}
        url = {"session_id": self._session, "session_timeout": "3600"}
        if self._is_known:
            # A session that has timed out must not begin again, without its settings and tables.
            return url | {"session_check": "1"}
        return url | ({"database": self.address.database} if self.address.database else {})

    def _request(self, url: Mapping[str, str], body: bytes) -> tuple[Running, http.client.HTTPResponse]:
        self.close_answer()
        if not is_open(self._http):
            self._disconnect()
        if self._http is None:
            self._http = self.address.connect()
        running = self._running = Running(self._http.sock)
        url = {**url, "query_id": running.query_id}
        headers = {"X-ClickHouse-User": self.address.user, "X-ClickHouse-Key": self.address.password}
        try:
            self._http.request("POST", "/?" + urlencode(url), body, {n: _header(v) for n, v in headers.items()})
            response = self._response = self._http.getresponse()
            running.check()
        except BaseException:
            self._disconnect()
            raise
        return running, response

    def _fail(self, response: http.client.HTTPResponse) -> None:
        text = response.read(_TAIL).decode(errors="replace")
        self.close_answer()
        found = _TEXT.fullmatch(text)
        code = int(response.headers.get("X-ClickHouse-Exception-Code") or (found[1] if found else 0))
        raise ServerError(found[2] if found else f"HTTP status {response.status}: {text.strip()}", code)

    def _rows(self, running: Running, response: http.client.HTTPResponse) -> pa.RecordBatchReader | None:
        body = _Body(running, response)
        try:
            with network(ServerError):
                reader = pa.ipc.open_stream(pa.PythonFile(body, "r"))
        except pa.ArrowInvalid:
            if body.is_empty:
                self.close_answer()
                return None
            self._disconnect()
            raise body.failure() from None

        def batches() -> Iterator[pa.RecordBatch]:
            try:
                with network(ServerError):
                    yield from reader
                    body.check_end()
            except (pa.ArrowInvalid, ServerError, OSError):
                self._disconnect()
                raise body.failure() from None
            self.close_answer()

        return pa.RecordBatchReader.from_batches(reader.schema, batches())

    def close_answer(self) -> None:
        """Leave the rest of an answer, which a connection cannot be used after."""
        if self._response is not None and not self._response.isclosed():
            self._disconnect()
        self._running = self._response = None

    def _disconnect(self) -> None:
        self._running = self._response = None
        if (connection := self._http) is not None:
            self._http = None
            connection.close()

    def cancel(self) -> None:
        """End the running query, from any thread."""
        with self.interruption.permit(_KILL_SECONDS):
            self._kill()

    def _kill(self) -> None:
        if (running := self._running) is None:
            return
        running.cut()
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = self.address.connect(_KILL_SECONDS)
            with contextlib.closing(connection):
                headers = {"X-ClickHouse-User": self.address.user, "X-ClickHouse-Key": self.address.password}
                text = f"KILL QUERY WHERE query_id = '{running.query_id}' SYNC"
                connection.request("POST", "/", text.encode(), {n: _header(v) for n, v in headers.items()})
                connection.getresponse().read()

    def close(self) -> None:
        """End the server's session and the connection."""
        self.close_answer()
        if self._session is not None and self._is_known:
            with contextlib.suppress(ServerError):
                self.run("SELECT 1", more={"close_session": "1"})
        self._disconnect()


def _header(text: str) -> bytes:
    return text.encode()


class _Body:
    """An answer as a file, of which the last bytes are kept: they say whether it is whole, and else what has failed."""

    closed = False

    def __init__(self, running: Running, response: http.client.HTTPResponse) -> None:
        self._running, self._response, self._tail, self._is_cut = running, response, b"", False

    @property
    def is_empty(self) -> bool:
        """Whether the answer has no rows and no columns."""
        return not self._tail and not self._is_cut

    def read(self, size: int = -1) -> bytes:
        """Give so many bytes, or what there is until the end."""
        try:
            data = self._response.read(size if size >= 0 else None)
        except http.client.IncompleteRead as error:
            data, self._is_cut = error.partial, True
        self._running.check()
        self._tail = data[-_TAIL:] if len(data) >= _TAIL else (self._tail + data)[-_TAIL:]
        return data

    def check_end(self) -> None:
        """Raise for an answer that does not end with the marker of its stream, and for what comes after it."""
        whole = self._tail.endswith(_END)
        if not whole or self.read(_TAIL) or not self._response.isclosed():
            raise ServerError(CUT)

    def failure(self) -> ServerError:
        """Give the error of an answer that is not whole: the server's, where it has told one."""
        with contextlib.suppress(OSError, http.client.HTTPException, ServerError):
            while len(self.read(_TAIL)) > 0:
                pass
        if found := _FAILED.search(self._tail):
            text = _TEXT.fullmatch(found[0].decode(errors="replace"))
            if text is not None:
                return ServerError(text[2], int(text[1]))
        return ServerError(CUT)
