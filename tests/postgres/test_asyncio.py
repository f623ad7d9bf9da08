"""Reads in asyncio: next to each other, cancelled at once, and never in the loop's way."""

import asyncio
import contextvars
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pandas as pd
import pyarrow as pa
import pytest

import longshore
from longshore import read_sql, read_sql_async
from tests.postgres.test_interruption import SLEEPING, STREAMING, running, wait
from tests.servers import Endpoint

QUERY = "SELECT i, i::text AS t FROM generate_series(1, 1000) AS i"


def assert_no_thread_is_left() -> None:
    """Look that what a read did on its thread is over; the thread itself needs some time to go."""
    wait(lambda: not any(thread.name == "longshore-read" for thread in threading.enumerate()))


def test_arguments_and_errors_are_read_sqls(url: str) -> None:
    async def read() -> None:
        frame = await read_sql_async("SELECT :a::int AS a", url, params={"a": 7}, index_col="a")
        assert frame.index.tolist() == [7]
        with pytest.raises(longshore.DataError) as caught:
            await read_sql_async("SELECT 'NaN'::numeric(9, 2) AS price", url, return_type="arrow")
        assert (caught.value.column, caught.value.row) == ("price", 0)
        with pytest.raises(TypeError, match="chunksize"):
            await read_sql_async("SELECT 1", url, chunksize=1)  # type: ignore[call-overload]

    asyncio.run(read())


def test_reads_do_not_wait_for_each_other(url: str) -> None:
    # asyncio's own threads are six on two cores.
    async def read() -> None:
        await asyncio.gather(*(read_sql_async("SELECT pg_sleep(0.5)::text", url) for _ in range(30)))

    started = time.monotonic()
    asyncio.run(read())
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("query", [SLEEPING, STREAMING], ids=["computing", "streaming"])
def test_a_cancelled_task_has_ended_its_query(query: str, postgres: Endpoint) -> None:
    name = f"async_cancel_{'sleep' in query}"

    async def cancel() -> float:
        task = asyncio.create_task(read_sql_async(query, postgres.url(application_name=name), return_type="arrow"))
        await asyncio.to_thread(wait, lambda: running(postgres, name))
        started = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        took = time.monotonic() - started
        assert_no_thread_is_left()
        return took

    assert asyncio.run(cancel()) < 5
    wait(lambda: not running(postgres, name))


def test_a_task_that_is_cancelled_twice_waits_for_its_thread(postgres: Endpoint) -> None:
    name = "async_twice"

    async def cancel() -> None:
        task = asyncio.create_task(read_sql_async(SLEEPING, postgres.url(application_name=name)))
        await asyncio.to_thread(wait, lambda: running(postgres, name))
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert_no_thread_is_left()

    asyncio.run(cancel())


def test_context_variables_reach_the_callable(url: str) -> None:
    harbour = contextvars.ContextVar[str]("harbour")
    seen = []

    async def read() -> None:
        harbour.set("Riga")
        await read_sql_async("SELECT 1", url, progress=lambda _: seen.append(harbour.get()))

    asyncio.run(read())
    assert set(seen) == {"Riga"}


def test_frames_of_a_stream(url: str) -> None:
    async def read() -> list[pd.DataFrame]:
        stream = await read_sql_async(QUERY, url, return_type="arrow_stream", batch_size=300)
        return [frame async for frame in stream.pandas()]

    pd.testing.assert_frame_equal(pd.concat(asyncio.run(read())), read_sql(QUERY, url))


def test_a_stream_that_fails(url: str) -> None:
    async def read() -> None:
        query = "SELECT 1 / (150 - i) AS a FROM generate_series(1, 200) AS i"
        async for _ in await read_sql_async(query, url, return_type="arrow_stream", batch_size=10):
            pass

    with pytest.raises(longshore.DataError) as caught:
        asyncio.run(read())
    assert caught.value.sqlstate == "22012"


def test_a_stream_is_not_in_the_loops_way(url: str) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    async def read() -> None:
        ticker = asyncio.create_task(tick())
        query = "SELECT pg_sleep(0.1)::text, repeat('x', 9000) AS t FROM generate_series(1, 8)"
        async for _ in await read_sql_async(query, url, return_type="arrow_stream", batch_size=1):
            pass
        ticker.cancel()

    asyncio.run(read())
    assert ticks > 40


@pytest.mark.parametrize("body", ["read", "stream"])
def test_ctrl_c(body: str, postgres: Endpoint) -> None:
    name = f"async_ctrl_c_{body}"
    script = f"""
        import asyncio
        import longshore

        query, url = {STREAMING!r}, {postgres.url(application_name=name)!r}

        async def read():
            await longshore.read_sql_async(query, url, return_type="numpy")

        async def stream():
            async for batch in await longshore.read_sql_async(query, url, return_type="arrow_stream"):
                pass

        print("ready", flush=True)
        try:
            asyncio.run({body}())
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout
    assert child.stdout.readline() == "ready\n"
    wait(lambda: running(postgres, name))
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    sent = time.monotonic()
    said, errors = child.communicate(timeout=10)
    assert (said, errors) == ("interrupted\n", "")
    assert time.monotonic() - sent < 5
    wait(lambda: not running(postgres, name))


def test_uvloop(postgres: Endpoint) -> None:
    import uvloop

    name = "async_uvloop"

    async def read() -> None:
        table = await read_sql_async(QUERY, postgres.url(), return_type="arrow")
        assert isinstance(table, pa.Table)
        async with asyncio.timeout(0.5):
            await read_sql_async(SLEEPING, postgres.url(application_name=name))

    with pytest.raises(TimeoutError):
        uvloop.run(read())
    wait(lambda: not running(postgres, name))
