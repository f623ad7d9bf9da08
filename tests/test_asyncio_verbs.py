"""The verbs for asyncio on every source: the same results, and a cancelled task that leaves nothing behind."""

import asyncio
import contextvars
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import longshore
from tests.postgres.test_interruption import wait

#: The queries that run until somebody stops them.
ENDLESS = {
    "postgresql": "SELECT pg_sleep(600)",
    "mariadb": "SELECT SLEEP(600)",
    "mysql": "SELECT SLEEP(600)",
    "sqlite": "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
}
TEN = " UNION ALL ".join(["SELECT 1"] * 10)
#: Rows without an end.
ROWS = {
    "postgresql": "SELECT generate_series(1, 1000000000) AS n",
    "mariadb": "SELECT seq AS n FROM seq_1_to_1000000000",
    "mysql": f"SELECT 1 AS n FROM {' JOIN '.join(f'({TEN}) AS t{number}' for number in range(9))}",
    "sqlite": "WITH RECURSIVE n AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM n) SELECT n FROM n",
}


@pytest.fixture(params=list(ENDLESS))
def scheme(request: pytest.FixtureRequest) -> str:
    """Give a source."""
    name: str = request.param
    return name


@pytest.fixture
def place(scheme: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Give the source's URL, where no table is called async_boats."""
    if scheme == "sqlite":
        yield f"sqlite:///{tmp_path}/boats.db?mode=rwc"
        return
    server = request.getfixturevalue("postgres" if scheme == "postgresql" else scheme)
    yield server.url()
    drop = "DROP TABLE IF EXISTS async_boats"
    server.psql(f"SET client_min_messages = error; {drop}") if scheme == "postgresql" else server.sql(drop)


def boats(conn: Any) -> list[int]:
    found: list[int] = longshore.read_sql("SELECT n FROM async_boats ORDER BY n", conn, return_type="polars")[
        "n"
    ].to_list()
    return found


async def until(condition: Any) -> None:
    await asyncio.to_thread(wait, condition)


def test_writes_and_copies(place: str, tmp_path: Path) -> None:
    other = f"sqlite:///{tmp_path}/other.db?mode=rwc"

    async def use() -> None:
        frame = pl.DataFrame({"n": [1, 2]})
        assert await longshore.write_sql_async(frame, "async_boats", place, key="n") == 2
        assert await longshore.copy_async("SELECT n FROM async_boats", place, "async_boats", other) == 2
        with pytest.raises(longshore.ProgrammingError):
            await longshore.write_sql_async(frame, "async_boats", place)
        with pytest.raises(TypeError, match=r"write_sql_async.*'method'"):
            await longshore.write_sql_async(frame, "async_boats", place, method="multi")  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"copy_async.*'chunksize'"):
            await longshore.copy_async("SELECT 1", place, "t", other, chunksize=1)  # type: ignore[call-arg]

    asyncio.run(use())
    assert boats(place) == boats(other) == [1, 2]


def test_a_cancelled_statement_leaves_the_connection_usable(scheme: str, place: str) -> None:
    async def cancel() -> None:
        async with await longshore.connect_async(place) as connection:
            for verb in (connection.execute, connection.execute_script):
                task = asyncio.create_task(verb(ENDLESS[scheme]))
                # The statement has the session.
                await until(lambda: connection.in_transaction is None)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await connection.rollback()
                assert await connection.execute("SELECT 1") == 1
            task = asyncio.create_task(longshore.read_sql_async(ENDLESS[scheme], connection, return_type="arrow"))
            await until(lambda: connection.in_transaction is None)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await connection.rollback()
            assert await connection.execute("SELECT 1") == 1

    asyncio.run(cancel())


def test_a_cancelled_write_leaves_nothing(place: str) -> None:
    async def cancel() -> None:
        given: list[int] = []

        def frames() -> Iterator[pl.DataFrame]:
            while True:
                given.append(1)
                yield pl.DataFrame({"n": [1]})

        async with longshore.AsyncPool(place, size=1) as pool:
            task = asyncio.create_task(longshore.write_sql_async(frames(), "async_boats", pool))
            await until(lambda: len(given) > 3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            # Nothing is there, and the session is free.
            assert await longshore.write_sql_async([{"n": 7}], "async_boats", pool) == 1

    asyncio.run(cancel())
    assert boats(place) == [7]


def test_a_cancelled_copy_leaves_nothing(scheme: str, place: str, tmp_path: Path) -> None:
    other = f"sqlite:///{tmp_path}/other.db?mode=rwc"

    async def cancel() -> None:
        rows: list[int] = []
        arguments: Any = {"progress": lambda progress: rows.append(progress.rows)}
        async with longshore.AsyncPool(place, size=1) as pool:
            task = asyncio.create_task(
                longshore.copy_async(ROWS[scheme], pool, "async_boats", other, if_exists="replace", **arguments)
            )
            await until(lambda: any(rows))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            frame = await longshore.read_sql_async("SELECT 1 AS n", pool, return_type="polars")
            assert frame["n"].to_list() == [1]

    asyncio.run(cancel())
    with pytest.raises(longshore.ProgrammingError):
        boats(other)


def test_a_connection_attempt_can_be_cancelled(postgres: Any) -> None:
    async def cancel() -> None:
        async with asyncio.timeout(0):
            await longshore.connect_async(postgres.url())

    with pytest.raises(TimeoutError):
        asyncio.run(cancel())


def test_context_variables_reach_the_data(url: str, harbour: str) -> None:
    city = contextvars.ContextVar[str]("city")

    def frames() -> Iterator[pl.DataFrame]:
        yield pl.DataFrame({"n": [city.get()]})

    async def write() -> None:
        city.set("Riga")
        await longshore.write_sql_async(frames(), f"{harbour}.boats", url)

    asyncio.run(write())
    found = longshore.read_sql(f"SELECT n FROM {harbour}.boats", url, return_type="polars")
    assert found["n"].to_list() == ["Riga"]


def test_they_stay_in_their_process(url: str) -> None:
    async def use() -> None:
        async with await longshore.connect_async(url) as connection, longshore.AsyncPool(url) as pool:
            for each in (connection, pool):
                with pytest.raises(TypeError, match=f"{type(each).__name__} belongs to its process"):
                    pickle.dumps(each)

    asyncio.run(use())


PIERS = [{"n": 1}]


def test_sql_sees_the_variables_of_its_call() -> None:
    async def use() -> tuple[int, int]:
        boats = [{"n": 2}]
        task = asyncio.create_task(longshore.sql_async("SELECT n FROM boats", return_type="polars"))
        boats = [{"n": 3}]
        await asyncio.sleep(0)
        outer = await longshore.sql_async("SELECT b.n * 10 + t.n AS n FROM boats b, PIERS t", return_type="polars")
        del boats
        return (await task)["n"].item(), outer["n"].item()

    assert asyncio.run(use()) == (2, 31)


def test_sql_is_sqls(url: str) -> None:
    async def use() -> None:
        numbers = pl.DataFrame({"n": [1, 2, 3]})  # noqa: F841  the queries read it
        query = "SELECT sum(n)::int AS n FROM numbers WHERE n > $1"
        frame = await longshore.sql_async(query, params=[1], return_type="polars")
        assert frame.equals(longshore.sql(query, params=[1], return_type="polars"))
        frames = await asyncio.gather(
            *(longshore.sql_async("SELECT n FROM t", t=[{"n": n}], return_type="polars") for n in range(8))
        )
        assert [frame["n"].item() for frame in frames] == [*range(8)]
        remote = await longshore.sql_async(
            "SELECT count(*)::int AS n FROM pg.information_schema.tables", attach={"pg": url}, return_type="polars"
        )
        assert remote["n"].item() > 0
        assert "range" in (await longshore.sql_async("EXPLAIN SELECT * FROM range(3)")).to_string().lower()
        async with await longshore.sql_async("SELECT * FROM range(3)", return_type="arrow_stream") as stream:
            assert sum([batch.num_rows async for batch in stream]) == 3
        with pytest.raises(longshore.ProgrammingError):
            await longshore.sql_async("SELECT nothing FROM numbers")

    asyncio.run(use())


@pytest.mark.parametrize("return_type", ["polars", "pandas"])
def test_a_cancelled_query_of_sql_has_stopped(return_type: str) -> None:
    schema = pa.schema([("n", pa.int64())])
    given: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        while True:
            given.append(1)
            yield pa.record_batch({"n": [1, 2, 3]}, schema=schema)

    async def cancel() -> None:
        endless = pa.RecordBatchReader.from_batches(schema, batches())
        task = asyncio.create_task(longshore.sql_async("SELECT count(*) FROM endless", return_type=return_type))
        await until(lambda: len(given) > 3)
        del endless
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        frame = await longshore.sql_async("SELECT 1 AS n", return_type="polars")
        assert frame["n"].item() == 1

    asyncio.run(cancel())


def test_a_cancelled_query_of_sql_before_it_has_begun() -> None:
    async def cancel() -> None:
        for _ in range(20):
            task = asyncio.create_task(longshore.sql_async("SELECT count(*) FROM range(1000000000000)"))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(cancel())
