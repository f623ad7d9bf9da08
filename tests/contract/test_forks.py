"""A forked child has its parent's memory, but none of its threads, sockets and locks: it takes nothing, nor hangs."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.contract.conftest import Database
from tests.forking import answers

pytestmark = [
    pytest.mark.costly,
    pytest.mark.usefixtures("leaves_nothing"),
    # Python's own, where the process has threads.
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::longshore.SerialReadWarning"),
]

ROWS = 100_000
PARTS: dict[str, dict[str, Any]] = {
    "whole": {},
    "parts": {"partition_num": 2, "partition_on": "i"},
    "list": {"partition_num": 2},
}


def answers_in_child(database: Database, *uses: Callable[[], Any]) -> list[Any]:
    """Fork likewise, with no session of the tests' own."""
    database.close()
    return answers(*uses)


def connect_again(database: Database) -> Callable[[], Any]:
    """Return what a child does for itself."""
    return lambda: database.rows("SELECT 7 AS n", database.url)


def check_connected(database: Database, answer: Any) -> None:
    """See that the child had a connection of its own, or a reason."""
    refusal = database.quirks.cannot.get("a connection in a forked child")
    assert answer == [(7,)] if refusal is None else refusal.reason in answer


@pytest.fixture(scope="module")
def counted(database: Database) -> Iterator[str]:
    """Give a table that counts."""
    number, text = (database.quirks.types[name].native for name in ("int64", "text"))
    database.execute(f"CREATE TABLE counted (i {number}, t {text})")
    data = pa.table({"i": range(ROWS), "t": ["x" * 100] * ROWS})
    longshore.write_sql(data, "counted", database.url, if_exists="append")
    yield "counted"
    database.execute("DROP TABLE counted")


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("use", ["read", "closed", "dropped"])
def test_a_forked_child_takes_nothing_of_its_parents_stream(
    database: Database, counted: str, use: str, parts: str
) -> None:
    options: Any = database.quirks.together
    split: dict[str, Any] = {
        name: database.quirks.kept(value) if name == "partition_on" else value for name, value in PARTS[parts].items()
    }
    query: Any = f"SELECT i, t FROM {counted}"
    stream: Any = longshore.read_sql(
        [f"{query} WHERE i < 60000", f"{query} WHERE i >= 60000"] if parts == "list" else query,
        database.url,
        return_type="arrow_stream",
        batch_size=1000,
        options=options,
        **split,
    )
    found = next(stream).column(0).to_pylist()

    def drop() -> None:
        nonlocal stream
        stream = None

    uses: dict[str, Callable[[], Any]] = {
        "read": lambda: next(stream).num_rows,
        "closed": stream.close,
        "dropped": drop,
    }
    answer, own = answers_in_child(database, uses[use], connect_again(database))
    assert "forked from" in answer if use == "read" else answer is None
    check_connected(database, own)
    for batch in stream:
        found += batch.column(0).to_pylist()
    assert sorted(found) == list(range(ROWS))


def test_a_forked_child_does_not_speak_on_its_parents_connection(database: Database, table: str) -> None:
    database.execute(f"CREATE TABLE {table} (i int)")
    transactions = database.quirks.has_transactions
    with longshore.connect(database.url, autocommit=not transactions) as connection:
        connection.execute(f"INSERT INTO {table} VALUES (7)")
        *refused, closed, own = answers_in_child(
            database,
            lambda: connection.execute("SELECT 1"),
            lambda: database.rows("SELECT 1 AS n", connection),
            connection.commit,
            connection.close,
            connect_again(database),
        )
        assert all("forked from" in text or "is closed" in text for text in refused), refused
        assert closed is None
        check_connected(database, own)
        # Its session and its transaction are the parent's still.
        assert connection.in_transaction is transactions
        assert database.rows(table, connection) == [(7,)]
        connection.rollback()
    assert database.rows(table) == ([] if transactions else [(7,)])


def test_a_forked_child_has_sessions_of_its_own_in_a_pool(database: Database, counted: str) -> None:
    numbered = database.quirks.session or database.quirks.select(7)
    with longshore.Pool(database.url, size=2) as pool:
        number = database.rows(numbered, pool)
        stream: Any = longshore.read_sql(
            f"SELECT i, t FROM {counted}", pool, return_type="arrow_stream", batch_size=1000
        )
        rows = next(stream).num_rows

        def two() -> list[Any]:
            first: Any = longshore.read_sql(numbered, pool, return_type="arrow_stream")
            second = database.rows(numbered, pool, timeout=10)
            return [*second, *(tuple(row.values()) for row in pa.table(first).to_pylist())]

        # One was idle, one taken: in the child, neither counts.
        own, counts, closed = answers_in_child(database, two, lambda: (pool.in_use, pool.idle), pool.close)
        refusal = database.quirks.cannot.get("a connection in a forked child")
        if refusal is None:
            assert len({*number, *own}) == (3 if database.quirks.session else 1)
            assert (counts, closed) == ((0, 2), None)
        else:
            assert refusal.reason in own
            assert (counts, closed) == ((0, 0), None)
        assert rows + sum(batch.num_rows for batch in stream) == ROWS
        assert database.rows(numbered, pool) == number
