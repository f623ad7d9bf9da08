"""pyarrow: values beyond what their types promise, which the engine would cut or take for others."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from longshore.errors import DataError

_DAY = 86_400
_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}

_INTERVAL = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
_CUT = "the engine's intervals have no nanoseconds"


def is_loose(kind: Any) -> bool:
    """Whether a type has values, at any depth, that the engine would change."""
    if pa.types.is_date64(kind) or pa.types.is_time(kind) or is_span(kind):
        return True
    if isinstance(kind, pa.BaseExtensionType):
        return is_loose(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return is_loose(kind.value_type)
    return any(is_loose(kind.field(at).type) for at in range(kind.num_fields))


def is_span(kind: Any) -> bool:
    """Whether a type has spans with nanoseconds, at any depth."""
    if pa.types.is_interval(kind) or kind == pa.duration("ns"):
        return True
    if isinstance(kind, pa.BaseExtensionType):
        return is_span(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return is_span(kind.value_type)
    return any(is_span(kind.field(at).type) for at in range(kind.num_fields))


def has_runs(kind: Any) -> bool:
    """Whether a type, or a field of a struct, is run-end-encoded, or a dictionary, of what has to be converted."""
    if pa.types.is_run_end_encoded(kind):
        return is_loose(kind.value_type) or bool(pa.types.is_float16(kind.value_type))
    if pa.types.is_dictionary(kind):
        return bool(pa.types.is_float16(kind.value_type))
    return bool(pa.types.is_struct(kind)) and any(has_runs(kind.field(at).type) for at in range(kind.num_fields))


def plain_type(kind: Any) -> Any:
    """Give the type of ``without_runs``."""
    if not has_runs(kind):
        return kind
    if not pa.types.is_struct(kind):
        return kind.value_type
    fields = [kind.field(at) for at in range(kind.num_fields)]
    return pa.struct([field.with_type(plain_type(field.type)) for field in fields])


def without_runs(column: Any) -> Any:
    """Give an array or a ChunkedArray of a type that ``has_runs`` with its values one by one."""
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([without_runs(chunk) for chunk in column.chunks], plain_type(column.type))
    kind = column.type
    if not has_runs(kind):
        return column
    if pa.types.is_run_end_encoded(kind):
        return _half_floats(column) if pa.types.is_float16(kind.value_type) else pc.run_end_decode(column)
    if pa.types.is_dictionary(kind):
        # pyarrow takes no half floats by their numbers.
        bits = column.dictionary.view(pa.uint16())
        return bits.take(column.indices).view(pa.float16())
    fields = [field.with_type(plain_type(field.type)) for field in kind]
    return pa.StructArray.from_arrays(list(map(without_runs, column.flatten())), fields=fields, mask=column.is_null())


def _half_floats(column: Any) -> Any:
    """Give the values of runs of half floats, which pyarrow before 17 does not decode."""
    rows = np.arange(column.offset, column.offset + len(column))
    runs = np.searchsorted(column.run_ends.to_numpy(), rows, side="right")
    return column.values.view(pa.uint16()).take(pa.array(runs)).view(pa.float16())


def refuse_loose(column: Any, name: str, table: str, *, before: int = 0) -> None:
    """Raise ``DataError`` for the first row of a column of a loose type that has such a value.

    ``before`` counts the rows before the column's first.
    """
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        found = _first(chunk)
        if found is not None:
            row, fault = found
            hint = "convert the column before the query, or leave it out of it"
            message = f"column {name!r} of {table!r}, row {before + row}, {column.type}: {fault}\nHint: {hint}"
            raise DataError(message, column=name, row=before + row, native_type=str(column.type), hint=hint)
        before += len(chunk)


def _first(array: Any) -> tuple[int, str] | None:
    """Give the first row with a value beyond its type, and what is wrong with it."""
    if pa.types.is_date64(array.type):
        ticks = array.view(pa.int64())
        days = pc.multiply(pc.divide(ticks, _DAY * 1_000), _DAY * 1_000)
        return _where(pc.not_equal(days, ticks), "a date with a time of day, which the engine would cut")
    if pa.types.is_time(array.type):
        return _where(_beyond(array), "a time that is in no day")
    if array.type == pa.duration("ns"):
        ticks = pc.fill_null(array.view(pa.int64()), 0).to_numpy(zero_copy_only=False)
        return _where(pa.array(ticks % 1000 != 0), _CUT)
    if pa.types.is_interval(array.type):
        values = np.frombuffer(array.buffers()[1] or b"", dtype=_INTERVAL)["nanoseconds"]
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        values = values[array.offset : array.offset + len(array)]
        return _where(pa.array((values % 1000 != 0) & valid), _CUT)
    return _first_within(array) if is_loose(array.type) else None


def _beyond(times: Any) -> Any:
    ticks = times.view(pa.int32() if pa.types.is_time32(times.type) else pa.int64())
    # 24:00 is a time of the engine's.
    most = pa.scalar(_DAY * _TICKS[times.type.unit], ticks.type)
    return pc.or_(pc.less(ticks, pa.scalar(0, ticks.type)), pc.greater(ticks, most))


def _first_within(array: Any) -> tuple[int, str] | None:
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return _first(array.storage)
    if pa.types.is_dictionary(kind):
        return _first(array.dictionary_decode())
    if pa.types.is_struct(kind):
        return min(filter(None, map(_first, array.flatten())), default=None)
    if pa.types.is_map(kind):
        array = array.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
    found = _first(array.flatten())
    if found is None:
        return None
    item, fault = found
    return pc.list_parent_indices(array)[item].as_py(), fault


def _where(strange: Any, fault: str) -> tuple[int, str] | None:
    row: int = pc.index(strange, True).as_py()
    return None if row < 0 else (row, fault)
