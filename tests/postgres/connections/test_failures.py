"""Failures of every kind, after which the connection goes on."""

import signal
import subprocess
import sys
import textwrap
import time

import pytest

import longshore
from tests.postgres.connections.failing import FAILURES
from tests.postgres.connections.using import SCHEMA, SLEEPING, STREAMING, check, read, sessions, stream, wait
from tests.servers import Endpoint


@pytest.mark.costly
@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("autocommit", [False, True], ids=["transactions", "autocommit"])
def test_a_connection_goes_on_after(failure: str, autocommit: bool, here: str, postgres: Endpoint) -> None:  # noqa: FBT001
    with longshore.connect(here, autocommit=autocommit) as connection:
        (before,) = read("SELECT pg_backend_pid() AS pid", connection)
        connection.commit()
        for _ in range(2):
            FAILURES[failure](connection)
            assert not connection.closed
            connection.rollback()
            assert connection.in_transaction is False
            connection.execute("RESET statement_timeout")
            check(connection)
            assert read("SELECT count(*) AS n FROM t", connection) == [{"n": 0}]
            connection.rollback()
        assert read("SELECT pg_backend_pid() AS pid", connection) == [before]
        assert sessions(postgres) == 1


def test_no_late_cancel_stops_the_next_statement(here: str) -> None:
    with longshore.connect(here, autocommit=True) as connection:
        for number in range(150):
            query = ("SELECT 1 AS a", STREAMING, SLEEPING, f"SELECT pg_sleep({number % 10} / 1000.0)::text AS s")[
                number % 4
            ]
            stream(query, connection).close()
            rows = read("SELECT $1::int AS n, pg_sleep(0.003)::text AS s", connection, params=[number])
            assert rows == [{"n": number, "s": ""}]


@pytest.mark.parametrize("how", ["execute", "read"])
def test_ctrl_c(how: str, here: str, postgres: Endpoint) -> None:
    script = f"""
        import longshore, pyarrow
        connection = longshore.connect({here!r})
        connection.execute("CREATE TEMPORARY TABLE kept AS SELECT 7 AS i")
        connection.commit()
        try:
            print("ready", flush=True)
            if {how == "execute"}:
                connection.execute({SLEEPING!r})
            else:
                longshore.read_sql({STREAMING!r}, connection)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        connection.rollback()
        print(longshore.read_sql("SELECT i, pg_sleep(0.3)::text FROM kept", connection, return_type="numpy")["i"].data)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout
    assert child.stdout.readline() == "ready\n"
    active = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{SCHEMA}' AND state = 'active'"
    wait(lambda: postgres.psql(active) == "1")
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=20) == ("interrupted\n[7]\n", "")
