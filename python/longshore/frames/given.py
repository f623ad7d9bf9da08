"""Frames that callers give: what each kind of data is as Arrow streams."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

from longshore.errors import InterfaceError
from longshore.options import Options
from longshore.texts import column_name

_KINDS = (
    "a pandas or polars frame or named Series, a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, a NumPy "
    "structured array, a dict of arrays, a list of dicts, tuples or dataclasses, an object with __arrow_c_stream__, or "
    "an iterator of frames"
)


def given(data: object, *, index: bool, columns: Sequence[str] | None, options: Options) -> Iterator[object]:
    """Give the objects with ``__arrow_c_stream__`` or ``__arrow_c_array__`` that ``data`` is, as they come.

    ``columns`` are those of rows that are lists of values. Raises ``InterfaceError`` for data of no known kind,
    ``DataError`` for objects that have no one type, and ``ImportError`` where a library is missing.
    """
    if isinstance(data, Sequence) and not isinstance(data, str | bytes) and (not data or _is_row(data[0])):
        _refuse_index(data, index=index)
        from longshore.frames.from_rows import table

        return iter([table(data, columns, options)])
    if columns is not None:
        message = f"columns is for a list of rows; {type(data).__name__} is not one"
        raise InterfaceError(message)
    frames = _frames(data, index=index, options=options)
    if frames is not None:
        return iter(frames)
    if isinstance(data, Iterable) and not isinstance(data, str | bytes):
        return _each(data, index=index, options=options)
    raise _unknown(data)


def _is_row(value: object) -> bool:
    """Whether a value is one row of Python objects."""
    return isinstance(value, tuple | list | Mapping) or (is_dataclass(value) and not isinstance(value, type))


def _refuse_index(data: object, *, index: bool) -> None:
    if index:
        message = f"index=True is for pandas; {type(data).__name__} has no index"
        raise InterfaceError(message)


def _each(frames: Iterable[object], *, index: bool, options: Options) -> Iterator[object]:
    for frame in frames:
        if isinstance(frame, Mapping) and any(_is_cell(value) for value in frame.values()):
            raise _rows_one_by_one()
        found = _frames(frame, index=index, options=options)
        if found is None:
            raise _rows_one_by_one() if _is_row(frame) else _unknown(frame)
        yield from found


def _is_cell(value: object) -> bool:
    """Whether a value cannot be a whole column."""
    return isinstance(value, str | bytes) or not isinstance(value, Iterable)


def _rows_one_by_one() -> InterfaceError:
    hint = "give list(rows): the type of a column follows from all of its values"
    message = f"an iterator gives frames, and this one gives single rows\nHint: {hint}"
    return InterfaceError(message, hint=hint)


def _frames(data: Any, *, index: bool, options: Options) -> Iterable[object] | None:
    """Give one frame's streams; None for what is no frame. Whoever has a library's object has imported the library."""
    if _is(data, "pandas", "DataFrame"):
        from longshore.frames.from_pandas import batches

        return batches(data, index=index, options=options)
    if _is(data, "pandas", "Series"):
        from longshore.frames.from_pandas import batches

        return batches(_named(data).to_frame(), index=index, options=options)
    _refuse_index(data, index=index)
    if _is(data, "polars", "Series"):
        data = _named(data).to_frame()
    if _is(data, "polars", "DataFrame") or _is(data, "polars", "LazyFrame"):
        from longshore.frames.from_polars import frames

        return frames(data)
    if _is(data, "numpy", "ndarray") or isinstance(data, Mapping):
        from longshore.frames.from_numpy import table

        return [table(data, options)]
    for name in getattr(getattr(data, "schema", None), "names", ()):
        column_name(name)
    return _streams(data)


def _named(series: Any) -> Any:
    """Give a Series back; raises ``InterfaceError`` where its one column would have no name."""
    if series.name is None or not str(series.name):
        hint = 'name it: series.to_frame("x")'
        message = f"the Series has no name, which its column would have\nHint: {hint}"
        raise InterfaceError(message, hint=hint)
    return series


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
    return InterfaceError(f"{type(data).__name__} cannot be written: give {_KINDS}")
