"""Streams that are closed, read or broken at the wrong time."""

import subprocess
import sys
import textwrap
import threading
import time
from typing import Any
from unittest import mock

import polars as pl
import pytest

import longshore
from tests.servers import Endpoint, PostgreSQL

pytestmark = pytest.mark.packages

QUERY = "SELECT i FROM generate_series(1, 1000000) AS i"


def opened(url: str, **arguments: Any) -> longshore.Stream:
    """Open a stream."""
    stream: longshore.Stream = longshore.read_sql(QUERY, url, return_type="arrow_stream", **arguments)
    return stream


@pytest.mark.parametrize(("what", "says"), [("close", "cancelled"), ("cancel", "cancelled"), ("read", "waits for one")])
def test_a_stream_is_used_by_its_own_progress(url: str, what: str, says: str) -> None:
    """In a process of its own: a stream that waits for itself waits for ever."""
    program = f"""
        import faulthandler, time
        import longshore

        faulthandler.dump_traceback_later(20, exit=True)
        streams = []

        def use(progress):
            if streams and progress.rows:
                next(streams[0]) if {what!r} == "read" else getattr(streams[0], {what!r})()

        streams.append(longshore.read_sql({QUERY!r}, {url!r}, return_type="arrow_stream", progress=use))
        try:
            for _ in streams[0]:
                time.sleep(0.06)
        except longshore.Error as error:
            print(error)
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=False
    )
    assert says in ended.stdout, ended.stderr


def test_closing_ends_another_threads_wait(url: str) -> None:
    sleeping = """
        SELECT repeat('x', 1000) AS t, CASE WHEN i = 5000 THEN pg_sleep(60)::text END AS s
        FROM generate_series(1, 10000) AS i"""
    stream = longshore.read_sql(sleeping, url, return_type="arrow_stream", batch_size=1000)
    assert next(stream).num_rows == 1000
    failures: list[BaseException] = []

    def wait() -> None:
        try:
            for _ in stream:
                pass
        except longshore.Error as error:
            failures.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.5)
    stream.close()
    thread.join(10)
    assert not thread.is_alive()
    assert [str(failure).startswith("the statement was cancelled") for failure in failures] == [True]
    with pytest.raises(longshore.InterfaceError, match="closed"):
        next(stream)


def test_a_capsule_that_no_one_takes(make_server: Any) -> None:
    """Its parts still wait for the interpreter, to ask for the password."""
    server: PostgreSQL = make_server(hba=["host all all all scram-sha-256"])
    server.psql("CREATE ROLE asked LOGIN PASSWORD 'x'")
    program = f"""
        import faulthandler, time
        import longshore

        faulthandler.dump_traceback_later(20, exit=True)
        asked = []

        def password():
            asked.append(1)
            if len(asked) > 2:
                time.sleep(1)
            return "x"

        where = {{"host": "127.0.0.1", "port": {server.port}, "user": "asked", "dbname": "postgres"}}
        stream = longshore.read_sql(
            ["SELECT generate_series(1, 100000000) AS i"] * 4, where | {{"password": password}},
            return_type="arrow_stream", options={{"snapshot": False}}, partition_num=4,
        )
        capsule = stream.__arrow_c_stream__()
        del capsule
        print("dropped")
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.stdout == "dropped\n", ended.stderr


def test_a_frame_that_fails_ends_its_stream(postgres: Endpoint) -> None:
    stream = longshore.read_sql(QUERY, postgres.url(), return_type="arrow_stream", batch_size=1000)
    pieces = stream.polars()
    assert next(pieces).height == 1000
    with mock.patch.object(pl, "DataFrame", side_effect=MemoryError), pytest.raises(MemoryError):
        next(pieces)
    # The frame's rows are lost: what follows must not look like the rest.
    with pytest.raises(longshore.InterfaceError, match="closed"):
        next(pieces)
