"""The caller's transaction goes on after a query that reads no more than a part of its tables."""

from collections.abc import Iterator
from typing import Any

import pytest

import longshore

ROWS = 100_000
PART = "SELECT n FROM db.long WHERE length(t) > 3 LIMIT 5"


@pytest.fixture(params=["postgres", "mariadb", "mysql"])
def held(request: pytest.FixtureRequest) -> Iterator[longshore.Connection]:
    """Give a connection whose transaction has made a table, in each server."""
    server = request.getfixturevalue(request.param)
    series = f"generate_series(1, {ROWS}) AS s(n)"
    if request.param != "postgres":
        digits = " UNION ALL ".join(f"SELECT {digit} AS d" for digit in range(10))
        tens = ", ".join(f"({digits}) AS t{at}" for at in range(5))
        series = f"(SELECT 1 + t0.d + 10 * t1.d + 100 * t2.d + 1000 * t3.d + 10000 * t4.d AS n FROM {tens}) AS s"
    with longshore.connect(server.url()) as connection:
        connection.execute(f"CREATE TABLE long_{request.param} AS SELECT n, repeat('x', 100) AS t FROM {series}")
        try:
            connection.execute("CREATE TEMPORARY TABLE mine (a int)")
            yield connection
        finally:
            connection.rollback()
            connection.execute(f"DROP TABLE IF EXISTS long_{request.param}")
            connection.commit()


def table(connection: longshore.Connection) -> str:
    names = ("postgres", "mariadb", "mysql")
    version = str(longshore.read_sql("SELECT version() AS v", connection, return_type="arrow")["v"][0])
    return f"long_{names[0] if 'PostgreSQL' in version else names[1] if 'MariaDB' in version else names[2]}"


def changed(connection: longshore.Connection) -> int:
    """Change the table in the transaction, and count what is changed."""
    name = table(connection)
    connection.execute(f"UPDATE {name} SET t = 'y' WHERE n = 7")
    query = f"SELECT count(*) AS n FROM {name} WHERE t = 'y'"
    return int(longshore.read_sql(query, connection, return_type="arrow")["n"][0].as_py())


@pytest.mark.costly
@pytest.mark.parametrize("return_type", ["arrow", "pandas", "arrow_stream"])
def test_the_transaction_outlives_a_limit(held: longshore.Connection, return_type: Any) -> None:
    assert changed(held) == 1
    query = PART.replace("long", table(held))
    found = longshore.sql(query, attach={"db": held}, return_type=return_type)
    rows = sum(batch.num_rows for batch in found) if return_type == "arrow_stream" else len(found)
    assert rows == 5
    assert held.in_transaction
    assert changed(held) == 1


def test_the_transaction_outlives_a_stream_that_is_closed(held: longshore.Connection) -> None:
    assert changed(held) == 1
    query = PART.replace("long", table(held)).replace("LIMIT 5", "")
    with longshore.sql(query, attach={"db": held}, return_type="arrow_stream") as stream:
        assert next(stream).num_rows > 0
    assert changed(held) == 1


def test_the_transaction_outlives_a_failure_of_the_engine(held: longshore.Connection) -> None:
    assert changed(held) == 1
    query = f"SELECT error('no ' || n) FROM db.{table(held)} WHERE length(t) > 3"
    with pytest.raises(longshore.Error, match="no "):
        longshore.sql(query, attach={"db": held})
    assert changed(held) == 1
