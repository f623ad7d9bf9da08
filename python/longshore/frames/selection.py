"""The rows of a frame that a query's predicates leave.

The engine takes every column of a batch before it looks which of its rows it needs, and looks text by text. Here, a
predicate is tried on its column alone, and the others are taken where it holds. Numbers and moments are compared with
room for how the engine rounds its constants, and it compares them again; what is said of texts is exact.
"""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa

from longshore import _core
from longshore.frames.rows import is_text, together
from longshore.frames.use import Predicate

__all__ = ["Selection", "first", "selection"]

Bools = np.ndarray[Any, np.dtype[np.bool_]]
Numbers = np.ndarray[Any, np.dtype[np.intp]]

#: Rows that a thread takes at a time: a multiple of eight, so that their bits begin with a byte.
_PART = 1 << 17

#: Stretches of rows that are looked at first, and the rows of each.
_STRETCHES = 8
_STRETCH = 2_048

#: Rows are taken if no more than one of so many is left: beyond, the engine is faster, and later so with texts.
_OF_NUMBERS = 16
_OF_TEXTS = 4

#: How far a number may lie beyond a bound, as a part of it, and what stands for that next to zero, by the bytes.
_ROOM = 1e-6
_TINIEST = {4: float(np.finfo(np.float32).tiny), 8: 1e-300}

#: Half of the greatest floats, by their bytes.
_GREATEST = {4: float(np.finfo(np.float32).max) / 2, 8: float(np.finfo(np.float64).max) / 2}

#: A moment's room, in seconds; and units of moments, by how many there are in a second.
_SECOND = 1
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 86_400

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  of moments without a zone


@dataclass(frozen=True)
class Selection:
    """The rows that are left."""

    count: int
    #: Whether every predicate of texts has been looked after.
    texts: bool
    #: Gives the numbers of the rows, in their order.
    numbers: Callable[[], Numbers]


def first(count: int) -> Selection:
    """Give so many of the first rows."""
    return Selection(count, texts=False, numbers=lambda: np.arange(count))


def selection(
    predicates: Sequence[Predicate], columns: Mapping[str, Any], *, takes_any: bool, threads: int | None
) -> Selection | None:
    """Try predicates on the columns of one frame; None where it is not worth it, or where they say nothing of them.

    ``columns`` are NumPy arrays or pyarrow ChunkedArrays by their folded names, and ``takes_any`` says whether the
    query reads anything else of the rows that are left.
    """
    tests = [test for each in predicates if (test := _test(each, columns.get(each.column), threads)) is not None]
    if not tests:
        return None
    texts = [test for test in tests if isinstance(test, _TextTest)]
    is_whole = len(texts) == sum(isinstance(each.constant, str) for each in predicates)
    if (takes_any or not texts or not is_whole) and not _are_few(tests, _OF_TEXTS if texts else _OF_NUMBERS):
        return None
    ready = [test.ready() for test in tests]
    if len(ready) == 1 and isinstance(only := ready[0], _Bits):
        return Selection(only.bits.true_count, is_whole, lambda: _numbers_of(ready, threads))
    numbers = _numbers_of(ready, threads)
    return Selection(len(numbers), is_whole, lambda: numbers)


def _numbers_of(tests: "Sequence[_Ready]", threads: int | None) -> Numbers:
    length = tests[0].length

    def part(start: int) -> Numbers:
        stop = min(start + _PART, length)
        mask = tests[0].mask(start, stop)
        for test in tests[1:]:
            mask &= test.mask(start, stop)
        numbers = np.flatnonzero(mask)
        numbers += start
        return numbers

    return np.concatenate(together(part, range(0, length, _PART), threads))


def _are_few(tests: "Sequence[_Test]", of: int) -> bool:
    """Tell from stretches all over the frame whether one row of so many may be left, or fewer."""
    length = tests[0].length
    left = seen = 0
    for start in range(0, length, max(length // _STRETCHES, _STRETCH)):
        stop = min(start + _STRETCH, length)
        mask = np.ones(stop - start, dtype=np.bool_)
        for test in tests:
            mask &= test.mask(start, stop)
        left += int(np.count_nonzero(mask))
        seen += len(mask)
    return left * of <= seen


@dataclass(frozen=True)
class _NumberTest:
    """Whether numbers lie within bounds, which belong to them."""

    values: Any
    #: None where there is no such bound; one of them is there.
    low: Any
    high: Any

    @property
    def length(self) -> int:
        return len(self.values)

    def ready(self) -> "_NumberTest":
        return self

    def mask(self, start: int, stop: int) -> Bools:
        pieces = [self._within(piece) for piece in _numbers(self.values, start, stop)]
        return pieces[0] if len(pieces) == 1 else np.concatenate([np.empty(0, np.bool_), *pieces])

    def _within(self, values: Any) -> Bools:
        if self.low is None:
            return cast("Bools", np.less_equal(values, self.high))
        if self.high is None:
            # A NaN is the greatest of the engine's numbers.
            below = np.less(values, self.low)
            return cast("Bools", np.logical_not(below, out=below))
        if self.low == self.high:
            return cast("Bools", np.equal(values, self.low))
        return cast("Bools", np.greater_equal(values, self.low) & np.less_equal(values, self.high))


@dataclass(frozen=True)
class _TextTest:
    """Whether texts have a piece in its place."""

    values: Any
    piece: str
    place: Literal["whole", "start", "end", "anywhere"]
    threads: int | None

    @property
    def length(self) -> int:
        return len(self.values)

    def ready(self) -> "_Bits":
        return self._found(0, self.length)

    def mask(self, start: int, stop: int) -> Bools:
        return self._found(start, stop).mask(0, stop - start)

    def _found(self, start: int, stop: int) -> "_Bits":
        part = pa.table({"texts": self.values.slice(start, stop - start)})
        return _Bits(pa.array(_core.search(part, self.piece, self.place, threads=self.threads)))


@dataclass(frozen=True)
class _Bits:
    """Whether texts have had it: a BooleanArray."""

    bits: Any

    @property
    def length(self) -> int:
        return len(self.bits)

    def mask(self, start: int, stop: int) -> Bools:
        packed = np.frombuffer(self.bits.buffers()[1], np.uint8)[start // 8 :]
        return np.unpackbits(packed, count=stop - start, bitorder="little").view(np.bool_)


_Test = _NumberTest | _TextTest
_Ready = _NumberTest | _Bits


def _test(predicate: Predicate, values: Any, threads: int | None) -> _Test | None:
    if values is None:
        return None
    if isinstance(predicate.constant, str):
        if not isinstance(values, pa.ChunkedArray) or not is_text(values.type):
            return None
        place: Any = "whole" if predicate.operator == "=" else predicate.operator
        return _TextTest(values, predicate.constant, place, threads)
    kind = _dtype(values)
    bounds = None if kind is None else _bounds(kind, predicate.operator, predicate.constant)
    if bounds is None:
        return None
    low, high = bounds
    return _NumberTest(values, None if "<" in predicate.operator else low, None if ">" in predicate.operator else high)


def _dtype(values: Any) -> "np.dtype[Any] | None":
    """Give the dtype in which numbers and moments lie in memory; None for what is neither."""
    if isinstance(values, np.ndarray):
        is_moment = values.dtype.kind == "M" and np.datetime_data(values.dtype)[1] == 1
        is_known = is_moment or values.dtype.kind in "iuf"
        return values.dtype if is_known and values.dtype.isnative else None
    kind = values.type
    if pa.types.is_date32(kind):
        return np.dtype("M8[D]")
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return np.dtype(f"M8[{kind.unit}]")
    is_number = pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind)
    return np.dtype(kind.to_pandas_dtype()) if is_number else None


def _numbers(values: Any, start: int, stop: int) -> Sequence[Any]:
    """Give rows of a column as arrays of the memory that they lie in; what is below a NULL may be anything."""
    if isinstance(values, np.ndarray):
        part = values[start:stop]
        return [part.view(np.int64) if part.dtype.kind == "M" else part]
    dtype = cast("np.dtype[Any]", _dtype(values))
    plain = np.dtype(f"i{values.type.bit_width // 8}") if dtype.kind == "M" else dtype
    pieces = values.slice(start, stop - start).chunks
    return [
        np.frombuffer(each.buffers()[1], plain, len(each), each.offset * plain.itemsize) for each in pieces if len(each)
    ]


def _bounds(kind: "np.dtype[Any]", operator: str, constant: int | Decimal | dt.datetime) -> tuple[Any, Any] | None:
    """Give bounds of which a comparison's own holds whatever may fulfil it; None where that is not known."""
    if isinstance(constant, dt.datetime):
        return _moment_bounds(np.datetime_data(kind)[0], constant) if kind.kind == "M" else None
    if kind.kind == "f" and kind.itemsize in _GREATEST:
        return _float_bounds(kind, constant)
    if kind.kind not in "iu" or not isinstance(constant, int):
        return None
    limits = np.iinfo(kind)
    # The other side's is not looked at.
    nearest = constant + {"<": -1, ">": 1}.get(operator, 0)
    return (nearest, nearest) if limits.min <= nearest <= limits.max else None


def _float_bounds(kind: "np.dtype[Any]", constant: int | Decimal) -> tuple[Any, Any] | None:
    if not -_GREATEST[kind.itemsize] < constant < _GREATEST[kind.itemsize]:
        return None
    middle = float(constant)
    room = max(abs(middle) * _ROOM, _TINIEST[kind.itemsize])
    return kind.type(middle - room), kind.type(middle + room)


def _moment_bounds(unit: str, constant: dt.datetime) -> tuple[int, int] | None:
    seconds = (constant - _EPOCH) // dt.timedelta(seconds=1)
    low, high = seconds - _SECOND, seconds + 2 * _SECOND
    if unit == "D":
        return low // _DAY, high // _DAY + 1
    if unit not in _UNITS:
        return None
    limits = np.iinfo(np.int64)
    low, high = low * _UNITS[unit], high * _UNITS[unit]
    return (low, high) if limits.min < low and high < limits.max else None
