"""Servers in between, and servers that are not PostgreSQL."""

from collections.abc import Callable

import pytest

import longshore
from tests.certificates import Certificates
from tests.postgres.connections.failing import FAILURES
from tests.postgres.connections.using import SCHEMA, check, read
from tests.servers import H2, PgBouncer, PostgreSQL, QuestDB


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


def test_questdb(questdb: QuestDB) -> None:
    with longshore.connect(questdb.url(), autocommit=True) as connection:
        for number in range(3):
            assert read("SELECT x FROM long_sequence(3)", connection) == [{"x": 1}, {"x": 2}, {"x": 3}], number
        with pytest.raises(longshore.Error):
            connection.execute("SELEC")
        assert read("SELECT x FROM long_sequence(2)", connection) == [{"x": 1}, {"x": 2}]


def test_h2(h2: H2) -> None:
    with longshore.connect(h2.url()) as connection:
        connection.execute("CREATE TABLE connections (i int)")
        assert connection.execute("INSERT INTO connections VALUES (1), (2)") == 2
        connection.commit()
        assert read("SELECT i FROM connections ORDER BY i", connection) == [{"i": 1}, {"i": 2}]
        connection.execute("DELETE FROM connections")
        connection.rollback()
        assert read("SELECT count(*) AS n FROM connections", connection) == [{"n": 2}]
        connection.execute("DROP TABLE connections")
