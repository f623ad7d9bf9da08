"""Servers in between, and servers that are not PostgreSQL."""

from collections.abc import Callable

import longshore
from tests.certificates import Certificates
from tests.postgres.connections.failing import FAILURES
from tests.postgres.connections.using import SCHEMA, check, read
from tests.servers import PgBouncer, PostgreSQL


def test_through_pgbouncer(pgbouncer: PgBouncer) -> None:
    with longshore.connect(pgbouncer.url()) as connection:
        connection.execute(f"INSERT INTO {SCHEMA}.t VALUES (1)")
        connection.rollback()
        connection.execute(f"INSERT INTO {SCHEMA}.t VALUES (2)")
        connection.commit()
        for failure in ("a deadline", "a stream that is dropped", "syntax"):
            FAILURES[failure](connection)
            connection.rollback()
            check(connection)
        assert read(f"SELECT i FROM {SCHEMA}.t", connection) == [{"i": 2}]


def test_over_tls(make_server: Callable[..., PostgreSQL], certificates: Certificates) -> None:
    server = make_server(certificates=certificates)
    server.psql("CREATE TABLE t (i int)")
    url = server.url(sslmode="verify-ca", sslrootcert=str(certificates.authority))
    with longshore.connect(url) as connection:
        before = read("SELECT pid, ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", connection)
        assert before[0]["ssl"]
        for failure in ("a deadline", "a deadline while rows come", "a stream that is dropped", "no time to execute"):
            FAILURES[failure](connection)
            connection.rollback()
            check(connection)
        assert read("SELECT pg_backend_pid() AS pid, true AS ssl", connection) == before
