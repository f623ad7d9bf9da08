"""Time-outs, cancellation, errors and lost connections in the middle of a result: what comes after is right."""

import asyncio
import time

import asyncpg as original
import pytest

from longshore import asyncpg
from longshore.asyncpg import DTypeError, set_query_dtype
from tests.asyncpg.comparing import DTYPE, assert_rows, rows
from tests.asyncpg.conftest import Run
from tests.servers import Endpoint

pytestmark = [pytest.mark.packages, pytest.mark.pythons]

RIGHT = set_query_dtype(rows(3000), DTYPE)
# Many rows, and then a long wait for the next.
HANGING = set_query_dtype(
    "SELECT i, CASE i WHEN 5000 THEN pg_sleep(60)::text END FROM generate_series(1, 9000) i", [("i", "i4"), ("s", "S1")]
)
ENDLESS = set_query_dtype("SELECT generate_series(1, 2000000000)", [("i", "i4")])


@pytest.mark.parametrize("query", [HANGING, ENDLESS])
def test_a_time_out_leaves_the_connection_usable(query: str, run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        statement = await connection.prepare(query)
        for attempt in (connection.fetch(query, timeout=0.2), statement.fetch(timeout=0.2)):
            started = time.monotonic()
            with pytest.raises(TimeoutError):
                await attempt
            assert_rows(await connection.fetch(RIGHT), 1, 3000)
            assert time.monotonic() - started < 5
        await connection.close()

    run(fetch())


def test_the_connections_own_time_out_counts(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url, command_timeout=0.2)
        with pytest.raises(TimeoutError):
            await connection.fetch(HANGING)
        assert_rows(await connection.fetch(RIGHT, timeout=10), 1, 3000)
        with pytest.raises(TimeoutError):
            await connection.fetch(RIGHT, timeout=0)
        with pytest.raises(ValueError, match="invalid timeout"):
            await connection.fetch(RIGHT, timeout="soon")  # type: ignore[call-overload]
        await connection.close()

    run(fetch())


@pytest.mark.parametrize("query", [HANGING, ENDLESS])
def test_a_cancelled_task_leaves_the_connection_usable(query: str, run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        # Not in between: the protocol does not promise that a cancel request which comes early stops anything.
        for pause in (0.0, 0.1, 0.3):
            task = asyncio.create_task(connection.fetch(query))
            await asyncio.sleep(pause)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            # At once, while the server is still being told.
            assert_rows(await connection.fetch(RIGHT), 1, 3000)
        await connection.close()

    run(fetch())


def test_a_cancelled_task_gives_its_connection_back_to_the_pool(run: Run, url: str) -> None:
    async def fetch() -> None:
        async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool:
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await pool.fetch(ENDLESS)
                assert_rows(await pool.fetch(RIGHT), 1, 3000)

    run(fetch())


def test_an_error_after_rows_is_asyncpgs(run: Run, url: str) -> None:
    async def fetch() -> None:
        query = set_query_dtype("SELECT 1 / (5000 - i) FROM generate_series(1, 9000) i", [("a", "i4")])
        connection = await asyncpg.connect(url)
        for _ in range(2):
            with pytest.raises(original.DivisionByZeroError, match="division by zero"):
                await connection.fetch(query)
            assert_rows(await connection.fetch(RIGHT), 1, 3000)
        await connection.close()

    run(fetch())


def test_a_value_that_does_not_fit_leaves_the_transaction_as_it_is(run: Run, url: str) -> None:
    async def fetch() -> None:
        query = set_query_dtype("SELECT 'ab' || i FROM generate_series(1, 90000) i", [("a", "S4")])
        connection = await asyncpg.connect(url)
        async with connection.transaction():
            await connection.execute("CREATE TEMP TABLE cranes (id int)")
            with pytest.raises(DTypeError, match="in row 99"):
                await connection.fetch(query)
            assert connection.is_in_transaction()
            await connection.execute("INSERT INTO cranes VALUES (1)")
        assert await connection.fetchval("SELECT count(*) FROM cranes") == 1
        await connection.close()

    run(fetch())


def test_a_connection_that_is_ended_says_so(postgres: Endpoint, run: Run, url: str) -> None:
    async def fetch() -> None:
        async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool:
            async with pool.acquire() as connection:
                task = asyncio.create_task(connection.fetch(ENDLESS))
                await asyncio.sleep(0.1)
                await asyncio.to_thread(postgres.psql, f"SELECT pg_terminate_backend({connection.get_server_pid()})")
                with pytest.raises((original.AdminShutdownError, original.ConnectionDoesNotExistError)):
                    await task
            assert_rows(await pool.fetch(RIGHT), 1, 3000)

    run(fetch())


def test_terminate_ends_a_fetch(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        task = asyncio.create_task(connection.fetch(ENDLESS))
        await asyncio.sleep(0.1)
        connection.terminate()
        with pytest.raises(original.ConnectionDoesNotExistError):
            await task
        assert connection.is_closed()
        with pytest.raises(original.InterfaceError, match="closed"):
            await connection.fetch(RIGHT)

    run(fetch())


def test_a_second_operation_is_refused_and_the_first_is_whole(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        slow = set_query_dtype(rows(200000), DTYPE)
        statement = await connection.prepare(slow)
        for first in (connection.fetch, statement.fetch):
            arguments = [slow] if first == connection.fetch else []
            task = asyncio.create_task(first(*arguments))
            await asyncio.sleep(0)
            for second in (statement.fetch(), connection.fetch(RIGHT), connection.fetch("SELECT 1")):
                with pytest.raises(original.InterfaceError, match="another operation is in progress"):
                    await second
            assert_rows(await task, 1, 200000)
        # And the other way round.
        task = asyncio.create_task(connection.fetch(rows(50000)))
        await asyncio.sleep(0)
        with pytest.raises(original.InterfaceError, match="another operation is in progress"):
            await statement.fetch()
        assert len(await task) == 50000
        await connection.close()

    run(fetch())


def test_notices_and_notifications_come_through(run: Run, url: str) -> None:
    async def fetch() -> None:
        notices: list[str] = []
        heard: list[str] = []
        connection, other = await asyncpg.connect(url), await asyncpg.connect(url)
        connection.add_log_listener(lambda _, message: notices.append(message.message))
        await connection.add_listener("berth", lambda *arguments: heard.append(arguments[-1]))
        await connection.execute(
            "CREATE FUNCTION pg_temp.tell(i int) RETURNS int LANGUAGE plpgsql AS "
            "$$ BEGIN IF i % 1000 = 0 THEN RAISE NOTICE 'at %', i; END IF; RETURN i; END $$"
        )
        query = set_query_dtype("SELECT pg_temp.tell(i) FROM generate_series(1, 5000) i", [("i", "i4")])
        for number in range(20):
            await other.execute("SELECT pg_notify('berth', $1)", f"{number}" + "x" * 7000)
            array, _ = await connection.fetch(query)
            assert array["i"].tolist() == list(range(1, 5001))
        async with asyncio.timeout(10):
            while len(heard) < 20:
                await connection.fetchval("SELECT 1")
        assert notices == [f"at {number}" for number in range(1000, 5001, 1000)] * 20
        assert [text.rstrip("x") for text in heard] == [str(number) for number in range(20)]
        await connection.close()
        await other.close()

    run(fetch())


def test_codecs_of_the_users_are_honoured(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        query = "SELECT '{1,2}'::int4[] AS a, 7::int8 AS n, '{\"a\":1}'::json AS j"
        objects = set_query_dtype(query, [("a", "O"), ("n", "O"), ("j", "O")])
        typed = set_query_dtype(query, [("a", "O"), ("n", "i8"), ("j", "S9")])
        text = set_query_dtype(query, [("a", "O"), ("n", "S9"), ("j", "S9")])
        assert (await connection.fetch(typed))[0].tolist() == [([1, 2], 7, b'{"a":1}')]
        for name, decoder in (("int8", lambda text: f"number {text}"), ("json", len)):
            await connection.set_type_codec(name, schema="pg_catalog", encoder=str, decoder=decoder, format="text")
        assert (await connection.fetch(objects))[0].tolist() == [([1, 2], "number 7", 7)]
        with pytest.raises(DTypeError, match=r"dtype\[1\] 'n' = int64 does not match PostgreSQL int8"):
            await connection.fetch(typed)
        assert (await connection.fetch(text))[0].tolist() == [([1, 2], b"7", b'{"a":1}')]
        await connection.reset_type_codec("int8", schema="pg_catalog")
        assert (await connection.fetch(typed))[0].tolist() == [([1, 2], 7, b'{"a":1}')]
        await connection.close()

    run(fetch())


def test_text_in_another_encoding_is_refused(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        query = "SELECT U&'\\00e4'::text AS t, '\\x00ff'::bytea AS y"
        await connection.execute("SET client_encoding TO 'LATIN1'")
        for dtype in ("U1", "S2"):
            with pytest.raises(DTypeError, match=r"dtype\[0\] 't' = .*client_encoding"):
                await connection.fetch(set_query_dtype(query, [("t", dtype), ("y", "S2")]))
        # asyncpg 0.27 makes a pair of it.
        own = await connection.fetchrow(query)
        array, _ = await connection.fetch(set_query_dtype(query, [("t", "O"), ("y", "S2")]))
        assert array.tolist() == [(own["t"], b"\x00\xff")]
        await connection.execute("SET client_encoding TO 'UTF8'")
        array, _ = await connection.fetch(set_query_dtype(query, [("t", "U1"), ("y", "S2")]))
        assert array.tolist() == [("ä", b"\x00\xff")]
        await connection.close()

    run(fetch())


def test_a_decoder_that_fails_is_an_error(run: Run, url: str) -> None:
    async def fetch() -> None:
        def fail(text: str) -> None:
            message = f"no {text}"
            raise ValueError(message)

        connection = await asyncpg.connect(url)
        await connection.set_type_codec("json", schema="pg_catalog", encoder=str, decoder=fail, format="text")
        with pytest.raises(ValueError, match="no 1"):
            await connection.fetch(set_query_dtype("SELECT 1, '1'::json", [("i", "i4"), ("j", "O")]))
        assert_rows(await connection.fetch(RIGHT), 1, 3000)
        await connection.close()

    run(fetch())


def test_long_values_pass_through_the_buffer(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        query = set_query_dtype(
            "SELECT i, repeat(i::text, 700000) FROM generate_series(1, 5) i", [("i", "i4"), ("t", "O")]
        )
        array, _ = await connection.fetch(query)
        assert [(len(text), set(text)) for text in array["t"]] == [(700000, {str(number)}) for number in range(1, 6)]
        wide = set_query_dtype("SELECT repeat('x', 3000000) FROM generate_series(1, 3)", [("t", "S3000000")])
        array, _ = await connection.fetch(wide)
        assert array["t"].tolist() == [b"x" * 3000000] * 3
        assert_rows(await connection.fetch(RIGHT), 1, 3000)
        await connection.close()

    run(fetch())
