"""Through Python's driver manager: queries, parameters, ingestion, errors, cancelling, the catalogue."""

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from adbc_driver_manager import AdbcStatusCode, _lib, dbapi

import longshore
import longshore.adbc
from tests.contract.conftest import Database, wait
from tests.quirks import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adbc_driver_manager.dbapi import Connection

ROWS = pa.table({"id": [1, 2, 3], "name": ["Ada", None, "Böe"]})


def ingested(connection: "Connection", table: str, mode: Any = "create") -> int:
    with connection.cursor() as cursor:
        rows = cursor.adbc_ingest(table, ROWS, mode=mode)
    connection.commit()
    return rows


def read(cursor: Any, query: str) -> pa.Table:
    return cursor.execute(query).fetch_arrow_table()


def test_a_result_is_that_of_read_sql(database: Database, connection: "Connection", table: str) -> None:
    # Of what SQLite and MySQL have no literal for.
    columns = [name for name in COLUMNS if name not in {"uint64", "uuid"}]
    database.execute(f"CREATE TABLE {table} ({', '.join(database.column(f'c_{name}', name) for name in columns)})")
    for at in range(2):
        values = (database.quirks.literal(COLUMNS[name].held[at]) for name in columns)
        database.execute(f"INSERT INTO {table} VALUES ({', '.join(values)})")
    query: Any = f"SELECT * FROM {table}"
    with connection.cursor() as cursor:
        found = cursor.execute(query).fetch_arrow_table()
    with longshore.read_sql(query, database.url, return_type="arrow_stream") as stream:
        expected = pa.RecordBatchReader.from_stream(stream).read_all()
    assert found.schema.equals(expected.schema, check_metadata=True)
    assert found.equals(expected)
    assert found.num_rows == 2


def test_a_large_result_comes_in_batches(database: Database, connection: "Connection") -> None:
    with connection.cursor(adbc_stmt_kwargs={"longshore.batch_size": "1000"}) as cursor:
        cursor.execute(database.series(10_000))
        batches = list(cursor.fetch_record_batch())
    assert max(batch.num_rows for batch in batches) == 1000
    assert sorted(pa.Table.from_batches(batches).column(0).to_pylist()) == list(range(1, 10_001))


def test_statements_without_rows(database: Database, connection: "Connection", table: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} ({database.column('id', 'int64')})")
        assert cursor.fetchall() == []
        cursor.executemany(f"INSERT INTO {table} VALUES ({database.quirks.places(1)})", [(1,), (2,), (3,)])
        assert cursor.rowcount == 3
        cursor.execute(f"DELETE FROM {table} WHERE id > 1")
    connection.commit()
    assert database.rows(table) == [(1,)]


def test_parameters_are_bound(database: Database, connection: "Connection", table: str) -> None:
    with connection.cursor() as cursor:
        columns = ", ".join(
            database.column(f"c_{name}", name) for name in ("int64", "float64", "text", "binary", "date")
        )
        cursor.execute(f"CREATE TABLE {table} ({columns})")
        rows = pa.table(
            {
                "a": pa.array([2**63 - 1, None]),
                "b": pa.array([0.1, -0.0]),
                "c": pa.array(["ä€𝄞", ""], pa.large_string()),
                "d": pa.array([b"\0\xff", None], pa.binary()),
                "e": pa.array([19782, None], pa.date32()),
            }
        )
        cursor.executemany(f"INSERT INTO {table} VALUES ({database.quirks.places(5)})", rows)
        found = cursor.execute(f"SELECT * FROM {table} ORDER BY c_int64 IS NULL").fetch_arrow_table()
    assert [column.to_pylist() for column in found.columns] == [column.to_pylist() for column in rows.columns]


def test_a_query_runs_with_each_row_of_parameters(database: Database, connection: "Connection", table: str) -> None:
    assert ingested(connection, table) == 3
    with connection.cursor() as cursor:
        place = database.quirks.places(1)
        cursor.execute(f"SELECT name FROM {table} WHERE id = {place}", pa.record_batch({"id": [3, 1]}))
        assert cursor.fetchall() == [("Böe",), ("Ada",)]
        cursor.execute(f"SELECT name FROM {table} WHERE id = :id", {"id": 1})
        assert cursor.fetchall() == [("Ada",)]


def adding(database: Database, table: str) -> str:
    returned = "" if database.source == "mysql" else " RETURNING id"
    return f"INSERT INTO {table} VALUES ({database.quirks.places(1)}){returned}"


def test_all_sets_of_a_statement_are_run_whether_its_rows_are_read_or_not(
    database: Database, connection: "Connection", table: str
) -> None:
    database.execute(f"CREATE TABLE {table} ({database.column('id', 'int64')})")
    with connection.cursor() as cursor:
        cursor.execute(adding(database, table), pa.record_batch({"id": [1, 2, 3, 4]}))
    connection.commit()
    assert database.rows(table) == [(1,), (2,), (3,), (4,)]


def test_a_set_that_fails_undoes_all_of_them(database: Database, table: str) -> None:
    database.execute(f"CREATE TABLE {table} ({database.column('id', 'int64')} PRIMARY KEY)")
    with longshore.adbc.connect(database.url, autocommit=True) as connection, connection.cursor() as cursor:
        with pytest.raises(dbapi.IntegrityError):
            cursor.execute(adding(database, table), pa.record_batch({"id": [1, 2, 2]}))
        assert database.rows(table) == []
        cursor.execute(adding(database, table), pa.record_batch({"id": [1, 2]}))
        assert database.rows(table) == [(1,), (2,)]


def test_no_sets_give_no_rows(database: Database, connection: "Connection", table: str) -> None:
    assert ingested(connection, table) == 3
    none = pa.record_batch({"id": pa.array([], pa.int64())})
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT name FROM {table} WHERE id = {database.quirks.places(1)}", none)
        assert cursor.fetch_arrow_table().column_names == ["name"]
        cursor.execute(f"DELETE FROM {table} WHERE id = {database.quirks.places(1)}", none)
        assert cursor.fetch_arrow_table().num_rows == 0
        cursor.executemany(f"DELETE FROM {table} WHERE id = {database.quirks.places(1)}", none)
    connection.commit()
    assert len(database.rows(table)) == 3


def test_a_row_that_is_null_as_a_whole_is_refused(database: Database, connection: "Connection", table: str) -> None:
    database.execute(f"CREATE TABLE {table} ({database.column('id', 'int64')})")
    rows: Any = pa.StructArray.from_arrays([pa.array([1, 2])], ["id"], mask=pa.array([False, True]))
    insert = f"INSERT INTO {table} VALUES ({database.quirks.places(1)})"
    with connection.cursor() as cursor:
        statement = cursor.adbc_statement
        statement.set_sql_query(insert)
        with pytest.raises(dbapi.DataError, match="row 1 is NULL as a whole"):
            statement.bind(rows)
        statement.bind_stream(pa.chunked_array([rows]))
        with pytest.raises(dbapi.Error, match="row 1 is NULL as a whole"):
            statement.execute_update()
        connection.rollback()
        statement.set_options(**{"adbc.ingest.target_table": table, "adbc.ingest.mode": "adbc.ingest.mode.append"})
        statement.bind_stream(pa.chunked_array([rows]))
        with pytest.raises(dbapi.Error, match="row 1 is NULL as a whole"):
            statement.execute_update()
        connection.rollback()
    with connection.cursor() as cursor:
        cursor.executemany(insert, pa.record_batch({"id": [7]}))
    connection.commit()
    assert database.rows(table) == [(7,)]


def test_data_that_is_released_is_refused(connection: "Connection") -> None:
    with connection.cursor() as cursor:
        for _ in range(2):
            with pytest.raises(dbapi.ProgrammingError, match="released"):
                cursor.adbc_statement.bind(_lib.ArrowArrayHandle(), _lib.ArrowSchemaHandle())
            with pytest.raises(dbapi.ProgrammingError, match="released"):
                cursor.adbc_statement.bind_stream(_lib.ArrowArrayStreamHandle())
        assert cursor.execute("SELECT 1").fetchall() == [(1,)]


def test_an_error_has_the_row_of_all_that_is_bound(database: Database, connection: "Connection") -> None:
    times = pa.array([0, 0, 1], pa.timestamp("ns"))
    batches = [pa.record_batch({"at": times.slice(0, 2)}), pa.record_batch({"at": times.slice(2)})]
    rows = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    with connection.cursor() as cursor, pytest.raises(dbapi.DataError) as failed:
        cursor.executemany(f"SELECT {database.quirks.places(1)}", rows)
    details = {key.decode() if isinstance(key, bytes) else key: value.decode() for key, value in failed.value.details}
    assert (details["longshore.column"], details["longshore.row"]) == ("at", "2")


def test_rows_of_a_call_that_was_refused_are_bound_no_longer(connection: "Connection", table: str) -> None:
    assert ingested(connection, table) == 3
    with connection.cursor() as cursor:
        statement = cursor.adbc_statement
        statement.bind(pa.record_batch({"id": [1]}))
        with pytest.raises(dbapi.Error, match="no query"):
            statement.execute_update()
        statement.set_sql_query(f"DELETE FROM {table}")
        assert statement.execute_update() == 3


def test_all_modes_of_ingestion(database: Database, connection: "Connection", table: str) -> None:
    with pytest.raises(dbapi.Error) as failed:
        ingested(connection, table, "append")
    connection.rollback()
    assert table in str(failed.value)
    assert ingested(connection, table, "create_append") == 3
    with pytest.raises(dbapi.Error):
        ingested(connection, table, "create")
    connection.rollback()
    assert ingested(connection, table, "append") == 3
    assert len(database.rows(table)) == 6
    assert ingested(connection, table, "create_append") == 3
    assert len(database.rows(table)) == 9
    assert ingested(connection, table, "replace") == 3
    assert database.rows(table) == [(1, "Ada"), (2, None), (3, "Böe")]
    with connection.cursor() as cursor:
        reader = pa.RecordBatchReader.from_batches(ROWS.schema, ROWS.to_batches(max_chunksize=1))
        assert cursor.adbc_ingest(table, reader, mode="append") == 3
        with pytest.raises(dbapi.NotSupportedError, match="catalog"):
            cursor.adbc_ingest(table, ROWS, mode="append", catalog_name="no_such_catalog")


def test_a_temporary_table_is_the_connections_own(postgres: Any) -> None:
    with longshore.adbc.connect(postgres.url(), autocommit=True) as connection, connection.cursor() as cursor:
        assert cursor.adbc_ingest("lasting", ROWS, db_schema_name="public") == 3
        for mode in ("create", "create_append", "replace"):
            assert cursor.adbc_ingest("brief", ROWS, mode=mode, temporary=True) == 3
        assert cursor.adbc_ingest("lasting", ROWS, mode="append", db_schema_name="public") == 3
        assert read(cursor, "SELECT * FROM public.lasting").num_rows == 6
        cursor.execute("DROP TABLE public.lasting")
        assert read(cursor, "SELECT * FROM pg_temp.brief").num_rows == 3
        with longshore.connect(postgres.url()) as other:
            assert "brief" not in other.tables()["table_name"].to_pylist()


def test_a_table_is_found_as_a_statement_finds_it(database: Database, connection: "Connection", table: str) -> None:
    assert ingested(connection, table) == 3
    if database.source == "postgresql":
        database.execute("CREATE SCHEMA elsewhere")
        with connection.cursor() as cursor:
            cursor.execute("SET search_path TO elsewhere, public")
    name = table.upper() if database.source == "sqlite" else table
    assert ingested(connection, name, "create_append") == 3
    assert len(database.rows(table)) == 6
    if database.source == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET search_path TO public")
        connection.commit()
        database.execute("DROP SCHEMA elsewhere")


def test_the_schema_of_no_table_is_not_found_and_the_transaction_goes_on(
    database: Database, connection: "Connection", table: str
) -> None:
    assert ingested(connection, table) == 3
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {table} WHERE id = 1")
        with pytest.raises(dbapi.ProgrammingError) as failed:
            connection.adbc_get_table_schema("no_such_table")
        assert failed.value.status_code == AdbcStatusCode.NOT_FOUND
    connection.commit()
    assert len(database.rows(table)) == 2


def test_a_schema_lasts_and_an_unknown_one_is_refused(postgres: Any) -> None:
    for autocommit in (False, True):
        with longshore.adbc.connect(postgres.url(), autocommit=autocommit) as connection:
            connection.adbc_current_db_schema = "information_schema"
            if not autocommit:
                connection.rollback()
            assert connection.adbc_current_db_schema == "information_schema"
            with connection.cursor() as cursor:
                cursor.execute("SET search_path TO information_schema, public")
                with pytest.raises(dbapi.ProgrammingError, match='no schema "no_such_schema"') as failed:
                    connection.adbc_current_db_schema = "no_such_schema"
                assert failed.value.status_code == AdbcStatusCode.NOT_FOUND
                assert cursor.execute("SHOW search_path").fetchall() == [("information_schema, public",)]


def test_errors_have_status_sqlstate_and_details(database: Database, connection: "Connection") -> None:
    with connection.cursor() as cursor, pytest.raises(dbapi.ProgrammingError) as failed:
        cursor.execute("SELECT * FROM no_such_table")
    error: Any = failed.value
    states = {"postgresql": "42P01", "mariadb": "42S02", "mysql": "42S02", "sqlite": None}
    assert error.sqlstate == states[database.source]
    assert "no_such_table" in str(error)
    details = {key.decode() if isinstance(key, bytes) else key: value.decode() for key, value in error.details}
    codes = {"postgresql": None, "mariadb": "1146", "mysql": "1146", "sqlite": "1"}
    assert details.get("longshore.vendor_code") == codes[database.source]
    with connection.cursor() as cursor:
        # The driver is not poisoned, and neither is the connection.
        connection.rollback()
        assert cursor.execute("SELECT 1 AS n").fetchall() == [(1,)]


def test_an_error_after_the_first_rows_keeps_its_sqlstate(postgres: Any) -> None:
    with longshore.adbc.connect(postgres.url()) as connection:
        cursor = connection.cursor(adbc_stmt_kwargs={"longshore.batch_size": "10"})
        cursor.execute("SELECT 1 / (100000 - i) AS n FROM generate_series(1, 200000) AS s (i)")
        assert cursor.fetchone() == (0,)
        with pytest.raises(dbapi.Error) as failed:
            cursor.fetchall()
        error: Any = failed.value
        assert (error.sqlstate, error.status_code) == ("22012", AdbcStatusCode.INVALID_DATA)
        assert "division by zero" in str(error)
        cursor.close()


@pytest.mark.parametrize("kind", ["computing", "streaming"])
def test_another_thread_cancels(database: Database, connection: "Connection", kind: str) -> None:
    query = getattr(database.quirks, kind)
    with connection.cursor() as cursor:
        timer = threading.Timer(0.5, cursor.adbc_cancel)
        timer.start()
        with pytest.raises(dbapi.OperationalError) as failed:
            read(cursor, query)
        timer.join()
        assert failed.value.status_code == AdbcStatusCode.CANCELLED
        connection.rollback()
        assert cursor.execute("SELECT 1 AS n").fetchall() == [(1,)]


def test_two_threads_have_a_statement_each(database: Database, connection: "Connection", table: str) -> None:
    assert ingested(connection, table) == 3
    failures: list[BaseException] = []

    def insert(first: int) -> None:
        try:
            with connection.cursor() as cursor:
                for at in range(20):
                    cursor.executemany(
                        f"INSERT INTO {table} (id) VALUES ({database.quirks.places(1)})", [(first + at,)]
                    )
        except BaseException as error:  # noqa: BLE001  the test raises it
            failures.append(error)

    threads = [threading.Thread(target=insert, args=(first,)) for first in (100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    connection.commit()
    assert failures == []
    assert len(database.rows(table)) == 43


def test_data_that_uses_its_own_connection_is_refused(postgres: Any) -> None:
    def batches(other: Any) -> "Iterator[pa.RecordBatch]":
        yield from ROWS.to_batches()
        other.execute("SELECT 1")

    with (
        longshore.adbc.connect(postgres.url()) as connection,
        connection.cursor() as cursor,
        connection.cursor() as other,
    ):
        rows = pa.RecordBatchReader.from_batches(ROWS.schema, batches(other))
        with pytest.raises(dbapi.Error, match="the connection is in use"):
            cursor.adbc_ingest("entered", rows)
        connection.rollback()
        assert other.execute("SELECT 1").fetchall() == [(1,)]


def test_a_call_that_waits_for_its_turn_is_cancelled(postgres: Any) -> None:
    with (
        longshore.adbc.connect(postgres.url()) as connection,
        connection.cursor() as cursor,
        connection.cursor() as other,
        longshore.connect(postgres.url(), autocommit=True) as control,
    ):

        def sleep() -> None:
            with pytest.raises(dbapi.OperationalError):
                cursor.execute("DO 'BEGIN PERFORM pg_sleep(60); END'")

        thread = threading.Thread(target=sleep)
        thread.start()
        sleeping: Any = "SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE 'DO %'"
        wait(lambda: longshore.read_sql(sleeping, control, return_type="arrow")["n"].to_pylist() == [1])
        other.adbc_statement.set_options(**{"longshore.timeout": 0.1})
        with pytest.raises(dbapi.OperationalError) as failed:
            other.execute("SELECT 1")
        assert failed.value.status_code == AdbcStatusCode.TIMEOUT
        other.adbc_statement.set_options(**{"longshore.timeout": 30.0})
        timer = threading.Timer(0.2, other.adbc_cancel)
        timer.start()
        with pytest.raises(dbapi.OperationalError) as failed:
            other.execute("SELECT 1")
        assert failed.value.status_code == AdbcStatusCode.CANCELLED
        assert thread.is_alive()
        cursor.adbc_cancel()
        thread.join()
        timer.join()


def test_a_result_that_is_released_leaves_its_transaction(postgres: Any) -> None:
    with longshore.adbc.connect(postgres.url()) as connection:
        with connection.cursor(adbc_stmt_kwargs={"longshore.batch_size": "10"}) as cursor:
            cursor.execute("CREATE TABLE kept AS SELECT 1 AS id")
            cursor.execute("SELECT repeat('x', 1000) FROM generate_series(1, 100000)")
            assert cursor.fetchone() == ("x" * 1000,)
        connection.commit()
        with connection.cursor() as cursor:
            assert cursor.execute("SELECT id FROM kept").fetchall() == [(1,)]
            cursor.execute("DROP TABLE kept")
        connection.commit()


def test_a_schema_is_told_before_the_run_and_rows_stay_bound(postgres: Any) -> None:
    with longshore.adbc.connect(postgres.url()) as connection, connection.cursor() as cursor:
        batches = [pa.record_batch({"id": pa.array(ids, pa.int64())}) for ids in ([], [1, 2], [3])]
        statement = cursor.adbc_statement
        statement.set_sql_query("SELECT $1 + 1 AS n")
        statement.bind_stream(pa.RecordBatchReader.from_batches(batches[0].schema, batches))
        assert pa.schema(statement.execute_schema()).names == ["n"]
        stream, _ = statement.execute_query()
        assert pa.table(stream).to_pydict() == {"n": [2, 3, 4]}


def test_a_stream_that_has_failed_fails_on(postgres: Any) -> None:
    with (
        longshore.adbc.connect(postgres.url()) as connection,
        connection.cursor(adbc_stmt_kwargs={"longshore.batch_size": "10"}) as cursor,
    ):
        cursor.execute("SELECT 1 / (100 - i) AS n FROM generate_series(1, 200) AS s (i)")
        reader = cursor.fetch_record_batch()
        for _ in range(2):
            with pytest.raises(pa.ArrowException, match="division by zero"):
                reader.read_all()


def test_what_ended_the_sets_of_a_statement_is_told(postgres: Any) -> None:
    with longshore.adbc.connect(postgres.url(), autocommit=True) as connection, connection.cursor() as cursor:
        with pytest.raises(dbapi.Error) as failed:
            cursor.execute(
                "SELECT pg_terminate_backend(pg_backend_pid()) WHERE $1 = 1", pa.record_batch({"id": [1, 1]})
            )
        assert failed.value.sqlstate == "57P01"


def test_a_cancelled_call_on_the_catalogue_leaves_no_transaction(postgres: Any) -> None:
    with longshore.adbc.connect(postgres.url()) as other, other.cursor() as locking:
        locking.execute("CREATE TABLE locked AS SELECT 1 AS id")
        other.commit()
        locking.execute("LOCK TABLE locked")
        with longshore.adbc.connect(postgres.url()) as connection, connection.cursor() as cursor:
            timer = threading.Timer(0.3, connection.adbc_cancel)
            timer.start()
            with pytest.raises(dbapi.OperationalError) as failed:
                connection.adbc_get_statistics(table_name_filter="locked", approximate=False)
            timer.join()
            assert failed.value.status_code == AdbcStatusCode.CANCELLED
            assert cursor.execute("SELECT 1").fetchall() == [(1,)]
        locking.execute("DROP TABLE locked")
        other.commit()


def test_the_catalogue_is_that_of_the_connection(database: Database, connection: "Connection", table: str) -> None:
    assert ingested(connection, table) == 3
    with longshore.connect(database.url, autocommit=True) as own:
        objects = connection.adbc_get_objects(table_name_filter=table).read_all()
        assert objects.equals(own.objects(table=table))
        assert connection.adbc_get_table_types() == own.table_types()
        assert connection.adbc_get_table_schema(table) == own.table_schema(table)
        info = own.info()
        assert (connection.adbc_current_db_schema, info["current_schema"]) == (info["current_schema"],) * 2
        statistics = connection.adbc_get_statistics(table_name_filter=table, approximate=False)
        assert statistics.read_all().equals(own.statistics(table=table, approximate=False))
    found = connection.adbc_get_info()
    assert (found["driver_name"], found["driver_adbc_version"]) == ("Longshore", 1_001_000)
    assert (found["vendor_name"], found["vendor_version"]) == (info["vendor_name"], info["vendor_version"])
    names = connection.adbc_get_statistic_names().read_all().to_pydict()
    assert dict(zip(names["statistic_name"], names["statistic_key"], strict=True))["adbc.statistic.row_count"] == 6


def test_schemas_are_told_without_a_run(database: Database, connection: "Connection", table: str) -> None:
    assert ingested(connection, table) == 3
    with connection.cursor() as cursor:
        query = f"SELECT id FROM {table} WHERE id = {database.quirks.places(1)}"
        assert cursor.adbc_execute_schema(query, (1,)).names == ["id"]
        schema = cursor.adbc_prepare(query)
        assert (schema is not None) is (database.source == "postgresql")


def test_transactions(database: Database, connection: "Connection", table: str) -> None:
    assert ingested(connection, table) == 3
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {table}")
        connection.rollback()
        assert len(database.rows(table)) == 3
    with longshore.adbc.connect(database.url, autocommit=True) as other, other.cursor() as cursor:
        cursor.execute(f"DELETE FROM {table} WHERE id = 1")
        assert len(database.rows(table)) == 2


def test_options_have_all_types(database: Database, connection: "Connection") -> None:
    with connection.cursor() as cursor:
        statement: Any = cursor.adbc_statement
        statement.set_options(**{"longshore.batch_size": 7, "longshore.timeout": 2.5, "longshore.partition_on": b"id"})
        assert statement.get_option_int("longshore.batch_size") == 7
        assert statement.get_option("longshore.batch_size") == "7"
        assert statement.get_option_float("longshore.timeout") == 2.5
        assert statement.get_option_bytes("longshore.partition_on") == b"id"
        refused = {"longshore.batch_size": ("many", 0), "longshore.timeout": (-1.0,), "longshore.lease": (0.0, 86_401)}
        for key, value in ((key, value) for key, values in refused.items() for value in values):
            with pytest.raises(dbapi.ProgrammingError, match=key):
                statement.set_options(**{key: value})
        with pytest.raises(dbapi.NotSupportedError, match="no_such_option"):
            statement.set_options(no_such_option="1")
        with pytest.raises(dbapi.NotSupportedError, match="Substrait"):
            cursor.execute(b"a plan")
        statement.set_options(**{"longshore.timeout": 0.2})
        with pytest.raises(dbapi.OperationalError) as failed:
            read(cursor, database.quirks.computing)
        assert failed.value.status_code == AdbcStatusCode.TIMEOUT
    connection.rollback()
    assert connection.adbc_connection.get_option("adbc.connection.autocommit") == "false"
    with pytest.raises(dbapi.NotSupportedError):
        connection.adbc_connection.set_options(no_such_option="1")


def test_partitions_of_one_snapshot_are_read_by_other_connections(postgres: Any) -> None:
    longshore.write_sql(pa.table({"i": range(5_000), "t": ["x" * 100] * 5_000}), "parted", postgres.url())
    options = {"longshore.partition_num": 3, "longshore.partition_on": "i", "longshore.lease": 60.0}
    with longshore.adbc.connect(postgres.url(), autocommit=True) as connection, connection.cursor() as cursor:
        statement: Any = cursor.adbc_statement
        statement.set_options(**options)
        partitions, schema = cursor.adbc_execute_partitions("SELECT i, t FROM parted")
        assert (len(partitions), schema.names) == (3, ["i", "t"])
        cursor.execute("DELETE FROM parted").close()
        with longshore.adbc.connect(postgres.url()) as other, other.cursor() as reader:
            found = []
            for partition in partitions:
                reader.adbc_read_partition(partition)
                found.append(reader.fetch_arrow_table())
        assert all(part.num_rows and part.schema == schema for part in found)
        assert sorted(pa.concat_tables(found)["i"].to_pylist()) == list(range(5_000))
    # The lease has ended with the connection: nothing waits for it.
    postgres.psql("SET lock_timeout = '10s'; DROP TABLE parted")


def test_partitions_of_what_has_no_snapshot_for_others(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}?mode=rwc"
    with longshore.adbc.connect(url) as connection, connection.cursor() as cursor:
        with pytest.raises(dbapi.NotSupportedError, match="no snapshot that other processes can join"):
            cursor.adbc_execute_partitions("SELECT 1 AS n")
        cursor.adbc_statement.set_options(**{"longshore.snapshot": "false"})
        partitions, _ = cursor.adbc_execute_partitions("SELECT 1 AS n")
        cursor.adbc_read_partition(partitions[0])
        assert cursor.fetchall() == [(1,)]
        cursor.execute("CREATE TABLE kept (n int)")
        connection.commit()
        partitions, _ = cursor.adbc_execute_partitions("INSERT INTO kept VALUES (1) RETURNING n")
        cursor.adbc_read_partition(partitions[0])
        with pytest.raises(dbapi.Error, match="readonly database"):
            cursor.fetchall()
        with pytest.raises(dbapi.ProgrammingError, match="not a partition"):
            cursor.adbc_read_partition(b"else")


def test_what_is_not_in_the_library_is_said() -> None:
    refused = {
        "duckdb:///a.db": "live in Python",
        "mssql://sa@a/b": "and SQL Server, whose client brings OpenSSL, are longshore.connect's",
        "nowhere://a": "no driver for URLs",
        "a": "not a URL",
    }
    for url, text in refused.items():
        with pytest.raises(dbapi.Error, match=text):
            longshore.adbc.connect(url)
    with pytest.raises(dbapi.Error, match='"uri" is missing'):
        dbapi.connect(longshore.adbc.driver_path(), entrypoint=longshore.adbc.ENTRYPOINT)


def test_no_option_tells_a_secret(database: Database) -> None:
    with _lib.AdbcDatabase(driver=longshore.adbc.driver_path(), uri=database.url, password="hidden!") as opened:
        assert opened.get_option("uri").endswith("://***")
        with pytest.raises(dbapi.Error):
            opened.get_option("password")


def test_no_error_tells_a_secret(postgres: Any) -> None:
    with pytest.raises(dbapi.Error) as failed:
        longshore.adbc.connect(postgres.url(), pasword="hidden!")
    assert "pasword" in str(failed.value)
    assert "hidden!" not in str(failed.value)


def test_a_stream_that_is_dropped_cancels(database: Database) -> None:
    connection = longshore.adbc.connect(database.url, autocommit=True)
    cursor = connection.cursor()
    cursor.execute(database.marked("streaming", "dropped by a test"))
    reader = cursor.fetch_record_batch()
    assert reader.read_next_batch().num_rows > 0
    del reader
    cursor.close()
    connection.close()
    if database.quirks.running is not None:
        wait(lambda: not database.running("dropped by a test"))
