"""A network that fails at every byte of a small result: an error, or the whole result; never less."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import asyncpg as original
import pytest

from longshore import asyncpg
from longshore.asyncpg import set_query_dtype
from tests.cutter import Cutter, spread
from tests.servers import Endpoint

pytestmark = pytest.mark.costly

Way = Callable[[asyncpg.Connection, int], Awaitable[list[Any]]]

#: Most of the time of a garbled or stalled fetch is a wait.
WORKERS = 8

QUERY = "SELECT i, 'x' || i AS t, i / 2.0 AS n, ('10.0.0.' || i)::inet AS h FROM generate_series(1, {rows}) i"
ARRAYS = [("i", "i4"), ("t", "S2"), ("n", "O"), ("h", "O")]


async def arrays(connection: asyncpg.Connection, rows: int) -> list[Any]:
    array, _ = await connection.fetch(set_query_dtype(QUERY.format(rows=rows), ARRAYS), timeout=0.5)
    values: list[Any] = array.tolist()
    return values


async def table(connection: asyncpg.Connection, rows: int) -> list[Any]:
    values: list[Any] = (await connection.fetch_arrow(QUERY.format(rows=rows), timeout=0.5)).to_pylist()
    return values


async def batches(connection: asyncpg.Connection, rows: int) -> list[Any]:
    async with connection.transaction():
        query = QUERY.format(rows=rows)
        return [row async for batch in connection.fetch_batches(query, timeout=0.5) for row in batch.to_pylist()]


WAYS: dict[str, Way] = {"arrays": arrays, "table": table, "batches": batches}


def fetched(way: Way, url: str, rows: int = 4) -> list[Any]:
    """Give the rows; whatever fails, fails soon."""

    async def fetch() -> list[Any]:
        connection = await asyncpg.connect(url, ssl=False, timeout=1)
        # asyncpg's own end of a transaction waits for as long as it takes.
        end = asyncio.get_running_loop().call_later(2, connection.terminate)
        try:
            return await way(connection, rows)
        finally:
            end.cancel()
            connection.terminate()

    started = time.monotonic()
    try:
        return asyncio.run(fetch())
    finally:
        if time.monotonic() - started > 8:
            pytest.fail("a network that fails was noticed late")


def through(postgres: Endpoint, cutter: Cutter) -> str:
    return postgres.url(host=cutter.host, port=cutter.port)


@pytest.mark.parametrize("action", ["cut", "reset"])
@pytest.mark.parametrize("way", list(WAYS))
def test_at_every_byte(way: str, action: Any, postgres: Endpoint, cutter: Cutter) -> None:
    url = through(postgres, cutter)
    right = fetched(WAYS[way], url)
    assert len(right) == 4
    whole = cutter.measure(lambda: fetched(WAYS[way], url))
    for byte in spread(whole.down - 1, 11):
        with cutter.fault(action, byte):
            try:
                assert fetched(WAYS[way], url) == right
            except (original.PostgresConnectionError, original.InterfaceError, OSError):
                continue


@pytest.mark.parametrize("mask", [0xFF, 0x0A])
@pytest.mark.parametrize("way", list(WAYS))
def test_a_garbled_row_loses_no_row(way: str, mask: int, postgres: Endpoint, cutter: Cutter) -> None:
    """The masks turn the type of a row into none, and into that of a notice.

    Rows alone, and no other types: messages are asyncpg's, which does not survive some that are garbled.
    """
    url = through(postgres, cutter)
    whole = cutter.measure(lambda: fetched(WAYS[way], url)).down
    row = whole - cutter.measure(lambda: fetched(WAYS[way], url, 3)).down
    # What follows the rows: the command's tag and the end; for batches, those of CLOSE and COMMIT, too.
    after = sum(5 + len(tag) + 1 + 6 for tag in (["SELECT 4"] + ["CLOSE CURSOR", "COMMIT"] * (way == "batches")))

    # Whoever is ready takes the next: those that stall lie at the same distance from each other.
    places = iter(range(whole - after - 4 * row, whole - after))

    def garble(_: int) -> None:
        with Cutter(cutter.upstream) as own:
            for byte in places:
                with own.fault("garble", byte, mask=mask, connections=1):
                    try:
                        got = fetched(WAYS[way], through(postgres, own))
                    except Exception:  # noqa: BLE001, S112  asyncpg raises all kinds for what is not a message
                        continue
                assert len(got) == 4, f"{mask:#x} at {byte}"

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(garble, range(WORKERS)))


@pytest.mark.parametrize("way", list(WAYS))
def test_a_stall_ends_with_the_time_out(way: str, postgres: Endpoint, cutter: Cutter) -> None:
    url = through(postgres, cutter)
    right = fetched(WAYS[way], url)
    whole = cutter.measure(lambda: fetched(WAYS[way], url)).down

    def stall(first: int) -> None:
        with Cutter(cutter.upstream) as own:
            for byte in range(first * 23, whole, WORKERS * 23):
                with own.fault("stall", byte, connections=1):
                    try:
                        assert fetched(WAYS[way], through(postgres, own)) == right
                    except (TimeoutError, original.ConnectionDoesNotExistError, original.InterfaceError):
                        continue

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(stall, range(WORKERS)))
