"""Settings that sessions do not share by themselves."""

from collections.abc import Iterator

import pytest

import longshore
from tests.postgres.parallel.comparing import Statements, in_parts, read, serially
from tests.servers import PostgreSQL

pytestmark = pytest.mark.server

HERE, THERE = "settings_here", "settings_there"
QUERY = "SELECT place, i FROM berths"


@pytest.fixture(autouse=True)
def _two_places(server: PostgreSQL) -> Iterator[None]:
    """Give two tables of one name, and a role whose search path leads to one of them."""
    server.psql(f"CREATE ROLE mate LOGIN; ALTER ROLE mate SET search_path = {HERE}")
    for place in (HERE, THERE):
        server.psql(f"""
            CREATE SCHEMA {place};
            CREATE TABLE {place}.berths AS SELECT '{place}' AS place, i FROM generate_series(1, 20000) AS i;
            ANALYZE {place}.berths;
            GRANT USAGE ON SCHEMA {place} TO mate; GRANT SELECT ON {place}.berths TO mate;
        """)
    yield
    server.psql(f"""
        SET client_min_messages = error;
        DROP SCHEMA {HERE} CASCADE; DROP SCHEMA {THERE} CASCADE; DROP ROLE mate;
    """)


def parts(statements: Statements) -> list[str]:
    """Give the parts without what is set before them."""
    return [text for text in statements.of_parts() if not text.startswith("SET")]


def test_settings_of_an_earlier_read_are_remembered(server: PostgreSQL, statements: Statements) -> None:
    there = f"SET search_path = {THERE}"
    with longshore.connect(server.url(user="mate"), autocommit=True) as connection:
        for _ in range(2):
            # Every session of the read runs it, so it is not a reason against parts.
            table = in_parts(QUERY, connection, partition_num=2, pre_execution_query=there)
            assert set(table["place"].to_pylist()) == {THERE}
        assert len(parts(statements)) == 4
        table = serially("settings of this session (SET)", QUERY, connection, partition_num=2)
        assert set(table["place"].to_pylist()) == {THERE}
        # What one read sets is not an excuse for what an earlier one has left.
        other = "SET bytea_output = escape"
        serially("settings of this session (SET)", QUERY, connection, partition_num=2, pre_execution_query=other)


@pytest.mark.parametrize("left", ["SET ROLE mate", "SET SESSION AUTHORIZATION mate", "SET TIME ZONE 'Asia/Tokyo'"])
def test_what_a_read_can_leave(left: str, server: PostgreSQL, statements: Statements) -> None:
    query = "SELECT current_user::text AS u, current_setting('timezone') AS z, id FROM t"
    server.psql("GRANT SELECT ON t TO mate")
    try:
        with longshore.connect(server.url(), autocommit=True) as connection:
            first = longshore.read_sql(
                query, connection, return_type="arrow", partition_num=2, pre_execution_query=left
            )
            # It is not known as used before its first read.
            assert len(parts(statements)) == 2
            second = serially("(SET)", query, connection, partition_num=2)
            assert second.equals(first)
    finally:
        server.psql("REVOKE SELECT ON t FROM mate")


def test_a_pool_forgets_the_settings_of_a_read(server: PostgreSQL) -> None:
    with longshore.Pool(server.url(user="mate"), size=3) as pool:
        before = f"SET search_path = {THERE}"
        in_parts(QUERY, pool, partition_num=2, pre_execution_query=before)
        table = in_parts(QUERY, pool, partition_num=2)
        assert set(table["place"].to_pylist()) == {HERE}


def test_parts_have_the_settings_that_the_session_was_opened_with(server: PostgreSQL, statements: Statements) -> None:
    query = f"{QUERY}, (SELECT current_setting('timezone') AS z, current_setting('role') AS r) AS s"
    with longshore.connect(server.url(user="mate"), autocommit=True) as connection:
        server.psql(f"""
            ALTER ROLE mate SET search_path = {THERE};
            ALTER ROLE mate SET timezone = 'Asia/Tokyo';
            ALTER ROLE mate SET bytea_output = 'escape';
        """)
        for on in (None, "i"):
            table = in_parts(QUERY, connection, partition_num=2, partition_on=on)
            assert set(table["place"].to_pylist()) == {HERE}
        in_parts(query, connection, partition_num=2, partition_on="i")
        table = in_parts([QUERY, QUERY], connection)
        assert set(table["place"].to_pylist()) == {HERE}
        in_parts("SELECT i, sha256(i::text::bytea)::text AS h FROM berths", connection, partition_num=2)
        assert len(parts(statements)) == 12
    table = in_parts(QUERY, server.url(user="mate"), partition_num=2)
    assert set(table["place"].to_pylist()) == {THERE}


@pytest.mark.parametrize("change", ["SET harbour.berth = 'south'", "RESET harbour.berth"])
def test_settings_of_the_users_own(change: str, server: PostgreSQL, statements: Statements) -> None:
    query = "SELECT current_setting('Harbour.berth', true) AS b, i FROM berths WHERE i > 5"
    for on in (None, "i"):
        server.psql("ALTER ROLE mate SET harbour.berth = 'north'")
        with longshore.connect(server.url(user="mate"), autocommit=True) as connection:
            server.psql(f"ALTER ROLE mate {change}")
            table = read(query, connection, partition_num=2, partition_on=on)
            assert table["b"].to_pylist() == ["north"] * 19995
    assert len(parts(statements)) == 4
    computed = "SELECT current_setting('harbour.' || word, true) AS b, id FROM t"
    with longshore.connect(server.url(), autocommit=True) as connection:
        serially("of a name that is computed", computed, connection, partition_num=2)


def test_sessions_of_a_pool_from_two_times(server: PostgreSQL) -> None:
    with longshore.Pool(server.url(user="mate"), size=3) as pool:
        longshore.read_sql("SELECT 1 AS one", pool)
        server.psql(f"ALTER ROLE mate SET search_path = {THERE}")
        for _ in range(2):
            in_parts(QUERY, pool, partition_num=2)


def test_a_role_that_new_sessions_take(server: PostgreSQL) -> None:
    server.psql("GRANT pg_monitor TO mate")
    with longshore.connect(server.url(user="mate"), autocommit=True) as connection:
        server.psql("ALTER ROLE mate SET role = 'pg_monitor'")
        in_parts("SELECT current_user::text AS u, i FROM berths", connection, partition_num=2)
        server.psql("ALTER ROLE mate RESET role")
