"""Python objects, from frames and from dicts of lists, in a database."""

import json
import uuid
from typing import Any

import numpy as np
import pandas as pd
import pytest

import longshore

pytestmark = pytest.mark.packages

EVENTS = [
    {"kind": "load", "metadata": {"x": 1, "tags": ["a", None]}},
    {"metadata": {"x": 2**53 + 1, "by": uuid.UUID(int=1)}, "extra": [2**70, 0.1, "x", {"y": None}]},
    None,
    {"kind": None, "extra": {"z": [True]}},
]
#: The same, with all keys in each.
WRITTEN = [
    {"kind": "load", "metadata": {"x": 1, "tags": ["a", None], "by": None}, "extra": None},
    {
        "kind": None,
        "metadata": {"x": 2**53 + 1, "tags": None, "by": str(uuid.UUID(int=1))},
        "extra": [2**70, 0.1, "x", {"y": None}],
    },
    None,
    {"kind": None, "metadata": None, "extra": {"z": [True]}},
]


def events(column: Any) -> dict[str, Any]:
    return {
        "pandas": pd.DataFrame({"n": range(4), "event": column}),
        "a dict": {"n": np.arange(4), "event": column},
    }


@pytest.mark.parametrize("given", ["pandas", "a dict"])
@pytest.mark.parametrize("native", ["json", "jsonb"])
def test_ragged_dicts_are_documents(url: str, harbour: str, given: str, native: str) -> None:
    types = {"event": native} if native == "jsonb" else None
    assert longshore.write_sql(events(EVENTS)[given], f"{harbour}.t", url, types=types) == 4
    found = longshore.read_sql(f"SELECT event::text FROM {harbour}.t ORDER BY n", url, return_type="arrow")
    assert [text and json.loads(text) for text in found["event"].to_pylist()] == WRITTEN
    query = f"SELECT (event->'metadata'->>'x')::bigint AS x, event->'extra'->>0 AS extra FROM {harbour}.t ORDER BY n"
    rows = longshore.read_sql(query, url, return_type="arrow").to_pylist()
    assert rows == [
        {"x": 1, "extra": None},
        {"x": 2**53 + 1, "extra": str(2**70)},
        {"x": None, "extra": None},
        {"x": None, "extra": None},
    ]


def test_rows_of_several_shapes_are_documents(url: str, harbour: str) -> None:
    frame = pd.DataFrame({"n": range(4), "v": [{"a": 1}, [1, None], 5, None]})
    longshore.write_sql(frame, f"{harbour}.t", url)
    found = longshore.read_sql(
        f"SELECT v, pg_typeof(v)::text AS kind FROM {harbour}.t ORDER BY n", url, return_type="arrow"
    )
    assert found["v"].to_pylist() == ['{"a":1}', "[1,null]", "5", None]
    assert set(found["kind"].to_pylist()) == {"json"}


def test_an_error_counts_rows_over_all_slices(url: str, harbour: str) -> None:
    values = [{"a": [1]}] * 200_000 + [{"a": [{1}]}]
    with pytest.raises(longshore.DataError, match=r"at \.a\[\]: its Python type has no Arrow type") as caught:
        longshore.write_sql(pd.DataFrame({"v": values}), f"{harbour}.t", url)
    assert (caught.value.column, caught.value.row) == ("v", 200_000)


def test_rows_of_several_slices(url: str, harbour: str) -> None:
    values = [None if row % 3 == 0 else "é" * (row % 5) for row in range(300_000)]
    frame = pd.DataFrame({"n": range(300_000), "v": pd.Series(values, dtype=object)})
    assert longshore.write_sql(frame, f"{harbour}.t", url) == 300_000
    found = longshore.read_sql(f"SELECT v FROM {harbour}.t ORDER BY n", url, return_type="arrow")
    assert found["v"].to_pylist() == values
