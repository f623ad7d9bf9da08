"""Ctrl-C, deadlines, cancelled and dropped results: each ends the statement on the server, and soon."""

import contextlib
import gc
import json
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.contract.conftest import Database, wait
from tests.contract.interrupted import WAYS

pytestmark = [pytest.mark.usefixtures("leaves_nothing"), pytest.mark.costly]

KINDS = pytest.mark.parametrize("kind", ["computing", "streaming"])


def opened(query: Any, conn: Any, **arguments: Any) -> Any:
    """Open a stream."""
    return longshore.read_sql(query, conn, return_type="arrow_stream", **arguments)


@pytest.fixture(scope="session")
def child() -> Iterator[subprocess.Popen[str]]:
    """Give a process that makes calls."""
    command = [sys.executable, "-m", "tests.contract.interrupted"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            # It may be at work on what a test that failed has left to it.
            process.kill()


def call(child: subprocess.Popen[str], database: Database, way: str, query: str, table: str = "") -> None:
    database.close()
    assert child.stdin
    child.stdin.write(json.dumps([way, query, database.url, table]) + "\n")
    child.stdin.flush()


def interrupt(child: subprocess.Popen[str]) -> None:
    """See that the call ends in KeyboardInterrupt, and soon."""
    sent = time.monotonic()
    child.send_signal(signal.SIGINT)
    assert child.stdout
    # A Ctrl-C that is lost fails the test, and does not stop it.
    limit = threading.Timer(60, child.kill)
    limit.start()
    while (said := child.stdout.readline()) == "written\n":
        pass
    limit.cancel()
    assert said == "interrupted\n"
    assert time.monotonic() - sent < 5


@KINDS
@pytest.mark.parametrize("way", [way for way in WAYS if way not in {"connect", "write"}])
def test_ctrl_c(database: Database, child: subprocess.Popen[str], way: str, kind: str) -> None:
    marker = f"ctrl_c_{way}_{kind}"
    call(child, database, way, database.marked(kind, marker))
    # The process imports what it needs first.
    wait(lambda: database.running(marker), seconds=60)
    time.sleep(0.03)
    interrupt(child)
    wait(lambda: not database.running(marker))


def test_ctrl_c_while_connecting(database: Database, child: subprocess.Popen[str]) -> None:
    for n in range(8):
        call(child, database, "connect", "")
        assert child.stdout
        assert child.stdout.readline() == "connecting\n"
        # Before the session is there, after, and while it is closed.
        time.sleep(n * 0.0125)
        interrupt(child)
    wait(lambda: not database.is_in_use())


def test_ctrl_c_in_a_write(database: Database, child: subprocess.Popen[str], table: str) -> None:
    if "writing" in database.quirks.cannot:
        with database.can("writing"):
            longshore.write_sql({"id": [1]}, table, database.url)
        return
    database.execute(f"CREATE TABLE {table} ({database.column('id', 'int64')})", f"INSERT INTO {table} VALUES (1)")
    call(child, database, "write", "SELECT 1", table)
    assert child.stdout
    for _ in range(20):
        assert child.stdout.readline() == "written\n"
    interrupt(child)
    wait(lambda: not database.is_in_use())
    assert database.rows(table) == [(1,)]


@KINDS
@pytest.mark.parametrize("protocol", ["binary", "text"])
def test_a_deadline(database: Database, protocol: str, kind: str) -> None:
    marker = f"deadline_{protocol}_{kind}"
    started = time.monotonic()
    with pytest.raises(longshore.TimeoutError, match=r"no answer within 0\.2 s") as caught:
        database.rows(database.marked(kind, marker), timeout=0.2, options={"protocol": protocol})
    assert 0.2 <= time.monotonic() - started < 5
    assert isinstance(caught.value, longshore.OperationalError)
    wait(lambda: not database.running(marker))


def test_a_streams_deadline_is_for_each_wait(database: Database) -> None:
    with database.can("a stream before its first row"):
        seconds = database.quirks.seconds_to_answer
        stream = opened(database.marked("computing", "stream_deadline"), database.url, timeout=seconds)
        with stream, pytest.raises(longshore.TimeoutError, match=rf"no answer within {seconds} s"):
            next(stream)
        with pytest.raises(longshore.InterfaceError, match="the stream is closed"):
            next(stream)
    # Between the waits, time is the caller's own.
    seconds = max(1, database.quirks.seconds_to_answer)
    with opened(database.series(3000), database.url, timeout=seconds, batch_size=1000) as stream:
        first = next(stream).num_rows
        assert 0 < first <= 1000
        time.sleep(1.1)
        assert sum(batch.num_rows for batch in stream) == 3000 - first


@KINDS
def test_a_list_ends_at_its_deadline(database: Database, kind: str) -> None:
    queries = [database.marked(kind, f"list_deadline_{n}") for n in range(3)]
    with warnings.catch_warnings():
        # Each source reads one kind or the other in parallel.
        warnings.simplefilter("ignore", longshore.SerialReadWarning)
        with pytest.raises(longshore.TimeoutError):
            database.rows(queries, timeout=0.2, partition_num=3, options={"snapshot": False})
    wait(lambda: not database.running("list_deadline"))


@pytest.mark.parametrize("mode", ["fail", "append", "replace", "truncate", "upsert"])
def test_a_writes_deadline(database: Database, table: str, mode: Any) -> None:
    key = "id" if mode == "upsert" else None
    refused = {"writing", "an upsert"} if mode == "upsert" else {"writing"}
    for what in refused & {*database.quirks.cannot}:
        with database.can(what):
            longshore.write_sql({"id": [1]}, table, database.url, if_exists=mode, key=key)
        return
    if mode != "fail":
        column = database.column("id", "int64", database.quirks.primary_key)
        database.execute(f"CREATE TABLE {table} ({column})", f"INSERT INTO {table} VALUES (-1)")
    before = database.tables()
    batches = (pa.record_batch({"id": pa.array(range(n * 1000, n * 1000 + 1000))}) for n in range(10**9))
    started = time.monotonic()
    with pytest.raises(longshore.TimeoutError):
        longshore.write_sql(batches, table, database.url, if_exists=mode, key=key, timeout=0.1)
    assert time.monotonic() - started < 5
    wait(lambda: not database.is_in_use())
    assert database.tables() == before
    assert mode == "fail" or database.rows(table) == [(-1,)]


@pytest.mark.parametrize("how", ["unread", "closed", "left", "reader", "capsule", "batches", "pandas", "polars"])
def test_a_dropped_stream_ends_its_query(database: Database, how: str) -> None:
    marker = f"dropped_{how}"
    stream = opened(database.marked("streaming", marker), database.url)
    wait(lambda: database.running(marker))
    pieces: Any = None
    match how:
        case "closed":
            stream.close()
            stream.close()
        case "left":
            with stream:
                pass
        case "reader":
            pieces = pa.RecordBatchReader.from_stream(stream)
            assert pieces.read_next_batch().num_rows > 0
        case "capsule":
            pieces = stream.__arrow_c_stream__()
        case "batches" | "pandas" | "polars":
            pieces = stream if how == "batches" else getattr(stream, how)()
            assert len(next(pieces)) > 0
    if how in {"closed", "left"}:
        with pytest.raises(longshore.InterfaceError, match="the stream is closed"):
            stream.__arrow_c_stream__()
    del stream, pieces
    gc.collect()
    wait(lambda: not database.running(marker))


@KINDS
def test_cancel_from_another_thread(database: Database, kind: str) -> None:
    marker = f"cancel_{kind}"
    stream: Any = None
    what = "a stream before its first row"
    is_refused = kind == "computing" and what in database.quirks.cannot
    with database.can(what) if is_refused else contextlib.nullcontext():
        # What is refused would only compute for longer.
        seconds = database.quirks.seconds_to_answer if is_refused else max(1, database.quirks.seconds_to_answer)
        stream = opened(database.marked(kind, marker), database.url, timeout=seconds)
    if stream is None:
        return
    caught: list[longshore.Error] = []

    def read() -> None:
        try:
            for _ in stream:
                pass
        except longshore.Error as error:
            caught.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    wait(lambda: database.running(marker))
    time.sleep(0.03)
    stream.cancel()
    thread.join(5)
    # Between two batches the thread does not wait, and is told at its next step.
    between = [longshore.InterfaceError] if kind == "streaming" else []
    assert [type(error) for error in caught] in [[each] for each in (longshore.OperationalError, *between)]
    wait(lambda: not database.running(marker))
    with pytest.raises(longshore.InterfaceError, match="the stream was cancelled"):
        next(stream)


def test_cancel_while_no_thread_waits(database: Database) -> None:
    stream = opened(database.marked("streaming", "cancel_idle"), database.url)
    next(stream)
    stream.cancel()
    stream.cancel()
    wait(lambda: not database.running("cancel_idle"))
    with pytest.raises(longshore.InterfaceError, match="the stream was cancelled"):
        next(stream)


def timed_out(database: Database, conn: Any, kind: str) -> None:
    with pytest.raises(longshore.TimeoutError):
        database.rows(database.marked(kind, "again"), conn, timeout=0.1)


def timed_out_computing(database: Database, conn: Any) -> None:
    timed_out(database, conn, "computing")


def timed_out_streaming(database: Database, conn: Any) -> None:
    timed_out(database, conn, "streaming")


def dropped(database: Database, conn: Any) -> None:
    stream = opened(database.marked("streaming", "again"), conn)
    assert next(stream).num_rows > 0
    del stream
    gc.collect()


def too_large(database: Database, conn: Any) -> None:
    with pytest.raises(longshore.MemoryLimitError):
        database.rows(database.marked("streaming", "again"), conn, options={"memory_limit": 1 << 20})


def refused(database: Database, conn: Any) -> None:
    text = database.series(20_000, "CASE WHEN i < 19000 THEN '1' ELSE 'x' END AS n")
    with pytest.raises(longshore.DataError):
        database.rows(text, conn, schema={database.quirks.kept("n"): "int64"})


@pytest.mark.parametrize("failure", [timed_out_computing, timed_out_streaming, dropped, too_large, refused])
@pytest.mark.parametrize("session", ["connection", "pool"])
def test_the_session_goes_on(database: Database, session: str, failure: Any) -> None:
    kept: Any = (
        longshore.connect(database.url, autocommit=True)
        if session == "connection"
        else longshore.Pool(database.url, size=1)
    )
    with kept:
        numbered = database.quirks.session or "SELECT 0 AS n"
        number = database.rows(numbered, kept)
        for _ in range(2):
            failure(database, kept)
            # The request to stop may come late; it must not end the next statement.
            for n in range(10):
                assert database.rows(f"SELECT {n} AS n", kept) == [(n,)]
        assert database.rows(numbered, kept) == number
        if session == "pool":
            assert (kept.in_use, kept.idle) == (0, 1)
