"""Reads in parts: each returns what the serial read returns, row for row, or is serial and says why."""

import collections
import contextlib
import datetime as dt
import decimal
import math
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import longshore
from tests.conftest import require
from tests.recorder import Recorder
from tests.servers import H2, Endpoint, PgBouncer, PostgreSQL, QuestDB, Standby

ROWS = 3000


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSQL]:
    """Give a PostgreSQL whose log tells who ran what."""
    config = {"log_statement": "all", "log_line_prefix": "%p|", "max_connections": "40", "autovacuum": "off"}
    with require(lambda: PostgreSQL(config=config)) as server:
        server.psql(f"""
            CREATE TABLE t (id int NOT NULL, word text, k int, at timestamptz);
            INSERT INTO t SELECT i, 'word ' || i % 50, nullif(i % 7, 0), 'epoch'::timestamptz + i * interval '1 min'
            FROM generate_series(1, {ROWS}) AS i;
            CREATE INDEX ON t (id);
            ANALYZE t;
            CREATE TABLE empty (id int, word text);
            CREATE TABLE small (id int);
            INSERT INTO small VALUES (1), (2);
            CREATE VIEW v AS SELECT id, word FROM t WHERE id % 2 = 0;
        """)
        yield server


@pytest.fixture
def url(server: PostgreSQL) -> str:
    """Give its URL."""
    return server.url()


def read(query: Any, conn: Any, **arguments: Any) -> pa.Table:
    return longshore.read_sql(query, conn, return_type="arrow", **arguments)


def rows(table: pa.Table) -> collections.Counter[str]:
    """Give all rows, in no order; NaN equals NaN."""
    return collections.Counter(repr(tuple(row.values())) for row in table.to_pylist())


def in_parts(query: Any, conn: Any, *, ordered: bool = False, **arguments: Any) -> pa.Table:
    """Read in parts, which warns of nothing, and compare with the serial read."""
    plain = {name: value for name, value in arguments.items() if not name.startswith("partition_")}
    serial = read(query, conn, **plain)
    parallel = read(query, conn, **arguments)
    assert parallel.schema.equals(serial.schema, check_metadata=True)
    assert rows(parallel) == rows(serial)
    if ordered:
        assert parallel.equals(serial)
    return parallel


def serially(reason: str, query: Any, conn: Any, **arguments: Any) -> pa.Table:
    """Read in parts, which is warned of with `reason`, and give the result."""
    with pytest.warns(longshore.SerialReadWarning, match=re.escape(reason)):
        return read(query, conn, **arguments)


class Statements:
    """What a server was told from here on."""

    def __init__(self, server: PostgreSQL) -> None:
        """Begin now."""
        self.server = server
        self.start = len(server.log)

    def of_parts(self) -> list[str]:
        """Give the statements that the sessions have run that joined a snapshot, parts only."""
        said: dict[str, list[str]] = collections.defaultdict(list)
        for line in re.split(r"\n(?=\d+\|)", self.server.log[self.start :]):
            pid, _, text = line.partition("|")
            if found := re.match(r"LOG:  (?:statement|execute [^:]*): (.*)", text, re.DOTALL):
                said[pid].append(found[1].rstrip("\n"))
        joined = [texts for texts in said.values() if any("SET TRANSACTION SNAPSHOT" in text for text in texts)]
        ours = ("BEGIN", "COMMIT", "ROLLBACK", "SET LOCAL")
        return [
            text for texts in joined for text in texts if not text.startswith(ours) and "pg_catalog.pg_" not in text
        ]


@pytest.fixture
def statements(server: PostgreSQL) -> Statements:
    """Give what the server is told in this test."""
    return Statements(server)


# By blocks.


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
    fetched = "SELECT heap_blks_read + heap_blks_hit FROM pg_statio_user_tables WHERE relname = 'scanned'"

    def scanned(**arguments: Any) -> int:
        before = int(server.psql(fetched))
        read("SELECT * FROM scanned", server.url(), **arguments)
        # A session reports when it ends, which is a moment after its client has gone.
        time.sleep(0.5)
        return int(server.psql(fetched)) - before

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


# Partitions.


def test_a_partitioned_table_is_read_by_its_leaves(server: PostgreSQL, statements: Statements) -> None:
    server.psql("""
        CREATE TABLE parted (id int, word text, k int) PARTITION BY RANGE (id);
        CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (500);
        CREATE TABLE parted_2 (id int, gone int, word text, k int);
        ALTER TABLE parted_2 DROP COLUMN gone;
        ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES FROM (500) TO (2000);
        CREATE TABLE parted_3 PARTITION OF parted FOR VALUES FROM (2000) TO (4000) PARTITION BY LIST (k);
        CREATE TABLE "Parted 3a" PARTITION OF parted_3 FOR VALUES IN (1, 2, 3);
        CREATE TABLE parted_3b PARTITION OF parted_3 DEFAULT;
        CREATE TABLE parted_4 PARTITION OF parted DEFAULT;
        INSERT INTO parted SELECT id, word, k FROM t;
    """)
    for query in [
        "SELECT * FROM parted",
        "SELECT p.word, p.id * 2 AS twice FROM parted AS p WHERE p.k > 1",
        "SELECT parted.id FROM public.parted WHERE id BETWEEN 400 AND 600",
        "SELECT id FROM parted_3",
        "SELECT id FROM parted WHERE id < $1",
    ]:
        for number in (2, 5):
            in_parts(query, server.url(), partition_num=number, params=[900] if "$1" in query else None)
    assert any('"Parted 3a" AS "parted"' in part for part in statements.of_parts())


def test_leaves_that_are_not_their_tables_image(server: PostgreSQL) -> None:
    server.psql("""
        CREATE TABLE odd (id int, word text) PARTITION BY RANGE (id);
        CREATE TABLE odd_1 (word text, id int);
        ALTER TABLE odd ATTACH PARTITION odd_1 FOR VALUES FROM (0) TO (1000);
        CREATE TABLE odd_2 PARTITION OF odd FOR VALUES FROM (1000) TO (4000);
        INSERT INTO odd SELECT id, word FROM t;
        CREATE TABLE even (id int, word text) PARTITION BY RANGE (id);
        CREATE TABLE even_1 PARTITION OF even FOR VALUES FROM (0) TO (1000);
        CREATE TABLE even_2 PARTITION OF even FOR VALUES FROM (1000) TO (4000);
        INSERT INTO even SELECT id, word FROM t;
        CREATE USER reader;
        GRANT SELECT ON even TO reader;
    """)
    url = server.url()
    whole = read("SELECT * FROM odd", url)
    assert rows(serially('another order in the partition "odd_1"', "SELECT * FROM odd", url, partition_num=2)) == rows(
        whole
    )
    in_parts("SELECT * FROM odd", url, partition_num=2, partition_on="word")
    for query in [
        "SELECT even FROM even",
        "SELECT tableoid::regclass::text AS r FROM even",
        "SELECT e::text FROM even e",
    ]:
        serial = read(query, url)
        assert serially("which partition a row is in", query, url, partition_num=2).equals(serial)
    reader = server.url(user="reader")
    assert serially("no right to SELECT", "SELECT * FROM even", reader, partition_num=2).num_rows == ROWS
    server.psql("ALTER TABLE even_1 ENABLE ROW LEVEL SECURITY")
    assert serially("row-level security", "SELECT * FROM even", url, partition_num=2).num_rows == ROWS
    server.psql("ALTER TABLE even_1 DISABLE ROW LEVEL SECURITY; ALTER TABLE even ENABLE ROW LEVEL SECURITY")
    assert serially("row-level security", "SELECT * FROM even", url, partition_num=2).num_rows == ROWS
    # A user whom no policy lets see anything has nothing to split.
    assert in_parts("SELECT * FROM even", reader, partition_num=2).num_rows == 0


def test_a_leaf_with_a_virtual_column_of_its_own(server: PostgreSQL) -> None:
    if int(server.version) < 18:
        pytest.skip("virtual columns came with version 18")
    server.psql("""
        CREATE TABLE virtual (id int, twice int GENERATED ALWAYS AS (2 * id) VIRTUAL) PARTITION BY RANGE (id);
        CREATE TABLE virtual_1 (id int, twice int GENERATED ALWAYS AS (-id) VIRTUAL);
        ALTER TABLE virtual ATTACH PARTITION virtual_1 FOR VALUES FROM (0) TO (9000);
        INSERT INTO virtual (id) SELECT id FROM t;
    """)
    serial = read("SELECT * FROM virtual", server.url())
    assert serially("a virtual column", "SELECT * FROM virtual", server.url(), partition_num=2).equals(serial)


def test_inheritance_needs_a_column(server: PostgreSQL) -> None:
    server.psql("""
        CREATE TABLE mother (id int, word text);
        CREATE TABLE daughter (more int) INHERITS (mother);
        INSERT INTO mother SELECT id, word FROM t WHERE id < 1500;
        INSERT INTO daughter SELECT id, word, 1 FROM t WHERE id >= 1500;
    """)
    url = server.url()
    assert serially("tables that inherit", "SELECT * FROM mother", url, partition_num=2).num_rows == ROWS
    in_parts("SELECT * FROM mother", url, partition_num=3, partition_on="id")
    assert serially("give partition_on", "SELECT * FROM ONLY mother", url, partition_num=2).num_rows == 1499
    in_parts("SELECT * FROM daughter", url, partition_num=2)


def test_row_level_security(server: PostgreSQL, statements: Statements) -> None:
    server.psql("""
        CREATE TABLE secret AS TABLE t;
        ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
        CREATE USER guest;
        GRANT SELECT ON secret TO guest;
        CREATE POLICY berths ON secret USING (k = 3 AND current_setting('harbour.berth', true) IS NOT NULL);
    """)
    guest = server.url(user="guest", options="-c harbour.berth=1")
    assert in_parts("SELECT * FROM secret", guest, partition_num=2).num_rows == 429
    assert in_parts("SELECT * FROM secret", guest, partition_num=2, partition_on="id").num_rows == 429
    assert len(statements.of_parts()) == 4
    guest = server.url(user="guest")
    before = "SET harbour.berth = 2"
    assert in_parts("SELECT * FROM secret", guest, partition_num=2, pre_execution_query=before).num_rows == 429
    with longshore.connect(guest, autocommit=True) as connection:
        connection.execute("SET harbour.berth = 3")
        assert serially("current_setting()", "SELECT * FROM secret", connection, partition_num=2).num_rows == 429


def test_materialized_views_and_unlogged_tables(server: PostgreSQL) -> None:
    server.psql("CREATE MATERIALIZED VIEW m AS TABLE t; CREATE UNLOGGED TABLE unlogged AS TABLE t")
    in_parts("SELECT * FROM m", server.url(), ordered=True, partition_num=2)
    in_parts("SELECT * FROM unlogged", server.url(), ordered=True, partition_num=2)


def test_a_table_with_dead_and_moved_rows(server: PostgreSQL) -> None:
    server.psql("""
        CREATE TABLE holes AS TABLE t;
        DELETE FROM holes WHERE id % 3 = 0;
        UPDATE holes SET k = -k WHERE id % 5 = 0;
        DELETE FROM holes WHERE id > 2000;
    """)
    in_parts("SELECT * FROM holes", server.url(), ordered=True, partition_num=5)


# Serial, and why.


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT * FROM t LIMIT 10", "LIMIT"),
        ("SELECT * FROM t OFFSET 10", "LIMIT, OFFSET"),
        ("SELECT * FROM t FETCH FIRST 3 ROWS ONLY", "FETCH"),
        ("SELECT * FROM (SELECT * FROM t LIMIT 10) AS s", "LIMIT"),
        ("WITH c AS MATERIALIZED (SELECT * FROM t LIMIT 10) SELECT * FROM c", "LIMIT"),
        ("SELECT id, (SELECT word FROM t LIMIT 1) AS w FROM t", "LIMIT"),
        ("SELECT * FROM limited", "LIMIT"),
        ("SELECT * FROM t TABLESAMPLE BERNOULLI (100)", "TABLESAMPLE"),
        ("SELECT * FROM t WHERE id < 10 FOR UPDATE", "FOR UPDATE"),
        ("SELECT id, row_number() OVER (ORDER BY k) AS n FROM t", "window"),
        ("SELECT DISTINCT ON (k) k, id FROM t ORDER BY k", "DISTINCT ON"),
        ("SELECT id, random() AS r FROM t", "random() is volatile"),
        ("SELECT id, gen_random_uuid() AS r FROM t", "gen_random_uuid() is volatile"),
        ("SELECT id, nextval('counter') AS n FROM t", "nextval() is volatile"),
        ("SELECT id, clock_timestamp() AS n FROM t", "clock_timestamp() is volatile"),
        ("SELECT id FROM t WHERE at < now()", "now()"),
        ("SELECT id FROM t WHERE at < transaction_timestamp()", "transaction_timestamp()"),
        ("SELECT id FROM t WHERE at < statement_timestamp()", "statement_timestamp()"),
        ("SELECT id FROM t WHERE at < CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP"),
        ("SELECT id FROM t WHERE at < current_timestamp(0)", "CURRENT_TIMESTAMP"),
        ("SELECT id, current_date AS d FROM t", "CURRENT_DATE"),
        ("SELECT id, localtimestamp AS d FROM t", "LOCALTIMESTAMP"),
        ("SELECT id, localtime AS d FROM t", "LOCALTIME"),
        ("SELECT id, current_time::text AS d FROM t", "CURRENT_TIME"),
        ("SELECT id, age(at) AS a FROM t", "CURRENT_DATE"),
        ("SELECT id, age(xmin) AS a FROM t", "age()"),
        ("SELECT id, txid_current()::text AS x FROM t", "txid_current()"),
        ("SELECT id, pg_current_snapshot()::text AS x FROM t", "pg_current_snapshot()"),
        ("SELECT id, pg_backend_pid() AS p FROM t", "pg_backend_pid()"),
        ("SELECT id, inet_client_port() AS p FROM t", "inet_client_port()"),
        ("SELECT id FROM t WHERE at < 'now'", "'now'"),
        ("SELECT id FROM t WHERE at < timestamptz ' Today 12:00 UTC'", "'today'"),
        ("SELECT id FROM t WHERE at < 'yester'\n'day'::date", "'today'"),
        ("SELECT id FROM t WHERE at < $$tomorrow$$", "'today'"),
        ("SELECT * FROM recent", "now()"),
        ("SELECT * FROM rolled", "random()"),
        ("SELECT * FROM listed", "a list of values"),
        ("SELECT t.id FROM t JOIN (VALUES (now()), (now())) AS w (m) ON at < m", "now()"),
        ("SELECT id, hidden() AS h FROM t", "now()"),
        ("SELECT id, looked_up() AS l FROM t", "looked_up() is not declared IMMUTABLE"),
        ('SELECT id, public."Rolls"(1) AS l FROM t', "Rolls() is volatile"),
        ("SELECT id FROM t WHERE id === 1", "operator === is volatile"),
        ("SELECT id, rolled_up(id) AS r FROM t GROUP BY id", "rolled_up() is not declared IMMUTABLE"),
        ("WITH w AS (INSERT INTO empty VALUES (1) RETURNING id) SELECT * FROM w", "it changes data"),
        ("INSERT INTO empty VALUES (1) RETURNING id", "it is no SELECT"),
        ("SHOW server_version", "it is no SELECT"),
        ("EXPLAIN SELECT * FROM t", "it is no SELECT"),
        ("SELECT * FROM pg_stat_activity", "differs from part to part"),
    ],
)
@pytest.mark.parametrize("on", [None, "id"])
def test_serial_reasons(query: str, reason: str, on: str | None, server: PostgreSQL) -> None:
    if on and "id" not in re.split(r"\W+", query.partition("FROM t")[0]):
        on = None
    server.psql("""
        CREATE SEQUENCE IF NOT EXISTS counter;
        CREATE OR REPLACE VIEW limited AS SELECT * FROM t LIMIT 10;
        CREATE OR REPLACE VIEW recent AS SELECT * FROM t WHERE at < now();
        CREATE OR REPLACE VIEW rolled AS SELECT id, random() AS r FROM t;
        CREATE OR REPLACE VIEW listed AS VALUES (1, random()), (2, random());
        CREATE OR REPLACE FUNCTION hidden() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT now()';
        CREATE OR REPLACE FUNCTION looked_up() RETURNS int STABLE LANGUAGE plpgsql AS
            'BEGIN RETURN (SELECT max(id) FROM t); END';
        CREATE OR REPLACE FUNCTION "Rolls"(int) RETURNS int VOLATILE LANGUAGE plpgsql AS 'BEGIN RETURN $1; END';
        CREATE OR REPLACE FUNCTION same(int, int) RETURNS bool VOLATILE LANGUAGE plpgsql AS 'BEGIN RETURN $1 = $2; END';
        CREATE OR REPLACE FUNCTION rolling(int, int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN $1 + $2; END';
        CREATE OR REPLACE AGGREGATE rolled_up(int) (SFUNC = rolling, STYPE = int, INITCOND = '0');
        DO $$ BEGIN CREATE OPERATOR === (FUNCTION = same, LEFTARG = int, RIGHTARG = int);
              EXCEPTION WHEN duplicate_function THEN END $$;
    """)
    serially(reason, query, server.url(), partition_num=4, partition_on=on)


def test_a_bound_text_that_means_a_moment(url: str) -> None:
    table = serially("'now'", "SELECT * FROM t WHERE at < $1", url, params=["now"], partition_num=2)
    assert table.num_rows == ROWS
    serially("'now'", "SELECT * FROM t WHERE at < ANY ($1)", url, params=[["now", None]], partition_num=2)


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT id, word, lower(word) AS l, age(at, at) AS a, 'now'::text = word AS n FROM t", 0),
        ("SELECT id FROM t WHERE word <> 'it happens now and then to all of us'", 1),
        ("SELECT id, my_twice(id) AS x FROM t", 1),
        ("SELECT id FROM t WHERE at < timestamptz '2020-01-01' + interval '1 day'", 1),
        ("SELECT id, to_char(at, 'YYYY') AS y, date_trunc('day', at) AS d, format('%s', k) AS f FROM t", 1),
        ("SELECT id FROM t WHERE k = ANY (ARRAY[1, 2])", 1),
    ],
)
def test_harmless_functions_are_no_reason(query: str, columns: int, server: PostgreSQL, statements: Statements) -> None:
    server.psql(
        "CREATE OR REPLACE FUNCTION my_twice(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN 2*i; END'"
    )
    if not columns:
        query = query.replace("'now'::text = word AS n", "k AS n")
    in_parts(query, server.url(), ordered=True, partition_num=2)
    in_parts(query, server.url(), partition_num=2, partition_on="id")
    assert len(statements.of_parts()) == 4


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT * FROM v", "a view: give partition_on"),
        ("SELECT * FROM t JOIN small USING (id)", "give partition_on"),
        ("SELECT k, count(*) AS n FROM t GROUP BY k", "give partition_on"),
        ("SELECT DISTINCT word FROM t", "give partition_on"),
        ("SELECT * FROM t ORDER BY id", "give partition_on"),
        ("SELECT * FROM t UNION ALL SELECT * FROM t", "give partition_on"),
        ("WITH c AS (SELECT * FROM t) SELECT * FROM c", "give partition_on"),
        ("SELECT * FROM t WHERE id IN (SELECT id FROM small)", "give partition_on"),
        ("SELECT id FROM t WHERE id = (SELECT max(id) FROM small)", "give partition_on"),
        ("SELECT * FROM generate_series(1, 10) AS i", "it reads no table: give partition_on"),
        ("VALUES (1), (2)", "give partition_on"),
        ("SELECT id FROM t WHERE ctid < '(3,0)'", "by ctid itself"),
    ],
)
def test_more_than_a_table_needs_a_column(query: str, reason: str, url: str) -> None:
    serial = read(query, url)
    assert rows(serially(reason, query, url, partition_num=3)) == rows(serial)


def test_sessions_with_a_state_of_their_own(url: str) -> None:
    query = "SELECT * FROM t"
    with longshore.connect(url, autocommit=True) as connection:
        in_parts(query, connection, partition_num=2)
        connection.execute("CREATE TEMPORARY TABLE own AS TABLE t")
        serially("temporary tables", query, connection, partition_num=2)
        connection.execute("DROP TABLE own")
        in_parts(query, connection, partition_num=2)
        connection.execute("SET datestyle = 'SQL, DMY'")
        serially("settings of this session (SET)", query, connection, partition_num=2)
        connection.execute("RESET ALL")
        connection.execute("SET application_name = 'harbour'")
        in_parts(query, connection, partition_num=2)
        connection.execute("SET ROLE pg_monitor")
        serially("settings of this session (SET)", "SELECT 1 AS one", connection, partition_num=2)
        connection.execute("RESET ROLE")
        in_parts(query, connection, partition_num=2)
        connection.execute("BEGIN")
        serially("an open transaction", query, connection, partition_num=2)
        connection.execute("COMMIT")
        in_parts(query, connection, partition_num=2)
        assert connection.in_transaction is False


def test_settings_before_reach_every_part(url: str) -> None:
    query = "SELECT id, at::text AS a, current_setting('TimeZone') AS z FROM t"
    table = in_parts(query, url, ordered=True, partition_num=3, pre_execution_query="SET TimeZone = 'Asia/Tokyo'")
    assert set(table["z"].to_pylist()) == {"Asia/Tokyo"}


# By a column.

NAN, INFINITY = math.nan, math.inf


@pytest.mark.parametrize("analyzed", [True, False])
@pytest.mark.parametrize(
    ("native", "expression"),
    [
        ("int2", "i % 100"),
        ("int4", "i"),
        ("int8", "i::int8 * 3000000000"),
        ("oid", "i"),
        ("numeric", "CASE i % 9 WHEN 0 THEN 'NaN' WHEN 1 THEN i WHEN 2 THEN -i / 7.0 ELSE i / 3.0 END"),
        ("numeric(10,2)", "i / 3.0"),
        ("float4", "CASE i % 9 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-Infinity' ELSE i / 7.0 END"),
        ("float8", "CASE i % 9 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-0' ELSE i / 7.0 END"),
        ("bool", "i % 3 = 0"),
        ("text", "CASE i % 9 WHEN 0 THEN '' WHEN 1 THEN 'it''s \\ ' || i ELSE chr(200 + i % 200) || i END"),
        ("varchar(20)", "chr(65 + i % 60) || i"),
        ("char(5)", "substr(md5(i::text), 1, i % 6)"),
        ("name", "'n' || i"),
        ('"char"', "chr(40 + i % 80)"),
        ("bytea", "decode(md5(i::text), 'hex')"),
        ("uuid", "md5(i::text)::uuid"),
        ("date", "CASE i % 9 WHEN 0 THEN 'infinity' WHEN 1 THEN '-infinity' ELSE date '2020-01-01' + i END"),
        ("time", "time '00:00' + i * interval '17 s'"),
        ("timetz", "timetz '00:00+02' + i * interval '17 s'"),
        ("timestamp", "CASE i % 9 WHEN 0 THEN 'infinity' ELSE timestamp '1500-01-01' + i * interval '1 month' END"),
        ("timestamptz", "CASE i % 9 WHEN 0 THEN '-infinity' ELSE timestamptz '2020-03-29' + i * interval '7 min' END"),
        ("interval", "i * interval '1 day 1 s'"),
        ("inet", "'10.0.0.0'::inet + i"),
        ("cidr", "set_masklen('10.0.0.0'::inet + i, 32)::cidr"),
        ("macaddr", "('08:00:2b:01:' || lpad((i % 100)::text, 2, '0') || ':03')::macaddr"),
        ("money", "i::money"),
        ("bit(12)", "i::bit(12)"),
        ("varbit", "i::bit(12)::varbit"),
        ("pg_lsn", "('0/' || to_hex(i))::pg_lsn"),
        ("jsonb", "to_jsonb(i)"),
        ("mood", "(ARRAY['sad', 'it''s ok', 'very, \"glad\"'])[1 + i % 3]::mood"),
        ("positive", "i"),
        ("short_text", "'w' || i % 400"),
    ],
)
def test_a_column_of_any_ordered_type(native: str, expression: str, analyzed: bool, server: PostgreSQL) -> None:  # noqa: FBT001
    server.psql(f"""
        DROP TABLE IF EXISTS keyed;
        DO $$ BEGIN
            CREATE TYPE mood AS ENUM ('sad', 'very, "glad"', 'it''s ok');
            CREATE DOMAIN positive AS int CHECK (VALUE > 0);
            CREATE DOMAIN short_text AS varchar(10) COLLATE "C";
        EXCEPTION WHEN duplicate_object THEN END $$;
        CREATE TABLE keyed (i int, "the Key" {native});
        INSERT INTO keyed SELECT i, CASE WHEN i % 10 > 0 THEN {expression} END FROM generate_series(1, 2000) AS i;
        INSERT INTO keyed SELECT 0, "the Key" FROM keyed WHERE i BETWEEN 500 AND 520;
    """)
    if analyzed:
        server.psql("ANALYZE keyed")
    options = {"numeric_nan": "null", "infinity": "null"}
    # The texts of the values: what Arrow cannot hold is compared as well.
    query = 'SELECT i, "the Key", "the Key"::text AS shown FROM keyed'
    statements = Statements(server)
    in_parts(query, server.url(), partition_on="the Key", partition_num=5, options=options)
    assert len(statements.of_parts()) >= 2
    query = 'SELECT "the Key" AS renamed, i FROM keyed WHERE i > $1'
    in_parts(query, server.url(), partition_on="renamed", partition_num=3, options=options, params=[1500])


def test_what_has_no_order(server: PostgreSQL) -> None:
    server.psql("CREATE TYPE pair AS (a int, b json)")
    for value, native in [
        ("'{}'::json", "json"),
        ("NULL::xml", "xml"),
        ("'(1,2)'::point", "point"),
        ("ROW(1, '{}')::pair", "pair"),
    ]:
        with pytest.raises(longshore.InterfaceError, match=f'"x", whose type {native} has no order'):
            read(f"SELECT id, {value} AS x FROM t", server.url(), partition_on="x", partition_num=2)


def test_a_column_that_is_not_there(url: str) -> None:
    with pytest.raises(longshore.InterfaceError, match="does not return") as caught:
        read("SELECT id, word FROM t", url, partition_on="ID", partition_num=2)
    assert caught.value.hint == "it returns id, word"
    with pytest.raises(longshore.InterfaceError, match="several of that name"):
        read("SELECT id, k AS id FROM t", url, partition_on="id", partition_num=2)


@pytest.mark.parametrize(
    ("query", "on"),
    [
        ("SELECT * FROM v", "id"),
        ("SELECT t.*, s.id AS s FROM t LEFT JOIN small AS s ON s.id = t.k;", "s"),
        ("SELECT k, count(*) AS n, avg(id) AS mean, min(word) AS w FROM t GROUP BY k", "k"),
        ("SELECT k, count(*) AS n, avg(id) AS mean FROM t GROUP BY k", "n"),
        ("SELECT word, avg(id) AS mean FROM t GROUP BY word", "mean"),
        ("SELECT DISTINCT word FROM t", "word"),
        ("SELECT * FROM t ORDER BY word DESC, id -- the order", "word"),
        ("SELECT id, word FROM t UNION SELECT id, 'x' FROM small", "word"),
        ("WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 500) SELECT * FROM r", "n"),
        ("SELECT * FROM generate_series(1, 1000) AS i", "i"),
        ("VALUES (1, 'a'), (2, NULL), (NULL, 'c')", "column1"),
        ("TABLE t", "id"),
        ("(SELECT id FROM t)", "id"),
        ("SELECT id, unnest(ARRAY[k, id]) AS u FROM t", "u"),
        ("SELECT id, word FROM t WHERE id > (SELECT max(id) / 2 FROM t)", "id"),
        ("SELECT found.id, common.id AS c FROM small AS found, small AS common, longshore_part", "id"),
        ('SELECT id AS "a ""b" FROM t', 'a "b'),
        ("SELECT 'x' || id AS label, NULL::int AS none FROM t", "none"),
        ("SELECT 'x' || id AS label FROM t", "label"),
    ],
)
def test_any_query_by_a_column(query: str, on: str, server: PostgreSQL) -> None:
    server.psql("CREATE TABLE IF NOT EXISTS longshore_part AS SELECT 1 AS one")
    for number in (2, 7):
        in_parts(query, server.url(), partition_on=on, partition_num=number)


@pytest.mark.parametrize("on", ["mean", "list", "some"])
def test_a_key_that_depends_on_the_order_of_rows(on: str, url: str) -> None:
    query = """
        SELECT k, avg(id / 7.0::float8) AS mean, string_agg(word, ',') AS list, sum(id::float4)::int AS some
        FROM t GROUP BY k"""
    serial = read(query, url)
    table = serially("may depend on the order of rows", query, url, partition_on=on, partition_num=3)
    assert table.num_rows == serial.num_rows
    # The groups are the same ones in every part, whatever their sums.
    assert read(query, url, partition_on="k", partition_num=3).num_rows == serial.num_rows


@pytest.mark.parametrize("collation", ["C", "default", "POSIX", "en-x-icu", "blind"])
@pytest.mark.parametrize("analyzed", [True, False])
def test_texts_in_any_collation(collation: str, analyzed: bool, server: PostgreSQL) -> None:  # noqa: FBT001
    try:
        server.psql("""
            CREATE COLLATION IF NOT EXISTS blind (provider = icu, locale = 'und-u-ks-level1', deterministic = false)""")
    except RuntimeError:
        if collation in {"blind", "en-x-icu"}:
            pytest.skip("the server was built without ICU")
    server.psql(f"""
        DROP TABLE IF EXISTS texts;
        CREATE TABLE texts (i int, w text COLLATE "{collation}");
        INSERT INTO texts SELECT i, (ARRAY['a', 'A', 'á', 'b', '_', ' ', '-', 'Z', 'ß', 'ss'])[1 + i % 10]
            || (ARRAY['', 'a', 'A', 'É', '-x'])[1 + i / 10 % 5] || CASE WHEN i % 2 = 0 THEN i % 77 END
        FROM generate_series(1, 3000) AS i;
    """)
    if analyzed:
        server.psql("ANALYZE texts")
    for number in (2, 9):
        in_parts("SELECT * FROM texts", server.url(), partition_on="w", partition_num=number)


def test_texts_whose_collation_cannot_be_told(server: PostgreSQL) -> None:
    query = """SELECT id, word COLLATE "C" || (word COLLATE "POSIX") AS w FROM t"""
    with pytest.raises(longshore.ProgrammingError, match="collation"):
        read(query.replace("AS w FROM t", "AS w FROM t ORDER BY w"), server.url())
    serially(
        "collation",
        "SELECT id, a.word || b.word AS w FROM c_words a JOIN p_words b USING (id)",
        _words(server),
        partition_on="w",
        partition_num=2,
    )


def _words(server: PostgreSQL) -> str:
    server.psql("""
        CREATE TABLE c_words AS SELECT id, word COLLATE "C" AS word FROM t;
        CREATE TABLE p_words AS SELECT id, word COLLATE "POSIX" AS word FROM t;
    """)
    return server.url()


@pytest.mark.parametrize("number", [2, 3, 8, 16])
@pytest.mark.parametrize("heavy", ["7", "NULL"])
def test_a_value_that_dominates(heavy: str, number: int, server: PostgreSQL) -> None:
    server.psql(f"""
        DROP TABLE IF EXISTS skewed;
        CREATE TABLE skewed AS
        SELECT i, CASE WHEN i % 10 > 0 THEN {heavy} ELSE i END AS k, repeat('x', 20) AS filler
        FROM generate_series(1, 20000) AS i;
        ANALYZE skewed;
    """)
    statements = Statements(server)
    in_parts("SELECT k, i AS j FROM skewed WHERE i > 0", server.url(), partition_on="k", partition_num=number)
    parts = statements.of_parts()
    if heavy == "NULL":
        assert sum("IS NULL" in part for part in parts) == 1
        return
    cut = [part for part in parts if "=) '7'" in part]
    assert len(cut) == math.ceil(0.9 * number)
    assert all("ctid" in part for part in cut)
    # What it is joined with is in no single table: it stays one part.
    statements = Statements(server)
    query = "SELECT skewed.k, skewed.i FROM skewed JOIN skewed AS s USING (i)"
    in_parts(query, server.url(), partition_on="k", partition_num=number)
    cut = [part for part in statements.of_parts() if "=) '7'" in part]
    assert len(cut) == 1
    assert "ctid" not in cut[0]


def test_five_values_and_a_tail(server: PostgreSQL) -> None:
    server.psql("""
        CREATE TABLE five AS SELECT i, CASE WHEN i % 5 > 0 THEN i % 7 % 5 ELSE i END AS k
        FROM generate_series(1, 30000) AS i;
        VACUUM ANALYZE five;
    """)
    for number in (2, 4, 8):
        statements = Statements(server)
        whole = in_parts("SELECT k, i FROM five", server.url(), partition_on="k", partition_num=number)
        sizes = [int(server.psql(f"SELECT count(*) FROM ({part}) AS p")) for part in statements.of_parts()]
        assert sum(sizes) == whole.num_rows
        assert max(sizes) < 1.4 * whole.num_rows / number


@pytest.mark.parametrize("condition", ["id > 2700", "id BETWEEN 100 AND 300", "word = 'word 7'", "k = 3 AND id > 1000"])
def test_parts_are_even_whatever_the_condition(condition: str, server: PostgreSQL) -> None:
    statements = Statements(server)
    query = f"SELECT id, word FROM t WHERE {condition}"
    whole = in_parts(query, server.url(), partition_on="id", partition_num=4)
    sizes = [int(server.psql(f"SELECT count(*) FROM ({part}) AS p")) for part in statements.of_parts()]
    assert sum(sizes) == whole.num_rows
    assert max(sizes) <= 2 * whole.num_rows / 4


def test_statistics_that_nobody_may_see(server: PostgreSQL) -> None:
    server.psql("""
        CREATE USER stranger;
        CREATE TABLE closed AS TABLE t;
        ANALYZE closed;
        GRANT SELECT (id, word) ON closed TO stranger;
    """)
    url = server.url(user="stranger")
    in_parts("SELECT id, word FROM closed", url, partition_on="id", partition_num=3)
    in_parts("SELECT word FROM closed WHERE id > 5", url, partition_on="word", partition_num=3)


def test_a_search_path_that_leads_elsewhere(server: PostgreSQL) -> None:
    server.psql("""
        CREATE SCHEMA trap;
        CREATE FUNCTION trap.never(int, int) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT false';
        CREATE OPERATOR trap.>= (FUNCTION = trap.never, LEFTARG = int, RIGHTARG = int);
        CREATE OPERATOR trap.< (FUNCTION = trap.never, LEFTARG = int, RIGHTARG = int);
        CREATE TYPE trap.int4 AS ENUM ('no');
    """)
    url = server.url(options="-c search_path=trap,pg_catalog,public")
    in_parts("SELECT * FROM t", url, partition_on="id", partition_num=3)
    in_parts("SELECT * FROM t", url, partition_num=3)


def test_types_of_an_extension(server: PostgreSQL) -> None:
    types = {"citext": "('Wo' || i % 99)::citext", "ltree": "('a.b' || i)::ltree", "hstore": "hstore('a', i::text)"}
    for extension, expression in types.items():
        try:
            server.psql(f"CREATE SCHEMA {extension}; CREATE EXTENSION {extension} SCHEMA {extension}")
        except RuntimeError:
            continue
        server.psql(f"""
            SET search_path = {extension}, public;
            CREATE TABLE of_{extension} AS SELECT i, {expression} AS w FROM generate_series(1, 2000) AS i;
            ANALYZE;
        """)
        # Not in the search path: the type's own operators are found all the same.
        query = f"SELECT i, w::text AS shown, w FROM {extension}.of_{extension}"
        in_parts(query, server.url(), partition_on="w", partition_num=3)


def test_parameters_of_a_type_of_the_users(server: PostgreSQL) -> None:
    server.psql("""
        CREATE TYPE port AS ENUM ('Ghent', 'Antwerp');
        CREATE TABLE ships AS SELECT i, (ARRAY['Ghent', 'Antwerp'])[1 + i % 2]::port AS home
        FROM generate_series(1, 6000) AS i;
    """)
    query = "SELECT i, home FROM ships WHERE home = $1 AND i > $2"
    for on in (None, "home", "i"):
        in_parts(query, server.url(), partition_on=on, partition_num=3, params=["Ghent", 10])


def test_many_partitions(server: PostgreSQL) -> None:
    leaves = "".join(f"CREATE TABLE many_{i} PARTITION OF many FOR VALUES IN ({i});" for i in range(300))
    server.psql(f"""
        CREATE TABLE many (i int, p int) PARTITION BY LIST (p);
        {leaves}
        INSERT INTO many SELECT i, i % 300 FROM generate_series(1, 30000) AS i;
    """)
    in_parts("SELECT * FROM many", server.url(), partition_num=3)
    in_parts("SELECT * FROM many", server.url(), partition_num=3, partition_on="i")


def test_a_very_long_query(url: str, statements: Statements) -> None:
    numbers = ", ".join(str(number) for number in range(0, 400_000, 2))
    query = f"SELECT * FROM t WHERE k IN ({numbers}) AND word <> '{'x' * 100_000}'"
    in_parts(query, url, ordered=True, partition_num=2)
    in_parts(query, url, partition_num=2, partition_on="id")
    assert len(statements.of_parts()) == 4


# By a column between two values.


@pytest.mark.parametrize(
    ("native", "low", "high"),
    [
        ("int2", 100, 300),
        ("int4", 0, 1),
        ("int4", -5, 10**30),
        ("int4", 10.5, 900.25),
        ("int8", 5, 5),
        ("numeric", decimal.Decimal("0.1"), decimal.Decimal("1e3")),
        ("numeric", 1, 2.5),
        ("float4", -1e300, 1e300),
        ("float4", 0.0, 1e-300),
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


# Properties.

CELLS = st.one_of(
    st.none(),
    st.sampled_from([0, 1, 1, 1, 7]),
    st.integers(-5, 5),
    st.integers(-(2**31), 2**31 - 1),
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    keys=st.lists(st.tuples(CELLS, st.sampled_from([1, 2, 50, 400])), max_size=30),
    number=st.integers(2, 12),
    analyzed=st.booleans(),
)
def test_no_row_is_lost_or_doubled(
    keys: list[tuple[int | None, int]],
    number: int,
    analyzed: bool,  # noqa: FBT001
    server: PostgreSQL,
) -> None:
    values = ", ".join(f"({'NULL' if key is None else key}::int8, {times})" for key, times in keys) or "(NULL::int8, 0)"
    server.psql(f"""
        DROP TABLE IF EXISTS drawn;
        CREATE TABLE drawn AS SELECT row_number() OVER () AS n, key::int
        FROM (VALUES {values}) AS v (key, times), generate_series(1, times);
    """)
    if analyzed:
        server.psql("ANALYZE drawn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        in_parts("SELECT * FROM drawn", server.url(), partition_on="key", partition_num=number)
        in_parts("SELECT * FROM drawn", server.url(), ordered=True, partition_num=number)


# Several queries.


def test_a_list_is_read_in_parallel(url: str, statements: Statements) -> None:
    queries = [f"SELECT id, word FROM t WHERE id % 3 = {rest} ORDER BY id LIMIT 700" for rest in range(3)]
    serial = read(queries, url, partition_num=1)
    parallel = read(queries, url)
    assert parallel.equals(serial)
    assert len(statements.of_parts()) == 3


def test_a_list_with_parameters(url: str) -> None:
    queries = ["SELECT id, word FROM t WHERE id = :id", "SELECT id, word FROM t WHERE id > :id::int8"]
    assert read(queries, url, params={"id": 2990}).equals(read(queries, url, params={"id": 2990}, partition_num=1))


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT id FROM t WHERE at < now()", "now()"),
        ("SELECT (random() * 0)::int AS id", "random()"),
        ("SELECT id FROM t WHERE at < 'now'", "'now'"),
    ],
)
def test_a_list_of_several_moments_is_serial(query: str, reason: str, url: str) -> None:
    serially(reason, ["SELECT id FROM t", query], url, partition_num=2)


# How many.


def test_auto_reads_a_small_result_whole(url: str, statements: Statements) -> None:
    in_parts("SELECT * FROM t", url, partition_num="auto")
    in_parts("SELECT * FROM t", url, partition_on="id")
    assert statements.of_parts() == []


def test_auto_reads_a_large_result_in_parts(server: PostgreSQL, statements: Statements) -> None:
    server.psql("""
        CREATE TABLE large AS SELECT i, repeat(md5(i::text), 30) AS t FROM generate_series(1, 50000) AS i;
        ANALYZE large;
    """)
    in_parts("SELECT * FROM large", server.url(), partition_num="auto")
    assert len(statements.of_parts()) == 2
    server.psql("DROP TABLE large")


# What others do to the tables meanwhile.


@contextlib.contextmanager
def waiting(server: PostgreSQL, statement: str) -> Iterator[Callable[[], None]]:
    """Hold the locks of `statement` in an open transaction; the callable commits it once somebody waits for it."""
    with longshore.connect(server.url()) as connection:
        connection.execute(statement)

        def commit_when_awaited() -> None:
            deadline = time.monotonic() + 20
            while server.psql("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0":
                assert time.monotonic() < deadline
                time.sleep(0.01)
            connection.commit()

        yield commit_when_awaited


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE awaited",
        "ALTER TABLE awaited ALTER COLUMN word TYPE int USING length(word)",
        "ALTER TABLE awaited ADD COLUMN more text DEFAULT clock_timestamp()::text",
        "ALTER TABLE awaited DROP COLUMN word",
        "CLUSTER awaited USING awaited_id_idx",
        "DELETE FROM awaited; LOCK TABLE awaited",
    ],
)
@pytest.mark.parametrize("on", [None, "id"])
def test_a_change_that_is_waited_for_is_seen(statement: str, on: str | None, server: PostgreSQL) -> None:
    server.psql("DROP TABLE IF EXISTS awaited; CREATE TABLE awaited AS TABLE t; CREATE INDEX ON awaited (id)")
    with waiting(server, "SELECT 1") as _, longshore.connect(server.url()) as connection:
        for one in statement.split(";"):
            connection.execute(one)
        found: list[pa.Table] = []
        query = "SELECT * FROM awaited"
        thread = threading.Thread(
            target=lambda: found.append(read(query, server.url(), partition_num=3, partition_on=on))
        )
        thread.start()
        deadline = time.monotonic() + 20
        while server.psql("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0":
            assert time.monotonic() < deadline
            time.sleep(0.01)
        connection.commit()
        thread.join()
    after = read(query, server.url())
    assert found[0].schema.equals(after.schema)
    assert rows(found[0]) == rows(after)


def test_a_vacuum_full_that_is_waited_for(server: PostgreSQL) -> None:
    server.psql("""
        CREATE TABLE vacuumed AS SELECT i, repeat('x', 200) AS t FROM generate_series(1, 100000) AS i;
        DELETE FROM vacuumed WHERE i % 2 = 0;
    """)
    thread = threading.Thread(target=lambda: [server.psql("VACUUM FULL vacuumed") for _ in range(5)])
    thread.start()
    while thread.is_alive():
        assert read("SELECT i FROM vacuumed", server.url(), partition_num=4).num_rows == 50_000
    thread.join()


def test_nobody_alters_the_tables_while_parts_are_read(server: PostgreSQL) -> None:
    server.psql("CREATE TABLE held AS SELECT i, repeat('x', 1000) AS t FROM generate_series(1, 50000) AS i")
    stream = longshore.read_sql(
        "SELECT * FROM held", server.url(), return_type="arrow_stream", partition_num=3, batch_size=100
    )
    next(iter(stream))
    for statement in ["TRUNCATE held", "ALTER TABLE held ADD COLUMN x int", "DROP TABLE held"]:
        with pytest.raises(RuntimeError, match="lock timeout"):
            server.psql(f"SET lock_timeout = 300; {statement}")
    server.psql("DELETE FROM held")
    assert sum(batch.num_rows for batch in stream) + 100 == 50_000
    server.psql("DROP TABLE held")


def test_a_table_that_is_attached_meanwhile(server: PostgreSQL) -> None:
    server.psql("""
        CREATE TABLE growing (id int, t text) PARTITION BY RANGE (id);
        CREATE TABLE growing_1 PARTITION OF growing FOR VALUES FROM (0) TO (50000);
        CREATE TABLE growing_2 (id int, t text);
        INSERT INTO growing_1 SELECT i, repeat('x', 500) FROM generate_series(0, 49999) AS i;
        INSERT INTO growing_2 SELECT i, repeat('x', 500) FROM generate_series(50000, 60000) AS i;
    """)
    attach = "ALTER TABLE growing ATTACH PARTITION growing_2 FOR VALUES FROM (50000) TO (70000)"

    def stream(**arguments: Any) -> Any:
        arguments = {"return_type": "arrow_stream", "partition_num": 2, "batch_size": 100, **arguments}
        return longshore.read_sql("SELECT * FROM growing", server.url(), **arguments)

    # Parts by blocks name their partitions.
    opened = stream()
    first = next(iter(opened)).num_rows
    server.psql(attach)
    assert first + sum(batch.num_rows for batch in opened) == 50_000
    server.psql("ALTER TABLE growing DETACH PARTITION growing_2")
    opened = stream(partition_on="id")
    next(iter(opened))
    server.psql(attach)
    with pytest.raises(longshore.OperationalError, match="was attached to one of the query's tables") as caught:
        list(opened)
    assert caught.value.sqlstate == "40001"
    assert sum(batch.num_rows for batch in stream(partition_on="id")) == 60_001


def test_a_timeout_while_it_is_split(server: PostgreSQL) -> None:
    server.psql("CREATE TABLE taken AS TABLE t")
    with longshore.connect(server.url()) as other, longshore.connect(server.url(), autocommit=True) as connection:
        other.execute("LOCK TABLE taken")
        for on in (None, "id"):
            with pytest.raises(longshore.TimeoutError):
                read("SELECT * FROM taken", connection, partition_num=2, partition_on=on, timeout=0.5)
            assert connection.in_transaction is False
        connection.execute("SET lock_timeout = 300")
        with pytest.raises(longshore.OperationalError, match="lock timeout"):
            read(["SELECT * FROM taken"] * 2, connection, partition_num=2)
        connection.execute("RESET lock_timeout")
        other.rollback()
        in_parts("SELECT * FROM taken", connection, partition_num=2)


def test_a_failure_in_a_part(url: str, server: PostgreSQL) -> None:
    for on in (None, "id"):
        with pytest.raises(longshore.DataError, match="division by zero") as caught:
            read("SELECT id, 1 / (id - 1500) AS x FROM t", url, partition_num=3, partition_on=on)
        assert "part " in str(caught.value)
    deadline = time.monotonic() + 10
    while server.psql("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%'") != "0":
        assert time.monotonic() < deadline


# How many flights it takes.


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        ({"query": "SELECT id, word FROM t"}, 2),
        ({"query": "SELECT id, word FROM t WHERE id > $1", "params": [5]}, 3),
        ({"query": "SELECT id, word FROM t", "partition_on": "id"}, 2),
        ({"query": "SELECT id, word FROM t WHERE id > 5", "partition_on": "id"}, 3),
        ({"query": "SELECT id, word || '!' AS w FROM t", "partition_on": "w"}, 3),
        ({"query": "SELECT id, word FROM t", "partition_on": "id", "partition_range": (1, 3000)}, 2),
        ({"query": ["SELECT id FROM t", "SELECT id FROM t"]}, 2),
    ],
)
def test_flights(arguments: dict[str, Any], count: int, server: PostgreSQL) -> None:
    with Recorder((server.host, server.port)) as recorder:
        url = server.url(host=recorder.host, port=recorder.port, sslmode="disable")
        read(conn=url, partition_num=2, **arguments)
        flights = recorder.flights()
    # What comes after is the description of the result.
    described = next(index for index, flight in enumerate(flights) if flight.startswith("PDH"))
    assert described == count, flights


# Poolers, limits, standbys, and servers that are none.


def test_a_pooler_with_room(pgbouncer: PgBouncer, postgres: Endpoint) -> None:
    postgres.psql("CREATE TABLE pooled AS SELECT i, repeat('x', 50) AS t FROM generate_series(1, 20000) AS i")
    try:
        in_parts("SELECT * FROM pooled", pgbouncer.url(), ordered=True, partition_num=4)
        in_parts("SELECT * FROM pooled", pgbouncer.url(), partition_on="i", partition_num=4)
    finally:
        postgres.psql("DROP TABLE pooled")


def test_a_pooler_that_is_too_small(server: PostgreSQL) -> None:
    with require(lambda: PgBouncer(server, config={"default_pool_size": "1", "query_wait_timeout": "60"})) as pooler:
        started = time.monotonic()
        with pytest.raises(longshore.OperationalError, match="had a connection") as caught:
            read("SELECT * FROM t", pooler.url(), partition_num=4)
        assert time.monotonic() - started < 18
        assert 'options={"snapshot": False}' in (caught.value.hint or "")
        table = read("SELECT * FROM t", pooler.url(), partition_num=4, options={"snapshot": False})
        assert rows(table) == rows(read("SELECT * FROM t", pooler.url()))


def test_a_server_without_room(make_server: Callable[..., PostgreSQL]) -> None:
    server = make_server(config={"max_connections": "5", "superuser_reserved_connections": "0"})
    server.psql("CREATE TABLE t AS SELECT i FROM generate_series(1, 5000) AS i")
    started = time.monotonic()
    with pytest.raises(longshore.OperationalError, match=r"too many clients|remaining connection slots"):
        read("SELECT * FROM t", server.url(), partition_num=12)
    assert time.monotonic() - started < 15
    # Nothing is left behind.
    deadline = time.monotonic() + 10
    while server.psql("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'") != "1":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert read("SELECT * FROM t", server.url(), partition_num=2).num_rows == 5000


def test_a_hot_standby(make_server: Callable[..., PostgreSQL]) -> None:
    hba = ("local all all trust", "local replication all trust", "host all all all trust")
    primary = make_server(hba=hba, config=Standby.needs)
    primary.psql("CREATE TABLE t AS SELECT i, i % 7 AS k FROM generate_series(1, 20000) AS i; ANALYZE t")
    with Standby(primary) as standby:
        standby.catch_up()
        url = standby.url()
        in_parts("SELECT * FROM t", url, ordered=True, partition_num=3)
        in_parts("SELECT * FROM t WHERE i > 5", url, partition_num=3, partition_on="k")
        lists = [f"SELECT * FROM t WHERE k = {k}" for k in range(7)]
        assert read(lists, url).equals(read(lists, url, partition_num=1))
        # What the primary does to the table waits for the parts.
        stream = longshore.read_sql("SELECT * FROM t", url, return_type="arrow_stream", partition_num=2, batch_size=10)
        primary.psql("ALTER TABLE t ADD COLUMN more int")
        assert sum(batch.num_rows for batch in stream) == 20_000
        standby.catch_up()
        in_parts("SELECT * FROM t", url, ordered=True, partition_num=3)


def test_without_a_snapshot(url: str, statements: Statements, server: PostgreSQL) -> None:
    options = {"snapshot": False}
    in_parts("SELECT * FROM t", url, ordered=True, partition_num=3, options=options)
    in_parts("SELECT * FROM t", url, partition_on="k", partition_num=3, options=options)
    assert "pg_export_snapshot" not in server.log[statements.start :]
    assert server.psql("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%'") == "0"


def test_questdb(questdb: QuestDB) -> None:
    query = "SELECT x FROM long_sequence(1000)"
    table = serially("", query, questdb.url(), partition_num=2)
    assert table.num_rows == 1000


def test_h2(h2: H2) -> None:
    table = serially("", "SELECT 1 AS one", h2.url(), partition_num=2)
    assert table.num_rows == 1
