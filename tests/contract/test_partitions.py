"""`adbc_execute_partitions` and `adbc_read_partition`: parts of a query that other connections read."""

import itertools
import pickle
import subprocess
import sys

import pyarrow as pa
import pytest

import longshore
from tests.contract.conftest import Database

pytestmark = pytest.mark.usefixtures("leaves_nothing")

ROWS = 4_000
#: Reads each partition that it is given, over a connection of its own.
READER = """
import pickle, sys, longshore
with longshore.connect(sys.argv[1]) as connection, connection.cursor() as cursor:
    for part in pickle.load(sys.stdin.buffer):
        cursor.adbc_read_partition(part)
        print(*(number for number, text in cursor.fetchall() if len(text) == 100))
"""


@pytest.fixture
def query(database: Database, table: str) -> str:
    """Give a query of a table that is large enough for parts."""
    native = database.quirks.types["int64"].native
    database.execute(f"CREATE TABLE {table} (id {native} {database.quirks.primary_key}, t varchar(100))")
    data = pa.table({"id": range(ROWS), "t": ["x" * 100] * ROWS})
    longshore.write_sql(data, table, database.url, if_exists="append")
    return f"SELECT id, t FROM {table}"


@pytest.mark.parametrize("way", [{}, {"partition_on": "id"}], ids=["by itself", "by a column"])
def test_another_process_reads_the_snapshot(database: Database, table: str, query: str, way: dict[str, str]) -> None:
    with (
        longshore.connect(database.url) as connection,
        connection.cursor() as cursor,
        database.can("partitions of one snapshot"),
        database.can("partitions by a column" if way else ""),
    ):
        parts, schema = cursor.adbc_execute_partitions(query, partition_num=3, partition_on=way.get("partition_on"))
        database.execute(f"UPDATE {table} SET id = id + 10000", f"DELETE FROM {table} WHERE id % 2 = 0")
        done = subprocess.run(
            [sys.executable, "-c", READER, database.url],
            input=pickle.dumps(parts),
            capture_output=True,
            check=False,
        )
        assert done.stderr == b""
        numbers = [[int(number) for number in line.split()] for line in done.stdout.splitlines()]
        assert len(numbers) == 3
        assert all(numbers) or not database.quirks.fills_partitions
        assert sorted(itertools.chain(*numbers)) == list(range(ROWS))
        # The connection that has made them goes on meanwhile.
        assert cursor.execute(f"SELECT count(*) FROM {table}").fetchall() == [(ROWS // 2,)]
        assert schema.names == ["id", "t"]


def test_partitions_without_a_snapshot(database: Database, query: str) -> None:
    with (
        longshore.connect(database.url) as connection,
        connection.cursor(options={"snapshot": False}) as cursor,
        database.can("partitions"),
    ):
        name = database.quirks.kept("id")
        parts, schema = cursor.adbc_execute_partitions(query, partition_on=name, partition_num=3)
        assert len(parts) == 3
        with longshore.connect(database.url) as other, other.cursor() as reader:
            tables = []
            for part in parts:
                reader.adbc_read_partition(part)
                tables.append(reader.fetch_record_batch().read_all())
        found = pa.concat_tables(tables)
        assert found.schema == schema
        assert sorted(found[name].to_pylist()) == list(range(ROWS))


def test_what_is_not_a_partition_is_refused(database: Database) -> None:
    with longshore.connect(database.url) as connection, connection.cursor() as cursor:
        with pytest.raises(longshore.InterfaceError, match="not a partition of Longshore's"):
            cursor.adbc_read_partition(b"longshore partition 1\n")
        with pytest.raises(longshore.InterfaceError, match="bytes, not str"):
            cursor.adbc_read_partition("SELECT 1")  # type: ignore[arg-type]
        with pytest.raises(longshore.InterfaceError, match="lease is a number of seconds"):
            cursor.adbc_execute_partitions("SELECT 1", lease=0)
        with pytest.raises(longshore.NotSupportedError, match="no parameters"):
            cursor.adbc_execute_partitions("SELECT :n", {"n": 1})
