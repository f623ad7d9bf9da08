"""Rows of Python objects, as lists: each becomes a row, whatever its form."""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest

import longshore

pytestmark = pytest.mark.packages


def rows(url: str, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = longshore.read_sql(
        f"SELECT * FROM {table} ORDER BY 1", url, return_type="arrow"
    ).to_pylist()
    return found


@dataclass
class Boat:
    """A boat."""

    berth: int
    name: str | None = None


class Pair(NamedTuple):
    """A berth and a name."""

    berth: int
    name: str | None


class Other(NamedTuple):
    """The same under other names."""

    a: int
    b: str | None


ROWS: dict[str, tuple[Any, list[str] | None]] = {
    "dicts": ([{"berth": 1, "name": "Ada"}, {"berth": 2}], None),
    "dicts in another order": ([{"name": "Ada", "berth": 1}, {"berth": 2}], ["berth", "name"]),
    "dicts, of which one has a new key": ([{"berth": 2}, {"berth": 1, "name": "Ada"}], None),
    "tuples": ([(1, "Ada"), (2, None)], ["berth", "name"]),
    "lists": ([[1, "Ada"], [2, None]], ["berth", "name"]),
    "a tuple of tuples": (((1, "Ada"), (2, None)), ["berth", "name"]),
    "named tuples": ([Pair(1, "Ada"), Pair(2, None)], None),
    "named tuples under other names": (
        [Other(1, "Ada"), Other(2, None)],
        ["berth", "name"],
    ),
    "dataclasses": ([Boat(1, "Ada"), Boat(2)], None),
    "dataclasses and dicts": ([Boat(1, "Ada"), {"berth": 2}], None),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_every_form(url: str, harbour: str, name: str) -> None:
    data, columns = ROWS[name]
    assert longshore.write_sql(data, f"{harbour}.t", url, columns=columns) == 2
    assert rows(url, f"{harbour}.t") == [{"berth": 1, "name": "Ada"}, {"berth": 2, "name": None}]


def test_no_rows_with_columns_are_an_empty_table(url: str, harbour: str) -> None:
    for table, data in (("a", []), ("b", ())):
        assert longshore.write_sql(data, f"{harbour}.{table}", url, columns=["berth", "name"]) == 0
        found = longshore.read_sql(f"SELECT * FROM {harbour}.{table}", url, return_type="arrow")
        assert found.column_names == ["berth", "name"]


def test_a_column_of_rows_has_the_one_type_of_all(url: str, harbour: str) -> None:
    data = [{"a": 2**62, "b": Decimal("1.50"), "c": [1, None]}, {"a": None, "b": 2, "c": None}]
    assert longshore.write_sql(data, f"{harbour}.t", url) == 2
    found = longshore.read_sql(f"SELECT * FROM {harbour}.t ORDER BY 1", url, return_type="arrow").to_pylist()
    assert found == [
        {"a": 2**62, "b": Decimal("1.50"), "c": [1, None]},
        {"a": None, "b": Decimal("2.00"), "c": None},
    ]


WRONG: dict[str, tuple[Callable[[], Any], list[str] | None, str]] = {
    "nothing": (list, None, "no rows.*\nHint: .*columns="),
    "tuples without names": (lambda: [(1, 2)], None, "no names.*\nHint: .*columns="),
    "dicts without keys": (lambda: [{}], None, "no columns"),
    "a tuple that is shorter": (lambda: [(1, 2), (3,)], ["a", "b"], "row 1 has 1 values.* 2 columns"),
    "a dict among tuples": (lambda: [(1,), {"a": 1}], ["a"], "row 1 is of type dict"),
    "a tuple among dicts": (lambda: [{"a": 1}, (1,)], None, "row 1 is of type tuple"),
    "another named tuple": (lambda: [Pair(1, None), (2, None)], None, "row 1 is of type tuple"),
    "a key beyond columns": (lambda: [{"a": 1}, {"b": 1}], ["a"], "'b'.*columns"),
    "keys that are one name": (lambda: [{1: 1, "1": 2}], None, "one name"),
    "an iterator of dicts": (lambda: iter([{"a": 1}]), None, r"single rows\nHint: give list\(rows\)"),
    "an iterator of tuples": (lambda: iter([(1, 2)]), None, r"single rows\nHint: give list\(rows\)"),
    "columns of a frame": (lambda: pd.DataFrame({"a": [1]}), ["b"], "columns is for a list of rows; DataFrame"),
    "columns of an iterator": (lambda: iter([(1,)]), ["b"], "columns is for a list of rows"),
    "columns that are one name": (lambda: [(1,)], "a", "columns is a list"),  # type: ignore[dict-item]
    "columns that are equal": (lambda: [(1, 2)], ["a", "a"], "columns is a list of different names"),
    "a list of numbers": (lambda: [1, 2], None, "int cannot be written"),
    "a Series without a name": (lambda: pd.Series([1]), None, r'no name.*\nHint: .*to_frame\("x"\)'),
    "a Series of polars without one": (lambda: pl.Series([1]), None, r'no name.*\nHint: .*to_frame\("x"\)'),
}


@pytest.mark.parametrize("name", WRONG)
def test_rows_that_are_refused(url: str, harbour: str, name: str) -> None:
    make, columns, said = WRONG[name]
    with pytest.raises(longshore.InterfaceError, match=said):
        longshore.write_sql(make(), f"{harbour}.t", url, columns=columns)


def test_an_index_of_rows(url: str, harbour: str) -> None:
    for kind, given in {"list": [{"a": 1}], "Series": pl.Series("a", [1])}.items():
        with pytest.raises(longshore.InterfaceError, match=f"{kind} has no index"):
            longshore.write_sql(given, f"{harbour}.t", url, index=True)


def test_a_series_is_one_column(url: str, harbour: str) -> None:
    index = pd.Index([7, 8], name="berth")
    assert longshore.write_sql(pd.Series([1, 2], index, name="n"), f"{harbour}.t", url, index=True) == 2
    assert rows(url, f"{harbour}.t") == [{"berth": 7, "n": 1}, {"berth": 8, "n": 2}]
    assert longshore.write_sql(pl.Series("n", [1, None]), f"{harbour}.u", url) == 2
    assert rows(url, f"{harbour}.u") == [{"n": 1}, {"n": None}]
    assert longshore.write_sql(pl.Series("n", [{"a": 1}]), f"{harbour}.v", url) == 1
    found = longshore.read_sql(f"SELECT n FROM {harbour}.v", url, return_type="arrow")
    assert found.to_pylist() == [{"n": '{"a":1}'}]


class Cargo(enum.Enum):
    """Texts and None."""

    COAL = "coal"
    SALT = "salt"
    NONE = None


class Berth(enum.IntEnum):
    """Integers."""

    NORTH = 1


class Mark(enum.StrEnum):
    """Texts that are str."""

    RED = "red"


class Mixed(enum.Enum):
    """Values of several types."""

    A = 1
    B = "b"


class Endless(enum.Enum):
    """A member whose value is a member."""

    A = 1

    @property
    def value(self) -> Any:
        """Give a member again."""
        return self


MEMBERS: dict[str, tuple[list[Any], list[Any]]] = {
    "texts": ([Cargo.COAL, Cargo.SALT, None, "sand"], ["coal", "salt", None, "sand"]),
    "a member that is None": ([Cargo.COAL, Cargo.NONE, None, "sand"], ["coal", None, None, "sand"]),
    "integers": ([Berth.NORTH, 2, None, 3], [1, 2, None, 3]),
    "str": ([Mark.RED, None, None, "x"], ["red", None, None, "x"]),
    "in lists": ([[Cargo.COAL], [Cargo.NONE, "x"], None, []], [["coal"], [None, "x"], None, []]),
    "in dicts": (
        [{"k": Cargo.COAL}, {"k": Cargo.NONE}, None, None],
        ['{"k":"coal"}', '{"k":null}', None, None],
    ),
    "in documents": (
        [{"k": Cargo.COAL}, {"k": [1, Berth.NORTH]}, None, None],
        ['{"k":"coal"}', '{"k":[1,1]}', None, None],
    ),
}


@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize("form", ["pandas", "dict", "rows"])
def test_enum_members_are_their_values(url: str, harbour: str, name: str, form: str) -> None:
    given, expected = MEMBERS[name]
    data: Any = {"n": list(range(4)), "v": given}
    if form == "pandas":
        data["v"] = pd.Series(given, dtype=object)
        data = pd.DataFrame(data)
    elif form == "rows":
        data = [{"n": n, "v": v} for n, v in enumerate(given)]
    assert longshore.write_sql(data, f"{harbour}.t", url) == 4
    assert [row["v"] for row in rows(url, f"{harbour}.t")] == expected


def test_enum_members_of_several_types(url: str, harbour: str) -> None:
    with pytest.raises(longshore.DataError) as caught:
        longshore.write_sql({"v": [Mixed.A, Mixed.B]}, f"{harbour}.t", url)
    assert caught.value.column == "v"
    with pytest.raises(longshore.DataError, match="a member again"):
        longshore.write_sql({"v": [Endless.A]}, f"{harbour}.t", url)
    assert longshore.write_sql({"v": [Mixed.A, Mixed.B]}, f"{harbour}.t", url, options={"objects": "text"}) == 2
    assert rows(url, f"{harbour}.t") == [{"v": "1"}, {"v": "b"}]


def test_sql_takes_enum_members() -> None:
    found = longshore.sql("SELECT v FROM t", t=[{"v": Cargo.COAL}], return_type="arrow")
    assert found.to_pylist() == [{"v": "coal"}]


def test_a_structured_array_is_rows(url: str, harbour: str) -> None:
    data = np.array([(1, "Ada")], dtype=[("berth", "i4"), ("name", "U9")])
    assert longshore.write_sql(data, f"{harbour}.t", url) == 1
    assert rows(url, f"{harbour}.t") == [{"berth": 1, "name": "Ada"}]
