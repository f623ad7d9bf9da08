"""Two hundred clients at once; some are killed, and the networks of some are cut.

In CI they are there for half a minute and think most of the time; in the long run they work for ten minutes.
LONGSHORE_LOAD_SECONDS says how long they work.
"""

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi as flightsql
import psutil
import pyarrow as pa

import longshore
from tests.cutter import Cutter
from tests.flight_server.conftest import made
from tests.long import IS_LONG

CLIENTS = 200
#: Of every twenty, one has a network that is cut, and two are ADBC's.
CUT, OTHERS = 20, 10
SECONDS = float(os.environ.get("LONGSHORE_LOAD_SECONDS") or (600 if IS_LONG else 0))
#: The seconds of each load that is put on the server, which has to have given back what it took each time.
WAVES = [SECONDS / 6] * 6 if SECONDS else [30.0]
#: The most seconds between two pieces of a client's work.
PAUSE = 0.0 if SECONDS else 30.0
#: The memory that the server may take beyond that of the first wave, or of its first half where there is one.
KEPT = 64 << 20
MOST = 10_000
Pause = Callable[[], None]
Work = Callable[[str, random.Random, Pause], None]
ROWS = pa.table({"n": pa.array(range(MOST), pa.int64()), "text": [f"row {number}" for number in range(MOST)]})
QUERY = "SELECT range AS n, 'row ' || range AS text FROM range({}, {})"
#: Bytes after which a network is cut: within a result, but after the answer that tells of it.
BYTES = 20_000
KILLED = """
import sys, longshore
query = "SELECT a.range FROM range(100000) a, range(100000) b"
stream = longshore.read_sql(query, sys.argv[1], return_type="arrow_stream")
next(iter(stream))
print("reads", flush=True)
sys.stdin.read()
"""


@contextmanager
def serving(url: str) -> Iterator[tuple[str, psutil.Process]]:
    """Serve by the command, in a process of its own."""
    command = [sys.executable, "-m", "longshore", "serve", url, "--port", "0", "--max-connections", "400"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"], psutil.Process(process.pid)
        finally:
            process.terminate()


def bounds(chance: random.Random) -> tuple[int, int]:
    """Choose rows."""
    begin = chance.randrange(MOST - 1)
    return begin, chance.randrange(begin + 1, MOST + 1)


def check(found: pa.Table, begin: int, end: int) -> None:
    """Compare each value."""
    assert found.sort_by("n").equals(ROWS.slice(begin, end - begin)), (begin, end, found.num_rows)


def whole(connection: longshore.Connection, chance: random.Random) -> None:
    """Read a result."""
    begin, end = bounds(chance)
    check(longshore.read_sql(QUERY.format(begin, end), connection, return_type="arrow"), begin, end)


def bound(connection: longshore.Connection, chance: random.Random) -> None:
    """Read the result of a prepared statement."""
    begin, end = bounds(chance)
    check(longshore.read_sql(QUERY.format("?", "?"), connection, params=[begin, end], return_type="arrow"), begin, end)


def in_parts(connection: longshore.Connection, chance: random.Random) -> None:
    """Read the parts of a result."""
    begin, end = bounds(chance)
    query = QUERY.format(begin, end)
    check(longshore.read_sql(query, connection, partition_num=2, return_type="arrow"), begin, end)


def left(connection: longshore.Connection, _: random.Random) -> None:
    """Leave a result after its first rows."""
    query = "SELECT a.range AS n FROM range(100000) a, range(100000) b"
    with closing(longshore.read_sql(query, connection, return_type="arrow_stream")) as stream:
        assert next(iter(stream)).num_rows > 0


def refused(connection: longshore.Connection, _: random.Random) -> None:
    """Have the server refuse a statement."""
    try:
        longshore.read_sql("SELECT 1 FROM no_such_table", connection)
    except longshore.ProgrammingError as error:
        assert "no_such_table" in str(error)  # noqa: PT017  a thread's own
    else:
        raise AssertionError


WORK: list[Callable[[longshore.Connection, random.Random], None]] = [whole, whole, bound, in_parts, left, refused]


def longshores(url: str, chance: random.Random, pause: Pause) -> None:
    """Do a few things over a connection of Longshore's, which is idle between them."""
    with longshore.connect(url, autocommit=True) as connection:
        for work in chance.sample(WORK, 2):
            work(connection, chance)
            pause()
        whole(connection, chance)


def others(url: str, chance: random.Random, pause: Pause) -> None:
    """Read over a connection of ADBC's."""
    address = url.replace("grpc://", "grpc+tcp://")
    with flightsql.connect(address, autocommit=True) as connection, connection.cursor() as cursor:
        for _ in range(2):
            begin, end = bounds(chance)
            cursor.execute(QUERY.format(begin, end))
            check(cursor.fetch_arrow_table(), begin, end)
            pause()


def cut(url: str, _: random.Random, pause: Pause) -> None:
    """Read over a network that is cut: an error, and never fewer rows."""
    pause()
    try:
        longshore.read_sql(QUERY.format(0, MOST), url, return_type="arrow")
    except longshore.OperationalError as error:
        assert error.sqlstate in {"08006", "08001"}, error  # noqa: PT017  a thread's own
    else:
        raise AssertionError


def killed(url: str) -> None:
    """Kill a client that reads."""
    command = [sys.executable, "-c", KILLED, url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "reads\n"
        process.kill()


def wave(url: str, through: str, seconds: float, seed: int, between: Pause) -> tuple[Counter[str], list[str]]:
    """Have all clients work for some seconds, each once at least; give what was done, and what went wrong."""
    done: Counter[str] = Counter()
    failures: list[str] = []
    end = time.monotonic() + seconds

    def work(number: int) -> None:
        chance = random.Random(seed * CLIENTS + number)  # noqa: S311

        def pause() -> None:
            time.sleep(max(0, min(chance.uniform(0, PAUSE), end - time.monotonic())))

        do: Work = longshores if number % OTHERS else others
        do, place = (cut, through) if number % CUT == 1 else (do, url)
        while True:
            try:
                do(place, chance, pause)
            except Exception as error:  # noqa: BLE001  any is a failure
                failures.append(f"{do.__name__}: {error!r}")
                return
            done[do.__name__] += 1
            if time.monotonic() >= end:
                return

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    while True:
        killed(url)
        done["killed"] += 1
        if time.monotonic() >= end:
            break
        between()
    for thread in threads:
        thread.join()
    return done, failures


def memory(process: psutil.Process, files: int) -> Any:
    """Wait until no more files are open than there were, and give the memory that is taken."""
    end = time.monotonic() + 30
    while process.num_fds() > files:
        assert time.monotonic() < end, f"{process.num_fds()} open files, and {files} before"
        time.sleep(0.05)
    return process.memory_info().rss


def test_two_hundred_clients(tmp_path: Path) -> None:
    with serving(made("duckdb", tmp_path)) as (url, process):
        # What the server opens once.
        with longshore.connect(url, autocommit=True) as connection:
            in_parts(connection, random.Random(0))  # noqa: S311
        files = process.num_fds() + 1
        host, port = url.removeprefix("grpc://").split(":")
        sizes: list[int] = []
        total = Counter[str]()

        def between() -> None:
            """Look at the server in the middle of a load that is the only one."""
            if PAUSE:
                time.sleep(PAUSE / 2)
                sizes.append(process.memory_info().rss)

        with Cutter((host, int(port))) as cutter, cutter.fault("reset", BYTES):
            for number, seconds in enumerate(WAVES):
                through = f"grpc://{cutter.host}:{cutter.port}"
                done, failures = wave(url, through, seconds, number, between)
                assert failures == []
                total += done
                sizes.append(memory(process, files))
        threads = process.num_threads()
    print(f"{dict(total)}, MiB: {[size >> 20 for size in sizes]}, {threads} threads")  # noqa: T201
    assert max(sizes[1:]) <= sizes[0] + KEPT
