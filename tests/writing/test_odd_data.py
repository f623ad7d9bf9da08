"""Frames that are odd: each becomes the rows that it shows, or an error that names the column."""

import datetime as dt
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import longshore

pytestmark = pytest.mark.packages

NAIVE = dt.datetime.fromisoformat("2026-01-01 05:00")
AWARE = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def rows(url: str, table: str) -> list[Any]:
    found: list[Any] = longshore.read_sql(f"SELECT * FROM {table}", url, return_type="arrow").to_pylist()
    return found


def objects(*values: Any) -> pd.DataFrame:
    return pd.DataFrame({"v": pd.Series(values, dtype=object)})


LOSSY: dict[str, Callable[[], Any]] = {
    "a date before a datetime": lambda: objects(dt.date(2026, 1, 1), NAIVE),
    "a naive datetime after an aware one": lambda: objects(
        AWARE,
        NAIVE,
    ),
    "an aware datetime after a naive one": lambda: objects(
        NAIVE,
        AWARE,
    ),
    "nanoseconds of a timestamp": lambda: objects(pd.Timestamp("2026-01-01 00:00:00.000000001")),
    "nanoseconds of a span": lambda: objects(pd.Timedelta(1, "ns")),
    "a time with a zone": lambda: objects(dt.time(1, tzinfo=dt.UTC)),
    "a date before a datetime in a list": lambda: objects([NAIVE.date(), NAIVE]),
    "a date before a datetime in dicts": lambda: objects({"a": NAIVE.date()}, {"a": NAIVE}),
    "bytes before a text": lambda: objects(b"a", "b"),
    "a text before bytes": lambda: objects("b", b"a"),
    "a uuid before a text": lambda: objects(uuid.UUID(int=1), "x"),
    "periods": lambda: pd.DataFrame({"v": pd.period_range("2026-01", periods=2, freq="M")}),
    "intervals": lambda: pd.DataFrame({"v": pd.interval_range(0, 2)}),
    "categories that are intervals": lambda: pd.DataFrame({"v": pd.cut([1, 2, 3], 2)}),
    "sparse": lambda: pd.DataFrame({"v": pd.arrays.SparseArray([0, 1])}),
    "complex": lambda: {"v": np.array([1j])},
    "polars' objects": lambda: pl.DataFrame({"v": pl.Series([object()], dtype=pl.Object)}),
    "polars' objects, lazily": lambda: pl.DataFrame({"v": pl.Series([object()], dtype=pl.Object)}).lazy(),
}
if hasattr(pl, "Int128"):
    LOSSY |= {
        "polars' large integers": lambda: pl.DataFrame({"v": pl.Series([2**100], dtype=pl.Int128)}),
        "polars' large integers in a struct": lambda: pl.DataFrame({"v": pl.Series([{"a": 1}])}).cast(
            {"v": pl.Struct({"a": pl.Int128})}
        ),
    }


@pytest.mark.parametrize("name", LOSSY)
def test_what_would_lose_something_is_refused(url: str, harbour: str, name: str) -> None:
    with pytest.raises(longshore.DataError, match="Hint: ") as caught:
        longshore.write_sql(LOSSY[name](), f"{harbour}.t", url)
    assert caught.value.column == "v"
    assert caught.value.hint is not None
    with pytest.raises(longshore.ProgrammingError):
        rows(url, f"{harbour}.t")


NAMES: dict[str, Callable[[str], Any]] = {
    "pandas": lambda name: pd.DataFrame([[1]], columns=[name]),
    "a pandas index": lambda name: pd.DataFrame({"a": [1]}, index=pd.Index([1], name=name)),
    "polars": lambda name: pl.DataFrame({name: [1]}),
    "lazy polars": lambda name: pl.DataFrame({name: [1]}).lazy(),
    "arrow": lambda name: pa.table({name: [1]}),
    "arrow's batch": lambda name: pa.record_batch({name: pa.array([1])}),
    "a dict": lambda name: {name: [1]},
}


@pytest.mark.parametrize("name", NAMES)
def test_a_zero_byte_in_a_name(url: str, harbour: str, name: str) -> None:
    data = NAMES[name]("a\0b")
    with pytest.raises(longshore.InterfaceError, match="zero byte"):
        longshore.write_sql(data, f"{harbour}.t", url, index=name == "a pandas index")


def test_a_name_that_is_no_text(url: str, harbour: str) -> None:
    with pytest.raises(longshore.InterfaceError, match="lone surrogate"):
        longshore.write_sql({"\ud800": [1]}, f"{harbour}.t", url)
    with pytest.raises(longshore.InterfaceError, match="one name"):
        longshore.write_sql({1: [1], "1": [2]}, f"{harbour}.t", url)


@pytest.mark.parametrize("value", [1, "abc", b"abc", None, np.array(1)])
def test_a_column_that_is_one_value(url: str, harbour: str, value: Any) -> None:
    with pytest.raises(longshore.InterfaceError, match="'v' is one"):
        longshore.write_sql({"n": [1, 2, 3], "v": value}, f"{harbour}.t", url)


@pytest.mark.parametrize(
    "data", [pa.array([1]), pa.chunked_array([[1]]), 7, "boats"], ids=lambda data: type(data).__name__
)
def test_what_is_no_table(url: str, harbour: str, data: Any) -> None:
    with pytest.raises(longshore.InterfaceError, match=r"cannot be (read|written)"):
        longshore.write_sql(data, f"{harbour}.t", url)


def test_polars_columns_of_nothing(url: str, harbour: str) -> None:
    frame = pl.DataFrame({"v": [None, None], "w": [[None], []]})
    assert longshore.write_sql(frame, f"{harbour}.t", url) == 2
    assert rows(url, f"{harbour}.t") == [{"v": None, "w": [None]}, {"v": None, "w": []}]


def test_a_nan_within_a_list_stays_one(url: str, harbour: str) -> None:
    nan = float("nan")
    assert longshore.write_sql(objects([nan, 1.5, None], nan), f"{harbour}.t", url) == 2
    assert [str(row["v"]) for row in rows(url, f"{harbour}.t")] == ["[nan, 1.5, None]", "None"]
