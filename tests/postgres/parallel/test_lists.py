"""Lists of queries, and how many parts are read at once."""

import pytest

import longshore
from tests.postgres.parallel.comparing import Statements, in_parts, read, serially
from tests.servers import PostgreSQL


def test_a_list_is_read_in_parallel(url: str, statements: Statements) -> None:
    queries = [f"SELECT id, word FROM t WHERE id % 3 = {rest} ORDER BY id LIMIT 700" for rest in range(3)]
    serial = read(queries, url, partition_num=1)
    parallel = read(queries, url)
    assert parallel.equals(serial)
    assert len(statements.of_parts()) == 3


def test_a_list_with_parameters(url: str) -> None:
    queries = ["SELECT id, word FROM t WHERE id = :id", "SELECT id, word FROM t WHERE id > :id::int8"]
    assert read(queries, url, params={"id": 2990}).equals(read(queries, url, params={"id": 2990}, partition_num=1))


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT id FROM t WHERE at < now()", "now()"),
        ("SELECT (random() * 0)::int AS id", "random()"),
        ("SELECT id FROM t WHERE at < 'now'", "'now'"),
    ],
)
def test_a_list_of_several_snapshots_is_serial(query: str, reason: str, url: str) -> None:
    serially(reason, ["SELECT id FROM t", query], url, partition_num=2)


def test_a_list_that_cannot_be_parallel_says_so(url: str) -> None:
    serially("now()", ["SELECT now() AS a", "SELECT now() AS a"], url)


def test_a_serial_list_holds_its_tables_as_they_are(server: PostgreSQL, url: str) -> None:
    server.psql("""
        CREATE TABLE first AS SELECT i FROM generate_series(1, 1000000) AS i;
        CREATE TABLE later AS SELECT i FROM generate_series(1, 1000) AS i;
    """)
    queries = ["SELECT i FROM first", "SELECT i FROM later"]
    stream = longshore.read_sql(queries, url, return_type="arrow_stream", partition_num=1)
    rows = next(stream).num_rows
    # Without the wait, the rows that the snapshot shows would be gone.
    with pytest.raises(RuntimeError, match="lock timeout"):
        server.psql("SET lock_timeout = '200ms'; TRUNCATE later")
    assert rows + sum(batch.num_rows for batch in stream) == 1_001_000
    server.psql("DROP TABLE first, later")


def test_a_serial_list_with_parameters(url: str) -> None:
    queries = ["SELECT id, word FROM t WHERE id = :id", "SELECT id, word FROM t WHERE id > :id::int8 AND id < 9"]
    assert read(queries, url, params={"id": 5}, partition_num=1)["id"].to_pylist() == [5, 6, 7, 8]


def test_a_serial_list_of_what_cannot_be_explained(url: str) -> None:
    queries = ["SHOW block_size", "SHOW wal_block_size"]
    with pytest.raises(longshore.ProgrammingError, match='query 2 of the list returns "wal_block_size"'):
        read(queries, url, partition_num=1)


def test_auto_reads_a_small_result_whole(url: str, statements: Statements) -> None:
    in_parts("SELECT * FROM t", url, partition_num="auto")
    in_parts("SELECT * FROM t", url, partition_on="id")
    assert statements.of_parts() == []


def test_auto_reads_a_large_result_in_parts(server: PostgreSQL, statements: Statements) -> None:
    server.psql("""
        CREATE TABLE large AS SELECT i, repeat(md5(i::text), 30) AS t FROM generate_series(1, 50000) AS i;
        ANALYZE large;
    """)
    in_parts("SELECT * FROM large", server.url(), partition_num="auto")
    assert len(statements.of_parts()) == 2
    server.psql("DROP TABLE large")
