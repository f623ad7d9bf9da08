"""PyMySQL's connections, by themselves and as SQLAlchemy opens them: what a URL gives, in their transaction."""

import contextlib
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pymysql
import pytest
import sqlalchemy as sa

import longshore
from tests.conformance import mysql as quirks
from tests.conformance import plain
from tests.conformance.mysql_cases import CASES
from tests.mysql.engines import BOATS, MakeEngine, assert_it_lends_a_connection, in_a_transaction, making, rows
from tests.servers import MySQLEndpoint


@pytest.fixture
def make_engine(server: MySQLEndpoint) -> Iterator[MakeEngine]:
    with making(server, "pymysql", {"read_timeout": 60, "ssl_disabled": True}) as make:
        yield make


@pytest.fixture
def conn(make_engine: MakeEngine, tables: Callable[[str], None]) -> Iterator[sa.Connection]:
    with in_a_transaction(make_engine(), tables) as connection:
        yield connection


@pytest.mark.parametrize("protocol", quirks.PROTOCOLS)
def test_types_are_those_of_a_url(protocol: str, server: MySQLEndpoint) -> None:
    name = "MariaDB" if "MariaDB" in server.sql("SELECT version()")[0][0] else "MySQL"
    with contextlib.closing(server.client()) as client:
        client.begin()
        client.query("SET time_zone = '+00:00'")
        for case in CASES:
            if case.only not in {None, name} or (case.rounded_in_text and protocol == "text"):
                continue
            cells = case.cells if case.query else {"NULL": None, **case.cells}
            for statement in ["DROP TEMPORARY TABLE IF EXISTS cells", *quirks.setup(case, list(cells))]:
                client.query(statement)
            client.begin()
            query, options = quirks.query(case, "true"), {"protocol": protocol}
            table: Any = longshore.read_sql(query, client, return_type="arrow", options=options)
            if case.type == "uuid":
                # MariaDB tells of it whoever has asked when connecting, as pymysql does not.
                texts = [value if value is None else str(uuid.UUID(bytes=value)) for value in cells.values()]
                assert table["value"].to_pylist() == texts
                continue
            assert plain.storage(table.schema.field(0).type) == case.arrow
            assert plain.values(table["value"]) == plain.expected(list(cells.values()), case.arrow)


def test_an_open_transaction_is_seen_and_stays_open(conn: sa.Connection, url: str) -> None:
    assert rows(conn) == BOATS.to_pylist()
    assert rows(conn, "SELECT berth FROM boats WHERE name = :name", params={"name": "Ada"}) == [{"berth": 1}]
    assert rows(conn, [f"SELECT berth FROM boats WHERE berth = {n}" for n in (1, 2)]) == [{"berth": 1}, {"berth": 2}]
    assert longshore.schema("SELECT * FROM boats", conn).names == ["berth", "name"]
    more = pa.table({"berth": [3, 4], "name": ["Carl", "Dan"]})
    assert longshore.write_sql(more, "boats", conn, if_exists="append") == 2
    assert longshore.write_sql(more, "boats", conn, if_exists="upsert", key=["berth"]) == 2
    assert (len(rows(conn)), rows(url)) == (4, [])
    assert conn.execute(sa.text("SELECT count(*) FROM boats")).scalar() == 4
    with pytest.warns(longshore.SerialReadWarning, match="one connection"):
        assert len(rows(conn, partition_on="berth", partition_num=2)) == 4
    conn.rollback()
    assert rows(conn) == []


def test_a_failure_leaves_the_transaction_as_it_was(conn: sa.Connection, url: str) -> None:
    with pytest.raises(longshore.ProgrammingError, match="nothing"):
        rows(conn, "SELECT nothing FROM boats")
    with pytest.raises(longshore.DataError) as caught:
        longshore.write_sql(pa.table({"berth": [5, 2**40]}), "boats", conn, if_exists="append")
    assert (caught.value.column, caught.value.row) == ("berth", 1)
    with pytest.raises(longshore.IntegrityError):
        longshore.write_sql(pa.table({"berth": [6, 1]}), "boats", conn, if_exists="append")
    with pytest.raises(longshore.ProgrammingError, match="would commit"):
        longshore.write_sql(BOATS, "others", conn)
    assert rows(conn) == BOATS.to_pylist()
    conn.commit()
    assert rows(url) == BOATS.to_pylist()


def test_what_is_stopped_leaves_the_connection_usable(conn: sa.Connection) -> None:
    with pytest.raises(longshore.TimeoutError):
        rows(conn, "SELECT sleep(60) AS n", timeout=0.2)
    assert rows(conn) == BOATS.to_pylist()
    many = "SELECT a.n FROM seq AS a, seq AS b, seq AS c, seq AS d"
    seq = f"WITH RECURSIVE seq AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM seq WHERE n < 100) {many}"
    with longshore.read_sql(seq, conn, return_type="arrow_stream") as stream:
        next(iter(stream))
        with pytest.raises(sa.exc.ProgrammingError, match="close the stream"):
            conn.execute(sa.text("SELECT 1"))
        with pytest.raises(longshore.InterfaceError, match="busy"):
            rows(conn)
    assert conn.execute(sa.text("SELECT count(*) FROM boats")).scalar() == 2
    assert rows(conn) == BOATS.to_pylist()


def test_an_engine_lends_a_connection(make_engine: MakeEngine, url: str) -> None:
    assert_it_lends_a_connection(make_engine(), url)


def test_rows_go_as_a_file_where_the_client_offers_it(make_engine: MakeEngine, conn: sa.Connection) -> None:
    conn.commit()
    more = pa.table({"berth": range(3, 1000)})
    with make_engine(local_infile=True).connect() as connection:
        assert longshore.write_sql(more, "boats", connection, if_exists="append") == 997
        with pytest.raises(longshore.IntegrityError):
            longshore.write_sql(more, "boats", connection, if_exists="append")
        assert len(rows(connection)) == 999


def test_connections_that_are_refused(server: MySQLEndpoint) -> None:
    with contextlib.closing(server.client()) as client:
        with pytest.raises(longshore.InterfaceError, match="autocommit"):
            rows(client, "SELECT 1 AS n")
        client.begin()
        assert rows(client, "SELECT 1 AS n") == [{"n": 1}]
        # It takes several statements in one text, as before, and our verbs do not.
        with pytest.raises(longshore.ProgrammingError, match="syntax"):
            rows(client, "SELECT 1; SELECT 2")
        with client.cursor() as cursor:
            cursor.execute("SELECT 1; SELECT 2")
            assert (cursor.nextset(), cursor.fetchall()) == (True, ((2,),))
        with pytest.raises(longshore.NotSupportedError, match="character set"):
            rows(client, "SELECT 1 AS n", pre_execution_query="SET NAMES latin1")
        with client.cursor(pymysql.cursors.SSCursor) as cursor:
            cursor.execute("SELECT 1")
            with pytest.raises(longshore.InterfaceError, match="busy"):
                rows(client, "SELECT 1 AS n")
        client.query("SET time_zone = 'SYSTEM', @@session.character_set_results = 'latin1'")
        with pytest.raises(longshore.InterfaceError, match="character_set_results"):
            rows(client, "SELECT 1 AS n")
    with pytest.raises(longshore.InterfaceError, match="closed"):
        rows(client, "SELECT 1 AS n")


def test_a_session_that_is_lost_is_an_error(server: MySQLEndpoint, conn: sa.Connection) -> None:
    thread = conn.execute(sa.text("SELECT connection_id()")).scalar()
    server.sql(f"KILL {thread}")
    with pytest.raises(longshore.OperationalError):
        rows(conn)
    with pytest.raises(sa.exc.DBAPIError):
        conn.execute(sa.text("SELECT 1"))
