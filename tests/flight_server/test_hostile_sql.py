"""No statement reaches a file, the environment, memory or another database."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import longshore
from tests.flight_server.conftest import client, made

if TYPE_CHECKING:
    from tests.servers import Endpoint

#: `{file}` is a file with a secret, `{folder}` a folder, `{own}` the file that is served.
HOSTILE = [
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_blob('{file}')",
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM read_csv_auto('{file}')",
    "SELECT * FROM read_json('{file}')",
    "SELECT * FROM read_ndjson_objects('{file}')",
    "SELECT * FROM read_parquet('{file}')",
    "SELECT * FROM parquet_metadata('{file}')",
    "SELECT * FROM sniff_csv('{file}')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM '{file}'",
    'SELECT * FROM "{file}"',
    "SELECT * FROM '{folder}/*.csv'",
    "SELECT size FROM read_blob('{own}')",
    "SELECT size FROM \"read_blob\"('{own}')",
    "SELECT size FROM main.read_blob('{own}')",
    "SELECT size FROM system.main.read_blob /* a comment */ ('{own}')",
    "SELECT * FROM read_blob('{own}.tmp/*')",
    "SELECT * FROM query('SELECT * FROM rea' || 'd_text(''{file}'')')",
    "SELECT * FROM query_table(['{file}'])",
    "FROM json_execute_serialized_sql(json_serialize_sql('SELECT * FROM read_text(''{file}'')'))",
    "WITH a AS (SELECT * FROM read_text('{file}')) SELECT * FROM a",
    "SELECT (SELECT content FROM read_text('{file}'))",
    "CREATE VIEW v AS SELECT * FROM read_text('{own}')",
    "CREATE MACRO m() AS TABLE SELECT * FROM read_blob('{own}')",
    "CREATE TABLE stolen AS SELECT * FROM read_text('{file}')",
    "INSERT INTO berths SELECT 1, content FROM read_text('{file}')",
    "SELECT * FROM arrow_scan(1234, 1234, 1234)",
    "SELECT * FROM pandas_scan(1234)",
    "SELECT * FROM python_map_function(1234)",
    "SELECT getenv('SECRET_OF_THE_SERVER')",
    "SELECT current_setting('temp_directory')",
    "SELECT current_setting('home_directory')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM pg_settings",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM which_secret('s3://bucket', 's3')",
    "SELECT * FROM duckdb_databases()",
    "SELECT * FROM duckdb_databases",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM duckdb_logs",
    "SELECT * FROM duckdb_temporary_files()",
    "SELECT * FROM duckdb_extensions()",
    "COPY berths TO '{folder}/out.csv'",
    "COPY berths TO '{own}.tmp/out.csv'",
    "COPY berths FROM '{file}'",
    "COPY (SELECT 1) TO '/dev/stdout'",
    "EXPLAIN ANALYZE COPY berths TO '{folder}/out.csv'",
    "EXPORT DATABASE '{folder}/out'",
    "IMPORT DATABASE '{folder}'",
    "ATTACH '{folder}/other.duckdb' AS other",
    "ATTACH ':memory:' AS other",
    "DETACH memory",
    "INSTALL httpfs",
    "LOAD httpfs",
    "FORCE INSTALL httpfs FROM 'http://localhost:1'",
    "UPDATE EXTENSIONS",
    "PRAGMA database_list",
    "PRAGMA enable_profiling",
    "PRAGMA profiling_output = '{folder}/profile'",
    "CALL enable_logging()",
    "CALL pragma_database_size()",
    "SET enable_external_access = true",
    "SET GLOBAL lock_configuration = false",
    "RESET enable_external_access",
    "SET allowed_directories = ['/']",
    "SET home_directory = '{folder}'",
    "SET temp_directory = '{folder}'",
    "SET memory_limit = '1TB'",
    "SET file_search_path = '{folder}'",
    "SET autoload_known_extensions = true",
    "CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
    "CREATE PERSISTENT SECRET s (TYPE s3)",
    "PREPARE p AS SELECT * FROM read_text('{file}')",
    "EXECUTE p",
    "CHECKPOINT",
    "SELECT 1; SELECT * FROM read_text('{file}')",
]

#: Of SQLite's: what opens other files, and functions that its shell alone has.
HOSTILE_LITE = [
    "ATTACH '{folder}/other.db' AS other",
    "ATTACH ':memory:' AS other",
    "VACUUM INTO '{folder}/out.db'",
    "SELECT readfile('{file}')",
    "SELECT writefile('{folder}/out', 'a')",
    "SELECT load_extension('{file}')",
    "SELECT * FROM fsdir('{folder}')",
]

CHANGING = [
    "INSERT INTO berths VALUES (99, 'x')",
    "UPDATE berths SET name = 'x'",
    "DELETE FROM berths",
    "CREATE TABLE other (a INTEGER)",
    "DROP TABLE berths",
    "ALTER TABLE berths ADD COLUMN b INTEGER",
    "EXPLAIN ANALYZE DELETE FROM berths",
    "WITH a AS (SELECT 1) DELETE FROM berths",
]

SECRET = "the captain's name"


Engine = tuple[Any, Path]


@pytest.fixture(scope="module", params=["store", "duckdb", "folder"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Give a connection to a server whose engine is of this process, and the folder of what it must not reach."""
    folder = tmp_path_factory.mktemp("engine")
    (folder / "secret.csv").write_text(f"a\n{SECRET}\n")
    (folder / "b.csv").write_text(SECRET)
    target = str(folder / "files") if request.param == "folder" else made(request.param, folder)
    if request.param == "folder":
        (folder / "files").mkdir()
        pq.write_table(pa.table({"berth": [1], "name": ["quay 1"]}), folder / "files" / "berths.parquet")
    with longshore.serve(target, port=0) as server, client(server, autocommit=True) as connection:
        yield connection, folder


def all_rows(connection: Any, statement: str) -> list[tuple[Any, ...]]:
    """Run a statement and read what it returns."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


def entries(folder: Path) -> list[str]:
    """Give the names of what is there, but for the engine's own."""
    return sorted(each.name for each in folder.iterdir() if not each.name.endswith((".wal", ".tmp")))


@pytest.mark.parametrize("statement", HOSTILE)
def test_a_statement_reaches_nothing_but_the_tables(
    engine: Engine, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection, folder = engine
    monkeypatch.setitem(os.environ, "SECRET_OF_THE_SERVER", SECRET)
    before = entries(folder)
    own = next(iter([*folder.glob("*.duckdb"), *folder.glob("files/*.parquet"), folder / "lake"]))
    with pytest.raises(Exception) as caught:  # noqa: PT011  the class is the driver's, by the status
        all_rows(connection, statement.format(file=folder / "secret.csv", folder=folder, own=own))
    assert SECRET not in str(caught.value)
    assert all_rows(connection, "SELECT count(*) FROM berths") in ([(10,)], [(1,)])
    assert entries(folder) == before


@pytest.mark.parametrize("statement", HOSTILE_LITE)
def test_a_statement_of_sqlite_opens_no_other_file(tmp_path: Path, statement: str) -> None:
    (tmp_path / "secret.csv").write_text(SECRET)
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE t (a)")
    with longshore.serve(made("sqlite", tmp_path), port=0) as server:
        before = sorted(tmp_path.iterdir())
        with client(server, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.adbc_statement.set_sql_query(statement.format(file=tmp_path / "secret.csv", folder=tmp_path))
            with pytest.raises(Exception):  # noqa: B017, PT011  the class is the driver's, by the status
                cursor.adbc_statement.execute_update()
        assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("kind", ["store", "duckdb", "sqlite"])
def test_a_reader_changes_nothing(tmp_path: Path, kind: str) -> None:
    from longshore import _core

    users = tmp_path / "users"
    users.write_text("".join(_core.user_line(name, f"{name} knows", name) + "\n" for name in ("reader", "writer")))
    with longshore.serve(made(kind, tmp_path), port=0, auth=users) as server:
        with client(server, "reader", autocommit=True) as connection:
            # SQLite has no EXPLAIN ANALYZE.
            for statement in (each for each in CHANGING if kind != "sqlite" or not each.startswith("EXPLAIN")):
                with connection.cursor() as cursor:
                    cursor.adbc_statement.set_sql_query(statement)
                    with pytest.raises(Exception, match=r"only reads|readonly|read-only|read only"):
                        cursor.adbc_statement.execute_update()
            with connection.cursor() as cursor, pytest.raises(Exception, match="only reads"):
                cursor.adbc_ingest("berths", pa.table({"berth": [99], "name": ["x"]}), mode="append")
            with connection.cursor() as cursor:
                cursor.execute("SELECT count(*), max(name) FROM berths")
                assert cursor.fetchall() == [(10, "quay 9")]
        with client(server, "writer", autocommit=True) as connection, connection.cursor() as cursor:
            cursor.adbc_statement.set_sql_query(CHANGING[0])
            assert cursor.adbc_statement.execute_update() == 1


#: Statements that would change rows of PostgreSQL's, or make the transaction one that does.
CHANGING_POSTGRESQL = [
    "INSERT INTO berths VALUES (99)",
    "WITH a AS (INSERT INTO berths VALUES (99) RETURNING berth) SELECT * FROM a",
    "SELECT * INTO other FROM berths",
    "SET TRANSACTION READ WRITE",
    "COMMIT",
    "DO $$ BEGIN INSERT INTO berths VALUES (99); END $$",
    "EXPLAIN ANALYZE INSERT INTO berths VALUES (99)",
    "SELECT set_config('transaction_read_only', 'off', false)",
    "COPY berths TO '/tmp/out'",
]


def test_a_reader_of_postgresql_changes_nothing(postgres: "Endpoint", harbour: str, tmp_path: Path) -> None:
    from longshore import _core

    postgres.psql(f"CREATE TABLE {harbour}.berths AS SELECT 1::bigint AS berth")
    users = tmp_path / "users"
    users.write_text(_core.user_line("reader", "reader knows", "reader") + "\n")
    with longshore.serve(postgres.url(options=f"-csearch_path={harbour}"), port=0, auth=users) as server:
        for autocommit in (True, False):
            with client(server, "reader", autocommit=autocommit) as connection:
                for statement in CHANGING_POSTGRESQL:
                    with pytest.raises(Exception, match=r"only reads|read-only transaction|read-write mode"):
                        all_rows(connection, statement)
                    if not autocommit:
                        connection.rollback()
                assert all_rows(connection, "SELECT berth FROM berths") == [(1,)]
