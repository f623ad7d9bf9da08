"""Streams: exact, loud, bounded, and over when they are dropped."""

import subprocess
import sys
import time
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import polars.testing
import psutil
import pyarrow as pa
import pytest

import longshore
from longshore import Stream, read_sql
from tests.postgres.test_interruption import STREAMING, running, wait
from tests.servers import Endpoint

pytestmark = pytest.mark.packages

# One column for each form that a column takes in pandas.
ALL = """
SELECT i, nullif(i, 3) AS n, i * 0.5::float8 AS f, 'text ' || i AS t, i = 2 AS b, i * 1.25 AS d,
       ARRAY[i * 1.5, NULL] AS l, ROW(i, i * 2.5)::pair_of_streams AS p, (i * 1.1)::numeric(9,2) AS declared,
       timestamptz '2026-01-01' + i * interval '1 day' AS at, ('{"a": ' || i || '}')::json AS j,
       (ARRAY['low', 'high'])[1 + i % 2]::tide_of_streams AS e, lpad(i::text, 32, '0')::uuid AS u
FROM generate_series(1, 7) AS i
"""


@pytest.fixture(autouse=True, scope="module")
def _types(postgres: Endpoint) -> Any:
    postgres.psql("CREATE TYPE pair_of_streams AS (number int, amount numeric)")
    postgres.psql("CREATE TYPE tide_of_streams AS ENUM ('low', 'high', 'slack')")
    yield
    postgres.psql("DROP TYPE pair_of_streams; DROP TYPE tide_of_streams")


def opened(query: str | list[str], url: str, **arguments: Any) -> Stream:
    """Open a stream."""
    stream: Stream = read_sql(query, url, return_type="arrow_stream", **arguments)
    return stream


def test_the_schema_is_there_before_and_after(url: str) -> None:
    stream = opened(ALL, url)
    table = pa.table(opened(ALL, url))
    assert stream.schema.equals(table.schema, check_metadata=True)
    stream.close()
    assert pa.schema(stream).equals(table.schema, check_metadata=True)


@pytest.mark.parametrize("backend", [None, "numpy_nullable", "pyarrow"])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_frames_of_pandas_are_the_whole_in_pieces(backend: Any, size: int, url: str) -> None:
    whole = read_sql(ALL, url, dtype_backend=backend)
    frames = list(opened(ALL, url, batch_size=size).pandas(dtype_backend=backend))
    assert [len(frame) for frame in frames] == [min(size, 7 - at) for at in range(0, 7, size)]
    for frame in frames:
        assert isinstance(frame.index, pd.RangeIndex)
        assert frame.dtypes.drop(["d", "l", "p"]).equals(whole.dtypes.drop(["d", "l", "p"]))
        assert frame.dtypes.equals(frames[0].dtypes)
    together = pd.concat(frames)
    assert together.index.tolist() == whole.index.tolist()
    if backend == "pyarrow":
        # A stream cannot look for the smallest scale.
        assert str(together["d"].dtype) == "decimal128(38, 20)[pyarrow]"
        assert together["d"].tolist() == whole["d"].tolist()
        together, whole = together.drop(columns=["d", "l", "p"]), whole.drop(columns=["d", "l", "p"])
    pd.testing.assert_frame_equal(together, whole)


def test_frames_of_pandas_with_numpy(url: str) -> None:
    query = "SELECT i, i::text AS t, i * 0.1 AS d FROM generate_series(1, 5) AS i"
    frames = list(opened(query, url, batch_size=2).pandas("numpy"))
    pd.testing.assert_frame_equal(pd.concat(frames), read_sql(query, url, dtype_backend="numpy"))


def test_decimals_that_were_asked_for_stay_exact_in_pandas(url: str) -> None:
    query = "SELECT 0.1 AS a, 0.1 AS b"
    (frame,) = opened(query, url, schema={"a": "decimal128(20, 2)"}).pandas()
    assert [str(dtype) for dtype in frame.dtypes] == ["object", "float64"]
    assert frame["a"].tolist() == [Decimal("0.10")]
    assert frame["b"].tolist() == [0.1]


def test_the_index_of_pandas(url: str) -> None:
    query = "SELECT i, -i AS j, i::text AS t FROM generate_series(1, 5) AS i"
    frames = list(opened(query, url, batch_size=2).pandas(index_col="t"))
    pd.testing.assert_frame_equal(pd.concat(frames), read_sql(query, url, index_col="t"))
    frames = list(opened(query, url, batch_size=2).pandas(index_col=["i", "t"]))
    pd.testing.assert_frame_equal(pd.concat(frames), read_sql(query, url, index_col=["i", "t"]))


def test_an_index_that_is_not_there(url: str) -> None:
    stream = opened("SELECT i FROM generate_series(1, 5) AS i", url, batch_size=2)
    with pytest.raises(longshore.InterfaceError, match="index_col names 'k', but the result has only 'i'"):
        next(stream.pandas(index_col="k"))
    # The first batch is lost: the rest must not look like the whole.
    with pytest.raises(longshore.InterfaceError, match="the stream is closed"):
        next(stream)


def test_json_as_objects(url: str) -> None:
    frames = opened(ALL, url, batch_size=4, options={"json": "object"}).pandas()
    assert pd.concat(frames)["j"].tolist() == [{"a": i} for i in range(1, 8)]


def test_a_frame_that_cannot_be_made_is_told_with_its_row_in_the_whole(url: str) -> None:
    stream = opened("SELECT nullif(i, 6) AS i FROM generate_series(1, 7) AS i", url, batch_size=2)
    frames = stream.pandas("numpy")
    assert [len(next(frames)), len(next(frames))] == [2, 2]
    with pytest.raises(longshore.DataError, match="NULL") as caught:
        next(frames)
    assert (caught.value.column, caught.value.row) == ("i", 5)
    with pytest.raises(longshore.InterfaceError, match="the stream has failed"):
        next(stream)


@pytest.mark.parametrize("size", [1, 3, 100])
def test_frames_of_polars_are_the_whole_in_pieces(size: int, url: str) -> None:
    query = ALL.replace("i * 1.25 AS d", "1 AS d").replace("ARRAY[i * 1.5, NULL] AS l", "1 AS l")
    query = query.replace("ROW(i, i * 2.5)::pair_of_streams AS p", "i, i AS i")
    whole = read_sql(query, url, return_type="polars")
    frames = list(opened(query, url, batch_size=size).polars())
    assert [frame.height for frame in frames] == [min(size, 7 - at) for at in range(0, 7, size)]
    assert [frame.schema for frame in frames] == [whole.schema] * len(frames)
    polars.testing.assert_frame_equal(pl.concat(frames), whole)


@pytest.mark.parametrize(
    ("column", "what"),
    [("interval '1 day'", "intervals"), ("1::numeric(50, 2)", "decimals of more than 38 digits")],
)
def test_what_polars_lacks(column: str, what: str, url: str) -> None:
    stream = opened(f"SELECT 1 AS a, {column} AS b", url)
    with pytest.raises(longshore.NotSupportedError, match=f"polars has no type for {what}") as caught:
        next(stream.polars())
    assert caught.value.column == "b"
    expected = 'make text of the column: with a CAST in the query, or with schema={"b": "string"} of read_sql'
    assert caught.value.hint == expected
    # No batch was lost.
    assert next(stream).num_rows == 1


@pytest.mark.parametrize("query", [ALL + "WHERE false", [ALL + "WHERE false", ALL + "WHERE false"]])
def test_an_empty_result_is_one_empty_frame(query: Any, url: str) -> None:
    (full,) = opened(ALL, url).pandas()
    (empty,) = opened(query, url).pandas()
    assert len(empty) == 0
    expected = full.dtypes if isinstance(query, str) else next(opened([ALL], url).pandas()).dtypes
    assert empty.dtypes.equals(expected)
    batches = list(opened(query, url))
    assert [batch.num_rows for batch in batches] == [0]


def test_empty_parts_are_no_batches(url: str) -> None:
    queries = [f"SELECT i FROM generate_series(1, {rows}) AS i" for rows in (0, 3, 0, 0, 2, 0)]
    assert sorted(batch.num_rows for batch in opened(queries, url)) == [2, 3]


def test_a_value_that_does_not_fit(url: str) -> None:
    query = "SELECT i, CASE WHEN i = 150 THEN 'NaN'::numeric ELSE i END AS price FROM generate_series(1, 200) AS i"
    stream = opened(query, url, batch_size=100)
    assert next(stream).num_rows == 100
    with pytest.raises(longshore.DataError, match="NaN has no exact decimal") as caught:
        next(stream)
    assert (caught.value.column, caught.value.row, caught.value.native_type) == ("price", 149, "numeric")
    for _ in range(2):
        with pytest.raises(longshore.InterfaceError, match="the stream has failed"):
            next(stream)


@pytest.mark.once
def test_a_failure_of_the_server(url: str) -> None:
    stream = opened("SELECT 1 / (150 - i) AS a FROM generate_series(1, 200) AS i", url, batch_size=100)
    assert next(stream).num_rows == 100
    with pytest.raises(longshore.DataError, match="division by zero") as caught:
        next(stream)
    assert caught.value.sqlstate == "22012"


@pytest.mark.once
def test_a_slow_consumer_makes_the_server_wait(postgres: Endpoint) -> None:
    name = "back_pressure"
    stream = opened(STREAMING, postgres.url(application_name=name))
    next(stream)
    query = f"SELECT wait_event FROM pg_stat_activity WHERE application_name = '{name}'"
    wait(lambda: postgres.psql(query) == "ClientWrite")
    before = psutil.Process().memory_info().rss
    time.sleep(0.5)
    assert psutil.Process().memory_info().rss - before < 1 << 20
    assert postgres.psql(query) == "ClientWrite"
    stream.close()


MEMORY = """
import re
from pathlib import Path
import longshore
rows = size = 0
for batch in longshore.read_sql({query!r}, {url!r}, return_type="arrow_stream", **{arguments!r}):
    rows, size = rows + batch.num_rows, size + batch.nbytes
# Not ru_maxrss, which begins with what the parent had when it forked.
print(rows, size, re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.once
@pytest.mark.parametrize(
    ("query", "rows", "arguments"),
    [
        ("SELECT repeat('x', 1000) AS t, generate_series(1, {rows}) AS i", 700_000, {}),
        (
            "SELECT repeat('x', 1000) AS t, i FROM generate_series(1, {rows}) AS i",
            500_000,
            {"partition_on": "i", "partition_num": 4},
        ),
    ],
    ids=["0.7 GB", "0.5 GB in parts"],
)
def test_many_rows_in_little_memory(query: str, rows: int, arguments: dict[str, Any], url: str) -> None:
    script = MEMORY.format(query=query.format(rows=rows), url=url, arguments=arguments)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    read, size, peak = map(int, done.stdout.split())
    assert done.stderr == ""
    assert read == rows
    assert size > 1000 * rows
    assert peak < 300 << 10


PARTS: dict[str, Any] = {"partition_on": "i", "partition_num": 3}


def test_parts_are_the_whole(url: str) -> None:
    query = "SELECT i, i::text AS t FROM generate_series(1, 10000) AS i"
    frames = list(opened(query, url, batch_size=500, **PARTS).pandas())
    together = pd.concat(frames)
    assert together.index.tolist() == list(range(10_000))
    expected = read_sql(query, url)
    pd.testing.assert_frame_equal(together.sort_values("i", ignore_index=True), expected)
    ordered = opened(query, url, options={"ordered": True}, **PARTS)
    assert pa.table(ordered)["i"].to_pylist() == list(range(1, 10_001))


@pytest.mark.once
@pytest.mark.parametrize("how", ["dropped", "closed", "cancelled"])
def test_all_parts_end_with_their_stream(how: str, postgres: Endpoint) -> None:
    name = f"parts_{how}"
    query = "SELECT i, repeat('x', 1000) AS t FROM generate_series(1, 3000000) AS i"
    stream = opened(query, postgres.url(application_name=name), **PARTS)
    next(stream)
    assert running(postgres, name)
    match how:
        case "closed":
            stream.close()
        case "cancelled":
            stream.cancel()
        case _:
            del stream
    wait(lambda: not running(postgres, name))


def test_a_failure_in_one_part_is_raised(url: str) -> None:
    query = "SELECT i, 1 / (9000 - i) AS a FROM generate_series(1, 10000) AS i"
    stream = opened(query, url, batch_size=500, **PARTS)
    with pytest.raises(longshore.DataError, match="division by zero") as caught:
        list(stream)
    assert caught.value.sqlstate == "22012"
    with pytest.raises(longshore.InterfaceError, match="the stream has failed"):
        next(stream)


def test_an_option_for_pandas_has_its_place(url: str) -> None:
    with pytest.raises(longshore.InterfaceError, match=r"give them to the stream's pandas\(\)"):
        opened("SELECT 1", url, index_col="a")
    with pytest.raises(longshore.InterfaceError, match="unknown dtype_backend 'arrow'"):
        opened("SELECT 1", url).pandas("arrow")  # type: ignore[arg-type]


def test_a_stream_shows_its_columns_and_its_state(url: str) -> None:
    query = "SELECT i, i::text AS name FROM generate_series(1, 3) AS i"
    shown = "<Stream (i, name) {}>"
    with opened(query, url, batch_size=2) as stream:
        assert repr(stream) == shown.format("is open")
        next(stream)
        assert repr(stream) == shown.format("is open")
        assert len(list(stream)) == 1
        assert repr(stream) == shown.format("has ended")
    assert repr(stream) == shown.format("is closed")
    with opened("SELECT 1 / (2 - i) AS i FROM generate_series(1, 2) AS i", url) as stream:
        with pytest.raises(longshore.DatabaseError):
            list(stream)
        assert repr(stream) == "<Stream (i) has failed>"
    wide = ", ".join(f"{at} AS c{at}" for at in range(12))
    with opened(f"SELECT {wide}", url) as stream:
        assert repr(stream) == "<Stream (c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, ...) is open>"
