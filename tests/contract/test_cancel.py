"""`Connection.cancel`, from another thread: what runs ends, on the server too, and the connection goes on."""

import asyncio
import threading
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.contract.conftest import Database, stop, wait

pytestmark = [pytest.mark.usefixtures("leaves_nothing"), pytest.mark.costly]


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
        stop(thread, connection.cancel)
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


def goes_on(database: Database, connection: longshore.Connection, marker: str) -> None:
    """See that the connection can be used at once, and that nothing runs any more."""
    connection.rollback()
    if database.quirks.running is not None:
        assert not database.running(marker)
    assert database.rows("SELECT 1 AS n", connection) == [(1,)]


@pytest.mark.parametrize("how", ["batches", "pandas", "polars", "parts"])
@pytest.mark.filterwarnings("ignore::longshore.SerialReadWarning")
def test_cancel_of_a_stream_between_batches(database: Database, how: str) -> None:
    marker = f"between_{how}"
    query: Any = database.marked("streaming", marker)
    arguments: Any = {"partition_num": 2, "options": {"snapshot": False}} if how == "parts" else {}
    with longshore.connect(database.url) as connection:
        query = [query] * 2 if how == "parts" else query
        stream: Any = longshore.read_sql(query, connection, return_type="arrow_stream", **arguments)
        pieces = getattr(stream, how)() if how in {"pandas", "polars"} else stream
        assert len(next(pieces)) > 0
        assert connection.in_transaction is None
        connection.cancel()
        # It has ended, although no one takes a batch.
        goes_on(database, connection, marker)
        with pytest.raises(longshore.OperationalError, match="the statement was cancelled") as caught:
            next(pieces)
        assert caught.value.sqlstate == "57014"
        with pytest.raises(longshore.InterfaceError, match="the stream has failed"):
            next(pieces)
        connection.cancel()
        goes_on(database, connection, marker)


def test_cancel_of_a_stream_that_was_handed_over(database: Database) -> None:
    with longshore.connect(database.url) as connection:
        query: Any = database.marked("streaming", "between_batches_of_another")
        reader = pa.RecordBatchReader.from_stream(longshore.read_sql(query, connection, return_type="arrow_stream"))
        assert reader.read_next_batch().num_rows > 0
        connection.cancel()
        goes_on(database, connection, "between_batches_of_another")
        with pytest.raises((pa.ArrowException, OSError), match="the statement was cancelled"):
            reader.read_next_batch()


def test_cancel_of_a_stream_between_batches_in_asyncio(database: Database) -> None:
    async def main() -> None:
        query: Any = database.marked("streaming", "between_tasks")
        async with await longshore.connect_async(database.url) as connection:
            stream: Any = await longshore.read_sql_async(query, connection, return_type="arrow_stream")
            assert (await anext(stream)).num_rows > 0
            connection.cancel()
            await connection.rollback()
            if database.quirks.running is not None:
                assert not await asyncio.to_thread(database.running, "between_tasks")
            query = database.quirks.select(1)
            table = await longshore.read_sql_async(query, connection, return_type="arrow")
            assert table.column(0).to_pylist() == [1]
            with pytest.raises(longshore.OperationalError, match="the statement was cancelled"):
                await anext(stream)

    asyncio.run(main())


def test_cancel_of_a_write(database: Database, table: str) -> None:
    is_alone = not database.quirks.has_transactions or "a new table in a transaction" in database.quirks.cannot
    with longshore.connect(database.url, autocommit=is_alone) as connection:

        def batches() -> Any:
            for n in range(10**9):
                if n == 20:
                    threading.Thread(target=connection.cancel).start()
                yield pa.record_batch({"id": pa.array(range(1000))})

        with (
            database.can("writing"),
            pytest.raises(longshore.OperationalError, match="the statement was cancelled"),
        ):
            longshore.write_sql(batches(), table, connection)
        connection.rollback()
        assert table not in database.tables()
        assert database.rows("SELECT 1 AS n", connection) == [(1,)]


def test_cancel_in_asyncio(database: Database) -> None:
    async def main() -> None:
        async with await longshore.connect_async(database.url) as connection:
            task = asyncio.create_task(connection.execute(database.marked("computing", "cancel_task")))
            await asyncio.to_thread(wait, lambda: database.running("cancel_task"))
            while not task.done():
                connection.cancel()
                await asyncio.wait({task}, timeout=0.1)
            with pytest.raises(longshore.OperationalError, match="the statement was cancelled"):
                await task
            await connection.rollback()
            assert not connection.closed
            query = database.quirks.select(1)
            table = await longshore.read_sql_async(query, connection, return_type="arrow")
            assert table.column(0).to_pylist() == [1]

    asyncio.run(main())
