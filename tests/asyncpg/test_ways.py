"""The ways to a server: Unix sockets, TLS, and PgBouncer."""

import asyncio
import ssl

import asyncpg as original
import pytest

from longshore import asyncpg
from longshore.asyncpg import set_query_dtype
from tests.asyncpg.comparing import DTYPE, assert_rows, rows
from tests.asyncpg.conftest import Run
from tests.certificates import Certificates
from tests.servers import PgBouncer, PostgreSQL

pytestmark = [pytest.mark.packages, pytest.mark.pythons]

QUERY = set_query_dtype(rows(30_000), DTYPE)
FEW = set_query_dtype(rows(10), DTYPE)
# Not endless: over TLS, a cancel request of asyncpg's now and then comes to nothing, with its own fetch too.
LONG = set_query_dtype("SELECT generate_series(1, 5000000)", [("i", "i4")])


async def fetch_all(connection: asyncpg.Connection) -> None:
    for query, count in ((QUERY, 30_000), (FEW, 10), (QUERY, 30_000)):
        assert_rows(await connection.fetch(query), 1, count)
        assert len(await connection.fetch(rows(count))) == count
    with pytest.raises(TimeoutError):
        await connection.fetch(LONG, timeout=0.1)
    assert_rows(await connection.fetch(FEW), 1, 10)
    with pytest.raises(original.DivisionByZeroError):
        await connection.fetch(set_query_dtype("SELECT 1 / (9 - i) FROM generate_series(1, 99) i", [("i", "i4")]))
    assert_rows(await connection.fetch(FEW), 1, 10)


@pytest.mark.once
def test_a_unix_socket(make_server: object, run: Run) -> None:
    assert callable(make_server)
    server: PostgreSQL = make_server()

    async def fetch() -> None:
        connection = await asyncpg.connect(
            host=server.socket_directory, port=server.port, user="postgres", database="postgres"
        )
        await fetch_all(connection)
        await connection.close()

    run(fetch())


def test_tls(make_server: object, certificates: Certificates, run: Run) -> None:
    assert callable(make_server)
    server: PostgreSQL = make_server(certificates=certificates)

    async def fetch() -> None:
        context = ssl.create_default_context(cafile=str(certificates.authority))
        connection = await asyncpg.connect(server.url(), ssl=context)
        assert await connection.fetchval("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        await fetch_all(connection)
        await connection.close()

    run(fetch())


def test_pgbouncer(pgbouncer: PgBouncer, run: Run) -> None:
    async def fetch() -> None:
        async with asyncpg.create_pool(pgbouncer.url(), min_size=1, max_size=4, statement_cache_size=0) as pool:
            async with pool.acquire() as connection:
                await fetch_all(connection)
            for got in await asyncio.gather(*(pool.fetch(FEW) for _ in range(20))):
                assert_rows(got, 1, 10)

    run(fetch())
