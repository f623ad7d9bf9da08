"""Parts by a column of groups, whose equality is not always identity."""

import pytest

from tests.postgres.parallel.comparing import Statements, in_parts, read, rows, serially
from tests.servers import PostgreSQL

pytestmark = pytest.mark.server

REASON = "the query has groups or aggregates, and partition_on is not a table's column"


@pytest.fixture(scope="module", autouse=True)
def _alike(server: PostgreSQL) -> None:
    """Give a table of values that are equal and not the same."""
    server.psql("""
        CREATE TABLE alike AS SELECT i, i % 7 AS k, 'w' || i % 5 AS w,
            CASE WHEN i % 2 = 0 THEN 1.0 ELSE 1.00 END AS n,
            CASE WHEN i % 2 = 0 THEN 0.0 ELSE '-0' END::float8 AS f,
            CASE WHEN i % 2 = 0 THEN '1 mon' ELSE '30 days' END::interval AS v,
            CASE WHEN i % 2 = 0 THEN 'a' ELSE 'a ' END::char(2) AS c,
            CASE WHEN i % 2 = 0 THEN '{"a": 1.0}' ELSE '{"a": 1.00}' END::jsonb AS j,
            CASE WHEN i % 2 = 0 THEN '{1.0}' ELSE '{1.00}' END::numeric[] AS a,
            timestamptz '2020-01-01' + i * interval '1 hour' AS at
        FROM generate_series(1, 10000) AS i;
        ANALYZE alike;
        CREATE VIEW alike_view AS SELECT n::text AS x, count(*) AS c FROM alike GROUP BY n;
        CREATE VIEW sums_view AS SELECT k, sum(f + i / 7.0) AS s FROM alike GROUP BY k;
        CREATE VIEW counts_view AS SELECT k, count(*) AS c FROM alike GROUP BY k;
    """)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT n::text AS x, count(*) AS c FROM alike GROUP BY n",
        "SELECT scale(n) AS x, count(*) AS c FROM alike GROUP BY n",
        "SELECT f::text AS x, count(*) AS c FROM alike GROUP BY f",
        "SELECT extract(day FROM v) AS x, count(*) AS c FROM alike GROUP BY v",
        "SELECT j::text AS x, count(*) AS c FROM alike GROUP BY j",
        "SELECT a::text AS x, count(*) AS c FROM alike GROUP BY a",
        "SELECT n::text AS x, k, count(*) AS c FROM alike GROUP BY k, n",
        "SELECT (n + 0)::text AS x, count(*) AS c FROM alike GROUP BY n + 0",
        "SELECT x, c FROM (SELECT n::text AS x, count(*) AS c FROM alike GROUP BY n) AS s",
        "SELECT x, sum(c) AS c FROM (SELECT n::text AS x, count(*) AS c FROM alike GROUP BY n) AS s GROUP BY x",
        "WITH s AS (SELECT n::text AS x, count(*) AS c FROM alike GROUP BY n) SELECT * FROM s",
        "SELECT n::text AS x FROM (SELECT DISTINCT n FROM alike) AS s",
        "SELECT n::text AS x FROM (SELECT n FROM alike UNION SELECT n FROM alike) AS s",
        "SELECT n::text AS x FROM (SELECT n FROM alike INTERSECT SELECT n FROM alike) AS s",
        "SELECT * FROM (VALUES (1)) AS k, (SELECT n::text AS x, count(*) AS c FROM alike GROUP BY n) AS s",
        "SELECT * FROM alike_view",
        "SELECT n::text || count(*) AS x FROM alike GROUP BY n",
    ],
)
def test_a_key_that_tells_equal_values_apart(query: str, server: PostgreSQL) -> None:
    serial = read(query, server.url())
    assert serial.num_rows in {1, 7}
    assert rows(serially(REASON, query, server.url(), partition_on="x", partition_num=3)) == rows(serial)


def test_collations_that_are_not_deterministic(with_collations: PostgreSQL) -> None:
    with_collations.psql("""
        CREATE TABLE blindly AS
        SELECT i, (CASE WHEN i % 2 = 0 THEN 'a' ELSE 'A' END) COLLATE blind AS w FROM generate_series(1, 1000) AS i;
    """)
    for query in [
        """SELECT w COLLATE "C" AS x, count(*) AS c FROM blindly GROUP BY w""",
        """SELECT upper(w COLLATE "C") || w AS x, count(*) AS c FROM blindly GROUP BY w""",
        """SELECT x COLLATE "C" AS x FROM (SELECT i, w AS x FROM blindly) AS s GROUP BY x""",
    ]:
        serial = read(query, with_collations.url())
        assert serial.num_rows == 1
        assert serially(REASON, query, with_collations.url(), partition_on="x", partition_num=3).equals(serial)
    in_parts(
        "SELECT w AS x, count(*) AS c FROM blindly GROUP BY w", with_collations.url(), partition_on="x", partition_num=3
    )


def test_citext(with_collations: PostgreSQL) -> None:
    with_collations.psql("""
        CREATE SCHEMA "the citext"; CREATE EXTENSION citext SCHEMA "the citext";
        SET search_path = "the citext", public;
        CREATE TABLE public.caseless AS SELECT i, (CASE WHEN i % 2 = 0 THEN 'a' ELSE 'A' END)::citext AS w
        FROM generate_series(1, 1000) AS i;
    """)
    query = "SELECT w::text AS x, count(*) AS c FROM caseless GROUP BY w"
    url = with_collations.url(options="-c search_path=public")
    serial = read(query, url)
    assert serial.num_rows == 1
    assert serially(REASON, query, url, partition_on="x", partition_num=3).equals(serial)


@pytest.mark.parametrize(
    "query",
    [
        # The key is a table's column.
        "SELECT n AS x, count(*) AS c FROM alike GROUP BY n",
        "SELECT f AS x, count(*) AS c FROM alike GROUP BY f",
        "SELECT k AS x, max(i) AS last FROM (SELECT DISTINCT k, i FROM alike) AS s GROUP BY k",
        # There are no groups.
        "SELECT i::text || 'x' AS x FROM alike WHERE i < 5000",
    ],
)
def test_groups_that_stay_whole(query: str, server: PostgreSQL, statements: Statements) -> None:
    in_parts(query, server.url(), partition_on="x", partition_num=3)
    # All values of n, and of f, are equal: one part has all.
    if "n::text" not in query and "GROUP BY n" not in query and "GROUP BY f" not in query:
        assert len(statements.of_parts()) >= 2


@pytest.mark.parametrize(
    "query",
    [
        "SELECT date_trunc('day', at) AS x, count(*) AS c FROM alike GROUP BY 1",
        "SELECT i / 3 AS x, n, count(*) AS c FROM alike GROUP BY i / 3, n ORDER BY 1",
        "SELECT DISTINCT i % 10 AS x FROM alike",
        "SELECT i % 10 AS x FROM alike UNION SELECT 3",
        "SELECT i AS x FROM alike INTERSECT SELECT i FROM alike",
    ],
)
def test_a_computed_key_of_groups_is_read_serially(query: str, server: PostgreSQL) -> None:
    serial = read(query, server.url())
    assert rows(serially(REASON, query, server.url(), partition_on="x", partition_num=3)) == rows(serial)


def test_a_view_is_no_table(server: PostgreSQL) -> None:
    serial = read("SELECT * FROM sums_view", server.url())
    table = serially(REASON, "SELECT * FROM sums_view", server.url(), partition_on="s", partition_num=3)
    assert rows(table) == rows(serial)
    serial = read("SELECT * FROM counts_view", server.url())
    table = serially(REASON, "SELECT * FROM counts_view", server.url(), partition_on="k", partition_num=3)
    assert rows(table) == rows(serial)
