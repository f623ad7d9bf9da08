"""ClickHouse's HTTP interface over chdb, its own engine in a process: a stand-in, as no current server is to be had.

    python clickhouse_stand_in.py PORT DIRECTORY USER PASSWORD

It speaks what ClickHouse documents: the query in the body or the URL, settings and parameters in the URL, sessions,
headers for user, password and results, errors by status and, after the first rows, at the end of the body.
"""

import contextlib
import hmac
import itertools
import json
import re
import select
import socket
import sys
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa
from chdb import ChdbError, connect

CONFIG = "<clickhouse><merge_tree>{}</merge_tree></clickhouse>"
#: The settings that make tables of SQL's standard: keys that may be NULL, and UPDATE.
MERGE_TREE = ("allow_nullable_key", "enable_block_number_column", "enable_block_offset_column")
#: The users' settings: columns and joins as SQL's standard has them, and changes that are done when they are answered.
PROFILE = {"data_type_default_nullable": "1", "join_use_nulls": "1", "mutations_sync": "1"}
#: The parts of the URL that are neither a setting nor a parameter of the query.
RESERVED = {"query", "database", "query_id", "default_format", "wait_end_of_query"} | {
    f"session_{name}" for name in ("id", "timeout", "check")
}
STATUS = {516: 403, 497: 403, 60: 404, 81: 404, 47: 404, 46: 404, 62: 400}
_INSERT = re.compile(r"(INSERT\s+INTO\b[\s\S]+?)\s+FORMAT\s+(\w+)\s*", re.IGNORECASE)
_STREAMED = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*[\s\S]*?\*/)*(SELECT|WITH)\b", re.IGNORECASE)
_USER = re.compile(
    r"\s*(CREATE|DROP) USER (?:IF EXISTS )?`?(\w+)`?(?: IDENTIFIED BY '((?:[^'\\]|\\.)*)')?[\s;]*", re.IGNORECASE
)
_CODE = re.compile(r"Code: (\d+)\. ")


class Session:
    """A connection of the engine, with the settings that it has been told."""

    def __init__(self, place: str) -> None:
        """Open it."""
        self.connection: Any = connect(place)
        self.lock = threading.Lock()
        self._settings: dict[str, str] = {}
        self.set(PROFILE)

    def set(self, settings: dict[str, str]) -> None:
        """Change what is not as it is wanted."""
        for name, value in settings.items():
            if self._settings.get(name) != value:
                text = value.replace("\\", "\\\\").replace("'", "\\'")
                self.connection.query(f"SET {name} = '{text}'")
                self._settings[name] = value


class Refused(Exception):  # noqa: N818  what the interface itself answers
    """An answer without the engine."""


class StandIn(ThreadingHTTPServer):
    """The server."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, directory: Path, user: str, password: str) -> None:
        """Open the engine's directory."""
        config = directory / "config.xml"
        config.write_text(CONFIG.format("".join(f"<{name}>1</{name}>" for name in MERGE_TREE)))
        self.place = f"{directory / 'data'}?config-file={config}"
        self.users = {user: password}
        self.sessions: dict[tuple[str, str], Session] = {}
        self.control = Session(self.place)
        super().__init__(("127.0.0.1", port), Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say what is wrong with us, and not that a client has gone."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def stop_query(self, query_id: str) -> None:
        """End a query whose client has gone."""
        with self.control.lock, contextlib.suppress(ChdbError, RuntimeError):
            self.control.connection.query(f"KILL QUERY WHERE Settings['log_comment'] = '{query_id}' ASYNC")


class Handler(BaseHTTPRequestHandler):
    """A connection of a client's."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: StandIn
    tag: str
    query_id: str
    form: str

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer /ping."""
        self._answer(200, b"Ok.\n", {})

    def do_POST(self) -> None:
        """Run a query."""
        body = self._body()
        url = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        self.tag, self.is_begun = uuid.uuid4().hex[:16], False
        query_id = url.get("query_id") or str(uuid.uuid4())
        over = threading.Event()
        threading.Thread(target=self._watch, args=(query_id, over), daemon=True).start()
        try:
            self._run(url, query_id, body)
        except (ChdbError, RuntimeError, Refused) as error:
            self._fail(str(error).removeprefix("Streaming query failed: "))
        except OSError:
            self.close_connection = True
        finally:
            over.set()

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _watch(self, query_id: str, over: threading.Event) -> None:
        """End the query once its client is gone, as cancel_http_readonly_queries_on_client_close has it."""
        while not over.wait(0.02):
            with contextlib.suppress(OSError, ValueError):
                if select.select([self.connection], [], [], 0)[0] and not self.connection.recv(1, socket.MSG_PEEK):
                    self.server.stop_query(query_id)
                    over.wait(0.1)

    def _run(self, url: dict[str, str], query_id: str, body: bytes) -> None:
        user = self._user()
        if "query" in url:
            text, data = url["query"], body
        else:
            text, data = body.decode(), b""
        if found := _USER.fullmatch(text):
            self._change_user(*found.groups())
            self.query_id, self.form = query_id, "ArrowStream"
            self._answer(200, b"", self._told())
            return
        session = self._session(user, url)
        if not session.lock.acquire(blocking=False):
            message = "Code: 373. DB::Exception: Session is locked by a concurrent client. (SESSION_IS_LOCKED)"
            raise Refused(message)
        try:
            if database := url.get("database"):
                session.connection.query(f"USE `{database.replace('`', '``')}`")
            settings = {name: value for name, value in url.items() if name not in RESERVED and name[:6] != "param_"}
            session.set({**settings, "log_comment": query_id})
            params = {name[6:]: value for name, value in url.items() if name.startswith("param_")} or None
            text = re.sub(r"\bquery_id\s*=", "Settings['log_comment'] =", text) if "KILL QUERY" in text else text
            self.query_id, self.form = query_id, url.get("default_format", "TabSeparated")
            self._execute(session.connection, text, data, params)
        finally:
            session.lock.release()
            if "session_id" not in url:
                session.connection.close()

    def _user(self) -> str:
        user = self.headers.get("X-ClickHouse-User", "default")
        password = self.server.users.get(user)
        if password is None or not hmac.compare_digest(
            password.encode(), self.headers.get("X-ClickHouse-Key", "").encode("latin-1")
        ):
            message = (
                f"Code: 516. DB::Exception: {user}: Authentication failed: password is incorrect, or there is no user "
                "with such name. (AUTHENTICATION_FAILED)"
            )
            raise Refused(message)
        return user

    def _change_user(self, verb: str, name: str, password: str | None) -> None:
        if verb.upper() == "DROP":
            self.server.users.pop(name, None)
        else:
            self.server.users[name] = re.sub(r"\\(.)", r"\1", password or "")

    def _session(self, user: str, url: dict[str, str]) -> Session:
        name = url.get("session_id")
        if name is None:
            return Session(self.server.place)
        key = (user, name)
        if key not in self.server.sessions:
            if url.get("session_check") == "1":
                message = "Code: 372. DB::Exception: Session not found. (SESSION_NOT_FOUND)"
                raise Refused(message)
            self.server.sessions[key] = Session(self.server.place)
        if url.pop("close_session", "0") == "1":
            return self.server.sessions.pop(key)
        return self.server.sessions[key]

    def _execute(self, connection: Any, text: str, data: bytes, params: dict[str, str] | None) -> None:
        if found := _INSERT.fullmatch(text):
            inserter = connection.send_insert(found[1], found[2])
            inserter.append(data)
            self._done(b"", inserter.finish().rows_written)
        elif _STREAMED.match(text) and self.form == "ArrowStream":
            self._stream(connection, text, params)
        else:
            self._query(connection, text, params)

    def _query(self, connection: Any, text: str, params: dict[str, str] | None) -> None:
        result = connection.query(text, self.form, params=params)
        self._done(result.bytes() or b"", result.rows_written())

    def _done(self, body: bytes, written: int) -> None:
        headers = {"X-ClickHouse-Summary": json.dumps({"written_rows": str(written)})}
        self._answer(200, body, self._told() | headers)

    def _stream(self, connection: Any, text: str, params: dict[str, str] | None) -> None:
        result = connection.send_query(text, "ArrowStream", params=params)
        try:
            pieces = (piece.bytes() for piece in result)
            if (first := next(pieces, None)) is None:
                # The engine's stream of no rows has no schema either.
                self._query(connection, text, params)
                return
            if not first.startswith(b"\xff\xff\xff\xff"):
                self.form = "Other"
                self._answer(200, b"".join([first, *pieces]), self._told())
                return
            self._begin()
            for block in joined(itertools.chain([first], pieces)):
                self._chunk(block)
            self._chunk(b"")
        finally:
            result.close()

    def _begin(self) -> None:
        self.is_begun = True
        self.send_response(200)
        for name, value in self._told().items():
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _told(self) -> dict[str, str]:
        return {
            "X-ClickHouse-Query-Id": self.query_id,
            "X-ClickHouse-Format": self.form,
            "X-ClickHouse-Timezone": "UTC",
            "X-ClickHouse-Exception-Tag": self.tag,
        }

    def _chunk(self, block: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(block), block))

    def _fail(self, message: str) -> None:
        code = int(found[1]) if (found := _CODE.match(message)) else 1002
        text = f"{message} (version 26.9.2.1)\n".encode(errors="replace")
        if not self.is_begun:
            self._answer(STATUS.get(code, 500), text, {"X-ClickHouse-Exception-Code": str(code)})
            return
        tag = self.tag.encode()
        with contextlib.suppress(OSError):
            self._chunk(b"__exception__\r\n%b\r\n%b%d %b\r\n__exception__\r\n" % (tag, text, len(text), tag))
        # The body has no end: what reads it sees that it is cut.
        self.close_connection = True

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Collected:
    """A file that gives what has been written to it."""

    closed = False

    def __init__(self) -> None:
        """Begin empty."""
        self.pieces: list[bytes] = []

    def write(self, data: Any) -> int:
        """Keep it."""
        self.pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Have nothing to do."""

    def take(self) -> bytes:
        """Give it, and begin empty."""
        whole = b"".join(self.pieces)
        self.pieces.clear()
        return whole


def joined(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Make one Arrow stream of the engine's pieces, each of which is one."""
    collected, writer = Collected(), None
    for piece in pieces:
        with pa.ipc.open_stream(piece) as reader:
            if writer is None:
                writer = pa.ipc.new_stream(pa.PythonFile(collected, "w"), reader.schema)
            for batch in reader:
                writer.write_batch(batch)
        yield collected.take()
    if writer is not None:
        writer.close()
        yield collected.take()


def main(port: str, directory: str, user: str, password: str) -> None:
    """Serve until the process ends."""
    with StandIn(int(port), Path(directory), user, password) as server:
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
