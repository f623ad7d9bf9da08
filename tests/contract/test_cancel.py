"""`Connection.cancel`, from another thread: what runs ends, on the server too, and the connection goes on."""

import asyncio
import threading
import time
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.contract.conftest import Database, wait

pytestmark = pytest.mark.usefixtures("leaves_nothing")


def execute(query: str, connection: longshore.Connection) -> Any:
    return connection.execute(query)


def read(query: str, connection: longshore.Connection) -> Any:
    return longshore.read_sql(query, connection)


def stream(query: str, connection: longshore.Connection) -> Any:
    with longshore.read_sql(query, connection, return_type="arrow_stream") as batches:
        return sum(batch.num_rows for batch in batches)


@pytest.mark.parametrize("kind", ["computing", "streaming"])
@pytest.mark.parametrize("work", [execute, read, stream])
@pytest.mark.parametrize("autocommit", [True, False])
def test_cancel(database: Database, kind: str, work: Any, autocommit: bool) -> None:  # noqa: FBT001
    marker = f"cancel_{work.__name__}_{kind}"
    with longshore.connect(database.url, autocommit=autocommit) as connection:
        caught: list[longshore.Error] = []

        def run() -> None:
            with pytest.raises(longshore.OperationalError, match="the statement was cancelled") as raised:
                work(database.marked(kind, marker), connection)
            caught.append(raised.value)

        thread = threading.Thread(target=run)
        thread.start()
        wait(lambda: database.running(marker))
        time.sleep(0.1)
        connection.cancel()
        thread.join(5)
        assert [error.sqlstate for error in caught] == ["57014"]
        connection.rollback()
        if database.quirks.running is not None:
            wait(lambda: not database.running(marker))
        assert not connection.closed
        # What was stopped stops nothing that comes after it.
        assert [database.rows(f"SELECT {n} AS n", connection) for n in range(10)] == [[(n,)] for n in range(10)]


def test_cancel_of_what_does_nothing(database: Database) -> None:
    with longshore.connect(database.url) as connection:
        connection.cancel()
        assert database.rows("SELECT 1 AS n", connection) == [(1,)]
    connection.cancel()


def test_cancel_of_a_stream_between_batches(database: Database) -> None:
    with longshore.connect(database.url) as connection:
        query = database.marked("streaming", "between")
        batches: Any = longshore.read_sql(query, connection, return_type="arrow_stream")
        next(batches)
        connection.cancel()
        with pytest.raises(longshore.OperationalError, match="the statement was cancelled"):
            for _ in batches:
                pass
        connection.rollback()
        assert database.rows("SELECT 1 AS n", connection) == [(1,)]


def test_cancel_of_a_write(database: Database, table: str) -> None:
    with longshore.connect(database.url) as connection:

        def batches() -> Any:
            for n in range(10**9):
                if n == 20:
                    threading.Thread(target=connection.cancel).start()
                yield pa.record_batch({"id": pa.array(range(1000))})

        with pytest.raises(longshore.OperationalError, match="the statement was cancelled"):
            longshore.write_sql(batches(), table, connection)
        connection.rollback()
        assert table not in database.tables()
        assert database.rows("SELECT 1 AS n", connection) == [(1,)]


def test_cancel_in_asyncio(database: Database) -> None:
    async def main() -> None:
        async with await longshore.connect_async(database.url) as connection:
            task = asyncio.create_task(connection.execute(database.marked("computing", "cancel_task")))
            await asyncio.to_thread(wait, lambda: database.running("cancel_task"))
            await asyncio.sleep(0.1)
            connection.cancel()
            with pytest.raises(longshore.OperationalError, match="the statement was cancelled"):
                await task
            await connection.rollback()
            assert not connection.closed
            table = await longshore.read_sql_async("SELECT 1 AS n", connection, return_type="arrow")
            assert table.column("n").to_pylist() == [1]

    asyncio.run(main())
