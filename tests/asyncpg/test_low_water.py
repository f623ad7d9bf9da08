"""Fewer wake-ups in a long result, and never a wait that is long."""

import asyncio
import socket
import time
from typing import Any

import numpy as np
import pytest

from longshore import asyncpg
from longshore.asyncpg import set_query_dtype
from tests.asyncpg.comparing import DTYPE, assert_rows, rows
from tests.asyncpg.conftest import Run

pytestmark = [pytest.mark.packages, pytest.mark.pythons]

LONG = set_query_dtype(rows(300_000), DTYPE)


def low_water(connection: Any) -> int:
    """Tell what the loop is woken for."""
    number: int = connection._transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)  # noqa: SLF001
    return number


async def highest(connection: Any, task: "asyncio.Task[Any]") -> int:
    """Tell the most that the loop was woken for while a task ran."""
    most = 0
    while not task.done():
        most = max(most, low_water(connection))
        await asyncio.sleep(0)
    return most


def test_a_long_result_wakes_the_loop_for_much_at_once(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        for _ in range(3):
            task = asyncio.create_task(connection.fetch(LONG))
            assert await highest(connection, task) > 8192
            assert_rows(await task, 1, 300_000)
            assert low_water(connection) == 1
        task = asyncio.create_task(connection.fetch(set_query_dtype(rows(1000), DTYPE)))
        assert await highest(connection, task) == 1
        assert_rows(await task, 1, 1000)
        await connection.close()

    run(fetch())


def test_a_pause_in_the_middle_is_no_longer_than_the_servers(run: Run, url: str) -> None:
    # Pauses after a megabyte, each with a few rows before it that nothing follows.
    query = set_query_dtype(
        "SELECT i, repeat('x', 100), CASE WHEN i > 20000 AND i % 100 = 0 THEN pg_sleep(0.02) END IS NULL "
        "FROM generate_series(1, 21000) i",
        [("i", "i4"), ("x", "S100"), ("b", "?")],
    )

    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        for _ in range(2):
            started = time.monotonic()
            array, _ = await connection.fetch(query)
            assert time.monotonic() - started < 5
            np.testing.assert_array_equal(array["i"], np.arange(1, 21001))
            assert low_water(connection) == 1
        await connection.close()

    run(fetch())


def test_what_was_long_and_is_short_now_does_not_wait(run: Run, url: str) -> None:
    query = set_query_dtype("SELECT i FROM generate_series(1, $1) i", [("i", "i4")])

    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        for count in (500_000, 3, 500_000, 50_000, 1_000_000, 0):
            started = time.monotonic()
            array, _ = await connection.fetch(query, count)
            assert time.monotonic() - started < 5
            np.testing.assert_array_equal(array["i"], np.arange(1, count + 1))
        await connection.close()

    run(fetch())


def test_an_end_in_the_middle_leaves_nothing_raised(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        endless = set_query_dtype("SELECT generate_series(1, 2000000000)", [("i", "i4")])
        with pytest.raises(TimeoutError):
            await connection.fetch(endless, timeout=0.3)
        assert low_water(connection) == 1
        assert_rows(await connection.fetch(LONG), 1, 300_000)
        task = asyncio.create_task(connection.fetch(endless))
        await asyncio.sleep(0.3)
        connection.terminate()
        with pytest.raises(asyncpg.ConnectionDoesNotExistError):
            await task
        await asyncio.sleep(0.05)

    run(fetch())
