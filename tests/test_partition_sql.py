"""`longshore.partition_sql`: texts whose results are together the query's, whatever the key."""

import contextlib
import datetime as dt
import decimal
import sqlite3
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import longshore

ROWS = 3000
SOURCES = ["postgresql", "mariadb", "mysql", "sqlite"]
KEYS = {
    "i": [None if n % 7 == 0 else n - 500 for n in range(ROWS)],
    "f": [None if n % 11 == 0 else n / 8 for n in range(ROWS)],
    "d": [None if n % 13 == 0 else dt.date(2020, 1, 1) + dt.timedelta(days=n % 900) for n in range(ROWS)],
    "at": [
        None if n % 5 == 0 else dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(minutes=n) for n in range(ROWS)
    ],
    "t": [None if n % 3 == 0 else f"it's {n % 40} \\ {'é' * (n % 3)}" for n in range(ROWS)],
    "b": [None if n % 17 == 0 else bytes([n % 256, 0, 39]) for n in range(ROWS)],
    "n": [None if n % 19 == 0 else decimal.Decimal(n) / 100 for n in range(ROWS)],
    # One value has most of the rows.
    "skewed": [None if n % 10 == 0 else 1 if n % 10 < 9 else n for n in range(ROWS)],
    "one": [1] * ROWS,
    "nothing": [None] * ROWS,
    "u": [None if n % 23 == 0 else str(uuid.UUID(int=n * 2**100)) for n in range(ROWS)],
}
TYPES = {"n": pa.decimal128(12, 2), "nothing": pa.int32(), "u": pa.string()}


@pytest.fixture(scope="module", params=SOURCES)
def conn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Give a way to each source, whose table `keyed` has a column of each kind."""
    server = {"postgresql": "postgres"}.get(request.param, request.param)
    is_file = server == "sqlite"
    place: Any = tmp_path_factory.mktemp("parts") / "a.db" if is_file else request.getfixturevalue(server).url()
    columns = {name: pa.array(values, TYPES.get(name)) for name, values in KEYS.items()}
    longshore.write_sql(pa.table(columns), "keyed", place, if_exists="replace")
    yield place
    if not is_file:
        with longshore.connect(place) as connection:
            connection.execute("DROP TABLE keyed")


def rows(query: str | list[str], conn: Any) -> Counter[tuple[Any, ...]]:
    table = longshore.read_sql(query, conn, return_type="arrow")
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def check(query: str, conn: Any, on: str, number: int = 4, **more: Any) -> list[str]:
    """Read the parts one by one and as a list: both have each row of the query once."""
    parts = longshore.partition_sql(query, conn, on, number, **more)
    assert len(parts) >= 1
    whole = rows(query, conn)
    by_themselves: Counter[tuple[Any, ...]] = Counter()
    for part in parts:
        by_themselves += rows(part, conn)
    assert by_themselves == whole == rows(parts, conn)
    return parts


@pytest.mark.costly
@pytest.mark.parametrize("key", KEYS)
def test_every_kind_of_key(conn: Any, key: str) -> None:
    parts = check("SELECT * FROM keyed", conn, key)
    assert len(parts) > 1 or key in {"one", "nothing"}
    assert "ctid" not in "".join(parts)
    assert len(set(parts)) == len(parts)


QUERIES = {
    "a condition": "SELECT i, t FROM keyed WHERE f > 10 -- to the end",
    "an order": "SELECT i, t FROM keyed ORDER BY t, i;",
    "groups": "SELECT i, count(*) AS c, min(t) AS t FROM keyed GROUP BY i",
    "a CTE": "WITH w AS (SELECT i, d FROM keyed WHERE d IS NOT NULL) SELECT * FROM w",
    "a join": "SELECT a.i AS i, b.d AS d FROM keyed a JOIN keyed b ON a.i = b.i",
    "a union": "SELECT i FROM keyed UNION ALL SELECT skewed FROM keyed",
    "an expression": "SELECT -i AS i, t FROM keyed",
    "quotes and percent signs": "SELECT i, '%s $1 :x ''?''' AS \"q\" FROM keyed",
}


@pytest.mark.parametrize("shape", QUERIES)
def test_every_shape_of_query(conn: Any, shape: str) -> None:
    query = QUERIES[shape]
    if "mysql" in str(conn) or "mariadb" in str(conn):
        query = query.replace('"q"', "q")
        if shape in {"groups", "a union", "an expression", "an order", "a CTE", "a join"}:
            reason = r"cannot be split: (GROUP BY|UNION|partition_on is|it is not (a plain|one) SELECT)"
            with pytest.raises(longshore.NotSupportedError, match=reason):
                longshore.partition_sql(query, conn, "i", 3)
            return
    assert len(check(query, conn, "i")) > 1


def test_a_range_only_places_the_bounds(conn: Any) -> None:
    parts = check("SELECT i, t FROM keyed", conn, "i", 3, partition_range=(0, 300))
    assert len(parts) == 3


def test_one_part_is_the_query(conn: Any) -> None:
    query = "SELECT i FROM keyed"
    assert longshore.partition_sql(query, conn, "i", 1) == [query]
    none = "SELECT i FROM keyed WHERE 1 = 0"
    assert rows(longshore.partition_sql(none, conn, "i", 4), conn) == Counter()


def test_connections_pools_and_connectorx_order(conn: Any) -> None:
    order: Any = (conn, "SELECT i FROM keyed", "i", 2)
    if not isinstance(conn, Path):
        assert len(longshore.partition_sql(*order)) == 2
    with longshore.Pool(conn, size=1) as pool, longshore.connect(conn) as connection:
        for way in (pool, connection):
            assert len(longshore.partition_sql("SELECT i FROM keyed", way, "i", 2)) == 2
        assert (pool.in_use, connection.in_transaction) == (0, False)
        connection.execute("SELECT 1")
        with pytest.raises(longshore.NotSupportedError, match="cannot be split: an open transaction"):
            longshore.partition_sql("SELECT i FROM keyed", connection, "i", 2)


def test_what_cannot_be_split_says_why(conn: Any) -> None:
    with pytest.raises(longshore.NotSupportedError, match=r"cannot be split: .*LIMIT"):
        longshore.partition_sql("SELECT i FROM keyed LIMIT 10", conn, "i", 2)
    for number in (1, 2):
        with pytest.raises(longshore.InterfaceError, match='names "nowhere", which the query does not') as caught:
            longshore.partition_sql("SELECT i FROM keyed", conn, "nowhere", number)
        assert caught.value.hint == "it returns i"
    with pytest.raises(longshore.Error):
        longshore.partition_sql("SELECT i FROM nowhere", conn, "i", 2)


def test_arguments(url: str) -> None:
    call: Any = longshore.partition_sql
    query = "SELECT 1 AS a"
    for arguments in ((query, url, None, 2), ([query], url, "a", 2), (query, url, "a", 0), (query, url, "a", 2, (1,))):
        with pytest.raises(longshore.InterfaceError):
            call(*arguments)
    with contextlib.closing(sqlite3.connect(":memory:")) as own:
        own.execute("CREATE TABLE t (a INTEGER)")
        with pytest.raises(longshore.NotSupportedError, match="give the file's URL"):
            call("SELECT a FROM t", own, "a", 2)
