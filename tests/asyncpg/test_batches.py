"""A result batch by batch, and the frames of prepared statements."""

import asyncio
from typing import Any

import asyncpg as original
import pandas as pd
import pyarrow as pa
import pytest

import longshore
from longshore import asyncpg
from longshore.errors import DataError, InterfaceError
from tests.asyncpg.conftest import Run
from tests.servers import PgBouncer

pytestmark = [pytest.mark.packages, pytest.mark.pythons]

QUERY = """
    SELECT i AS id, i / 8.0 AS eighth, 'berth ' || i AS name, ('10.0.0.' || i % 250)::inet AS host
    FROM generate_series(1, {rows}) AS i"""


def whole(query: str, url: str) -> pa.Table:
    stream = longshore.read_sql(query, url, return_type="arrow_stream")
    return pa.Table.from_batches(list(stream), stream.schema)


@pytest.mark.parametrize(("rows", "size"), [(0, None), (1, None), (7, 2), (8, 2), (5000, 1000), (200_000, None)])
def test_batches_are_the_result(rows: int, size: int | None, run: Run, url: str) -> None:
    query = QUERY.format(rows=rows)
    expected = whole(query, url)

    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        async with connection.transaction():
            batches = [batch async for batch in connection.fetch_batches(query, batch_size=size)]
            assert await connection.fetchval("SELECT count(*) FROM pg_cursors WHERE name <> ''") == 0
        got = pa.Table.from_batches(batches)
        assert got.schema.equals(expected.schema, check_metadata=True)
        assert got.equals(expected)
        full = size or 65_536
        assert [len(batch) for batch in batches[:-1]] == [full] * (len(batches) - 1)
        assert len(batches) == max(-(-rows // full), 1)
        await connection.close()

    run(fetch())


def test_wide_rows_come_in_short_batches(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        async with connection.transaction():
            query = "SELECT repeat('x', $1) AS wide FROM generate_series(1, 300)"
            lengths = [len(batch) async for batch in connection.fetch_batches(query, 1 << 20)]
        # A batch is closed at 32 MiB.
        assert sum(lengths) == 300
        assert max(lengths) <= 64
        await connection.close()

    run(fetch())


def test_other_statements_run_between_batches(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        async with connection.transaction():
            await connection.execute("CREATE TEMP TABLE cargo AS SELECT generate_series(1, 10) AS id")
            seen: list[int] = []
            async for batch in connection.fetch_batches("DELETE FROM cargo RETURNING id", batch_size=3):
                seen += batch["id"].to_pylist()
                assert await connection.fetchval("SELECT count(*) FROM cargo") == 0
                assert (await connection.fetch_arrow("SELECT 1 AS one")).to_pylist() == [{"one": 1}]
            assert seen == list(range(1, 11))
            await connection.execute("DROP TABLE cargo")
        await connection.close()

    run(fetch())


def test_without_a_transaction_there_are_none(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        with pytest.raises(original.NoActiveSQLTransactionError, match="transaction"):
            await anext(aiter(connection.fetch_batches("SELECT 1")))
        with pytest.raises(InterfaceError, match="batch_size"):
            connection.fetch_batches("SELECT 1", batch_size=0)
        with pytest.raises(InterfaceError, match="memory_limit"):
            connection.fetch_batches("SELECT 1", options={"memory_limit": "1 MiB"})
        await connection.close()

    run(fetch())


async def lengths_of(connection: asyncpg.Connection, query: str, lengths: list[int]) -> None:
    async with connection.transaction():
        async for batch in connection.fetch_batches(query, batch_size=1000, timeout=1):
            lengths += [len(batch)]


def test_errors_come_with_the_batch_that_has_them(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        failing: list[tuple[str, type[Exception]]] = [
            ("SELECT CASE WHEN i = 4321 THEN 'infinity'::date END AS d FROM generate_series(1, 9000) i", DataError),
            ("SELECT 1 / (4321 - i) FROM generate_series(1, 9000) i", original.DivisionByZeroError),
            ("SELECT i, CASE i WHEN 4321 THEN pg_sleep(60)::text END FROM generate_series(1, 9000) i", TimeoutError),
        ]
        for query, error in failing:
            lengths: list[int] = []
            with pytest.raises(error):
                await lengths_of(connection, query, lengths)
            assert lengths == [1000] * 4
            assert (await connection.fetch_arrow("SELECT 1 AS one")).to_pylist() == [{"one": 1}]
        await connection.close()

    run(fetch())


def test_a_pool_has_a_transaction_for_them(run: Run, url: str) -> None:
    query = QUERY.format(rows=5000)
    expected = whole(query, url)

    async def fetch() -> None:
        async with asyncpg.create_pool(url, min_size=1, max_size=2) as pool:

            async def rows() -> pa.Table:
                return pa.Table.from_batches([batch async for batch in pool.fetch_batches(query, batch_size=999)])

            for table in await asyncio.gather(*[rows() for _ in range(5)]):
                assert table.equals(expected)
            async for _ in pool.fetch_batches(query, batch_size=10):
                break
            # The loop closes what is left early, in a task of its own.
            async with asyncio.timeout(10):
                while pool.get_idle_size() < pool.get_size():  # noqa: ASYNC110  a pool tells no one
                    await asyncio.sleep(0.01)
            assert await pool.fetchval("SELECT 1") == 1

    run(fetch())


def test_pgbouncer(pgbouncer: PgBouncer, run: Run, url: str) -> None:
    query = QUERY.format(rows=5000)
    expected = whole(query, url)

    async def fetch() -> None:
        async with asyncpg.create_pool(pgbouncer.url(), min_size=1, max_size=3, statement_cache_size=0) as pool:

            async def rows() -> pa.Table:
                return pa.Table.from_batches([batch async for batch in pool.fetch_batches(query, batch_size=999)])

            for table in await asyncio.gather(*[rows() for _ in range(6)]):
                assert table.equals(expected)

    run(fetch())


def test_prepared_statements_give_frames(run: Run, url: str) -> None:
    query = "SELECT i AS id, i * 0.5::float8 AS half FROM generate_series(1, $1) AS i"

    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        statement = await connection.prepare(query)
        expected: Any = longshore.read_sql(query, url, return_type="arrow", params=[5])
        for _ in range(2):
            assert (await statement.fetch_arrow(5)).equals(expected)
            assert statement.get_statusmsg() == "SELECT 5"
            assert len(await statement.fetch(4)) == 4
            assert statement.get_statusmsg() == "SELECT 4"
        frame = await statement.fetch_df(5, dtype_backend="pyarrow", index_col="id")
        pd.testing.assert_frame_equal(
            frame, longshore.read_sql(query, url, params=[5], dtype_backend="pyarrow", index_col="id")
        )
        assert (await statement.fetch_polars(2, schema={"id": "int64"})).rows() == [(1, 0.5), (2, 1.0)]
        assert statement.get_statusmsg() == "SELECT 2"
        async with connection.transaction():
            assert [len(batch) async for batch in statement.fetch_batches(5, batch_size=2)] == [2, 2, 1]
        await connection.close()
        with pytest.raises(original.InterfaceError, match="closed"):
            await statement.fetch_arrow(5)

    run(fetch())
