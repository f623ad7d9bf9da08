"""Reads that must not be split, and what they say."""

import re

import pytest

import longshore
from tests.postgres.parallel.comparing import ROWS, Statements, in_parts, read, rows, serially
from tests.servers import PostgreSQL

pytestmark = pytest.mark.server


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
        ("INSERT INTO empty VALUES (1) RETURNING id", "it is not a SELECT"),
        ("SHOW server_version", "it is not a SELECT"),
        ("EXPLAIN SELECT * FROM t", "it is not a SELECT"),
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


def test_a_bound_text_that_means_a_time(url: str) -> None:
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
