"""Some rows of a column, by their numbers."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from longshore import _core
from longshore.frames.libraries import missing

try:
    import pyarrow as pa
    import pyarrow.compute as pc
except ImportError as error:
    raise missing(library="pyarrow", extra="sql", purpose="SQL over dataframes") from error

__all__ = ["Rows", "is_text", "together"]

T = TypeVar("T")
U = TypeVar("U")

#: Rows of a piece: the engine's threads take one each, and a batch has no more.
_FEWEST = 2_048
_MOST = 122_880


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of texts by themselves: no dictionary, and no extension."""
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def together(work: Callable[[T], U], items: Sequence[T], threads: int | None) -> list[U]:
    """Do the work for every item, by so many threads or by as many as there are processors."""
    most = min(threads or os.cpu_count() or 1, len(items))
    if most <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(most, "longshore-rows") as pool:
        try:
            begun = [pool.submit(work, item) for item in items]
        except RuntimeError:
            # An interpreter that ends begins no more threads.
            return [work(item) for item in items]
        return [each.result() for each in begun]


def _run(numbers: "np.ndarray[Any, np.dtype[np.intp]]") -> slice | None:
    if not len(numbers):
        return slice(0, 0)
    first, last = int(numbers[0]), int(numbers[-1])
    return slice(first, last + 1) if last - first < len(numbers) else None


class Rows:
    """Numbers of rows, which ascend."""

    def __init__(self, numbers: "np.ndarray[Any, np.dtype[np.intp]]", threads: int | None) -> None:
        """Keep them; so many threads take them, unless they are few."""
        #: What NumPy, pandas and polars take for an index: a slice where no row is left out in between.
        self.index = _run(numbers) or numbers
        self.threads = threads if len(numbers) > _FEWEST else 1
        self._count = len(numbers)
        self._arrow = pa.array(numbers.view(np.uint64))

    def of_numpy(self, values: Any) -> Any:
        """Give these rows of a NumPy array."""
        is_plain = values.dtype.kind in "iufmM" and values.flags.c_contiguous and values.dtype.isnative
        if not is_plain or isinstance(self.index, slice):
            return values[self.index]
        # pyarrow keeps the memory that it has used; NumPy's comes from the system each time.
        plain = values.view(np.int64) if values.dtype.kind in "mM" else values
        return pc.take(pa.array(plain), self._arrow).to_numpy().view(values.dtype)

    def of_arrow(self, column: Any) -> Any:
        """Give these rows of a ChunkedArray; raises pyarrow's exceptions for a type that it does not take rows of."""
        if isinstance(self.index, slice):
            return column.slice(self.index.start, self._count)
        return self._texts(column) if is_text(column.type) else pc.take(column, self._arrow)

    def _texts(self, column: Any) -> Any:
        piece = -(-self._count // (self.threads or os.cpu_count() or 1))
        made = _core.taken(
            pa.table({"texts": column}),
            pa.table({"rows": self._arrow}),
            piece=min(max(piece, _FEWEST), _MOST),
            threads=self.threads,
        )
        if made is None:
            message = "a text is not UTF-8"
            raise pa.ArrowInvalid(message)
        return pa.chunked_array([pa.array(each) for each in made], type=pa.large_string())
