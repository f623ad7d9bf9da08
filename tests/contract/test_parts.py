"""Reads in parts: the rows of the serial read in one snapshot, whatever others write meanwhile."""

import collections
import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.contract.conftest import Database

pytestmark = pytest.mark.filterwarnings("ignore::longshore.SerialReadWarning")

ROWS = 2_000


@pytest.fixture(scope="module")
def parted(database: Database) -> Iterator[str]:
    """Give a table with a key, and columns that have NULLs and equal values."""
    quirks = database.quirks
    columns = f"id {quirks.types['int64'].native} {quirks.primary_key}, word varchar(20), k int, version int"
    database.execute(f"CREATE TABLE parted ({columns})", "CREATE TABLE void (id int, word varchar(20))")
    data = {
        "id": range(ROWS),
        "word": [f"word {n % 50}" if n % 11 else None for n in range(ROWS)],
        "k": [n % 7 or None for n in range(ROWS)],
        "version": [0] * ROWS,
    }
    longshore.write_sql(pa.table(data), "parted", database.url, if_exists="append")
    yield "parted"
    database.execute("DROP TABLE parted", "DROP TABLE void")


def rows(result: pa.Table) -> collections.Counter[Any]:
    return collections.Counter(tuple(row.values()) for row in result.to_pylist())


QUERIES = {
    "table": "SELECT * FROM parted",
    "condition": "SELECT word, id, k FROM parted AS p WHERE p.id % 3 = 1 AND id > {}",
    "join": "SELECT a.id AS id, b.word AS word, a.k AS k FROM parted a LEFT JOIN parted b ON b.id = a.id + 1",
    "with": "WITH c AS (SELECT id, word, k FROM parted) SELECT * FROM c",
    "limit": "SELECT id, word, k FROM parted ORDER BY id LIMIT 100",
    "no rows": "SELECT id, word, k FROM parted WHERE id < 0",
}
WAYS: dict[str, dict[str, Any]] = {
    "alone": {"partition_num": 3},
    "key": {"partition_num": 2, "partition_on": "id"},
    "text": {"partition_num": 5, "partition_on": "word"},
    "nulls": {"partition_num": 4, "partition_on": "k"},
    "range": {"partition_num": 3, "partition_on": "id", "partition_range": (100, 700)},
}


def way_of(database: Database, way: str) -> dict[str, Any]:
    """Return arguments, whose column is called as the database keeps its name."""
    kept = database.quirks.kept
    return {name: kept(value) if name == "partition_on" else value for name, value in WAYS.get(way, {}).items()}


@pytest.mark.costly
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", QUERIES)
def test_parts_are_the_serial_read(database: Database, parted: str, name: str, way: str) -> None:
    assert parted == "parted"
    arguments: dict[str, Any] = {"params": [5]} if "{}" in QUERIES[name] else {}
    query = QUERIES[name].format(database.quirks.places(1))
    parts = way_of(database, way)
    serial = longshore.read_sql(query, database.control, return_type="arrow", **arguments)
    for ordered in (False, True):
        options: Any = {**database.quirks.together, "ordered": ordered}
        result = longshore.read_sql(query, database.url, return_type="arrow", options=options, **parts, **arguments)
        assert result.schema.equals(serial.schema)
        assert rows(result) == rows(serial)
    stream: Any = longshore.read_sql(
        query, database.url, return_type="arrow_stream", batch_size=100, **parts, **arguments
    )
    assert rows(pa.table(stream)) == rows(serial)


def test_a_list_is_its_queries_in_order(database: Database, parted: str) -> None:
    queries = [f"SELECT id, word FROM {parted} WHERE id % 3 = {rest} ORDER BY id" for rest in (2, 0, 1)]
    wanted = [row for query in queries for row in database.rows(query, database.control)]
    together: Any = {"options": database.quirks.together}
    assert database.rows(queries, **together) == wanted
    assert database.rows(queries, partition_num=1, **together) == wanted
    with pytest.raises(longshore.ProgrammingError):
        database.rows([*queries, "SELECT id FROM nowhere_to_be_seen"], **together)
    with pytest.raises(longshore.Error, match="query 2"):
        database.rows([queries[0], f"SELECT id AS other, word FROM {parted}"], **together)
    with pytest.raises(longshore.InterfaceError):
        database.rows([], **together)


@pytest.mark.costly
@pytest.mark.parametrize("way", ["alone", "key", "nulls", "list", "serial", "stream"])
def test_one_snapshot_while_another_session_writes(database: Database, table: str, way: str) -> None:
    quirks = database.quirks
    columns = f"id {quirks.types['int64'].native} {quirks.primary_key}, k int, version int"
    database.execute(f"CREATE TABLE {table} ({columns})")
    data = pa.table({"id": range(500), "k": [n % 7 for n in range(500)], "version": [0] * 500})
    longshore.write_sql(data, table, database.url, if_exists="append")
    over, failures = threading.Event(), []
    url = database.url + database.quirks.contended
    # Whoever is kept out is told so; what is read is one snapshot.
    locked_out = contextlib.suppress(*[longshore.OperationalError] if database.quirks.contended else [])

    def write() -> None:
        try:
            with longshore.connect(url, autocommit=True) as connection:
                while not over.is_set():
                    with locked_out:
                        connection.execute(f"UPDATE {table} SET version = version + 1 WHERE true")
                    # Sessions that must meet at one state need a time without a change.
                    time.sleep(0.002)
        except BaseException as failure:  # noqa: BLE001  it is told in the test's own thread
            failures.append(failure)

    query: Any = f"SELECT * FROM {table}"
    kept = database.quirks.kept
    arguments: Any = {"return_type": "arrow", **way_of(database, way)}
    if way == "list":
        query = [f"{query} WHERE id % 3 = {rest}" for rest in range(3)]
    elif way == "stream":
        arguments = {"return_type": "arrow_stream", "batch_size": 50, "partition_num": 3}
    writer = threading.Thread(target=write)
    writer.start()
    versions: set[int] = set()
    try:
        deadline = time.monotonic() + 10
        while len(versions) < 3 and time.monotonic() < deadline and not failures:
            with locked_out:
                result = pa.table(longshore.read_sql(query, url, options=database.quirks.together, **arguments))
                assert sorted(result[kept("id")].to_pylist()) == list(range(500))
                seen = set(result[kept("version")].to_pylist())
                # Several queries see one snapshot in a transaction alone.
                sees_one = database.quirks.has_transactions and database.quirks.lists_see_one_snapshot
                assert len(seen) == 1 or (way == "list" and not sees_one)
                versions |= seen
            time.sleep(0.01)
    finally:
        over.set()
        writer.join()
    for failure in failures:
        raise failure
    assert len(versions) >= 3


@pytest.mark.costly
@pytest.mark.parametrize(
    "arguments",
    [
        {"partition_num": 0},
        {"partition_num": -1},
        {"partition_num": True},
        {"partition_num": "three"},
        {"partition_on": "id", "partition_num": 2, "partition_range": (5,)},
        {"partition_on": "id", "partition_num": 3, "partition_range": (700, 100)},
        {"partition_on": "id", "partition_num": 3, "partition_range": (2**62 + 9, 2**62)},
        {"partition_on": "nothing", "partition_num": 2},
        {"partition_on": 7, "partition_num": 2},
    ],
    ids=str,
)
def test_bad_arguments(database: Database, parted: str, arguments: Any) -> None:
    with pytest.raises((longshore.InterfaceError, longshore.ProgrammingError)):
        database.rows(f"SELECT id FROM {parted} WHERE id < 9", **arguments)
