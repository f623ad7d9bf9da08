"""Parts by blocks of a table: what a plain scan is cut into."""

import time
import warnings
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.postgres.parallel.comparing import Statements, in_parts, read, rows, serially
from tests.servers import PostgreSQL

pytestmark = pytest.mark.server


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t",
        "SELECT * FROM t;",
        "SELECT id, upper(word) || '!' AS shout, k + 1 AS next FROM t",
        "SELECT id FROM t WHERE k = 1 OR k IS NULL",
        "SELECT x.id, x.word FROM t AS x WHERE (x.k) > (2)",
        "SELECT x.id FROM public.t x WHERE x.k IN (1, 2) -- WHERE\n ; -- the end",
        "SELECT t.id AS from_id, $$ FROM t WHERE $$ AS q /* FROM x */, E'it\\'s' AS w FROM t WHERE word <> ' WHERE '",
        "SELECT extract(year FROM at) AS y, k IS DISTINCT FROM 3 AS d FROM t WHERE k IS DISTINCT FROM 4",
        'SELECT "t"."id" FROM "t" WHERE "t"."word" LIKE \'word 1%\'',
        "select id from only_in_name where id > 5",
        'SELECT id FROM "WHERE" AS "FROM" WHERE "FROM".id > 5',
        "SELECT ctid::text AS place, xmin::text AS x, id FROM t",
        "SELECT id FROM t WHERE id > $1 AND word <> $2",
        "TABLE_NAME",
    ],
)
def test_a_table_is_read_by_its_blocks(query: str, url: str, server: PostgreSQL, statements: Statements) -> None:
    server.psql("""
        CREATE TABLE IF NOT EXISTS only_in_name AS TABLE t;
        CREATE TABLE IF NOT EXISTS "WHERE" AS TABLE t;
    """)
    query = query.replace("TABLE_NAME", "SELECT t.* FROM t")
    params = [7, "word 3"] if "$1" in query else None
    in_parts(query, url, ordered=True, partition_num=4, params=params)
    parts = statements.of_parts()
    assert len(parts) == 4
    assert all("ctid" in part for part in parts)


def test_parameters_by_name(url: str, statements: Statements) -> None:
    query = "SELECT id, :who || ':x' AS who FROM t WHERE word <> :word AND id > :low AND word <> ':low'"
    params = {"low": 100, "word": "word 3", "who": "it's :me"}
    in_parts(query, url, ordered=True, partition_num=3, params=params)
    assert len(statements.of_parts()) == 3


def test_wrong_parameters_are_the_querys_own_errors(url: str) -> None:
    for query, params in [("SELECT * FROM t WHERE id = $1", None), ("SELECT * FROM t", [1])]:
        with pytest.raises(longshore.ProgrammingError, match="parameter") as serial:
            read(query, url, params=params)
        with pytest.raises(longshore.ProgrammingError) as parallel:
            read(query, url, params=params, partition_num=2)
        assert str(serial.value) == str(parallel.value)


@pytest.mark.parametrize("query", ["SELECT * FROM nowhere", "SELECT nothing FROM t", "SELEC 1", "SELECT 1; SELECT 2"])
def test_wrong_queries_are_their_own_errors(query: str, url: str) -> None:
    with pytest.raises(longshore.ProgrammingError) as serial:
        read(query, url)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", longshore.SerialReadWarning)
        with pytest.raises(longshore.ProgrammingError) as parallel:
            read(query, url, partition_num=2)
    assert str(serial.value) == str(parallel.value)


def test_nothing_to_split_is_read_whole(url: str) -> None:
    for query in ["SELECT * FROM empty", "SELECT * FROM small", "SELECT * FROM t WHERE false"]:
        in_parts(query, url, partition_num=4)
    in_parts("SELECT * FROM empty", url, partition_num=4, partition_on="id")


def test_more_parts_than_blocks(url: str, server: PostgreSQL, statements: Statements) -> None:
    blocks = int(server.psql("SELECT pg_relation_size('t') / 8192"))
    in_parts("SELECT * FROM t", url, ordered=True, partition_num=blocks + 7)
    assert len(statements.of_parts()) == blocks


def test_the_blocks_are_scanned_once(server: PostgreSQL) -> None:
    server.psql("CREATE TABLE scanned AS SELECT i, repeat('x', 100) AS t FROM generate_series(1, 20000) AS i")
    others = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"

    def fetched() -> int:
        # A session reports before it leaves the list, which is after its client has gone.
        deadline = time.monotonic() + 60
        while server.psql(others) != "0":
            assert time.monotonic() < deadline
            time.sleep(0.01)
        blocks = "SELECT heap_blks_read + heap_blks_hit FROM pg_statio_user_tables WHERE relname = 'scanned'"
        return int(server.psql(blocks))

    def scanned(**arguments: Any) -> int:
        before = fetched()
        read("SELECT * FROM scanned", server.url(), **arguments)
        return fetched() - before

    serial = scanned()
    for number in (2, 5, 16):
        assert serial <= scanned(partition_num=number) <= 1.05 * serial


def test_a_stream_in_parts(url: str) -> None:
    serial = read("SELECT * FROM t", url)
    stream = longshore.read_sql("SELECT * FROM t", url, return_type="arrow_stream", partition_num=3, batch_size=100)
    assert rows(pa.table(stream)) == rows(serial)


def test_an_index_is_left_to_find_few_rows(url: str) -> None:
    table = serially("an index finds the rows faster", "SELECT * FROM t WHERE id = 5", url, partition_num=4)
    assert table["id"].to_pylist() == [5]


def test_names_that_need_quotes(server: PostgreSQL, statements: Statements) -> None:
    server.psql("""
        CREATE SCHEMA "a.b ""c";
        CREATE TABLE "a.b ""c"."select ""1" AS TABLE t;
        CREATE TABLE "Größe" AS TABLE t;
        CREATE TABLE "values" AS TABLE t;
    """)
    for query in [
        'SELECT "select ""1".id FROM "a.b ""c"."select ""1"',
        'SELECT x."id" FROM "a.b ""c" . "select ""1" x WHERE "x".id > 10',
        'SELECT id FROM "Größe" WHERE "Größe".k = 1',
        'SELECT "values".id FROM "values"',
    ]:
        in_parts(query, server.url(), ordered=True, partition_num=2)
    assert len(statements.of_parts()) == 8
