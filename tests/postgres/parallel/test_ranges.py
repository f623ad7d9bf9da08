"""Parts by a column between two values."""

import datetime as dt
import decimal
import math
from typing import Any

import pytest

import longshore
from tests.postgres.parallel.comparing import Statements, in_parts, read
from tests.servers import PostgreSQL


@pytest.mark.parametrize(
    ("native", "low", "high"),
    [
        ("int2", 100, 300),
        ("int4", -5, 10**30),
        ("int4", 10.5, 900.25),
        ("numeric", decimal.Decimal("0.1"), decimal.Decimal("1e3")),
        ("numeric", 1, 2.5),
        ("float4", -1e300, 1e300),
        ("float8", 1, 1000),
        ("date", dt.date(1970, 1, 1), dt.date(1975, 1, 1)),
        ("date", dt.date(1970, 1, 1), dt.datetime(1971, 1, 1, 12)),  # noqa: DTZ001
        ("timestamp", dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 2)),  # noqa: DTZ001
        ("timestamp", dt.date(1970, 1, 1), dt.date(1980, 1, 1)),
        ("timestamptz", dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.datetime(1970, 1, 2, tzinfo=dt.UTC)),
    ],
)
def test_a_range_only_places_the_bounds(native: str, low: Any, high: Any, server: PostgreSQL) -> None:
    temporal = native.startswith(("date", "time"))
    key = f"nullif(i, 7) * interval '1 hour' + 'epoch'::{native}" if temporal else "nullif(i, 7)"
    query = f"SELECT i, ({key})::{native} AS k FROM generate_series(-100, 1000) AS i"
    statements = Statements(server)
    in_parts(query, server.url(), partition_on="k", partition_num=4, partition_range=(low, high))
    assert len(statements.of_parts()) == 4


@pytest.mark.parametrize(
    ("native", "given_range", "parts"), [("int4", (0, 1), 3), ("int8", (5, 5), 2), ("float4", (0.0, 1e-300), 2)]
)
def test_a_range_of_few_values_makes_few_parts(
    native: str, given_range: tuple[float, float], parts: int, server: PostgreSQL, statements: Statements
) -> None:
    query = f"SELECT i, nullif(i, 7)::{native} AS k FROM generate_series(-100, 1000) AS i"
    in_parts(query, server.url(), partition_on="k", partition_num=4, partition_range=given_range)
    assert len(statements.of_parts()) == parts


def test_a_range_cuts_into_equal_widths(server: PostgreSQL, statements: Statements) -> None:
    query = "SELECT i FROM generate_series(1, 1000) AS i"
    in_parts(query, server.url(), partition_on="i", partition_num=4, partition_range=(1, 1000))
    sizes = [int(server.psql(f"SELECT count(*) FROM ({part}) AS p")) for part in statements.of_parts()]
    assert sizes == [250] * 4


@pytest.mark.parametrize(
    ("column", "given_range", "error"),
    [
        ("id", (10, 1), "ends before it begins"),
        ("id", ("a", "b"), "does not fit the type int4"),
        ("word", (1, 2), "does not fit the type text"),
        ("at", (1, 2), "does not fit the type timestamptz"),
        ("id", (0, math.nan), "does not fit the type int4"),
        ("id", (True, False), "does not fit the type int4"),
        ("at", (dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1)), "does not fit the type timestamptz"),  # noqa: DTZ001
    ],
)
def test_ranges_that_are_none(column: str, given_range: tuple[Any, Any], error: str, url: str) -> None:
    with pytest.raises(longshore.InterfaceError, match=error):
        read("SELECT * FROM t", url, partition_on=column, partition_num=3, partition_range=given_range)


@pytest.mark.costly
@pytest.mark.parametrize("native", ["float4", "float8", "numeric", "int4"])
@pytest.mark.parametrize("value", [0.1, 0.7, 19.99, -99.95])
def test_a_range_of_one_value_doubles_nothing(native: str, value: float, server: PostgreSQL) -> None:
    query = f"SELECT i, {value}::{native} AS k FROM generate_series(1, 100) AS i"
    high = math.nextafter(value, math.inf)
    for number in (2, 3, 5, 7, 11, 16):
        table = read(query, server.url(), partition_on="k", partition_num=number, partition_range=(value, value))
        assert table.num_rows == 100, number
        table = read(query, server.url(), partition_on="k", partition_num=number, partition_range=(value, high))
        assert table.num_rows == 100, number
