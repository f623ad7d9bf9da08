"""Objects that have no exact form are errors that name row and path, and say what to do."""

import datetime as dt
import decimal
import uuid
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import longshore
from tests.objects.given import arrow, column

pytestmark = [pytest.mark.packages, pytest.mark.pythons]

DAY = dt.date(2026, 1, 1)
NAIVE = dt.datetime.fromisoformat("2026-01-01 05:00")
AWARE = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SPAN = np.timedelta64(2**62, "W")


def _without_a_unit() -> "np.timedelta64":
    with warnings.catch_warnings():
        # NumPy 2.5 deprecates it, and people still have it.
        warnings.simplefilter("ignore", DeprecationWarning)
        return np.timedelta64(1)


class Far(dt.datetime):
    """A datetime that tells a day so far away that its microseconds have no room in 64 bits."""

    def toordinal(self) -> int:
        """Give the farthest day of 32 bits."""
        return 2**31 - 1


class Border(dt.datetime):
    """A datetime whose own clock has room in 64 bits, and UTC's has none."""

    def toordinal(self) -> int:
        """Give the last day of 64 bits of microseconds."""
        return 719_163 + 106_751_991

    def utcoffset(self) -> dt.timedelta:
        """Give so much that UTC is the day after."""
        return dt.timedelta(days=-1)


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def endless() -> list[Any]:
    value: list[Any] = []
    value.append({"a": value})
    return value


#: Objects, and what the error says after the column's name.
REFUSED: dict[str, tuple[Callable[[], list[Any]], str]] = {
    "a day beyond 64 bits": (lambda: [Far(2026, 1, 1)], "row 0: it is beyond what Arrow's 64 bits"),
    "an instant beyond 64 bits": (lambda: [Border(2026, 1, 1, tzinfo=dt.UTC)], "row 0: it is beyond what Arrow's"),
    "an int and a text": (lambda: [None, 1, 2, "x"], "row 3: it is a str, while row 1 is an int"),
    "a bool and an int": (lambda: [1, True], "row 1: it is a bool, while row 0 is an int"),
    "a text and bytes": (lambda: ["a", b"a"], "row 1: it is bytes, while row 0 is a str"),
    "a date and a datetime": (lambda: [DAY, NAIVE], "row 1: it is a datetime without"),
    "a naive and an aware datetime": (lambda: [NAIVE, AWARE], "row 1: it is a datetime with a time zone"),
    "a decimal and a float": (lambda: [decimal.Decimal(1), 0.5], "row 1: it is a float, while row 0 is a Decimal"),
    "a uuid and a text": (lambda: [uuid.UUID(int=1), "x"], "row 1: it is a str"),
    "an integer that no float holds": (lambda: [0.5, 1, 2**53 + 1], "row 2: the column also holds floats"),
    "an integer of 129 bits": (lambda: [1, 2**128], "row 1: the integer has more than 128 bits"),
    "an integer of many digits": (lambda: [10**5000], "row 0: the integer has more than 128 bits"),
    "an infinite decimal": (lambda: [1, decimal.Decimal("-Infinity")], "row 1: NaN and infinity"),
    "a decimal of 77 digits": (lambda: [decimal.Decimal(0), decimal.Decimal("1e76")], "row 1: the decimals have"),
    "decimals of 77 digits together": (
        lambda: [decimal.Decimal("1e50"), decimal.Decimal("1e-26")], "row 1: the decimals have",
    ),
    "nanoseconds of one": (lambda: [pd.Timestamp("2026-01-01 00:00:00.000000001")], "row 0: it has nanoseconds"),
    "nanoseconds of a span": (lambda: [pd.Timedelta(1, "ns")], "row 0: it has nanoseconds"),
    "nanoseconds of NumPy": (lambda: [np.datetime64(1, "ns")], "row 0: it has nanoseconds"),
    "attoseconds of NumPy": (lambda: [np.timedelta64(1, "as")], "row 0: it has nanoseconds"),
    "a long span": (lambda: [dt.timedelta.max], "row 0: it is beyond"),
    "a span of NumPy's years": (lambda: [np.timedelta64(1, "Y")], "row 0: NumPy's span"),
    "a span of NumPy's without a unit": (lambda: [_without_a_unit()], "row 0: NumPy's span"),
    "a long span of NumPy's": (lambda: [SPAN], "row 0: it is beyond"),
    "a late timestamp of NumPy's": (lambda: [np.datetime64(2**62, "s")], "row 0: it is beyond"),
    "a late year of NumPy's": (lambda: [np.datetime64(2**62, "Y")], "row 0: it is beyond"),
    "a late day of NumPy's": (lambda: [np.datetime64(2**40, "D")], "row 0: the day is beyond"),
    "a time with a zone": (lambda: [dt.time(1, tzinfo=dt.UTC)], "row 0: the time has a time zone"),
    "a large interval": (lambda: [longshore.Interval(2**31, 0, 0)], "row 0: the interval's months"),
    "a lone surrogate": (lambda: ["a", "\ud800"], "row 1: the text holds a lone surrogate"),
    "a lone surrogate in a key": (lambda: [{"a": {"\ud800": 1}}], "row 0: at .a: the text holds a lone surrogate"),
    "a zero byte in a key": (lambda: [{}, {"a": [{"b\0": 1}]}], 'row 1: at .a[]: the key "b\\0" has a zero byte'),
    "a key, not text": (lambda: [{"a": {1: 2}}], "row 0: at .a: a key of the dict is not a str, but of type int"),
    "an unknown type": (lambda: [None, {"a": [object()]}], "row 1: at .a[]: its Python type has no Arrow type"),
    "a set": (lambda: [{1}], "row 0: its Python type has no Arrow type"),
    "a complex number": (lambda: [1j], "row 0: its Python type has no Arrow type"),
    "a long double": (lambda: [np.longdouble(1)], "row 0: its Python type has no Arrow type"),
    "a structured array": (lambda: [np.zeros(1, "i4,i4")], "row 0: the NumPy array has no dimension"),
    "61 levels": (lambda: [deep(61)], "row 0: at " + "[]" * 60 + ": it is nested more than 60 levels deep"),
    "a list that contains itself": (lambda: [1, endless()], "row 1: at [].a[].a"),
    "a date next to a text in dicts": (
        lambda: [{"a": {"b": "x"}}, {"a": {"b": DAY}}], "row 1: at .a.b: a date has no form in JSON",
    ),
    "a decimal next to a text in lists": (
        lambda: [["x"], [None, decimal.Decimal(1)]], "row 1: at []: a Decimal has no form in JSON",
    ),
    "NaN next to a text in dicts": (lambda: [{"a": "x"}, {"a": float("nan")}], "row 1: at .a: JSON has no NaN"),
    "bytes below what is JSON": (lambda: [{"a": 1}, [{"b": b"x"}]], "row 1: at [].b: bytes has no form in JSON"),
    "bytes under keys that differ in case": (lambda: [{"a": 1, "A": b""}], "row 0: at .A: bytes has no form in JSON"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_exact_form_is_refused(name: str) -> None:
    make, says = REFUSED[name]
    with pytest.raises(longshore.DataError) as caught:
        arrow(*make())
    assert str(caught.value).startswith(f'column "v", {says}')
    assert caught.value.column == "v"
    assert caught.value.row == int(says.split()[1].strip(":"))
    assert caught.value.hint is not None


def test_60_levels_are_read() -> None:
    assert arrow(deep(60))[1].to_pylist() == [deep(60)]


def test_a_nan_is_no_text() -> None:
    with pytest.raises(longshore.DataError, match="row 1: it is a float"):
        arrow("a", float("nan"), nan_is_null=False)


def test_no_text_of_a_lone_surrogate() -> None:
    objects = column([1, "\ud800"], as_text=True)
    with pytest.raises(longshore.DataError, match=r'column "v", row 1: the text holds a lone surrogate'):
        objects.array(0, 2)
