"""`Connection.parameters`: the types of a statement's parameters, where the source tells them."""

import asyncio

import pyarrow as pa
import pytest

import longshore
from tests.contract.conftest import Database

CAN = "types of parameters"


@pytest.mark.parametrize("verb", ["SELECT", "INSERT"])
def test_types_of_parameters(database: Database, table: str, verb: str) -> None:
    temporal = "instant" if "timestamp" in database.quirks.cannot else "timestamp"
    columns = ", ".join(database.column(name, kind) for name, kind in (("i", "int32"), ("t", temporal)))
    database.execute(f"CREATE TABLE {table} ({columns})")
    one, other = (database.quirks.placeholder.format(n=n) for n in (1, 2))
    statement = (
        f"INSERT INTO {table} VALUES ({one}, {other})"
        if verb == "INSERT"
        else f"SELECT i FROM {table} WHERE i = {one} AND t < {other}"
    )
    with longshore.connect(database.url, autocommit=True) as connection, database.can(CAN):
        assert connection.parameters(statement).types == [pa.int32(), pa.timestamp("us")]
        assert connection.parameters("SELECT 1").types == []
    assert database.rows(table) == []


def test_the_connection_goes_on(database: Database) -> None:
    with longshore.connect(database.url, autocommit=True) as connection:
        with database.can(CAN):
            connection.parameters("SELECT 1")
        if CAN not in database.quirks.cannot:
            with pytest.raises(longshore.ProgrammingError):
                connection.parameters("SELECT nothing FROM nowhere")
        assert database.rows("SELECT 1 AS n", connection) == [(1,)]


def test_a_statement_that_is_none(database: Database) -> None:
    with longshore.connect(database.url) as connection:
        for statement in (7, None, b"SELECT 1"):
            with pytest.raises(longshore.InterfaceError, match="a statement is a text"):
                connection.parameters(statement)  # type: ignore[arg-type]


def test_in_asyncio(database: Database) -> None:
    async def types() -> list[pa.DataType]:
        async with await longshore.connect_async(database.url) as connection:
            schema = await connection.parameters(f"SELECT {database.quirks.placeholder.format(n=1)}")
            return list(schema.types)

    with database.can(CAN):
        assert asyncio.run(types()) == [pa.string()]
