"""Values that the SQL engine has and Arrow lacks: refused before they are stored."""

from typing import Any

from longshore.frames import needing
from longshore.frames.scan import compute

with needing(library="pyarrow", extra="store", purpose="SQL over a store"):
    import pyarrow as pa

_DAY = {"us": 86_400_000_000, "ns": 86_400_000_000_000}


def refuse_own_values(array: Any) -> None:
    """Raise ``ArrowInvalid`` for infinity, 24:00, or hours beyond 64 bits of nanoseconds, within lists and structs too.

    Once stored, they would be read as other values.
    """
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return
    for part in _parts(array):
        refuse_own_values(part)
    if pa.types.is_date32(kind):
        _refuse(compute().equal(compute().abs(array.view(pa.int32())), 2**31 - 1), "infinity has no Arrow value")
    elif pa.types.is_timestamp(kind):
        _refuse(compute().equal(compute().abs(array.view(pa.int64())), 2**63 - 1), "infinity has no Arrow value")
    elif pa.types.is_time64(kind):
        is_after = compute().greater_equal(array.view(pa.int64()), _DAY[kind.unit])
        _refuse(is_after, "24:00 has no Arrow value, and would be read as 00:00")
    elif pa.types.is_interval(kind):
        # The engine counts microseconds, which it multiplies by a thousand without a look at the product.
        nanoseconds = _number(array, pa.int64(), 2, 1)
        whole = compute().multiply(compute().divide(nanoseconds, 1_000), 1_000)
        has_wrapped = compute().not_equal(whole, nanoseconds)
        _refuse(has_wrapped, "the interval's hours are beyond what nanoseconds count in 64 bits")


def _refuse(is_bad: Any, message: str) -> None:
    if compute().any(is_bad).as_py():
        raise pa.ArrowInvalid(message)


def _parts(array: Any) -> list[Any]:
    kind = array.type
    if pa.types.is_map(kind):
        return [array.keys, array.items]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [array.flatten()]
    return list(array.flatten()) if pa.types.is_struct(kind) else []


def durations(column: Any) -> Any:
    """Give intervals of days and nanoseconds as durations; raises ``ArrowInvalid`` where one has months."""
    months, days, nanoseconds = (
        pa.chunked_array([_number(each, kind, count, at) for each in column.chunks], kind)
        for kind, count, at in ((pa.int32(), 4, 0), (pa.int32(), 4, 1), (pa.int64(), 2, 1))
    )
    _refuse(compute().not_equal(months, 0), "an interval has months, which are not always as long")
    of_days = compute().multiply_checked(days.cast(pa.int64()), _DAY["ns"])
    return compute().add_checked(of_days, nanoseconds).cast(pa.duration("ns"))


def _number(intervals: Any, kind: Any, count: int, at: int) -> Any:
    """Give one of the numbers that each interval is made of, of which there are so many of this type."""
    validity, values = intervals.buffers()
    offset = intervals.offset
    numbers = pa.Array.from_buffers(kind, (offset + len(intervals)) * count, [None, values])
    lists = pa.list_(kind, count)
    rows = pa.Array.from_buffers(lists, len(intervals), [validity], offset=offset, children=[numbers])
    return compute().list_element(rows, at)
