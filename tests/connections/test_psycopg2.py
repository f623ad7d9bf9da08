"""psycopg2's connections, as SQLAlchemy opens them: what `read_sql` gives by a URL, from the server's texts."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg2
import pyarrow as pa
import pytest
import sqlalchemy as sa

import longshore
from tests.conformance import plain, postgresql
from tests.conformance.case import Case
from tests.conformance.cases import CASES
from tests.conftest import Place
from tests.connections.conftest import BOATS
from tests.servers import Endpoint

#: What the client tells of types in its own way, and one of each form of text.
_TOLD = {"numeric(10,2)", "numeric(3,-2)", "numeric", "varchar(12)", "char(10)", "numeric(10,2)[]", "int4[][]"}
_FORMS = {"bool", "float8", "bytea", "timestamptz", "interval", "jsonb", "inet", '"Mood"', "pair[]", "price"}


def rows(conn: Any, query: str = "SELECT berth, name FROM boats ORDER BY berth", **arguments: Any) -> Any:
    return longshore.read_sql(query, conn, return_type="arrow", **arguments).to_pylist()


@pytest.fixture
def conn(postgres: Endpoint) -> Iterator[sa.Connection]:
    """Give a connection, on which a transaction is open that is rolled back at the end."""
    engine = sa.create_engine(sa.make_url(postgres.url()).set(drivername="postgresql+psycopg2"))
    with engine.connect() as connection:
        connection.execute(sa.text("CREATE TABLE boats (berth integer NOT NULL, name text)"))
        connection.execute(sa.text("INSERT INTO boats VALUES (1, 'Ada'), (2, NULL)"))
        yield connection
    engine.dispose()


@pytest.mark.parametrize("case", [case for case in CASES if case.type in _TOLD | _FORMS], ids=lambda case: case.type)
def test_types_are_those_of_a_url(case: Case, place: Place) -> None:
    conn = psycopg2.connect(place(case))
    cells = case.cells if case.query else {"NULL": None, **case.cells}
    with conn.cursor() as cursor:
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
    with pytest.raises(longshore.NotSupportedError, match="only once it has run"):
        rows(conn, "DELETE FROM boats RETURNING berth")
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


def test_without_a_transaction_a_write_is_its_own(postgres: Endpoint) -> None:
    conn = psycopg2.connect(postgres.url())
    assert longshore.write_sql(BOATS, "psycopg2_boats", conn) == 2
    conn.rollback()
    assert rows(conn, "SELECT * FROM psycopg2_boats ORDER BY berth") == BOATS.to_pylist()
    assert (conn.autocommit, conn.info.transaction_status) == (False, psycopg2.extensions.TRANSACTION_STATUS_IDLE)
    conn.close()
    postgres.psql("DROP TABLE psycopg2_boats")
