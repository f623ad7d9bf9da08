"""psycopg's connections: in their transaction what `read_sql` gives by a URL, and outside of one by the URL itself."""

import asyncio
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

import longshore
from tests.conformance import plain, postgresql
from tests.conformance.case import Case
from tests.conformance.cases import CASES
from tests.connections.conftest import BOATS
from tests.fixtures import Place
from tests.servers import Endpoint

Conn = psycopg.Connection[Any]
QUERY = "SELECT berth, name FROM boats ORDER BY berth"


def rows(conn: Any, query: Any = QUERY, **arguments: Any) -> Any:
    return longshore.read_sql(query, conn, return_type="arrow", **arguments).to_pylist()


@pytest.fixture(scope="module")
def connections() -> Iterator[dict[str, Conn]]:
    """Give a connection to each server that a case has needed."""
    opened: dict[str, Conn] = {}
    yield opened
    for connection in opened.values():
        connection.close()


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.type}-{at}") for at, case in enumerate(CASES)])
def test_each_type_is_that_of_a_url(case: Case, place: Place, connections: dict[str, Conn]) -> None:
    url = place(case)
    conn = connections[url] = connections.get(url) or psycopg.connect(url)
    cells = case.cells if case.query else {"NULL": None, **case.cells}
    for statement in postgresql.setup(case, list(cells)):
        conn.execute(statement.encode())
    table: Any = longshore.read_sql(postgresql.query(case), conn, return_type="arrow")
    assert plain.values(table["value"]) == plain.expected(list(cells.values()), case.arrow)
    field = table.schema.field(0)
    assert plain.storage(field.type) == case.arrow
    assert field.metadata[b"native_type"].decode() == (case.native or case.type)
    conn.rollback()


@pytest.mark.packages
def test_an_open_transaction_is_seen_and_stays_open(conn: Conn, postgres: Endpoint) -> None:
    assert rows(conn) == BOATS.to_pylist()
    conn.execute("CREATE TEMPORARY TABLE piers AS SELECT 7 AS pier")
    assert rows(conn, "SELECT pier FROM piers") == [{"pier": 7}]
    assert rows(conn, "SELECT berth FROM boats WHERE name = $1", params=["Ada"]) == [{"berth": 1}]
    assert rows(conn, "SELECT berth FROM boats WHERE name = :name", params={"name": "Ada"}) == [{"berth": 1}]
    assert rows(conn, "SELECT $1 + 1.0 AS n", params=[Decimal("1.5")]) == [{"n": Decimal("2.5")}]
    empty: Any = longshore.read_sql("SELECT * FROM boats WHERE false", conn, return_type="arrow")
    assert empty.schema.field("berth").type == pa.int32()
    assert not empty.schema.field("berth").nullable
    assert longshore.schema("SELECT * FROM boats", conn).equals(empty.schema, check_metadata=True)
    with pytest.raises(longshore.ProgrammingError, match="boats") as caught:
        rows(postgres.url())
    assert caught.value.sqlstate == "42P01"
    assert rows(conn, ["SELECT 1 AS n", "SELECT 2 AS n"]) == [{"n": 1}, {"n": 2}]
    with pytest.warns(longshore.SerialReadWarning, match="one connection"):
        longshore.read_sql(QUERY, conn, partition_num=2)
    assert rows(conn, "SHOW work_mem", pre_execution_query="SET LOCAL work_mem = '7MB'") == [{"work_mem": "7MB"}]
    assert longshore.sql("SELECT sum(berth) AS n FROM pg.boats", attach={"pg": conn})["n"].tolist() == [3]
    assert asyncio.run(longshore.read_sql_async(QUERY, conn, return_type="numpy"))["berth"].tolist() == [1, 2]
    assert conn.execute("SELECT count(*) FROM boats").fetchone() == (2,)


def test_statements_without_a_cursor_of_the_server(conn: Conn) -> None:
    assert rows(conn, "INSERT INTO boats VALUES (3, 'Cid') RETURNING berth") == [{"berth": 3}]
    assert rows(conn, "WITH gone AS (DELETE FROM boats WHERE berth = 3 RETURNING name) SELECT name FROM gone") == [
        {"name": "Cid"}
    ]
    assert rows(conn, "SHOW search_path; -- the end") == [{"search_path": '"$user", public'}]
    assert rows(conn) == BOATS.to_pylist()
    with pytest.raises(longshore.ProgrammingError, match="returns no rows"):
        rows(conn, "DELETE FROM boats")
    assert conn.execute("SELECT count(*) FROM boats").fetchone() == (2,)


def test_options_schema_and_texts_of_the_whole_result(conn: Conn) -> None:
    query = "SELECT 'NaN'::numeric AS n, inet '::1' AS i, 0.1::float8 AS f"
    with pytest.raises(longshore.DataError) as caught:
        rows(conn, query)
    assert (caught.value.column, caught.value.row) == ("n", 0)
    assert rows(conn, query, options={"numeric_nan": "null"}) == [{"n": None, "i": "::1", "f": 0.1}]
    assert rows(conn, "SELECT 1 AS n", schema={"n": "decimal128(5, 2)"}) == [{"n": Decimal("1.00")}]
    with pytest.raises(longshore.InterfaceError, match="does not return"):
        rows(conn, "SELECT 1 AS n", schema={"m": "int64"})
    conn.execute("SET extra_float_digits TO 0")
    with pytest.raises(longshore.NotSupportedError, match="extra_float_digits"):
        rows(conn, query, options={"numeric_nan": "null"})
    assert rows(conn) == BOATS.to_pylist()
    conn.execute("SET client_encoding TO 'LATIN1'")
    with pytest.raises(longshore.InterfaceError, match="client_encoding"):
        rows(conn)


def test_a_stream_has_a_page_at_a_time_and_may_end_early(conn: Conn) -> None:
    query = "SELECT generate_series(1, 100000) AS i"
    with longshore.read_sql(query, conn, return_type="arrow_stream", batch_size=1000) as stream:
        assert pa.record_batch(next(iter(stream)))["i"].to_pylist() == list(range(1, 1001))
        assert conn.execute("SELECT count(*) FROM pg_cursors WHERE name LIKE 'longshore%'").fetchone() == (1,)
    assert conn.execute("SELECT count(*) FROM pg_cursors WHERE name LIKE 'longshore%'").fetchone() == (0,)
    table: Any = longshore.read_sql(query, conn, return_type="arrow")
    assert table["i"].to_pylist() == list(range(1, 100_001))
    assert rows(conn) == BOATS.to_pylist()


def test_a_deadline_cancels(conn: Conn) -> None:
    with pytest.raises(longshore.TimeoutError):
        rows(conn, "SELECT pg_sleep(60)::text AS t", timeout=0.3)
    assert conn.info.transaction_status == TransactionStatus.INERROR
    with pytest.raises(longshore.Error) as caught:
        rows(conn)
    assert caught.value.sqlstate == "25P02"


def test_an_error_of_a_statement_leaves_the_transaction(conn: Conn) -> None:
    with pytest.raises(longshore.ProgrammingError) as caught:
        rows(conn, "SELECT nothing FROM boats")
    assert caught.value.sqlstate == "42703"
    assert rows(conn) == BOATS.to_pylist()


@pytest.mark.packages
def test_writes_are_part_of_the_transaction(conn: Conn, postgres: Endpoint) -> None:
    with psycopg.connect(postgres.url(), autocommit=True) as other:
        other.execute("CREATE TABLE quays (berth integer PRIMARY KEY, name text)")
        try:
            conn.execute("INSERT INTO quays VALUES (1, 'old')")
            assert longshore.write_sql(BOATS, "quays", conn, if_exists="upsert", key="berth") == 2
            assert rows(conn, "SELECT * FROM quays ORDER BY berth") == BOATS.to_pylist()
            with pytest.raises(longshore.DataError, match="NULL") as caught:
                longshore.write_sql(pa.table({"berth": [3, None]}), "quays", conn, if_exists="append")
            assert (caught.value.column, caught.value.row) == ("berth", 1)
            with pytest.raises(longshore.IntegrityError):
                longshore.write_sql(BOATS, "quays", conn, if_exists="append")
            assert rows(conn, "SELECT * FROM quays ORDER BY berth") == BOATS.to_pylist()
            assert conn.execute("SELECT count(*) FROM pg_class WHERE relname LIKE 'longshore_%'").fetchone() == (0,)
            conn.execute("CREATE RULE none AS ON INSERT TO quays WHERE new.berth = 4 DO INSTEAD NOTHING")
            with pytest.raises(longshore.DataError, match="of 2 rows the table took 1"):
                longshore.write_sql(pa.table({"berth": [4, 5]}), "quays", conn, if_exists="append")
            with pytest.raises(longshore.InterfaceError, match="64 bytes"):
                longshore.write_sql(BOATS, "x" * 64, conn)
            conn.rollback()
            assert other.execute("SELECT * FROM quays").fetchall() == []
        finally:
            conn.rollback()
            other.execute("DROP TABLE quays")


def test_a_new_table_has_the_types_that_a_url_gives(conn: Conn, postgres: Endpoint) -> None:
    data = pa.table(
        {
            "a": pa.array([2**64 - 1, None], pa.uint64()),
            "b": pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)),
            "c": pa.array([1, None], pa.timestamp("us", "UTC")),
            "d": pa.array([[1, None], None], pa.list_(pa.int16())),
            "e": pa.array([b"\0\xff", None]),
            "f": pa.array([(1, 2, 3000), None], pa.month_day_nano_interval()),
            "g": pa.array(["a", None]).dictionary_encode(),
            "h": pa.array([None, None]),
        }
    )
    longshore.write_sql(data, "kinds", postgres.url())
    try:
        expected: Any = longshore.read_sql("SELECT * FROM kinds", postgres.url(), return_type="arrow")
        longshore.write_sql(data, "kinds", conn, if_exists="replace")
        found: Any = longshore.read_sql("SELECT * FROM kinds", conn, return_type="arrow")
        assert found.schema.equals(expected.schema, check_metadata=True)
        assert found.to_pylist() == expected.to_pylist()
    finally:
        conn.rollback()
        postgres.psql("DROP TABLE kinds")


@pytest.mark.packages
def test_between_transactions_it_is_its_url(postgres: Endpoint, targets: list[Any]) -> None:
    keywords: dict[str, Any] = {"password": "s3cr3t", "application_name": "harbour"}
    with psycopg.connect(postgres.url(), row_factory=dict_row, **keywords) as conn:
        query = "SELECT pg_backend_pid() AS pid, current_setting('application_name') AS name"
        (row,) = rows(conn, query)
        assert (row["pid"] == conn.info.backend_pid, row["name"]) == (False, "harbour")
        assert targets[-1].items() >= keywords.items()
        with longshore.connect(conn) as own:
            assert own.execute("SELECT 1") == 1
        assert conn.info.transaction_status == TransactionStatus.IDLE
        conn.execute("SELECT 1")
        (row,) = rows(conn, query)
        assert row["pid"] == conn.info.backend_pid
        with pytest.raises(longshore.InterfaceError, match="a transaction is open") as caught:
            longshore.connect(conn)
        assert "s3cr3t" not in str(caught.value)
    assert len(targets) == 2
    with pytest.raises(longshore.InterfaceError, match="closed"):
        rows(conn)


def test_settings_that_are_not_ours_go_through(postgres: Endpoint, targets: list[Any]) -> None:
    with psycopg.connect(postgres.url(), krbsrvname="other") as conn:
        assert rows(conn, "SELECT pg_backend_pid() AS pid") == [{"pid": conn.info.backend_pid}]
        assert longshore.write_sql(BOATS, "quays", conn) == 2
        assert rows(conn, "SELECT * FROM quays ORDER BY berth") == BOATS.to_pylist()
        # As after every statement of the client's, a transaction is open, which the user ends.
        assert (conn.info.transaction_status, conn.autocommit) == (TransactionStatus.INTRANS, False)
        conn.rollback()
        with pytest.raises(longshore.ProgrammingError):
            rows(conn, "SELECT * FROM quays")
        conn.rollback()
        conn.autocommit = True
        with pytest.raises(longshore.InterfaceError, match="autocommit"):
            rows(conn, "SELECT 1 AS n")
        with conn.transaction():
            assert rows(conn, "SELECT pg_backend_pid() AS pid") == [{"pid": conn.info.backend_pid}]
        assert conn.info.transaction_status == TransactionStatus.IDLE
    assert targets == []


def test_how_its_transactions_are_isolated_holds(postgres: Endpoint, targets: list[Any]) -> None:
    with psycopg.connect(postgres.url()) as conn:
        conn.isolation_level, conn.read_only = psycopg.IsolationLevel.SERIALIZABLE, True
        query = "SELECT current_setting('transaction_' || n) AS n FROM unnest(ARRAY['isolation', 'read_only']) AS n"
        assert rows(conn, query) == [{"n": "serializable"}, {"n": "on"}]
        with pytest.raises(longshore.Error) as caught:
            longshore.write_sql(BOATS, "quays", conn)
        assert caught.value.sqlstate == "25006"
        conn.rollback()
        conn.execute("SET standard_conforming_strings TO off")
        with pytest.raises(longshore.InterfaceError, match="standard_conforming_strings"):
            rows(conn, query)
    assert targets == []


def test_rows_are_not_read_and_written_through_one_connection(conn: Conn) -> None:
    conn.execute("INSERT INTO boats SELECT generate_series(3, 5000), 'x'")
    with pytest.raises(longshore.InterfaceError, match="same connection"):
        longshore.copy(QUERY, conn, "quays", conn)
    stream = longshore.read_sql(QUERY, conn, return_type="arrow_stream", batch_size=1000)
    with stream, pytest.raises(longshore.InterfaceError, match="same connection"):
        longshore.write_sql(stream, "quays", conn)
    assert longshore.write_sql(longshore.read_sql(QUERY, conn, return_type="arrow"), "quays", conn) == 5000
    assert rows(conn, "SELECT count(*) AS n FROM quays") == [{"n": 5000}]


def test_what_cannot_be_read_through_is_refused(postgres: Endpoint) -> None:
    async def refused() -> None:
        async with await psycopg.AsyncConnection.connect(postgres.url()) as conn:
            assert rows(conn, "SELECT 1 AS n") == [{"n": 1}]
            await conn.execute("SELECT 1")
            with pytest.raises(longshore.InterfaceError, match="asyncio"):
                rows(conn, "SELECT 1 AS n")

    asyncio.run(refused())
    with psycopg.connect(postgres.url()) as conn, conn.pipeline(), pytest.raises(longshore.InterfaceError) as caught:
        rows(conn, "SELECT 1 AS n")
    assert "busy" in str(caught.value)
