"""Trino's client protocol: a statement, and the pages of its result until the server has no more."""

import base64
import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa

from longshore import __version__
from longshore._core import TrinoPages, trino_answer
from longshore.errors import InterfaceError
from longshore.sources.session import Interruption
from longshore.sources.transport import Place, is_open, network, parts_of, place_of, tcp

_FORM = "write trino://user:password@host:port/catalog/schema"
_PLAIN = "add ?secure=true, for HTTPS: a password and a token go over no other"
#: The statuses after which a client sends once more: a gateway's, and a server's that is too busy.
_AGAIN = {429, 502, 503, 504}
_AGAIN_SECONDS = 60.0
_CANCEL_SECONDS = 2.0
#: Settings of the session that the server changes by its answers: its header, and ours.
_SET = {
    "X-Trino-Set-Catalog": "X-Trino-Catalog",
    "X-Trino-Set-Schema": "X-Trino-Schema",
    "X-Trino-Set-Path": "X-Trino-Path",
    "X-Trino-Set-Authorization-User": "X-Trino-User",
    "X-Trino-Started-Transaction-Id": "X-Trino-Transaction-Id",
}
_CUT = "the result is cut: the server has ended it before its last page"
#: The encodings of the spooling protocol, and Arrow's names of their codecs.
_CODECS = {"json": None, "json+zstd": "zstd", "json+lz4": "lz4_raw"}


class TrinoError(Exception):
    """The error that the server tells in place of a result; without a name, what has happened to the network."""

    def __init__(self, text: str, name: str = "", kind: str = "") -> None:
        """Keep Trino's name of the error and its kind."""
        super().__init__(text)
        self.name, self.kind = name, kind


@dataclass(frozen=True)
class Address:
    """Where the coordinator is, and as whom to go there."""

    place: Place
    headers: Mapping[str, str] = field(repr=False)
    #: Session properties.
    properties: Mapping[str, str]

    @classmethod
    def of(cls, rest: str, keywords: Mapping[str, str]) -> "Address":
        """Take apart what follows the scheme; keywords win."""
        told = parts_of(rest, keywords)
        catalog, _, schema = told.pop("database").partition("/")
        told = {"catalog": catalog, "schema": schema, **told}
        place = place_of(told, plain=8080, encrypted=443)
        password, token = told.pop("password"), told.pop("access_token", "")
        if not told["user"]:
            raise InterfaceError("Trino needs a user", hint=_FORM)
        if (password or token) and place.context is None:
            raise InterfaceError("a secret does not go without encryption", hint=_PLAIN)
        headers = {
            "X-Trino-User": told["user"],
            "X-Trino-Source": told.pop("source", f"longshore {__version__}"),
            "X-Trino-Catalog": told.pop("catalog"),
            "X-Trino-Schema": told.pop("schema"),
            "X-Trino-Time-Zone": told.pop("time_zone", "UTC"),
            "X-Trino-Client-Tags": told.pop("client_tags", ""),
            "X-Trino-Role": told.pop("roles", ""),
            "X-Trino-Client-Capabilities": "PARAMETRIC_DATETIME,PATH,SESSION_AUTHORIZATION",
            "X-Trino-Query-Data-Encoding": told.pop("encoding", "json+zstd,json+lz4,json"),
        }
        if password:
            login = f"{told['user']}:{password}".encode()
            headers["Authorization"] = "Basic " + base64.b64encode(login).decode()
        elif token:
            headers["Authorization"] = f"Bearer {token}"
        del told["user"]
        kept = {name: value for name, value in headers.items() if value}
        return cls(place, kept, told)

    def connect(self, timeout: float | None = None) -> http.client.HTTPConnection:
        """Open a connection."""
        return tcp(*self.place, timeout)


class Statement:
    """A statement that runs: its columns, and its pages while they come."""

    def __init__(self, connection: "Connection", text: str) -> None:
        """Send it, and wait until its columns are known or it has ended."""
        self._connection = connection
        self.transaction = connection.transaction
        self.next: str | None = None
        self.columns: list[dict[str, Any]] | None = None
        self.update_type: str | None = None
        self.update_count: int | None = None
        self._pages: TrinoPages | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._count = 0
        self._is_finished = False
        self._take(connection.request("POST", "/v1/statement", text.encode()))
        while self.next is not None and self.columns is None:
            self._step()

    @property
    def schema(self) -> pa.Schema | None:
        """The schema of its rows; None for a statement without rows."""
        return pa.schema(self._pages.schema) if self._pages is not None else None

    def batches(self, most: int = 1 << 31) -> Iterator[pa.RecordBatch]:
        """Give the pages' rows, at most so many at once; what ends without the server's own end is an error."""
        self._read_on()
        while self._waiting:
            pages, self._waiting = self._waiting, []
            failure: TrinoError | None = None
            if self.transaction is not None:
                # A query that is left before its end aborts it: the next page tells whether rows are the last.
                try:
                    self._read_on()
                except TrinoError as error:
                    failure = error
            for page in pages:
                yield from (page.slice(at, most) for at in range(0, page.num_rows, most))
            if failure is not None:
                raise failure
            self._read_on()
        if not self._is_finished:
            raise TrinoError(_CUT)

    def _read_on(self) -> None:
        """Ask for pages until rows wait, or the end has come."""
        while not self._waiting and self.next is not None:
            self._step()

    def finish(self) -> None:
        """Wait for the end of a statement whose rows no one wants."""
        for _ in self.batches():
            pass

    def _step(self) -> None:
        self._take(self._connection.request("GET", self.next or ""))

    def _take(self, body: bytes) -> None:
        head, data = trino_answer(body)
        answer = json.loads(head)
        self.next = answer.get("nextUri")
        self._connection.running = self if self.next else None
        if error := answer.get("error"):
            self.next = None
            name = error.get("errorName", "")
            raise TrinoError(f"{error.get('message', '')} ({name})", name, error.get("errorType", ""))
        self.update_type = answer.get("updateType", self.update_type)
        self.update_count = answer.get("updateCount", self.update_count)
        if self.columns is None and answer.get("columns"):
            self.columns = answer["columns"]
            self._pages = TrinoPages(json.dumps(self.columns))
        if data is not None:
            start, end = data
            if body[start : start + 1] == b"{":
                for segment, told in self._connection.segments(json.loads(body[start:end])):
                    self._check(self._decode(segment, 0, len(segment)), told)
            elif self._pages is not None or body[start:end].strip() != b"[]":
                self._decode(body, start, end)
        self._is_finished = self.next is None and answer.get("stats", {}).get("state") == "FINISHED"

    def _decode(self, body: bytes, start: int, end: int) -> int:
        """Keep the rows of a page; gives how many it has."""
        if self._pages is None:
            raise TrinoError("the server sends rows without columns")
        batch = pa.record_batch(self._pages.decode(body, start, end))
        self._waiting.append(batch)
        self._count += batch.num_rows
        return int(batch.num_rows)

    def _check(self, rows: int, told: Mapping[str, Any]) -> None:
        """Compare a segment's rows with what the server has told of them."""
        first = self._count - rows
        if (told.get("rowOffset", first), told.get("rowsCount", rows)) != (first, rows):
            message = f"{told.get('rowsCount')} from {told.get('rowOffset')} on, of which {rows} came from {first} on"
            raise TrinoError(f"the result is cut: the server tells of a segment's rows {message}")


class Connection:
    """A session, which is a set of headers that the server's answers change."""

    def __init__(self, address: Address) -> None:
        """Open a connection."""
        self.address = address
        self.headers = dict(address.headers)
        self.properties = dict(address.properties)
        self.prepared: dict[str, str] = {}
        self.running: Statement | None = None
        self._is_stopped = False
        #: The transaction in which a statement was ended before its end, which aborts it.
        self._aborted: str | None = None
        #: Set while no answer is waited for, and the socket on which one is: a response may have it for itself.
        self._waiting: socket.socket | None = None
        self._is_idle = threading.Event()
        self._is_idle.set()
        self.interruption = Interruption()
        with network(TrinoError):
            self._http: http.client.HTTPConnection | None = address.connect()

    @property
    def transaction(self) -> str | None:
        """The server's name of the open transaction."""
        return self.headers.get("X-Trino-Transaction-Id")

    @property
    def is_aborted(self) -> bool:
        """Whether a statement of the open transaction was ended before its end."""
        return self._aborted is not None and self._aborted == self.transaction

    def run(self, text: str) -> Statement:
        """Run a statement; one that runs still is ended."""
        self.leave()
        if self._is_stopped:
            # Its connection may be shut.
            self._disconnect()
            self._is_stopped = False
        return Statement(self, text)

    def request(self, method: str, uri: str, body: bytes | None = None) -> bytes:
        """Send a request, again while the server is too busy, and give the answer's body."""
        parts = urlsplit(uri)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        until = time.monotonic() + _AGAIN_SECONDS
        while True:
            if self._is_stopped:
                raise TrinoError("the statement was stopped", "USER_CANCELED")
            with network(TrinoError):
                if self._http is None or not is_open(self._http):
                    self._disconnect()
                    self._http = self.address.connect()
                self._is_idle.clear()
                self._waiting = self._http.sock
                try:
                    self._http.request(method, path, body, self._request_headers(with_session=body is not None))
                    response = self._http.getresponse()
                    answer = response.read()
                except BaseException:
                    self._disconnect()
                    raise
                finally:
                    self._waiting = None
                    self._is_idle.set()
            if response.status == http.client.OK:
                self._take(response.headers)
                return answer
            if response.status not in _AGAIN or time.monotonic() > until:
                text = answer[:1000].decode(errors="replace").strip()
                name = "AUTHENTICATION" if response.status in {401, 403} else ""
                raise TrinoError(f"HTTP status {response.status}: {text}", name)
            time.sleep(0.1)

    def _request_headers(self, *, with_session: bool) -> dict[str, str]:
        if not with_session:
            return {name: self.headers[name] for name in ("X-Trino-User", "Authorization") if name in self.headers}
        several = {
            "X-Trino-Session": self.properties,
            "X-Trino-Prepared-Statement": self.prepared,
        }
        joined = {
            name: ",".join(f"{quote(key, safe='')}={quote(value, safe='')}" for key, value in values.items())
            for name, values in several.items()
            if values
        }
        return {"X-Trino-Transaction-Id": "NONE", **self.headers, **joined}

    def _take(self, headers: http.client.HTTPMessage) -> None:
        for theirs, ours in _SET.items():
            if (value := headers.get(theirs)) is not None:
                self.headers[ours] = unquote(value)
        if headers.get("X-Trino-Clear-Transaction-Id") is not None:
            self.headers.pop("X-Trino-Transaction-Id", None)
        for value in headers.get_all("X-Trino-Set-Session", []):
            name, _, text = value.partition("=")
            self.properties[unquote(name)] = unquote(text)
        for value in headers.get_all("X-Trino-Clear-Session", []):
            self.properties.pop(unquote(value), None)
        for value in headers.get_all("X-Trino-Set-Role", []):
            self.headers["X-Trino-Role"] = value
        for value in headers.get_all("X-Trino-Added-Prepare", []):
            name, _, text = value.partition("=")
            self.prepared[unquote(name)] = unquote(text)
        for value in headers.get_all("X-Trino-Deallocated-Prepare", []):
            self.prepared.pop(unquote(value), None)

    def segments(self, data: Mapping[str, Any]) -> Iterator[tuple[bytes, Mapping[str, Any]]]:
        """Give the pages of the spooling protocol, of the answer itself or of a store, and what is told of each."""
        if data["encoding"] not in _CODECS:
            raise TrinoError(f"the result comes in the encoding {data['encoding']}, and not in one of {[*_CODECS]}")
        codec = _CODECS[data["encoding"]]
        for segment in data["segments"]:
            if segment["type"] == "inline":
                packed = base64.b64decode(segment["data"])
            else:
                packed = self._fetch(segment["uri"], segment.get("headers") or {})
                # A segment that is not given free is so later.
                with contextlib.suppress(TrinoError):
                    self.request("GET", segment["ackUri"])
            told = segment["metadata"]
            yield packed if codec is None else _unpack(packed, told.get("uncompressedSize"), codec), told

    def _fetch(self, uri: str, headers: Mapping[str, list[str]]) -> bytes:
        """Get a segment from where it is, which may be another server."""
        parts = urlsplit(uri)
        sent = {name: value for name, values in headers.items() for value in values}
        context = (self.address.place.context or ssl.create_default_context()) if parts.scheme == "https" else None
        port = parts.port or (443 if context else 80)
        with network(TrinoError):
            place = tcp(parts.hostname or "", port, context, self.address.place.connect_timeout, None)
            with contextlib.closing(place):
                place.request("GET", parts.path + (f"?{parts.query}" if parts.query else ""), headers=sent)
                response = place.getresponse()
                body = response.read()
        if response.status != http.client.OK:
            raise TrinoError(f"a segment of the result cannot be read: HTTP status {response.status}")
        return body

    def leave(self) -> None:
        """End a statement whose rows are not all read."""
        running, self.running = self.running, None
        if running is not None and running.next is not None:
            with contextlib.suppress(TrinoError):
                self._delete(running, running.next)
            running.next = None

    def _delete(self, statement: Statement, uri: str) -> None:
        self._aborted = statement.transaction or self._aborted
        parts = urlsplit(uri)
        with network(TrinoError), contextlib.closing(self.address.connect(_CANCEL_SECONDS)) as connection:
            connection.request("DELETE", parts.path, headers=self._request_headers(with_session=False))
            connection.getresponse().read()

    def cancel(self) -> None:
        """End the running statement, from any thread."""
        with self.interruption.permit(_CANCEL_SECONDS):
            self._stop()

    def _stop(self) -> None:
        self._is_stopped = True
        if self.running is None:
            # The first answer names what is to be ended.
            self._is_idle.wait(_CANCEL_SECONDS)
        running = self.running
        if running is not None and (uri := running.next) is not None:
            with contextlib.suppress(TrinoError):
                self._delete(running, uri)
        # What waits for a page gets no answer where the network is at fault.
        if (waiting := self._waiting) is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(waiting, socket.SHUT_RDWR)

    def _disconnect(self) -> None:
        connection, self._http = self._http, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """End what runs, and the connection."""
        self.leave()
        self._disconnect()


def _unpack(packed: bytes, size: int | None, codec: str) -> bytes:
    """Give the bytes of a segment, which is not packed where no size is told."""
    if size is None:
        return packed
    try:
        data: bytes = pa.decompress(packed, size, codec=codec, asbytes=True)
    except (pa.ArrowException, OSError) as error:
        raise TrinoError(f"a segment of the result cannot be unpacked: {error}") from None
    return data
