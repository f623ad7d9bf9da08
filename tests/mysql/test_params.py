"""Parameters: what Python has reaches the server as it was, or is refused."""

import datetime as dt
import math
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import longshore
from tests.mysql.reading import column, table, value
from tests.servers import MySQLEndpoint

AMSTERDAM = dt.timezone(dt.timedelta(hours=1))
UTC = dt.UTC


@pytest.mark.parametrize("named", [False, True], ids=["positional", "named"])
@pytest.mark.parametrize(
    ("given", "type_", "expected"),
    [
        (True, "SIGNED", 1),
        (False, "SIGNED", 0),
        (-(2**63), "SIGNED", -(2**63)),
        (2**63, "UNSIGNED", 2**63),
        (2**64 - 1, "UNSIGNED", 2**64 - 1),
        (np.uint64(2**64 - 1), "UNSIGNED", 2**64 - 1),
        (np.int8(-5), "SIGNED", -5),
        (10**40, "DECIMAL(65,0)", Decimal(10**40)),
        (Decimal("12345678901234567890.123456789"), "DECIMAL(40,9)", Decimal("12345678901234567890.123456789")),
        (Decimal("-0." + "0" * 29 + "1"), "DECIMAL(65,30)", Decimal("-0." + "0" * 29 + "1")),
        (Decimal("1E+3"), "DECIMAL(10,0)", Decimal(1000)),
        ("x'; DROP--", "CHAR", "x'; DROP--"),
        ("größe \N{GRINNING FACE}\n\\", "CHAR", "größe \N{GRINNING FACE}\n\\"),
        ("", "CHAR", ""),
        (b"\x00\xff\\'", "BINARY", b"\x00\xff\\'"),
        (bytearray(b"\x01"), "BINARY", b"\x01"),
        (dt.date(1, 1, 1), "DATE", dt.date(1, 1, 1)),
        (dt.date(9999, 12, 31), "DATE", dt.date(9999, 12, 31)),
        (dt.datetime(2024, 2, 29, 1, 2, 3, 4), "DATETIME(6)", dt.datetime(2024, 2, 29, 1, 2, 3, 4)),  # noqa: DTZ001
        (pd.Timestamp("2024-01-01"), "DATETIME(6)", dt.datetime(2024, 1, 1)),  # noqa: DTZ001
        (dt.datetime(2024, 1, 1, 1, tzinfo=AMSTERDAM), "DATETIME(6)", dt.datetime(2024, 1, 1)),  # noqa: DTZ001
        (dt.time(23, 59, 59, 999_999), "TIME(6)", dt.timedelta(days=1) - dt.timedelta(microseconds=1)),
        (dt.timedelta(hours=-800, microseconds=1), "TIME(6)", dt.timedelta(hours=-800, microseconds=1)),
        (uuid.UUID(int=1), "CHAR", str(uuid.UUID(int=1))),
        (None, "CHAR", None),
        (None, "SIGNED", None),
    ],
)
def test_values(given: Any, type_: str, expected: Any, named: bool, url: str) -> None:  # noqa: FBT001
    mark, params = (":it", {"it": given}) if named else ("?", [given])
    assert value(f"SELECT CAST({mark} AS {type_}) AS c", url, params=params) == expected


@pytest.mark.parametrize("given", [0.1, 5e-324, 1.7976931348623157e308, -0.0, 2.0**53, np.float64(0.1)])
def test_doubles(given: float, url: str) -> None:
    got = value("SELECT ? + 0e0 AS c", url, params=[given])
    assert math.isclose(got, given, rel_tol=0)
    before = ["CREATE TEMPORARY TABLE z (c double)"]
    with longshore.connect(url) as connection:
        connection.execute(before[0])
        connection.execute("INSERT INTO z VALUES (?)", [given])
        assert column("SELECT c FROM z", connection) == [given]


@pytest.mark.parametrize("given", [math.nan, math.inf, Decimal("NaN"), 10**81, 10**90, object(), {1, 2}])
def test_what_the_server_cannot_hold(given: Any, url: str) -> None:
    with pytest.raises((longshore.Error, TypeError)):
        table("SELECT ? AS c", url, params=[given])


def test_json(url: str) -> None:
    assert value("SELECT JSON_EXTRACT(?, '$.a[2]') AS c", url, params=[{"a": [1, None, "x"]}]) == '"x"'


def test_an_instant_is_compared_as_one(url: str) -> None:
    with longshore.connect(url) as connection:
        connection.execute("CREATE TEMPORARY TABLE z (c timestamp(6) NULL)")
        instant = dt.datetime(2024, 3, 31, 2, 30, 0, 1, tzinfo=AMSTERDAM)
        connection.execute("INSERT INTO z VALUES (?)", [instant])
        assert column("SELECT c FROM z WHERE c = ?", connection, params=[instant]) == [instant.astimezone(UTC)]


@pytest.mark.parametrize(
    ("query", "params", "expected"),
    [
        ("SELECT '?' AS a, ? AS b", [1], ("?", 1)),
        ('SELECT "?" AS a, ? AS b', [1], ("?", 1)),
        ("SELECT 'it''s ?' AS a, ? AS b", [1], ("it's ?", 1)),
        ("SELECT 'it\\'s ?' AS a, ? AS b", [1], ("it's ?", 1)),
        ("SELECT 1 AS `?`, ? AS b", [2], (1, 2)),
        ("SELECT 1 AS a /* ? */, ? AS b -- ?", [2], (1, 2)),
        ("SELECT 1 AS a, ? AS b # ?", [2], (1, 2)),
        ("SELECT ':x' AS a, :x AS b", {"x": 2}, (":x", 2)),
        ("SELECT :x AS a, :x AS b", {"x": 2}, (2, 2)),
        ("SELECT :b AS a, :a AS b", {"a": 1, "b": 2}, (2, 1)),
        ("SELECT 1 AS `:x`, :x AS b", {"x": 2}, (1, 2)),
        ("SELECT 5 - -? AS a, 7 AS b", [2], (7, 7)),
    ],
)
def test_marks(query: str, params: Any, expected: tuple[Any, ...], url: str) -> None:
    (row,) = table(query, url, params=params).to_pydict().values() and [
        tuple(one[0].as_py() for one in table(query, url, params=params).columns)
    ]
    assert row == expected


def test_execute_counts(url: str) -> None:
    with longshore.connect(url) as connection:
        connection.execute("CREATE TEMPORARY TABLE z (i int, t text)")
        assert connection.execute("INSERT INTO z VALUES (?, ?), (?, ?)", [1, "a", 2, None]) == 2
        assert connection.execute("UPDATE z SET t = :t WHERE i = :i", {"t": "b", "i": 1}) == 1
        assert table("SELECT * FROM z ORDER BY i", connection).to_pylist() == [{"i": 1, "t": "b"}, {"i": 2, "t": None}]


@pytest.mark.parametrize(
    ("query", "instead", "rows"),
    [
        ("VALUES (?), (?)", "SELECT ? AS a UNION ALL SELECT ?", [("abc",), ("z",)]),
        ("WITH c (a) AS (VALUES (?), (?)) SELECT * FROM c", "SELECT ? AS a UNION SELECT ?", [("abc",), ("z",)]),
        ("SELECT 1 AS n WHERE 'abc' IN (VALUES (?), (?))", "SELECT 1 AS n WHERE 'abc' IN (?, ?)", [(1,)]),
    ],
)
def test_mariadb_would_cut_them_in_a_table_of_values(
    mariadb: MySQLEndpoint, query: str, instead: str, rows: list[tuple[Any, ...]]
) -> None:
    params = ["abc", "z"]
    with longshore.connect(mariadb.url()) as connection, connection.cursor() as cursor:
        for text in (query, f"INSERT INTO no_table SELECT * FROM ({query}) AS q"):
            with pytest.raises(
                longshore.NotSupportedError, match=r"cuts parameters in VALUES[\s\S]*SELECT \? UNION ALL"
            ):
                cursor.execute(text, params)
            with pytest.raises(longshore.NotSupportedError, match="cuts parameters"):
                cursor.executemany(text, [params])
        assert cursor.execute(instead, params).fetchall() == rows
    with pytest.raises(longshore.NotSupportedError, match="cuts parameters"):
        longshore.read_sql(query, mariadb.url(), params=params)
