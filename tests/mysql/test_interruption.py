"""Ctrl-C, deadlines and dropped results: each ends the query on the server, and soon."""

import gc
import signal
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.mysql.reading import numbers, statements, table, value, wait
from tests.servers import MySQLEndpoint

STREAMING = f"{numbers(900_000)} SELECT a.i, repeat('x', 100) AS t FROM numbers AS a, numbers AS b"


def marked(kind: str, marker: str) -> str:
    """Give a statement that lasts a minute, with a comment that finds it."""
    return f"SELECT /* {marker} */ sleep(60) AS s" if kind == "computing" else f"{STREAMING} /* {marker} */"


@pytest.mark.parametrize("kind", ["computing", "streaming"])
@pytest.mark.parametrize("return_type", ["pandas", "arrow", "polars", "numpy", "arrow_stream"])
def test_ctrl_c(return_type: str, kind: str, server: MySQLEndpoint) -> None:
    marker = f"ctrl_c_{return_type}_{kind}"
    module = {"arrow": "pyarrow", "arrow_stream": "pyarrow"}.get(return_type, return_type)
    script = f"""
        import {module}
        import longshore

        try:
            print("ready", flush=True)
            result = longshore.read_sql({marked(kind, marker)!r}, {server.url()!r}, return_type={return_type!r})
            if {return_type == "arrow_stream"}:
                for batch in result:
                    pass
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout
        assert child.stdout.readline() == "ready\n"
        wait(lambda: bool(statements(server, marker)))
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        sent = time.monotonic()
        said = child.stdout.readline()
        took = time.monotonic() - sent
        _, errors = child.communicate(timeout=10)
    assert said == "interrupted\n", errors
    assert took < 5
    wait(lambda: not statements(server, marker))


@pytest.mark.parametrize("kind", ["computing", "streaming"])
@pytest.mark.parametrize("protocol", ["binary", "text"])
def test_a_deadline(protocol: str, kind: str, server: MySQLEndpoint) -> None:
    marker = f"deadline_{protocol}_{kind}"
    started = time.monotonic()
    with pytest.raises(longshore.TimeoutError, match=r"no answer within 0\.5 s"):
        table(marked(kind, marker), server.url(), timeout=0.5, options={"protocol": protocol})
    assert 0.5 <= time.monotonic() - started < 5
    wait(lambda: not statements(server, marker))


def test_a_sleep_that_is_cancelled_is_no_result(server: MySQLEndpoint) -> None:
    # KILL QUERY has sleep() return 1, as if nothing were wrong.
    caught: list[BaseException] = []
    results: list[Any] = []

    def read() -> None:
        try:
            results.append(table("SELECT /* killed_sleep */ sleep(20) AS s, 1 AS n", server.url()))
        except longshore.Error as error:
            caught.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    wait(lambda: bool(statements(server, "killed_sleep")))
    _kill(server, "killed_sleep")
    thread.join(10)
    # The server itself calls either of them its answer.
    assert len(caught) + len(results) == 1


def test_a_query_that_is_killed_by_somebody_else(server: MySQLEndpoint) -> None:
    caught: list[BaseException] = []

    def read() -> None:
        try:
            table(marked("streaming", "killed_stream"), server.url())
        except longshore.Error as error:
            caught.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    wait(lambda: bool(statements(server, "killed_stream")))
    time.sleep(0.3)
    _kill(server, "killed_stream")
    thread.join(20)
    assert [(type(error), getattr(error, "sqlstate", None)) for error in caught] == [
        (longshore.OperationalError, "70100")
    ]
    assert "1317" in str(caught[0])


def _kill(server: MySQLEndpoint, marker: str) -> None:
    query = f"SELECT id FROM information_schema.processlist WHERE info LIKE '%{marker}%' AND id <> connection_id()"
    for (number,) in server.sql(query):
        server.sql(f"KILL QUERY {number}")


@pytest.mark.parametrize("how", ["unread", "closed", "left", "part", "capsule"])
def test_a_dropped_stream_ends_its_query(how: str, server: MySQLEndpoint) -> None:
    marker = f"dropped_{how}"
    stream = longshore.read_sql(marked("streaming", marker), server.url(), return_type="arrow_stream")
    wait(lambda: bool(statements(server, marker)))
    match how:
        case "closed":
            stream.close()
            stream.close()
        case "left":
            with stream:
                pass
        case "part":
            reader = pa.RecordBatchReader.from_stream(stream)
            assert reader.read_next_batch().num_rows > 0
            del reader
        case "capsule":
            capsule = stream.__arrow_c_stream__()
            del capsule
    del stream
    gc.collect()
    wait(lambda: not statements(server, marker))


def test_a_cancelled_read_leaves_the_connection(server: MySQLEndpoint) -> None:
    with longshore.connect(server.url()) as connection:
        number = value("SELECT connection_id() AS i", connection)
        for kind in ("computing", "streaming") * 5:
            with pytest.raises(longshore.TimeoutError):
                table(marked(kind, "again"), connection, timeout=0.1)
            # The request to stop may come late; it must not end the next statement.
            for n in range(20):
                assert value(f"SELECT {n} AS n", connection) == n
        assert value("SELECT connection_id() AS i", connection) == number


def test_a_memory_limit_ends_the_query(server: MySQLEndpoint) -> None:
    with pytest.raises(longshore.MemoryLimitError):
        table(marked("streaming", "limited"), server.url(), options={"memory_limit": "1MB"})
    wait(lambda: not statements(server, "limited"))


def test_parts_that_are_cancelled(server: MySQLEndpoint) -> None:
    queries = [marked("computing", "part_of_a_list") + f", {n} AS n" for n in range(3)]
    with pytest.raises(longshore.TimeoutError):
        table(queries, server.url(), timeout=0.5, partition_num=3, options={"snapshot": False})
    wait(lambda: not statements(server, "part_of_a_list"))
