"""A forked child has its parent's sockets: it neither speaks on them nor ends what they belong to."""

import multiprocessing
import os
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.mysql.reading import column, numbers, table, value
from tests.servers import MySQLEndpoint

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

ROWS = 100_000
LONG = f"{numbers(ROWS)} SELECT i, repeat('x', 1000) AS t FROM numbers WHERE i < {ROWS}"
HERE = "SELECT connection_id() AS i"


def said(*uses: Callable[[], Any]) -> list[Any]:
    """Fork, and give what each use returned in the child, or the text of its error."""
    ours, theirs = multiprocessing.get_context("fork").Pipe()
    child = os.fork()
    if child == 0:
        # Nothing of pytest's may run in here.
        answers = []
        for use in uses:
            try:
                answers.append(use())
            except BaseException as error:  # noqa: BLE001  whatever it is, it is told
                answers.append(str(error))
        theirs.send(answers)
        os._exit(0)
    assert ours.poll(20)
    os.waitpid(child, 0)
    return list(ours.recv())


def test_a_child_does_not_speak_on_its_parents_connection(server: MySQLEndpoint) -> None:
    url = server.url()
    with longshore.connect(url) as connection:
        number = value(HERE, connection)
        connection.execute("CREATE TEMPORARY TABLE of_the_parent (i int)")
        connection.execute("INSERT INTO of_the_parent VALUES (7)")
        *refused, own = said(
            lambda: connection.execute("SELECT 1"),
            lambda: value("SELECT 1", connection),
            connection.commit,
            connection.close,
            lambda: value(HERE, url),
        )
        assert all("forked from" in text or "is closed" in text for text in refused[:3]), refused
        assert refused[3] is None
        assert own != number
        # Its session, its transaction and its temporary tables are the parent's still.
        assert connection.in_transaction is True
        assert value(HERE, connection) == number
        assert column("SELECT i FROM of_the_parent", connection) == [7]


@pytest.mark.parametrize("compression", ["none", "zlib"])
@pytest.mark.parametrize("how", ["read", "closed", "dropped"])
def test_a_child_leaves_its_parents_stream_alone(how: str, compression: str, server: MySQLEndpoint) -> None:
    url = server.url(compression=compression)
    stream: Any = longshore.read_sql(LONG, url, return_type="arrow_stream", batch_size=1000)
    reader: Any = pa.RecordBatchReader.from_stream(stream)
    first = reader.read_next_batch()

    def drop() -> None:
        nonlocal reader, stream
        reader = stream = None

    use = {"read": lambda: reader.read_all().num_rows, "closed": reader.close, "dropped": drop}[how]
    answer, own = said(use, lambda: value("SELECT 7 AS n", url))
    assert "forked from" in answer if how == "read" else answer is None
    assert own == 7
    rest = reader.read_all()
    assert first.num_rows + rest.num_rows == ROWS
    assert sorted(first["i"].to_pylist() + rest["i"].to_pylist()) == list(range(ROWS))


def test_a_child_has_sessions_of_its_own_in_a_pool(server: MySQLEndpoint) -> None:
    with longshore.Pool(server.url(), size=2) as pool:
        number = value(HERE, pool)
        stream = longshore.read_sql(LONG, pool, return_type="arrow_stream", batch_size=1000)
        reader = pa.RecordBatchReader.from_stream(stream)
        taken = reader.read_next_batch().num_rows
        own, again, counts, closed = said(
            lambda: value(HERE, pool), lambda: value(HERE, pool), lambda: (pool.in_use, pool.idle), pool.close
        )
        assert own == again != number
        assert (counts, closed) == ((0, 1), None)
        assert taken + reader.read_all().num_rows == ROWS
        assert value(HERE, pool) == number


def test_a_child_does_not_end_its_parents_parts(filled: str, together: dict[str, Any]) -> None:
    stream: Any = longshore.read_sql(
        "SELECT * FROM parted",
        filled,
        return_type="arrow_stream",
        batch_size=10,
        partition_num=2,
        options=together,
    )
    reader: Any = pa.RecordBatchReader.from_stream(stream)
    first = reader.read_next_batch().num_rows

    def drop() -> None:
        nonlocal reader, stream
        reader = stream = None

    answer, own = said(drop, lambda: value("SELECT 7 AS n", filled))
    assert (answer, own) == (None, 7)
    assert first + reader.read_all().num_rows == table("SELECT * FROM parted", filled).num_rows
