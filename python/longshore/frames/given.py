"""Frames that callers give: what each kind of data is as Arrow streams."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from longshore.errors import InterfaceError
from longshore.options import Options
from longshore.schema import column_name

_KINDS = (
    "a pandas or polars frame, a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, a NumPy structured array, "
    "a dict of arrays, an object with __arrow_c_stream__, or an iterator of those"
)


def given(data: object, *, index: bool, options: Options) -> Iterator[object]:
    """Give the objects with ``__arrow_c_stream__`` or ``__arrow_c_array__`` that ``data`` is, as they come.

    Raises ``InterfaceError`` for data of no known kind, ``DataError`` for objects that have no one type, and
    ``ImportError`` where a library is missing.
    """
    frames = _frames(data, index=index, options=options)
    if frames is not None:
        return iter(frames)
    if isinstance(data, Iterable) and not isinstance(data, str | bytes):
        return _each(data, index=index, options=options)
    raise _unknown(data)


def _each(frames: Iterable[object], *, index: bool, options: Options) -> Iterator[object]:
    for frame in frames:
        found = _frames(frame, index=index, options=options)
        if found is None:
            raise _unknown(frame)
        yield from found


def _frames(data: Any, *, index: bool, options: Options) -> Iterable[object] | None:
    """Give one frame's streams; None for what is no frame. Whoever has a library's object has imported the library."""
    if _is(data, "pandas", "DataFrame"):
        from longshore.frames.from_pandas import batches

        return batches(data, index=index, options=options)
    if index:
        message = f"index=True is for pandas; {type(data).__name__} has no index"
        raise InterfaceError(message)
    if _is(data, "polars", "DataFrame") or _is(data, "polars", "LazyFrame"):
        from longshore.frames.from_polars import frames

        return frames(data)
    if _is(data, "numpy", "ndarray") or isinstance(data, Mapping):
        from longshore.frames.from_numpy import table

        return [table(data, options)]
    for name in getattr(getattr(data, "schema", None), "names", ()):
        column_name(name)
    return _streams(data)


def _streams(data: Any) -> Iterable[object] | None:
    """Give the streams of what is Arrow's already; None for what is not."""
    if _is(data, "pyarrow.dataset", "Dataset"):
        return [data.scanner().to_reader()]
    if _is(data, "pyarrow", "RecordBatchReader"):
        from longshore.frames.checked import checked_batches

        return checked_batches(data)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return [data]
    return None


def _is(data: object, module: str, name: str) -> bool:
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(data, getattr(loaded, name))


def _unknown(data: object) -> InterfaceError:
    return InterfaceError(f"{type(data).__name__} is no data to write: give {_KINDS}")
