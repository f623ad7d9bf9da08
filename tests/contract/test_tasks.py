"""asyncio: a cancelled task has ended its statement on the server, and leaves its connection as it was."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import longshore
from tests.contract.conftest import Database, wait

pytestmark = pytest.mark.usefixtures("leaves_nothing")

KINDS = pytest.mark.parametrize("kind", ["computing", "streaming"])


async def read(query: str, conn: Any) -> None:
    """Read a whole result."""
    await longshore.read_sql_async(query, conn, return_type="arrow")


async def stream(query: str, conn: Any) -> None:
    """Read a stream."""
    async with await longshore.read_sql_async(query, conn, return_type="arrow_stream") as batches:
        async for _ in batches:
            pass


async def frames(query: str, conn: Any) -> None:
    """Read a stream of frames."""
    batches = await longshore.read_sql_async(query, conn, return_type="arrow_stream")
    async for _ in batches.pandas():
        pass


async def parts(query: str, conn: Any) -> None:
    """Read a list of queries at once."""
    queries = [f"{query} /* 1 */", f"{query} /* 2 */"]
    await longshore.read_sql_async(queries, conn, partition_num=2, return_type="arrow", options={"snapshot": False})


async def statement(query: str, conn: Any) -> None:
    """Execute a statement over a connection."""
    async with await longshore.connect_async(conn, autocommit=True) as connection:
        await connection.execute(query)


async def cancel(task: asyncio.Task[Any], runs: Callable[[], bool]) -> None:
    """Cancel a task once what it does runs, and see that it ends, and soon."""
    await asyncio.to_thread(wait, runs)
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 5


@pytest.mark.costly
@KINDS
@pytest.mark.parametrize("way", [read, stream, frames, parts, statement], ids=lambda way: way.__name__)
@pytest.mark.filterwarnings("ignore::longshore.SerialReadWarning")
def test_a_cancelled_task_has_ended_its_statement(
    database: Database, way: Callable[[str, Any], Awaitable[None]], kind: str
) -> None:
    marker = f"task_{way.__name__}_{kind}"

    async def main() -> None:
        task = asyncio.ensure_future(way(database.marked(kind, marker), database.url))
        await cancel(task, lambda: database.running(marker))

    asyncio.run(main())
    wait(lambda: not database.running(marker))


@pytest.mark.costly
@KINDS
def test_its_connection_goes_on(database: Database, kind: str) -> None:
    async def main() -> None:
        async with longshore.AsyncPool(database.url, size=1) as pool:
            task = asyncio.create_task(read(database.marked(kind, "in_a_pool"), pool))
            await cancel(task, lambda: database.running("in_a_pool"))
            # The request to stop may come late; it must not end the next statement.
            for n in range(10):
                query = database.quirks.select(n)
                table = await longshore.read_sql_async(query, pool, return_type="arrow")
                assert table.column(0).to_pylist() == [n]
            assert (pool.in_use, pool.idle) == (0, 1)

    asyncio.run(main())


def test_a_task_that_is_cancelled_twice_waits_for_its_end(database: Database) -> None:
    async def main() -> None:
        task = asyncio.create_task(read(database.marked("computing", "twice"), database.url))
        await asyncio.to_thread(wait, lambda: database.running("twice"))
        task.cancel()
        await asyncio.sleep(0)
        await cancel(task, lambda: True)
        assert not database.running("twice")

    asyncio.run(main())


def test_a_deadline_of_asyncio(database: Database) -> None:
    async def main() -> None:
        async with asyncio.timeout(0.5):
            await read(database.marked("computing", "deadline_of_asyncio"), database.url)

    started = time.monotonic()
    with pytest.raises(TimeoutError):
        asyncio.run(main())
    assert time.monotonic() - started < 5
    wait(lambda: not database.running("deadline_of_asyncio"))


def test_a_cancelled_copy_leaves_nothing(database: Database, table: str) -> None:
    before = database.tables()

    async def main() -> None:
        query = database.marked("streaming", "copied_in_a_task")
        task = asyncio.create_task(longshore.copy_async(query, database.url, table, database.url))
        await cancel(task, lambda: database.running("copied_in_a_task"))

    asyncio.run(main())
    wait(lambda: not database.is_in_use())
    assert database.tables() == before


def test_a_connection(database: Database, table: str) -> None:
    async def use() -> None:
        transactions = database.quirks.has_transactions
        async with await longshore.connect_async(database.url, autocommit=not transactions) as connection:
            statements = [
                f"CREATE TABLE {table} (n {database.quirks.types['int64'].native})",
                f"INSERT INTO {table} VALUES (1)",
            ]
            with database.can("scripts"):
                await connection.execute_script("; ".join(statements))
            if "scripts" in database.quirks.cannot:
                for statement in statements:
                    await connection.execute(statement)
            await connection.commit()
            if transactions:
                assert await connection.execute(f"INSERT INTO {table} VALUES (2)") == 1
                assert connection.in_transaction
            await connection.rollback()
            rows = await longshore.write_sql_async([{"n": 3}], table, connection, if_exists="append")
            assert rows == 1
            found = await longshore.read_sql_async(f"SELECT n FROM {table} ORDER BY n", connection, return_type="arrow")
            assert found.column(0).to_pylist() == [1, 3]
            assert repr(connection).startswith("<AsyncConnection ")
            assert repr(connection).endswith(" open>")
        assert connection.closed
        await connection.close()

    asyncio.run(use())
    assert database.rows(table) == [(1,), (3,)]


def test_leaving_by_an_exception_rolls_back(database: Database, table: str) -> None:
    longshore.write_sql([{"n": 1}], table, database.url)

    async def use() -> None:
        async with await longshore.connect_async(database.url) as connection:
            await connection.execute(f"DELETE FROM {table}")
            raise LookupError

    with pytest.raises(LookupError if database.quirks.has_transactions else longshore.NotSupportedError):
        asyncio.run(use())
    assert database.rows(table) == ([] if "a rollback" in database.quirks.cannot else [(1,)])


def test_a_pool(database: Database, table: str) -> None:
    async def use() -> list[int]:
        async with longshore.AsyncPool(database.url, size=2) as pool:
            await longshore.write_sql_async([{"n": 1}], table, pool)
            queries = [database.quirks.select(n) for n in range(6)]
            found = await asyncio.gather(
                *(longshore.read_sql_async(query, pool, return_type="arrow") for query in queries)
            )
            assert (pool.in_use, pool.idle <= 2, pool.size) == (0, True, 2)
            assert repr(pool).startswith("<AsyncPool ")
        await pool.close()
        with pytest.raises(longshore.InterfaceError, match="closed"):
            await longshore.read_sql_async("SELECT 1", pool)
        return [each.column(0).to_pylist()[0] for each in found]

    assert asyncio.run(use()) == [*range(6)]
