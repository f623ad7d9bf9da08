"""Parts by a column: of any type, of any query."""

import math

import pytest

import longshore
from tests.postgres.parallel.comparing import ROWS, Statements, in_parts, read, serially
from tests.servers import PostgreSQL

pytestmark = pytest.mark.server

NAN, INFINITY = math.nan, math.inf


@pytest.mark.costly
@pytest.mark.parametrize("analyzed", [True, pytest.param(False, marks=pytest.mark.once)])
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
        ("SELECT DISTINCT word FROM t", "word"),
        ("SELECT * FROM t ORDER BY word DESC, id -- the order", "word"),
        ("SELECT id, word FROM t UNION ALL SELECT id, 'x' FROM small", "word"),
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


@pytest.mark.parametrize("on", ["mean", "list", "some", "n"])
def test_a_key_that_is_an_aggregate(on: str, url: str) -> None:
    # Of an aggregate that depends on the order of its rows, two parts could have two values.
    query = """
        SELECT k, avg(id / 7.0::float8) AS mean, string_agg(word, ',') AS list, sum(id::float4)::int AS some,
            count(*) AS n FROM t GROUP BY k"""
    serial = read(query, url)
    table = serially("partition_on is not a table's column", query, url, partition_on=on, partition_num=3)
    assert table.num_rows == serial.num_rows
    # The groups are the same ones in every part, whatever their sums.
    assert read(query, url, partition_on="k", partition_num=3).num_rows == serial.num_rows


@pytest.mark.parametrize(
    ("collation", "where"),
    [
        *((collation, "server") for collation in ("C", "default", "POSIX")),
        *((collation, "with_collations") for collation in ("en-x-icu", "blind")),
    ],
)
@pytest.mark.parametrize("analyzed", [True, pytest.param(False, marks=pytest.mark.once)])
def test_texts_in_any_collation(
    collation: str,
    where: str,
    analyzed: bool,  # noqa: FBT001
    request: pytest.FixtureRequest,
) -> None:
    server: PostgreSQL = request.getfixturevalue(where)
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


def test_statistics_that_no_one_may_see(server: PostgreSQL) -> None:
    server.psql("""
        CREATE USER stranger;
        CREATE TABLE closed AS TABLE t;
        ANALYZE closed;
        GRANT SELECT (id, word) ON closed TO stranger;
    """)
    url = server.url(user="stranger")
    in_parts("SELECT id, word FROM closed", url, partition_on="id", partition_num=3)
    in_parts("SELECT word FROM closed WHERE id > 5", url, partition_on="word", partition_num=3)
    # Nor may they know where a row lies.
    assert serially("permission denied", "SELECT id FROM closed", url, partition_num=2).num_rows == ROWS


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
        schema = f'"the {extension}"'
        try:
            server.psql(
                f"CREATE SCHEMA IF NOT EXISTS {schema}; CREATE EXTENSION IF NOT EXISTS {extension} SCHEMA {schema}"
            )
        except RuntimeError:
            continue
        server.psql(f"""
            SET search_path = {schema}, public;
            CREATE TABLE of_{extension} AS SELECT i, {expression} AS w FROM generate_series(1, 2000) AS i;
            ANALYZE;
        """)
        # Not in the search path: the type's own operators are found all the same.
        query = f"SELECT i, w::text AS shown, w FROM {schema}.of_{extension}"
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
    numbers = ", ".join(str(number) for number in range(0, 100_000, 10))
    query = f"SELECT * FROM t WHERE k IN ({numbers}) AND word <> '{'x' * 100_000}'"
    in_parts(query, url, ordered=True, partition_num=2)
    in_parts(query, url, partition_num=2, partition_on="id")
    assert len(statements.of_parts()) == 4
