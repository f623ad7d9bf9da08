"""The rows of a frame that a query's predicates leave, filtered before they enter the SQL engine.

The engine takes every column of a batch before it looks which of its rows it needs, and looks text by text. Here, a
predicate is tested on its column alone, and the other columns are taken where it holds. Numbers and times are compared
with bounds that allow for how the engine rounds its constants, and it compares them again; texts are compared exactly.
"""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal, cast

import numpy as np

from longshore import _core
from longshore.frames import is_of, needing
from longshore.frames.pushdown import Predicate, Pushdown, Span, are_distinct, fold_name
from longshore.options import Options
from longshore.threads import map_threads

with needing(library="pyarrow", extra="sql", purpose="SQL over dataframes"):
    import pyarrow as pa
    import pyarrow.compute as pc

Bools = np.ndarray[Any, np.dtype[np.bool_]]
Numbers = np.ndarray[Any, np.dtype[np.intp]]

#: Rows of a frame from which on it pays to look what a query reads of it.
_LONG = 1 << 18

#: Rows are filtered here if at most one of so many is left: beyond, the engine is faster, and later so with texts.
_OF_NUMBERS = 16
_OF_TEXTS = 4

#: Texts that a batch may have to be a dictionary: with more, the engine takes it apart.
_MOST_TEXTS = 1_000

#: Rows that are worth more than one thread.
_FEWEST_ROWS = 2_048

#: Rows that a thread tests at a time: a multiple of eight, so that their bits begin with a byte.
_PART = 1 << 17

#: Samples of rows that are tested first, and the rows of each.
_SAMPLES = 8
_SAMPLE = 2_048

#: How far a float may lie beyond a bound, as a part of it, and what stands for that next to zero, by the bytes.
_TOLERANCE = 1e-6
_TINIEST = {4: float(np.finfo(np.float32).tiny), 8: 1e-300}

#: Half of the greatest floats, by their bytes.
_GREATEST = {4: float(np.finfo(np.float32).max) / 2, 8: float(np.finfo(np.float64).max) / 2}

#: How far a timestamp may lie beyond a bound, in seconds; and units of timestamps, by how many there are in a second.
_SECOND = 1
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 86_400

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  of timestamps without a zone


@dataclass(frozen=True)
class Filtered:
    """A frame, or the rows of it that a query's predicates leave."""

    data: Any
    #: The folded names of the columns that the query reads; None for all.
    columns: frozenset[str] | None
    #: The predicates in the query's text that all of these rows fulfil, where the engine need not test them again.
    spans: tuple[Span, ...] = ()


def is_long(data: Any) -> bool:
    """Whether it is a frame of so many rows that it pays to look what a query reads of them."""
    return _library(data) is not None and len(data) >= _LONG


def prefilter(data: Any, pushdown: Pushdown, name: str, options: Options) -> Filtered:
    """Filter the rows of a long frame by a query's predicates, where that is faster than the engine."""
    whole = Filtered(data, pushdown.columns)
    library = _library(data)
    names = library.names(data)
    if not are_distinct(names):
        return whole
    columns = pushdown.rest.columns if pushdown.rest else pushdown.columns
    tested = frozenset(each.column for each in pushdown.predicates)
    values = {fold_name(names[at]): library.values(data, at) for at in _positions(names, tested)}
    reads_any = bool(_positions(names, columns))
    selection = select_rows(pushdown.predicates, values, reads_any=reads_any, threads=options.threads)
    if selection is None:
        return whole
    of = Filtered(data, columns, pushdown.rest.spans) if pushdown.rest and selection.texts else whole
    return _take(of, selection, name, options) or whole


def _take(of: Filtered, selection: "Selection", name: str, options: Options) -> Filtered | None:
    """Take the selected rows; None where a column is of a type that rows cannot be taken of."""
    from longshore.frames.scan import table_of

    library = _library(of.data)
    positions = _positions(library.names(of.data), of.columns)
    if not positions:
        return replace(of, data=table_of([], [], range(selection.count), name))
    try:
        rows = Rows(selection.numbers(), options.threads)
        return replace(of, data=library.take_rows(of.data, positions, rows, options))
    except pa.ArrowException:
        return None


def _positions(names: Sequence[str], columns: frozenset[str] | None) -> list[int]:
    return [at for at, name in enumerate(names) if columns is None or fold_name(name) in columns]


def _library(data: object) -> Any:
    """Return the module of a frame's library; None for what is not a frame in memory."""
    if is_of(data, "pandas", "DataFrame"):
        from longshore.frames import pandas

        return pandas
    if is_of(data, "polars", "DataFrame"):
        from longshore.frames import polars

        return polars
    if is_of(data, "pyarrow", "Table"):
        from longshore.frames import arrow

        return arrow
    return None


def dictionary_encode(data: Any, keys: frozenset[str], threads: int | None) -> Any:
    """Encode the columns in ``keys`` of a long pyarrow Table that have few texts: the engine groups them faster."""
    if not isinstance(data, pa.Table) or len(data) < _LONG:
        return data
    for at, field in enumerate(data.schema):
        if fold_name(field.name) not in keys or not _is_text(field.type):
            continue
        chunks = _core.codes(pa.table({"texts": data.column(at)}), most=_MOST_TEXTS, threads=threads)
        if chunks:
            column = pa.chunked_array([pa.array(each) for each in chunks])
            data = data.set_column(at, pa.field(field.name, column.type, field.nullable), column)
    return data


def _is_text(kind: Any) -> bool:
    """Whether an Arrow type is text, neither a dictionary nor an extension."""
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _contiguous(numbers: Numbers) -> slice | None:
    if not len(numbers):
        return slice(0, 0)
    first, last = int(numbers[0]), int(numbers[-1])
    return slice(first, last + 1) if last - first < len(numbers) else None


class Rows:
    """Ascending row numbers."""

    def __init__(self, numbers: Numbers, threads: int | None) -> None:
        """Keep them; so many threads take the rows, unless they are few."""
        #: An index for NumPy, pandas and polars: a slice where the rows are contiguous.
        self.index = _contiguous(numbers) or numbers
        self.threads = threads if len(numbers) > _FEWEST_ROWS else 1
        self._count = len(numbers)
        self._arrow = pa.array(numbers.view(np.uint64))

    def of_numpy(self, values: Any) -> Any:
        """Return these rows of a NumPy array."""
        is_plain = values.dtype.kind in "iufmM" and values.flags.c_contiguous and values.dtype.isnative
        if not is_plain or isinstance(self.index, slice):
            return values[self.index]
        # pyarrow keeps the memory that it has used; NumPy's comes from the system each time.
        plain = values.view(np.int64) if values.dtype.kind in "mM" else values
        return pc.take(pa.array(plain), self._arrow).to_numpy().view(values.dtype)

    def of_arrow(self, column: Any) -> Any:
        """Return these rows of a ChunkedArray; raises pyarrow's exceptions for types that it cannot take rows of."""
        if isinstance(self.index, slice):
            return column.slice(self.index.start, self._count)
        # Chunk by chunk: pyarrow would make one of all of them first.
        starts = np.cumsum([0, *map(len, column.chunks)])
        bounds = np.searchsorted(self.index, starts)
        pairs = zip(column.chunks, starts[:-1], bounds[:-1], bounds[1:], strict=True)
        taken = [chunk.take(pa.array(self.index[low:high] - start)) for chunk, start, low, high in pairs if low < high]
        return pa.chunked_array([pa.chunked_array(taken, column.type).combine_chunks()], column.type)


@dataclass(frozen=True)
class Selection:
    """The rows that predicates leave."""

    count: int
    #: Whether every predicate on texts has been tested.
    texts: bool
    #: Returns the numbers of the rows, in their order.
    numbers: Callable[[], Numbers]


def select_rows(
    predicates: Sequence[Predicate], columns: Mapping[str, Any], *, reads_any: bool, threads: int | None
) -> Selection | None:
    """Test predicates on the columns of one frame; None where the engine is faster, or where none can be tested.

    ``columns`` are NumPy arrays or pyarrow ChunkedArrays by their folded names, and ``reads_any`` says whether the
    query reads anything else of the rows that are left.
    """
    tests = [test for each in predicates if (test := _test(each, columns.get(each.column), threads)) is not None]
    if not tests:
        return None
    texts = [test for test in tests if isinstance(test, _TextTest)]
    is_whole = len(texts) == sum(isinstance(each.constant, str) for each in predicates)
    if (reads_any or not texts or not is_whole) and not _leave_few(tests, _OF_TEXTS if texts else _OF_NUMBERS):
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

    return np.concatenate(map_threads(part, range(0, length, _PART), threads))


def _leave_few(tests: "Sequence[_Test]", of: int) -> bool:
    """Estimate from samples all over the frame whether at most one row of so many is left."""
    length = tests[0].length
    left = tested = 0
    for start in range(0, length, max(length // _SAMPLES, _SAMPLE)):
        stop = min(start + _SAMPLE, length)
        mask = np.ones(stop - start, dtype=np.bool_)
        for test in tests:
            mask &= test.mask(start, stop)
        left += int(np.count_nonzero(mask))
        tested += len(mask)
    return left * of <= tested


@dataclass(frozen=True)
class _NumberTest:
    """Whether numbers lie within inclusive bounds."""

    values: Any
    #: None where there is no such bound; there is at least one.
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
    """Whether texts hold a piece at a position."""

    values: Any
    piece: str
    position: Literal["whole", "start", "end", "anywhere"]
    threads: int | None

    @property
    def length(self) -> int:
        return len(self.values)

    def ready(self) -> "_Bits":
        return self._search(0, self.length)

    def mask(self, start: int, stop: int) -> Bools:
        return self._search(start, stop).mask(0, stop - start)

    def _search(self, start: int, stop: int) -> "_Bits":
        part = pa.table({"texts": self.values.slice(start, stop - start)})
        return _Bits(pa.array(_core.search(part, self.piece, self.position, threads=self.threads)))


@dataclass(frozen=True)
class _Bits:
    """The result of a text test: a BooleanArray."""

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
        if not isinstance(values, pa.ChunkedArray) or not _is_text(values.type):
            return None
        position: Any = "whole" if predicate.operator == "=" else predicate.operator
        return _TextTest(values, predicate.constant, position, threads)
    kind = _dtype(values)
    bounds = None if kind is None else _bounds(kind, predicate.operator, predicate.constant)
    if bounds is None:
        return None
    low, high = bounds
    return _NumberTest(values, None if "<" in predicate.operator else low, None if ">" in predicate.operator else high)


def _dtype(values: Any) -> "np.dtype[Any] | None":
    """Return the dtype in which numbers and times lie in memory; None for what is neither."""
    if isinstance(values, np.ndarray):
        is_time = values.dtype.kind == "M" and np.datetime_data(values.dtype)[1] == 1
        is_known = is_time or values.dtype.kind in "iuf"
        return values.dtype if is_known and values.dtype.isnative else None
    kind = values.type
    if pa.types.is_date32(kind):
        return np.dtype("M8[D]")
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return np.dtype(f"M8[{kind.unit}]")
    is_number = pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind)
    return np.dtype(kind.to_pandas_dtype()) if is_number else None


def _numbers(values: Any, start: int, stop: int) -> Sequence[Any]:
    """Return rows of a column as arrays of the memory that they lie in; what is below a NULL may be anything."""
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
    """Return bounds within which all values lie that may fulfil a comparison; None where they are not known."""
    if isinstance(constant, dt.datetime):
        return _time_bounds(np.datetime_data(kind)[0], constant) if kind.kind == "M" else None
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
    value = float(constant)
    tolerance = max(abs(value) * _TOLERANCE, _TINIEST[kind.itemsize])
    return kind.type(value - tolerance), kind.type(value + tolerance)


def _time_bounds(unit: str, constant: dt.datetime) -> tuple[int, int] | None:
    seconds = (constant - _EPOCH) // dt.timedelta(seconds=1)
    low, high = seconds - _SECOND, seconds + 2 * _SECOND
    if unit == "D":
        return low // _DAY, high // _DAY + 1
    if unit not in _UNITS:
        return None
    limits = np.iinfo(np.int64)
    low, high = low * _UNITS[unit], high * _UNITS[unit]
    return (low, high) if limits.min < low and high < limits.max else None
