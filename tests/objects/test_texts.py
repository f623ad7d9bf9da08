"""Columns of texts alone: characters of every size, what is missing, and what the engine does with them."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import longshore
from longshore import _core
from tests.objects.given import replaced, slots_of

pytestmark = [pytest.mark.packages, pytest.mark.pythons]

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
#: Of every size of characters, shorter and longer than what a view holds, and around what a buffer holds.
SAMPLES = [
    letter * length + last
    for letter in [
        "a",
        "\0",
        "\x7f",
        "\x80",
        "é",
        "ÿ",
        "\u0100",
        "\ud7ff",
        "\ue000",
        "漢",
        "\uffff",
        "😀",
        "\U0010ffff",
    ]
    for length in [0, 1, 3, 4, 5, 7, 8, 9, 11, 12, 13, 40, 1000]
    for last in ["", "z"]
]


class Text(str):
    """A text whose characters lie elsewhere than those of a plain one."""

    __slots__ = ()


def texts(slots: Any, *, chunk: int = 1000) -> Any:
    """Give the column as one array of texts."""
    objects = _core.Objects(slots, "v", nan_is_null=True, as_text=False)
    arrays = [pa.array(objects.array(start, start + chunk)) for start in range(0, len(slots), chunk)]
    whole = pa.chunked_array(arrays, type=pa.string())
    whole.validate(full=True)
    return whole


@pytest.mark.parametrize("chunk", [1, 7, 256, 100_000])
def test_characters_of_every_size(chunk: int) -> None:
    values = [*SAMPLES, None, *SAMPLES]
    assert texts(slots_of(values), chunk=chunk).to_pylist() == values


@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(st.lists(st.none() | TEXTS).map(lambda values: ["", *values]), st.integers(1, 9))
def test_any_texts(values: list[str | None], chunk: int) -> None:
    assert texts(slots_of(values), chunk=chunk).to_pylist() == values


def test_everything_that_is_missing() -> None:
    missing = [None, np.nan, pd.NA, pd.NaT, np.datetime64("NaT", "D"), np.float32("nan"), float("nan")]
    values = ["a", *missing, "b", *missing]
    expected = ["a", *[None] * len(missing), "b", *[None] * len(missing)]
    for chunk in (1, 10, 1000):
        assert texts(slots_of(values), chunk=chunk).to_pylist() == expected


def test_texts_of_other_classes() -> None:
    values = ["a", Text("b"), np.str_("é"), Text("😀" * 20), np.str_("c" * 20)]
    frame = pd.DataFrame({"s": slots_of(values)}, dtype=object)
    found = longshore.sql("SELECT s FROM frame", frame=frame, return_type="arrow").column(0)
    assert found.to_pylist() == [str(value) for value in values]


def test_slots_anywhere() -> None:
    slots = slots_of([f"{row}é" for row in range(1000)])
    assert texts(slots[::-3]).to_pylist() == slots[::-3].tolist()
    records = np.zeros(3, dtype=[("flag", "u1"), ("v", "O")])
    records["v"] = ["a", None, "c" * 30]
    assert texts(records["v"]).to_pylist() == ["a", None, "c" * 30]


def test_texts_live_on_without_their_objects() -> None:
    slots = slots_of([f"text number {row}, and more" for row in range(1000)])
    expected = slots.tolist()
    made = texts(slots)
    slots[:] = None
    expected_texts = [f"{text}" for text in expected]
    del slots, expected
    assert made.to_pylist() == expected_texts


def test_texts_that_others_replace_meanwhile() -> None:
    expected = [f"{row}é" for row in range(20_000)]
    slots = slots_of(expected)
    with replaced(slots):
        for _ in range(20):
            assert texts(slots, chunk=500).to_pylist() == expected


def views(slots: Any, *, chunk: int = 1000, nan_is_null: bool = True) -> list[Any] | None:
    """Give what `sql` reads of a column of texts alone, or None."""
    made = _core.texts(slots, "v", nan_is_null=nan_is_null, chunk=chunk)
    if made is None:
        return None
    arrays = [pa.array(each) for each in made]
    assert [len(each) for each in arrays[:-1]] == [chunk] * (len(arrays) - 1)
    whole = pa.chunked_array(arrays, type=pa.string_view())
    whole.validate(full=True)
    return list(whole.to_pylist())


@pytest.mark.parametrize("chunk", [1, 7, 256, 100_000])
def test_texts_alone_are_views(chunk: int) -> None:
    values = [*SAMPLES, None, float("nan"), pd.NA, "a" * 3_000_000, Text("of another class"), *SAMPLES]
    expected = [value if isinstance(value, str) else None for value in values]
    assert views(slots_of(values), chunk=chunk) == expected


@pytest.mark.parametrize(
    "values", [[], [None, np.nan], [1, "a"], ["a"] * 5000 + [1], ["a", b"a"], ["a", "😀\udfff"], ["a", Text("\ud800")]]
)
def test_columns_that_are_not_of_texts_alone(values: list[Any]) -> None:
    assert views(slots_of(values)) is None


def test_a_nan_that_is_a_value() -> None:
    assert views(slots_of(["a", np.nan]), nan_is_null=False) is None


CONDITIONS = [
    "s = 'tug 7'",
    "s > 'tug 5'",
    "s IN ('tug 7', 'a tug that is longer 11')",
    "s IS NULL",
    "s LIKE '%longer 1%'",
    "s BETWEEN 'a' AND 'tug'",
    "s IS DISTINCT FROM 'tug 7'",
    "s IN (SELECT s FROM frame WHERE row % 1000 = 3)",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_engine_filters_them_as_it_does_other_texts(condition: str) -> None:
    texts = [
        None if row % 11 == 0 else f"{'a tug that is longer' if row % 2 else 'tug'} {row % 13}"
        for row in range(300_000)
    ]
    frame = pd.DataFrame({"row": range(len(texts)), "s": pd.Series(texts, dtype=object)})
    table = pa.table({"row": range(len(texts)), "s": pa.array(texts, pa.string())})
    query = f"SELECT count(*) AS n, sum(row) AS rows, min(s) AS least FROM frame WHERE {condition}"
    found = longshore.sql(query, frame=frame, return_type="arrow")
    assert found.to_pylist() == longshore.sql(query, frame=table, return_type="arrow").to_pylist()


def test_the_engine_reads_them_twice() -> None:
    frame = pd.DataFrame({"s": pd.Series(["a", "b" * 20, "é", None], dtype=object)})
    found = longshore.sql("SELECT a.s FROM frame a JOIN frame b USING (s) ORDER BY s", frame=frame, return_type="arrow")
    assert found.column(0).to_pylist() == ["a", "b" * 20, "é"]


def test_a_surrogate_is_named_by_its_row() -> None:
    frame = pd.DataFrame({"s": pd.Series(["a"] * 200_000 + ["\ud800"], dtype=object)})
    with pytest.raises(longshore.DataError, match='column "s", row 200000: the text holds a lone surrogate'):
        longshore.sql("SELECT min(s) FROM frame", frame=frame)


def test_another_type_is_named_by_its_row() -> None:
    frame = pd.DataFrame({"s": pd.Series(["a"] * 200_000 + [1], dtype=object)})
    with pytest.raises(longshore.DataError, match='column "s", row 200000: it is an int, while row 0 is a str'):
        longshore.sql("SELECT min(s) FROM frame", frame=frame)
    found = longshore.sql(
        "SELECT min(s) AS s FROM frame", frame=frame, options={"objects": "text"}, return_type="arrow"
    )
    assert found.column(0).to_pylist() == ["1"]
