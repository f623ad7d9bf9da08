"""Reads in asyncio: cancelling the task ends the query, and nothing of it is left."""

import asyncio
import contextlib
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

import longshore
from longshore import read_sql_async
from tests.postgres.test_asyncio import assert_no_thread_is_left
from tests.sqlite.conftest import Make

COUNT = "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r{}) "
QUERY = COUNT.format(" WHERE i < 1000") + "SELECT i, 't' || i AS t FROM r"
COMPUTING = COUNT.format("") + "SELECT count(*) AS n FROM r"
STREAMING = COUNT.format("") + "SELECT i, printf('%.100c', 'x') AS t FROM r"
ENDLESS = pytest.mark.parametrize("query", [COMPUTING, STREAMING], ids=["computing", "streaming"])


def descriptors(path: Path) -> int:
    """Count the descriptors of a file that this process has open."""
    own = Path("/proc/self/fd")
    links = []
    for number in own.iterdir():
        with contextlib.suppress(OSError):
            links.append(number.readlink())
    return links.count(path)


@pytest.mark.parametrize("return_type", ["pandas", "arrow", "polars", "numpy"])
def test_the_result_is_read_sqls(return_type: Any, make: Make) -> None:
    url = make("CREATE TABLE t (v)")
    result: Any = asyncio.run(read_sql_async(QUERY, url, return_type=return_type))
    expected: Any = longshore.read_sql(QUERY, url, return_type=return_type)
    if return_type == "numpy":
        result, expected = ({name: list(it) for name, it in columns.items()} for columns in (result, expected))
        assert result == expected
    else:
        assert result.equals(expected)
    assert len(result) == len(expected) > 0


def test_arguments_and_errors_are_read_sqls(make: Make) -> None:
    url = make("CREATE TABLE t (v INT)", "INSERT INTO t VALUES ('x')")

    async def read() -> None:
        frame = await read_sql_async("SELECT :a AS a", url, params={"a": 7}, index_col="a")
        assert frame.index.tolist() == [7]
        with pytest.raises(longshore.DataError) as caught:
            await read_sql_async("SELECT v FROM t", url, schema={"v": "int64"})
        assert (caught.value.column, caught.value.row) == ("v", 0)

    asyncio.run(read())


def test_many_at_once(make: Make) -> None:
    url = make("CREATE TABLE t (v)", "INSERT INTO t VALUES (1)")

    async def read() -> list[Any]:
        reads = (read_sql_async(f"SELECT v + {n} AS n FROM t", url, return_type="arrow") for n in range(30))
        return [table["n"][0].as_py() for table in await asyncio.gather(*reads)]

    assert asyncio.run(read()) == [*range(1, 31)]


@ENDLESS
@pytest.mark.parametrize("way", ["url", "connection"])
def test_a_cancelled_task_has_ended_its_query(way: str, query: str, make: Make, path: Path) -> None:
    url = make("CREATE TABLE t (v)", "INSERT INTO t VALUES (1)")
    conn: Any = longshore.connect(url) if way == "connection" else url

    async def cancel() -> float:
        task = asyncio.create_task(read_sql_async(query, conn, return_type="arrow"))
        await asyncio.sleep(0.5)
        assert not task.done()
        started = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        took = time.monotonic() - started
        assert_no_thread_is_left()
        return took

    assert asyncio.run(cancel()) < 5
    if way == "connection":
        assert longshore.read_sql("SELECT v FROM t", conn, return_type="arrow").to_pylist() == [{"v": 1}]
        conn.close()
    assert descriptors(path) == 0


@ENDLESS
@pytest.mark.parametrize("whose", ["asyncio", "longshore"])
def test_a_timeout(whose: str, query: str, make: Make, path: Path) -> None:
    url = make("CREATE TABLE t (v)")

    async def read() -> None:
        if whose == "longshore":
            await read_sql_async(query, url, timeout=0.5)
        async with asyncio.timeout(0.5):
            await read_sql_async(query, url)

    started = time.monotonic()
    with pytest.raises(TimeoutError if whose == "asyncio" else longshore.TimeoutError):
        asyncio.run(read())
    assert 0.5 <= time.monotonic() - started < 5
    assert descriptors(path) == 0


def test_a_lock_is_waited_for_until_the_task_is_cancelled(make: Make, path: Path) -> None:
    url = make("CREATE TABLE t (v)")

    async def read() -> None:
        async with asyncio.timeout(0.5):
            await read_sql_async("SELECT v FROM t", f"{url}?busy_timeout=30")

    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            asyncio.run(read())
        assert time.monotonic() - started < 5
        other.execute("ROLLBACK")


def test_a_stream(make: Make) -> None:
    url = make("CREATE TABLE t (v)")

    async def read() -> list[int]:
        async with await read_sql_async(QUERY, url, return_type="arrow_stream", batch_size=300) as stream:
            return [batch.num_rows async for batch in stream]

    assert asyncio.run(read()) == [300, 300, 300, 100]


def test_a_task_that_is_cancelled_in_a_loop_over_a_stream(make: Make, path: Path) -> None:
    url = make("CREATE TABLE t (v)")

    async def read() -> None:
        async with await read_sql_async(STREAMING, url, return_type="arrow_stream") as stream:
            async for _ in stream:
                pass

    async def cancel() -> float:
        task = asyncio.create_task(read())
        await asyncio.sleep(0.5)
        started = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - started

    assert asyncio.run(cancel()) < 5
    assert descriptors(path) == 0


def test_a_connection_of_pythons_own() -> None:
    # The read has a thread of its own, which Python's module has to be told.
    with contextlib.closing(sqlite3.connect(":memory:", check_same_thread=False)) as own:
        own.execute("CREATE TABLE t (v)")
        own.execute("INSERT INTO t VALUES (1)")
        table = asyncio.run(read_sql_async("SELECT v FROM t", own, return_type="arrow"))
        assert table.to_pylist() == [{"v": 1}]
    with (
        contextlib.closing(sqlite3.connect(":memory:")) as bound,
        pytest.raises(longshore.ProgrammingError, match="thread") as caught,
    ):
        asyncio.run(read_sql_async("SELECT 1 AS v", bound))
    assert "check_same_thread" in (caught.value.hint or "")
