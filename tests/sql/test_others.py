"""polars' frames, NumPy's arrays, dicts and lists as the engine sees them."""

import datetime as dt
import decimal
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import longshore
from tests.sql.rows import rows

pytestmark = pytest.mark.packages

D = decimal.Decimal
NAIVE = dt.datetime(2026, 1, 2)  # noqa: DTZ001  it has no zone


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pl.Series([1, None], dtype=pl.UInt64), [1, None]),
        (pl.Series(["a", None, "b" * 40]), ["a", None, "b" * 40]),
        (pl.Series(["b", "a", None], dtype=pl.Enum(["b", "a"])), ["b", "a", None]),
        (pl.Series(["b", None], dtype=pl.Categorical), ["b", None]),
        (pl.Series([D("1.5"), None], dtype=pl.Decimal(10, 2)), [D("1.50"), None]),
        (pl.Series([dt.date(2026, 1, 2), None]), [dt.date(2026, 1, 2), None]),
        (pl.Series([dt.time(1, 2, 3, 4), None]), [dt.time(1, 2, 3, 4), None]),
        (pl.Series([NAIVE, None]), [NAIVE, None]),
        (pl.Series([[1], None, [None]]), [[1], None, [None]]),
        (pl.Series([[1, 2]], dtype=pl.Array(pl.Int8, 2)), [[1, 2]]),
        (pl.Series([{"a": 1}, {"a": None}]), [{"a": 1}, {"a": None}]),
        (pl.Series([b"x", None]), [b"x", None]),
        (pl.Series([None, None]), [None, None]),
        (pl.Series([None, None], dtype=pl.List(pl.Null)), [None, None]),
    ],
)
def test_polars_columns_keep_their_values(values: pl.Series, expected: list[Any]) -> None:
    frame = pl.DataFrame({"x": values})
    for each in (frame, frame.lazy()):
        assert [row["x"] for row in rows("SELECT x FROM each", each=each)] == expected


def test_polars_nan_stays() -> None:
    frame = pl.DataFrame({"x": [float("nan"), None]})
    found = [row["x"] for row in rows("FROM frame", frame=frame)]
    assert math.isnan(found[0])
    assert found[1] is None


@pytest.mark.parametrize("dtype", ["Object", *(["Int128"] if hasattr(pl, "Int128") else [])])
def test_what_polars_cannot_hand_over_is_an_error_where_it_is_needed(dtype: str) -> None:
    values = pl.Series([2**100], dtype=pl.Int128) if dtype == "Int128" else pl.Series([object()], dtype=pl.Object)
    frame = pl.DataFrame({"x": values, "y": [1]})
    with pytest.raises(longshore.DataError, match=f"'x' is of polars' type {dtype}") as caught:
        rows("FROM frame", frame=frame)
    assert ("pl.Decimal" in (caught.value.hint or "")) == (dtype == "Int128")
    assert rows("SELECT y FROM frame", frame=frame) == [{"y": 1}]


def test_a_lazy_frame_reads_only_what_is_needed(tmp_path: Path) -> None:
    (tmp_path / "boats.csv").write_text("berth,tons\n1,5\n2,many\n")
    lazy = pl.scan_csv(tmp_path / "boats.csv", schema={"berth": pl.Int64, "tons": pl.Int64})
    assert rows("SELECT sum(berth)::INT AS b FROM lazy", lazy=lazy) == [{"b": 3}]
    assert rows("SELECT count(*) AS n FROM lazy", lazy=lazy) == [{"n": 2}]
    with pytest.raises(longshore.Error, match="many"):
        rows("SELECT * FROM lazy", lazy=lazy)


def test_a_lazy_frame_that_cannot_be_computed_is_an_error_of_this_librarys(tmp_path: Path) -> None:
    for lazy in (pl.LazyFrame({"a": [1]}).select("b"), pl.scan_parquet(tmp_path / "boats.parquet")):
        with pytest.raises(longshore.OperationalError, match="polars could not compute 'lazy'"):
            rows("FROM lazy", lazy=lazy)


def test_polars_names_that_look_like_patterns() -> None:
    frame = pl.DataFrame({"^a.*$": [1], "*": [2], "ab": [3]})
    assert rows('SELECT "^a.*$" AS x, "*" AS y FROM frame', frame=frame) == [{"x": 1, "y": 2}]


def test_a_structured_array() -> None:
    array = np.array([(1, 0.5, "a"), (2, np.nan, "b")], dtype=[("i", "i2"), ("f", "f8"), ("s", "U3")])
    found = rows("SELECT i, f, s FROM data", data=array)
    assert [(row["i"], row["s"]) for row in found] == [(1, "a"), (2, "b")]
    assert math.isnan(found[1]["f"])
    assert rows("SELECT count(*) AS n FROM data", data=array[::2]) == [{"n": 1}]


def test_an_array_without_fields_is_refused() -> None:
    with pytest.raises(longshore.InterfaceError, match="no columns"):
        rows("FROM data", data=np.array([1, 2]))


@pytest.mark.parametrize("code", [0xD800, 0x7FFFFFFF, 0x110000])
def test_characters_that_are_none_name_their_column(code: int) -> None:
    data = {"x": np.array([code], "u4").view("U1")}
    with pytest.raises(longshore.DataError, match=r"column .x.") as caught:
        rows("FROM data", data=data)
    assert caught.value.column == "x"


def test_a_dict_of_arrays_and_lists() -> None:
    data = {"a": np.array([1, 2], "u1"), "m": np.ma.array([1, 2], mask=[True, False]), "l": ["x", None]}
    assert rows("FROM data", data=data) == [{"a": 1, "m": None, "l": "x"}, {"a": 2, "m": 2, "l": None}]
    with pytest.raises(longshore.InterfaceError, match="one length"):
        rows("FROM data", data={"a": [1], "b": [1, 2]})
    with pytest.raises(longshore.InterfaceError, match="'a'"):
        rows("FROM data", data={"a": 1})


def test_a_list_of_dicts_has_every_key_for_a_column() -> None:
    data = [{"a": 1, "b": "x"}, {"a": 2, "c": 1.5}, {}]
    assert rows("FROM data", data=data) == [
        {"a": 1, "b": "x", "c": None},
        {"a": 2, "b": None, "c": 1.5},
        {"a": None, "b": None, "c": None},
    ]
    assert rows("SELECT count(*) AS n FROM data", data=data) == [{"n": 3}]
    assert rows("SELECT e.m.k AS k FROM data e", data=[{"m": {"k": 1}}, {"m": None}]) == [{"k": 1}, {"k": None}]


def test_a_list_of_dicts_and_something_else_is_refused() -> None:
    with pytest.raises(longshore.InterfaceError, match="row 1 is of type int"):
        rows("FROM data", data=[{"a": 1}, 5])
    with pytest.raises(longshore.InterfaceError, match="not a table"):
        rows("FROM data", data=[1, 2])
