"""Queries of every form by a column: in parts, whose rows are those of the serial read, or serial, with the reason."""

from collections.abc import Callable

import pytest

from tests.mysql.comparing import SHIPS, Options, in_parts, rows, serially
from tests.mysql.reading import table

Tables = Callable[[str], None]
PLAIN = "it is not a plain SELECT from one table"
TABLES = "it is not one SELECT from tables"


@pytest.mark.parametrize(
    ("query", "on"),
    [
        ("SELECT id, k FROM ships WHERE k > 2 OR k IS NULL -- or", "k"),
        ("SELECT s.*, id + 1 AS more FROM test.ships AS s WHERE s.bin <> 'a'", "hash"),
        ("SELECT DATE(at) AS day, `id`, k AS `the k` FROM ships;", "the k"),
        ("SELECT word AS bin, bin AS word FROM ships AS `a b`", "word"),
        ("SELECT (word) AS w, \"x\" AS x FROM ships WHERE word <> 'it\\'s'", "w"),
    ],
)
def test_in_parts(query: str, on: str, harbour: str, together: Options) -> None:
    for number in (2, 5):
        in_parts(query, harbour, together, partition_on=on, partition_num=number)
    in_parts(query, harbour, {**together, "protocol": "text"}, partition_on=on, partition_num=3)


@pytest.mark.parametrize(
    ("query", "on", "reason"),
    [
        ("SELECT count(*) AS n FROM ships", "n", "the aggregate count()"),
        ("SELECT id, k FROM ships WHERE k > (SELECT avg(k) FROM ships)", "id", "the aggregate avg()"),
        ("SELECT k, count(*) AS n FROM ships GROUP BY k", "k", "GROUP BY"),
        ("SELECT * FROM (SELECT k, count(*) AS n FROM ships GROUP BY k WITH ROLLUP) AS s", "k", "GROUP BY"),
        ("SELECT 1 AS one FROM ships HAVING count(*) > 1", "one", "HAVING"),
        ("SELECT DISTINCT k, port FROM ships", "port", "DISTINCT"),
        ("SELECT id AS i FROM ships UNION ALL SELECT number FROM ships", "i", "UNION"),
        ("WITH RECURSIVE r (n) AS (SELECT 1 UNION SELECT n % 9 + 1 FROM r) SELECT * FROM r", "n", "UNION"),
        ("SELECT * FROM (SELECT row_number() OVER (ORDER BY id) AS n FROM ships) AS s", "n", "a window function"),
        ("SELECT price / 7 AS share FROM ships", "share", "partition_on is computed"),
        ("SELECT id, NULL AS none FROM ships", "none", "partition_on is computed"),
        (
            "SELECT p.*, s.id AS s FROM ports AS p LEFT JOIN ships AS s ON s.port = p.id",
            "s",
            PLAIN,
        ),
        ("SELECT s.id, name FROM ships AS s JOIN ports AS p ON p.id = s.port ORDER BY s.at", "id", PLAIN),
        ("SELECT s.id, p.name FROM ships AS s JOIN ports AS p ON p.id = s.port", "name", PLAIN),
        ("SELECT s.id, p.name FROM ports AS p, ships AS s WHERE p.id = s.port", "id", PLAIN),
        ("SELECT id, word FROM ships ORDER BY word DESC, id", "id", PLAIN),
        ("SELECT id, k AS `the k` FROM ships ORDER BY `the k` DESC, 1", "the k", PLAIN),
        ("(SELECT id FROM ships)", "id", TABLES),
        ("SELECT * FROM (SELECT id, k, word FROM ships WHERE k > 2) AS s", "k", TABLES),
        ("SELECT id, k FROM ships WHERE port IN (SELECT id FROM ports WHERE name < 'D')", "k", TABLES),
        ("SELECT id, (SELECT name FROM ports AS p WHERE p.id = s.port) AS name FROM ships AS s", "id", TABLES),
        ("SELECT id FROM ships AS s WHERE NOT EXISTS (SELECT 1 FROM ports AS p WHERE p.id = s.port)", "id", TABLES),
        ("WITH a AS (SELECT * FROM ships WHERE k < 5), b AS (SELECT id, k FROM a) SELECT * FROM b", "k", TABLES),
        ("SELECT * FROM plain", "number", "is a view"),
    ],
)
def test_serial(query: str, on: str, reason: str, harbour: str, together: Options) -> None:
    result = serially(reason, query, harbour, partition_on=on, partition_num=3, options=together)
    assert rows(result) == rows(table(query, harbour))


def test_an_order_is_that_of_the_whole(harbour: str, together: Options) -> None:
    query = "SELECT id FROM ships ORDER BY id DESC"
    result = serially("ORDER BY", query, harbour, partition_on="id", partition_num=2, options=together)
    assert result["id"].to_pylist() == list(range(SHIPS - 1, -1, -1))


def test_a_list_of_queries_of_several_tables(harbour: str, together: Options) -> None:
    joined = "SELECT s.id, p.name FROM ships AS s LEFT JOIN ports AS p ON p.id = s.port WHERE s.id % 2 = {}"
    in_parts([joined.format(rest) + " ORDER BY s.id" for rest in range(2)], harbour, together)
    in_parts(
        [f"SELECT k, count(*) AS n FROM ships WHERE id % 2 = {rest} GROUP BY k" for rest in range(2)], harbour, together
    )
    nested = [f"SELECT id FROM (SELECT id FROM ships) AS s WHERE id % 2 = {rest}" for rest in range(2)]
    result = serially(TABLES, nested, harbour, options=together)
    assert rows(result) == rows(table(nested, harbour, partition_num=1))


def test_zero_dates_are_read_once(tables: Tables, url: str, together: Options) -> None:
    tables("""SET sql_mode = ''; CREATE TABLE zeros (i int, d date NOT NULL, at datetime NOT NULL, PRIMARY KEY (at, i));
        INSERT INTO zeros SELECT 1, '0000-00-00', '0000-00-00 00:00:00' UNION ALL SELECT 2, '2020-01-02', '2020-01-02'
            UNION ALL SELECT 3, '2020-01-03', '2020-01-03' UNION ALL SELECT 4, '2020-01-04', '2020-01-04'""")
    query = "SELECT i, cast(d AS char) AS d, cast(at AS char) AS at FROM zeros"
    in_parts(query, url, together, partition_num=2)
    schema = {"d": "string", "at": "string"}
    for on in ("d", "at"):
        in_parts("SELECT * FROM zeros", url, together, partition_on=on, partition_num=2, schema=schema)
