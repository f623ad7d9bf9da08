"""Tables and frames next to records: what ``read_sql`` gives, over asyncpg's connection."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from typing import Any

import asyncpg as original
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import longshore
from longshore import asyncpg
from longshore.errors import (
    DataError,
    InterfaceError,
    MemoryLimitError,
    NotSupportedError,
)
from tests.asyncpg.conftest import Run
from tests.conformance import plain, postgresql
from tests.conformance.case import Case
from tests.conformance.cases import CASES
from tests.fixtures import Place
from tests.servers import PgBouncer

pytestmark = [pytest.mark.packages, pytest.mark.pythons]

MIXED = """
    SELECT i AS id, i * 1.5::numeric(12, 3) AS length, i / 3.0 AS third, 'berth ' || i AS name, ARRAY[i, NULL] AS list,
           ('10.0.0.' || i % 250)::inet AS host, int4range(i, i + 5) AS span, NULLIF(i % 2 = 0, true) AS even,
           timestamptz '2026-01-01 UTC' + i * interval '1 hour' AS due, ROW(i, 'x') AS pair, point(i, 0.1) AS spot
    FROM generate_series(1, {rows}) AS i"""


def assert_same(table: pa.Table, expected: pa.Table) -> None:
    assert table.schema.equals(expected.schema, check_metadata=True)
    assert table.equals(expected)


@pytest.fixture(scope="module")
def sessions() -> Iterator[Callable[[str], longshore.Connection]]:
    """Give a connection to each server, which all cases share."""
    with ExitStack() as stack:
        yield cache(lambda url: stack.enter_context(longshore.connect(url)))


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{number}-{case.type}") for number, case in enumerate(CASES)])
def test_every_type_is_as_in_read_sql(
    case: Case, place: Place, sessions: Callable[[str], longshore.Connection]
) -> None:
    cells = case.cells if case.query else {"NULL": None, **case.cells}
    setup, query = postgresql.setup(case, list(cells)), postgresql.query(case)
    session = sessions(place(case))
    for statement in setup:
        session.execute(statement)
    expected: dict[str, Any] = {
        protocol: longshore.read_sql(query, session, return_type="arrow", options={"protocol": protocol})
        for protocol in postgresql.PROTOCOLS
    }
    session.rollback()

    async def fetch() -> None:
        connection = await asyncpg.connect(place(case))
        for statement in setup:
            await connection.execute(statement)
        for protocol, there in expected.items():
            table = await connection.fetch_arrow(query, options={"protocol": protocol})
            assert plain.values(table["value"]) == plain.values(there["value"])
            assert table.schema.equals(there.schema, check_metadata=True)
            empty = await connection.fetch_arrow(postgresql.query(case, "false"), options={"protocol": protocol})
            assert empty.num_rows == 0
            assert empty.schema.names == there.schema.names
        await connection.close()

    asyncio.run(fetch())


@pytest.mark.parametrize("rows", [0, 1, 1000, pytest.param(20_000, marks=pytest.mark.once)])
def test_long_and_empty_results(rows: int, run: Run, url: str) -> None:
    query = MIXED.format(rows=rows)
    expected = longshore.read_sql(query, url, return_type="arrow")

    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        for _ in range(2):
            assert_same(await connection.fetch_arrow(query), expected)
            assert len(await connection.fetch(query)) == rows
        await connection.close()

    run(fetch())


def test_every_frame(run: Run, url: str) -> None:
    query = (
        "SELECT i AS id, i / 3.0 AS third, 'b' || i AS name, date '2026-01-01' + i AS day FROM generate_series(1, 99) i"
    )

    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        with pytest.warns(longshore.DataWarning, match="third"):
            pandas = await connection.fetch_df(query)
        with pytest.warns(longshore.DataWarning, match="third"):
            pd.testing.assert_frame_equal(pandas, longshore.read_sql(query, url))
        backed = await connection.fetch_df(query, dtype_backend="pyarrow", index_col="id")
        expected = longshore.read_sql(query, url, dtype_backend="pyarrow", index_col="id")
        pd.testing.assert_frame_equal(backed, expected)
        polars = await connection.fetch_polars(query)
        assert isinstance(polars, pl.DataFrame)
        assert polars.equals(longshore.read_sql(query, url, return_type="polars"))
        await connection.close()

    run(fetch())


def test_what_a_table_declares(run: Run, url: str) -> None:
    setup = [
        "CREATE TEMP TABLE berths (id int NOT NULL, length numeric(9, 2), name varchar(9), grid int[][], size numeric)",
        "INSERT INTO berths VALUES (1, 12.5, 'east', '{{1,2},{3,4}}', 1e20), (2, NULL, NULL, NULL, 0.001)",
    ]
    query = "SELECT * FROM berths ORDER BY id"

    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        for statement in setup:
            await connection.execute(statement)
        expected = longshore.read_sql(query, url, return_type="arrow", pre_execution_query=setup)
        assert_same(await connection.fetch_arrow(query), expected)
        assert not expected.schema.field("id").nullable
        frame = await connection.fetch_df(query)
        pd.testing.assert_frame_equal(frame, longshore.read_sql(query, url, pre_execution_query=setup))
        await connection.execute("ALTER TABLE berths ALTER id TYPE text, ALTER id DROP NOT NULL")
        assert (await connection.fetch_arrow(query))["id"].to_pylist() == ["1", "2"]
        await connection.reload_schema_state()
        assert (await connection.fetch_arrow(query)).schema.field("id").nullable
        await connection.close()

    run(fetch())


def test_what_the_catalogue_has_told_is_kept_until_it_proves_wrong(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        await connection.execute("CREATE TYPE pg_temp.mood AS ENUM ('glad')")
        await connection.execute("CREATE TEMP TABLE crew (id int NOT NULL, mood pg_temp.mood)")
        await connection.execute("INSERT INTO crew VALUES (1, 'glad')")
        query = "SELECT * FROM crew"
        assert (await connection.fetch_arrow(query)).to_pylist() == [{"id": 1, "mood": "glad"}]
        for alter, row in (
            ("ALTER TYPE pg_temp.mood ADD VALUE 'sad'", "(2, 'sad')"),
            ("ALTER TABLE crew ALTER id DROP NOT NULL", "(NULL, 'glad')"),
        ):
            await connection.execute(alter)
            await connection.execute(f"INSERT INTO crew VALUES {row}")
            with pytest.raises(DataError, match="altered while the query ran"):
                await connection.fetch_arrow(query)
            await connection.fetch_arrow(query)
        assert len(await connection.fetch_arrow(query)) == 3
        await connection.execute("CREATE TYPE pg_temp.pair AS (a int, b text)")
        for kind in ("int", "float4", "text"):
            await connection.execute(f"ALTER TYPE pg_temp.pair ALTER ATTRIBUTE a TYPE {kind}")
            pair = connection.fetch_arrow("SELECT ROW('1065353216', 'x')::pg_temp.pair AS pair")
            if kind != "int":
                with pytest.raises(DataError):
                    await pair
                pair = connection.fetch_arrow("SELECT ROW('1065353216', 'x')::pg_temp.pair AS pair")
            number = 1065353216 if kind != "text" else "1065353216"
            assert (await pair).to_pylist() == [{"pair": {"a": number, "b": "x"}}]
        await connection.close()

    run(fetch())


def test_arguments_are_asyncpgs_own(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        await connection.execute("CREATE TYPE pg_temp.mood AS ENUM ('glad', 'sad')")
        table = await connection.fetch_arrow(
            "SELECT $1::pg_temp.mood AS mood, $2::int[] AS list, $3::text AS name, $4::pg_temp.mood[] AS moods",
            "sad", [1, None], "äöü", ["glad", None],
        )  # fmt: skip
        assert table.to_pylist() == [{"mood": "sad", "list": [1, None], "name": "äöü", "moods": ["glad", None]}]
        with pytest.raises(original.InterfaceError, match="expects 1 argument"):
            await connection.fetch_arrow("SELECT $1::int")
        with pytest.raises(original.DataError, match="invalid input for query argument"):
            await connection.fetch_arrow("SELECT $1::int", "one")
        assert (await connection.fetch_arrow("SELECT $1::int AS one", 1)).to_pylist() == [{"one": 1}]
        await connection.close()

    run(fetch())


def test_codecs_of_the_callers_change_nothing(run: Run, url: str) -> None:
    query = "SELECT '\\x00ff'::bytea AS bytes, 1.5::float8 AS number, '(1,2)'::point AS point, 3::money AS money"

    async def fetch() -> None:
        expected = longshore.read_sql(query, url, return_type="arrow")
        connection = await asyncpg.connect(url)
        for name, form in (("bytea", "text"), ("float8", "text"), ("money", "binary"), ("text", "text")):
            await connection.set_type_codec(name, schema="pg_catalog", encoder=str, decoder=len, format=form)
            assert_same(await connection.fetch_arrow(query), expected)
        assert (await connection.fetchrow(query))["number"] == len("1.5")
        await connection.close()

    run(fetch())


def test_schema_and_options(run: Run, url: str) -> None:
    query = "SELECT 7 AS a, 1.25::numeric AS b, 'infinity'::date AS c, 'NaN'::numeric AS d"
    arguments: dict[str, Any] = {
        "schema": {"a": "string", "b": "decimal128(20, 4)"},
        "options": {"infinity": "null", "numeric_nan": "null"},
    }

    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        assert_same(
            await connection.fetch_arrow(query, **arguments),
            longshore.read_sql(query, url, return_type="arrow", **arguments),
        )
        with pytest.raises(InterfaceError, match="which the query does not return"):
            await connection.fetch_arrow(query, schema={"e": "int64"})
        with pytest.raises(MemoryLimitError):
            await connection.fetch_arrow("SELECT generate_series(1, 500000)", options={"memory_limit": "1 MiB"})
        assert (await connection.fetch_arrow("SELECT 1 AS one")).to_pylist() == [{"one": 1}]
        await connection.close()

    run(fetch())


def test_rounded_floats_in_text_are_refused(run: Run, url: str) -> None:
    query = "SELECT point(0.1::float8 + 0.2, 1) AS spot, 0.1::float8 + 0.2 AS sum"

    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        await connection.execute("SET extra_float_digits = 0")
        with pytest.raises(NotSupportedError, match="extra_float_digits"):
            await connection.fetch_arrow(query)
        assert (await connection.fetch_arrow("SELECT 0.1::float8 + 0.2 AS sum"))["sum"].to_pylist() == [0.1 + 0.2]
        await connection.execute("SET extra_float_digits = 3")
        assert_same(await connection.fetch_arrow(query), longshore.read_sql(query, url, return_type="arrow"))
        await connection.close()

    run(fetch())


def test_another_encoding_is_refused(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        await connection.execute("SET client_encoding = 'LATIN1'")
        with pytest.raises(InterfaceError, match="client_encoding"):
            await connection.fetch_arrow("SELECT 'ä'")
        await connection.execute("SET client_encoding = 'UTF8'")
        assert (await connection.fetch_arrow("SELECT 'ä' AS a")).to_pylist() == [{"a": "ä"}]
        await connection.close()

    run(fetch())


def test_a_pool_and_transactions(run: Run, url: str) -> None:
    async def fetch() -> None:
        async with asyncpg.create_pool(url, min_size=1, max_size=3) as pool:
            query = MIXED.format(rows=2000)
            expected = longshore.read_sql(query, url, return_type="arrow")
            for table in await asyncio.gather(*[pool.fetch_arrow(query) for _ in range(6)]):
                assert_same(table, expected)
            assert (await pool.fetch_df("SELECT 1::int AS one"))["one"].tolist() == [1]
            assert (await pool.fetch_polars("SELECT 1 AS one")).rows() == [(1,)]
            async with pool.acquire() as connection, connection.transaction():
                await connection.execute("CREATE TEMP TABLE own ON COMMIT DROP AS SELECT 5 AS five")
                assert (await connection.fetch_arrow("SELECT * FROM own")).to_pylist() == [{"five": 5}]

    run(fetch())


def test_without_a_cache_of_statements(run: Run, url: str) -> None:
    query = MIXED.format(rows=500)
    expected = longshore.read_sql(query, url, return_type="arrow")

    async def fetch() -> None:
        connection = await asyncpg.connect(url, statement_cache_size=0)
        assert_same(await connection.fetch_arrow(query), expected)
        # All in binary, of a table that the catalogue is asked about.
        names = await connection.fetch_arrow("SELECT oid, relname FROM pg_catalog.pg_class WHERE oid = $1", 1247)
        assert names.to_pylist() == [{"oid": 1247, "relname": "pg_type"}]
        assert (await connection.fetch_arrow("SELECT 1 AS one")).to_pylist() == [{"one": 1}]
        await connection.close()

    run(fetch())


def test_pgbouncer(pgbouncer: PgBouncer, run: Run, url: str) -> None:
    query = MIXED.format(rows=500)
    expected = longshore.read_sql(query, url, return_type="arrow")

    async def fetch() -> None:
        async with asyncpg.create_pool(pgbouncer.url(), min_size=1, max_size=4, statement_cache_size=0) as pool:
            for table in await asyncio.gather(*[pool.fetch_arrow(query) for _ in range(12)]):
                assert_same(table, expected)
            assert await pool.fetchval("SELECT 2") == 2

    run(fetch())


def test_a_query_with_a_dtype_is_its_text(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        query = asyncpg.set_query_dtype("SELECT 1 AS one", [("one", "i4")])
        assert (await connection.fetch_arrow(query)).to_pylist() == [{"one": 1}]
        assert (await connection.fetch(query))[0].tolist() == [(1,)]
        await connection.close()

    run(fetch())


def test_long_values(run: Run, url: str) -> None:
    query = "SELECT repeat('x', i * 300000) AS long, '{}'::json AS j FROM generate_series(0, 12) i"

    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        assert_same(await connection.fetch_arrow(query), longshore.read_sql(query, url, return_type="arrow"))
        await connection.close()

    run(fetch())
