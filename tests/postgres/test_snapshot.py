"""Parts see one snapshot, whatever others do meanwhile: each read equals one state that the database was in.

LONGSHORE_SNAPSHOT_SECONDS says for how long each writer and its readers run: 1, or 60 and more for a thorough run.
"""

import contextlib
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import longshore
from tests.changes import changing
from tests.servers import PostgreSQL

pytestmark = pytest.mark.server

ROWS = 3000
TOTAL = 100 * ROWS

#: Each leaves the number of rows and the sum of amounts as they are, and all rows with one version.
CHANGES = [
    "UPDATE {table} SET version = version + 1",
    "UPDATE {table} SET amount = amount + CASE WHEN id % 2 = 0 THEN 1 ELSE -1 END",
    """WITH gone AS (DELETE FROM {table} WHERE id % 10 = 3 RETURNING *)
       INSERT INTO {table} (id, version, amount, filler) SELECT id, version, amount, filler FROM gone""",
    "BEGIN; DELETE FROM {table}; INSERT INTO {table} SELECT * FROM {table}_next; COMMIT",
    "BEGIN; TRUNCATE {table}; INSERT INTO {table} SELECT * FROM {table}_next; COMMIT",
    "VACUUM FULL {table}",
    "CLUSTER {table} USING {table}_id",
    "ALTER TABLE {table} ADD COLUMN more int DEFAULT random()",
    "ALTER TABLE {table} ALTER COLUMN more TYPE bigint",
    "ALTER TABLE {table} DROP COLUMN more",
    "VACUUM {table}",
]


def make(table: str) -> str:
    """Give the statements that make a table of ROWS rows over many blocks, and a second state of it."""
    return f"""
        CREATE TABLE {table} (id int, version int, amount int, filler text);
        INSERT INTO {table} SELECT i, 0, 100, repeat('x', 150) FROM generate_series(0, {ROWS - 1}) AS i;
        CREATE INDEX {table}_id ON {table} (id);
        CREATE TABLE {table}_next AS SELECT id + 1 AS id, -1 AS version, amount, filler FROM {table};
        ANALYZE {table};
    """


@pytest.fixture
def server(make_server: Callable[..., PostgreSQL]) -> PostgreSQL:
    """Give a PostgreSQL of this test's own, which looks for deadlocks soon: readers wait until then."""
    return make_server(config={"max_connections": "40", "deadlock_timeout": "20ms"})


@contextlib.contextmanager
def session(url: str) -> Iterator[Callable[[str], object]]:
    """Give what runs the statements of a text, each a transaction of its own."""
    with longshore.connect(url, autocommit=True) as connection:
        yield lambda statements: [connection.execute(statement) for statement in statements.split(";")]


def whole(table: pa.Table) -> None:
    """Assert that a result is one state of the table."""
    assert table.num_rows == ROWS
    assert pc.sum(table["amount"]).as_py() == TOTAL
    assert len(pc.unique(table["version"])) == 1
    assert len(pc.unique(table["id"])) == ROWS


QUERY = "SELECT id, version, amount, filler FROM moving"
LIST = [f"{QUERY} WHERE id % 3 = {rest}" for rest in range(3)]


@pytest.mark.parametrize(
    ("query", "arguments"),
    [
        (QUERY, {"partition_num": 4}),
        ("SELECT * FROM moving WHERE id >= 0", {"partition_num": 3}),
        (QUERY, {"partition_num": 4, "partition_on": "id"}),
        (QUERY, {"partition_num": 3, "partition_on": "filler"}),
        (QUERY, {"partition_num": 2, "partition_on": "version", "partition_range": (1, 1000)}),
        (
            QUERY.replace("FROM moving", "FROM moving JOIN (SELECT id FROM moving) AS m USING (id)"),
            {"partition_num": 3, "partition_on": "id"},
        ),
        (LIST, {"partition_num": 3}),
    ],
    ids=["blocks", "all columns", "key", "one value", "range", "join", "list"],
)
def test_a_table_that_changes(query: Any, arguments: dict[str, Any], server: PostgreSQL) -> None:
    server.psql(make("moving"))
    url = server.url()
    reads = 0
    with changing(session(url), [change.format(table="moving") for change in CHANGES]) as more:
        while more(reads):
            whole(longshore.read_sql(query, url, return_type="arrow", **arguments))
            reads += 1
    assert reads > 1


def test_a_stream_of_a_table_that_changes(server: PostgreSQL) -> None:
    server.psql(make("moving"))
    url = server.url()
    with changing(session(url), [change.format(table="moving") for change in CHANGES]) as more:
        reads = 0
        while more(reads):
            stream = longshore.read_sql(QUERY, url, return_type="arrow_stream", partition_num=3, batch_size=100)
            whole(pa.table(stream))
            reads += 1


#: A partition comes and goes with its rows; another is emptied and filled by turns.
PARTITIONS = [
    "ALTER TABLE parted ATTACH PARTITION late FOR VALUES FROM (3000) TO (4000)",
    "UPDATE parted SET version = version + 1",
    "ALTER TABLE parted DETACH PARTITION late",
    "BEGIN; CREATE TABLE fresh PARTITION OF parted FOR VALUES FROM (4000) TO (5000); DROP TABLE fresh; COMMIT",
    "BEGIN; UPDATE parted SET version = version + 1; UPDATE late SET version = version + 1; COMMIT",
    "VACUUM FULL parted_2",
]


@pytest.mark.parametrize("on", [None, "id"])
def test_partitions_that_come_and_go(on: str | None, server: PostgreSQL) -> None:
    server.psql(f"""
        CREATE TABLE parted (id int, version int, amount int, filler text) PARTITION BY RANGE (id);
        CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000);
        CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (1000) TO (3000);
        CREATE TABLE late (LIKE parted);
        INSERT INTO parted SELECT i, 0, 100, repeat('x', 150) FROM generate_series(0, {ROWS - 1}) AS i;
        INSERT INTO late SELECT i, 0, 100, repeat('x', 150) FROM generate_series({ROWS}, 3999) AS i;
    """)
    url = server.url()
    seen: list[int] = []
    with changing(session(url), PARTITIONS) as more, warnings.catch_warnings():
        # They may come and go too often to be taken.
        warnings.simplefilter("ignore", longshore.SerialReadWarning)
        while more(len(seen)):
            try:
                table = longshore.read_sql(
                    "SELECT * FROM parted", url, return_type="arrow", partition_num=3, partition_on=on
                )
            except longshore.OperationalError as error:
                # Loud, not wrong: parts by blocks never meet it.
                assert error.sqlstate == "40001"  # noqa: PT017  any other error is a failure, and is told
                assert on is not None
                continue
            assert table.num_rows in {ROWS, 4000}
            assert len(pc.unique(table["id"])) == table.num_rows
            assert len(pc.unique(table["version"].slice(0, 1000))) == 1
            seen.append(table.num_rows)
    assert seen


def test_a_part_that_waits_behind_somebody_who_waits_for_us(server: PostgreSQL) -> None:
    server.psql(make("moving"))
    url = server.url()
    opened = longshore.read_sql(QUERY, url, return_type="arrow_stream", partition_num=2, batch_size=10)
    batches = iter(opened)
    first = next(batches)
    # It waits for that stream, and all who come after wait for it.
    alter = threading.Thread(target=lambda: server.psql("ALTER TABLE moving ADD COLUMN late int"))
    alter.start()
    while server.psql("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0":
        time.sleep(0.01)
    results: list[pa.Table] = []
    read = threading.Thread(
        target=lambda: results.append(longshore.read_sql(QUERY, url, return_type="arrow", partition_num=2))
    )
    read.start()
    time.sleep(0.5)
    assert first.num_rows + sum(batch.num_rows for batch in batches) == ROWS
    alter.join()
    read.join()
    whole(results[0])
