"""Reading one value, and waiting."""

import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import longshore
from tests.servers import MySQLEndpoint


def table(query: Any, conn: Any, **arguments: Any) -> pa.Table:
    """Read into Arrow."""
    return longshore.read_sql(query, conn, return_type="arrow", **arguments)


def column(query: Any, conn: Any, **arguments: Any) -> list[Any]:
    """Read the values of the only column."""
    (only,) = table(query, conn, **arguments).columns
    return list(only.to_pylist())


def value(query: Any, conn: Any, **arguments: Any) -> Any:
    """Read the only value."""
    (only,) = column(query, conn, **arguments)
    return only


def numbers(count: int) -> str:
    """Give the start of a query that knows the table `numbers`, whose column `i` counts from 0 beyond `count`."""
    if count <= 1000:
        return f"WITH RECURSIVE numbers (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i < {count})"
    thousand = "WITH RECURSIVE digits (d) AS (SELECT 0 UNION ALL SELECT d + 1 FROM digits WHERE d < 999)"
    rows = "SELECT h.d * 1000 + l.d AS i FROM digits AS h, digits AS l"
    return f"{thousand}, numbers AS ({rows} WHERE h.d <= {count // 1000})"


def wait(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Wait until the condition is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.01)


def statements(server: MySQLEndpoint, marker: str) -> list[str]:
    """Give the statements with `marker` in them that the server is at work on."""
    rows = server.sql("SELECT info FROM information_schema.processlist WHERE info IS NOT NULL")
    return [info for (info,) in rows if marker in info and "information_schema.processlist" not in info]


def connections(server: MySQLEndpoint, user: str) -> int:
    """Count the connections of a user."""
    rows = server.sql(f"SELECT count(*) FROM information_schema.processlist WHERE user = '{user}'")
    return int(rows[0][0])
