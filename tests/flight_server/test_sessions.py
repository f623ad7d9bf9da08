"""The choices of a session, and how long they last."""

import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.flight as fl
import pytest

import longshore
from tests.flight_server.conftest import made
from tests.flight_server.test_server import plain

QUAY = "SELECT quay FROM quays"


@pytest.fixture
def port_and_dock(tmp_path: Path) -> str:
    """Give the URL of a DuckDB file with the table `quays` in two schemas."""
    url = made("duckdb", tmp_path)
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        for schema in ("main", "dock"):
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            connection.execute(f"CREATE TABLE {schema}.quays AS SELECT '{schema}' AS quay")
    return url


def quay(url: Any) -> str:
    table: Any = longshore.read_sql(QUAY, url, return_type="arrow")
    (found,) = table["quay"].to_pylist()
    return str(found)


def test_a_schema_lasts_as_long_as_the_connection(port_and_dock: str) -> None:
    with longshore.serve(port_and_dock, port=0, idle_timeout=0.2) as server:
        flight, descriptor = plain(server, QUAY)
        with longshore.connect(f"{server.url}/?schema=dock", autocommit=True) as connection:
            flight.get_flight_info(descriptor)
            deadline = time.monotonic() + 20
            # The result that no one reads is dropped, and the session is not.
            while server._core.held > 1 and time.monotonic() < deadline:  # noqa: SLF001  what is held is told to tests alone
                time.sleep(0.05)
            assert quay(connection) == "dock"


def test_a_session_that_is_over_is_not_taken_for_another(port_and_dock: str) -> None:
    with longshore.serve(port_and_dock, port=0) as server:
        flight, descriptor = plain(server, QUAY)
        old = fl.FlightCallOptions(headers=[(b"cookie", b"arrow_flight_session_id=" + b"0" * 32)])
        with pytest.raises((fl.FlightError, OSError), match="the session is over"):
            flight.get_flight_info(descriptor, old)


def test_a_schema_is_chosen_within_a_transaction(port_and_dock: str) -> None:
    with longshore.serve(port_and_dock, port=0) as server, longshore.connect(server.url) as connection:
        assert quay(connection) == "main"
        connection.use_schema("dock")
        assert connection.in_transaction
        assert quay(connection) == "dock"
        connection.commit()
        assert quay(connection) == "dock"


def test_a_reader_chooses_a_schema(postgres: Any, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text(longshore._core.user_line("reader", "reader knows", "reader") + "\n")  # noqa: SLF001  as the command
    with longshore.serve(postgres.url(), port=0, auth=users) as server:
        url = server.url.replace("://", "://reader:reader%20knows@")
        with longshore.connect(url, autocommit=True) as connection:
            connection.use_schema("information_schema")
            schema: Any = longshore.read_sql("SELECT current_schema::text AS s", connection, return_type="arrow")
            assert schema["s"].to_pylist() == ["information_schema"]
            with pytest.raises(longshore.ProgrammingError, match="this user only reads"):
                connection.execute("SET search_path TO public, pg_temp")
