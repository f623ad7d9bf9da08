"""The snapshot of a read on a connection, and when it reads by itself."""

import gc
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.postgres.connections.using import check, first_batch, read, sessions, stream, wait
from tests.servers import Endpoint


@pytest.mark.parametrize("return_type", ["pandas", "arrow", "polars", "numpy", "arrow_stream"])
@pytest.mark.parametrize("autocommit", [False, True])
def test_a_read_sees_the_session(return_type: Any, autocommit: bool, here: str) -> None:  # noqa: FBT001
    with longshore.connect(here, autocommit=autocommit) as connection:
        connection.execute("CREATE TEMPORARY TABLE own (i int)")
        connection.execute("INSERT INTO own VALUES (1), (2)")
        connection.execute("SET application_name = 'mine'")
        for _ in range(2):
            query = "SELECT i, current_setting('application_name') AS name FROM own ORDER BY i"
            result: Any = longshore.read_sql(query, connection, return_type=return_type)
            if return_type == "arrow_stream":
                result = pa.RecordBatchReader.from_stream(result).read_all()
            assert [*result["i"]] == [1, 2] or result["i"].to_pylist() == [1, 2]
            assert {str(name) for name in result["name"]} == {"mine"}


@pytest.mark.parametrize(
    "before",
    [
        "CREATE TEMPORARY TABLE own AS SELECT generate_series(1, 50000) AS i",
        "SET search_path = connections, public",
        "BEGIN",
    ],
    ids=["temporary", "set", "transaction"],
)
def test_a_session_with_a_state_reads_by_itself(before: str, here: str) -> None:
    with longshore.connect(here, autocommit=True) as connection:
        connection.execute("CREATE TABLE own AS SELECT generate_series(1, 50000) AS i")
        connection.execute(before)
        with pytest.warns(longshore.SerialReadWarning):
            rows = read("SELECT i FROM own", connection, partition_num=2)
        assert sorted(row["i"] for row in rows) == [*range(1, 50_001)]
        connection.rollback()
        check(connection)


def test_uncommitted_rows_are_read_by_the_session_itself(here: str) -> None:
    with longshore.connect(here) as connection:
        connection.execute("INSERT INTO t SELECT generate_series(1, 50000)")
        with pytest.warns(longshore.SerialReadWarning):
            rows = read("SELECT i FROM t", connection, partition_num=2)
        assert sorted(row["i"] for row in rows) == [*range(1, 50_001)]
        connection.rollback()


def test_further_connections_read_parts(here: str, postgres: Endpoint) -> None:
    with longshore.connect(here) as connection:
        connection.execute("INSERT INTO t SELECT generate_series(1, 200000)")
        connection.commit()
        rows = read("SELECT i FROM t", connection, partition_num=2)
        assert sorted(row["i"] for row in rows) == [*range(1, 200_001)]
        assert connection.in_transaction is False
        check(connection)
        connection.rollback()
        opened = stream("SELECT i FROM t", connection, partition_num=2, batch_size=1000)
        reader = first_batch(opened)
        del reader, opened
        gc.collect()
        check(connection)
    wait(lambda: sessions(postgres) == 0)


def test_a_list_is_a_transaction_of_its_own(here: str) -> None:
    with longshore.connect(here) as connection:
        assert read(["SELECT 1 AS a", "SELECT 2 AS a"], connection) == [{"a": 1}, {"a": 2}]
        assert connection.in_transaction is False
        connection.execute("INSERT INTO t VALUES (3)")
        # In the owner's transaction, it sees what that has written, and leaves it open.
        assert read(["SELECT 1 AS a", "SELECT i AS a FROM t"], connection) == [{"a": 1}, {"a": 3}]
        assert connection.in_transaction is True
        connection.commit()
        assert read("SELECT i FROM t", here) == [{"i": 3}]
