"""pyarrow's data, and that of others that speak Arrow, as the engine sees it."""

import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import longshore
from tests.sql.rows import rows

pytestmark = pytest.mark.packages

D = decimal.Decimal
TABLE = pa.table({"n": [1, 2, 3], "s": ["a", None, "c"]})
ROWS = TABLE.to_pylist()
STRUCT = pa.struct({"p": pa.int64(), "q": pa.int64()})


class Sized:
    """A table of a library that speaks Arrow, and knows its length."""

    def __init__(self, table: Any) -> None:
        """Keep the table."""
        self._table = table

    def __len__(self) -> int:
        """Count the rows."""
        return len(self._table)

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Hand the rows over."""
        return self._table.__arrow_c_stream__(requested_schema)


class Unsized:
    """A stream of such a library, that can be had once."""

    def __init__(self, table: Any) -> None:
        """Keep the table."""
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Hand the rows over."""
        table, self._table = self._table, None
        return table.__arrow_c_stream__(requested_schema)


class Batch:
    """A batch of a library that speaks only ``__arrow_c_array__``."""

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        """Hand the rows over."""
        return TABLE.to_batches()[0].__arrow_c_array__(requested_schema)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TABLE,
        lambda: TABLE.to_batches()[0],
        TABLE.to_reader,
        lambda: pa.dataset.dataset(TABLE),
        lambda: Sized(TABLE),
        lambda: Unsized(TABLE),
        Batch,
    ],
    ids=["Table", "RecordBatch", "RecordBatchReader", "Dataset", "sized", "unsized", "array"],
)
def test_every_kind_of_arrow_data_is_a_table(make: Callable[[], Any]) -> None:
    assert rows("SELECT * FROM data", data=make()) == ROWS
    assert rows("SELECT s FROM data WHERE n > 2", data=make()) == [{"s": "c"}]
    assert rows("SELECT count(*) AS n FROM data", data=make()) == [{"n": 3}]


def test_what_lies_in_memory_may_be_named_twice() -> None:
    for data in (TABLE, TABLE.to_batches()[0], pa.dataset.dataset(TABLE), Sized(TABLE), Unsized(TABLE), Batch()):
        assert rows("SELECT count(*) AS n FROM data a, data b", data=data) == [{"n": 9}]


def test_what_can_be_read_once_is_not_read_twice() -> None:
    with pytest.raises(longshore.Error, match="already been consumed"):
        rows("SELECT count(*) AS n FROM data a, data b WHERE a.n = b.n", data=TABLE.to_reader())


def test_a_reader_that_has_been_read_is_an_error_and_not_empty() -> None:
    reader = TABLE.to_reader()
    assert rows("FROM reader", reader=reader) == ROWS
    with pytest.raises(longshore.Error, match="already been consumed"):
        rows("FROM reader", reader=reader)


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.list_(pa.int64())], ids=str)
def test_a_batch_of_another_type_than_its_readers_is_an_error(kind: Any) -> None:
    batches = [pa.record_batch({"n": pa.array([1, 2], pa.int32())})]
    reader = pa.RecordBatchReader.from_batches(pa.schema({"n": kind}), batches)
    with pytest.raises(longshore.Error, match="column 'n' is int32 in batch 0"):
        rows("FROM reader", reader=reader)


def test_a_batch_of_fewer_columns_than_its_readers_is_an_error() -> None:
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.select([0]).to_batches())
    with pytest.raises(longshore.Error, match="has 1 columns"):
        rows("FROM reader", reader=reader)


def test_nan_is_a_value_and_greater_than_every_other() -> None:
    data = pa.table({"x": [float("nan"), 1.0, None]})
    for each in (data, pa.dataset.dataset(data)):
        assert len(rows("FROM data WHERE x > 0", data=each)) == 2
        assert rows("SELECT x FROM data WHERE NOT (x > 5)", data=each) == [{"x": 1.0}]


@pytest.mark.parametrize(
    ("array", "kind", "expected"),
    [
        (pa.array([1.5, None], pa.float32()).cast(pa.float16()), "FLOAT", [1.5, None]),
        (pa.array([D("1.50"), None], pa.decimal256(50, 2)), "DECIMAL(38,2)", [D("1.50"), None]),
        (pa.array([D("12"), None], pa.decimal256(10, 0)), "DECIMAL(10,0)", [D("12"), None]),
        (pa.array([D("1500"), None], pa.decimal128(5, -2)), "DECIMAL(7,0)", [D("1500"), None]),
        (pa.array([86_399_999_999], pa.time64("us")), "TIME", None),
        (pa.array(["a", None]).dictionary_encode(), "VARCHAR", ["a", None]),
        (pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), ["x", None]), "VARCHAR", ["x", None, None]),
        (pa.array([b"ab", None], pa.binary(2)), "BLOB", [b"ab", None]),
        (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), "TINYINT[2]", [[1, 2], None]),
        (pa.array([[1, 2], None], pa.large_list(pa.int8())), "TINYINT[]", [[1, 2], None]),
        (pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int8())), "MAP(VARCHAR, TINYINT)", [[("a", 1)], None]),
        (pa.array([{"a": 1}, None]), "STRUCT(a BIGINT)", [{"a": 1}, None]),
        (pa.nulls(2), '"NULL"', [None, None]),
        (pa.array(["a", "b", None, "d"])[1:3], "VARCHAR", ["b", None]),
        (pa.array([True, False, None] * 5)[4:7], "BOOLEAN", [False, None, True]),
        (pa.array([[1], [2, 3], None])[1:], "BIGINT[]", [[2, 3], None]),
        (pa.array(["x" * 40, None], pa.large_string()), "VARCHAR", ["x" * 40, None]),
        (pa.array([2**31 - 2, -(2**31), None], pa.int32()).view(pa.date32()), "DATE", None),
    ],
)
def test_a_type_keeps_its_values(array: Any, kind: str, expected: list[Any] | None) -> None:
    data = pa.table({"x": array})
    assert rows("SELECT DISTINCT typeof(x) AS kind FROM data", data=data) == [{"kind": kind}]
    found = longshore.sql("SELECT x FROM data", return_type="arrow", data=data).column("x").combine_chunks()
    if expected is None:
        assert found.equals(array)
    else:
        assert found.to_pylist() == expected


@pytest.mark.skipif(not hasattr(pa, "string_view"), reason="this pyarrow has no views")
def test_views() -> None:
    data = pa.table({"x": pa.array(["a", None, "b" * 50], pa.string_view())})
    assert [row["x"] for row in rows("FROM data", data=data)] == ["a", None, "b" * 50]


@pytest.mark.parametrize(
    ("array", "fault"),
    [
        (pa.array([D("1" * 45)], pa.decimal256(50, 2)), "does not fit"),
        (pa.array([1_000, 1], pa.duration("ns")), "no nanoseconds"),
        (pa.array([(1, 2, 3_000), None, (1, 1, 1)], pa.month_day_nano_interval()), "no nanoseconds"),
        (pa.array([[1]], pa.list_(pa.duration("ns"))), "no nanoseconds"),
        (pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "A"]), "does not tell apart"),
        (pa.array([[D("1" * 45)]], pa.list_(pa.decimal256(50, 2))), "does not fit"),
        (pa.DictionaryArray.from_arrays([0], pa.array([D(1)], pa.decimal256(50, 0))), "does not have the type"),
    ],
    ids=["decimal", "duration", "interval", "nested", "fields", "decimals", "dictionary"],
)
def test_what_the_engine_would_change_is_refused_where_it_is_needed(array: Any, fault: str) -> None:
    data = pa.table({"x": array, "y": pa.array([7] * len(array))})
    for query in ("SELECT x FROM data", "FROM data"):
        with pytest.raises(longshore.DataError, match=f"'x' of 'data'.*{fault}") as caught:
            rows(query, data=data)
        assert caught.value.column == "x"
    assert rows("SELECT DISTINCT y FROM data", data=data) == [{"y": 7}]


def test_durations_and_intervals_of_microseconds_are_exact() -> None:
    spans = pa.array([1_000, None, -3_000], pa.duration("ns"))
    parts = pa.array([(1, 2, 3_000), None, (-1, 0, -1_000)], pa.month_day_nano_interval())
    found = rows("SELECT s, p FROM data", data=pa.table({"s": spans, "p": parts}))
    assert [row["s"] and row["s"].nanoseconds for row in found] == [1_000, None, -3_000]
    assert [row["p"] and tuple(row["p"]) for row in found] == [(1, 2, 3_000), None, (-1, 0, -1_000)]


def test_a_datasets_unfit_columns_stay_where_they_are(tmp_path: Path) -> None:
    table = pa.table({"x": [1, 2], "wide": pa.array([D("1" * 45)] * 2, pa.decimal256(50, 2))})
    pa.parquet.write_table(table, tmp_path / "wide.parquet")
    data = pa.dataset.dataset(tmp_path / "wide.parquet")
    assert rows("SELECT x FROM data WHERE x > 1", data=data) == [{"x": 2}]
    assert rows("SELECT count(*) AS n FROM data", data=data) == [{"n": 2}]
    with pytest.raises(longshore.DataError, match="'wide' of 'data'"):
        rows("FROM data", data=data)


def test_columns_of_one_name_are_refused_where_they_are_needed() -> None:
    data = pa.table([pa.array([1]), pa.array([2]), pa.array([3])], ["a", "A", "b"])
    assert rows("SELECT b FROM data", data=data) == [{"b": 3}]
    for each in (data, data.to_reader(), pa.dataset.dataset(data)):
        with pytest.raises(longshore.InterfaceError, match="'a' and 'A'"):
            rows("SELECT * FROM data", data=each)


def test_what_has_no_columns_is_no_table() -> None:
    with pytest.raises(longshore.InterfaceError, match="'data'"):
        rows("FROM data", data=pa.array([1, 2]))
    with pytest.raises(longshore.InterfaceError, match="'data'"):
        rows("FROM data", data=pa.chunked_array([[1]]))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(index=range(3)),
        pl.DataFrame(),
        pl.LazyFrame(),
        pa.table({}),
        pa.record_batch([], schema=pa.schema([])),
        pa.table({}).to_reader(),
        pa.dataset.dataset(pa.table({})),
        np.zeros(3, dtype=[]),
        {},
        [{}, {}],
    ],
    ids=lambda frame: type(frame).__name__,
)
def test_a_frame_without_columns_is_an_error_where_its_columns_are_asked_for(frame: Any) -> None:
    with pytest.raises(longshore.InterfaceError, match="'frame' "):
        rows("SELECT * FROM frame", frame=frame)


def test_a_name_of_the_engines_own_is_no_column() -> None:
    for frame in (TABLE, pa.table({}), pa.table({"": [1], "b": [2]}), pa.dataset.dataset(pa.table({"": [1]}))):
        with pytest.raises(longshore.Error):
            rows("SELECT v0 FROM frame", frame=frame)


@pytest.mark.parametrize(
    "make", [pa.table, pd.DataFrame, pl.DataFrame, dict, lambda data: pa.dataset.dataset(pa.table(data))]
)
def test_a_column_without_a_name_is_an_error_where_it_is_needed(make: Callable[[Any], Any]) -> None:
    frame = make({"": [1], "b": [2]})
    assert rows("SELECT b FROM frame", frame=frame) == [{"b": 2}]
    assert rows("SELECT count(*) AS n FROM frame", frame=frame) == [{"n": 1}]
    with pytest.raises(longshore.InterfaceError, match="column 0 of 'frame', counted from 0, has no name"):
        rows("FROM frame", frame=frame)


def test_a_field_without_a_name_is_an_error() -> None:
    with pytest.raises(longshore.DataError, match="one of its fields has no name"):
        rows("FROM frame", frame=pa.table({"x": [{"": 1, "b": 2}]}))


def test_slices_of_structs_within_structs() -> None:
    held = [{"p": {"p": at, "q": None}, "q": [{"r": at}]} if at % 3 else None for at in range(130_000)]
    table = pa.table({"x": pa.array(held, pa.struct({"p": STRUCT, "q": pa.list_(pa.struct({"r": pa.int64()}))}))})
    for start in (0, 1, 122_890):
        part = table.slice(start)
        for data in (part, part.to_reader(max_chunksize=1000)):
            found: Any = longshore.sql("FROM data", data=data, return_type="arrow")
            assert found["x"].combine_chunks().equals(part["x"].combine_chunks())


def test_a_slice_of_a_struct_within_a_struct() -> None:
    inner = pa.array([{"p": at, "q": 1} for at in range(5)], STRUCT)[1:]
    for array in (pa.StructArray.from_arrays([inner], ["x"]), pa.StructArray.from_arrays([inner], ["x"])[2:]):
        assert rows("FROM data", data=pa.table({"s": array})) == [{"s": each} for each in array.to_pylist()]


def test_a_stream_of_this_library_is_read_as_it_comes(postgres: Any) -> None:
    query = "SELECT id FROM generate_series(1, 100000) AS id"
    with longshore.read_sql(query, postgres.url(), return_type="arrow_stream") as stream:
        assert rows("SELECT count(*) AS n, sum(id)::BIGINT AS s FROM stream", stream=stream) == [
            {"n": 100_000, "s": 5_000_050_000}
        ]
