"""Lists and dicts: lists, structs over all keys, and JSON where there is no one type."""

import collections
import datetime as dt
import json
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.objects.given import arrow, column, extension, plain, values_of

pytestmark = [pytest.mark.packages, pytest.mark.pythons]

JSON = pa.large_string()


def struct(**fields: Any) -> pa.StructType:
    return pa.struct(list(fields.items()))


#: Objects, their type, and what they are in Arrow.
CASES: dict[str, tuple[list[Any], Any, list[Any]]] = {
    "lists": ([[1], [], None, (2, None)], pa.list_(pa.int64()), [[1], [], None, [2, None]]),
    "lists of nothing": ([[], [None]], pa.list_(pa.null()), [[], [None]]),
    "lists of lists": ([[[1.5], []], [[2]]], pa.list_(pa.list_(pa.float64())), [[[1.5], []], [[2.0]]]),
    "NaN in a list": ([[1, float("inf")]], pa.list_(pa.float64()), [[1.0, float("inf")]]),
    "arrays": (
        [np.array([1, 2], "i4"), np.array([], "u1")], pa.list_(pa.int64()), [[1, 2], []],
    ),
    "an array of floats": ([np.array([0.5], "f4")], pa.list_(pa.float64()), [[0.5]]),
    "an array of two dimensions": (
        [np.eye(2, dtype=bool)], pa.list_(pa.list_(pa.bool_())), [[[True, False], [False, True]]],
    ),
    "an array of objects": ([np.array(["a", None], object)], pa.list_(pa.string()), [["a", None]]),
    "an array of timestamps": (
        [np.array(["2026-01-31T00:00:00", "NaT"], "M8[ns]")],
        pa.list_(pa.timestamp("us")),
        [[dt.datetime.fromisoformat("2026-01-31"), None]],
    ),
    "a masked array": ([np.ma.masked_array([1, 2], [False, True])], pa.list_(pa.int64()), [[1, None]]),
    "dicts": (
        [{"a": 1, "b": "x"}, {"b": "y", "a": 2}],
        struct(a=pa.int64(), b=pa.string()),
        [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}],
    ),
    "ragged dicts": (
        [{"a": 1}, None, {"b": {"c": [1, None]}}, {}, {"b": {"d": 0.5, "c": [0.5]}, "a": 1.5}],
        struct(a=pa.float64(), b=struct(c=pa.list_(pa.float64()), d=pa.float64())),
        [
            {"a": 1.0, "b": None},
            None,
            {"a": None, "b": {"c": [1.0, None], "d": None}},
            {"a": None, "b": None},
            {"a": 1.5, "b": {"c": [0.5], "d": 0.5}},
        ],
    ),
    "dicts of classes": (
        [collections.OrderedDict(a=1), collections.defaultdict(int, a=2), collections.Counter("a")],
        struct(a=pa.int64()),
        [{"a": 1}, {"a": 2}, {"a": 1}],
    ),
    "lists of dicts": (
        [[{"a": 1}, {"b": uuid.UUID(int=1)}], [None]],
        pa.list_(struct(a=pa.int64(), b=pa.binary(16))),
        [[{"a": 1, "b": None}, {"a": None, "b": uuid.UUID(int=1).bytes}], [None]],
    ),
    "keys that are other objects": (
        [json.loads('{"key": 1, "other": 2}'), json.loads('{"other": 3, "key": 4}')],
        struct(key=pa.int64(), other=pa.int64()),
        [{"key": 1, "other": 2}, {"key": 4, "other": 3}],
    ),
    "a leaf of several types": (
        [
            {"a": {"b": 1}, "c": 1},
            {"a": {"b": "x\n"}, "c": 2},
            {"a": {"b": None}},
            {"a": {"b": [True, {"d": 0.1}]}},
            {"a": {}},
        ],
        struct(a=struct(b=JSON), c=pa.int64()),
        [
            {"a": {"b": "1"}, "c": 1},
            {"a": {"b": '"x\\u000a"'}, "c": 2},
            {"a": {"b": None}, "c": None},
            {"a": {"b": '[true,{"d":0.1}]'}, "c": None},
            {"a": {"b": None}, "c": None},
        ],
    ),
    "a leaf of an integer that no float holds": (
        [{"a": 2**53 + 1}, {"a": 0.5}], struct(a=JSON), [{"a": "9007199254740993"}, {"a": "0.5"}],
    ),
    "a leaf of a very large integer": ([[2**200]], pa.list_(JSON), [[str(2**200)]]),
    "rows of several types": ([{"a": 1}, [1, None], 5, None, "x"], JSON, ['{"a":1}', "[1,null]", "5", None, '"x"']),
    "dicts without keys": ([{}, None], JSON, ["{}", None]),
    "keys that differ in case": ([{"a": 1}, {"A": 2, "a": "x"}], JSON, ['{"a":1}', '{"A":2,"a":"x"}']),
    "a key without a name": ([{"": 1}], JSON, ['{"":1}']),
    "keys that differ in the case of other letters": (
        [{"ä": 1, "Ä": 2}], pa.struct([("ä", pa.int64()), ("Ä", pa.int64())]), [{"ä": 1, "Ä": 2}],
    ),
    "a dict next to a list in a dict": ([{"a": {}}, {"a": []}], struct(a=JSON), [{"a": "{}"}, {"a": "[]"}]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_nested_objects_are_what_they_are(name: str) -> None:
    values, kind, expected = CASES[name]
    field, array = arrow(*values)
    assert plain(field.type) == kind
    assert repr(values_of(array)) == repr(expected)
    array.validate(full=True)


def test_json_says_what_it_is() -> None:
    assert extension(arrow({}, [])[0]) == "arrow.json"
    assert extension(arrow({"a": 1}, {"a": "x"})[0].type.field(0)) == "arrow.json"


def test_many_keys_are_json() -> None:
    thousand = [{f"k{key}": key} for key in range(1000)]
    assert arrow(*thousand)[0].type.num_fields == 1000
    field, array = arrow(*thousand, {"one more": 1.5, "k0": None})
    assert extension(field) == "arrow.json"
    assert [json.loads(text) for text in values_of(array)] == [*thousand, {"one more": 1.5, "k0": None}]


def test_each_slice_has_all_keys() -> None:
    values = [{f"k{row % 5}": row} for row in range(20)]
    objects = column(values)
    for start in range(0, 20, 3):
        found = pa.array(objects.array(start, start + 3)).to_pylist()
        assert [{key: value for key, value in row.items() if value is not None} for row in found] == values[
            start : start + 3
        ]
        assert all(list(row) == [f"k{key}" for key in range(5)] for row in found)


class Meddler(dt.tzinfo):
    """A time zone that does something whenever it is asked."""

    def __init__(self, work: Any) -> None:
        """Remember what to do."""
        self.work = work

    def utcoffset(self, _at: object) -> dt.timedelta:
        """Do it."""
        self.work()
        return dt.timedelta(0)

    def dst(self, _at: object) -> None:
        """Know of no summer."""

    def tzname(self, _at: object) -> str:
        """Have a name."""
        return "meddler"


def test_a_dict_that_changes_while_it_is_read() -> None:
    changing: dict[str, Any] = {}
    meddler = Meddler(lambda: changing.update({f"k{len(changing)}": len(changing)}))
    changing |= {"at": dt.datetime(2026, 1, 1, tzinfo=meddler), "k1": 1}
    objects = column([changing])
    assert [field.name for field in pa.field(objects).type] == ["at", "k1"]
    with pytest.raises(Exception, match=r'column "v", row 0: the object was changed while it was read'):
        objects.array(0, 1)


def test_a_list_that_changes_while_it_is_read() -> None:
    changing: list[Any] = []
    meddler = Meddler(changing.clear)
    changing += [dt.datetime(2026, 1, 1, tzinfo=meddler)] * 3
    assert arrow(changing)[1].to_pylist() == [[]]
