"""Every way to fetch gives the same arrays, and every other method does what asyncpg's does."""

import asyncio
import pickle
from collections.abc import Callable
from typing import Any

import asyncpg as original
import numpy as np
import pytest

import longshore
from longshore import asyncpg
from longshore.asyncpg import set_query_dtype
from tests.asyncpg.comparing import DTYPE, assert_rows, rows
from tests.asyncpg.conftest import Run

pytestmark = [pytest.mark.packages, pytest.mark.pythons]

DTYPES = [("i", "i4"), ("f", "f8")]


def test_a_connection_fetches_arrays_and_records(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        query = set_query_dtype(rows(5000), DTYPE)
        for _ in range(3):
            assert_rows(await connection.fetch(query), 1, 5000)
            records = await connection.fetch(rows(10))
            assert [record["t"] for record in records] == [f"t{number}" for number in range(1, 11)]
        await connection.close()

    run(fetch())


def test_arguments_are_bound(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        query = set_query_dtype(
            "SELECT $1::int4 + i, $2::text FROM generate_series(1, $3) i", [("a", "i4"), ("b", "U3")]
        )
        array, nulls = await connection.fetch(query, 10, "äöü", 2)
        assert (array.tolist(), nulls) == ([(11, "äöü"), (12, "äöü")], [])
        array, nulls = await connection.fetch(query, None, None, 1)
        assert nulls == [0, 1]
        with pytest.raises(original.InterfaceError, match="expects 3 arguments"):
            await connection.fetch(query, 1)
        await connection.close()

    run(fetch())


def test_a_pool_fetches_arrays(run: Run, url: str) -> None:
    async def fetch() -> None:
        query = set_query_dtype(rows(2000), DTYPE)
        async with asyncpg.create_pool(url, min_size=1, max_size=3) as pool:
            for got in await asyncio.gather(*(pool.fetch(query) for _ in range(12))):
                assert_rows(got, 1, 2000)
            async with pool.acquire() as connection:
                assert isinstance(connection, asyncpg.Connection)
                assert_rows(await connection.fetch(query), 1, 2000)

    run(fetch())


def test_a_pool_takes_its_options_as_asyncpgs_does(run: Run, url: str) -> None:
    class Own(asyncpg.Connection):
        __slots__ = ()

    async def fetch() -> None:
        async def begin(connection: Any) -> None:
            await connection.execute("SET application_name = 'begun'")

        async with asyncpg.create_pool(dsn=url, min_size=1, max_size=1, init=begin, connection_class=Own) as pool:
            assert await pool.fetchval("SHOW application_name") == "begun"
            assert_rows(await pool.fetch(set_query_dtype(rows(3), DTYPE)), 1, 3)
            assert pool.get_max_size() == 1

    run(fetch())


def test_a_prepared_statement_keeps_its_dtype(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        query = set_query_dtype(rows(300), DTYPE)
        statement = await connection.prepare(query)
        plain = await connection.prepare(rows(300))
        for _ in range(2):
            assert_rows(await statement.fetch(), 1, 300)
            assert statement.get_statusmsg() == "SELECT 300"
            assert len(await plain.fetch()) == 300
        assert (statement.get_query(), plain.get_query()) == (rows(300), rows(300))
        assert (await statement.fetchrow())["i"] == 1
        assert await statement.fetchval(column=3) == "t1"
        assert (await statement.explain())[0]["Plan"]
        await connection.close()
        with pytest.raises(original.InterfaceError, match="closed"):
            await statement.fetch()

    run(fetch())


def test_a_cursor_fetches_arrays(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        query = set_query_dtype(rows(250), DTYPE)
        async with connection.transaction():
            statement = await connection.prepare(query)
            for cursor in (await connection.cursor(query), await statement.cursor()):
                assert_rows(await cursor.fetch(100), 1, 100)
                assert await cursor.forward(50) == 50
                assert (await cursor.fetchrow())["i"] == 151
                assert_rows(await cursor.fetch(100), 152, 250)
                array, nulls = await cursor.fetch(100)
                assert (array.dtype, len(array), nulls) == (DTYPE, 0, [])
                with pytest.raises(original.InterfaceError, match="greater than zero"):
                    await cursor.fetch(0)
            assert [record["i"] async for record in connection.cursor(query, prefetch=7)] == list(range(1, 251))
            plain = await connection.cursor(rows(3))
            assert [record["i"] for record in await plain.fetch(5)] == [1, 2, 3]
        with pytest.raises(original.NoActiveSQLTransactionError):
            await connection.cursor(query)
        await connection.close()

    run(fetch())


def test_a_transaction_sees_its_own_rows_and_knows_its_state(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        query = set_query_dtype("SELECT * FROM berths", [("number", "i4")])
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute("CREATE TEMP TABLE berths AS SELECT 7 AS number")
        array, _ = await connection.fetch(query)
        assert array.tolist() == [(7,)]
        assert connection.is_in_transaction()
        with pytest.raises(original.DivisionByZeroError):
            await connection.fetch(set_query_dtype("SELECT 1 / (3 - i) FROM generate_series(1, 3) i", [("a", "i4")]))
        with pytest.raises(original.InFailedSQLTransactionError):
            await connection.fetch(query)
        await transaction.rollback()
        assert not connection.is_in_transaction()
        with pytest.raises(original.UndefinedTableError):
            await connection.fetch(query)
        await connection.close()

    run(fetch())


def test_the_methods_that_give_no_arrays_are_asyncpgs(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        query = set_query_dtype("SELECT 1 AS one, 'x' AS x", [("one", "i4"), ("x", "S1")])
        assert dict(await connection.fetchrow(query)) == {"one": 1, "x": "x"}
        assert await connection.fetchval(query, column=1) == "x"
        assert await connection.execute(query) == "SELECT 1"
        insert = set_query_dtype("INSERT INTO crates VALUES ($1) RETURNING id", [("id", "i4")])
        await connection.execute("CREATE TEMP TABLE crates (id int4)")
        await connection.executemany(insert, [(1,), (2,)])
        assert await connection.execute(insert, 3) == "INSERT 0 1"
        array, _ = await connection.fetch(insert, 4)
        assert array.tolist() == [(4,)]
        assert await connection.fetchval("SELECT array_agg(id) FROM crates") == [1, 2, 3, 4]
        await connection.close()

    run(fetch())


def test_dtypes_of_one_text_do_not_mix(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        text = "SELECT 1 AS a, '2020-01-01 12:00'::timestamp AS b"
        units: list[Any] = ["s", "h", "D", "s"]
        for unit in units:
            array, _ = await connection.fetch(set_query_dtype(text, [("a", "i4"), ("b", f"M8[{unit}]")]))
            assert array["b"][0] == np.datetime64("2020-01-01T12:00", unit)
        array, _ = await connection.fetch(set_query_dtype(text, "auto"))
        assert array.dtype == np.dtype([("a", "i4"), ("b", "M8[us]")])
        array, _ = await connection.fetch(set_query_dtype(text, "auto", block=True))
        assert array["a"].tolist() == [1]
        await connection.close()

    run(fetch())


def test_a_statement_without_a_cache_is_prepared_each_time(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url, statement_cache_size=0)
        for _ in range(2):
            assert_rows(await connection.fetch(set_query_dtype(rows(100), DTYPE)), 1, 100)
        await connection.close()

    run(fetch())


def test_a_table_that_was_altered_is_described_again(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        await connection.execute("CREATE TEMP TABLE piers AS SELECT 1::int4 AS a")
        query = set_query_dtype("SELECT * FROM piers", "auto")
        assert (await connection.fetch(query))[0].tolist() == [(1,)]
        await connection.execute("ALTER TABLE piers ALTER a TYPE int8, ADD b bool DEFAULT true")
        array, _ = await connection.fetch(query)
        assert (array.dtype, array.tolist()) == (np.dtype([("a", "i8"), ("b", "?")]), [(1, True)])
        await connection.close()

    run(fetch())


@pytest.mark.skipif(not hasattr(original.Connection, "query_logger"), reason="asyncpg has it from 0.29 on")
def test_queries_with_a_dtype_are_logged(run: Run, url: str) -> None:
    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        logged: list[Any] = []
        with connection.query_logger(logged.append):
            await connection.fetch(set_query_dtype("SELECT $1::int4", [("a", "i4")]), 7)
        await asyncio.sleep(0)
        assert [(record.query, record.args) for record in logged] == [("SELECT $1::int4", (7,))]
        await connection.close()

    run(fetch())


def test_what_is_asyncpgs_is_here_too() -> None:
    for name in original.__all__:
        assert hasattr(asyncpg, name), name
    assert asyncpg.exceptions is original.exceptions
    assert asyncpg.UniqueViolationError is original.UniqueViolationError
    assert asyncpg.__version__ == original.__version__
    assert set(original.__all__) <= set(asyncpg.__all__) <= set(dir(asyncpg))
    assert issubclass(asyncpg.Connection, original.Connection)
    assert issubclass(asyncpg.Pool, original.Pool)
    with pytest.raises(AttributeError):
        _ = asyncpg.no_such_name


def test_a_query_has_its_text_and_its_dtype() -> None:
    query = set_query_dtype("SELECT 1", [("a", "i4")])
    assert (query.text, type(query.text), query.endswith("SELECT 1")) == ("SELECT 1", str, True)
    again = set_query_dtype(query, "auto")
    assert (again.text, again.layout) == ("SELECT 1", None)
    for each in (query, again, set_query_dtype("SELECT 1", [("a", "i4")], block=True)):
        copied = pickle.loads(pickle.dumps(each))  # noqa: S301
        assert (copied, copied.text, copied.layout, copied.block) == (each, each.text, each.layout, each.block)


@pytest.mark.parametrize(
    ("dtype", "kind", "problem"),
    [
        (None, ValueError, "has a field for each column"),
        (np.int64, ValueError, "has a field for each column"),
        ("i4", ValueError, "has a field for each column"),
        (np.dtype("f8"), ValueError, "has a field for each column"),
        ([("a", ">i4")], ValueError, "byte order"),
        (1, TypeError, "1 is not a NumPy dtype"),
        ("nosuch", TypeError, "'nosuch' is not a NumPy dtype"),
        ([("a", "i4"), ("a", "i4")], TypeError, "is not a NumPy dtype"),
        (pickle.dumps(np.dtype("i4")), TypeError, "may run as a program"),
    ],
)
def test_dtypes_that_are_none(dtype: Any, kind: type[Exception], problem: str) -> None:
    with pytest.raises(kind, match=problem) as caught:
        set_query_dtype("SELECT 1", dtype)
    assert isinstance(caught.value, longshore.InterfaceError)


COMPOSED: dict[str, Callable[[str], str]] = {
    "after a comment": lambda query: "-- c\n" + query,
    "within a text": lambda query: f"{query} LIMIT 2",
    "stripped": lambda query: query.strip(),
    "with more": lambda query: query + " LIMIT 2",
    "formatted": "{} LIMIT 2".format,
    "by percent": lambda query: "%s LIMIT 2" % query,  # noqa: UP031
    "joined": lambda query: " ".join(iter([query, "LIMIT", "2"])),
    "of lines": lambda query: "\n".join(line.strip() for line in query.splitlines()),
    "in upper case": lambda query: query.upper(),
    "in lower case": lambda query: query.lower(),
    "replaced": lambda query: query.replace("i,", "i ,"),
    "as a text": str,
    "a union": lambda query: f"{query} UNION ALL {query} ORDER BY 1",
}


@pytest.mark.parametrize("name", COMPOSED)
def test_a_composed_query_keeps_its_dtype(name: str, run: Run, url: str) -> None:
    query = COMPOSED[name](set_query_dtype("SELECT i, i * 0.5::float8 AS f\nFROM generate_series(1, 2) i", DTYPES))

    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        statement = await connection.prepare(query)
        async with connection.transaction():
            cursor = await connection.cursor(query)
            for array, nulls in (await connection.fetch(query), await statement.fetch(), await cursor.fetch(9)):
                assert (array.dtype, nulls) == (np.dtype(DTYPES), [])
                assert sorted(set(array.tolist())) == [(1, 0.5), (2, 1.0)]
        assert await connection.fetchval(query) == 1
        assert (await connection.fetch_arrow(query)).num_columns == 2
        await connection.close()

    run(fetch())


def test_a_composed_query_without_its_dtype_is_refused(run: Run, url: str) -> None:
    one, two = set_query_dtype("SELECT 1", [("a", "i4")]), set_query_dtype("SELECT 2", [("b", "i4")])
    digit = one[5]

    async def fetch() -> None:
        connection = await asyncpg.connect(url)
        for query in (f"{one} UNION {two}", one.replace(digit, "1" if digit != "1" else "2")):
            for method in (connection.fetch, connection.fetchrow, connection.execute, connection.prepare):
                with pytest.raises(longshore.InterfaceError, match="give set_query_dtype the whole query"):
                    await method(query)
        with pytest.raises(asyncpg.DTypeError, match="the dtype has 1 fields, and the query 2 columns"):
            await connection.fetch(f"SELECT *, 1 FROM ({one}) AS t")
        assert (await connection.fetch("/*# a comment #*/ SELECT 1"))[0][0] == 1
        await connection.close()

    run(fetch())
