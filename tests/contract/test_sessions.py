"""Connections and pools, transactions, and the same in asyncio."""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import longshore
from tests.contract.conftest import Database, wait

pytestmark = pytest.mark.usefixtures("leaves_nothing")


@pytest.fixture
def boats(database: Database, table: str) -> str:
    """Give a table of one boat."""
    key = database.column("id", "int64", database.quirks.primary_key)
    database.execute(f"CREATE TABLE {table} ({key})", f"INSERT INTO {table} VALUES (1)")
    return table


def test_commit_and_rollback(database: Database, boats: str) -> None:
    with longshore.connect(database.url) as connection:
        assert connection.in_transaction is False
        assert connection.execute(f"INSERT INTO {boats} VALUES (2)") == 1
        assert connection.in_transaction is True
        assert (len(database.rows(boats, connection)), len(database.rows(boats))) == (2, 1)
        connection.commit()
        assert connection.in_transaction is False
        assert len(database.rows(boats)) == 2
        assert connection.execute(f"DELETE FROM {boats}") == 2
        connection.rollback()
        assert len(database.rows(boats, connection)) == 2
        connection.rollback()
        connection.commit()
    with pytest.raises(longshore.InterfaceError, match="closed"):
        connection.execute("SELECT 1")


def test_leaving_by_an_exception_rolls_back(database: Database, boats: str) -> None:
    with database.can("a rollback"):
        with pytest.raises(KeyError), longshore.connect(database.url) as connection:  # noqa: PT012
            connection.execute(f"INSERT INTO {boats} VALUES (2)")
            raise KeyError
        assert database.rows(boats) == [(1,)]
    with longshore.connect(database.url) as connection:
        connection.execute(f"INSERT INTO {boats} VALUES (3)")
    kept = [(2,)] if "a rollback" in database.quirks.cannot else []
    assert database.rows(boats) == [(1,), *kept, (3,)]


def test_a_failed_statement_leaves_the_connection(database: Database, boats: str) -> None:
    with longshore.connect(database.url, autocommit=True) as connection:
        with database.refuses_a_key() as caught:
            connection.execute(f"INSERT INTO {boats} VALUES (1)")
        if caught is not None:
            assert caught.value.sqlstate in ({"23505", "23000"} if database.quirks.has_sqlstates else {None})
        with pytest.raises(longshore.ProgrammingError):
            database.rows("SELECT nothing FROM nowhere_to_be_seen", connection)
        assert connection.execute(f"INSERT INTO {boats} VALUES (2)") == 1
    assert database.rows(boats) == [(1,), *([] if caught is not None else [(1,)]), (2,)]


def test_a_stream_has_its_connection(database: Database) -> None:
    with longshore.connect(database.url, autocommit=True) as connection:
        stream = longshore.read_sql(
            database.marked("streaming", "has"), connection, return_type="arrow_stream", batch_size=100
        )
        next(stream)
        with pytest.raises(longshore.InterfaceError, match="in use"):
            database.rows("SELECT 1 AS n", connection)
        stream.close()
        assert database.rows("SELECT 42 AS n", connection) == [(42,)]


def test_several_statements_are_refused(database: Database) -> None:
    with pytest.raises(longshore.ProgrammingError):
        database.rows("SELECT 1 AS n; SELECT 2 AS n")
    assert database.rows("SELECT 1 AS n;") == [(1,)]
    with pytest.raises(longshore.Error):
        database.rows("-- nothing")


def test_a_pool_has_no_more_sessions_than_its_size(database: Database) -> None:
    with longshore.Pool(database.url, size=2) as pool, ThreadPoolExecutor(8) as threads:
        answers = [*threads.map(lambda n: database.rows(f"SELECT {n} AS n", pool), range(40))]
        assert answers == [[(n,)] for n in range(40)]
        assert (pool.in_use, 1 <= pool.idle <= 2) == (0, True)
        streams: Any = [
            longshore.read_sql(database.marked("streaming", "taken"), pool, return_type="arrow_stream")
            for _ in range(2)
        ]
        started = time.monotonic()
        with pytest.raises(longshore.TimeoutError, match=r"no answer within 0\.3 s"):
            database.rows("SELECT 1 AS n", pool, timeout=0.3)
        assert time.monotonic() - started < 5
        for stream in streams:
            stream.close()
        assert database.rows("SELECT 1 AS n", pool, timeout=5) == [(1,)]
    with pytest.raises(longshore.InterfaceError, match="the pool is closed"):
        database.rows("SELECT 1 AS n", pool)


def test_the_result_in_asyncio(database: Database) -> None:
    query = database.series(1000, "i, i * 2 AS j")
    frames: tuple[Any, ...] = ("pandas", "arrow", "polars")
    for return_type in frames:
        found: Any = asyncio.run(longshore.read_sql_async(query, database.url, return_type=return_type))
        assert found.equals(longshore.read_sql(query, database.url, return_type=return_type))
    arrays: Any = asyncio.run(longshore.read_sql_async(query, database.url, return_type="numpy"))
    wanted: Any = longshore.read_sql(query, database.url, return_type="numpy")
    assert {name: list(array) for name, array in arrays.items()} == {name: list(wanted[name]) for name in wanted}


def test_a_stream_in_asyncio(database: Database) -> None:
    async def read() -> list[int]:
        query = database.series(1000)
        async with await longshore.read_sql_async(
            query, database.url, return_type="arrow_stream", batch_size=300
        ) as stream:
            return [batch.num_rows async for batch in stream]

    sizes = asyncio.run(read())
    assert sum(sizes) == 1000
    assert max(sizes) <= 300
    assert sizes == [300, 300, 300, 100] or not database.quirks.fills_batches


def test_a_cancelled_write_leaves_nothing(database: Database, boats: str) -> None:
    async def cancel() -> None:
        taken: list[int] = []

        def frames() -> Iterator[Any]:
            while True:
                taken.append(1)
                yield {"id": [100 + len(taken)]}

        task = asyncio.create_task(longshore.write_sql_async(frames(), boats, database.url, if_exists="append"))
        await asyncio.to_thread(wait, lambda: len(taken) > 3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    wait(lambda: not database.is_in_use())
    assert database.rows(boats) == [(1,)]
