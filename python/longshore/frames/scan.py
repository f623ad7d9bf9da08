"""Arrow tables, datasets and readers in the types that the SQL engine scans: exactly, or refused."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from longshore.errors import DataError, Error, InterfaceError, OperationalError
from longshore.frames import needing
from longshore.frames.pushdown import Projection, are_distinct, column_positions, fold_name
from longshore.texts import column_name

with needing(library="pyarrow", extra="sql", purpose="SQL over dataframes"):
    import pyarrow as pa

#: Rows of a batch: the engine's threads take one each.
_ROWS = 122_880

#: The name of the column in place of those that a query does not read.
_PLACEHOLDER = "(no column is read)"

#: The widest decimal of the engine.
_MOST_DIGITS = 38

#: The text that pyarrow writes before the text of an exception in a stream, and between it and its traceback.
_UNKNOWN = "Unknown error: "
_DETAIL = ". Detail: Python exception: "

_DAY = 86_400
_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_INTERVAL = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])

_NO_TYPE = "the engine does not have the type"
_NO_NANOSECONDS = "the engine's intervals have no nanoseconds"
_HINT = "convert the column before the query, or leave it out of it"


def compute() -> Any:
    """Import pyarrow's functions, which takes longer than a small write that needs none."""
    import pyarrow.compute

    return pyarrow.compute


def engine_table(data: Any, name: str, projection: Projection) -> Any:
    """Return the columns of a Table or a RecordBatch that a query reads."""
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    is_exact = _is_exact(data.schema) and not any(map(_has_lossy, data.schema.types))
    positions = column_positions(
        [column_name(each) for each in data.column_names], None if is_exact else projection(), name
    )
    return table_of([data.schema.field(at) for at in positions], [data.column(at) for at in positions], data, name)


def table_of(fields: Sequence[Any], columns: Sequence[Any], rows: Any, name: str) -> Any:
    """Make a table of the columns that a query reads, or of a placeholder for none: its rows may be counted."""
    if not fields:
        return _batch(pa.table({_PLACEHOLDER: pa.nulls(len(rows), pa.int8())}))
    arrays = [_convert(column, field, name) for field, column in zip(fields, columns, strict=True)]
    kinds = [field.with_type(array.type) for field, array in zip(fields, arrays, strict=True)]
    return _batch(pa.Table.from_arrays(arrays, schema=pa.schema(kinds)))


def engine_dataset(data: Any, name: str, projection: Projection) -> Any:
    """Return a Dataset, whose columns and rows the engine asks for as it needs them."""
    labels = [column_name(each) for each in data.schema.names]
    is_parquet = getattr(getattr(data, "format", None), "default_extname", None) == "parquet"

    def refusal(kind: Any) -> str | None:
        # Parquet has no dates with a time of day.
        if not is_parquet and pa.types.is_date64(kind):
            return "a date with a time of day would be cut"
        if _contains(kind, _has_nanoseconds):
            return "an interval with nanoseconds would be cut"
        return None

    if _is_exact(data.schema) and not any(map(refusal, data.schema.types)):
        return data
    positions = column_positions(labels, projection(), name)
    for at in positions:
        field = data.schema.field(at)
        if reason := _refusal(field.type) or (_NO_TYPE if _lacks(field.type) else refusal(field.type)):
            raise _column_error(field, name, reason)
    read = positions or [at for at, field in enumerate(data.schema) if field.name and not _lacks(field.type)][:1]
    if not read:
        raise InterfaceError(f"{name!r} has no column that the engine could read")
    return data.replace_schema(pa.schema([data.schema.field(at) for at in read]))


def engine_reader(data: Any, name: str, on_error: Callable[[BaseException], None]) -> Any:
    """Return a reader that the engine reads once, of a reader or of anything with ``__arrow_c_stream__``.

    ``on_error`` gets the exception that ends it early, of which the engine only learns the text.
    """
    from longshore.frames.arrow import checked_batches

    is_reader = isinstance(data, pa.RecordBatchReader)
    stream = data if is_reader else _import(pa.RecordBatchReader.from_stream, data, name)
    column_positions([column_name(each) for each in stream.schema.names], None, name)
    schema = pa.schema([_converted_field(field, name) for field in stream.schema])
    batches = checked_batches(stream) if is_reader else _translating(checked_batches(stream), name)
    if schema.types != stream.schema.types or any(map(_has_lossy, schema.types)):
        batches = _converted_batches(batches, schema, name)
    if any(map(_has_nested_structs, schema.types)):
        batches = map(_without_offsets, batches)
    return pa.RecordBatchReader.from_batches(schema, _reporting(batches, on_error))


def read_all(data: Any, name: str) -> Any:
    """Read everything with ``__arrow_c_stream__`` or ``__arrow_c_array__`` into a table."""
    if hasattr(data, "__arrow_c_stream__"):
        stream = _import(pa.RecordBatchReader.from_stream, data, name)
        try:
            return stream.read_all()
        except (pa.ArrowException, OSError) as error:
            raise _stream_error(error, name) from error
    return pa.Table.from_batches([_import(pa.record_batch, data, name)])


def _import(make: Callable[[Any], Any], data: Any, name: str) -> Any:
    try:
        return make(data)
    except (pa.ArrowInvalid, TypeError) as error:
        raise InterfaceError(f"{name!r}, of type {type(data).__name__}, is not a table: {error}") from error


def _translating(batches: Iterator[Any], name: str) -> Iterator[Any]:
    """Return the batches of a foreign stream; where it stops, the error has the reason that it left pyarrow."""
    try:
        yield from batches
    except Error:
        raise
    except Exception as error:
        raise _stream_error(error, name) from error


def _stream_error(error: Exception, name: str) -> BaseException:
    """Make the exception for a foreign stream that stopped, of the text that pyarrow has of its own."""
    text, _, trace = str(error).removeprefix(_UNKNOWN).partition(_DETAIL)
    last = trace.strip().rpartition("\n")[-1]
    if last == "KeyboardInterrupt":
        return KeyboardInterrupt()
    return OperationalError(f"reading {name!r} stopped: {text or last}")


def _reporting(batches: Iterator[Any], on_error: Callable[[BaseException], None]) -> Iterator[Any]:
    try:
        yield from batches
    except GeneratorExit:
        # The engine does not want the rest.
        raise
    except BaseException as error:
        on_error(error)
        raise


def _batch(table: Any) -> Any:
    if any(map(_has_nested_structs, table.schema.types)):
        batches = [_without_offsets(batch) for batch in table.to_batches(max_chunksize=_ROWS)]
    elif len(table) > _ROWS:
        batches = table.to_batches(max_chunksize=_ROWS)
    else:
        return table
    return pa.Table.from_batches(batches, schema=table.schema)


def _converted_batches(batches: Iterator[Any], schema: Any, table: str) -> Iterator[Any]:
    before = 0
    for batch in batches:
        pairs = zip(batch.columns, batch.schema, strict=True)
        columns = [_convert(column, field, table, before=before) for column, field in pairs]
        before += len(batch)
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _convert(column: Any, field: Any, table: str, *, before: int = 0) -> Any:
    """Return a column in a type of the engine's; raises ``DataError`` for a value that it does not have."""
    if reason := _refusal(field.type):
        raise _column_error(field, table, reason)
    if _has_lossy(field.type):
        _refuse_lossy(column, field.name, table, before)
    target = _map_type(field.type, _engine_type)
    if target is None:
        return column
    try:
        converted = column.cast(target)
        # pyarrow makes broken lists of some that have nothing but NULLs next to others.
        converted.validate()
    except pa.ArrowInvalid as error:
        raise _column_error(field, table, str(error)) from error
    return converted


def _converted_field(field: Any, table: str) -> Any:
    if reason := _refusal(field.type):
        raise _column_error(field, table, reason)
    target = _map_type(field.type, _engine_type)
    return field if target is None else field.with_type(target)


def _column_error(field: Any, table: str, reason: str) -> DataError:
    message = f"column {field.name!r} of {table!r}, {field.type}: {reason}"
    return DataError(message, column=field.name, native_type=str(field.type), hint=_HINT)


def _contains(kind: Any, is_sought: Callable[[Any], bool]) -> bool:
    """Whether a type, or one within it, is sought."""
    if is_sought(kind):
        return True
    if isinstance(kind, pa.BaseExtensionType):
        return _contains(kind.storage_type, is_sought)
    if pa.types.is_dictionary(kind):
        return _contains(kind.value_type, is_sought)
    return any(_contains(kind.field(at).type, is_sought) for at in range(kind.num_fields))


def _has_nanoseconds(kind: Any) -> bool:
    return bool(pa.types.is_interval(kind)) or kind == pa.duration("ns")


def _has_lossy(kind: Any) -> bool:
    """Whether a type has values, at any depth, that the engine would change."""
    types = pa.types
    return _contains(kind, lambda each: types.is_date64(each) or types.is_time(each) or _has_nanoseconds(each))


def _is_exact(schema: Any) -> bool:
    """Whether no column can be refused, read or not."""
    return are_distinct(schema.names) and not any(_lacks(field.type) for field in schema)


def is_scanned_as_it_is(schema: Any) -> bool:
    """Whether no column has to be looked at or converted."""
    kinds = schema.types
    return _is_exact(schema) and not any(
        _has_lossy(kind) or _map_type(kind, _engine_type) is not None for kind in kinds
    )


def _lacks(kind: Any) -> bool:
    """Whether the engine does not have a type, or would change it."""
    return _refusal(kind) is not None or _map_type(kind, _replacement) is not None


def _refusal(kind: Any) -> str | None:
    """Return why a type is refused: what the engine would silently change in it, at any depth."""
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name.startswith("pandas."):
            return "a pandas period or interval, which the engine does not have"
        return _refusal(kind.storage_type)
    is_in_runs = pa.types.is_run_end_encoded(kind)
    if is_in_runs or pa.types.is_dictionary(kind):
        # Runs are not taken apart, neither to look at their values nor to convert them.
        is_lacking = _map_type(kind.value_type, _replacement) is not None or (
            is_in_runs and _has_lossy(kind.value_type)
        )
        return _NO_TYPE if is_lacking else _refusal(kind.value_type)
    fields = [kind.field(at) for at in range(kind.num_fields)]
    if pa.types.is_struct(kind):
        folded = {fold_name(field.name) for field in fields}
        if "" in folded:
            return "one of its fields has no name"
        if len(folded) < len(fields):
            return "two of its fields have names that SQL does not tell apart"
    return next((reason for field in fields if (reason := _refusal(field.type))), None)


def _map_type(kind: Any, leaf: Callable[[Any], Any]) -> Any:
    """Return the type that holds the values of another, by ``leaf`` for those within it; None for itself."""
    target = leaf(kind)
    if target is not None or pa.types.is_union(kind) or pa.types.is_run_end_encoded(kind):
        return target
    if pa.types.is_fixed_size_list(kind):
        leaf = partial(_decoded_leaf, leaf)
    fields = [kind.field(at) for at in range(kind.num_fields)]
    targets = [_map_type(field.type, leaf) for field in fields]
    if not any(targets):
        return None
    fields = [field if to is None else field.with_type(to) for field, to in zip(fields, targets, strict=True)]
    if pa.types.is_struct(kind):
        return pa.struct(fields)
    if pa.types.is_map(kind):
        entries = fields[0].type
        return pa.map_(entries.field(0), entries.field(1), keys_sorted=kind.keys_sorted)
    size = kind.list_size if pa.types.is_fixed_size_list(kind) else -1
    return pa.large_list(fields[0]) if pa.types.is_large_list(kind) else pa.list_(fields[0], size)


def _decoded_leaf(leaf: Callable[[Any], Any], kind: Any) -> Any:
    """Return the type of a dictionary's values: the engine takes its keys for them within lists of a fixed size."""
    return kind.value_type if pa.types.is_dictionary(kind) else leaf(kind)


def _engine_type(kind: Any) -> Any:
    """Return the type in which the engine takes all values of another; None for itself."""
    if (replacement := _replacement(kind)) is not None:
        return replacement
    # The engine converts these itself, and fails on a NaT that lies below a NULL.
    if kind in (pa.duration("s"), pa.duration("ms")):
        return pa.duration("us")
    if pa.types.is_timestamp(kind) and kind.tz is not None and kind.unit in {"s", "ms"}:
        return pa.timestamp("us", kind.tz)
    return None


def _replacement(kind: Any) -> Any:
    """Return the type that holds the values of one that the engine does not have; None for one that it has."""
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_decimal256(kind):
        return pa.decimal128(min(kind.precision, _MOST_DIGITS), kind.scale)
    if pa.types.is_decimal128(kind) and kind.scale < 0:
        return pa.decimal128(min(kind.precision - kind.scale, _MOST_DIGITS), 0)
    return None


def _refuse_lossy(column: Any, name: str, table: str, before: int) -> None:
    """Raise ``DataError`` for the first value that the engine would change; ``before`` counts the rows before it."""
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        if found := _first_lossy(chunk):
            row, reason = before + found[0], found[1]
            message = f"column {name!r} of {table!r}, row {row}, {column.type}: {reason}"
            raise DataError(message, column=name, row=row, native_type=str(column.type), hint=_HINT)
        before += len(chunk)


def _first_lossy(array: Any) -> tuple[int, str] | None:
    """Return the first row with a value that the engine would change, and why it would."""
    if pa.types.is_date64(array.type):
        pc = compute()
        ticks = array.view(pa.int64())
        days = pc.multiply(pc.divide(ticks, _DAY * 1_000), _DAY * 1_000)
        return _first_true(pc.not_equal(days, ticks), "a date with a time of day, which the engine would cut")
    if pa.types.is_time(array.type):
        return _first_true(_beyond_day(array), "a time that is in no day")
    if array.type == pa.duration("ns"):
        ticks = compute().fill_null(array.view(pa.int64()), 0).to_numpy(zero_copy_only=False)
        return _first_true(pa.array(ticks % 1000 != 0), _NO_NANOSECONDS)
    if pa.types.is_interval(array.type):
        values = np.frombuffer(array.buffers()[1] or b"", dtype=_INTERVAL)["nanoseconds"]
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        values = values[array.offset : array.offset + len(array)]
        return _first_true(pa.array((values % 1000 != 0) & valid), _NO_NANOSECONDS)
    return _first_lossy_within(array) if _has_lossy(array.type) else None


def _beyond_day(times: Any) -> Any:
    pc = compute()
    ticks = times.view(pa.int32() if pa.types.is_time32(times.type) else pa.int64())
    # 24:00 is a time of the engine's.
    most = pa.scalar(_DAY * _TICKS[times.type.unit], ticks.type)
    return pc.or_(pc.less(ticks, pa.scalar(0, ticks.type)), pc.greater(ticks, most))


def _first_lossy_within(array: Any) -> tuple[int, str] | None:
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return _first_lossy(array.storage)
    if pa.types.is_dictionary(kind):
        return _first_lossy(array.dictionary_decode())
    if pa.types.is_struct(kind):
        return min(filter(None, map(_first_lossy, array.flatten())), default=None)
    if pa.types.is_map(kind):
        array = array.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
    if (found := _first_lossy(array.flatten())) is None:
        return None
    item, reason = found
    return compute().list_parent_indices(array)[item].as_py(), reason


def _first_true(array: Any, reason: str) -> tuple[int, str] | None:
    row: int = compute().index(array, True).as_py()
    return None if row < 0 else (row, reason)


def _has_nested_structs(kind: Any) -> bool:
    """Whether a type is a struct with a struct or a union for a field, whose slices the engine does not take."""
    if not pa.types.is_struct(kind):
        return False
    below = [kind.field(at).type for at in range(kind.num_fields)]
    return any(pa.types.is_struct(each) or pa.types.is_union(each) for each in below)


def _without_offsets(batch: Any) -> Any:
    """Return the batch with copies of the nested structs that begin within their memory."""
    columns = [_copy(column) if _has_nested_structs(column.type) and _is_slice(column) else column for column in batch]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _is_slice(array: Any) -> bool:
    is_struct = pa.types.is_struct(array.type)
    return array.offset != 0 or (is_struct and any(_is_slice(array.field(at)) for at in range(array.type.num_fields)))


def _copy(array: Any) -> Any:
    try:
        # One array alone would be given back as it is.
        return pa.concat_arrays([array, array[:0]])
    except pa.ArrowNotImplementedError:
        # The engine refuses it, and says why.
        return array
