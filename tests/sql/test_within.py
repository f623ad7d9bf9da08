"""Arrow's values beyond what their types promise, and types that the engine lacks within others."""

import datetime as dt
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import longshore
from tests.sql.rows import rows

pytestmark = pytest.mark.packages

D = decimal.Decimal
DAY = 86_400_000

#: Two values each, of which the second is beyond its type.
LOOSE = [
    pa.array([DAY, DAY + 1]).view(pa.date64()),
    pa.array([-DAY, -1]).view(pa.date64()),
    pa.array([86_399, 86_401], pa.int32()).view(pa.time32("s")),
    pa.array([0, -1], pa.int32()).view(pa.time32("ms")),
    pa.array([DAY * 1_000, DAY * 1_000 + 1]).view(pa.time64("us")),
    pa.array([0, -(2**63)]).view(pa.time64("ns")),
]

#: How they lie in a column of two rows.
WITHIN: dict[str, Callable[[Any], Any]] = {
    "plain": lambda array: array,
    "sliced": lambda array: pa.concat_arrays([array[1:], array])[1:],
    "list": lambda array: pa.ListArray.from_arrays([0, 1, 2], array),
    "large list": lambda array: pa.LargeListArray.from_arrays([0, 1, 2], array),
    "fixed list": lambda array: pa.FixedSizeListArray.from_arrays(array, 1),
    "struct": lambda array: pa.StructArray.from_arrays([pa.array([1, 2]), array], ["a", "b"]),
    "map": lambda array: pa.MapArray.from_arrays([0, 1, 2], pa.array(["a", "b"]), array),
    "dictionary": lambda array: pa.DictionaryArray.from_arrays([0, 1], array),
    "deep": lambda array: pa.ListArray.from_arrays([0, 1, 2], pa.StructArray.from_arrays([array], ["a"])),
}


@pytest.mark.parametrize("make", [pa.Table.to_batches, lambda table: [table], lambda table: [table.to_reader()]])
@pytest.mark.parametrize("name", WITHIN)
@pytest.mark.parametrize("array", LOOSE, ids=lambda array: str(array.type))
def test_a_value_beyond_its_type_is_an_error_of_its_column_and_row(
    array: Any, name: str, make: Callable[[Any], list[Any]]
) -> None:
    table = pa.table({"n": [1, 2], "x": WITHIN[name](array)})
    (data,) = make(table)
    with pytest.raises(longshore.DataError, match="row 1, ") as caught:
        rows("SELECT x FROM data", data=data)
    assert (caught.value.column, caught.value.row) == ("x", 1)
    assert rows("SELECT max(n) AS n FROM data", data=table) == [{"n": 2}]


@pytest.mark.parametrize("name", sorted(set(WITHIN) - {"dictionary"}))
def test_whole_days_and_times_of_day_keep_their_values(name: str) -> None:
    days = pa.array([-DAY, 20_000 * DAY]).view(pa.date64())
    times = pa.array([0, DAY * 1_000 - 1]).view(pa.time64("us"))
    table = pa.table({"d": WITHIN[name](days), "t": WITHIN[name](times)})
    for data in (table, table.to_reader()):
        assert rows("FROM data", data=data) == table.to_pylist()


def test_rows_of_a_reader_are_counted_from_its_first() -> None:
    dates = pa.array([0, DAY, 1]).view(pa.date64())
    with pytest.raises(longshore.DataError) as caught:
        rows("FROM data", data=pa.table({"x": dates}).to_reader(max_chunksize=1))
    assert caught.value.row == 2


def test_what_is_missing_is_within_its_type() -> None:
    hidden = pa.Array.from_buffers(pa.date64(), 2, [pa.py_buffer(b"\1"), pa.py_buffer(b"\0" * 8 + b"\1" * 8)])
    assert rows("FROM data", data=pa.table({"x": hidden})) == [{"x": dt.date(1970, 1, 1)}, {"x": None}]


def test_a_datasets_dates_are_parquets_or_an_error(tmp_path: Path) -> None:
    table = pa.table({"n": [1, 2], "x": pa.array([0, DAY]).view(pa.date64())})
    pa.parquet.write_table(table, tmp_path / "days.parquet")
    assert rows("FROM data", data=pa.dataset.dataset(tmp_path / "days.parquet")) == table.to_pylist()
    data = pa.dataset.dataset(table)
    assert rows("SELECT n FROM data", data=data) == [{"n": 1}, {"n": 2}]
    with pytest.raises(longshore.DataError, match="'x' of 'data', date64"):
        rows("FROM data", data=data)


@pytest.mark.parametrize("name", sorted(set(WITHIN) - {"dictionary"}))
@pytest.mark.parametrize(
    "array",
    [pa.array([1.5, None], pa.float32()).cast(pa.float16()), pa.array([D("1.50"), None], pa.decimal256(50, 2))],
    ids=lambda array: str(array.type),
)
def test_types_that_the_engine_lacks_keep_their_values_within_others(array: Any, name: str) -> None:
    table = pa.table({"x": WITHIN[name](array)})
    for data in (table, table.to_reader()):
        assert rows("FROM data", data=data) == table.to_pylist()


@pytest.mark.parametrize("name", sorted(set(WITHIN) - {"dictionary", "map"}))
@pytest.mark.parametrize(
    "kind", [pa.duration("s"), pa.duration("ms"), pa.timestamp("s", "UTC"), pa.timestamp("ms", "UTC")]
)
def test_what_lies_below_a_null_is_not_converted(kind: Any, name: str) -> None:
    nat = (-(2**63)).to_bytes(8, "little", signed=True)
    array = pa.Array.from_buffers(kind, 2, [pa.py_buffer(b"\1"), pa.py_buffer(b"\5" + b"\0" * 7 + nat)])
    data = pa.table({"x": WITHIN[name](array)})
    for each in (data, data.to_reader()):
        found = longshore.sql("SELECT count(*) AS n, count(x) AS x, any_value(x)::VARCHAR AS v FROM data", data=each)
        assert found.n[0] == 2
        assert "00:00:0" in found.v[0]


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_pandas_nat_is_null_in_every_unit(unit: str) -> None:
    spans = pd.Series(np.array([5_000_000, "NaT"], f"m8[{unit}]"))
    timestamps = pd.Series(np.array([0, "NaT"], f"M8[{unit}]")).dt.tz_localize("Asia/Tokyo").dt.tz_convert("UTC")
    query = "SELECT count(s) AS s, count(m) AS m, max(s) = max(s) AS same FROM data"
    assert rows(query, data=pd.DataFrame({"s": spans, "m": timestamps})) == [{"s": 1, "m": 1, "same": True}]


@pytest.mark.parametrize("name", sorted(set(WITHIN) - {"dictionary"}))
def test_dictionaries_within_lists_of_a_fixed_size_keep_their_values(name: str) -> None:
    inner = WITHIN[name](pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), ["a", "b"]))
    table = pa.table({"n": [1, 2], "x": pa.FixedSizeListArray.from_arrays(inner, 1)})
    for data in (table, table.to_reader()):
        assert rows("FROM data", data=data) == table.to_pylist()
    with pytest.raises(longshore.DataError, match="does not have the type"):
        rows("FROM data", data=pa.dataset.dataset(table))


def test_a_readers_values_are_looked_at_batch_by_batch() -> None:
    good, bad = pa.array([1_000, -2_000], pa.duration("ns")), pa.array([1], pa.duration("ns"))
    reader = pa.table({"x": good}).to_reader(max_chunksize=1)
    assert [row["x"].nanoseconds for row in rows("FROM data", data=reader)] == [1_000, -2_000]
    reader = pa.RecordBatchReader.from_batches(
        pa.schema({"x": good.type}), [pa.record_batch({"x": each}) for each in (good, bad)]
    )
    with pytest.raises(longshore.DataError, match="the engine's intervals have no nanoseconds"):
        rows("FROM data", data=reader)
