"""Changes by others to the tables while they are split and read."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

import longshore
from tests.postgres.parallel.comparing import in_parts, read, rows
from tests.servers import PostgreSQL

if TYPE_CHECKING:
    import pyarrow as pa

pytestmark = pytest.mark.server


@contextlib.contextmanager
def waiting(server: PostgreSQL, statement: str) -> Iterator[Callable[[], None]]:
    """Hold the locks of `statement` in an open transaction; the callable commits it once somebody waits for it."""
    with longshore.connect(server.url()) as connection:
        connection.execute(statement)

        def commit_when_awaited() -> None:
            deadline = time.monotonic() + 20
            while server.psql("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0":
                assert time.monotonic() < deadline
                time.sleep(0.01)
            connection.commit()

        yield commit_when_awaited


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE awaited",
        "ALTER TABLE awaited ALTER COLUMN word TYPE int USING length(word)",
        "ALTER TABLE awaited ADD COLUMN more text DEFAULT clock_timestamp()::text",
        "ALTER TABLE awaited DROP COLUMN word",
        "CLUSTER awaited USING awaited_id_idx",
        "DELETE FROM awaited; LOCK TABLE awaited",
    ],
)
@pytest.mark.parametrize("on", [None, "id"])
def test_a_change_that_is_waited_for_is_seen(statement: str, on: str | None, server: PostgreSQL) -> None:
    server.psql("DROP TABLE IF EXISTS awaited; CREATE TABLE awaited AS TABLE t; CREATE INDEX ON awaited (id)")
    with waiting(server, "SELECT 1") as _, longshore.connect(server.url()) as connection:
        for one in statement.split(";"):
            connection.execute(one)
        found: list[pa.Table] = []
        query = "SELECT * FROM awaited"
        thread = threading.Thread(
            target=lambda: found.append(read(query, server.url(), partition_num=3, partition_on=on))
        )
        thread.start()
        deadline = time.monotonic() + 20
        while server.psql("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0":
            assert time.monotonic() < deadline
            time.sleep(0.01)
        connection.commit()
        thread.join()
    after = read(query, server.url())
    assert found[0].schema.equals(after.schema)
    assert rows(found[0]) == rows(after)


def test_a_vacuum_full_that_is_waited_for(server: PostgreSQL) -> None:
    server.psql("""
        CREATE TABLE vacuumed AS SELECT i, repeat('x', 200) AS t FROM generate_series(1, 100000) AS i;
        DELETE FROM vacuumed WHERE i % 2 = 0;
    """)
    thread = threading.Thread(target=lambda: [server.psql("VACUUM FULL vacuumed") for _ in range(5)])
    thread.start()
    while thread.is_alive():
        assert read("SELECT i FROM vacuumed", server.url(), partition_num=4).num_rows == 50_000
    thread.join()


def test_no_one_alters_the_tables_while_parts_are_read(server: PostgreSQL) -> None:
    server.psql("CREATE TABLE held AS SELECT i, repeat('x', 1000) AS t FROM generate_series(1, 50000) AS i")
    stream = longshore.read_sql(
        "SELECT * FROM held", server.url(), return_type="arrow_stream", partition_num=3, batch_size=100
    )
    next(iter(stream))
    for statement in ["TRUNCATE held", "ALTER TABLE held ADD COLUMN x int", "DROP TABLE held"]:
        with pytest.raises(RuntimeError, match="lock timeout"):
            server.psql(f"SET lock_timeout = 300; {statement}")
    server.psql("DELETE FROM held")
    assert sum(batch.num_rows for batch in stream) + 100 == 50_000
    server.psql("DROP TABLE held")


def test_a_table_that_is_attached_meanwhile(server: PostgreSQL) -> None:
    server.psql("""
        CREATE TABLE growing (id int, t text) PARTITION BY RANGE (id);
        CREATE TABLE growing_1 PARTITION OF growing FOR VALUES FROM (0) TO (50000);
        CREATE TABLE growing_2 (id int, t text);
        INSERT INTO growing_1 SELECT i, repeat('x', 500) FROM generate_series(0, 49999) AS i;
        INSERT INTO growing_2 SELECT i, repeat('x', 500) FROM generate_series(50000, 60000) AS i;
    """)
    attach = "ALTER TABLE growing ATTACH PARTITION growing_2 FOR VALUES FROM (50000) TO (70000)"

    def stream(**arguments: Any) -> Any:
        arguments = {"return_type": "arrow_stream", "partition_num": 2, "batch_size": 100, **arguments}
        return longshore.read_sql("SELECT * FROM growing", server.url(), **arguments)

    # Parts by blocks name their partitions.
    opened = stream()
    first = next(iter(opened)).num_rows
    server.psql(attach)
    assert first + sum(batch.num_rows for batch in opened) == 50_000
    server.psql("ALTER TABLE growing DETACH PARTITION growing_2")
    opened = stream(partition_on="id")
    next(iter(opened))
    server.psql(attach)
    with pytest.raises(longshore.OperationalError, match="was attached to one of the query's tables") as caught:
        list(opened)
    assert caught.value.sqlstate == "40001"
    assert sum(batch.num_rows for batch in stream(partition_on="id")) == 60_001


def test_a_timeout_while_it_is_split(server: PostgreSQL) -> None:
    server.psql("CREATE TABLE taken AS TABLE t")
    with longshore.connect(server.url()) as other, longshore.connect(server.url(), autocommit=True) as connection:
        other.execute("LOCK TABLE taken")
        for on in (None, "id"):
            with pytest.raises(longshore.TimeoutError):
                read("SELECT * FROM taken", connection, partition_num=2, partition_on=on, timeout=0.5)
            assert connection.in_transaction is False
        connection.execute("SET lock_timeout = 300")
        with pytest.raises(longshore.OperationalError, match="lock timeout"):
            read(["SELECT * FROM taken"] * 2, connection, partition_num=2)
        connection.execute("RESET lock_timeout")
        other.rollback()
        in_parts("SELECT * FROM taken", connection, partition_num=2)


def test_a_failure_in_a_part(url: str, server: PostgreSQL) -> None:
    for on in (None, "id"):
        with pytest.raises(longshore.DataError, match="division by zero") as caught:
            read("SELECT id, 1 / (id - 1500) AS x FROM t", url, partition_num=3, partition_on=on)
        assert "part " in str(caught.value)
    deadline = time.monotonic() + 10
    while server.psql("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%'") != "0":
        assert time.monotonic() < deadline
