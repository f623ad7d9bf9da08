"""Queries that group, compare or unite rows, read in parts: the rows are those of the serial read."""

from collections.abc import Callable

import pytest

from tests.mysql.comparing import SHIPS, Options, in_parts, rows, serially
from tests.mysql.reading import column, table
from tests.servers import MySQLEndpoint

Tables = Callable[[str], None]

QUERIES = [
    # Groups.
    ("SELECT k, count(*) AS n, sum(price) AS total FROM ships GROUP BY k", "k"),
    ("SELECT k, count(*) AS n FROM ships WHERE id > 10 OR port = 3 GROUP BY k HAVING count(*) > 20 ORDER BY n", "k"),
    ("SELECT s.k, count(*) AS n FROM ships AS s GROUP BY k", "k"),
    ("SELECT k AS berth, count(*) AS n FROM ships GROUP BY 1", "berth"),
    ("SELECT date(at) AS day, count(*) AS n FROM ships GROUP BY day", "day"),
    ("SELECT date(at) AS day, count(*) AS n FROM ships GROUP BY date(at)", "day"),
    ("SELECT price / 7 AS share, count(*) AS n FROM ships GROUP BY price / 7", "share"),
    ("SELECT k, price, count(*) AS n FROM ships GROUP BY k, price", "price"),
    ("SELECT weight, count(*) AS n FROM ships GROUP BY weight", "weight"),
    ("SELECT kind, flag, count(*) AS n FROM ships GROUP BY kind, flag", "kind"),
    ("SELECT kind, flag, count(*) AS n FROM ships GROUP BY kind, flag", "flag"),
    ("SELECT kind, flag, max(id) AS high FROM ships GROUP BY kind, flag", "kind"),
    ("SELECT hash, min(id) AS low, max(at) AS late FROM ships GROUP BY hash", "hash"),
    ("SELECT k, count(*) AS n FROM ships GROUP BY k", "n"),
    ("SELECT k, sum(price) AS total FROM ships GROUP BY k", "total"),
    ("SELECT k, max(at) AS late FROM ships GROUP BY k", "late"),
    ("SELECT p.name, count(*) AS n FROM ships AS s JOIN ports AS p ON p.id = s.port GROUP BY p.name", "name"),
    (
        "SELECT p.name, s.k, count(s.id) AS n FROM ports AS p LEFT JOIN ships AS s ON p.id = port GROUP BY name, s.k",
        "k",
    ),
    # What is distinct.
    ("SELECT DISTINCT k, port FROM ships", "port"),
    ("SELECT DISTINCT bin, k FROM ships ORDER BY k", "bin"),
    ("SELECT DISTINCT * FROM ports", "word"),
    ("SELECT DISTINCT price * 1.5 AS more FROM ships", "more"),
    ("SELECT DISTINCT s.k, p.name FROM ships AS s JOIN ports AS p ON p.id = s.port", "name"),
    # Subqueries, wherever they stand.
    ("SELECT * FROM (SELECT id, k, word FROM ships WHERE k > 2) AS s", "k"),
    ("SELECT * FROM (SELECT k, count(*) AS n FROM ships GROUP BY k) AS s", "k"),
    ("SELECT * FROM (SELECT k, count(*) AS n FROM ships GROUP BY k) AS s", "n"),
    (
        "SELECT s.n, p.* FROM (SELECT port, count(*) AS n FROM ships GROUP BY port) AS s, ports AS p WHERE p.id = port",
        "name",
    ),
    ("SELECT id, k FROM ships WHERE k > (SELECT avg(k) FROM ships)", "id"),
    ("SELECT id, k FROM ships WHERE port IN (SELECT id FROM ports WHERE name < 'D')", "k"),
    ("SELECT id, (SELECT name FROM ports AS p WHERE p.id = s.port) AS name FROM ships AS s", "id"),
    ("SELECT id, (SELECT count(*) FROM ports AS p WHERE p.id > s.port) AS n FROM ships AS s", "id"),
    ("SELECT id FROM ships AS s WHERE NOT EXISTS (SELECT 1 FROM ports AS p WHERE p.id = s.port)", "id"),
    ("WITH g AS (SELECT k, count(*) AS n FROM ships GROUP BY k) SELECT g.*, k + 1 AS later FROM g", "k"),
    ("WITH g (berth, n) AS (SELECT k, count(*) FROM ships GROUP BY k) SELECT * FROM g", "berth"),
    ("WITH a AS (SELECT * FROM ships WHERE k < 5), b AS (SELECT id, k FROM a) SELECT * FROM b ORDER BY id DESC", "k"),
    ("WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 500) SELECT * FROM r", "n"),
    # What is put together.
    ("SELECT id AS i FROM ships UNION ALL SELECT number FROM ships", "i"),
    ("SELECT k AS i FROM ships UNION SELECT number FROM ships", "i"),
    ("SELECT k FROM ships UNION SELECT id FROM ports ORDER BY k", "k"),
    ("SELECT * FROM (SELECT id AS i FROM ports UNION ALL SELECT number FROM ships) AS u", "i"),
    ("WITH u AS (SELECT k FROM ships UNION SELECT port FROM ships) SELECT * FROM u", "k"),
    # Views.
    ("SELECT * FROM plain", "number"),
    ("SELECT named, count(*) AS n FROM plain GROUP BY named", "named"),
    ("SELECT * FROM latest", "port"),
    ("SELECT l.at, s.id, s.k FROM latest AS l JOIN ships AS s ON s.port = l.port AND s.at = l.at", "k"),
    # Orders.
    ("SELECT id, word FROM ships ORDER BY word DESC, id", "id"),
    (
        "SELECT s.id, price / 3 AS c FROM ships AS s LEFT JOIN (SELECT name FROM ports) AS n ON name = bin ORDER BY c",
        "c",
    ),
    ("SELECT *, id + k AS some FROM ships ORDER BY id", "some"),
    ("SELECT id, k AS `the k` FROM ships ORDER BY `the k` DESC, 1", "the k"),
]


@pytest.mark.parametrize(("query", "on"), QUERIES)
def test_any_query(query: str, on: str, harbour: str, together: Options) -> None:
    for number in (2, 5):
        in_parts(query, harbour, together, partition_on=on, partition_num=number)
    in_parts(query, harbour, {**together, "protocol": "text"}, partition_on=on, partition_num=3)


@pytest.mark.parametrize(
    ("query", "on", "reason"),
    [
        ("SELECT count(*) AS n FROM ships", "n", "one row"),
        ("SELECT k, count(*) AS n FROM ships GROUP BY k WITH ROLLUP", "k", "ROLLUP"),
        ("SELECT * FROM (SELECT k, count(*) AS n FROM ships GROUP BY k WITH ROLLUP) AS s", "k", "ROLLUP"),
        ("SELECT upper(word) AS w, count(*) AS n FROM ships GROUP BY word", "w", "not among what the query groups by"),
        ("SELECT hex(word) AS w FROM (SELECT word, count(*) AS n FROM ships GROUP BY word) AS s", "w", "computed from"),
        ("SELECT ships + 1 AS more FROM berths", "more", "computed from"),
        ("SELECT k, sum(weight) AS total FROM ships GROUP BY k", "total", "order of rows"),
        ("SELECT k, group_concat(word) AS list FROM ships GROUP BY k", "list", "order of rows"),
        ("SELECT * FROM (SELECT k, avg(weight) AS mean FROM ships GROUP BY k) AS s", "mean", "order of rows"),
        ("SELECT id, (SELECT name FROM ports AS p WHERE p.id = s.port) AS name FROM ships AS s", "name", "subquery"),
        ("SELECT 1 AS one FROM ships HAVING count(*) > 1", "one", "one row"),
        ("SELECT 1 AS one, (SELECT sum(s.k) FROM ports WHERE id = 1) AS n FROM ships AS s", "one", "one row"),
        ("SELECT id + 1 AS i, word FROM ships ORDER BY hash", "i", "ORDER BY"),
        ("SELECT s.id, name FROM ships AS s JOIN ports AS p ON p.id = s.port ORDER BY s.at", "id", "ORDER BY"),
        ("(SELECT id FROM ships ORDER BY id)", "id", "ORDER BY in parentheses"),
        ("SELECT kind, max(kind) AS last FROM ships GROUP BY kind", "kind", "other types"),
        ("SELECT flag, count(*) AS n FROM (SELECT * FROM ships) AS s GROUP BY flag", "flag", "a bit column"),
        ("SELECT * FROM (SELECT row_number() OVER (ORDER BY id) AS n FROM ships) AS s", "n", "window"),
        ("SELECT k + 1 AS a, k AS a, id + 1 AS i FROM ships", "i", "Duplicate column name"),
        ("WITH RECURSIVE r (n) AS (SELECT 1 UNION SELECT n % 9 + 1 FROM r) SELECT * FROM r", "n", "recursive"),
    ],
)
def test_what_stays_serial(query: str, on: str, reason: str, harbour: str, together: Options) -> None:
    result = serially(reason, query, harbour, partition_on=on, partition_num=3, options=together)
    assert rows(result) == rows(table(query, harbour))


def test_values_that_a_group_does_not_settle(
    harbour: str,
    together: Options,
    is_mariadb: bool,  # noqa: FBT001
) -> None:
    loose = "SELECT k, bin, count(*) AS n FROM ships GROUP BY k"
    queries = [f"SELECT * FROM ({loose}) AS s", loose]
    settled = "SELECT k, count(*) * 2 + k AS n, if(max(id) > 5, 'x', k) AS x FROM ships GROUP BY k"
    if not is_mariadb:
        # Its own mode refuses the others.
        queries = ["SELECT k, any_value(bin) AS bin FROM ships GROUP BY k"]
    for query in queries:
        serially("neither grouped nor aggregated", query, harbour, partition_on="k", partition_num=2, options=together)
    in_parts(settled, harbour, together, partition_on="k", partition_num=3)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT word, count(*) AS n FROM ships GROUP BY word",
        "SELECT word, count(*) AS n FROM ships WHERE id % 2 = 0 GROUP BY 1 ORDER BY n",
        "SELECT * FROM (SELECT word, count(*) AS n FROM ships GROUP BY word) AS s",
        "SELECT word, sum(ships) AS n FROM berths GROUP BY word",
        "SELECT max(word) AS word, count(*) AS n FROM ships GROUP BY word COLLATE utf8mb4_bin",
        "SELECT DISTINCT word, k AS n FROM ships WHERE k = 1",
        "SELECT word, 1 AS n FROM ships UNION SELECT word, 1 FROM ships",
    ],
)
def test_words_that_are_equal_are_in_one_part(query: str, harbour: str, together: Options) -> None:
    serial = table(query, harbour)
    for number in (2, 9):
        parallel = table(query, harbour, partition_on="word", partition_num=number, options=together)
        # Which of the words stands for its group is the server's choice.
        assert sorted(parallel["n"].to_pylist()) == sorted(serial["n"].to_pylist())
        assert parallel["word"].null_count == serial["word"].null_count


def test_an_order_holds_inside_each_part(harbour: str, together: Options) -> None:
    for query in ("SELECT id FROM ships ORDER BY id DESC", "SELECT id + 0 AS id FROM ships ORDER BY 1 DESC"):
        ids = column(query, harbour, partition_on="id", partition_num=2, options=together)
        rises = [at for at in range(1, SHIPS) if ids[at] > ids[at - 1]]
        assert len(rises) == 1
        assert sorted(ids) == list(range(SHIPS))


def test_zero_dates_are_read_once(tables: Tables, url: str, together: Options) -> None:
    tables("""SET sql_mode = ''; CREATE TABLE zeros (i int, d date NOT NULL, at datetime NOT NULL, PRIMARY KEY (at, i));
        INSERT INTO zeros SELECT 1, '0000-00-00', '0000-00-00 00:00:00' UNION ALL SELECT 2, '2020-01-02', '2020-01-02'
            UNION ALL SELECT 3, '2020-01-03', '2020-01-03' UNION ALL SELECT 4, '2020-01-04', '2020-01-04'""")
    query = "SELECT i, cast(d AS char) AS d, cast(at AS char) AS at FROM zeros"
    in_parts(query, url, together, partition_num=2)
    schema = {"d": "string", "at": "string"}
    for on in ("d", "at"):
        in_parts("SELECT * FROM zeros", url, together, partition_on=on, partition_num=2, schema=schema)


def test_a_view_that_is_changed(server: MySQLEndpoint, tables: Tables, url: str, together: Options) -> None:
    tables(
        "CREATE TABLE kept (id int PRIMARY KEY); INSERT INTO kept VALUES (1), (2), (3);"
        "CREATE VIEW shown AS SELECT id FROM kept"
    )
    in_parts("SELECT * FROM shown", url, together, partition_on="id", partition_num=2)
    server.sql("CREATE OR REPLACE VIEW shown AS SELECT id, rand() AS r FROM kept")
    result = serially(
        "RAND differs from part to part, in the view shown",
        "SELECT * FROM shown",
        url,
        partition_on="id",
        partition_num=2,
        options=together,
    )
    assert result.num_rows == 3
