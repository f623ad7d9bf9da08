"""Processes with little memory: right rows or a MemoryError, and a process that goes on.

The long run tries 200 limits instead of seven, and a value of 900 MB.
"""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
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


@pytest.mark.parametrize("way", [*READS, "write", "copy"])
def test_little_memory(way: str, source: tuple[str, str]) -> None:
    outcomes = tried(way, source)
    if way.startswith(("read", "table")):
        assert outcomes[0] is None, "the rows have no room, and came"


@pytest.mark.parametrize("way", [way for way in WAYS if way.startswith(("sql", "asyncpg"))])
@pytest.mark.parametrize("source", ["postgresql"], indirect=True)
def test_little_memory_for_others(way: str, source: tuple[str, str]) -> None:
    tried(way, source)


@pytest.mark.parametrize("source", ["postgresql"], indirect=True)
def test_little_data(source: tuple[str, str]) -> None:
    tried("read pandas", source, resource="RLIMIT_DATA")


@pytest.mark.parametrize("way", [*READS, "copy"])
@pytest.mark.parametrize("source", ["postgresql", "sqlite"], indirect=True)
def test_a_huge_value(way: str, source: tuple[str, str]) -> None:
    huge = {"postgresql": f"repeat('x', {HUGE})", "sqlite": f"printf('%.{HUGE}c', 'x')"}
    query = f"SELECT 0 AS id, {huge[source[0]]} AS text"
    # Less than the value, and several times as much.
    limits = [HUGE // 5_000_000, HUGE // 1_500_000, 8 * HUGE // 1_000_000]
    tried(way, source, query=query, small="SELECT 0 AS id, 'x' AS text", rows=1, limits=limits)


def tried(
    way: str,
    source: tuple[str, str],
    *,
    query: str = ANY,
    small: str = f"{ANY} WHERE id < {SMALL}",
    rows: int = ROWS,
    resource: str = "RLIMIT_AS",
    limits: list[int] | None = None,
) -> list[int | None]:
    """Have a process try, see that each try ends well, and the last with all rows; give the rows of each."""
    name, url = source
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
    )
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.memory.child", json.dumps(task)]
    root = Path(__file__).parents[2]
    timeout = 900 if IS_LONG else 120
    child = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=timeout, check=False)
    said = [json.loads(line) for line in child.stdout.splitlines()]
    assert (child.returncode, child.stderr) == (0, ""), f"after {said[-1:]}"
    for outcome in said:
        if (ended := outcome["ended"]) is None:
            assert outcome["rows"] == rows, outcome
        elif ended.startswith("MemoryLimitError"):
            assert "arrow_stream" in ended, outcome
            assert "memory_limit" in ended, outcome
    assert said[-1]["rows"] == rows, said[-1]
    return [outcome["rows"] for outcome in said]
