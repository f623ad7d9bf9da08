"""Poolers, limits, standbys, and servers that are none."""

import time
from collections.abc import Callable

import pytest

import longshore
from tests.fixtures import require
from tests.postgres.parallel.comparing import Statements, in_parts, read, rows
from tests.servers import Endpoint, PgBouncer, PostgreSQL, Standby

pytestmark = pytest.mark.server


@pytest.mark.once
def test_a_pooler_with_room(pgbouncer: PgBouncer, postgres: Endpoint) -> None:
    postgres.psql("CREATE TABLE pooled AS SELECT i, repeat('x', 50) AS t FROM generate_series(1, 20000) AS i")
    try:
        in_parts("SELECT * FROM pooled", pgbouncer.url(), ordered=True, partition_num=4)
        in_parts("SELECT * FROM pooled", pgbouncer.url(), partition_on="i", partition_num=4)
    finally:
        postgres.psql("DROP TABLE pooled")


@pytest.mark.once
def test_a_pooler_that_is_too_small(server: PostgreSQL) -> None:
    with require(lambda: PgBouncer(server, config={"default_pool_size": "1", "query_wait_timeout": "60"})) as pooler:
        started = time.monotonic()
        with pytest.raises(longshore.OperationalError, match="had a connection") as caught:
            read("SELECT * FROM t", pooler.url(), partition_num=4)
        assert time.monotonic() - started < 18
        assert 'options={"snapshot": False}' in (caught.value.hint or "")
        table = read("SELECT * FROM t", pooler.url(), partition_num=4, options={"snapshot": False})
        assert rows(table) == rows(read("SELECT * FROM t", pooler.url()))


@pytest.mark.once
def test_a_server_without_room(make_server: Callable[..., PostgreSQL]) -> None:
    server = make_server(config={"max_connections": "5", "superuser_reserved_connections": "0"})
    server.psql("CREATE TABLE t AS SELECT i FROM generate_series(1, 5000) AS i")
    started = time.monotonic()
    with pytest.raises(longshore.OperationalError, match=r"too many clients|remaining connection slots"):
        read("SELECT * FROM t", server.url(), partition_num=12)
    assert time.monotonic() - started < 15
    # Nothing is left behind.
    deadline = time.monotonic() + 10
    while server.psql("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'") != "1":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert read("SELECT * FROM t", server.url(), partition_num=2).num_rows == 5000


def test_a_hot_standby(make_server: Callable[..., PostgreSQL]) -> None:
    hba = ("local all all trust", "local replication all trust", "host all all all trust")
    primary = make_server(hba=hba, config=Standby.needs)
    primary.psql("CREATE TABLE t AS SELECT i, i % 7 AS k FROM generate_series(1, 20000) AS i; ANALYZE t")
    with Standby(primary) as standby:
        standby.catch_up()
        url = standby.url()
        in_parts("SELECT * FROM t", url, ordered=True, partition_num=3)
        in_parts("SELECT * FROM t WHERE i > 5", url, partition_num=3, partition_on="k")
        lists = [f"SELECT * FROM t WHERE k = {k}" for k in range(7)]
        assert read(lists, url).equals(read(lists, url, partition_num=1))
        # What the primary does to the table waits for the parts.
        stream = longshore.read_sql("SELECT * FROM t", url, return_type="arrow_stream", partition_num=2, batch_size=10)
        primary.psql("ALTER TABLE t ADD COLUMN more int")
        assert sum(batch.num_rows for batch in stream) == 20_000
        standby.catch_up()
        in_parts("SELECT * FROM t", url, ordered=True, partition_num=3)


def test_without_a_snapshot(url: str, statements: Statements, server: PostgreSQL) -> None:
    options = {"snapshot": False}
    in_parts("SELECT * FROM t", url, ordered=True, partition_num=3, options=options)
    in_parts("SELECT * FROM t", url, partition_on="k", partition_num=3, options=options)
    assert "pg_export_snapshot" not in server.log[statements.start :]
    assert server.psql("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%'") == "0"
