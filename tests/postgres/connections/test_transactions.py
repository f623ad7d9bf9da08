"""Commit, rollback, and who begins."""

import pytest

import longshore
from tests.postgres.connections.using import SCHEMA, check, read
from tests.servers import Endpoint


def test_a_read_begins_a_transaction(here: str) -> None:
    with longshore.connect(here) as connection:
        assert read("INSERT INTO t VALUES (1) RETURNING i", connection) == [{"i": 1}]
        assert connection.in_transaction is True
        connection.rollback()
        assert read("SELECT i FROM t", connection) == []
        assert connection.in_transaction is True
        connection.rollback()
        read("SELECT 1", connection, pre_execution_query="INSERT INTO t VALUES (2)")
        connection.rollback()
        assert read("SELECT i FROM t", here) == []


def test_autocommit(here: str) -> None:
    with longshore.connect(here, autocommit=True) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        assert connection.in_transaction is False
        read("INSERT INTO t VALUES (2) RETURNING i", connection)
        connection.rollback()
        assert read("SELECT count(*) AS n FROM t", here) == [{"n": 2}]


@pytest.mark.parametrize("autocommit", [False, True])
def test_a_transaction_by_hand(autocommit: bool, here: str) -> None:  # noqa: FBT001
    with longshore.connect(here, autocommit=autocommit) as connection:
        connection.execute("BEGIN")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("SAVEPOINT s")
        connection.execute("INSERT INTO t VALUES (2)")
        with pytest.raises(longshore.DataError):
            connection.execute("SELECT 1 / 0")
        connection.execute("ROLLBACK TO SAVEPOINT s")
        assert read("SELECT i FROM t", connection) == [{"i": 1}]
        assert connection.in_transaction is True
        connection.execute("COMMIT")
        assert connection.in_transaction is False
        assert read("SELECT i FROM t", here) == [{"i": 1}]


def test_leaving_with_commits_or_rolls_back(here: str, postgres: Endpoint) -> None:
    with longshore.connect(here) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
    assert connection.closed
    assert read("SELECT i FROM t", here) == [{"i": 1}]

    def fail() -> None:
        with connection:
            connection.execute("LOCK TABLE t")
            connection.execute("DELETE FROM t")
            raise ZeroDivisionError

    connection = longshore.connect(here)
    with pytest.raises(ZeroDivisionError):
        fail()
    assert connection.closed
    # At once: what was rolled back holds no lock.
    postgres.psql(f"BEGIN; LOCK TABLE {SCHEMA}.t NOWAIT; COMMIT")
    assert read("SELECT i FROM t", here) == [{"i": 1}]


def test_a_failed_transaction_cannot_be_committed(here: str) -> None:
    connection = longshore.connect(here)
    connection.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(longshore.DataError):
        connection.execute("SELECT 1 / 0")
    with pytest.raises(longshore.OperationalError, match="current transaction is aborted"):
        connection.execute("INSERT INTO t VALUES (2)")
    with pytest.raises(longshore.OperationalError, match="nothing was committed") as caught:
        connection.commit()
    assert "rolled back" in str(caught.value)
    assert caught.value.sqlstate == "25P02"
    assert connection.in_transaction is False
    connection.commit()
    assert read("SELECT i FROM t", connection) == []
    connection.close()
    connection = longshore.connect(here)
    with pytest.raises(longshore.DataError):
        read("SELECT 1 / 0", connection)
    with pytest.raises(longshore.OperationalError, match="nothing was committed"), connection:
        pass
    assert connection.closed


def test_a_commit_that_fails(here: str) -> None:
    with longshore.connect(here) as connection:
        connection.execute("CREATE TABLE u (i int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
        connection.commit()
        connection.execute("INSERT INTO u VALUES (1), (1)")
        with pytest.raises(longshore.IntegrityError):
            connection.commit()
        assert connection.in_transaction is False
        assert read("SELECT i FROM u", connection) == []
        check(connection)
