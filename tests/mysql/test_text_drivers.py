"""SQLAlchemy over drivers of MySQL's whose statements are texts: what a URL gives, in their transaction."""

import asyncio
import concurrent.futures
import functools
import struct
import uuid
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa

import longshore
from tests.conformance import mysql as quirks
from tests.conformance import plain
from tests.conformance.mysql_cases import CASES
from tests.mysql.engines import BOATS, MakeEngine, assert_it_lends_a_connection, in_a_transaction, making, rows
from tests.servers import MySQLEndpoint

FLOATS = "CREATE TEMPORARY TABLE floats (f float) AS SELECT 0.1 AS f"
SEQ = "WITH RECURSIVE seq AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM seq WHERE n < 100)"


@pytest.fixture
def make_engine(server: MySQLEndpoint) -> Iterator[MakeEngine]:
    with making(server, "mysqldb", {"connect_timeout": 60, "charset": "utf8mb4"}) as make:
        yield make


@pytest.fixture
def conn(make_engine: MakeEngine, tables: Callable[[str], None]) -> Iterator[sa.Connection]:
    with in_a_transaction(make_engine(), tables) as connection:
        yield connection


def test_types_are_those_of_a_url(make_engine: MakeEngine, server: MySQLEndpoint) -> None:
    name = "MariaDB" if "MariaDB" in server.sql("SELECT version()")[0][0] else "MySQL"
    with make_engine().connect() as connection:
        driver = connection.dialect.driver
        connection.exec_driver_sql("SET time_zone = '+00:00'")
        for case in CASES:
            if case.only not in {None, name} or case.rounded_in_text:
                continue
            cells = case.cells if case.query else {"NULL": None, **case.cells}
            for statement in ["DROP TEMPORARY TABLE IF EXISTS cells", *quirks.setup(case, list(cells))]:
                # As it is: SQLAlchemy would look for parameters in it.
                connection.connection.cursor().execute(statement)
            table: Any = longshore.read_sql(quirks.query(case, "true"), connection, return_type="arrow")
            if case.type == "uuid":
                # MariaDB tells of it whoever has asked when connecting, as the driver does not.
                texts = [value if value is None else str(uuid.UUID(bytes=value)) for value in cells.values()]
                assert table["value"].to_pylist() == texts
                continue
            # mysqlclient does not tell a table's column from an expression, which may have more digits.
            is_wide = driver == "mysqldb" and getattr(case.arrow, "precision", 0) == 65
            arrow = pa.decimal256(76, case.arrow.scale) if is_wide else case.arrow
            assert plain.storage(table.schema.field(0).type) == arrow
            assert plain.values(table["value"]) == plain.expected(list(cells.values()), arrow)


def test_parameters_are_those_of_a_url(conn: sa.Connection, url: str) -> None:
    values = {
        "text": "it's \\ ? :a 'x' \0 ä🚢",
        "bytes": b"\x00'\\\xff",
        "int": -(2**63),
        "unsigned": 2**64 - 1,
        "float": 5e-324,
        "zero": -0.0,
        "decimal": Decimal("-1234567890.0123456789"),
        "small": Decimal("1E-7"),
        "date": date(9999, 12, 31),
        "at": datetime(2026, 2, 3, 4, 5, 6, 7),  # noqa: DTZ001  MySQL's has none
        "span": -timedelta(days=3, microseconds=1),
        "yes": True,
        "none": None,
    }
    query = "SELECT " + ", ".join(f":{name} AS `{name}`" for name in values)
    assert rows(conn, query, params=values) == rows(url, query, params=values)
    assert rows(conn, "SELECT 5-? AS n, '?' AS t", params=[-1]) == [{"n": 6, "t": "?"}]
    with pytest.raises(longshore.ProgrammingError, match="2 parameters, and params 1"):
        rows(conn, "SELECT ?, ?", params=[1])


def test_an_open_transaction_is_seen_and_stays_open(conn: sa.Connection, url: str) -> None:
    assert rows(conn) == BOATS.to_pylist()
    assert rows(conn, "SELECT berth FROM boats WHERE name = :name", params={"name": "Ada"}) == [{"berth": 1}]
    assert rows(conn, [f"SELECT berth FROM boats WHERE berth = {n}" for n in (1, 2)]) == [{"berth": 1}, {"berth": 2}]
    assert longshore.schema("SELECT * FROM boats -- all\n;", conn).names == ["berth", "name"]
    more = pa.table({"berth": [3, 4], "name": ["Carl", "Dän's"]})
    assert longshore.write_sql(more, "boats", conn, if_exists="append") == 2
    assert longshore.write_sql(more, "boats", conn, if_exists="upsert", key=["berth"]) == 2
    assert (len(rows(conn)), rows(url)) == (4, [])
    assert conn.execute(sa.text("SELECT name FROM boats WHERE berth = 4")).scalar() == "Dän's"
    frame = pa.table({"berth": [4], "port": ["Riga"]})
    joined = longshore.sql(
        "SELECT port, name FROM frame JOIN db.boats USING (berth)",
        attach={"db": conn},
        return_type="arrow",
        frame=frame,
    )
    assert joined.to_pylist() == [{"port": "Riga", "name": "Dän's"}]
    with pytest.warns(longshore.SerialReadWarning, match="one connection"):
        assert len(rows(conn, partition_on="berth", partition_num=2)) == 4
    conn.rollback()
    assert rows(conn) == []


def test_rows_are_copied_in_and_out(conn: sa.Connection, url: str, tables: Callable[[str], None]) -> None:
    tables("CREATE TABLE copies (berth int, name varchar(20)) ENGINE = InnoDB")
    assert longshore.copy("SELECT * FROM boats", conn, "copies", url, if_exists="append") == 2
    assert longshore.copy("SELECT berth + 10 AS berth, name FROM copies", url, "boats", conn, if_exists="append") == 2
    assert [row["berth"] for row in rows(conn)] == [1, 2, 11, 12]


def test_a_failure_leaves_the_transaction_as_it_was(conn: sa.Connection, url: str) -> None:
    with pytest.raises(longshore.ProgrammingError, match="nothing") as unknown:
        rows(conn, "SELECT nothing FROM boats")
    assert unknown.value.sqlstate == "42S22"
    with pytest.raises(longshore.ProgrammingError, match="syntax"):
        rows(conn, "SELECT 1; SELECT 2")
    with pytest.raises(longshore.NotSupportedError, match="rounds FLOAT"):
        rows(conn, "SELECT f FROM floats", pre_execution_query=FLOATS)
    assert rows(conn, "SELECT f + 0e0 AS f FROM floats") == [{"f": struct.unpack("f", struct.pack("f", 0.1))[0]}]
    with pytest.raises(longshore.DataError) as caught:
        longshore.write_sql(pa.table({"berth": [5, 2**40]}), "boats", conn, if_exists="append")
    assert (caught.value.column, caught.value.row) == ("berth", 1)
    with pytest.raises(longshore.IntegrityError):
        longshore.write_sql(pa.table({"berth": [6, 1]}), "boats", conn, if_exists="append")
    with pytest.raises(longshore.ProgrammingError, match="would commit"):
        longshore.write_sql(BOATS, "others", conn)
    assert rows(conn) == BOATS.to_pylist()
    assert rows(url) == []
    conn.commit()
    assert rows(url) == BOATS.to_pylist()


def test_what_is_stopped_leaves_the_connection_usable(conn: sa.Connection) -> None:
    with pytest.raises(longshore.TimeoutError):
        rows(conn, "SELECT sleep(60) AS n", timeout=0.2)
    assert rows(conn) == BOATS.to_pylist()
    seq = f"{SEQ} SELECT a.n FROM seq AS a, seq AS b, seq AS c, seq AS d"
    with longshore.read_sql(seq, conn, return_type="arrow_stream") as stream:
        next(iter(stream))
        with pytest.raises(longshore.InterfaceError, match="close the stream"):
            conn.connection.cursor().execute("SELECT 1")
        with pytest.raises(longshore.InterfaceError, match="close the stream"):
            conn.connection.commit()
        with pytest.raises(longshore.InterfaceError, match="busy"):
            rows(conn)
    assert conn.execute(sa.text("SELECT count(*) FROM boats")).scalar() == 2
    assert rows(conn) == BOATS.to_pylist()


def test_a_statement_that_cannot_be_stopped_ends_with_its_connection(make_engine: MakeEngine) -> None:
    opened = make_engine()
    dialect: Any = opened.dialect
    arguments, keywords = dialect.create_connect_args(opened.url)
    connections = [dialect.loaded_dbapi.connect(*arguments, **keywords)]
    with sa.create_engine(opened.url, creator=connections.pop).connect() as connection:
        with pytest.raises(longshore.TimeoutError):
            rows(connection, "SELECT sleep(60) AS n", timeout=0.2)
        with pytest.raises(sa.exc.DBAPIError):
            connection.execute(sa.text("SELECT 1"))


async def read(conn: Any) -> Any:
    return (await longshore.read_sql_async("SELECT berth FROM boats", conn, return_type="arrow")).to_pylist()


def test_asyncio_and_streams_go_through_it(conn: sa.Connection) -> None:
    assert asyncio.run(read(conn)) == [{"berth": 1}, {"berth": 2}]
    with longshore.read_sql("SELECT berth FROM boats", conn, return_type="arrow_stream") as stream:
        assert [row for batch in stream for row in batch.to_pylist()] == [{"berth": 1}, {"berth": 2}]


def test_results_of_a_procedure_and_of_show(conn: sa.Connection, server: MySQLEndpoint) -> None:
    server.sql("CREATE PROCEDURE ports() BEGIN SELECT 1 AS n UNION SELECT 2; DO 0; END")
    try:
        assert rows(conn, "CALL ports()") == [{"n": 1}, {"n": 2}]
        assert rows(conn, "SHOW TABLES LIKE 'boats'") != []
        assert rows(conn) == BOATS.to_pylist()
    finally:
        conn.rollback()
        server.sql("DROP PROCEDURE ports")


def test_a_deadlock_is_told_by_its_state(conn: sa.Connection, make_engine: MakeEngine) -> None:
    conn.commit()
    update = "UPDATE boats SET name = 'x' WHERE berth = %d"
    with make_engine().connect() as other, concurrent.futures.ThreadPoolExecutor(1) as pool:
        for connection, berth in [(conn, 1), (other, 2)]:
            rows(connection, "SELECT 1", pre_execution_query=update % berth)
        waiting = pool.submit(rows, conn, "SELECT 1 AS n", pre_execution_query=update % 2)
        mine = functools.partial(rows, other, "SELECT 1 AS n", pre_execution_query=update % 1)
        attempts: list[Callable[[], Any]] = [mine, waiting.result]
        outcomes: list[Any] = []
        for attempt in attempts:
            try:
                outcomes.append(attempt())
            except longshore.OperationalError as error:
                outcomes.append(error.sqlstate)
                other.rollback()
        assert sorted(map(str, outcomes)) == ["40001", "[{'n': 1}]"]


def test_long_rows_and_many(conn: sa.Connection) -> None:
    table = longshore.read_sql(
        f"{SEQ} SELECT a.n, repeat('x', 70000) AS t, unhex('ff00') AS b FROM seq AS a", conn, return_type="arrow"
    )
    assert (table["n"].to_pylist(), set(table["b"].to_pylist())) == (list(range(1, 101)), {b"\xff\0"})
    assert {len(text) for text in table["t"].to_pylist()} == {70_000}
    many = longshore.read_sql(f"{SEQ} SELECT a.n FROM seq AS a, seq AS b ORDER BY 1", conn, return_type="arrow")
    assert many["n"].to_pylist() == [n for n in range(1, 101) for _ in range(100)]


def test_an_engine_lends_a_connection(make_engine: MakeEngine, url: str) -> None:
    assert_it_lends_a_connection(make_engine(), url)


def test_connections_that_are_refused(conn: sa.Connection) -> None:
    with pytest.raises(longshore.NotSupportedError, match="character set"):
        rows(conn, "SELECT 1 AS n", pre_execution_query="SET NAMES latin1")
    conn.commit()
    with (
        conn.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as alone,
        pytest.raises(longshore.InterfaceError, match="autocommit"),
    ):
        rows(alone, "SELECT 1 AS n")


def test_a_session_that_is_lost_is_an_error(server: MySQLEndpoint, conn: sa.Connection) -> None:
    thread = conn.execute(sa.text("SELECT connection_id()")).scalar()
    server.sql(f"KILL {thread}")
    with pytest.raises(longshore.OperationalError, match="lost"):
        rows(conn)
    with pytest.raises(sa.exc.DBAPIError):
        conn.execute(sa.text("SELECT 1"))
