"""The lease of a snapshot: how it ends, what waits for it, and what other sessions would not have."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.contract.conftest import wait
from tests.postgres.connections.using import SCHEMA
from tests.servers import Endpoint

pytestmark = pytest.mark.server

ROWS = 5_000
ENDED = "the snapshot of the partition is kept no longer"


@pytest.fixture
def table(here: str) -> str:
    """Give a table of some blocks, which goes with its schema."""
    with longshore.connect(here, autocommit=True) as connection:
        connection.execute(
            f"CREATE TABLE boats AS SELECT i AS id, repeat('x', 100) AS t FROM generate_series(1, {ROWS}) AS i"
        )
    return "boats"


def read(url: str, part: bytes) -> list[Any]:
    with longshore.connect(url) as connection, connection.cursor() as cursor:
        cursor.adbc_read_partition(part)
        return cursor.fetchall()


def leases(url: str) -> int:
    query: Any = "SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock'"
    return int(longshore.read_sql(query, url, return_type="arrow")["n"][0].as_py())


def test_a_lease_ends_by_itself(here: str, table: str) -> None:
    with longshore.connect(here) as connection, connection.cursor() as cursor:
        (part,), _ = cursor.adbc_execute_partitions(f"SELECT id FROM {table}", partition_num=1, lease=0.3)
        wait(lambda: leases(here) == 0)
        with pytest.raises(longshore.OperationalError, match=ENDED) as failed:
            read(here, part)
        assert failed.value.sqlstate == "72000"
        assert cursor.execute("SELECT 1").fetchall() == [(1,)]


def test_a_server_that_says_nothing_keeps_no_one(here: str, postgres: Endpoint) -> None:
    connection = longshore.connect(here)
    connection.cursor().adbc_execute_partitions("SELECT 1")
    keeper = int(postgres.psql("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock'"))
    os.kill(keeper, signal.SIGSTOP)
    try:
        # By then the lease's thread waits for an answer.
        time.sleep(1.2)
        closed = threading.Thread(target=connection.close, daemon=True)
        closed.start()
        closed.join(8)
        assert not closed.is_alive()
    finally:
        os.kill(keeper, signal.SIGCONT)
    wait(lambda: leases(here) == 0)


def test_a_table_that_is_rewritten_is_never_read_empty(here: str, table: str) -> None:
    connection = longshore.connect(here)
    parts, _ = connection.cursor().adbc_execute_partitions(f"SELECT id FROM {table}", partition_num=2)
    assert leases(here) == 1

    def truncate() -> None:
        with longshore.connect(here, autocommit=True) as other:
            other.execute(f"TRUNCATE {table}")

    waiting = threading.Thread(target=truncate)
    waiting.start()
    wait(
        lambda: bool(longshore.read_sql("SELECT 1 FROM pg_locks WHERE NOT granted", here, return_type="arrow").num_rows)
    )
    # It waits for the lease, and the reader passes it.
    first = read(here, parts[0])
    assert 0 < len(first) < ROWS
    connection.close()
    waiting.join()
    with pytest.raises(longshore.OperationalError, match=ENDED):
        read(here, parts[1])


def test_a_partition_that_is_attached_meanwhile_is_an_error(here: str) -> None:
    with longshore.connect(here, autocommit=True) as connection, connection.cursor() as cursor:
        connection.execute("CREATE TABLE leased (id int, t text) PARTITION BY RANGE (id)")
        connection.execute("CREATE TABLE leased_low PARTITION OF leased FOR VALUES FROM (0) TO (100)")
        connection.execute("CREATE TABLE leased_high (id int, t text)")
        connection.execute("INSERT INTO leased SELECT i FROM generate_series(0, 99) AS i")
        connection.execute("INSERT INTO leased_high VALUES (150)")
        parts, _ = cursor.adbc_execute_partitions("SELECT id FROM leased", partition_on="id", partition_num=2)
        first = read(here, parts[0])
        connection.execute("ALTER TABLE leased ATTACH PARTITION leased_high FOR VALUES FROM (100) TO (200)")
        with pytest.raises(longshore.OperationalError, match="was attached"):
            read(here, parts[1])
        assert 0 < len(first) < 100


def test_every_partition_has_the_schema_that_was_told(here: str) -> None:
    with longshore.connect(here, autocommit=True) as connection, connection.cursor() as cursor:
        connection.execute(
            "CREATE TABLE amounts AS SELECT i AS id, i / (CASE WHEN i > 10 THEN 8 END)::numeric AS n"
            " FROM generate_series(1, 20) AS i"
        )
        parts, schema = cursor.adbc_execute_partitions("SELECT * FROM amounts", partition_on="id", partition_num=2)
        tables = []
        for part in parts:
            cursor.adbc_read_partition(part)
            tables.append(cursor.fetch_arrow_table())
        found = pa.concat_tables(tables)
        assert (found.schema, schema.field("n").type) == (schema, pa.decimal128(38, 20))
        cursor.adbc_read_partition(parts[-1])
        assert str(cursor.fetchall()[-1][1]) == "2.500"


def test_what_other_sessions_would_not_have_is_refused(here: str, table: str) -> None:
    query = f"SELECT id FROM {table}"
    with longshore.connect(here) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1").fetchall()
        with pytest.raises(longshore.ProgrammingError, match="a transaction is open"):
            cursor.adbc_execute_partitions(query)
        connection.rollback()
        for statement, reason in (("SET work_mem = '8MB'", "settings of"), ("CREATE TEMP TABLE a ()", "temporary")):
            cursor.execute(statement)
            connection.commit()
            with pytest.raises(longshore.NotSupportedError, match=reason):
                cursor.adbc_execute_partitions(query)
            cursor.execute("RESET ALL")
            connection.commit()
        cursor.execute("DROP TABLE a")
        connection.commit()
        with pytest.raises(longshore.NotSupportedError, match="LIMIT"):
            cursor.adbc_execute_partitions(f"{query} LIMIT 10", partition_num=2)
        with pytest.raises(longshore.ProgrammingError, match="no_such_table"):
            cursor.adbc_execute_partitions("SELECT * FROM no_such_table")
        assert leases(here) == 0


def test_another_user_is_refused(postgres: Endpoint, here: str, table: str) -> None:
    # It may read the table, but row security gives it no row.
    postgres.psql(f"""
        CREATE ROLE "second
mate" LOGIN; GRANT USAGE ON SCHEMA {SCHEMA} TO PUBLIC; GRANT SELECT ON {SCHEMA}.{table} TO PUBLIC;
        ALTER TABLE {SCHEMA}.{table} ENABLE ROW LEVEL SECURITY""")
    other = postgres.url(user="second\nmate", options=f"-c search_path={SCHEMA}", application_name=SCHEMA)
    try:
        with longshore.connect(here) as connection, connection.cursor() as cursor:
            (part,), _ = cursor.adbc_execute_partitions(f"SELECT id FROM {table}", partition_num=1)
            with pytest.raises(longshore.InterfaceError, match=r'the connection one of "second\\nmate"'):
                read(other, part)
            with longshore.connect(other) as others, others.cursor() as reader:
                (part,), _ = reader.adbc_execute_partitions(f"SELECT id FROM {table}", partition_num=1)
                assert read(other, part) == []
                with pytest.raises(longshore.InterfaceError, match=r'one of the user "second\\nmate"'):
                    read(here, part)
    finally:
        postgres.psql('DROP OWNED BY "second\nmate"; DROP ROLE "second\nmate"')


@pytest.fixture
def elsewhere(postgres: Endpoint) -> Iterator[str]:
    """Give the URL of another database of the server."""
    postgres.psql("CREATE DATABASE elsewhere")
    yield postgres.url(database="elsewhere")
    postgres.psql("DROP DATABASE elsewhere WITH (FORCE)")


def test_the_bytes_open_nothing_and_fit_one_database(elsewhere: str, here: str, table: str) -> None:
    with longshore.connect({"url": here, "password": "s3cr3t"}) as connection, connection.cursor() as cursor:
        (part,), schema = cursor.adbc_execute_partitions(f"SELECT count(*) AS n FROM {table}")
        assert (schema.names, read(here, part)) == (["n"], [(ROWS,)])
        assert not any(secret in part for secret in (b"s3cr3t", b"://", b"password", b"127.0.0.1"))
        with pytest.raises(longshore.OperationalError, match=ENDED):
            read(elsewhere, part)
        with pytest.raises(longshore.InterfaceError, match="one of postgresql, and the connection one of sqlite"):
            read("sqlite:///:memory:", part)
        # It only reads, whatever the bytes say.
        forged = part.replace(b"SELECT count(*) AS n FROM boats", b"DELETE FROM boats RETURNING 1".ljust(31))
        assert forged != part
        with pytest.raises(longshore.OperationalError, match="DELETE in a read-only transaction"):
            read(here, forged)
        assert read(here, part) == [(ROWS,)]
        assert cursor.execute(f"SELECT count(*) FROM {table}").fetchall() == [(ROWS,)]


@pytest.mark.parametrize("statement", ["DELETE FROM {} RETURNING id", "WITH a AS (DELETE FROM {} RETURNING 1) TABLE a"])
def test_a_partition_never_writes(here: str, table: str, statement: str) -> None:
    with (
        longshore.connect(here, autocommit=True) as connection,
        connection.cursor(options={"snapshot": False}) as cursor,
    ):
        (part,), _ = cursor.adbc_execute_partitions(statement.format(table), partition_num=1)
        with pytest.raises(longshore.Error, match="read-only transaction"):
            cursor.adbc_read_partition(part)
        assert cursor.execute(f"SELECT count(*) FROM {table}").fetchall() == [(ROWS,)]
