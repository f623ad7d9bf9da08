"""Servers that speak PostgreSQL's wire and are not PostgreSQL: QuestDB and H2.

A server written in Java takes seconds to start, so that all tests of these two are here.
"""

import asyncio
import datetime as dt
import socket
import struct
from typing import Any

import pyarrow as pa
import pytest

import longshore
from longshore import asyncpg
from tests.postgres.connect.asking import failure, read
from tests.postgres.parallel.comparing import serially
from tests.servers import H2, Endpoint, QuestDB

TIMESTAMP = dt.datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001  the column is without a time zone
SSL_REQUEST = struct.pack(">ii", 8, 80877103)


def rows(conn: Any, query: str | list[str], **arguments: Any) -> list[dict[str, Any]]:
    """Return the query's result, each row as a dict."""
    found: list[dict[str, Any]] = longshore.read_sql(query, conn, return_type="arrow", **arguments).to_pylist()
    return found


@pytest.fixture(params=["questdb", "h2"])
def other(request: pytest.FixtureRequest) -> str:
    """Give the URL of each server that is not PostgreSQL."""
    server: Endpoint = request.getfixturevalue(request.param)
    return server.url()


def test_a_connection(other: str) -> None:
    assert read(other) == 1


def test_a_wrong_password(questdb: QuestDB) -> None:
    assert failure(questdb.url(password="hidden"))


def test_values(other: str) -> None:
    table = longshore.read_sql("SELECT 'a' AS one, cast(7 AS smallint) AS two", other, return_type="arrow")
    assert table.schema.types == [pa.string(), pa.int16()]
    assert table.to_pylist() == [{"one": "a", "two": 7}]
    table = longshore.read_sql("SELECT 8 AS one, cast(9 AS bigint) AS two", other, return_type="arrow")
    assert table.schema.types == [pa.int32(), pa.int64()]
    assert table.to_pylist() == [{"one": 8, "two": 9}]


def test_a_timestamp(other: str) -> None:
    table = longshore.read_sql("SELECT timestamp '2026-01-02 03:04:05' AS one", other, return_type="arrow")
    assert table.schema.types == [pa.timestamp("us")]
    assert table.to_pylist() == [{"one": TIMESTAMP}]


def test_params(other: str) -> None:
    assert rows(other, "SELECT $1 AS one", params=["é"]) == [{"one": "é"}]
    assert rows(other, "SELECT cast($1 AS int) + 1 AS one", params=[7]) == [{"one": 8}]
    assert rows(other, "SELECT cast(:a AS int) + 1 AS one", params={"a": 7}) == [{"one": 8}]


@pytest.mark.parametrize("protocol", ["binary", "text"])
def test_a_table(other: str, protocol: str) -> None:
    before = [
        f"CREATE TABLE kept_{protocol} (i INT, s VARCHAR, m TIMESTAMP)",
        f"INSERT INTO kept_{protocol} VALUES (7, 'é', '2026-01-02T03:04:05.678901'), (NULL, NULL, NULL)",
    ]
    assert rows(other, "SELECT 1 AS one", pre_execution_query=before) == [{"one": 1}]
    assert rows(other, f"SELECT * FROM kept_{protocol}", options={"protocol": protocol}) == [
        {"i": 7, "s": "é", "m": TIMESTAMP.replace(microsecond=678901)},
        {"i": None, "s": None, "m": None},
    ]


def test_a_list(other: str) -> None:
    queries = ["SELECT 1 AS one", "SELECT 2 AS one"]
    with pytest.warns(longshore.SerialReadWarning, match="parts cannot be prepared"):
        assert rows(other, queries, options={"snapshot": False}) == [{"one": 1}, {"one": 2}]


def test_a_list_in_one_snapshot_needs_a_server_that_has_it(h2: H2) -> None:
    with pytest.raises(longshore.ProgrammingError, match="ISOLATION LEVEL"):
        rows(h2.url(), ["SELECT 1 AS one", "SELECT 2 AS one"], partition_num=1)


@pytest.mark.parametrize(
    ("name", "query", "count"), [("questdb", "SELECT x FROM long_sequence(1000)", 1000), ("h2", "SELECT 1 AS one", 1)]
)
def test_a_read_in_parts_is_serial(name: str, query: str, count: int, request: pytest.FixtureRequest) -> None:
    server: Endpoint = request.getfixturevalue(name)
    assert serially("", query, server.url(), partition_num=2).num_rows == count


def test_a_connection_of_questdb_goes_on(questdb: QuestDB) -> None:
    with longshore.connect(questdb.url(), autocommit=True) as connection:
        for number in range(3):
            assert rows(connection, "SELECT x FROM long_sequence(3)") == [{"x": 1}, {"x": 2}, {"x": 3}], number
        with pytest.raises(longshore.Error):
            connection.execute("SELEC")
        assert rows(connection, "SELECT x FROM long_sequence(2)") == [{"x": 1}, {"x": 2}]


def test_transactions_of_h2(h2: H2) -> None:
    with longshore.connect(h2.url()) as connection:
        connection.execute("CREATE TABLE connections (i int)")
        assert connection.execute("INSERT INTO connections VALUES (1), (2)") == 2
        connection.commit()
        assert rows(connection, "SELECT i FROM connections ORDER BY i") == [{"i": 1}, {"i": 2}]
        connection.execute("DELETE FROM connections")
        connection.rollback()
        assert rows(connection, "SELECT count(*) AS n FROM connections") == [{"n": 2}]
        connection.execute("DROP TABLE connections")


@pytest.mark.parametrize("mode", ["fail", "append", "truncate", "replace", "upsert"])
def test_no_writing(questdb: QuestDB, mode: Any) -> None:
    key = "n" if mode == "upsert" else None
    with pytest.raises(longshore.NotSupportedError, match="not PostgreSQL"):
        longshore.write_sql(pa.table({"n": [1]}), "odd_boats", questdb.url(), if_exists=mode, key=key)
    with pytest.raises(longshore.Error, match="odd_boats"):
        longshore.read_sql("SELECT * FROM odd_boats", questdb.url())


@pytest.mark.parametrize("name", ["questdb", "h2"])
def test_no_encryption(name: str, request: pytest.FixtureRequest) -> None:
    server: Endpoint = request.getfixturevalue(name)
    with socket.create_connection((server.host, server.port), timeout=5) as client:
        client.sendall(SSL_REQUEST)
        assert client.recv(1) == b"N"


def test_asyncpg(other: str) -> None:
    # A type that only a catalogue knows, too; H2's binary dates are not PostgreSQL's.
    queries = ["SELECT 'a' AS one, cast(7 AS smallint) AS two", "SELECT timestamp '2026-01-02 03:04:05' AS one"]

    async def fetch() -> None:
        connection = await asyncpg.connect(other, statement_cache_size=0)
        for query in queries * 2:
            table = await connection.fetch_arrow(query)
            expected = longshore.read_sql(query, other, return_type="arrow")
            assert table.schema.equals(expected.schema, check_metadata=True)
            assert table.equals(expected)
        connection.terminate()

    asyncio.run(fetch())
