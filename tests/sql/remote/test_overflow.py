"""Sums and products that the engine has no room for, and a source has."""

import decimal
import uuid
from collections.abc import Callable, Iterator

import duckdb
import pyarrow as pa
import pytest

import longshore
from tests.servers import Endpoint, MySQLEndpoint
from tests.sql.remote.comparing import Harbour, loaded

D = decimal.Decimal
WHOLE = "nothing to do"
COLUMNS = "i2 smallint, i4 int, i8 bigint, short decimal(12, 2), wide decimal(30, 4), fine decimal(16, 16)"
TABLE = f"""
    CREATE TABLE t ({COLUMNS});
    INSERT INTO t VALUES (30000, 2000000000, 9000000000000000000, 9999999999.99, 1.5, 1e-16), (1, 2, 3, 4, 5, 0);
"""

#: Products of decimals on which the engine fails beyond 18 digits.
EXACT = {"short * short", "short * i4", "short * 10000000"}


@pytest.fixture(scope="module")
def both(postgres: Endpoint, mariadb: MySQLEndpoint) -> Iterator[dict[str, Harbour]]:
    """Give the table in PostgreSQL, as `pg.t`, and in MariaDB, as `my.t`."""
    name = f"flood_{uuid.uuid4().hex[:8]}"
    postgres.psql(f"CREATE SCHEMA {name}; SET search_path = {name}; {TABLE}")
    mariadb.sql(f"CREATE DATABASE {name}")
    try:
        mariadb.sql(TABLE, database=name)
        pg, my = postgres.url(options=f"-csearch_path={name}"), mariadb.url(database=name)
        with loaded({"pg": pg}, {"pg": ["t"]}) as held, loaded({"my": my}, {"my": ["t"]}) as other:
            yield {"pg": held, "my": other}
    finally:
        postgres.psql(f"DROP SCHEMA {name} CASCADE")
        mariadb.sql(f"DROP DATABASE {name}")


def outcome(run: Callable[[str], pa.Table], query: str) -> pa.Table | None:
    """Give the rows; None for a failure."""
    try:
        return run(query)
    except (duckdb.Error, longshore.Error):
        return None


@pytest.mark.parametrize("source", ["pg", "my"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT sum({}) AS x FROM t",
        "SELECT max({}) AS x FROM t",
        "SELECT count({}) AS x FROM t",
        "SELECT {} AS x FROM t",
        "SELECT count(d.x) AS n FROM (SELECT {} AS x FROM t ORDER BY i8 LIMIT 5) AS d",
        "SELECT {} AS x FROM t ORDER BY x LIMIT 1",
        "SELECT x FROM (SELECT {} AS x, i4 FROM t) AS d WHERE i4 < 5",
    ],
)
@pytest.mark.parametrize(
    "value",
    [
        *["i2 * 3", "i4 + i4", "i8 * 3"],
        *[
            "short * short",
            "short * 100",
            "short * 10000000",
            "short + short",
            "short * i4",
            "wide * 2",
            "wide + short",
            "i2 * 2.5",
        ],
        *["fine * fine", "fine + short", "i8 * short", "(i2 + 1) * 2", "(short * 2) - 1"],
    ],
)
def test_a_source_answers_where_the_engine_does(both: dict[str, Harbour], source: str, query: str, value: str) -> None:
    harbour = both[source]
    text = query.format(value).replace("FROM t", f"FROM {source}.t")
    expected = outcome(harbour.expected, text)
    given = outcome(harbour.given, text)
    if given is None:
        # The engine counts what is never NULL without computing it, where statistics of a table tell that.
        assert expected is None or "count(" in text
        return
    if expected is None:
        assert value in EXACT
        return
    assert given.schema.types == expected.schema.types
    assert sorted(map(str, given.to_pylist())) == sorted(map(str, expected.to_pylist()))


@pytest.mark.parametrize("value", ["short + short", "short * 20", "short * i4", "i2 * 2.5"])
def test_sums_that_fail_in_both_are_the_sources(both: dict[str, Harbour], value: str) -> None:
    assert WHOLE in both["pg"].plan(f"SELECT sum({value}) FROM pg.t")


@pytest.mark.parametrize("source", ["pg", "my"])
def test_sums_of_products_of_decimals_are_exact(both: dict[str, Harbour], source: str) -> None:
    query = f"SELECT sum(short * short) AS x FROM {source}.t"
    assert both[source].given(query).to_pylist() == [{"x": D("9999999999.99") ** 2 + 16}]
