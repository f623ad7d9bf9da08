"""Errors, time-outs and altered tables between the statements of one frame: what comes after is right."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg as original
import pytest

from longshore import asyncpg
from longshore.asyncpg import DTypeError, set_query_dtype
from longshore.asyncpg.fetching import Exchange
from longshore.errors import DataError, InterfaceError, NotSupportedError, ProgrammingError
from tests.asyncpg.conftest import Run

pytestmark = [pytest.mark.packages, pytest.mark.pythons]

Attempt = Callable[[asyncpg.Connection], Awaitable[Any]]

ERRORS: list[tuple[str, type[Exception], str]] = [
    ("SELECT CASE WHEN i = 4321 THEN 'infinity'::date END FROM generate_series(1, 9000) i", DataError, "row 4320"),
    ("SELECT 1 / (7000 - i) FROM generate_series(1, 9000) i", original.DivisionByZeroError, "by zero"),
    ("SELECT FROM nowhere", original.UndefinedTableError, "nowhere"),
    ("SET application_name = 'x'", ProgrammingError, "returns no rows"),
    ("SELECT 'NaN'::numeric", DataError, "NaN"),
]


@pytest.mark.parametrize(("query", "error", "says"), ERRORS)
def test_errors_leave_the_connection_usable(query: str, error: type[Exception], says: str, run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        with pytest.raises(error, match=says):
            await connection.fetch_arrow(query)
        assert not connection.is_in_transaction()
        with pytest.raises(error, match=says):
            async with connection.transaction():
                await connection.fetch_arrow(query)
        assert (await connection.fetch_arrow("SELECT 1 AS one")).to_pylist() == [{"one": 1}]
        assert await connection.fetchval("SELECT 2") == 2
        await connection.close()

    run(fetch())


@pytest.mark.parametrize("way", ["timeout", "cancel"])
def test_what_is_stopped_leaves_the_connection_usable(way: str, run: Run, url: str) -> None:
    query = "SELECT i, CASE i WHEN 5000 THEN pg_sleep(60)::text END FROM generate_series(1, 9000) i"

    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        for _ in range(3):
            stopped = connection.fetch_arrow(query, timeout=0.2 if way == "timeout" else None)
            with pytest.raises(TimeoutError):
                await (stopped if way == "timeout" else asyncio.wait_for(stopped, 0.2))
            assert (await connection.fetch_arrow("SELECT 1 AS one")).to_pylist() == [{"one": 1}]
            assert await connection.fetchval("SELECT 2") == 2
        with pytest.raises(TimeoutError):
            await connection.fetch_arrow("SELECT 1", timeout=0)
        await connection.close()

    run(fetch())


def test_two_at_once_are_refused(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection, holder = await asyncpg.connect(url), await asyncpg.connect(url)
        await holder.execute("SELECT pg_advisory_lock(7)")
        first = asyncio.ensure_future(connection.fetch_arrow("SELECT pg_advisory_lock(7)::text AS locked, 1 AS one"))
        await asyncio.sleep(0.1)
        for other in (connection.fetch_arrow("SELECT 1"), connection.fetch("SELECT 1")):
            with pytest.raises(original.InterfaceError, match="another operation is in progress"):
                await other
        await holder.close()
        assert (await first).to_pylist() == [{"locked": "", "one": 1}]
        await connection.close()

    run(fetch())


def test_no_statement_is_left(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        query = "SELECT 1 AS one, '10.0.0.1'::inet AS host"
        await connection.fetch(query)
        for _ in range(3):
            await connection.fetch_arrow(query)
            with pytest.raises(original.DivisionByZeroError):
                await connection.fetch_arrow("SELECT 1 / $1::int", 0)
        left = await connection.fetch("SELECT statement FROM pg_prepared_statements")
        assert query in [record["statement"] for record in left]
        assert len(left) == 2
        await connection.close()

    run(fetch())


@pytest.mark.parametrize("cache", [100, 0])
@pytest.mark.parametrize("change", range(1, 8))
def test_a_table_altered_meanwhile(
    change: int, cache: int, run: Run, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever another session alters the column, its bytes are read as what they are."""
    prepare, execute = Exchange.prepare, Exchange.run
    table = f"altered_{change}_{cache}"

    async def fetch() -> None:
        other = await asyncpg.connect(url, server_settings={"lock_timeout": "100ms"})
        await other.execute(f"CREATE TABLE {table} AS SELECT 1 AS number, '10.0.0.1'::inet AS host")
        changes = 0
        altered = None

        async def alter() -> None:
            nonlocal changes, altered
            changes += 1
            if changes != change:
                return
            try:
                await other.execute(f"ALTER TABLE {table} ALTER number TYPE float4")
                altered = True
            except original.LockNotAvailableError:
                altered = False

        async def preparing(self: Any, *arguments: Any) -> Any:
            await alter()
            return await prepare(self, *arguments)

        async def running(self: Any, *arguments: Any) -> Any:
            await alter()
            return await execute(self, *arguments)

        monkeypatch.setattr(Exchange, "prepare", preparing)
        monkeypatch.setattr(Exchange, "run", running)
        connection = await asyncpg.connect(url, statement_cache_size=cache)
        got = await connection.fetch_arrow(f"SELECT number, host FROM {table}")
        assert got.to_pylist() == [{"number": 1, "host": "10.0.0.1"}]
        assert str(got.schema.field("number").type) == ("float" if altered else "int32")
        # What is prepared to be run is locked: the last is the row's own.
        assert altered == {1: True, 2: False, 3: False, 4: True, 5: False}.get(change)
        await connection.close()
        await other.execute(f"DROP TABLE {table}")
        await other.close()

    run(fetch())


async def stopped_in_between(connection: asyncpg.Connection) -> None:
    task = asyncio.current_task()
    assert task is not None
    answer = Exchange.answer

    async def stopping(self: Any, inquiry: Any) -> bool:
        task.cancel()
        return await answer(self, inquiry)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Exchange, "answer", stopping)
        try:
            await connection.fetch_arrow("SELECT * FROM hold")
        finally:
            task.uncancel()


UNRUN: dict[str, tuple[Attempt, type[BaseException]]] = {
    "schema": (lambda c: c.fetch_arrow("SELECT * FROM hold", schema={"none": "int64"}), InterfaceError),
    "count": (lambda c: c.fetch_arrow("SELECT id FROM hold WHERE id = $1"), original.InterfaceError),
    "argument": (lambda c: c.fetch_arrow("SELECT id FROM hold WHERE id = $1", "one"), original.DataError),
    "no rows": (lambda c: c.fetch_arrow("DELETE FROM hold"), ProgrammingError),
    "rounded": (lambda c: c.fetch_arrow("SELECT spot FROM hold"), NotSupportedError),
    "cancelled": (stopped_in_between, asyncio.CancelledError),
    "polars": (lambda c: c.fetch_polars("SELECT span FROM hold"), NotSupportedError),
    "dtype": (lambda c: c.fetch(set_query_dtype("SELECT id FROM hold", [("id", "f8")])), DTypeError),
    "server": (lambda c: c.fetch_arrow("SELECT nothing FROM hold"), original.UndefinedColumnError),
}


@pytest.mark.parametrize("cache", [100, 0])
@pytest.mark.parametrize("case", list(UNRUN))
def test_what_is_not_run_locks_nothing(case: str, cache: int, run: Run, url: str) -> None:
    """A server keeps what it has locked for a statement until it is told that the exchange is over."""
    attempt, error = UNRUN[case]

    async def fetch() -> None:
        connection, other = await asyncpg.connect(url, statement_cache_size=cache), await asyncpg.connect(url)
        await other.execute("CREATE TABLE hold (id int, spot point, span interval)")
        try:
            await connection.execute("SET extra_float_digits = 0")
            with pytest.raises(error):
                await attempt(connection)
            state = "SELECT state FROM pg_stat_activity WHERE pid = $1"
            for _ in range(500):
                # The server hears of a cancelled statement a little later.
                if await other.fetchval(state, connection.get_server_pid()) == "idle":
                    break
                await asyncio.sleep(0.01)
            locks = "SELECT count(*) FROM pg_locks WHERE pid = $1 AND relation = 'hold'::regclass"
            assert await other.fetchval(locks, connection.get_server_pid()) == 0
            assert (await connection.fetch_arrow("SELECT 1 AS one")).to_pylist() == [{"one": 1}]
            async with connection.transaction():
                with pytest.raises(error):
                    await attempt(connection)
                assert connection.is_in_transaction()
                # A cancellation may find the statement still under way, which then fails its transaction.
                if case not in {"server", "cancelled"}:
                    assert await connection.fetchval("SELECT 2") == 2
        finally:
            await connection.close()
            await other.execute("DROP TABLE hold")
            await other.close()

    run(fetch())
