"""ADBC's driver for Flight SQL with a server of ours, whatever is served; statistics it has not itself."""

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from adbc_driver_flightsql import ConnectionOptions, StatementOptions
from adbc_driver_manager import OperationalError, ProgrammingError

import longshore
from tests.flight_server.conftest import BERTHS, Connect, client, client_with_session, made

Place = Callable[[int], str]


@pytest.fixture
def table(connect: Connect) -> Iterator[str]:
    """Give the name of a table that goes with what was made by it."""
    name = f"boats_{uuid.uuid4().hex[:8]}"
    yield name
    with connect().cursor() as cursor:
        cursor.adbc_statement.set_sql_query(f"DROP TABLE IF EXISTS {name}")
        cursor.adbc_statement.execute_update()


def rows(connection: Any, query: str, params: Any = None) -> list[tuple[Any, ...]]:
    """Run a query by a cursor of its own."""
    with connection.cursor() as cursor:
        cursor.execute(query, params)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


def update(connection: Any, statement: str) -> int:
    """Run a statement for the rows that it changes."""
    with connection.cursor() as cursor:
        cursor.adbc_statement.set_sql_query(statement)
        changed: int = cursor.adbc_statement.execute_update()
        return changed


def test_a_result_comes_with_its_schema(connect: Connect) -> None:
    with connect().cursor() as cursor:
        cursor.execute("SELECT berth, name FROM berths ORDER BY berth")
        assert cursor.fetch_arrow_table().cast(BERTHS.schema) == BERTHS
        schema = cursor.adbc_execute_schema("SELECT berth, name FROM berths")
        assert (schema.names, schema.types) == (BERTHS.schema.names, BERTHS.schema.types)


def test_a_result_without_rows_has_its_columns(connect: Connect) -> None:
    with connect().cursor() as cursor:
        cursor.execute("SELECT berth, name FROM berths WHERE berth < 0")
        found = cursor.fetch_arrow_table()
    assert (found.num_rows, found.schema.types) == (0, BERTHS.schema.types)


def test_parameters_are_bound(connect: Connect, place: Place) -> None:
    query = f"SELECT name FROM berths WHERE berth = {place(1)} OR name = {place(2)} ORDER BY berth"
    assert rows(connect(), query, (3, "quay 7")) == [("quay 3",), ("quay 7",)]


def test_each_set_of_parameters_is_a_part_of_the_result(connect: Connect, place: Place) -> None:
    with connect().cursor() as cursor:
        cursor.adbc_statement.set_sql_query(f"SELECT name FROM berths WHERE berth = {place(1)}")
        cursor.adbc_statement.prepare()
        cursor.adbc_statement.bind_stream(pa.table({"berth": [2, 5]}).to_reader())
        handle, _ = cursor.adbc_statement.execute_query()
        found = pa.RecordBatchReader.from_stream(handle).read_all()
    assert found["name"].to_pylist() == ["quay 2", "quay 5"]


def test_the_schema_of_parameters_is_told(connect: Connect, place: Place, target: str) -> None:
    with connect().cursor() as cursor:
        schema = cursor.adbc_prepare(f"SELECT name FROM berths WHERE berth = {place(1)} AND name = {place(2)}")
        # SQLite tells nothing of them.
        known = None if target.startswith("sqlite") else [pa.int64(), pa.string()]
        assert (schema and schema.types) == known


def test_the_partitions_of_a_result_are_read_by_others(connect: Connect) -> None:
    """One by default: how large a result is, is not known when its first rows are there."""
    with connect().cursor() as cursor, connect().cursor() as other:
        partitions, schema = cursor.adbc_execute_partitions("SELECT berth, name FROM berths ORDER BY berth")
        assert (len(partitions), schema.names) == (1, BERTHS.schema.names)
        other.adbc_read_partition(partitions[0])
        assert other.fetch_arrow_table().cast(BERTHS.schema) == BERTHS
        with pytest.raises(Exception, match="there is no such result"):
            cursor.adbc_read_partition(partitions[0])


def test_changes_are_counted(connect: Connect, place: Place, table: str) -> None:
    connection = connect()
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} (boat BIGINT PRIMARY KEY, name VARCHAR(20))")
        cursor.executemany(f"INSERT INTO {table} VALUES ({place(1)}, {place(2)})", [(1, "Ada"), (2, "Bo"), (3, None)])
        assert cursor.rowcount == 3
    assert update(connection, f"UPDATE {table} SET name = 'Cy' WHERE boat > 1") == 2
    assert rows(connection, f"SELECT boat, name FROM {table} ORDER BY boat") == [(1, "Ada"), (2, "Cy"), (3, "Cy")]


def test_many_changes_are_all_or_none(connect: Connect, place: Place, table: str) -> None:
    connection = connect()
    update(connection, f"CREATE TABLE {table} (boat BIGINT PRIMARY KEY)")
    with connection.cursor() as cursor, pytest.raises(Exception, match=r"(?i)unique|duplicate|constraint|key"):
        cursor.executemany(f"INSERT INTO {table} VALUES ({place(1)})", [(1,), (2,), (1,)])
    assert rows(connection, f"SELECT count(*) FROM {table}") == [(0,)]


def test_a_transaction_is_rolled_back_or_committed(connect: Connect, table: str) -> None:
    update(connect(), f"CREATE TABLE {table} (boat BIGINT)")
    writer, reader = connect(autocommit=False), connect()
    with writer.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table} VALUES (1)")
        assert rows(writer, f"SELECT count(*) FROM {table}") == [(1,)]
        assert rows(reader, f"SELECT count(*) FROM {table}") == [(0,)]
        writer.rollback()
        # The driver runs the statement that it has prepared in the transaction before.
        cursor.execute(f"INSERT INTO {table} VALUES (1)")
        writer.commit()
    assert rows(reader, f"SELECT count(*) FROM {table}") == [(1,)]


def test_a_result_that_is_not_read_leaves_the_transaction_free(connect: Connect) -> None:
    connection = connect(autocommit=False)
    with connection.cursor() as left, connection.cursor() as other:
        left.execute("SELECT berth FROM berths")
        other.execute("SELECT count(*) FROM berths")
        assert other.fetchall() == [(10,)]
    connection.rollback()


@pytest.mark.parametrize("mode", ["create", "append", "replace", "create_append"])
def test_rows_are_ingested(connect: Connect, table: str, mode: Any) -> None:
    connection = connect()
    boats = pa.table({"boat": pa.array([1, 2], pa.int64()), "name": ["Ada", None]})
    with connection.cursor() as cursor:
        if mode in {"append", "replace"}:
            cursor.adbc_ingest(table, boats, mode="create")
        assert cursor.adbc_ingest(table, boats, mode=mode) == 2
        count = 4 if mode == "append" else 2
        cursor.execute(f"SELECT boat, name FROM {table} ORDER BY boat")
        assert cursor.fetchall() == [(1, "Ada")] * (count // 2) + [(2, None)] * (count // 2)
        if mode == "create":
            with pytest.raises(ProgrammingError, match=r"there already|already exists"):
                cursor.adbc_ingest(table, boats, mode="create")


def test_a_temporary_table_is_not_left_in_a_session_that_others_have(connect: Connect, table: str) -> None:
    boats = pa.table({"boat": pa.array([1, 2], pa.int64())})
    with connect().cursor() as cursor, pytest.raises(Exception, match="in a transaction"):
        cursor.adbc_ingest(table, boats, mode="create", temporary=True)


@pytest.mark.parametrize("depth", ["catalogs", "db_schemas", "tables"])
def test_the_catalogue_is_listed_to_a_depth(connect: Connect, target: str, depth: Any) -> None:
    catalogs = connect().adbc_get_objects(depth=depth, table_name_filter="berths").read_all().to_pylist()
    schemas = [schema for catalog in catalogs for schema in catalog["catalog_db_schemas"] or []]
    tables = [table for schema in schemas for table in schema["db_schema_tables"] or []]
    assert bool(catalogs) is (depth != "catalogs" or not target.startswith("sqlite"))
    assert bool(schemas) is (depth != "catalogs")
    assert [table["table_name"] for table in tables] == (["berths"] if depth == "tables" else [])
    assert all(table["table_columns"] is None for table in tables)


def test_the_catalogue_is_listed(connect: Connect) -> None:
    connection = connect()
    objects = connection.adbc_get_objects(depth="all", table_name_filter="berths").read_all().to_pylist()
    tables = [
        table
        for catalog in objects
        for schema in catalog["catalog_db_schemas"] or []
        for table in schema["db_schema_tables"]
    ]
    assert {table["table_name"] for table in tables} == {"berths"}
    assert [column["column_name"] for column in tables[0]["table_columns"]] == ["berth", "name"]
    assert "table" in connection.adbc_get_table_types()
    schema = connection.adbc_get_table_schema("berths")
    assert (schema.names, schema.types) == (BERTHS.schema.names, BERTHS.schema.types)
    assert connection.adbc_get_info()["vendor_name"] in {"DuckDB", "SQLite", "PostgreSQL"}


def listed(connection: Any, **options: Any) -> list[tuple[str, str, dict[str, Any]]]:
    """Give the catalogue, the schema and what is told of each table."""
    return [
        (catalog["catalog_name"], schema["db_schema_name"], table)
        for catalog in connection.adbc_get_objects(**options).read_all().to_pylist()
        for schema in catalog["catalog_db_schemas"] or []
        for table in schema["db_schema_tables"] or []
    ]


def test_tables_are_found_and_made_by_catalogue_and_schema(connect: Connect, table: str) -> None:
    connection = connect()
    ((catalog, schema, _),) = listed(connection, depth="tables", table_name_filter="berths")
    boats = pa.table({"boat": pa.array([1], pa.int64()), "name": ["Ada"]})
    with connection.cursor() as cursor:
        names = {"catalog_name": catalog or None, "db_schema_name": schema or None}
        assert cursor.adbc_ingest(table, boats, mode="create", **names) == 1
    for wrong, words in (("catalog_name", "is not the current catalog"), ("db_schema_name", r"no_such_one|no schemas")):
        with connection.cursor() as cursor, pytest.raises(Exception, match=words):
            cursor.adbc_ingest(table, boats, mode="append", **{wrong: "no_such_one"})
    found = listed(connection, table_name_filter=table, db_schema_filter=schema or None, column_name_filter="n%")
    ((*place, told),) = found
    assert place == [catalog, schema]
    assert [column["column_name"] for column in told["table_columns"]] == ["name"]
    assert listed(connection, table_name_filter=table, catalog_filter="no_such_catalogue") == []
    assert listed(connection, table_name_filter=table, table_types_filter=["view"]) == []
    assert connection.adbc_get_table_schema(table, db_schema_filter=schema or None).names == ["boat", "name"]
    with pytest.raises(ProgrammingError, match="NOT_FOUND"):
        connection.adbc_get_table_schema("no_such_table")


def test_a_session_has_options(tmp_path: Path) -> None:
    one, erased = (ConnectionOptions[f"OPTION_{what}SESSION_OPTION_PREFIX"].value for what in ("", "ERASE_"))
    with (
        longshore.serve(made("duckdb", tmp_path), port=0) as server,
        client_with_session(server) as connection,
        connection.cursor() as cursor,
    ):
        session = connection.adbc_connection
        session.set_options(**{f"{one}longshore.parts": "2"})
        assert session.get_option_int(f"{one}longshore.parts") == 2
        assert len(cursor.adbc_execute_partitions("SELECT * FROM range(10)")[0]) == 2
        session.set_options(**{f"{erased}longshore.parts": ""})
        options = json.loads(session.get_option(ConnectionOptions.OPTION_SESSION_OPTIONS.value))
        assert options == {"catalog": "a", "schema": "main"}
        connection.adbc_current_catalog = "a"
        for name, value, fault in (
            ("moorings", "2", "name"),
            ("longshore.parts", "0", "value"),
            ("catalog", "b", "value"),
        ):
            with pytest.raises(ProgrammingError, match=f"'{name}' \\(invalid {fault}\\)"):
                session.set_options(**{one + name: value})


def test_a_call_has_the_clients_deadline(tmp_path: Path) -> None:
    with (
        longshore.serve(made("duckdb", tmp_path), port=0, max_sessions=1) as server,
        client(server, autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        cursor.adbc_statement.set_options(**{StatementOptions.TIMEOUT_QUERY.value: "0.05"})
        # The client or the server, whoever sees first that it is over.
        with pytest.raises(OperationalError, match=r"deadline exceeded|Timeout expired"):
            cursor.execute("SELECT count(*) FROM range(1000000) a, range(1000000) b")
        # There is one session, which the statement has until it ends.
        assert rows(connection, "SELECT count(*) FROM berths") == [(10,)]


def test_an_error_says_what_the_database_says(connect: Connect) -> None:
    with connect().cursor() as cursor, pytest.raises(ProgrammingError, match="no_such_table") as caught:
        cursor.execute("SELECT 1 FROM no_such_table")
    assert "INVALID_ARGUMENT" in str(caught.value)


def test_several_clients_read_at_once(server: longshore.Server) -> None:
    found: list[int] = []

    def read() -> None:
        with client(server, autocommit=True) as connection:
            found.extend(sum(berth for (berth,) in rows(connection, "SELECT berth FROM berths")) for _ in range(3))

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [55] * 24


def test_a_cursor_with_parts_runs_its_query_once(connect: Connect) -> None:
    connection, other = connect(), connect()
    name = f"c_{uuid.uuid4().hex[:8]}"
    assert rows(connection, f"DECLARE {name} CURSOR FOR SELECT berth FROM berths LIMIT 7 INTO 3") == []
    parts = [rows(each, f"FETCH ALL FROM {part} OF {name}") for part, each in ((3, other), (1, connection), (2, other))]
    assert len({berth for part in parts for (berth,) in part}) == sum(map(len, parts)) == 7
    with pytest.raises(Exception, match="has been read"):
        rows(other, f"FETCH ALL FROM 1 OF {name}")
    rows(connection, f"CLOSE {name}")
