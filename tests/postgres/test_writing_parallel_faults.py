"""Writes over several connections that fail on the way: the table is as before, and nothing is left next to it."""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.cutter import Cutter, spread
from tests.servers import Endpoint, PgBouncer, PostgreSQL

ROWS = 40
DATA = pa.table({"n": range(100, 100 + ROWS), "t": ["text" * 5] * ROWS})
MODES = ("append", "truncate", "replace", "upsert")
APPLICATION = "several"


@pytest.fixture
def here(postgres: Endpoint) -> str:
    return postgres.url(application_name=APPLICATION)


@pytest.fixture
def way(postgres: Endpoint, cutter: Cutter) -> str:
    """Give the URL that goes through the cutter."""
    return postgres.url(host=cutter.host, port=cutter.port, sslmode="disable", application_name=APPLICATION)


@pytest.fixture
def table(harbour: str, postgres: Endpoint) -> str:
    """Give a table with two rows."""
    postgres.psql(f"CREATE TABLE {harbour}.t (n bigint PRIMARY KEY, t text); INSERT INTO {harbour}.t VALUES (1), (2)")
    return f"{harbour}.t"


def write(table: str, conn: Any, mode: Any, data: Any = DATA, *, parallel: int = 2, **arguments: Any) -> int:
    key = "n" if mode in {"replace", "upsert"} else None
    arguments = {"batch_size": 5, **arguments}
    return longshore.write_sql(data, table, conn, if_exists=mode, key=key, parallel=parallel, **arguments)


def count(postgres: Endpoint, table: str) -> int:
    return int(postgres.psql(f"SELECT count(*) FROM {table}"))


def staging_tables(postgres: Endpoint, harbour: str) -> list[str]:
    """Give the names of the tables that only a write has."""
    return postgres.psql(
        f"SELECT relname FROM pg_class WHERE relnamespace = '{harbour}'::regnamespace AND relname LIKE 'longshore%' "
        "AND relkind = 'r' ORDER BY relname"
    ).split()


def sessions(postgres: Endpoint, states: str = "true") -> list[int]:
    """Give the processes of the sessions of a write, in the order in which they came."""
    found = postgres.psql(
        f"SELECT pid FROM pg_stat_activity WHERE application_name = '{APPLICATION}' AND {states} ORDER BY backend_start"
    )
    return [int(pid) for pid in found.split()]


def until(condition: Callable[[], object], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.01)


def endless(at: int = -1, event: Callable[[], object] = lambda: None) -> Iterator[pa.Table]:
    for number in itertools.count():
        if number == at:
            event()
        yield pa.table({"n": range(10 + 100 * number, 110 + 100 * number)})


@pytest.mark.parametrize("case", [*itertools.product(("up", "down"), MODES)], ids="-".join)
def test_all_cut_anywhere(  # noqa: PLR0917  what is cut, and where
    case: tuple[Any, str], way: str, cutter: Cutter, table: str, harbour: str, postgres: Endpoint
) -> None:
    direction, mode = case
    write(table, way, mode)
    cutter.wait()
    cutter.counts.clear()
    postgres.psql(f"DELETE FROM {table}")
    write(table, way, mode)
    cutter.wait()
    size = max(count.up if direction == "up" else count.down for count in cutter.counts)
    after = ROWS + 2 if mode in {"append", "upsert"} else ROWS
    for byte in spread(size - 1, 41):
        postgres.psql(f"TRUNCATE {table}; INSERT INTO {table} (n) VALUES (1), (2)")
        with cutter.fault("cut", byte, way=direction):
            try:
                assert write(table, way, mode) == ROWS
                expected = {after}
            except longshore.DatabaseError:
                # The answer to COMMIT may be what was lost.
                expected = {2, after}
            cutter.wait()
        assert count(postgres, table) in expected, f"cut at {byte} of {size}"
    until(lambda: not sessions(postgres))
    # What was left goes with the next write.
    assert write(table, way, "truncate") == ROWS
    assert staging_tables(postgres, harbour) == []


@pytest.mark.parametrize("number", [0, 1, 2])
def test_one_connection_is_killed(number: int, here: str, table: str, harbour: str, postgres: Endpoint) -> None:
    def kill() -> None:
        until(lambda: len(sessions(postgres)) == 3)
        postgres.psql(f"SELECT pg_terminate_backend({sessions(postgres)[number]})")

    started = time.monotonic()
    with pytest.raises(longshore.OperationalError):
        write(table, here, "append", endless(20, kill))
    assert time.monotonic() - started < 15
    assert count(postgres, table) == 2
    until(lambda: not sessions(postgres))
    # Whoever is left has removed it, the others' or the one that was to bring the rows home.
    assert staging_tables(postgres, harbour) == []


def test_one_connection_is_silent(way: str, cutter: Cutter, table: str, postgres: Endpoint) -> None:
    # Of all three: the first one's answers never come.
    with cutter.fault("stall", 900, way="down"), pytest.raises(longshore.TimeoutError):
        write(table, way, "append", timeout=1)
    cutter.drop()
    until(lambda: not sessions(postgres))
    assert count(postgres, table) == 2


def test_the_server_is_killed(make_server: Callable[..., PostgreSQL]) -> None:
    server = make_server(config={"synchronous_commit": "on"})
    server.psql("CREATE TABLE t (n bigint); INSERT INTO t VALUES (1), (2)")
    with pytest.raises(longshore.OperationalError):
        write("t", server.url(), "append", endless(20, server.kill))
    server.start()
    assert server.psql("SELECT count(*) FROM t") == "2"
    assert staging_tables(server, "public")
    assert write("t", server.url(), "append", DATA.select(["n"])) == ROWS
    assert staging_tables(server, "public") == []


@pytest.mark.parametrize("mode", MODES)
def test_the_deadline_and_an_iterator_that_fails(
    mode: str, table: str, harbour: str, here: str, postgres: Endpoint
) -> None:
    def failing() -> Iterator[pa.Table]:
        yield from itertools.islice(endless(), 20)
        raise ZeroDivisionError

    started = time.monotonic()
    with pytest.raises(longshore.TimeoutError):
        write(table, here, mode, endless(), timeout=0.5)
    assert time.monotonic() - started < 5
    with pytest.raises(ZeroDivisionError):
        write(table, here, mode, failing())
    until(lambda: not sessions(postgres))
    assert count(postgres, table) == 2
    assert staging_tables(postgres, harbour) == []


@pytest.mark.parametrize("mode", ["append", "replace"])
def test_ctrl_c(mode: str, table: str, harbour: str, here: str, postgres: Endpoint) -> None:
    program = """
        import sys, longshore, pyarrow as pa

        def endless():
            while True:
                yield pa.table({"n": range(1000)})
                print("x", flush=True)

        longshore.write_sql(endless(), sys.argv[1], sys.argv[2], if_exists=sys.argv[3], parallel=2)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), table, here, mode],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        drain = threading.Thread(target=process.stdout.read)
        drain.start()
        until(lambda: len(sessions(postgres)) == 3)
        os.kill(process.pid, signal.SIGINT)
        errors = process.stderr.read()
        drain.join()
        assert process.wait(10) != 0
    assert "KeyboardInterrupt" in errors
    until(lambda: not sessions(postgres))
    assert count(postgres, table) == 2
    assert staging_tables(postgres, harbour) == []


@pytest.mark.parametrize("mode", MODES)
def test_what_a_crash_has_left_goes_and_what_lives_stays(
    mode: str, table: str, harbour: str, here: str, postgres: Endpoint
) -> None:
    postgres.psql(f"CREATE TABLE {harbour}.longshore_t_12345678 (n int)")
    program = """
        import sys, time, longshore, pyarrow as pa

        def slow():
            while True:
                yield pa.table({"n": range(1000)})
                print("x", flush=True)
                time.sleep(0.05)

        table, url, mode = sys.argv[1:]
        longshore.write_sql(slow(), table, url, if_exists=mode, key="n" if mode == "upsert" else None, parallel=2)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), table, here, mode]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        # Another write comes and goes meanwhile.
        assert write(table, postgres.url(), "append") == ROWS
        left = staging_tables(postgres, harbour)
        process.kill()
    assert len(left) == 2
    until(lambda: not sessions(postgres))
    assert staging_tables(postgres, harbour) == left
    assert write(table, here, "truncate") == ROWS
    assert staging_tables(postgres, harbour) == ["longshore_t_12345678"]


def test_two_writes_of_one_table_at_once(table: str, here: str, harbour: str, postgres: Endpoint) -> None:
    def both(mode: str) -> None:
        barrier = threading.Barrier(2)
        results: list[Any] = []

        def one(start: int) -> None:
            def pieces() -> Iterator[pa.Table]:
                barrier.wait(20)
                for first in range(start, start + 1000, 100):
                    yield pa.table({"n": range(first, first + 100)})

            results.append(write(table, here, mode, pieces()))

        threads = [threading.Thread(target=one, args=(start,)) for start in (10_000, 20_000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert results == [1000, 1000]

    both("append")
    assert count(postgres, table) == 2002
    both("upsert")
    assert count(postgres, table) == 2002
    assert staging_tables(postgres, harbour) == []


def test_writes_that_empty_one_table_take_turns(table: str, here: str, postgres: Endpoint) -> None:
    threads = [threading.Thread(target=write, args=(table, here, "truncate")) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert count(postgres, table) == ROWS


def test_a_locked_table_waits_and_can_be_given_up(table: str, here: str, harbour: str, postgres: Endpoint) -> None:
    for mode in MODES:
        with longshore.connect(here) as connection:
            connection.execute(f"LOCK TABLE {table}")
            with pytest.raises(longshore.TimeoutError):
                write(table, here, mode, timeout=0.5)
    assert count(postgres, table) == 2
    assert staging_tables(postgres, harbour) == []


def test_a_pooler_that_is_too_small(postgres: Endpoint, table: str, harbour: str) -> None:
    with PgBouncer(postgres, config={"default_pool_size": "2"}) as pooler:
        started = time.monotonic()
        with pytest.raises(longshore.OperationalError, match="1 of 3 sessions had a connection"):
            write(table, pooler.url(), "append", parallel=3)
        assert time.monotonic() - started < 25
    assert count(postgres, table) == 2
    with contextlib.suppress(longshore.DatabaseError):
        write(table, postgres.url(), "append")
    assert staging_tables(postgres, harbour) == []
