"""Ctrl-C, deadlines and dropped results: each ends the query on the server, and soon."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pyarrow as pa
import pytest

import longshore
from tests.servers import Endpoint, PostgreSQL

# In the list of columns, or the server would make all rows before it sends the first.
STREAMING = "SELECT repeat('x', 100) AS t, generate_series(1, 500000000) AS i"
SLEEPING = "SELECT pg_sleep(60)::text AS t"


def running(postgres: Endpoint, name: str) -> bool:
    """Tell whether a statement of the application `name` runs on the server."""
    query = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}' AND state <> 'idle'"
    return postgres.psql(query) != "0"


def wait(condition: Callable[[], bool], seconds: float = 10) -> float:
    """Return after how many seconds the condition came true."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < seconds, "it did not come true"
        time.sleep(0.01)
    return time.monotonic() - started


def test_a_deadline_counts_for_the_whole_call(postgres: Endpoint) -> None:
    with pytest.raises(longshore.TimeoutError):
        longshore.read_sql(SLEEPING.replace("60", "0.1") + ", generate_series(1, 100)", postgres.url(), timeout=0.5)


@pytest.mark.parametrize("timeout", [-1, float("nan"), "5", float("-inf")])
def test_a_timeout_that_is_none(timeout: object, url: str) -> None:
    with pytest.raises(longshore.InterfaceError, match="timeout is a number of seconds"):
        longshore.read_sql("SELECT 1", url, timeout=timeout)  # type: ignore[call-overload]


def test_a_streams_deadline_is_for_each_wait(postgres: Endpoint) -> None:
    # The server sends 8 KiB at a time.
    query = "SELECT i, pg_sleep(0.3)::text AS t, repeat('x', 9000) AS x FROM generate_series(1, 4) AS i"
    stream = longshore.read_sql(query, postgres.url(), return_type="arrow_stream", timeout=0.8, batch_size=1)
    started = time.monotonic()
    assert pa.RecordBatchReader.from_stream(stream).read_all().num_rows == 4
    assert time.monotonic() - started > 0.8
    stream = longshore.read_sql(SLEEPING, postgres.url(), return_type="arrow_stream", timeout=0.3)
    with pytest.raises((pa.ArrowException, OSError), match=r"no answer within 0\.3 s"):
        pa.RecordBatchReader.from_stream(stream).read_all()


def test_a_query_that_is_cancelled_by_somebody_else(postgres: Endpoint) -> None:
    name = "cancelled"
    caught: list[BaseException] = []

    def read() -> None:
        try:
            longshore.read_sql(SLEEPING, postgres.url(application_name=name))
        except longshore.Error as error:
            caught.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    wait(lambda: running(postgres, name))
    postgres.psql(f"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'")
    thread.join(10)
    assert [(type(error), getattr(error, "sqlstate", None)) for error in caught] == [
        (longshore.OperationalError, "57014")
    ]


def test_ctrl_c_while_connecting(make_server: Callable[..., PostgreSQL]) -> None:
    # A server that is stopped still accepts connections, and says nothing.
    server = make_server()
    script = f"import longshore; print('ready', flush=True); longshore.read_sql('SELECT 1', {server.url()!r})"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout
        signal_server(server, signal.SIGSTOP)
        try:
            assert child.stdout.readline() == "ready\n"
            time.sleep(0.5)
            child.send_signal(signal.SIGINT)
            sent = time.monotonic()
            _, errors = child.communicate(timeout=10)
            assert "KeyboardInterrupt" in errors
            assert time.monotonic() - sent < 5
        finally:
            signal_server(server, signal.SIGCONT)


def signal_server(server: PostgreSQL, number: signal.Signals) -> None:
    import os

    os.kill(server.pid, number)


TRICKLING = "SELECT repeat('x', 1000) AS t, pg_sleep(0.005)::text AS s FROM generate_series(1, 4000)"
NOTICES = "DO $$ BEGIN LOOP RAISE NOTICE 'x'; END LOOP; END $$"


@pytest.mark.parametrize(
    ("query", "before"),
    [(TRICKLING, None), ("SELECT 1", TRICKLING), ("SELECT 1", NOTICES)],
    ids=["trickling", "trickling before", "endless notices"],
)
def test_a_deadline_is_heard_while_bytes_keep_coming(query: str, before: str | None, postgres: Endpoint) -> None:
    name = f"trickle_{hash((query, before)) % 1000}"
    started = time.monotonic()
    with pytest.raises(longshore.TimeoutError):
        longshore.read_sql(query, postgres.url(application_name=name), timeout=0.5, pre_execution_query=before)
    assert time.monotonic() - started < 5
    wait(lambda: not running(postgres, name))
