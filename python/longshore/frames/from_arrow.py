"""pyarrow: tables in the types that the engine takes, exactly or not at all."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from longshore.errors import DataError, InterfaceError
from longshore.frames.libraries import missing
from longshore.frames.rows import Rows, together
from longshore.frames.selected import are_clear, folded, selected
from longshore.frames.use import Wanted
from longshore.options import Options
from longshore.texts import column_name

try:
    import pyarrow as pa
except ImportError as error:
    raise missing(library="pyarrow", extra="sql", purpose="SQL over dataframes") from error

#: Rows of a batch: the engine's threads take one each.
_ROWS = 122_880

#: What a column is called that no query reads.
_PLACEHOLDER = "(no column is read)"

#: The widest decimal of the engine.
_MOST_DIGITS = 38

_LACKING = "the engine does not have the type"


def table(data: Any, name: str, wanted: Wanted) -> Any:
    """Give the columns of a Table or a RecordBatch that a query reads."""
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    from longshore.frames.within import is_loose

    is_safe = _is_plain(data.schema) and not any(map(is_loose, data.schema.types))
    places = selected(names(data), None if is_safe else wanted(), name)
    return of_columns([data.schema.field(at) for at in places], [data.column(at) for at in places], data, name)


def names(data: Any) -> list[str]:
    """Give the columns' names; raises ``InterfaceError`` for one that is none."""
    return [column_name(each) for each in data.column_names]


def values(data: Any, at: int) -> Any:
    """Give a column of a Table as it lies in memory."""
    return data.column(at)


def taken(data: Any, places: Sequence[int], rows: Rows, options: Options) -> Any:
    """Give some rows of some columns of a Table."""
    del options
    fields = [data.schema.field(at) for at in places]
    arrays = together(rows.of_arrow, [data.column(at) for at in places], rows.threads)
    kinds = [field.with_type(array.type) for field, array in zip(fields, arrays, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(kinds))


def of_columns(fields: Sequence[Any], columns: Sequence[Any], rows: Any, name: str) -> Any:
    """Make a table of chosen columns, and of a placeholder where a query reads none: its rows may be counted."""
    if not fields:
        return _sliced(pa.table({_PLACEHOLDER: pa.nulls(len(rows), pa.int8())}))
    fitted = [_fitted(column, field, name) for field, column in zip(fields, columns, strict=True)]
    kinds = [field.with_type(column.type) for field, column in zip(fields, fitted, strict=True)]
    return _sliced(pa.Table.from_arrays(fitted, schema=pa.schema(kinds)))


def dataset(data: Any, name: str, wanted: Wanted) -> Any:
    """Give a Dataset, whose columns and rows the engine asks for as it needs them."""
    names = [column_name(each) for each in data.schema.names]
    is_parquet = getattr(getattr(data, "format", None), "default_extname", None) == "parquet"
    from longshore.frames.within import has_runs, is_span

    # Parquet has no dates with a time of day.
    is_cut = not is_parquet and any(map(pa.types.is_date64, data.schema.types))
    is_cut = is_cut or any(is_span(kind) or has_runs(kind) for kind in data.schema.types)
    if _is_plain(data.schema) and not is_cut:
        return data
    places = selected(names, wanted(), name)
    for at in places:
        field = data.schema.field(at)
        _refuse_unfit(field, name)
        if is_cut and not is_parquet and pa.types.is_date64(field.type):
            raise _unfit(field, name, "a date with a time of day would be cut")
        if is_span(field.type):
            raise _unfit(field, name, "a span with nanoseconds would be cut")
        if has_runs(field.type):
            raise _unfit(field, name, _LACKING)
    fit = places or [at for at, field in enumerate(data.schema) if field.name and not _is_unfit(field.type)][:1]
    if not fit:
        message = f"{name!r} has no column that the engine could read"
        raise InterfaceError(message)
    return data.replace_schema(pa.schema([data.schema.field(at) for at in fit]))


def reader(data: Any, name: str, failed: Callable[[BaseException], None]) -> Any:
    """Give a reader that the engine reads once, of a reader or of anything with ``__arrow_c_stream__``.

    ``failed`` is told what ends it early, for the engine only learns the text of it.
    """
    from longshore.frames.checked import checked, told, translated
    from longshore.frames.unsliced import is_deep, unsliced
    from longshore.frames.within import is_loose

    is_own = isinstance(data, pa.RecordBatchReader)
    stream = data if is_own else _imported(pa.RecordBatchReader.from_stream, data, name)
    selected([column_name(each) for each in stream.schema.names], None, name)
    schema = pa.schema([_fitted_field(field, name) for field in stream.schema])
    batches = checked(stream) if is_own else translated(checked(stream), name)
    if schema.types != stream.schema.types or any(map(is_loose, schema.types)):
        batches = _fitted_batches(batches, schema, name)
    if any(map(is_deep, schema.types)):
        batches = map(unsliced, batches)
    return pa.RecordBatchReader.from_batches(schema, told(batches, failed))


def _fitted_field(field: Any, table: str) -> Any:
    from longshore.frames.within import plain_type

    fault = _fault(field.type)
    if fault is not None:
        raise _unfit(field, table, fault)
    field = field.with_type(plain_type(field.type))
    target = _cast(field.type, _taken)
    return field if target is None else field.with_type(target)


def _fitted_batches(batches: Iterator[Any], schema: Any, table: str) -> Iterator[Any]:
    before = 0
    for batch in batches:
        pairs = zip(batch.columns, batch.schema, strict=True)
        columns = [_fitted(column, field, table, before=before) for column, field in pairs]
        before += len(batch)
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def whole(data: Any, name: str) -> Any:
    """Read everything with ``__arrow_c_stream__`` or ``__arrow_c_array__`` into a table."""
    if hasattr(data, "__arrow_c_stream__"):
        from longshore.frames.checked import stopped

        stream = _imported(pa.RecordBatchReader.from_stream, data, name)
        try:
            return stream.read_all()
        except (pa.ArrowException, OSError) as error:
            raise stopped(error, name) from error
    return pa.Table.from_batches([_imported(pa.record_batch, data, name)])


def _imported(make: Callable[[Any], Any], data: Any, name: str) -> Any:
    try:
        return make(data)
    except (pa.ArrowInvalid, TypeError) as error:
        message = f"{name!r}, of type {type(data).__name__}, is not a table: {error}"
        raise InterfaceError(message) from error


def _is_plain(schema: Any) -> bool:
    """Whether no column can be at fault, needed or not."""
    return are_clear(schema.names) and not any(_is_unfit(field.type) for field in schema)


def _is_unfit(kind: Any) -> bool:
    return _fault(kind) is not None or _cast(kind, _lacking) is not None


def _sliced(made: Any) -> Any:
    from longshore.frames.unsliced import is_deep, unsliced

    if any(map(is_deep, made.schema.types)):
        batches = [unsliced(batch) for batch in made.to_batches(max_chunksize=_ROWS)]
    elif len(made) > _ROWS:
        batches = made.to_batches(max_chunksize=_ROWS)
    else:
        return made
    return pa.Table.from_batches(batches, schema=made.schema)


def _fitted(column: Any, field: Any, table: str, *, before: int = 0) -> Any:
    """Give a column in a type of the engine's; raises ``DataError`` for a value that it does not have."""
    from longshore.frames.within import has_runs, is_loose, refuse_loose, without_runs

    fault = _fault(field.type)
    if fault is not None:
        raise _unfit(field, table, fault)
    if has_runs(field.type):
        column = without_runs(column)
        field = field.with_type(column.type)
    if is_loose(field.type):
        refuse_loose(column, field.name, table, before=before)
    target = _cast(field.type, _taken)
    if target is None:
        return column
    try:
        made = column.cast(target)
        # pyarrow makes broken lists of some that have nothing but NULLs beside others.
        made.validate()
    except pa.ArrowInvalid as error:
        raise _unfit(field, table, str(error)) from error
    return made


def _refuse_unfit(field: Any, table: str) -> None:
    """Raise ``DataError`` for a type whose values would have to be looked at before the engine reads them."""
    fault = _fault(field.type)
    if fault is None and _cast(field.type, _lacking) is not None:
        fault = _LACKING
    if fault is not None:
        raise _unfit(field, table, fault)


def _unfit(field: Any, table: str, fault: str) -> DataError:
    hint = "convert the column before the query, or leave it out of it"
    message = f"column {field.name!r} of {table!r}, {field.type}: {fault}\nHint: {hint}"
    return DataError(message, column=field.name, native_type=str(field.type), hint=hint)


def _cast(kind: Any, leaf: Callable[[Any], Any]) -> Any:
    """Give the type that holds the values of another, by what ``leaf`` gives for those within it; None for itself."""
    return leaf(kind) or _cast_inside(kind, leaf)


def _taken(kind: Any) -> Any:
    """Give the type in which the engine takes all values of another."""
    return _lacking(kind) or _microseconds(kind)


def _lacking(kind: Any) -> Any:
    """Give the type that holds the values of one that the engine does not have."""
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_decimal256(kind):
        return pa.decimal128(min(kind.precision, _MOST_DIGITS), kind.scale)
    if pa.types.is_decimal128(kind) and kind.scale < 0:
        return pa.decimal128(min(kind.precision - kind.scale, _MOST_DIGITS), 0)
    return None


def _microseconds(kind: Any) -> Any:
    """Give the type to which the engine converts one of longer units; it fails on a NaT that lies below a NULL."""
    if kind in (pa.duration("s"), pa.duration("ms")):
        return pa.duration("us")
    if pa.types.is_timestamp(kind) and kind.tz is not None and kind.unit in {"s", "ms"}:
        return pa.timestamp("us", kind.tz)
    return None


def _cast_inside(kind: Any, leaf: Callable[[Any], Any]) -> Any:
    if pa.types.is_union(kind) or pa.types.is_run_end_encoded(kind):
        return None
    if pa.types.is_fixed_size_list(kind):
        leaf = partial(_decoded, leaf)
    fields = [kind.field(at) for at in range(kind.num_fields)]
    casts = [_cast(field.type, leaf) for field in fields]
    if not any(casts):
        return None
    fitted = [field if to is None else field.with_type(to) for field, to in zip(fields, casts, strict=True)]
    if pa.types.is_struct(kind):
        return pa.struct(fitted)
    if pa.types.is_map(kind):
        entries = fitted[0].type
        return pa.map_(entries.field(0), entries.field(1), keys_sorted=kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(fitted[0], kind.list_size)
    return pa.large_list(fitted[0]) if pa.types.is_large_list(kind) else pa.list_(fitted[0])


def _decoded(leaf: Callable[[Any], Any], kind: Any) -> Any:
    """Give the type of a dictionary's values: the engine takes its keys for them within lists of a fixed size."""
    return kind.value_type if pa.types.is_dictionary(kind) else leaf(kind)


def _fault(kind: Any) -> str | None:
    """Tell what the engine would change without a word in values of a type, at any depth."""
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name.startswith("pandas."):
            return "a pandas period or interval, which the engine does not have"
        return _fault(kind.storage_type)
    if pa.types.is_dictionary(kind):
        is_lacking = not pa.types.is_float16(kind.value_type) and _cast(kind.value_type, _lacking) is not None
        return _LACKING if is_lacking else _fault(kind.value_type)
    if pa.types.is_struct(kind) and (fault := _fault_of_names(kind)) is not None:
        return fault
    return next((fault for at in range(kind.num_fields) if (fault := _fault(kind.field(at).type))), None)


def _fault_of_names(kind: Any) -> str | None:
    names = [folded(kind.field(at).name) for at in range(kind.num_fields)]
    if "" in names:
        return "one of its fields has no name"
    return "two of its fields have names that SQL does not tell apart" if len(set(names)) < len(names) else None


def filed(paths: Sequence[str]) -> Any:
    """Give a Dataset of files in Arrow's IPC format; directories such as ``year=2026`` are columns."""
    import pyarrow.dataset

    return pyarrow.dataset.dataset(list(paths), format="ipc", partitioning="hive")


def streamed(paths: Sequence[str]) -> Any:
    """Read files that hold an IPC stream each, as one table."""
    tables = []
    for path in paths:
        with pa.memory_map(path) as source:
            tables.append(pa.ipc.open_stream(source).read_all())
    return pa.concat_tables(tables)
