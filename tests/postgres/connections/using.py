"""Reads and streams on a connection, in few words."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

import longshore
from tests.servers import Endpoint

SCHEMA = "connections"
# In the list of columns, or the server would make all rows before it sends the first.
STREAMING = "SELECT repeat('x', 100) AS t, generate_series(1, 500000000) AS i"
SLEEPING = "SELECT pg_sleep(60)::text AS t"


def read(query: str | Sequence[str], conn: Any, **arguments: Any) -> list[dict[str, Any]]:
    """Return the rows."""
    table: pa.Table = longshore.read_sql(query, conn, return_type="arrow", **arguments)
    return list(table.to_pylist())


def stream(query: str | Sequence[str], conn: Any, **arguments: Any) -> Any:
    return longshore.read_sql(query, conn, return_type="arrow_stream", **arguments)


def first_batch(opened: Any) -> pa.RecordBatchReader:
    """Take one batch of a stream, and return what takes the others."""
    reader = pa.RecordBatchReader.from_stream(opened)
    assert reader.read_next_batch().num_rows > 0
    return reader


def sessions(postgres: Endpoint) -> int:
    query = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{SCHEMA}'"
    return int(postgres.psql(query))


def wait(condition: Callable[[], bool], seconds: float = 10) -> None:
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < seconds, "it did not come true"
        time.sleep(0.01)


def check(connection: longshore.Connection) -> None:
    """Prove that the connection answers what it is asked, and that nothing late comes between."""
    assert read("SELECT $1::int AS a, $2::text AS b", connection, params=[41, "x"]) == [{"a": 41, "b": "x"}]
    assert connection.execute("SELECT FROM generate_series(1, 7)") == 7
    assert read("SELECT 'here' AS c, pg_sleep(0.05)::text AS s", connection) == [{"c": "here", "s": ""}]
    assert [row["i"] for row in read("SELECT i FROM generate_series(1, 1000) AS i", connection)] == [*range(1, 1001)]
