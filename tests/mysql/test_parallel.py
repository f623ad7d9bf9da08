"""Reads in parts equal serial ones: of any table, by any key, NULL keys included."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.mysql.comparing import ROWS, Options, in_parts, rows
from tests.mysql.reading import table
from tests.servers import MySQLEndpoint

Tables = Callable[[str], None]


@pytest.mark.parametrize("number", [2, 3, 7])
@pytest.mark.parametrize(
    "query",
    ["SELECT * FROM parted", "SELECT word, k FROM parted WHERE id % 3 = 0",
     "SELECT * FROM parted AS p WHERE p.k IS NULL", "SELECT * FROM test.parted;"],
)  # fmt: skip
def test_by_the_primary_key(query: str, number: int, filled: str, together: Options) -> None:
    in_parts(query, filled, together, partition_num=number)


@pytest.mark.parametrize("on", ["id", "word", "k", "at"])
@pytest.mark.parametrize("name", ["parted", "bare"])
def test_by_a_column(name: str, on: str, filled: str, together: Options) -> None:
    result = in_parts(f"SELECT * FROM {name}", filled, together, partition_on=on, partition_num=3)
    assert result.num_rows == ROWS


def test_with_parameters(filled: str, together: Options) -> None:
    query = "SELECT * FROM parted WHERE id > ? AND word <> ?"
    in_parts(query, filled, together, partition_num=3, params=[100, "word 7"])
    query = "SELECT * FROM parted WHERE id > :low AND id > :low AND word <> :word"
    arguments: Any = {"partition_on": "k", "partition_num": 3, "params": {"low": 100, "word": "it's"}}
    in_parts(query, filled, together, **arguments)
    in_parts(query, filled, together, partition_range=(1, 6), **arguments)


@pytest.mark.parametrize("protocol", ["binary", "text"])
def test_in_both_protocols(protocol: str, filled: str, together: Options) -> None:
    options = {**together, "protocol": protocol}
    in_parts("SELECT * FROM parted", filled, options, partition_on="word", partition_num=4)


@pytest.mark.parametrize(
    ("query", "on"),
    [
        ("SELECT k, id, concat(word, '?') AS said FROM parted WHERE id < 500", "id"),
        ("SELECT id AS `a ``b` FROM parted", "a `b"),
        ("SELECT * FROM void", "id"),
    ],
)
def test_any_plain_query_by_a_column(query: str, on: str, filled: str, together: Options) -> None:
    for number in (2, 5):
        in_parts(query, filled, together, partition_on=on, partition_num=number)


# What `hex` shows of 64 digits is cut, and the server warns of it.
@pytest.mark.filterwarnings("ignore:the server warns.*1292:longshore.DataWarning")
@pytest.mark.parametrize(
    ("native", "expression"),
    [
        ("tinyint", "{i} % 100 - 50"),
        ("bigint unsigned", "18446744073709551615 - {i}"),
        ("bigint", "{i} * 3000000000 - 4000000000000"),
        ("decimal(30,10)", "{i} / 7 - 100"),
        ("decimal(65,0)", "concat(repeat('9', 60), lpad({i}, 4, '0'))"),
        ("float", "{i} / 7"),
        ("double", "({i} - 500) / 7e0"),
        ("date", "'2020-01-01' + INTERVAL {i} DAY"),
        ("datetime(6)", "'1500-01-01' + INTERVAL {i} * 1000003 MICROSECOND"),
        ("timestamp(3) NULL", "'2020-01-01' + INTERVAL {i} MINUTE"),
        ("time", "sec_to_time({i} * 600 - 400000)"),
        ("year", "1901 + {i} % 250"),
        ("bit(20)", "{i} * 977"),
        ("varbinary(16)", "unhex(md5({i}))"),
        ("varchar(40)", "md5({i})"),
        ("text", "concat('it''s \\\\ ', {i} % 400)"),
        ("char(5)", "substr(md5({i}), 1, {i} % 6)"),
        ("enum('z','a','m')", "1 + {i} % 3"),
        ("set('z','a','m')", "{i} % 8"),
    ],
)
def test_a_key_of_any_type(  # noqa: PLR0917  a table
    native: str, expression: str, server: MySQLEndpoint, tables: Tables, together: Options, url: str
) -> None:
    values = ", ".join(f"({i}, {expression.format(i=i) if i % 10 else 'NULL'})" for i in range(1, 1001))
    tables(f"""
        SET sql_mode = '';
        CREATE TABLE keyed (i int, `the Key` {native});
        INSERT INTO keyed VALUES {values};
        INSERT INTO keyed SELECT 0, `the Key` FROM keyed WHERE i BETWEEN 500 AND 520;
        ANALYZE TABLE keyed;
    """)
    assert server.sql("SELECT count(distinct `the Key`) FROM keyed")[0][0] > 2
    query = "SELECT i, `the Key`, hex(`the Key`) AS shown FROM keyed"
    in_parts(query, url, together, partition_on="the Key", partition_num=5)
    query = "SELECT `the Key` AS renamed, i FROM keyed WHERE i > ?"
    in_parts(query, url, together, partition_on="renamed", partition_num=3, params=[500])


@pytest.mark.parametrize(
    "collation",
    [
        "utf8mb4_general_ci",
        "utf8mb4_unicode_ci",
        "utf8mb4_bin",
        "latin1_swedish_ci",
        "latin1_german2_ci",
        "utf8mb4_unicode_520_ci",
    ],
)
@pytest.mark.parametrize("key", [True, False], ids=["key", "column"])
def test_texts_in_any_collation(  # noqa: PLR0917  a table
    collation: str,
    key: bool,  # noqa: FBT001
    tables: Tables,
    together: Options,
    url: str,
    server: MySQLEndpoint,
) -> None:
    starts = ["a", "A", "á", "b", "_", " ", "-", "Z", "ß", "ss", "ä", "ae"]
    charset = collation.partition("_")[0]
    texts = [f"{start}{end}{number}" for start in starts for end in ("", "a", "A", "É", "-x ") for number in range(9)]
    literals = ", ".join(f"('{text}')" for text in texts)
    unique = ", PRIMARY KEY (w)" if key else ""
    tables(f"""
        CREATE TABLE texts (w varchar(20) CHARACTER SET {charset} COLLATE {collation} NOT NULL {unique});
        INSERT IGNORE INTO texts VALUES {literals};
        ANALYZE TABLE texts;
    """)
    assert server.sql("SELECT count(*) FROM texts")[0][0] > 100
    for number in (2, 9):
        on = {} if key else {"partition_on": "w"}
        in_parts("SELECT * FROM texts", url, together, partition_num=number, **on)


@pytest.mark.parametrize(
    "key",
    ["PRIMARY KEY (a, b)", "PRIMARY KEY (b, a)", "PRIMARY KEY (c)", "PRIMARY KEY (d)", "PRIMARY KEY (e)"],
)
def test_primary_keys_of_any_kind(key: str, tables: Tables, together: Options, url: str) -> None:
    values = ", ".join(f"({i % 10}, {i}, 'k{i}', '2020-01-01' + INTERVAL {i} SECOND, {i}.5)" for i in range(1000))
    tables(f"""
        CREATE TABLE primaries (a int, b bigint unsigned, c varchar(9), d datetime, e decimal(9,1), {key});
        INSERT INTO primaries VALUES {values}; ANALYZE TABLE primaries
    """)
    in_parts("SELECT * FROM primaries", url, together, partition_num=4)


def test_a_range(filled: str, together: Options) -> None:
    query = "SELECT * FROM parted"
    # Values beyond the range are not lost.
    result = in_parts(query, filled, together, partition_on="id", partition_num=3, partition_range=(1000, 1500))
    assert result.num_rows == ROWS
    in_parts(query, filled, together, partition_on="k", partition_num=3, partition_range=(2, 4))


def test_lists(filled: str, together: Options) -> None:
    queries = [f"SELECT id, word FROM parted WHERE id % 3 = {rest}" for rest in range(3)]
    result = table(queries, filled, options=together, partition_num=3)
    assert rows(result) == rows(table("SELECT id, word FROM parted", filled))


@pytest.mark.parametrize("return_type", ["pandas", "polars", "numpy", "arrow_stream"])
def test_every_frame(return_type: Any, filled: str, together: Options) -> None:
    frame = longshore.read_sql(
        "SELECT id FROM parted", filled, return_type=return_type, partition_num=3, options=together
    )
    if return_type == "arrow_stream":
        frame = pa.table(frame).to_pydict()
    assert sorted(frame["id"]) == list(range(1, ROWS + 1))
