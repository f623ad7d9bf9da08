"""Processes with little memory: right rows or a MemoryError, and a process that goes on.

The long run tries 200 limits instead of seven, and a value of 900 MB.
"""

import json
import os
import select
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.fixtures import require
from tests.long import IS_LONG
from tests.memory.child import WAYS, Task
from tests.servers import mariadb, postgresql

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="setrlimit bounds memory on Linux alone"),
    pytest.mark.costly,
]

#: More than a batch.
ROWS = 150_000 if IS_LONG else 80_000
SMALL = 10

#: The number of limits, and the last of them in MiB above what the process has taken: enough.
LIMITS = 200 if IS_LONG else 5
ENOUGH = 600 if IS_LONG else 350
HUGE = (900 if IS_LONG else 24) * 1_000_000

ANY = "SELECT * FROM memory_rows"
POSTGRESQL = """
    CREATE TABLE memory_rows AS
    SELECT i::int AS id, i / 3.0::float8 AS number, i || ' ' || repeat('x', 100) AS text,
        (i * 0.01)::numeric(12,2) AS amount, now()::timestamp AS at, (i * 0.01)::numeric AS loose
    FROM generate_series(0, {last}) AS i;
    ANALYZE memory_rows
"""
MARIADB = """
    CREATE TABLE memory_rows AS
    SELECT seq AS id, seq / 3e0 AS number, concat(seq, ' ', repeat('x', 100)) AS text,
        CAST(seq * 0.01 AS decimal(12,2)) AS amount, CAST('2020-01-01' AS datetime) AS at
    FROM seq_0_to_{last}
"""
SQLITE = """
    CREATE TABLE memory_rows (id integer PRIMARY KEY, number real, text text, amount decimal(12,2), at timestamp);
    WITH RECURSIVE numbers(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i < {last})
    INSERT INTO memory_rows
    SELECT i, i / 3e0, i || ' ' || printf('%.100c', 'x'), printf('%.2f', i * 0.01), '2020-01-01 00:00:00' FROM numbers;
"""
WATCHING = {
    "postgresql": "SELECT count(*) AS n FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()"
    " AND query LIKE '%memory_rows%'",
    "mariadb": "SELECT count(*) AS n FROM information_schema.processlist WHERE command = 'Query'"
    " AND id <> connection_id() AND info LIKE '%memory_rows%'",
    "sqlite": "SELECT 0 AS n",
}

READS = [way for way in WAYS if way.startswith("read") or "stream" in way]


@pytest.fixture(scope="module", params=["postgresql", "mariadb", "sqlite"])
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Give the name and the URL of a database with the table."""
    last = ROWS - 1
    if request.param == "postgresql":
        with require(postgresql) as server:
            server.psql(POSTGRESQL.format(last=last))
            yield request.param, server.url()
            server.psql("DROP TABLE IF EXISTS memory_rows, memory_copy")
    elif request.param == "mariadb":
        with require(mariadb) as server:
            server.sql(MARIADB.format(last=last))
            yield request.param, server.url()
            server.sql("DROP TABLE IF EXISTS memory_rows, memory_copy")
    else:
        path = tmp_path_factory.mktemp("memory") / "rows.db"
        with sqlite3.connect(path) as connection:
            connection.executescript(SQLITE.format(last=last))
        connection.close()
        yield request.param, f"sqlite:///{path}?mode=rwc"


@pytest.fixture(scope="module")
def parent() -> Iterator["subprocess.Popen[str]"]:
    """Start the process whose children have little memory."""
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.memory.child"]
    pipe, root = subprocess.PIPE, Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as process:
        yield process


Trial = Callable[..., list[int | None]]


@pytest.fixture
def tried(parent: "subprocess.Popen[str]", source: tuple[str, str], tmp_path: Path) -> Trial:
    """Give a function that has a process try, sees that each try ends well, and gives the rows of each."""
    return partial(try_limits, parent, source, tmp_path)


@pytest.mark.parametrize("way", [*READS, "write", "copy"])
def test_little_memory(way: str, tried: Trial) -> None:
    outcomes = tried(way)
    if way.startswith(("read", "table")):
        assert outcomes[0] is None, "the rows have no room, and came"


@pytest.mark.parametrize("way", [way for way in WAYS if way.startswith(("sql", "asyncpg"))])
@pytest.mark.parametrize("source", ["postgresql"], indirect=True)
def test_little_memory_for_others(way: str, tried: Trial) -> None:
    tried(way)


@pytest.mark.parametrize("source", ["postgresql"], indirect=True)
def test_little_data(tried: Trial) -> None:
    tried("read pandas", resource="RLIMIT_DATA")


@pytest.mark.parametrize("way", [*READS, "copy"])
@pytest.mark.parametrize("source", ["postgresql", "sqlite"], indirect=True)
def test_a_huge_value(way: str, source: tuple[str, str], tried: Trial) -> None:
    # PostgreSQL copies piece by piece, and takes several times as long for pieces of one letter.
    huge = {"postgresql": f"repeat(repeat('x', 1000), {HUGE // 1000})", "sqlite": f"printf('%.{HUGE}c', 'x')"}
    query = f"SELECT 0 AS id, {huge[source[0]]} AS text"
    # Less than the value, and several times as much.
    limits = [HUGE // 5_000_000, HUGE // 1_500_000, 8 * HUGE // 1_000_000]
    tried(way, query=query, small="SELECT 0 AS id, 'x' AS text", rows=1, limits=limits)


def try_limits(
    parent: "subprocess.Popen[str]",
    source: tuple[str, str],
    directory: Path,
    way: str,
    *,
    query: str = ANY,
    small: str = f"{ANY} WHERE id < {SMALL}",
    rows: int = ROWS,
    resource: str = "RLIMIT_AS",
    limits: list[int] | None = None,
) -> list[int | None]:
    name, url = source
    said, errors = directory / "said", directory / "errors"
    task = Task(
        way=way,
        source=url,
        query=query,
        small=small,
        rows=rows,
        table="memory_copy",
        watching=WATCHING[name],
        resource=resource,
        limits=limits or [ENOUGH * number**2 // (LIMITS - 1) ** 2 for number in range(LIMITS)],
        budgets=[None, "auto"],
        said=str(said),
        errors=str(errors),
    )
    ended = exit_code(parent, task)
    outcomes = [json.loads(line) for line in said.read_text().splitlines()]
    assert (ended, errors.read_text()) == (0, ""), f"after {outcomes[-1:]}"
    for outcome in outcomes:
        if (error := outcome["ended"]) is None:
            assert outcome["rows"] == rows, outcome
        elif error.startswith("MemoryLimitError"):
            assert "arrow_stream" in error, outcome
            assert "memory_limit" in error, outcome
    assert outcomes[-1]["rows"] == rows, outcomes[-1]
    return [outcome["rows"] for outcome in outcomes]


def exit_code(parent: "subprocess.Popen[str]", task: Task) -> int:
    """Have a child do a task, and give its exit code."""
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write(json.dumps(task) + "\n")
    parent.stdin.flush()
    if not select.select([parent.stdout], [], [], 900 if IS_LONG else 120)[0]:
        os.killpg(parent.pid, signal.SIGKILL)
        pytest.fail("the child hangs")
    return int(parent.stdout.readline())
