"""Parts of partitioned tables, and of tables that are more than a table."""

import pytest

import longshore
from tests.postgres.parallel.comparing import ROWS, Statements, in_parts, read, rows, serially
from tests.servers import PostgreSQL

pytestmark = pytest.mark.server


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
    root = "CREATE TABLE virtual (id int, twice int GENERATED ALWAYS AS (2 * id) VIRTUAL) PARTITION BY RANGE (id)"
    if int(server.version) < 18:
        with pytest.raises(RuntimeError, match="syntax error"):
            server.psql(root)
        return
    server.psql(f"""
        {root};
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


def test_a_leaf_that_does_not_know_its_dimensions(server: PostgreSQL) -> None:
    # A table that is made as a partition has 0 dimensions in the catalogue, whatever its parent has.
    server.psql("""
        CREATE TABLE grids (k int, line int[], grid int[][]) PARTITION BY RANGE (k);
        CREATE TABLE grids_1 PARTITION OF grids FOR VALUES FROM (0) TO (10000);
        CREATE TABLE grids_2 PARTITION OF grids FOR VALUES FROM (10000) TO (20001);
        INSERT INTO grids SELECT i, ARRAY[i], ARRAY[[i, 1], [2, 3]] FROM generate_series(1, 20000) AS i;
    """)
    url = server.url()
    serial = read("SELECT k, grid FROM grids", url)
    assert rows(
        serially(
            'arrays of other dimensions in the partition "grids_1"', "SELECT k, grid FROM grids", url, partition_num=2
        )
    ) == rows(serial)
    in_parts("SELECT k, line, grid[1][1] AS g FROM grids", url, partition_num=2)
    in_parts("SELECT k, grid FROM grids", url, partition_num=2, partition_on="k")
