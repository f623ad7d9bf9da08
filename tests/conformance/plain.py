"""Arrow values in a form that compares exactly: no NaN, no lost sign, no date that Python cannot hold."""

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MICROSECOND = dt.timedelta(microseconds=1)


def values(column: "pa.ChunkedArray | pa.Array") -> list[Any]:
    """Give a column's values, each as `expected` gives what should be there."""
    return [_plain(scalar) for scalar in column]


def expected(cells: Sequence[Any], data_type: pa.DataType) -> list[Any]:
    """Give what a case says in the form of `values`."""
    return [_wanted(cell, data_type) for cell in cells]


def storage(data_type: pa.DataType) -> pa.DataType:
    """Give the type below extension types, without the metadata of what it holds."""
    if isinstance(data_type, pa.BaseExtensionType):
        return storage(data_type.storage_type)
    if pa.types.is_list(data_type):
        return pa.list_(storage(data_type.value_type))
    if pa.types.is_fixed_size_list(data_type):
        return pa.list_(storage(data_type.value_type), data_type.list_size)
    if pa.types.is_struct(data_type):
        fields = [data_type.field(at) for at in range(data_type.num_fields)]
        return pa.struct([(field.name, storage(field.type)) for field in fields])
    return data_type


def _plain(scalar: Any) -> Any:
    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.ExtensionScalar):
        return _plain(scalar.value)
    data_type = scalar.type
    if pa.types.is_list(data_type) or pa.types.is_fixed_size_list(data_type):
        return values(scalar.values)
    if pa.types.is_struct(data_type):
        return [_plain(scalar[at]) for at in range(data_type.num_fields)]
    return _simple(scalar)


def _simple(scalar: Any) -> Any:
    if pa.types.is_temporal(scalar.type) and not pa.types.is_interval(scalar.type):
        return scalar.value
    value = scalar.as_py()
    if pa.types.is_floating(scalar.type):
        # Of 16 bits, older versions of pyarrow give NumPy's.
        return repr(float(value))
    if isinstance(value, Decimal):
        return str(value)
    return tuple(value) if isinstance(value, pa.MonthDayNano) else value


def _wanted(cell: Any, data_type: pa.DataType) -> Any:
    if cell is None:
        return None
    if pa.types.is_list(data_type) or pa.types.is_fixed_size_list(data_type):
        return expected(cell, data_type.value_type)
    if pa.types.is_struct(data_type):
        return [_wanted(part, data_type.field(at).type) for at, part in enumerate(cell)]
    if pa.types.is_floating(data_type):
        return repr(float(cell))
    if pa.types.is_decimal(data_type):
        return str(cell)
    return _count(cell)


def _count(cell: Any) -> Any:
    """Count as Arrow counts: days or microseconds since 1970, since midnight or at all."""
    if isinstance(cell, dt.datetime):
        return (cell.replace(tzinfo=cell.tzinfo or dt.UTC) - EPOCH) // MICROSECOND
    if isinstance(cell, dt.date):
        return cell.toordinal() - EPOCH.toordinal()
    if isinstance(cell, dt.timedelta):
        return cell // MICROSECOND
    if isinstance(cell, dt.time):
        return ((cell.hour * 60 + cell.minute) * 60 + cell.second) * 1_000_000 + cell.microsecond
    return cell
