"""The client protocol against a server that misbehaves: busy, cut, and with pages that lie elsewhere."""

import base64
import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pyarrow as pa
import pytest

import longshore
from longshore.sources.trino_http import Address, Connection

SIGNATURE = {"rawType": "integer", "arguments": []}
COLUMNS = [{"name": "n", "type": "integer", "typeSignature": SIGNATURE}]
RUNNING, FINISHED = {"state": "RUNNING"}, {"state": "FINISHED"}
Answers = list[tuple[int, Any]]
#: The answer to a statement without rows.
DONE = json.dumps({"id": "q", "updateType": "X", "stats": FINISHED}).encode()


class Scripted(ThreadingHTTPServer):
    """Answers each request by the next of its lines."""

    daemon_threads = True

    def __init__(self) -> None:
        """Listen."""
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: Answers = []
        self.asked: list[str] = []
        self.statements: list[str] = []

    @property
    def place(self) -> str:
        """Its address."""
        return f"127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """One of its connections."""

    protocol_version = "HTTP/1.1"
    server: Scripted

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def answer(self) -> None:
        """Answer."""
        text = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.server.asked.append(f"{self.command} {self.path}")
        headers: dict[str, str] = {}
        if self.command == "POST":
            self.server.statements.append(text)
        if text == "START TRANSACTION":
            status, body = 200, DONE
            headers = {"X-Trino-Started-Transaction-Id": "t1"}
        elif text in {"COMMIT", "ROLLBACK"}:
            status, body = 200, DONE
            headers = {"X-Trino-Clear-Transaction-Id": "true"}
        elif self.path.startswith("/segment"):
            status, body = 200, PACKED[self.path.removeprefix("/segment/")]
        elif self.command == "DELETE" or self.path == "/ack":
            status, body = 200, b""
        else:
            status, told = self.server.answers.pop(0)
            told = told() if callable(told) else told
            body = told if isinstance(told, bytes) else json.dumps(told).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        """Answer."""
        self.answer()

    def do_POST(self) -> None:
        """Answer."""
        self.answer()

    def do_DELETE(self) -> None:
        """Answer."""
        self.answer()


@pytest.fixture
def server() -> Iterator[Scripted]:
    """Give such a server."""
    with Scripted() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def read(server: Scripted, *answers: tuple[int, Any]) -> list[int]:
    server.answers = list(answers)
    found: Any = longshore.read_sql("SELECT n", f"trino://me@{server.place}/tpch", return_type="arrow")
    return list(found["n"].to_pylist())


def page(server: Scripted, data: Any = None, *, last: bool = False, stats: Any = None) -> tuple[int, Any]:
    more = {} if last else {"nextUri": f"http://{server.place}/next"}
    rows = {} if data is None else {"data": data}
    return 200, {"id": "q", "columns": COLUMNS, **rows, **more, "stats": stats or (FINISHED if last else RUNNING)}


def test_a_busy_server_is_asked_again(server: Scripted) -> None:
    assert read(
        server,
        (503, b"busy"),
        page(server),
        (502, b""),
        page(server, [[1]]),
        (504, b""),
        (429, b""),
        page(server, [[2]], last=True),
    ) == [1, 2]


def test_a_result_ends_with_the_servers_own_end(server: Scripted) -> None:
    with pytest.raises(longshore.OperationalError, match="cut"):
        read(server, page(server, [[1]]), page(server, [[2]], last=True, stats=RUNNING))


BROKEN: dict[str, Callable[[Scripted], tuple[int, Any]]] = {
    "no JSON": lambda _: (200, b"<html>"),
    "half of it": lambda server: (200, json.dumps(page(server, [[1]])[1]).encode()[:-9]),
    "a short row": lambda server: page(server, [[1], []]),
    "a long row": lambda server: page(server, [[1, 2]]),
    "no rows": lambda server: page(server, {"a": 1}),
    "another type": lambda server: page(server, [["x"]]),
    "a number beyond its type": lambda server: page(server, [[2**40]]),
    "a status": lambda _: (500, b"the sea"),
    "an error": lambda _: (200, {"id": "q", "error": {"message": "the sea", "errorName": "X"}, "stats": {}}),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_broken_is_an_error(server: Scripted, broken: str) -> None:
    with pytest.raises(longshore.Error):
        read(server, page(server, [[1]]), BROKEN[broken](server))


ROWS = json.dumps([[n] for n in range(1000)]).encode()
PACKED: dict[str, bytes] = {
    "json": ROWS,
    "json+zstd": pa.compress(ROWS, codec="zstd", asbytes=True),
    "json+lz4": pa.compress(ROWS, codec="lz4_raw", asbytes=True),
}


@pytest.mark.parametrize("encoding", PACKED)
def test_segments_of_the_spooling_protocol(server: Scripted, encoding: str) -> None:
    metadata = {"rowsCount": 1000, "segmentSize": len(PACKED[encoding])}
    if encoding != "json":
        metadata["uncompressedSize"] = len(ROWS)
    inline = {"type": "inline", "data": base64.b64encode(PACKED[encoding]).decode(), "metadata": metadata}
    spooled = {
        "type": "spooled",
        "uri": f"http://{server.place}/segment/{encoding}",
        "ackUri": f"http://{server.place}/ack",
        "headers": {},
        "metadata": metadata,
    }
    found = read(server, page(server, {"encoding": encoding, "segments": [inline, spooled]}), page(server, last=True))
    assert found == [*range(1000)] * 2
    assert "GET /ack" in server.asked


def inline(encoding: str, packed: bytes, **metadata: Any) -> dict[str, Any]:
    told = {"rowsCount": 1000, "segmentSize": len(packed), "uncompressedSize": len(ROWS)} | metadata
    return {
        "encoding": encoding,
        "segments": [{"type": "inline", "data": base64.b64encode(packed).decode(), "metadata": told}],
    }


LYING = {
    "fewer rows than told": inline("json", ROWS, rowsCount=1001),
    "a row offset beyond what came": inline("json", ROWS, rowOffset=1001),
    "a part of what was compressed": inline("json+zstd", PACKED["json+zstd"][:-9]),
    "more bytes than told": inline("json+lz4", PACKED["json+lz4"], uncompressedSize=len(ROWS) - 1),
    "fewer bytes than told": inline("json+lz4", PACKED["json+lz4"], uncompressedSize=len(ROWS) + 5000),
    "fewer bytes than told, of zstd": inline("json+zstd", PACKED["json+zstd"], uncompressedSize=len(ROWS) + 5000),
    "another codec": inline("json+gzip", ROWS),
    "another format": inline("arrow+zstd", PACKED["json+zstd"]),
}


@pytest.mark.parametrize("data", LYING.values(), ids=LYING)
def test_a_segment_that_is_not_what_is_told_is_an_error(server: Scripted, data: dict[str, Any]) -> None:
    with pytest.raises(longshore.OperationalError):
        read(server, page(server, data), page(server, last=True))


def test_rows_before_their_columns_are_an_error(server: Scripted) -> None:
    _, first = page(server, [[1]])
    del first["columns"]
    with pytest.raises(longshore.OperationalError, match="rows without columns"):
        read(server, (200, first), page(server, [[2]], last=True))


def test_a_stream_that_is_dropped_ends_its_query(server: Scripted) -> None:
    server.answers = [page(server, [[1]]), *[page(server, [[n] for n in range(20_000)])] * 200]
    url = f"trino://me@{server.place}/tpch"
    with longshore.read_sql("SELECT n", url, return_type="arrow_stream") as stream:
        assert next(stream).num_rows == 1
    assert "DELETE /next" in server.asked


def stream(source: Any, batch_size: int = 1) -> Any:
    return longshore.read_sql("SELECT n", source, return_type="arrow_stream", batch_size=batch_size)


def test_batches_have_at_most_so_many_rows_and_wait_for_no_more(server: Scripted) -> None:
    server.answers = [page(server, [[n] for n in range(5)]), page(server, [[5]]), page(server, last=True)]
    with stream(f"trino://me@{server.place}/tpch", batch_size=2) as found:
        assert [batch["n"].to_pylist() for batch in found] == [[0, 1], [2, 3], [4], [5]]


@pytest.mark.parametrize("is_alone", [True, False])
def test_rows_before_an_error_are_given(server: Scripted, *, is_alone: bool) -> None:
    server.answers = [page(server, [[1]]), page(server), BROKEN["an error"](server)]
    with longshore.connect(f"trino://me@{server.place}/tpch", autocommit=is_alone) as connection:
        with stream(connection) as found:
            assert next(found)["n"].to_pylist() == [1]
            with pytest.raises(longshore.OperationalError, match="the sea"):
                next(found)
        connection.rollback()


def test_a_stream_whose_rows_are_all_read_leaves_its_transaction(server: Scripted) -> None:
    server.answers = [page(server, [[1], [2]]), page(server), page(server, last=True)]
    with longshore.connect(f"trino://me@{server.place}/tpch") as connection:
        with stream(connection) as found:
            assert [next(found)["n"].to_pylist() for _ in range(2)] == [[1], [2]]
        connection.commit()
    assert server.statements == ["START TRANSACTION", "SELECT n", "COMMIT"]


def test_a_stream_that_is_left_aborts_its_own_transaction(server: Scripted) -> None:
    endless = [page(server, [[n] for n in range(20_000)])] * 200
    with longshore.connect(f"trino://me@{server.place}/tpch", autocommit=True) as connection:
        for autocommit in (True, False):
            connection.autocommit = autocommit
            server.answers = list(endless)
            with stream(connection) as found:
                next(found)
            if autocommit:
                connection.autocommit = False
            server.answers = [(200, DONE)]
            connection.execute("UPDATE t SET n = 1")
            with contextlib.nullcontext() if autocommit else pytest.raises(longshore.OperationalError, match="rolled"):
                connection.commit()
    ended = [text for text in server.statements if text in {"COMMIT", "ROLLBACK"}]
    assert ended == ["COMMIT", "ROLLBACK"]


def test_a_table_without_not_null_where_the_connector_has_none(server: Scripted) -> None:
    error = {"message": "no NOT NULL", "errorName": "NOT_SUPPORTED", "errorType": "USER_ERROR"}
    server.answers = [
        page(server, last=True),
        (200, {"id": "q", "error": error, "stats": {}}),
        (200, DONE),
        (200, {"id": "q", "updateType": "INSERT", "updateCount": 1, "stats": FINISHED}),
        (200, DONE),
    ]
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    url = f"trino://me@{server.place}/tpch"
    assert longshore.write_sql(pa.table({"n": [1]}, schema=schema), "boats", url) == 1
    assert [" NOT NULL" in text for text in server.statements] == [False, True, False, False, False]
    assert server.statements[-1].startswith("ALTER TABLE")


JSONS: list[list[Any]] = [
    ['{"a": 1.50, "b": 1e2, "c": 123456789012345678901234567890}', '{"a": 0.12345678901234567891}'],
    [None, "1e400"],
    [None, "1e99999999999999999999"],
    ["[]", '[{"a": 1, "a": 2}]'],
    ["[]", "{"],
    ["[]", "[NaN]"],
]


@pytest.mark.parametrize("native", ["json", " JSON"])
@pytest.mark.parametrize("texts", JSONS)
def test_a_text_that_the_parser_would_change_is_refused(server: Scripted, native: str, texts: list[Any]) -> None:
    for types, data in (({"d": native}, pa.array(texts)), ({}, pa.array(texts, pa.json_()))):
        server.answers = [page(server, last=True), (200, DONE), (200, DONE)]
        with pytest.raises(longshore.DataError, match="does not fit") as caught:
            longshore.write_sql(pa.table({"d": data}), "boats", f"trino://me@{server.place}/tpch", types=types)
        assert (caught.value.column, caught.value.row, caught.value.native_type) == ("d", 1, "json")
        assert server.statements[-1].startswith("DROP TABLE")


def test_texts_within_lists_of_json(server: Scripted) -> None:
    url = f"trino://me@{server.place}/tpch"
    server.answers = [page(server, last=True)]
    with pytest.raises(longshore.NotSupportedError, match="would become JSON strings"):
        longshore.write_sql({"d": [["{}"]]}, "boats", url, types={"d": "ARRAY(JSON)"})
    storage = pa.array([["{}"], ["[]", "{"]])
    data = pa.ListArray.from_arrays(storage.offsets, storage.flatten().cast(pa.json_()))
    server.answers = [page(server, last=True)]
    with pytest.raises(longshore.NotSupportedError, match="would become its strings"):
        longshore.write_sql(pa.table({"d": data}), "boats", url, types={"d": "array(varchar(9))"})
    server.answers = [page(server, last=True), (200, DONE), (200, DONE)]
    with pytest.raises(longshore.DataError, match="does not fit") as caught:
        longshore.write_sql(pa.table({"d": data}), "boats", url)
    assert (caught.value.column, caught.value.row) == ("d", 1)


def test_columns_of_lists_of_an_extensions_type_are_described(server: Scripted) -> None:
    uuids = {"rawType": "array", "arguments": [{"kind": "TYPE", "value": {"rawType": "uuid", "arguments": []}}]}
    columns = [{"name": "u", "type": "array(uuid)", "typeSignature": uuids}]
    server.answers = [(200, {"id": "q", "columns": columns, "stats": FINISHED})]
    found: Any = longshore.schema("SELECT u", f"trino://me@{server.place}/tpch")
    assert found.field("u").type == pa.list_(pa.uuid())


def test_a_table_that_is_being_made_is_there_before_its_write_is_stopped(server: Scripted) -> None:
    connection = Connection(Address.of(f"me@{server.place}/tpch", {}))
    begun, stopping = threading.Event(), threading.Thread(target=connection.cancel)

    class Waited:
        def __init__(self) -> None:
            self.lock = threading.Lock()
            self.release = self.lock.release

        def __enter__(self) -> None:
            self.lock.acquire()

        def __exit__(self, *_: object) -> None:
            self.lock.release()

        def acquire(self, timeout: float) -> bool:
            begun.set()
            return self.lock.acquire(timeout=timeout)

    def made() -> Any:
        stopping.start()
        assert begun.wait(10)
        return page(server, last=True)[1]

    connection.interruption._lock = Waited()  # type: ignore[assignment]  # noqa: SLF001  to see that it is waited for
    server.answers = [page(server), (200, made), page(server), page(server, last=True)]
    with connection.interruption.suspend():
        connection.run("CREATE TABLE t (n integer)").finish()
    stopping.join()
    assert server.asked == ["POST /v1/statement", "GET /next"]
    connection.run("DROP TABLE t").finish()
    assert server.answers == []
    connection.close()
