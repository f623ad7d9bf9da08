"""A network that fails at every byte of a write, a server that is killed, Ctrl-C: all rows or none."""

import itertools
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.cutter import Cutter, spread
from tests.mysql.reading import statements, wait
from tests.servers import Mysqld, MySQLEndpoint

Run = Callable[[str], None]
#: Bytes from one cut to the next: making and dropping tables takes its time.
STEP = 149
MODES = ["append", "truncate", "upsert", "replace"]
BEFORE = [(1, "a"), (2, "b")]
DATA = pa.table({"id": [2, 3], "word": ["B", "c"]})
AFTER = {
    "append": [(1, "a"), (2, "B"), (2, "b"), (3, "c")],
    "truncate": [(2, "B"), (3, "c")],
    "replace": [(2, "B"), (3, "c")],
    "upsert": [(1, "a"), (2, "B"), (3, "c")],
}


def write(way: str, mode: Any, data: Any = DATA, **arguments: Any) -> int:
    return longshore.write_sql(data, "cutw", way, if_exists=mode, key="id" if mode == "upsert" else None, **arguments)


def fresh(server: MySQLEndpoint, mode: str) -> None:
    key = "" if mode == "append" else "PRIMARY KEY"
    server.sql(f"""DROP TABLE IF EXISTS cutw, longshore_cutw_new, longshore_cutw_old;
        CREATE TABLE cutw (id int {key}, word varchar(9)); INSERT INTO cutw VALUES (1, 'a'), (2, 'b')""")


def rows(server: MySQLEndpoint) -> list[Any]:
    return sorted(server.sql("SELECT id, word FROM cutw"))


def left(server: MySQLEndpoint) -> list[Any]:
    """Return the working tables that there are."""
    return list(server.sql("SHOW TABLES LIKE 'longshore%'"))


def write_cut(server: MySQLEndpoint, way: str, mode: str) -> bool:
    """Tell whether the write succeeds; either way, the table is as before or as after."""
    fresh(server, mode)
    started = time.monotonic()
    try:
        write(way, mode)
    except longshore.DatabaseError:
        is_done = False
    else:
        is_done = True
    assert time.monotonic() - started < 15
    wait(lambda: not left(server))
    got = rows(server)
    if is_done:
        assert got == sorted(AFTER[mode])
    else:
        # What the server has committed it may not have been able to say.
        assert got in (sorted(BEFORE), sorted(AFTER[mode]))
    return is_done


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("direction", ["down", "up"])
@pytest.mark.parametrize("settings", [{}, {"compression": "zlib"}], ids=["files", "statements"])
def test_a_cut(  # noqa: PLR0917  what is cut, and where
    settings: dict[str, str], direction: Any, mode: str, server: MySQLEndpoint, cutter: Cutter, tables: Run
) -> None:
    tables("DROP TABLE IF EXISTS cutw")
    way = server.url(host=cutter.host, port=cutter.port, **{"ssl-mode": "DISABLED", **settings})
    fresh(server, mode)
    count = cutter.measure(lambda: write(way, mode))
    size = count.down if direction == "down" else count.up
    outcomes = []
    for byte in spread(size, STEP):
        with cutter.fault("cut", byte, way=direction):
            outcomes.append(write_cut(server, way, mode))
    assert not any(outcomes[: len(outcomes) // 2])


def endless() -> Iterator[pa.Table]:
    for start in itertools.count(step=50_000):
        yield pa.table({"id": range(10 + start, 10 + start + 50_000), "word": ["x"] * 50_000})


def test_a_server_that_is_killed(make_mysqld: Callable[..., Mysqld]) -> None:
    server = make_mysqld()
    fresh(server, "append")

    def batches() -> Iterator[pa.Table]:
        for number, batch in enumerate(endless()):
            if number == 3:
                server.kill()
            yield batch

    with pytest.raises(longshore.OperationalError):
        write(server.url(), "append", batches())
    server.start()
    assert rows(server) == BEFORE


@pytest.mark.costly
@pytest.mark.parametrize("mode", ["append", "replace"])
def test_ctrl_c(mode: str, server: MySQLEndpoint, tables: Run) -> None:
    tables("DROP TABLE IF EXISTS cutw")
    fresh(server, mode)
    script = f"""
        import pyarrow as pa
        import longshore

        data = pa.table({{"id": pa.array(range(10, 3_000_000), pa.int32()), "word": pa.nulls(2_999_990, pa.string())}})
        print("ready", flush=True)
        try:
            longshore.write_sql(data, "cutw", {server.url()!r}, if_exists={mode!r})
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout
        assert child.stdout.readline() == "ready\n"
        wait(lambda: bool(statements(server, "LOAD DATA")))
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        sent = time.monotonic()
        said = child.stdout.readline()
        took = time.monotonic() - sent
        _, errors = child.communicate(timeout=20)
    assert said == "interrupted\n", errors
    assert took < 5
    wait(lambda: not statements(server, "LOAD DATA"), 20)
    assert rows(server) == BEFORE
    # What was left of the new table does not stay for ever.
    if mode == "replace":
        assert write(server.url(), "replace") == 2
        assert not server.sql("SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'longshore%'")
