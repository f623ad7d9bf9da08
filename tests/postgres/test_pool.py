"""The pool: never more sessions than its size, each of them like new, and every read gets its turn."""

import gc
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import numpy as np
import psutil
import pyarrow as pa
import pytest

import longshore
from tests.cutter import Cutter
from tests.recorder import Recorder
from tests.servers import Endpoint, PgBouncer, PostgreSQL

NAME = "pooled"
STREAMING = "SELECT repeat('x', 100) AS t, generate_series(1, 500000000) AS i"
SLEEPING = "SELECT pg_sleep(60)::text AS t"


@pytest.fixture
def here(postgres: Endpoint) -> str:
    return postgres.url(application_name=NAME)


@pytest.fixture
def table(postgres: Endpoint) -> Iterator[str]:
    """Give the name of a table of 200,000 rows, which is worth two parts."""
    postgres.psql("CREATE TABLE pooled AS SELECT i, repeat('x', 50) AS t FROM generate_series(1, 200000) AS i")
    yield "pooled"
    postgres.psql("DROP TABLE pooled")


def read(query: str, conn: Any, **arguments: Any) -> list[dict[str, Any]]:
    """Return the rows."""
    rows: pa.Table = longshore.read_sql(query, conn, return_type="arrow", **arguments)
    return list(rows.to_pylist())


def stream(query: str, conn: Any, **arguments: Any) -> Any:
    return longshore.read_sql(query, conn, return_type="arrow_stream", **arguments)


def wait(condition: Callable[[], bool], seconds: float = 10) -> None:
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < seconds, "it did not come true"
        time.sleep(0.01)


def sockets(postgres: Endpoint) -> int:
    """Return how many connections to the server this process has."""
    connections = psutil.Process().net_connections("tcp")
    return sum(bool(each.raddr) and each.raddr.port == postgres.port for each in connections)


class Census:
    """Counts the sessions all the time, at the server and in this process."""

    def __init__(self, postgres: Endpoint) -> None:
        """Look at `postgres`."""
        self.postgres = postgres
        self.most_sessions = self.most_sockets = self.looks = 0
        self._over = threading.Event()
        self._before = sockets(postgres)
        self._threads = [threading.Thread(target=self._count_sessions), threading.Thread(target=self._count_sockets)]

    def __enter__(self) -> Self:
        """Begin."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        """End."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _count_sessions(self) -> None:
        query = f"SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = '{NAME}'"
        with longshore.connect(
            self.postgres.url(host=getattr(self.postgres, "socket_directory", None)), autocommit=True
        ) as connection:
            while not self._over.wait(0.005):
                (row,) = read(query, connection)
                self.most_sessions = max(self.most_sessions, row["n"])
                self.looks += 1

    def _count_sockets(self) -> None:
        while not self._over.wait(0.005):
            self.most_sockets = max(self.most_sockets, sockets(self.postgres) - self._before)


def test_a_hundred_reads_open_no_more_than_its_size(here: str, postgres: Endpoint, table: str) -> None:
    size = 4

    def one(number: int) -> bool:
        kind = number % 5
        if kind == 0:
            parts = longshore.read_sql(
                f"SELECT i FROM {table}", pool, partition_on="i", partition_num=2, return_type="arrow"
            )
            return np.array_equal(np.sort(parts["i"]), np.arange(1, 200_001))
        if kind == 1:
            reader = pa.RecordBatchReader.from_stream(stream("SELECT i FROM generate_series(1, 5000) AS i", pool))
            return bool(reader.read_all()["i"].to_pylist() == [*range(1, 5001)])
        if kind == 2:
            with pytest.raises(longshore.DataError):
                read("SELECT 1 / 0", pool)
            return True
        rows = read("SELECT $1::int AS n, pg_sleep(0.01)::text AS s", pool, params=[number])
        return rows == [{"n": number, "s": ""}]

    with longshore.Pool(here, size=size) as pool, Census(postgres) as census, ThreadPoolExecutor(30) as threads:
        assert all(threads.map(one, range(100)))
        assert pool.in_use == 0
        assert 1 <= pool.idle <= size
    assert census.looks > 10
    assert 2 <= census.most_sessions <= size
    assert 2 <= census.most_sockets <= size
    wait(lambda: postgres.psql(f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{NAME}'") == "0")


def test_reads_in_parts_cannot_wait_for_each_other(here: str, postgres: Endpoint, table: str) -> None:
    with longshore.Pool(here, size=3) as pool, Census(postgres) as census, ThreadPoolExecutor(6) as threads:
        reads = [
            threads.submit(read, f"SELECT i FROM {table}", pool, partition_on="i", partition_num=number, timeout=60)
            for number in (2, 3, 4, 8, 2, 2)
        ]
        for each in reads:
            assert sorted(row["i"] for row in each.result()) == [*range(1, 200_001)]
    assert census.most_sessions <= 3


def test_a_pool_of_one_reads_parts_serially(here: str, table: str) -> None:
    with longshore.Pool(here, size=1) as pool:
        with pytest.warns(longshore.SerialReadWarning, match="the pool has one connection only"):
            rows = read(f"SELECT i FROM {table}", pool, partition_on="i", partition_num=2)
        assert sorted(row["i"] for row in rows) == [*range(1, 200_001)]


def test_sessions_are_like_new(here: str, postgres: Endpoint) -> None:
    postgres.psql("CREATE TABLE pooled_state (i int)")
    with longshore.Pool(here, size=1) as pool:
        fresh = "SELECT pg_backend_pid() AS pid, current_setting('work_mem') AS w, pg_my_temp_schema()::int AS t"
        (first,) = read(fresh, pool)
        before = [
            "SET work_mem = '77MB'",
            "CREATE TEMPORARY TABLE mine AS SELECT 1 AS i",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            "SELECT pg_advisory_lock(77)",
            "LISTEN pooled",
            "PREPARE p AS SELECT 1",
        ]
        assert read("SELECT i FROM mine", pool, pre_execution_query=before) == [{"i": 1}]
        postgres.psql("NOTIFY pooled; NOTIFY pooled")
        assert read("SELECT set_config('work_mem', '55MB', false) AS w", pool) == [{"w": "55MB"}]
        (row,) = read(fresh, pool)
        assert (row["pid"], row["w"]) == (first["pid"], first["w"])
        left = """
            SELECT (SELECT count(*) FROM pg_class WHERE relname = 'mine') AS tables,
                   (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory') AS locks,
                   (SELECT count(*) FROM pg_prepared_statements WHERE name = 'p') AS prepared,
                   (SELECT count(*) FROM pg_listening_channels()) AS channels"""
        assert read(left, pool) == [{"tables": 0, "locks": 0, "prepared": 0, "channels": 0}]
        assert read("INSERT INTO pooled_state VALUES (1) RETURNING i", pool) == [{"i": 1}]
        # A transaction that somebody leaves open is undone.
        read("SELECT 1", pool, pre_execution_query=["BEGIN", "INSERT INTO pooled_state VALUES (2)"])
        assert read("SELECT i FROM pooled_state", pool) == [{"i": 1}]
        assert postgres.psql("SELECT count(*) FROM pooled_state") == "1"
    postgres.psql("DROP TABLE pooled_state")


def _drop(pool: longshore.Pool) -> None:
    reader = pa.RecordBatchReader.from_stream(stream(STREAMING, pool))
    assert reader.read_next_batch().num_rows > 0
    del reader
    gc.collect()


def test_a_wait_ends_with_its_deadline(here: str) -> None:
    with longshore.Pool(here, size=1) as pool:
        opened = stream(STREAMING, pool)
        started = time.monotonic()
        with pytest.raises(longshore.TimeoutError, match=r"no answer within 0\.4 s"):
            read("SELECT 1", pool, timeout=0.4)
        assert 0.4 <= time.monotonic() - started < 5
        opened.close()
        assert read("SELECT 1 AS a", pool, timeout=5) == [{"a": 1}]


def test_a_stream_holds_its_session_until_its_end(here: str) -> None:
    with longshore.Pool(here, size=1) as pool:
        opened = stream("SELECT i FROM generate_series(1, 300000) AS i", pool)
        with ThreadPoolExecutor(1) as threads:
            waits = threads.submit(read, "SELECT 1 AS a", pool, timeout=20)
            time.sleep(0.1)
            assert not waits.done()
            assert pa.RecordBatchReader.from_stream(opened).read_all().num_rows == 300_000
            assert waits.result() == [{"a": 1}]


def test_ctrl_c_while_waiting(here: str) -> None:
    script = f"""
        import longshore
        pool = longshore.Pool({here!r}, size=1)
        # What imports a library may swallow a Ctrl-C.
        longshore.read_sql("SELECT 1", pool)
        stream = longshore.read_sql({STREAMING!r}, pool, return_type="arrow_stream")
        try:
            print("ready", flush=True)
            longshore.read_sql("SELECT 1", pool)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        stream.close()
        print(longshore.read_sql("SELECT 7 AS i", pool, return_type="numpy")["i"].data)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    sent = time.monotonic()
    try:
        assert child.communicate(timeout=20) == ("interrupted\n[7]\n", "")
    finally:
        child.kill()
    assert time.monotonic() - sent < 5


def test_dead_sessions_are_replaced(make_server: Callable[..., PostgreSQL]) -> None:
    server = make_server()

    def crash() -> None:
        server.kill()
        server.start()

    def sleep(_: int) -> list[dict[str, Any]]:
        return read("SELECT pg_sleep(0.1)::text AS s", pool)

    with longshore.Pool(server.url(), size=4) as pool:
        for how in (server.restart, crash):
            with ThreadPoolExecutor(4) as threads:
                assert [*threads.map(sleep, range(4))] == [[{"s": ""}]] * 4
            assert pool.idle > 1
            how()
            assert read("SELECT 1 AS a", pool) == [{"a": 1}]
            server.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'longshore'")
            for _ in range(5):
                assert read("SELECT 1 AS a", pool) == [{"a": 1}]
        server.stop()
        for _ in range(5):
            with pytest.raises(longshore.OperationalError):
                read("SELECT 1", pool)
            assert (pool.in_use, pool.idle) == (0, 0)
        server.start()
        assert read("SELECT 1 AS a", pool) == [{"a": 1}]


def test_a_session_that_does_not_answer_is_replaced(postgres: Endpoint, cutter: Cutter) -> None:
    url = postgres.url(host=cutter.host, port=cutter.port, sslmode="disable")
    size = cutter.measure(lambda: read("SELECT 1 AS a", url)).down
    with longshore.Pool(url, size=1) as pool, cutter.fault("stall", size, connections=1):
        assert read("SELECT 1 AS a", pool) == [{"a": 1}]
        started = time.monotonic()
        assert read("SELECT 1 AS a", pool) == [{"a": 1}]
        assert time.monotonic() - started < 8


def test_the_size_holds_when_connecting_fails(make_server: Callable[..., PostgreSQL]) -> None:
    server = make_server(config={"max_connections": "5", "superuser_reserved_connections": "3"})
    server.psql("CREATE ROLE guest LOGIN")
    with longshore.Pool(server.url(user="guest"), size=4) as pool, ThreadPoolExecutor(8) as threads:

        def one(_: int) -> str:
            try:
                return str(read("SELECT 1 AS a, pg_sleep(0.05)::text AS s", pool)[0]["a"])
            except longshore.OperationalError as error:
                return str(error.sqlstate)

        outcomes = [*threads.map(one, range(60))]
        assert set(outcomes) == {"1", "53300"}
        assert pool.in_use == 0
        assert read("SELECT 1 AS a", pool) == [{"a": 1}]


def test_a_password_is_asked_at_each_connect(make_server: Callable[..., PostgreSQL]) -> None:
    server = make_server(hba=["host all all all scram-sha-256"])
    server.psql("CREATE ROLE guest LOGIN PASSWORD 'one'")
    asked = []
    passwords = ["one"]

    def password() -> str:
        asked.append(threading.get_ident())
        return passwords[0]

    with longshore.Pool({"url": server.url(user="guest"), "password": password}, size=2) as pool:
        for _ in range(5):
            read("SELECT 1", pool)
        assert len(asked) == 1
        server.psql("ALTER ROLE guest PASSWORD 'two'")
        read("SELECT 1", pool)
        server.psql("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'guest'")
        with pytest.raises(longshore.OperationalError) as caught:
            read("SELECT 1", pool)
        assert "one" not in str(caught.value).replace("connection", "")
        passwords[0] = "two"
        read("SELECT 1", pool)
        assert len(asked) == 3


def test_closing(here: str, postgres: Endpoint) -> None:
    pool = longshore.Pool(here, size=2)
    read("SELECT 1", pool)
    opened = stream("SELECT i FROM generate_series(1, 300000) AS i", pool)
    with ThreadPoolExecutor(1) as threads:
        second = stream(STREAMING, pool)
        waits = threads.submit(read, "SELECT 1", pool)
        time.sleep(0.1)
        pool.close()
        pool.close()
        with pytest.raises(longshore.InterfaceError, match="the pool is closed"):
            waits.result(5)
        second.close()
    with pytest.raises(longshore.InterfaceError, match="the pool is closed"):
        read("SELECT 1", pool)
    assert pa.RecordBatchReader.from_stream(opened).read_all().num_rows == 300_000
    assert (pool.in_use, pool.idle) == (0, 0)
    wait(lambda: postgres.psql(f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{NAME}'") == "0")


def test_cleaning_takes_one_flight(postgres: Endpoint) -> None:
    with Recorder((postgres.host, postgres.port)) as recorder:
        with longshore.Pool(postgres.url(host=recorder.host, port=recorder.port, sslmode="disable"), size=1) as pool:
            for _ in range(3):
                read("SELECT 1", pool)
        assert recorder.flights() == ["PDH", "BES", "Q", "PDH", "BES", "Q", "PDH", "BES", "X"]


def test_through_pgbouncer(pgbouncer: PgBouncer) -> None:
    with longshore.Pool(pgbouncer.url(), size=2) as pool, ThreadPoolExecutor(6) as threads:
        assert [*threads.map(lambda n: read(f"SELECT {n} AS n", pool), range(30))] == [[{"n": n}] for n in range(30)]
        _drop(pool)
        assert read("SELECT 1 AS a", pool) == [{"a": 1}]


def test_a_pool_of_nothing(here: str) -> None:
    with longshore.Pool(here) as pool:
        for conn in (None, 7, pool):
            with pytest.raises(longshore.InterfaceError, match="env:NAME or a dict of keywords, not "):
                longshore.Pool(conn)  # type: ignore[arg-type]


def test_a_warning_that_is_an_error_frees_the_sessions(here: str, table: str) -> None:
    with longshore.Pool(here, size=1) as pool:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(longshore.SerialReadWarning) as caught:
                read(f"SELECT i FROM {table}", pool, partition_on="i", partition_num=2)
        del caught
        gc.collect()
        assert read("SELECT 1 AS a", pool, timeout=10) == [{"a": 1}]
