"""Streams: what the whole result has, in pieces and in little memory; a failure never looks like an end."""

import time
from typing import Any

import pandas as pd
import psutil
import pyarrow as pa
import pytest

import longshore
from tests.contract.conftest import Database, wait

pytestmark = pytest.mark.usefixtures("leaves_nothing")


def opened(query: str | list[str], database: Database, **arguments: Any) -> Any:
    """Open a stream."""
    return longshore.read_sql(query, database.url, return_type="arrow_stream", **arguments)


def counted(database: Database, rows: int, columns: str = "i") -> str:
    """Return a query of rows in their order."""
    return database.series(rows, columns) + " ORDER BY i"


def test_batches_have_the_schema_and_the_size(database: Database) -> None:
    query = counted(database, 5, "i, i * 2 AS j")
    whole: Any = longshore.read_sql(query, database.url, return_type="arrow")
    stream = opened(query, database, batch_size=2)
    assert stream.schema.equals(whole.schema, check_metadata=True)
    batches = list(stream)
    assert [type(batch) for batch in batches] == [pa.RecordBatch] * 3
    assert [batch.num_rows for batch in batches] == [2, 2, 1]
    assert pa.Table.from_batches(batches).equals(whole)
    # The end stays the end, and the schema is there after it.
    assert next(stream, None) is None
    stream.close()
    assert stream.schema.equals(whole.schema, check_metadata=True)


def test_it_is_handed_over_once(database: Database) -> None:
    stream = opened(counted(database, 5), database, batch_size=2)
    assert next(stream).num_rows == 2
    assert pa.table(stream).column(0).to_pylist() == [3, 4, 5]
    for take in (stream.__arrow_c_stream__, lambda: next(stream), lambda: next(stream.pandas())):
        with pytest.raises(longshore.InterfaceError, match="the stream has been handed over"):
            take()


@pytest.mark.costly
@pytest.mark.parametrize("backend", [None, "numpy_nullable", "pyarrow"])
def test_frames_are_the_whole_in_pieces(database: Database, backend: Any) -> None:
    query = counted(database, 7, "i, NULLIF(i, 3) AS n, i * 2 AS j")
    whole = longshore.read_sql(query, database.url, dtype_backend=backend)
    frames = list(opened(query, database, batch_size=3).pandas(dtype_backend=backend))
    assert [len(frame) for frame in frames] == [3, 3, 1]
    pd.testing.assert_frame_equal(pd.concat(frames), whole)
    name = database.quirks.kept("i")
    indexed = list(opened(query, database, batch_size=3).pandas(dtype_backend=backend, index_col=name))
    pd.testing.assert_frame_equal(pd.concat(indexed), whole.set_index(name))


def test_an_empty_result_is_one_empty_piece(database: Database, table: str) -> None:
    database.execute(
        f"CREATE TABLE {table} (i int, t varchar(9))", f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b'), (3, 'c')"
    )
    query = f"SELECT i, t FROM {table}"
    with opened(query, database) as full, opened(f"{query} WHERE i < 0", database) as none:
        assert none.schema.equals(full.schema, check_metadata=True)
        assert [batch.num_rows for batch in none] == [0]
        (whole,) = full.pandas()
    together = database.quirks.together
    for queries in (f"{query} WHERE i < 0", [f"{query} WHERE i < 0"] * 2):
        (frame,) = opened(queries, database, options=together).pandas()
        assert len(frame) == 0
        assert frame.dtypes.equals(whole.dtypes)
    # Next to others with rows, those without are no pieces.
    several = [f"{query} WHERE i {condition}" for condition in ("< 0", "= 1", "> 1", "> 9")]
    assert sorted(batch.num_rows for batch in opened(several, database, partition_num=1, options=together)) == [1, 2]


def test_a_failure_on_the_way_is_no_end(database: Database) -> None:
    query = counted(database, 200, "CASE WHEN i = 150 THEN 'x' ELSE '1' END AS n, i")
    stream = opened(query, database, batch_size=100, schema={database.quirks.kept("n"): "int64"})
    assert next(stream).num_rows == 100
    with pytest.raises(longshore.DataError) as caught:
        next(stream)
    assert (caught.value.column, caught.value.row) == (database.quirks.kept("n"), 149)
    for _ in range(2):
        with pytest.raises(longshore.InterfaceError, match="the stream has failed"):
            next(stream)
    assert repr(stream) == f"<Stream ({database.quirks.kept('n, i')}) has failed>"


def test_a_frame_that_cannot_be_made_is_told_with_its_row_in_the_whole(database: Database) -> None:
    frames = opened(counted(database, 7, "NULLIF(i, 6) AS n, i"), database, batch_size=2).pandas("numpy")
    assert [len(next(frames)), len(next(frames))] == [2, 2]
    with pytest.raises(longshore.DataError, match="NULL") as caught:
        next(frames)
    assert (caught.value.column, caught.value.row) == (database.quirks.kept("n"), 5)


def test_its_repr_shows_columns_and_state(database: Database) -> None:
    shown = f"<Stream ({database.quirks.kept('i, j')}) {{}}>"
    with opened(counted(database, 3, "i, i AS j"), database, batch_size=2) as stream:
        assert repr(stream) == shown.format("is open")
        assert next(stream).num_rows == 2
        assert repr(stream) == shown.format("is open")
        assert len(list(stream)) == 1
        assert repr(stream) == shown.format("has ended")
    assert repr(stream) == shown.format("is closed")


def test_a_slow_consumer_makes_the_source_wait(database: Database) -> None:
    stream = opened(database.marked("streaming", "slow"), database)
    next(stream)
    process = psutil.Process()
    # The source reads ahead as far as it may, and then no further.
    wait(lambda: grows_by(process) < 1 << 20)
    stream.close()
    wait(lambda: not database.running("slow"))


def grows_by(process: psutil.Process) -> int:
    """Return how much memory a process takes in half a second."""
    before = process.memory_info().rss
    time.sleep(0.5)
    return int(process.memory_info().rss - before)
