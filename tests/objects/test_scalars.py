"""Objects of one type each, exactly."""

import datetime as dt
import enum
import uuid
import zoneinfo
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import longshore
from tests.objects.given import arrow, column, extension, plain, values_of

pytestmark = [pytest.mark.packages, pytest.mark.pythons]

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
FIRST = dt.datetime.fromisoformat("0001-01-01")
NOON = dt.datetime.fromisoformat("2026-01-31 12:00:00.000001")
TIMESTAMPS = pa.timestamp("us")
# The zone that pyarrow gives is of another class on its older versions.
UTC = pa.array([0], pa.timestamp("us", "UTC")).to_pylist()[0].tzinfo
INSTANTS = pa.timestamp("us", "UTC")


class Kind(enum.IntEnum):
    """Integers with names."""

    ONE = 1


class Word(enum.StrEnum):
    """Texts with names."""

    A = "a"


class Text(str):
    """A text that shows itself otherwise."""

    __slots__ = ()

    def __str__(self) -> str:
        """Show something else."""
        return "other"


class Number(int):
    """An integer that shows itself otherwise."""

    def __repr__(self) -> str:
        """Show something else."""
        return "7"


class Money(Decimal):
    """A decimal that shows itself otherwise."""

    __slots__ = ()

    def __str__(self) -> str:
        """Show something else."""
        return "7 guilders"


#: Objects, their type, and what they are in Arrow.
CASES: dict[str, tuple[list[Any], Any, list[Any]]] = {
    "nothing": ([None, pd.NA, pd.NaT, float("nan")], pa.null(), [None] * 4),
    "no rows": ([], pa.null(), []),
    "bools": ([True, None, np.bool_(0)], pa.bool_(), [True, None, False]),
    "integers": ([1, -(2**63), 2**63 - 1], pa.int64(), [1, -(2**63), 2**63 - 1]),
    "large integers": ([0, 2**64 - 1, np.uint64(2**63)], pa.uint64(), [0, 2**64 - 1, 2**63]),
    "larger integers": ([-1, 2**64], pa.decimal128(38, 0), [Decimal(-1), Decimal(2**64)]),
    "largest integers": ([2**127 - 1, -(2**127)], pa.decimal256(76, 0), [Decimal(2**127 - 1), Decimal(-(2**127))]),
    "large integers of a class": ([Number(2**70)], pa.decimal128(38, 0), [Decimal(2**70)]),
    "integers of NumPy": ([np.int8(-1), np.uint32(2**32 - 1), 5], pa.int64(), [-1, 2**32 - 1, 5]),
    "integers of a class": ([Kind.ONE, 2], pa.int64(), [1, 2]),
    "floats": ([0.1, -0.0, float("inf"), float("nan")], pa.float64(), [0.1, -0.0, float("inf"), None]),
    "floats of NumPy": ([np.float64(0.1), np.float32(0.5), np.float16(2)], pa.float64(), [0.1, 0.5, 2.0]),
    "integers next to floats": ([1, 0.5, 2**53, 2**60], pa.float64(), [1.0, 0.5, 2.0**53, 2.0**60]),
    "texts": (["a", None, "", "é", "😀", "\0"], pa.string(), ["a", None, "", "é", "😀", "\0"]),
    "texts of classes": ([Text("a"), Word.A, np.str_("b")], pa.string(), ["a", "a", "b"]),
    "a text next to NaN": (["a", float("nan"), np.float32("nan")], pa.string(), ["a", None, None]),
    "bytes": (
        [b"a\0", bytearray(b"b"), memoryview(b"cd")[1:], np.bytes_(b"e")], pa.binary(), [b"a\0", b"b", b"d", b"e"],
    ),
    "decimals": (
        [Decimal("1.50"), Decimal(-100), None, Decimal("NaN")],
        pa.decimal128(5, 2),
        [Decimal("1.50"), Decimal("-100.00"), None, None],
    ),
    "decimals of a class": ([Money("1.50"), Decimal(2)], pa.decimal128(3, 2), [Decimal("1.50"), Decimal("2.00")]),
    "decimals with exponents": (
        [Decimal("1E+2"), Decimal("5E-3")], pa.decimal128(6, 3), [Decimal("100.000"), Decimal("0.005")],
    ),
    "long decimals": ([Decimal("1" * 39)], pa.decimal256(39, 0), [Decimal("1" * 39)]),
    "integers next to decimals": ([12345, Decimal("0.5")], pa.decimal128(6, 1), [Decimal("12345.0"), Decimal("0.5")]),
    "zero": ([Decimal(0)], pa.decimal128(1, 0), [Decimal(0)]),
    "dates": ([dt.date.min, dt.date.max], pa.date32(), [dt.date.min, dt.date.max]),
    "days of NumPy": (
        [np.datetime64("2026-01-31"), np.datetime64("NaT", "D")],
        pa.date32(),
        [dt.date(2026, 1, 31), None],
    ),
    "datetimes": ([NOON, FIRST, pd.NaT], TIMESTAMPS, [NOON, FIRST, None]),
    "datetimes of pandas": ([pd.Timestamp(NOON)], TIMESTAMPS, [NOON]),
    "datetimes of NumPy": (
        [np.datetime64("2026-01-31T12:00:00.000001", "ns"), np.datetime64("2026-01", "M"), np.datetime64("NaT", "s")],
        TIMESTAMPS,
        [NOON, dt.datetime.fromisoformat("2026-01-01"), None],
    ),
    "instants": (
        [NOON.replace(tzinfo=dt.UTC), dt.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=BERLIN)],
        INSTANTS,
        [NOON.replace(tzinfo=UTC), dt.datetime(2026, 10, 25, 1, 30, tzinfo=UTC)],
    ),
    "instants of pandas": (
        [pd.Timestamp("2026-06-01", tz="Europe/Berlin")], INSTANTS, [dt.datetime(2026, 5, 31, 22, tzinfo=UTC)],
    ),
    "times": ([dt.time.min, dt.time.max], pa.time64("us"), [dt.time.min, dt.time.max]),
    "spans": (
        [dt.timedelta(-1, microseconds=1), pd.Timedelta(1, "s"), np.timedelta64(3, "D"), np.timedelta64("NaT", "s")],
        pa.duration("us"),
        [dt.timedelta(days=-1, microseconds=1), dt.timedelta(seconds=1), dt.timedelta(days=3), None],
    ),
    "uuids": ([uuid.UUID(int=5), None], pa.binary(16), [uuid.UUID(int=5).bytes, None]),
    "intervals": (
        [longshore.Interval(1, -2, 3)], pa.month_day_nano_interval(), [pa.MonthDayNano([1, -2, 3])],
    ),
    "NaT among texts": (["a", np.datetime64("NaT", "D"), np.timedelta64("NaT", "ns")], pa.string(), ["a", None, None]),
    "NaT among bytes": ([np.datetime64("NaT", "D"), b"a"], pa.binary(), [None, b"a"]),
    "NaT among texts in lists": ([["a", np.timedelta64("NaT", "ns")]], pa.list_(pa.string()), [["a", None]]),
    "NaT alone": ([np.datetime64("NaT", "D"), np.timedelta64("NaT", "ns")], pa.null(), [None, None]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_objects_keep_type_and_value(name: str) -> None:
    values, kind, expected = CASES[name]
    field, array = arrow(*values)
    assert (plain(field.type), field.name, field.nullable) == (kind, "v", True)
    assert array.type == field.type
    # A representation tells -0.0 from 0.0, and True from 1.
    assert repr(values_of(array)) == repr(expected)


def test_a_uuid_says_what_it_is() -> None:
    assert extension(arrow(uuid.UUID(int=1))[0]) == "arrow.uuid"


def test_nan_is_a_value_where_it_is_not_null() -> None:
    assert repr(arrow(float("nan"), 1.5, None, nan_is_null=False)[1].to_pylist()) == "[nan, 1.5, None]"


def test_texts_on_request() -> None:
    values = [1, "x", None, [1, "a"], 0.5, float("nan"), uuid.UUID(int=0)]
    field, array = arrow(*values, as_text=True)
    assert field.type == pa.large_string()
    assert array.to_pylist() == [None if value is None or str(value) == "nan" else str(value) for value in values]
    assert arrow(1, 2, as_text=True)[0].type == pa.int64()
    assert arrow([1], ["a"], as_text=True)[1].type == arrow([1], ["a"])[1].type


def test_slices_are_parts_of_the_whole() -> None:
    values = [None if row % 7 == 0 else f"é{row}" for row in range(1000)]
    objects = column(values)
    parts = [pa.array(objects.array(start, start + 300)).to_pylist() for start in range(0, 1200, 300)]
    assert [value for part in parts for value in part] == values
    assert [len(part) for part in parts] == [300, 300, 300, 100]
    assert len(objects.array(900, 900)) == 0


@pytest.mark.parametrize("unit", ["Y", "M", "W", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "25s"])
def test_timestamps_of_numpy_in_each_unit(unit: Any) -> None:
    count = 10**12 if unit in {"ps", "fs", "as"} else 1000 if unit == "ns" else 7
    value = np.datetime64(count, unit)
    assert np.array(arrow(value)[1].to_pylist()[0], "M8[us]") == value
    if unit not in {"Y", "M"}:
        span = np.timedelta64(-count, unit)
        assert np.timedelta64(arrow(span)[1].to_pylist()[0], "us") == span
