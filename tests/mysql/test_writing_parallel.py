"""Writes over several connections: the rows of one over one, or the table as it was, and none next to it."""

import itertools
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
from tests.cutter import Cutter
from tests.mysql.reading import wait
from tests.servers import MySQLEndpoint

pytestmark = pytest.mark.costly

Run = Callable[[str], None]
ROWS = 3_000
DATA = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int32()),
        "word": [None if n % 7 == 0 else f"wörd {n}" for n in range(ROWS)],
        "at": pa.array([1_500_000_000_000_000 + n for n in range(ROWS)], pa.timestamp("us")),
    }
)
MODES = ("append", "truncate", "replace", "upsert")
BEFORE = [(-1, "old"), (7, "old")]


@pytest.fixture(autouse=True)
def _table(server: MySQLEndpoint, tables: Run) -> None:
    tables("DROP TABLE IF EXISTS several, serial")
    fresh(server)


def fresh(server: MySQLEndpoint, table: str = "several", key: str = "PRIMARY KEY") -> None:
    server.sql(
        f"DROP TABLE IF EXISTS {table}; CREATE TABLE {table} (id int {key}, word varchar(20), at datetime(6));"
        f"INSERT INTO {table} (id, word) VALUES (-1, 'old'), (7, 'old')"
    )


def write(conn: Any, mode: Any, data: Any = DATA, *, table: str = "several", parallel: int = 3, **others: Any) -> int:
    others = {"batch_size": 100, **others}
    key = "id" if mode in {"replace", "upsert"} else None
    return longshore.write_sql(data, table, conn, if_exists=mode, key=key, parallel=parallel, **others)


def rows(server: MySQLEndpoint, table: str = "several") -> list[Any]:
    return sorted(server.sql(f"SELECT id, word FROM {table}"), key=str)


def staging_tables(server: MySQLEndpoint) -> list[str]:
    """Give the names of the tables that only a write has."""
    found = server.sql("SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'longshore%'")
    return sorted(name for (name,) in found)


def connections(server: MySQLEndpoint) -> list[int]:
    """Give the numbers of the connections of others than the tests, in the order in which they came."""
    found = server.sql(
        "SELECT id FROM information_schema.processlist WHERE user = 'hand' AND command <> 'Killed' ORDER BY id"
    )
    return [number for (number,) in found]


@pytest.fixture
def hand(server: MySQLEndpoint) -> Iterator[str]:
    """Give the URL of a user of its own, whose connections can be told from others."""
    server.sql("CREATE USER hand; GRANT ALL ON test.* TO hand")
    yield server.url(user="hand")
    server.sql("DROP USER hand")


def endless(at: int = -1, event: Callable[[], object] = lambda: None) -> Iterator[pa.Table]:
    for number in itertools.count():
        if number == at:
            event()
        # Few rows, for to take many back may take the server longer than anybody waits.
        time.sleep(0.001)
        yield pa.table({"id": pa.array(range(10 + 100 * number, 110 + 100 * number), pa.int32())})


@pytest.mark.parametrize("mode", ["fail", *MODES])
@pytest.mark.parametrize("settings", [{}, {"compression": "zlib"}], ids=["files", "statements"])
def test_the_rows_are_those_of_a_serial_write(settings: dict[str, Any], mode: str, server: MySQLEndpoint) -> None:
    url = server.url(**settings)
    data = DATA.slice(8) if mode == "append" else DATA
    fresh(server, "serial")
    if mode == "fail":
        server.sql("DROP TABLE several, serial")
    assert write(url, mode, data) == len(data)
    assert write(url, mode, data, table="serial", parallel=1) == len(data)
    both = [
        server.sql(f"SELECT id, word, CAST(at AS char) FROM {table} ORDER BY id") for table in ("several", "serial")
    ]
    assert both[0] == both[1]
    shown = [server.sql(f"SHOW CREATE TABLE {table}")[0][1] for table in ("several", "serial")]
    assert shown[0].replace("several", "serial") == shown[1]
    assert staging_tables(server) == []


def test_the_last_of_equal_keys_wins(server: MySQLEndpoint) -> None:
    data = pa.table({"id": pa.array([n % 10 for n in range(ROWS)], pa.int32()), "word": [str(n) for n in range(ROWS)]})
    assert write(server.url(), "upsert", data, batch_size=7) == ROWS
    assert rows(server) == sorted([(-1, "old"), *((n, str(ROWS - 10 + n)) for n in range(10))], key=str)


@pytest.mark.parametrize("mode", ["fail", *MODES])
def test_a_value_that_does_not_fit_has_its_row(mode: str, server: MySQLEndpoint) -> None:
    words = ["x" * 21 if n == 2345 else "x" for n in range(ROWS)]
    data = DATA.set_column(1, "word", pa.array(words))
    target = "serial" if mode == "fail" else "several"
    arguments: dict[str, Any] = {"types": {"word": "varchar(20)"}} if mode in {"fail", "replace"} else {}
    with pytest.raises(longshore.DataError) as caught:
        write(server.url(), mode, data, table=target, **arguments)
    assert (caught.value.column, caught.value.row) == ("word", 2345)
    assert rows(server) == BEFORE
    assert staging_tables(server) == []


def test_null_where_there_must_be_a_value_has_its_row(server: MySQLEndpoint) -> None:
    server.sql(
        "ALTER TABLE several MODIFY word varchar(20) NOT NULL, ADD stamp timestamp NOT NULL DEFAULT '2020-01-01'"
    )
    data = pa.table({"id": [20, 21, 22], "word": ["a", None, "c"]})
    with pytest.raises(longshore.IntegrityError) as caught:
        write(server.url(), "append", data, batch_size=1)
    assert (caught.value.column, caught.value.row) == ("word", 1)
    assert rows(server) == BEFORE


@pytest.mark.parametrize("mode", ["append", "replace"])
def test_a_duplicate_key_is_named(mode: str, server: MySQLEndpoint) -> None:
    data = DATA.set_column(0, "id", pa.array([5 if n == 2900 else n for n in range(ROWS)], pa.int32()))
    with pytest.raises(longshore.DatabaseError, match=r"Duplicate entry '[57]'"):
        write(server.url(), mode, data)
    assert rows(server) == BEFORE
    assert staging_tables(server) == []


def test_what_cannot_be_is_refused_before_a_row_is_taken(server: MySQLEndpoint) -> None:
    def untouched() -> Iterator[pa.Table]:
        yield DATA.slice(0, 0)
        pytest.fail("a row was taken")

    for mode, table, match in [
        ("fail", "several", "is there already"),
        ("append", "none", "there is no table"),
        ("upsert", "none", "there is no table"),
    ]:
        with pytest.raises(longshore.ProgrammingError, match=match):
            write(server.url(), mode, untouched(), table=table)
    with longshore.connect(server.url()) as connection, pytest.raises(longshore.InterfaceError, match="one session"):
        write(connection, "append", untouched())
    assert rows(server) == BEFORE
    assert staging_tables(server) == []


def test_a_pool_has_its_sessions_back(server: MySQLEndpoint) -> None:
    with longshore.Pool(server.url(), size=4) as pool:
        for mode in ("truncate", "replace", "upsert"):
            assert write(pool, mode) == ROWS
            assert (pool.in_use, pool.idle) == (0, 4)
        with pytest.raises(longshore.InterfaceError, match="the pool has 4"):
            write(pool, "append", parallel=4)


def test_names_in_all_their_forms(server: MySQLEndpoint) -> None:
    for name in ('Straße "1"', "x" * 64, "it's", "a`b\\"):
        try:
            for mode in ("fail", "replace", "append"):
                data = (
                    DATA if mode != "append" else DATA.set_column(0, "id", pa.array(range(ROWS, 2 * ROWS), pa.int32()))
                )
                assert write(server.url(), mode, data, table=("test", name), parallel=2) == ROWS  # type: ignore[arg-type]
        finally:
            server.sql(f"DROP TABLE IF EXISTS `{name.replace('`', '``')}`")
    assert staging_tables(server) == []


@pytest.mark.parametrize("mode", ["append", "replace"])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_one_connection_is_killed(number: int, mode: str, hand: str, server: MySQLEndpoint) -> None:
    def kill() -> None:
        wait(lambda: len(connections(server)) == 3)
        server.sql(f"KILL {connections(server)[number]}")

    started = time.monotonic()
    with pytest.raises(longshore.OperationalError):
        write(hand, mode, endless(20, kill), parallel=2)
    assert time.monotonic() - started < 15
    assert rows(server) == BEFORE
    wait(lambda: not connections(server))
    assert staging_tables(server) == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("direction", ["down", "up"])
def test_all_cut_anywhere(direction: Any, mode: str, server: MySQLEndpoint, cutter: Cutter) -> None:
    way = server.url(host=cutter.host, port=cutter.port, **{"ssl-mode": "DISABLED"})
    data = DATA.slice(8, 40)
    after = [(n, word) for n, word in zip(data["id"].to_pylist(), data["word"].to_pylist(), strict=True)]
    after = sorted(after + (BEFORE if mode in {"append", "upsert"} else []), key=str)
    assert write(way, mode, data, parallel=2, batch_size=5) == 40
    cutter.wait()
    sizes = [count.up if direction == "up" else count.down for count in cutter.counts]
    for byte in range(0, max(sizes), 797):
        fresh(server)
        with cutter.fault("cut", byte, way=direction):
            try:
                write(way, mode, data, parallel=2, batch_size=5)
                expected = [after]
            except longshore.DatabaseError:
                # What the server has committed it may not have been able to say.
                expected = [BEFORE, after]
            cutter.wait()
        assert rows(server) in expected
    fresh(server)
    # What was left goes with the next write.
    wait(lambda: write(server.url(), "truncate", data) == 40 and not staging_tables(server))


@pytest.mark.parametrize("mode", MODES)
def test_the_deadline_and_an_iterator_that_fails(mode: str, hand: str, server: MySQLEndpoint) -> None:
    def failing() -> Iterator[pa.Table]:
        yield from itertools.islice(endless(), 20)
        raise ZeroDivisionError

    started = time.monotonic()
    with pytest.raises(longshore.TimeoutError):
        write(hand, mode, endless(), timeout=0.5)
    assert time.monotonic() - started < 8
    with pytest.raises(ZeroDivisionError):
        write(hand, mode, failing())
    wait(lambda: not connections(server))
    assert rows(server) == BEFORE
    assert staging_tables(server) == []


PROGRAM = """
    import sys, time, longshore, pyarrow as pa

    def slow():
        for start in range(10, 10**9, 100):
            yield pa.table({"id": pa.array(range(start, start + 100), pa.int32())})
            print("x", flush=True)
            time.sleep(0.02)

    url, mode = sys.argv[1:]
    longshore.write_sql(slow(), "several", url, if_exists=mode, key="id" if mode == "upsert" else None, parallel=2)
"""


@pytest.mark.parametrize("mode", MODES)
def test_what_a_crash_has_left_goes_and_what_lives_stays(mode: str, hand: str, server: MySQLEndpoint) -> None:
    server.sql("CREATE TABLE IF NOT EXISTS longshore_several_12345678 (n int)")
    try:
        command = [sys.executable, "-c", textwrap.dedent(PROGRAM), hand, mode]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            # Another write comes and goes meanwhile.
            assert write(server.url(), "append", DATA.slice(8)) == ROWS - 8
            left = staging_tables(server)
            process.kill()
        assert len(left) == 2
        wait(lambda: not connections(server))
        assert staging_tables(server) == left
        assert write(server.url(), "truncate") == ROWS
        assert staging_tables(server) == ["longshore_several_12345678"]
    finally:
        server.sql("DROP TABLE longshore_several_12345678")


@pytest.mark.parametrize("mode", ["append", "replace"])
def test_ctrl_c(mode: str, hand: str, server: MySQLEndpoint) -> None:
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), hand, mode]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        wait(lambda: len(connections(server)) == 3)
        drain = threading.Thread(target=process.stdout.read)
        drain.start()
        process.send_signal(signal.SIGINT)
        errors = process.stderr.read()
        drain.join()
        assert process.wait(10) != 0
    assert "KeyboardInterrupt" in errors
    wait(lambda: not connections(server))
    assert rows(server) == BEFORE
    assert staging_tables(server) == []
