"""Arrow columns of NumPy arrays, and of Python objects in columns and in rows."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from longshore import _core
from longshore.errors import DataError, InterfaceError
from longshore.frames import needing
from longshore.frames.pushdown import Projection, column_positions
from longshore.options import Options
from longshore.texts import column_name, display

with needing(library="pyarrow", extra="arrow", purpose="writing NumPy arrays and Python objects"):
    import pyarrow as pa

#: NumPy's NaT, and how wide its times and Arrow's are.
_NAT = np.iinfo(np.int64).min
_BITS = 64

#: Chunks of a slice that are handed on as they lie; more of them are copied into one.
_CHUNKS = 4

#: Rows of a chunk of objects: as many as of the engine's batches.
_ROWS = 122_880


class ArrowColumn:
    """The values of a Series, or of a NumPy array of objects, and the Arrow field that all of them have."""

    def __init__(self, name: str, values: Any, *, as_text: bool, nan_is_null: bool, object_nan_is_null: bool) -> None:
        """Find the type; raises ``DataError`` for what has none.

        A NaN is NULL in a column of floats if ``nan_is_null``, among objects if ``object_nan_is_null``; objects of no
        one type are texts if ``as_text``.
        """
        values = _native_order(values)
        self._values = values
        self._nan_is_null = nan_is_null
        self._objects: _core.Objects | None = None
        if values.dtype == object:
            objects = np.asarray(values)
            self._objects = _core.Objects(objects, name, nan_is_null=object_nan_is_null, as_text=as_text)
            self.field = pa.field(self._objects)
        else:
            self.field = pa.field(name, _data_type(values, name))

    def slice(self, start: int, end: int) -> Any:
        """Return the array of some rows, or a few chunks of it; what is missing in them is NULL."""
        if self._objects is not None:
            return pa.array(self._objects.array(start, end))
        array = self._array(self._values.iloc[start:end])
        is_scattered = isinstance(array, pa.ChunkedArray) and array.num_chunks > _CHUNKS
        return array.combine_chunks() if is_scattered else array

    def whole(self) -> Any:
        """Return all rows: values that lie in memory as Arrow has them are taken over, objects in many chunks."""
        if self._objects is None:
            return self._array(self._values)
        starts = range(0, len(self._values), _ROWS)
        return pa.chunked_array([self.slice(start, start + _ROWS) for start in starts], type=self.field.type)

    def _array(self, values: Any) -> Any:
        if isinstance(values.dtype, np.dtype):
            return _of_numpy(np.asarray(values), self.field.type, nan_is_null=self._nan_is_null)
        nan_is_null = self._nan_is_null or getattr(values.dtype, "kind", "") != "f"
        try:
            return pa.array(values, type=self.field.type, from_pandas=nan_is_null)
        except UnicodeError as error:
            raise _no_text(self.field.name) from error


def text_views(name: str, values: Any, *, nan_is_null: bool) -> Any:
    """Return views of a column of objects that are texts or missing, in many chunks; None for every other column.

    For what the engine reads this is the shorter way: it takes one look at each object.
    """
    if values.dtype != object:
        return None
    chunks = _core.texts(np.asarray(values), name, nan_is_null=nan_is_null, chunk=_ROWS)
    return None if chunks is None else pa.chunked_array([pa.array(chunk) for chunk in chunks], type=pa.string_view())


def table(columns: Mapping[str, Any], options: Options) -> Any:
    """Return a ``pyarrow.Table`` of named columns; raises ``DataError`` for objects that have no one type."""
    fields, arrays = to_arrow(columns, options)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def to_arrow(columns: Mapping[str, Any], options: Options) -> tuple[list[Any], list[Any]]:
    """Return the fields and the arrays of named columns; raises as ``table`` does."""
    as_text = options.objects == "text"
    pairs = [
        (pa.field(name, values.type), values) if _is_arrow(values) else _masked_array(name, values, as_text=as_text)
        for name, values in columns.items()
    ]
    return [field for field, _ in pairs], [array for _, array in pairs]


def column(values: Any, name: object) -> Any:
    """Return a column as it is, or an array of a list's objects; raises ``InterfaceError`` for one value."""
    if _is_arrow(values) or (isinstance(values, np.ndarray) and values.ndim > 0):
        return values
    if isinstance(values, str | bytes) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        one = f"column {display(str(name))} is one {type(values).__name__}"
        raise InterfaceError(f"{one}: give an array or a list, with a value for each row")
    # A list as it is: NumPy would make floats of integers next to None, and texts of numbers next to texts.
    listed = list(values)
    objects = np.empty(len(listed), dtype=object)
    objects[:] = listed
    return objects


def _is_arrow(values: object) -> bool:
    return isinstance(values, pa.Array | pa.ChunkedArray)


def _masked_array(name: str, values: Any, *, as_text: bool) -> tuple[Any, Any]:
    """Return the field and the array of a NumPy array, masked or not; a NaN stays one."""
    plain, mask = _native_order(np.ma.getdata(values)), np.ma.getmaskarray(values)
    if plain.dtype.kind in "SU":
        # pyarrow ends such a text at its first zero.
        try:
            plain = plain.astype(object)
        except (ValueError, SystemError) as error:
            raise _no_text(name) from error
    if plain.dtype == object:
        plain = plain.copy()
        plain[mask] = None
        column = ArrowColumn(name, plain, as_text=as_text, nan_is_null=False, object_nan_is_null=False)
        return column.field, column.slice(0, len(plain))
    kind = _data_type(plain, name)
    if plain.dtype.kind in "mM":
        mask = mask | np.isnat(plain)
    if pa.types.is_date32(kind):
        _refuse_far_days(plain, mask, name)
    return pa.field(name, kind), pa.array(plain, type=kind, mask=mask)


def _refuse_far_days(days: Any, mask: Any, name: str) -> None:
    """Refuse days that Arrow's 32 bits do not hold; pyarrow would wrap them."""
    numbers = np.where(mask, 0, days.view("i8"))
    beyond = np.flatnonzero(numbers != numbers.astype(np.int32))
    if len(beyond):
        row = int(beyond[0])
        message = f"column {name!r}, row {row}: the day {days[row]} is beyond what Arrow's dates hold"
        raise DataError(message, column=name, row=row)


def _of_numpy(values: Any, kind: Any, *, nan_is_null: bool) -> Any:
    """Make the array of a NumPy array: over its own memory, where nothing in it is missing."""
    match values.dtype.kind:
        case "b":
            bits = np.packbits(values, bitorder="little")
            return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(bits)])
        case "f":
            # A sum is NaN where a value is; else it is only where two infinities meet.
            with np.errstate(all="ignore"):
                may_miss = nan_is_null and bool(np.isnan(values.sum()))
            return pa.array(values, type=kind, from_pandas=may_miss)
        case "M" | "m" if len(values) and values.view("i8").min() != _NAT and kind.bit_width == _BITS:
            return pa.array(values.view("i8")).view(kind)
        case _:
            return pa.array(values, type=kind, from_pandas=True)


def _native_order(values: Any) -> Any:
    """Return a NumPy array, or a Series over one, in the machine's own order of bytes, which alone Arrow takes."""
    order = getattr(values.dtype, "byteorder", "=")
    return values if order in "=|" or np.dtype(values.dtype).isnative else values.astype(values.dtype.newbyteorder("="))


def _data_type(values: Any, name: str) -> Any:
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "mM" and np.datetime_data(values.dtype)[1] != 1:
        # A multiple of a unit, whose numbers pyarrow takes for the unit's.
        raise _no_type(values, name)
    try:
        if getattr(values.dtype, "kind", "") in "biufmM" and isinstance(values.dtype, np.dtype):
            return pa.from_numpy_dtype(values.dtype)
        kind = pa.array(values[:0]).type
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise _no_type(values, name) from error
    # A period would be the number of it, and an interval would lose which of its ends belong to it.
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    if getattr(inner, "extension_name", "").startswith("pandas."):
        raise _no_type(values, name)
    return kind


def _no_text(name: str) -> DataError:
    hint = "look for lone surrogates, and for bytes that were read as characters"
    message = f"column {name!r} has a value that is not text, which UTF-8 has no form of"
    return DataError(message, hint=hint, column=name)


def _no_type(values: Any, name: str) -> DataError:
    hint = "convert the column, with astype(str) for example"
    return DataError(f"column {name!r} is of dtype {values.dtype}, which Arrow has no type for", hint=hint, column=name)


def rows_table(rows: Sequence[Any], columns: Sequence[str] | None, options: Options) -> Any:
    """Return a ``pyarrow.Table`` of rows, whose columns are ``columns`` where they have no names of their own.

    Raises ``InterfaceError`` for rows without names, or with other ones, and as ``table`` does.
    """
    values = _by_position(rows, columns) if rows and _is_sequence(rows[0]) else _by_name(rows, columns)
    return table({name: column(each, name) for name, each in values.items()}, options)


def rows_engine_table(rows: Sequence[Any], name: str, projection: Projection, options: Options) -> Any:
    """Return a ``pyarrow.Table`` of the columns that a query reads of a list of dicts; raises as ``table`` does."""
    from longshore.frames.scan import table_of

    keys = _keys(_records(rows))
    names = list(keys)
    read = [names[at] for at in column_positions(names, projection(), name)]
    columns = {each: column([row.get(keys[each]) for row in rows], each) for each in read}
    fields, arrays = to_arrow(columns, options)
    return table_of(fields, arrays, rows, name)


def _by_name(rows: Sequence[Any], columns: Sequence[str] | None) -> dict[str, list[Any]]:
    """Return the values under each key of dicts; one that a row lacks is NULL."""
    records = _records(rows)
    keys = _keys(records)
    if columns is not None:
        if unnamed := [name for name in keys if name not in columns]:
            raise InterfaceError(f"the rows have {', '.join(map(repr, unnamed))}, which columns does not name")
        keys = {name: keys.get(name, name) for name in columns}
    if not keys:
        hint = "name them: columns=[...]"
        what = "the rows have no columns" if rows else "the list has no rows, so there are no columns to write"
        raise InterfaceError(what, hint=hint)
    return {name: [record.get(key) for record in records] for name, key in keys.items()}


def _keys(records: Sequence[Mapping[Any, Any]]) -> dict[str, Any]:
    """Return the keys that any row has, by the columns' names."""
    keys = dict.fromkeys(key for record in records for key in record)
    named = {column_name(key): key for key in keys}
    if len(named) < len(keys):
        raise InterfaceError("two keys of the rows have one name once they are texts")
    return named


def _records(rows: Sequence[Any]) -> Sequence[Mapping[Any, Any]]:
    if all(isinstance(row, Mapping) for row in rows):
        return rows
    return [_record(row, at) for at, row in enumerate(rows)]


def _record(row: Any, at: int) -> Mapping[Any, Any]:
    if isinstance(row, Mapping):
        return row
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    message = f"row {at} is of type {type(row).__name__}, and the first one is a dict or a dataclass"
    raise InterfaceError(message, row=at)


def _by_position(rows: Sequence[Any], columns: Sequence[str] | None) -> dict[str, list[Any]]:
    names = getattr(rows[0], "_fields", None) if columns is None else columns
    if names is None:
        hint = 'name them: columns=["id", "name"]'
        raise InterfaceError("the rows are tuples, which have no names for their columns", hint=hint)
    for at, row in enumerate(rows):
        if not _is_sequence(row) or (columns is None and getattr(row, "_fields", None) != names):
            message = f"row {at} is of type {type(row).__name__}, the first one is {type(rows[0]).__name__}"
            raise InterfaceError(message, row=at)
        if len(row) != len(names):
            raise InterfaceError(f"row {at} has {len(row)} values, and there are {len(names)} columns", row=at)
    values = list(zip(*rows, strict=True))
    return {column_name(name): list(each) for name, each in zip(names, values, strict=True)}


def _is_sequence(row: object) -> bool:
    """Whether a row has its values by position."""
    return isinstance(row, tuple | list)
