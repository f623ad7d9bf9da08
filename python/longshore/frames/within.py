"""pyarrow: values beyond what their types promise, which the engine would cut or take for others."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from longshore.errors import DataError

_DAY = 86_400
_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def is_loose(kind: Any) -> bool:
    """Whether a type has values beyond what it promises, at any depth: Arrow keeps nobody from them."""
    if pa.types.is_date64(kind) or pa.types.is_time(kind):
        return True
    if isinstance(kind, pa.BaseExtensionType):
        return is_loose(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return is_loose(kind.value_type)
    return any(is_loose(kind.field(at).type) for at in range(kind.num_fields))


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
