"""Ctrl-C, deadlines and dropped results: each ends the query on the server, and soon."""

import threading
import time
from typing import Any

import longshore
from tests.mysql.reading import numbers, statements, table, wait
from tests.servers import MySQLEndpoint

STREAMING = f"{numbers(900_000)} SELECT a.i, repeat('x', 100) AS t FROM numbers AS a, numbers AS b"


def marked(kind: str, marker: str) -> str:
    """Give a statement that lasts a minute, with a comment that finds it."""
    return f"SELECT /* {marker} */ sleep(60) AS s" if kind == "computing" else f"{STREAMING} /* {marker} */"


def test_a_sleep_that_is_cancelled_is_no_result(server: MySQLEndpoint) -> None:
    # KILL QUERY has sleep() return 1, as if nothing were wrong.
    caught: list[BaseException] = []
    results: list[Any] = []

    def read() -> None:
        try:
            results.append(table("SELECT /* killed_sleep */ sleep(20) AS s, 1 AS n", server.url()))
        except longshore.Error as error:
            caught.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    wait(lambda: bool(statements(server, "killed_sleep")))
    _kill(server, "killed_sleep")
    thread.join(10)
    # The server itself calls either of them its answer.
    assert len(caught) + len(results) == 1


def test_a_query_that_is_killed_by_somebody_else(server: MySQLEndpoint) -> None:
    caught: list[BaseException] = []

    def read() -> None:
        try:
            table(marked("streaming", "killed_stream"), server.url())
        except longshore.Error as error:
            caught.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    wait(lambda: bool(statements(server, "killed_stream")))
    time.sleep(0.3)
    _kill(server, "killed_stream")
    thread.join(20)
    assert [(type(error), getattr(error, "sqlstate", None)) for error in caught] == [
        (longshore.OperationalError, "70100")
    ]
    assert "1317" in str(caught[0])


def _kill(server: MySQLEndpoint, marker: str) -> None:
    query = f"SELECT id FROM information_schema.processlist WHERE info LIKE '%{marker}%' AND id <> connection_id()"
    for (number,) in server.sql(query):
        server.sql(f"KILL QUERY {number}")
