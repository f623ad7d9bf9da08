"""psycopg2's and pg8000's connections, by themselves and as SQLAlchemy opens them: what `read_sql` gives by a URL."""

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pg8000.dbapi
import psycopg2
import pyarrow as pa
import pytest
import sqlalchemy as sa

import longshore
from tests.conformance import plain, postgresql
from tests.conformance.case import Case
from tests.conformance.cases import CASES
from tests.connections.conftest import BOATS
from tests.fixtures import Place
from tests.servers import Endpoint

#: The types of which clients tell in their own ways, and one of each form of text.
_TOLD = {"numeric(10,2)", "numeric(3,-2)", "numeric", "varchar(12)", "char(10)", "numeric(10,2)[]", "int4[][]"}
_FORMS = {"bool", "float8", "bytea", "timestamptz", "interval", "jsonb", "inet", '"Mood"', "pair[]", "price"}


def rows(conn: Any, query: str = "SELECT berth, name FROM boats ORDER BY berth", **arguments: Any) -> Any:
    return longshore.read_sql(query, conn, return_type="arrow", **arguments).to_pylist()


def by_pg8000(url: str) -> Any:
    parts = sa.make_url(url)
    return pg8000.dbapi.connect(
        host=parts.host, port=parts.port, user=parts.username, password=parts.password, database=parts.database
    )


OPEN: dict[str, Callable[[str], Any]] = {"psycopg2": psycopg2.connect, "pg8000": by_pg8000}


@pytest.fixture(params=OPEN)
def driver(request: pytest.FixtureRequest) -> str:
    """Give the name of a driver."""
    return str(request.param)


@pytest.fixture
def conn(postgres: Endpoint, driver: str) -> Iterator[sa.Connection]:
    """Give a connection, on which a transaction is open that is rolled back at the end."""
    engine = sa.create_engine(sa.make_url(postgres.url()).set(drivername=f"postgresql+{driver}"))
    with engine.connect() as connection:
        connection.execute(sa.text("CREATE TABLE boats (berth integer NOT NULL, name text)"))
        connection.execute(sa.text("INSERT INTO boats VALUES (1, 'Ada'), (2, NULL)"))
        yield connection
    engine.dispose()


@pytest.mark.parametrize("case", [case for case in CASES if case.type in _TOLD | _FORMS], ids=lambda case: case.type)
def test_types_are_those_of_a_url(case: Case, driver: str, place: Place) -> None:
    conn = OPEN[driver](place(case))
    cells = case.cells if case.query else {"NULL": None, **case.cells}
    cursor = conn.cursor()
    for statement in postgresql.setup(case, list(cells)):
        cursor.execute(statement)
    table: Any = longshore.read_sql(postgresql.query(case), conn, return_type="arrow")
    conn.close()
    assert plain.values(table["value"]) == plain.expected(list(cells.values()), case.arrow)
    field = table.schema.field(0)
    assert plain.storage(field.type) == case.arrow
    assert field.metadata[b"native_type"].decode() == (case.native or case.type)


def test_an_open_transaction_is_seen_and_stays_open(conn: sa.Connection) -> None:
    assert rows(conn) == BOATS.to_pylist()
    assert rows(conn, "SELECT berth FROM boats WHERE name = $1", params=["Ada"]) == [{"berth": 1}]
    odd = "it's 100% \\ $1"
    query = "SELECT :text AS text, '$1 :text' AS same, :number + 1.0 AS number, 7 % 4 AS rest"
    assert rows(conn, query, params={"text": odd, "number": Decimal("1.5")}) == [
        {"text": odd, "same": "$1 :text", "number": Decimal("2.5"), "rest": 3}
    ]
    assert longshore.schema("SELECT * FROM boats", conn).field("berth").nullable is False
    with longshore.read_sql("SELECT generate_series(1, 9000) AS i", conn, return_type="arrow_stream") as stream:
        assert pa.table(stream)["i"].to_pylist() == list(range(1, 9001))
    with pytest.raises(longshore.ProgrammingError) as caught:
        rows(conn, "SELECT nothing FROM boats")
    assert caught.value.sqlstate == "42703"
    assert rows(conn) == BOATS.to_pylist()
    with pytest.raises(longshore.TimeoutError):
        rows(conn, "SELECT pg_sleep(60)::text AS t", timeout=0.3)
    conn.rollback()


def test_writes_are_part_of_the_transaction(conn: sa.Connection) -> None:
    assert longshore.write_sql(BOATS, "boats", conn, if_exists="append") == 2
    with pytest.raises(longshore.DataError):
        longshore.write_sql(pa.table({"berth": [1, None]}), "boats", conn, if_exists="append")
    assert conn.execute(sa.text("SELECT count(*) FROM boats")).scalar() == 4
    conn.rollback()
    with pytest.raises(longshore.ProgrammingError, match="boats"):
        rows(conn)


def test_without_a_transaction_the_client_begins_one(driver: str, postgres: Endpoint) -> None:
    conn = OPEN[driver](postgres.url())
    assert longshore.write_sql(BOATS, "begun_boats", conn) == 2
    with pytest.raises(longshore.InterfaceError, match="same connection"):
        longshore.copy("SELECT * FROM begun_boats", conn, "begun_others", conn)
    assert longshore.copy("SELECT * FROM begun_boats", conn, "begun_copies", postgres.url()) == 2
    assert rows(postgres.url(), "SELECT 1 AS n", pre_execution_query="DROP TABLE begun_copies") == [{"n": 1}]
    conn.rollback()
    with pytest.raises(longshore.ProgrammingError, match="begun_boats"):
        rows(conn, "SELECT * FROM begun_boats")
    conn.rollback()
    conn.autocommit = True
    with pytest.raises(longshore.InterfaceError, match="autocommit"):
        rows(conn, "SELECT 1 AS n")
    conn.close()
    with pytest.raises(longshore.OperationalError, match="connection is closed"):
        rows(conn, "SELECT 1 AS n")


def test_an_engine_lends_a_connection(driver: str, postgres: Endpoint) -> None:
    url = sa.make_url(postgres.url()).set(drivername=f"postgresql+{driver}")
    engine = sa.create_engine(url, connect_args={"timeout" if driver == "pg8000" else "connect_timeout": 60})
    pool: Any = engine.pool
    try:
        assert longshore.write_sql(BOATS, "lent_boats", engine, if_exists="replace") == 2
        assert rows(postgres.url(), "SELECT * FROM lent_boats") == BOATS.to_pylist()
        with pytest.raises(longshore.TimeoutError):
            rows(engine, "SELECT pg_sleep(60)::text AS t", timeout=0.3)
        assert rows(engine, "SELECT count(*) AS n FROM lent_boats") == [{"n": 2}]
        assert pool.checkedout() == 0
    finally:
        longshore.read_sql("SELECT 1", postgres.url(), pre_execution_query="DROP TABLE IF EXISTS lent_boats")
        engine.dispose()


def test_several_statements_are_refused_before_any_runs(conn: sa.Connection) -> None:
    for query in ("SELECT 1 AS n; INSERT INTO boats VALUES (3, 'Cid')", "SELECT 1 AS n; COMMIT"):
        with pytest.raises(longshore.ProgrammingError, match=r"multiple commands|more than one statement"):
            longshore.schema(query, conn)
        with pytest.raises(longshore.ProgrammingError, match=r"multiple commands|more than one statement"):
            rows(conn, query)
    with pytest.raises(longshore.ProgrammingError, match="more than one statement"):
        rows(conn, pre_execution_query="SELECT 1; COMMIT")
    assert rows(conn, "SELECT count(*) AS n FROM boats; -- ;") == [{"n": 2}]
    conn.rollback()
    with pytest.raises(longshore.ProgrammingError, match="boats"):
        rows(conn)


def test_parameters_are_of_the_types_that_the_server_tells(conn: sa.Connection, postgres: Endpoint) -> None:
    query = (
        "SELECT $1::float8 AS a, $1 / 2 AS b, $2::bpchar || '|' AS c, $3::int[] AS d, $3[2] AS e, $4::bit(3) AS f, "
        "$5::float8 / 2 AS g, '2020-01-31'::date + $6::int AS h, ('' || berth) AS i FROM boats WHERE berth = $7"
    )
    params = [7, "ab", [1, 2], "101", None, 1, 1]
    found = rows(conn, query, params=params)
    assert found == [
        {"a": 7.0, "b": 3.5, "c": "ab|", "d": [1, 2], "e": 2, "f": "101", "g": None, "h": dt.date(2020, 2, 1), "i": "1"}
    ]
    by_url = longshore.read_sql(
        query.replace("FROM boats", "FROM (VALUES (1)) AS boats(berth)"),
        postgres.url(),
        params=params,
        return_type="arrow",
    )
    assert by_url.to_pylist() == found
    # The catalogue is asked once more than for columns of types of PostgreSQL's own.
    conn.execute(sa.text("CREATE DOMAIN label AS text"))
    assert rows(conn, "SELECT 'x'::label AS a, ARRAY['y'::label] AS b") == [{"a": "x", "b": ["y"]}]


def test_settings_in_which_texts_are_others_are_refused(conn: sa.Connection) -> None:
    for setting, value in (("client_encoding", "'LATIN1'"), ("standard_conforming_strings", "off")):
        transaction = conn.begin_nested()
        conn.execute(sa.text(f"SET {setting} TO {value}"))
        with pytest.raises(longshore.InterfaceError, match=setting):
            rows(conn)
        transaction.rollback()
    assert rows(conn) == BOATS.to_pylist()


def test_a_session_that_is_lost_is_an_error(conn: sa.Connection, postgres: Endpoint) -> None:
    number = conn.execute(sa.text("SELECT pg_backend_pid()")).scalar()
    longshore.read_sql(f"SELECT pg_terminate_backend({number}, 5000)", postgres.url())
    for _ in range(2):
        with pytest.raises(longshore.OperationalError):
            rows(conn)
    conn.invalidate()


@pytest.mark.parametrize("driver", ["psycopg2"], indirect=True)
def test_psycopg2_keeps_its_own_settings(conn: sa.Connection, postgres: Endpoint) -> None:
    with pytest.raises(longshore.NotSupportedError, match="only once it has run"):
        rows(conn, "DELETE FROM boats RETURNING berth")
    assert rows(conn) == BOATS.to_pylist()
    opened = psycopg2.connect(postgres.url())
    opened.set_session(isolation_level="REPEATABLE READ")
    assert rows(opened, "SELECT current_setting('transaction_isolation') AS level") == [{"level": "repeatable read"}]
    assert opened.info.transaction_status == psycopg2.extensions.TRANSACTION_STATUS_INTRANS
    opened.rollback()
    opened.set_session(autocommit=True)
    with pytest.raises(longshore.InterfaceError, match="autocommit"):
        rows(opened, "SELECT 1 AS n")
    assert opened.info.transaction_status == psycopg2.extensions.TRANSACTION_STATUS_IDLE
    opened.close()


@pytest.mark.parametrize("driver", ["pg8000"], indirect=True)
def test_pg8000_tells_the_rows_of_a_change(conn: sa.Connection) -> None:
    assert rows(conn, "INSERT INTO boats VALUES ($1, NULL) RETURNING berth", params=[3]) == [{"berth": 3}]
    assert rows(conn, "DELETE FROM boats WHERE berth > 2 RETURNING berth") == [{"berth": 3}]
