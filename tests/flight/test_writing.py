"""Frames into tables of Apache's example server over SQLite: by a prepared INSERT, in one transaction.

Its server in Java has no transactions, and is refused: see `test_servers.py`.
"""

from collections.abc import Iterator

import pyarrow as pa
import pytest

import longshore
from tests.servers import GoFlight

#: The server ends itself over columns of other types.
TYPES = {"i": "INTEGER", "f": "REAL", "t": "TEXT"}
ROWS = pa.table(
    {
        "i": pa.array([1, None, 2**63 - 1], pa.int64()),
        "f": pa.array([0.5, None, -1e300]),
        "t": pa.array(["a", None, "ä'"]),
    }
)


@pytest.fixture
def url(go_flight: GoFlight) -> Iterator[str]:
    """Give the server's URL, and drop the table `boats` at the end."""
    yield go_flight.url()
    with longshore.connect(go_flight.url(), autocommit=True) as connection:
        connection.cursor().execute("DROP TABLE IF EXISTS boats")


def read(url: str) -> list[tuple[object, ...]]:
    """Return the rows of `boats`."""
    found = longshore.read_sql("SELECT i, f, t FROM boats ORDER BY rowid", url, return_type="arrow")
    return [tuple(row.values()) for row in found.to_pylist()]


def test_all_modes_but_upsert(url: str) -> None:
    rows = [tuple(row.values()) for row in ROWS.to_pylist()]
    assert longshore.write_sql(ROWS, "boats", url, types=TYPES) == 3
    assert read(url) == rows
    with pytest.raises(longshore.Error, match="boats"):
        longshore.write_sql(ROWS, "boats", url, types=TYPES)
    assert longshore.write_sql(ROWS, "boats", url, if_exists="append") == 3
    assert read(url) == rows * 2
    assert longshore.write_sql(ROWS.slice(2), "boats", url, if_exists="truncate") == 1
    assert read(url) == rows[2:]
    assert longshore.write_sql(ROWS, "boats", url, if_exists="replace", types=TYPES) == 3
    assert read(url) == rows
    with pytest.raises(longshore.NotSupportedError, match="upsert"):
        longshore.write_sql(ROWS, "boats", url, if_exists="upsert", key="i")


def test_a_write_is_whole_or_nothing(url: str) -> None:
    longshore.write_sql(ROWS.slice(0, 0), "boats", url, key=["i"], types=TYPES)
    twice = pa.table({"i": pa.array([1, 2, 1]), "f": [0.0] * 3, "t": ["a"] * 3})
    with pytest.raises(longshore.Error, match="UNIQUE"):
        longshore.write_sql(twice, "boats", url, if_exists="append")
    assert read(url) == []

    def failing() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        raise LookupError("no more")

    reader = pa.RecordBatchReader.from_batches(ROWS.schema, failing())
    with pytest.raises(LookupError):
        longshore.write_sql(reader, "boats", url, if_exists="append")
    assert read(url) == []


def test_a_write_is_part_of_the_owners_transaction(url: str) -> None:
    longshore.write_sql(ROWS.slice(0, 0), "boats", url, types=TYPES)
    with longshore.connect(url) as connection:
        assert longshore.write_sql(ROWS, "boats", connection, if_exists="append") == 3
        connection.rollback()
    assert read(url) == []


def test_many_batches_are_sent_while_they_come(url: str) -> None:
    batches = (pa.record_batch({"i": range(at, at + 1000)}) for at in range(0, 20_000, 1000))
    reader = pa.RecordBatchReader.from_batches(pa.schema({"i": pa.int64()}), batches)
    assert longshore.write_sql(reader, "boats", url, types={"i": "INTEGER"}) == 20_000
    found = longshore.read_sql("SELECT count(*) AS n, sum(i) AS s FROM boats", url, return_type="arrow").to_pylist()
    assert found == [{"n": 20_000, "s": 199_990_000}]
