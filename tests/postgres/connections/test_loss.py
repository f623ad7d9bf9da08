"""A session that is lost is closed, and says why."""

import time
from collections.abc import Callable

import pyarrow as pa
import pytest

import longshore
from tests.postgres.connections.using import SCHEMA, STREAMING, check, first_batch, read, stream
from tests.servers import Endpoint, PostgreSQL


def _lose(use: Callable[[longshore.Connection], object], connection: longshore.Connection) -> longshore.Error:
    with pytest.raises(longshore.OperationalError) as caught:
        use(connection)
    assert connection.closed
    assert connection.in_transaction is False
    for again in (lambda: connection.execute("SELECT 1"), lambda: read("SELECT 1", connection), connection.commit):
        with pytest.raises(longshore.InterfaceError, match="the connection is closed"):
            again()
    connection.close()
    return caught.value


@pytest.mark.parametrize("use", ["execute", "read", "commit", "rollback"])
def test_a_terminated_session(use: str, here: str, postgres: Endpoint) -> None:
    uses: dict[str, Callable[[longshore.Connection], object]] = {
        "execute": lambda connection: connection.execute("SELECT 1"),
        "read": lambda connection: read("SELECT 1", connection),
        "commit": lambda connection: connection.commit(),
        "rollback": lambda connection: connection.rollback(),
    }
    for autocommit in (False, True):
        connection = longshore.connect(here, autocommit=autocommit)
        connection.execute("BEGIN" if autocommit else "SELECT 1")
        postgres.psql(
            f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = '{SCHEMA}'"
        )
        error = _lose(uses[use], connection)
        # The server's own reason, where the network has not forgotten it.
        assert error.sqlstate == "57P01" or "closed" in str(error) or "reset" in str(error)


def test_a_session_that_the_server_ends_says_why(here: str) -> None:
    connection = longshore.connect(here)
    connection.execute("SET idle_in_transaction_session_timeout = 100")
    time.sleep(0.4)
    error = _lose(lambda connection: connection.execute("SELECT 1"), connection)
    assert error.sqlstate == "25P03", error


def test_a_terminated_stream(here: str, postgres: Endpoint) -> None:
    connection = longshore.connect(here)
    reader = first_batch(stream(STREAMING, connection))
    postgres.psql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{SCHEMA}'")
    with pytest.raises((pa.ArrowException, OSError)):
        for _ in reader:
            pass
    assert connection.closed


def test_a_server_that_crashes(make_server: Callable[..., PostgreSQL]) -> None:
    server = make_server()
    connections = [longshore.connect(server.url(), autocommit=flag) for flag in (False, True)]
    server.kill()
    for connection in connections:
        _lose(lambda connection: connection.execute("SELECT 1"), connection)
    server.start()
    with longshore.connect(server.url()) as connection:
        check(connection)
