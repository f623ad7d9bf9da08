"""Sums and products that the engine has no room for: an error, as over a frame."""

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
COLUMNS = "i2 smallint, i4 int, i8 bigint, short decimal(12, 2), wide decimal(30, 4), fine decimal(16, 16)"
TABLE = f"""
    CREATE TABLE t ({COLUMNS});
    INSERT INTO t VALUES (30000, 2000000000, 9000000000000000000, 9999999999.99, 1.5, 1e-16), (1, 2, 3, 4, 5, 0);
"""


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
def test_the_engine_computes(both: dict[str, Harbour], source: str, query: str, value: str) -> None:
    harbour = both[source]
    text = query.format(value).replace("FROM t", f"FROM {source}.t")
    expected = outcome(harbour.expected, text)
    given = outcome(harbour.given, text)
    if given is None:
        # The engine counts what is never NULL without computing it, where statistics of a table tell that.
        assert expected is None or "count(" in text
        return
    assert expected is not None
    assert given.schema.types == expected.schema.types
    assert sorted(map(str, given.to_pylist())) == sorted(map(str, expected.to_pylist()))


@pytest.mark.parametrize("source", ["pg", "my"])
def test_a_product_that_does_not_fit_is_an_error_with_its_remedy(both: dict[str, Harbour], source: str) -> None:
    query = f"SELECT sum({{}} * short) AS x FROM {source}.t"
    with pytest.raises(longshore.DataError, match="explicit cast to a bigger decimal"):
        both[source].given(query.format("short"))
    exact = both[source].given(query.format("CAST(short AS DECIMAL(20, 2))"))
    assert exact.to_pylist() == [{"x": D("9999999999.99") ** 2 + 16}]
