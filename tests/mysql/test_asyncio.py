"""Reads in asyncio: cancelling the task ends the query on the server."""

import asyncio
import time
from typing import Any

import pytest

import longshore
from longshore import read_sql_async
from tests.mysql.reading import numbers, statements, table, wait
from tests.mysql.test_interruption import marked
from tests.postgres.test_asyncio import assert_no_thread_is_left
from tests.servers import MySQLEndpoint

QUERY = f"{numbers(999)} SELECT i, concat('t', i) AS t FROM numbers WHERE i < 1000"


@pytest.mark.parametrize("return_type", ["pandas", "arrow", "polars", "numpy"])
def test_the_result_is_read_sqls(return_type: Any, url: str) -> None:
    result: Any = asyncio.run(read_sql_async(QUERY, url, return_type=return_type))
    expected: Any = longshore.read_sql(QUERY, url, return_type=return_type)
    if return_type == "numpy":
        result, expected = ({name: list(it) for name, it in columns.items()} for columns in (result, expected))
        assert result == expected
    else:
        assert result.equals(expected)
    assert len(result) == len(expected) > 0


def test_arguments_and_errors_are_read_sqls(url: str) -> None:
    async def read() -> None:
        frame = await read_sql_async("SELECT CAST(:a AS SIGNED) AS a", url, params={"a": 7}, index_col="a")
        assert frame.index.tolist() == [7]
        with pytest.raises(longshore.ProgrammingError, match="1146"):
            await read_sql_async("SELECT * FROM nowhere", url)

    asyncio.run(read())


def test_reads_do_not_wait_for_each_other(url: str) -> None:
    async def read() -> list[Any]:
        reads = (read_sql_async(f"SELECT sleep(0.5) AS s, {n} AS n", url, return_type="arrow") for n in range(20))
        return [one["n"][0].as_py() for one in await asyncio.gather(*reads)]

    started = time.monotonic()
    assert asyncio.run(read()) == [*range(20)]
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("kind", ["computing", "streaming"])
@pytest.mark.parametrize("way", ["url", "connection", "pool"])
def test_a_cancelled_task_has_ended_its_query(way: str, kind: str, server: MySQLEndpoint) -> None:
    marker = f"async_cancel_{way}_{kind}"
    make: dict[str, Any] = {"url": str, "connection": longshore.connect, "pool": longshore.Pool}
    kept = make[way](server.url())

    async def cancel() -> float:
        task = asyncio.create_task(read_sql_async(marked(kind, marker), kept, return_type="arrow"))
        await asyncio.to_thread(wait, lambda: bool(statements(server, marker)))
        started = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        took = time.monotonic() - started
        assert_no_thread_is_left()
        return took

    assert asyncio.run(cancel()) < 5
    wait(lambda: not statements(server, marker))
    if way != "url":
        # What is kept is as it was.
        for n in range(20):
            assert table(f"SELECT {n} AS n", kept).to_pylist() == [{"n": n}]
        kept.close()


@pytest.mark.parametrize("kind", ["computing", "streaming"])
@pytest.mark.parametrize("whose", ["asyncio", "longshore"])
def test_a_timeout(whose: str, kind: str, server: MySQLEndpoint) -> None:
    marker = f"async_timeout_{whose}_{kind}"

    async def read() -> None:
        if whose == "longshore":
            await read_sql_async(marked(kind, marker), server.url(), timeout=0.5)
        async with asyncio.timeout(0.5):
            await read_sql_async(marked(kind, marker), server.url())

    started = time.monotonic()
    with pytest.raises(TimeoutError if whose == "asyncio" else longshore.TimeoutError):
        asyncio.run(read())
    assert 0.5 <= time.monotonic() - started < 5
    wait(lambda: not statements(server, marker))


def test_a_stream(url: str) -> None:
    async def read() -> list[int]:
        async with await read_sql_async(QUERY, url, return_type="arrow_stream", batch_size=300) as stream:
            return [batch.num_rows async for batch in stream]

    assert asyncio.run(read()) == [300, 300, 300, 100]


def test_a_task_that_is_cancelled_in_a_loop_over_a_stream(server: MySQLEndpoint) -> None:
    marker = "async_loop"

    async def read() -> None:
        stream = await read_sql_async(marked("streaming", marker), server.url(), return_type="arrow_stream")
        async with stream:
            async for _ in stream:
                pass

    async def cancel() -> float:
        task = asyncio.create_task(read())
        await asyncio.to_thread(wait, lambda: bool(statements(server, marker)))
        await asyncio.sleep(0.2)
        started = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - started

    assert asyncio.run(cancel()) < 5
    wait(lambda: not statements(server, marker))
