"""How reads in parts end: in time, loudly, and with every session where it belongs."""

import re
import time
from collections.abc import Iterator

import pytest

import longshore
from tests.servers import PostgreSQL

pytestmark = pytest.mark.server

ROWS = 200_000


@pytest.fixture(scope="module")
def table(server: PostgreSQL) -> Iterator[str]:
    """Give the name of a table whose last row has a date that Arrow cannot hold."""
    server.psql(f"""
        CREATE TABLE endings AS
        SELECT i, CASE WHEN i = {ROWS} THEN 'infinity'::date ELSE '2026-11-21' END AS d, repeat('x', 50) AS t
        FROM generate_series(1, {ROWS}) AS i;
        ANALYZE endings""")
    yield "endings"
    server.psql("DROP TABLE endings")


@pytest.mark.once
def test_a_deadline_after_the_last_row_leaves_the_connection_sound(server: PostgreSQL, url: str) -> None:
    server.psql("CREATE TABLE long AS SELECT i, repeat('x', 50) AS t FROM generate_series(1, 1500000) AS i")

    reports = []

    def dawdle(progress: longshore.Progress) -> None:
        # The deadline is over while all that there is has come: nothing is waited for.
        reports.append(progress)
        if len(reports) == 1:
            time.sleep(3)

    with longshore.connect(url, autocommit=True) as connection:
        with pytest.raises(longshore.TimeoutError):
            longshore.read_sql("SELECT i, t FROM long", connection, partition_num=2, timeout=3, progress=dawdle)
        assert not connection.in_transaction
        # Each answer is its own statement's.
        assert connection.execute("SELECT generate_series(1, 3)") == 3
        assert connection.execute("CREATE TEMP TABLE after (i int PRIMARY KEY)") is None
        assert connection.execute("INSERT INTO after VALUES (1), (2)") == 2
        with pytest.raises(longshore.IntegrityError):
            connection.execute("INSERT INTO after VALUES (1)")
        assert connection.execute("SELECT generate_series(1, 5)") == 5
    server.psql("DROP TABLE long")


def test_what_is_attached_is_looked_at_before_the_end(server: PostgreSQL, url: str) -> None:
    # After it, a DETACH that has waited for the read would be taken for one that the parts have met.
    before = len(server.log)
    longshore.read_sql("SELECT id FROM t", url, partition_on="id", partition_num=2)
    said = server.log[before:]
    (coordinator,) = re.findall(r"^(\d+)\|LOG:  execute .*: SELECT pg_catalog.pg_export_snapshot", said, re.MULTILINE)
    last = [line for line in said.splitlines() if line.startswith(f"{coordinator}|LOG:  execute")][-2:]
    assert ["IS NOT DISTINCT FROM" in last[0], last[1].endswith(": COMMIT")] == [True, True]


def test_the_server_ends_a_lease_that_says_nothing(server: PostgreSQL, url: str) -> None:
    # Its thread speaks every second. A process that is stopped, or whose forked child has the socket, says nothing.
    before = len(server.log)
    with longshore.connect(url) as connection, connection.cursor() as cursor:
        cursor.adbc_execute_partitions("SELECT 1")
    idle = re.findall(r"set_config\('idle_in_transaction_session_timeout', '(\w+)', true\)", server.log[before:])
    assert idle[-1] == "60s"


def test_a_row_is_counted_over_all_parts(url: str, table: str) -> None:
    query = f"SELECT i, d FROM {table}"
    with pytest.raises(longshore.DataError) as serial:
        longshore.read_sql(query, url)
    assert (serial.value.row, serial.value.column) == (ROWS - 1, "d")
    with pytest.raises(longshore.DataError, match="infinity has no Arrow value") as parts:
        longshore.read_sql(query, url, partition_num=2)
    assert (parts.value.row, parts.value.column) == (ROWS - 1, "d")
    says = r"part 2 of 2, row \d+ of it: infinity has no Arrow value"
    stream = longshore.read_sql(query, url, partition_num=2, return_type="arrow_stream")
    # Parts that come as they will have no row numbers of the whole.
    with pytest.raises(longshore.DataError, match=says) as streamed, stream:
        list(stream)
    assert (streamed.value.row, streamed.value.column) == (None, "d")


def test_a_row_of_a_list_is_counted_over_all_queries(url: str, table: str) -> None:
    with longshore.Pool(url, size=1) as pool:
        queries = [f"SELECT i, d FROM {table} WHERE i <= 10", f"SELECT i, d FROM {table} WHERE i > {ROWS - 3}"]
        with pytest.raises(longshore.DataError) as error, pytest.warns(longshore.SerialReadWarning, match="pool"):
            longshore.read_sql(queries, pool)
        assert error.value.row == 12


@pytest.mark.parametrize("how", ["failed", "closed"])
def test_sessions_go_back_to_the_pool(url: str, table: str, how: str) -> None:
    with longshore.Pool(url, size=3) as pool:
        if how == "failed":
            with pytest.raises(longshore.DataError):
                longshore.read_sql(f"SELECT i, d FROM {table}", pool, partition_num=2)
        else:
            query = "SELECT generate_series(1, 100000000) AS i"
            stream = longshore.read_sql([query, query], pool, return_type="arrow_stream")
            next(stream)
            stream.close()
        assert (pool.idle, pool.in_use) == (3, 0)
        assert len(longshore.read_sql(f"SELECT i FROM {table}", pool, partition_num=2)) == ROWS


def test_a_warning_that_is_an_error_ends_the_read(url: str) -> None:
    # In the list of columns, or the server would write all rows to a file, which it has to remove before it answers.
    query = "SELECT generate_series(1, 100000000) AS i LIMIT 90000000"
    with longshore.connect(url, autocommit=True) as connection:
        # The tests' own filter makes errors of warnings.
        with pytest.raises(longshore.SerialReadWarning, match="LIMIT") as raised:
            longshore.read_sql(query, connection, partition_on="i", partition_num=2)
        # While the exception and its frames are still there.
        assert connection.execute("SELECT 1") == 1
        assert raised.traceback


def test_the_reason_shows_no_text_of_the_setup(url: str, table: str) -> None:
    with pytest.warns(longshore.SerialReadWarning) as caught:
        longshore.read_sql(
            f"SELECT i FROM {table}",
            url,
            partition_num=2,
            pre_execution_query=["SET work_mem = '1MB'", "SELECT set_config('app.token', 'hidden', false)"],
        )
    assert [str(warning.message) for warning in caught] == [
        "read over one connection: statement 2 of pre_execution_query does more than SET"
    ]
