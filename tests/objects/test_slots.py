"""Arrays of objects, wherever their slots lie, and whatever becomes of them."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import longshore
from longshore import _core
from tests.objects.given import column, replaced, slots_of

pytestmark = [pytest.mark.packages, pytest.mark.pythons]


def objects(slots: Any) -> _core.Objects:
    return _core.Objects(slots, "v", nan_is_null=True, as_text=False)


def read(slots: Any) -> Any:
    return pa.array(objects(slots).array(0, len(slots))).to_pylist()


def test_views() -> None:
    slots = np.array(["a", "é", None, 7 * "b", ""], dtype=object)
    assert read(slots[::-2]) == ["", None, "a"]
    assert read(slots[1:1]) == []
    slots.flags.writeable = False
    assert read(slots) == ["a", "é", None, "b" * 7, ""]


def test_fields_at_any_address() -> None:
    records = np.zeros(3, dtype=[("flag", "u1"), ("v", "O")])
    records["v"] = ["a", None, "c"]
    assert records["v"].strides == (9,)
    assert read(records["v"]) == ["a", None, "c"]


@pytest.mark.parametrize(
    "values", [[1], np.array([1]), np.array([["a"]], dtype=object), np.array("a", dtype=object), "text", None]
)
def test_what_is_no_array_of_objects(values: Any) -> None:
    with pytest.raises(longshore.InterfaceError, match="not a one-dimensional NumPy array of objects"):
        objects(values)


@pytest.mark.parametrize("replaced", ["a", 1, {"a": 1}])
def test_an_array_that_changes(replaced: Any) -> None:
    slots = np.array([replaced] * 3, dtype=object)
    changing = objects(slots)
    slots[2] = 0.5
    assert len(changing.array(0, 2)) == 2
    with pytest.raises(longshore.DataError, match='column "v", row 2: the object was changed while it was read'):
        changing.array(0, 3)


def test_an_array_that_shrinks() -> None:
    slots = np.array(["a"] * 3, dtype=object)
    shrinking = objects(slots)
    slots.resize(2, refcheck=False)
    with pytest.raises(longshore.DataError, match="the object was changed while it was read"):
        shrinking.array(0, 3)


def test_texts_that_others_replace_while_they_are_copied() -> None:
    expected = [f"{row}é" for row in range(50_000)]
    slots = slots_of(expected)
    replacing = objects(slots)
    with replaced(slots):
        for _ in range(10):
            assert pa.array(replacing.array(0, len(slots))).to_pylist() == expected


def test_a_slice_begins_before_it_ends() -> None:
    assert len(column(["a", "b"]).array(2, 1)) == 0
    assert len(column([1, 2]).array(5, 9)) == 0
