"""`Connection.tables` and `Connection.table_schema`: what a database holds."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.contract.conftest import Database

NAMES = ["catalog_name", "db_schema_name", "table_name", "table_type"]


@pytest.fixture
def view(database: Database, table: str) -> Iterator[str]:
    """Give a view over a table of two columns, of which one is NOT NULL."""
    columns = ", ".join((database.column("id", "int32", "NOT NULL"), database.column("odd name", "text")))
    name = f"{table}_view"
    database.execute(
        f"CREATE TABLE {table} ({columns})",
        f"INSERT INTO {table} VALUES (1, 'a')",
        f"CREATE VIEW {name} AS SELECT * FROM {table}",
    )
    yield name
    database.execute(f"DROP VIEW {name}")


def of(listed: Any, table: str) -> list[dict[str, Any]]:
    return [row for row in listed.to_pylist() if row["table_name"].startswith(table)]


def test_tables(database: Database, table: str, view: str) -> None:
    with longshore.connect(database.url, autocommit=True) as connection:
        listed = connection.tables()
        assert listed.schema.names == NAMES
        assert set(listed.schema.types) == {pa.string()}
        rows = of(listed, table)
        assert [(row["table_name"], row["table_type"]) for row in rows] == [(table, "table"), (view, "view")]
        # What is listed is found under the names that it is listed with.
        schemas = [connection.table_schema((row["db_schema_name"], row["table_name"])) for row in rows]
        assert [schema.names for schema in schemas] == [["id", "odd name"]] * 2


def test_no_table_of_the_system_is_listed(database: Database) -> None:
    with longshore.connect(database.url, autocommit=True) as connection:
        listed = {row["table_name"] for row in connection.tables().to_pylist()}
    assert not listed & {"pg_class", "tables", "user", "sqlite_schema", "sqlite_sequence", "duckdb_tables"}


def test_the_schema_of_a_table(database: Database, table: str, view: str) -> None:
    query: Any = f"SELECT * FROM {table}"
    with longshore.connect(database.url, autocommit=True) as connection:
        schema = connection.table_schema(table)
        assert schema.equals(longshore.schema(query, connection), check_metadata=True)
        assert schema.types[0] == database.quirks.types["int32"].arrow
        assert connection.table_schema(view).names == schema.names
        assert connection.table_schema(f'"{table}"') == schema
        if database.quirks.tells_not_null:
            assert [field.nullable for field in schema] == [False, True]


def test_a_table_that_is_not_there(database: Database) -> None:
    with longshore.connect(database.url, autocommit=True) as connection:
        with pytest.raises(longshore.ProgrammingError, match="no_such_table"):
            connection.table_schema("no_such_table")
        for name in ("", ("a", "b", "c"), 7, '"a'):
            with pytest.raises(longshore.InterfaceError):
                connection.table_schema(name)  # type: ignore[arg-type]
        assert database.rows("SELECT 1 AS n", connection) == [(1,)]


def test_in_asyncio(database: Database, table: str, view: str) -> None:
    async def found() -> tuple[list[str], list[str]]:
        async with await longshore.connect_async(database.url) as connection:
            listed = of(await connection.tables(), table)
            return [row["table_name"] for row in listed], (await connection.table_schema(view)).names

    assert asyncio.run(found()) == ([table, view], ["id", "odd name"])
