"""Several sources in one query, the snapshot that they show, and what becomes of failures."""

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import longshore
from tests.servers import Endpoint
from tests.sql.remote.comparing import Harbour
from tests.sql.remote.conftest import url

pytestmark = pytest.mark.packages

ROWS = 200_000


@pytest.fixture(scope="module")
def large(postgres: Endpoint) -> Iterator[str]:
    """Give the URL of a PostgreSQL with a table of ROWS rows, which tests leave as it is."""
    postgres.psql(f"""
        CREATE TABLE berths AS SELECT i AS id, i % 7 AS pier, 'ship ' || i AS ship FROM generate_series(1, {ROWS}) AS i;
        ANALYZE berths;
    """)
    yield postgres.url()
    postgres.psql("DROP TABLE berths")


@pytest.fixture
def berths(large: str, postgres: Endpoint) -> Iterator[str]:
    """Give the URL of the same with a small table, too."""
    postgres.psql("""
        CREATE TABLE piers AS SELECT i AS id, 'pier ' || i AS name FROM generate_series(0, 6) AS i;
        ANALYZE piers;
    """)
    yield large
    # The temporary view of a connection that has just been closed may still be there.
    postgres.psql("DROP TABLE piers CASCADE")


def rows(query: str, attach: Any, **more: Any) -> list[dict[str, Any]]:
    """Give the rows of a query."""
    found: list[dict[str, Any]] = longshore.sql(query, attach=attach, return_type="arrow", **more).to_pylist()
    return found


def test_several_sources_and_frames_in_one_query(berths: str, lite: Harbour) -> None:
    fees = pd.DataFrame({"pier": [1, 2], "fee": [10, 20]})
    query = """
        SELECT p.name, f.fee, count(*) AS ships, max(l.id) AS last
        FROM pg.berths AS b JOIN pg.piers AS p ON p.id = b.pier JOIN fees AS f ON f.pier = p.id
        JOIN lite.hostile AS l ON l.id = b.id AND l.id < 100
        GROUP BY ALL ORDER BY 1
    """
    expected = [
        {"name": "pier 1", "fee": 10, "ships": 15, "last": 99},
        {"name": "pier 2", "fee": 20, "ships": 14, "last": 93},
    ]
    attach = {"pg": berths, **lite.attach}
    assert rows(query, attach) == expected
    assert rows(query, attach, fees=fees) == expected


def test_every_row_of_a_large_table(berths: str) -> None:
    query = "SELECT count(*) AS n, sum(length(ship)) AS l FROM pg.berths WHERE id > 10"
    expected = [{"n": ROWS - 10, "l": sum(len(f"ship {i}") for i in range(11, ROWS + 1))}]
    assert rows(query, {"pg": berths}) == expected
    with longshore.connect(berths) as connection, longshore.Pool(berths, size=2) as pool:
        assert rows(query, {"pg": connection}) == expected
        assert rows(query, {"pg": pool}) == expected


def test_a_stream_is_read_while_it_is_consumed(berths: str) -> None:
    with longshore.connect(berths, autocommit=True) as connection:
        stream = longshore.sql(
            "SELECT upper(ship) AS s FROM pg.berths", attach={"pg": connection}, return_type="arrow_stream"
        )
        assert sum(batch.num_rows for batch in stream) == ROWS
        assert rows("SELECT count(*) AS n FROM pg.berths", {"pg": connection}) == [{"n": ROWS}]


def test_a_stream_that_is_dropped_frees_its_connection(berths: str) -> None:
    with longshore.connect(berths, autocommit=True) as connection:
        for query in ("SELECT ship FROM pg.berths", "SELECT upper(ship) AS s FROM pg.berths"):
            stream = longshore.sql(query, attach={"pg": connection}, return_type="arrow_stream")
            assert next(iter(stream)).num_rows > 0
            del stream
            assert rows("SELECT count(*) AS n FROM pg.piers", {"pg": connection}) == [{"n": 7}]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) AS n FROM pg.piers AS a JOIN pg.piers AS b ON a.id = b.id AND md5(a.name) = md5(b.name)",
        "WITH p AS (SELECT * FROM pg.piers) SELECT count(*) AS n FROM p AS a, p AS b WHERE md5(a.name) = md5(b.name)",
        "SELECT count(*) AS n FROM pg.piers AS a WHERE EXISTS (SELECT 1 FROM pg.piers AS b WHERE a.id * 2 = b.id * 2)",
        "SELECT count(*) AS n FROM (PIVOT pg.piers ON id USING count(*) GROUP BY name)",
        "SELECT count(*) AS n FROM (SELECT md5(name) FROM pg.piers UNION ALL SELECT name FROM pg.piers WHERE id > 9)",
        "WITH RECURSIVE r(n) AS (SELECT 0 UNION ALL SELECT id+1 FROM r, pg.piers WHERE id=n) SELECT max(n) n FROM r",
    ],
)
def test_what_is_read_more_than_once(berths: str, query: str) -> None:
    with longshore.connect(berths) as connection:
        assert rows(query, {"pg": berths}) == rows(query, {"pg": connection}) == [{"n": 7}]
        twice = query.replace("pg.piers AS b", "other.piers AS b")
        assert rows(twice, {"pg": connection, "other": connection}) == [{"n": 7}]


def test_two_tables_of_a_url_are_of_one_snapshot(berths: str, postgres: Endpoint) -> None:
    done = threading.Event()

    def move() -> None:
        with longshore.connect(postgres.url(), autocommit=True) as connection:
            while not done.is_set():
                connection.execute("UPDATE berths SET pier = pier + 1 WHERE id = 1")
                connection.execute("UPDATE piers SET id = b.pier FROM berths AS b WHERE b.id = 1 AND name = 'pier 1'")

    postgres.psql("CREATE UNIQUE INDEX ON berths (id); UPDATE piers SET id = 1 WHERE name = 'pier 1'")
    mover = threading.Thread(target=move)
    mover.start()
    try:
        for _ in range(20):
            query = """
                SELECT max(b.pier) - max(p.id) AS gap, count(md5(ship)) AS n FROM pg.berths AS b, pg.piers AS p
                WHERE b.id = 1 AND p.name = 'pier 1'
            """
            ((gap, n),) = [tuple(row.values()) for row in rows(query, {"pg": berths})]
            assert n == 1
            # The first statement may have been done, and the second not.
            assert gap in {0, 1}
    finally:
        done.set()
        mover.join()
        postgres.psql("DROP INDEX berths_id_idx; UPDATE berths SET pier = 1 WHERE id = 1")


def test_a_connections_own_transaction_is_seen(berths: str) -> None:
    with longshore.connect(berths) as connection:
        connection.execute("CREATE TEMPORARY TABLE mine AS SELECT 5 AS id")
        connection.execute("DELETE FROM piers WHERE id > 2")
        assert rows("SELECT count(*) AS n FROM pg.piers", {"pg": connection}) == [{"n": 3}]
        assert rows("SELECT id, md5('a') IS NULL AS f FROM pg.mine", {"pg": connection}) == [{"id": 5, "f": False}]
        connection.rollback()
        assert rows("SELECT count(*) AS n FROM pg.piers", {"pg": connection}) == [{"n": 7}]


def test_a_change_of_the_table_is_seen_at_once(berths: str) -> None:
    with longshore.connect(berths, autocommit=True) as connection:
        query = "SELECT * FROM pg.piers WHERE id = 1"
        assert rows(query, {"pg": connection}) == [{"id": 1, "name": "pier 1"}]
        connection.execute("ALTER TABLE piers ALTER COLUMN id TYPE text; ")
        connection.execute("ALTER TABLE piers ADD COLUMN depth int DEFAULT 3")
        assert rows(query.replace("= 1", "= '1'"), {"pg": connection}) == [{"id": "1", "name": "pier 1", "depth": 3}]


def test_tables_are_bounded_by_the_memory_limit(berths: str) -> None:
    query = "SELECT count(*) AS n FROM pg.berths AS a JOIN pg.berths AS b ON md5(a.ship) = md5(b.ship)"
    with pytest.raises(longshore.MemoryLimitError):
        rows(query, {"pg": berths}, options={"memory_limit": "1MB"})


@pytest.mark.parametrize(
    "query", ["SELECT bad FROM pg.bad", "SELECT bad, md5('a') FROM pg.bad", "SELECT bad FROM pg.bad, pg.piers"]
)
@pytest.mark.parametrize("return_type", ["arrow", "pandas"])
def test_a_value_that_cannot_be_read_is_the_sources_error(berths: str, query: str, return_type: Any) -> None:
    with longshore.connect(berths, autocommit=True) as connection:
        connection.execute(
            "CREATE TEMPORARY VIEW bad AS SELECT (CASE id WHEN 5 THEN 'NaN' END)::numeric(9, 2) AS bad FROM piers"
        )
        with pytest.raises(longshore.DataError, match="numeric_nan") as caught:
            longshore.sql(query, attach={"pg": connection}, return_type=return_type)
        assert caught.value.column == "bad"
        assert rows("SELECT count(*) AS n FROM pg.piers", {"pg": connection}) == [{"n": 7}]


def test_an_error_of_the_engine_is_its_own(berths: str) -> None:
    with longshore.connect(berths, autocommit=True) as connection:
        with pytest.raises(longshore.DataError, match="Could not convert string 'ship"):
            rows("SELECT CAST(ship AS INTEGER) FROM pg.berths", {"pg": connection})
        assert rows("SELECT count(*) AS n FROM pg.piers", {"pg": connection}) == [{"n": 7}]


def test_an_error_of_the_server_is_its_own(berths: str) -> None:
    with longshore.connect(berths, autocommit=True) as connection:
        connection.execute("CREATE TEMPORARY VIEW bad AS SELECT 1 / (id - 5) AS bad FROM piers")
        with pytest.raises(longshore.DataError, match="division by zero"):
            rows("SELECT md5('a'), bad FROM pg.bad", {"pg": connection})
        assert not connection.closed


def test_a_connection_of_sqlite3(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute("CREATE TABLE t (a INTEGER, b NUMERIC)")
    connection.execute("INSERT INTO t VALUES (1, 2.5), (2, 3)")
    assert rows("SELECT a, b FROM lite.t WHERE a = 2", {"lite": connection}) == [{"a": 2, "b": 3.0}]
    connection.close()


def test_a_loose_table_has_the_types_of_all_of_its_rows(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("CREATE TABLE t (a INTEGER, b INTEGER)")
        connection.execute("INSERT INTO t VALUES (1, 2), (2, 'x')")
    connection.close()
    assert rows("SELECT b FROM lite.t WHERE a = 1", {"lite": url(tmp_path / "a.db")}) == [{"b": "2"}]


def test_explain_shows_each_sources_sql(berths: str, lite: Harbour) -> None:
    query = "SELECT count(*) FROM pg.berths AS b JOIN lite.hostile AS h USING (id) WHERE b.pier = 3"
    lines = longshore.sql(query, attach={"pg": berths, **lite.attach}, explain=True).splitlines()
    assert lines == [
        "-- pg: longshore_1",
        'SELECT "id", "pier" FROM "public"."berths" WHERE ("public"."berths"."pier" = 3)',
        "",
        "-- lite: longshore_2",
        'SELECT "id" FROM "main"."hostile"',
        "",
        "-- engine",
        "SELECT count(*) FROM longshore_1 AS b JOIN longshore_2 AS h USING (id) WHERE b.pier = 3",
    ]


def test_attached_and_not_used(berths: str) -> None:
    assert rows("SELECT 1 AS one", {"pg": "postgresql://stranger@localhost:1/nowhere"}) == [{"one": 1}]
    table = pa.table({"a": [1]})
    assert rows("SELECT a FROM table_", {"pg": berths}, table_=table) == [{"a": 1}]


def test_a_connection_in_a_variable(berths: str) -> None:
    with longshore.connect(berths) as harbour, longshore.Pool(berths, size=1) as pool:
        query = "SELECT count(*) AS n FROM {}.piers WHERE md5(name) IS NOT NULL"
        for name in ("harbour", '"harbour"', "pool"):
            assert longshore.sql(query.format(name), return_type="arrow").to_pylist() == [{"n": 7}]
        assert longshore.sql(query.format("other"), return_type="arrow", other=pool).to_pylist() == [{"n": 7}]
        with pytest.raises(longshore.ProgrammingError):
            longshore.sql(query.format("HARBOUR"))
        # What is attached goes before a variable of its name.
        assert rows(query.format("pool"), {"pool": harbour}) == [{"n": 7}]
        table = pa.table({"a": [1], "b": [2]})
        named = longshore.sql("SELECT a, harbour.b FROM berth AS harbour", return_type="arrow", berth=table)
        assert named.to_pylist() == [{"a": 1, "b": 2}]


@pytest.mark.parametrize("query", ["SELECT id FROM lite.o", "SELECT id // 1 AS id FROM lite.o"])
def test_a_connection_of_sqlite3_is_read_by_its_own_thread(query: str) -> None:
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE o (id INTEGER) STRICT")
        connection.execute("INSERT INTO o VALUES (1), (2)")
    assert rows(query, {"lite": connection}) == [{"id": 1}, {"id": 2}]
    connection.close()
