"""Rows of a store as the SQL engine scans them, and the engine's in a table's own Arrow types: exactly, or refused."""

from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any

from longshore.errors import DataError
from longshore.frames import needing
from longshore.frames.engine_values import durations, refuse_own_values
from longshore.frames.pushdown import fold_name
from longshore.frames.scan import compute, engine_table, is_scanned_as_it_is
from longshore.sources.dialects import literal
from longshore.texts import quoted_name

with needing(library="pyarrow", extra="store", purpose="SQL over a store"):
    import pyarrow as pa

#: In which form the engine gets columns: an older pyarrow has no decimals of 64 bits.
FORM = "encoded" if hasattr(pa, "decimal64") else "stored"

_HINT = "cast it in the statement to a type that the column holds"

#: The most texts that are found one after another.
_MOST_FLAGS = 8

#: The engine's names for the types that it gives as they are stored.
NATIVE = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.uint8(): "utinyint",
    pa.uint16(): "usmallint",
    pa.uint32(): "uinteger",
    pa.uint64(): "ubigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.time64("us"): "time",
    pa.timestamp("s"): "timestamp_s",
    pa.timestamp("ms"): "timestamp_ms",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("ns"): "timestamp_ns",
    pa.timestamp("us", "UTC"): "timestamp with time zone",
    pa.string(): "varchar",
    pa.binary(): "blob",
}
#: The metadata that marks texts that lie in the files: those are looked at where that is asked for.
_MAPPED = {"longshore:mapped": ""}
#: The types that it gives in place of others, with the same values.
_GIVEN = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}


def schema_of(data: Any) -> Any:
    """Give the ``pyarrow.Schema`` of an object with ``__arrow_c_schema__``."""
    return pa.schema(data)


def is_plain(schema: Any) -> bool:
    """Whether the engine scans each column as it is."""
    return is_scanned_as_it_is(pa.schema(schema))


def engine_rows(scan: Any, name: str) -> Any:
    """Give the rows of a scan as a table of types that the engine has."""
    return engine_table(_table(scan), name, lambda: None)


def _table(stream: Any) -> Any:
    # pa.table() would import pandas, to see whether it is a DataFrame.
    return pa.RecordBatchReader.from_stream(stream).read_all()


def numbered_flags(rows: Any, names: Collection[str]) -> tuple[Any, dict[str, str]]:
    """Give rows with numbers in place of a few texts of a byte at most, and the SQL that makes the texts again.

    Of such an expression the engine knows all values: it groups by several of them without a hash.
    """
    made = {}
    for name in names:
        column = rows.column(name)
        if not pa.types.is_dictionary(column.type):
            continue
        texts = {text for chunk in column.chunks for text in chunk.dictionary.to_pylist()}
        are_flags = all(isinstance(text, str) and len(text.encode()) <= 1 and text.isprintable() for text in texts)
        if not 0 < len(texts) <= _MOST_FLAGS or not are_flags:
            continue
        column = column.unify_dictionaries()
        numbers = [chunk.indices for chunk in column.chunks]
        rows = rows.set_column(rows.column_names.index(name), name, pa.chunked_array(numbers))
        *cases, last = [literal(text) for text in column.chunk(0).dictionary.to_pylist()]
        if column.null_count:
            cases, last = [*cases, last], "NULL"
        tested = "".join(f" WHEN {number} THEN {text}" for number, text in enumerate(cases))
        made[name] = f"CASE {quoted_name(name)}{tested} ELSE {last} END" if cases else last
    return rows, made


def without_nulls(rows: Any, names: Collection[str]) -> str:
    """Give a condition that holds for all rows, by which the engine knows that several decimals have no NULL.

    For their means it counts rows then, and not the values of each.
    """
    known = [name for name in names if pa.types.is_decimal(rows.schema.field(name).type)]
    tested = [f"{quoted_name(name)} IS NOT NULL" for name in known if not rows.column(name).null_count]
    return f" WHERE {' AND '.join(tested)}" if len(tested) > 1 else ""


def engine_empty(schema: Any, name: str) -> Any:
    """Give a table without rows; in place of a column that the engine lacks there is one of texts."""
    return pa.schema([_engine_field(field, name) for field in schema]).empty_table()


def _engine_field(field: Any, name: str) -> Any:
    try:
        return engine_table(pa.schema([field]).empty_table(), name, lambda: None).schema.field(0)
    except (DataError, pa.ArrowNotImplementedError):
        return pa.field(field.name, pa.string())


def own_schema(rows: Any, required: Collection[str]) -> Any:
    """Give the schema of a table that the engine has made, in the Arrow types that frames have, too."""
    return pa.schema([_own_field(field).with_nullable(field.name not in required) for field in rows.schema])


def _own_field(field: Any) -> Any:
    if extension_name(field) == "arrow.bool8":
        return pa.field(field.name, pa.bool_())
    if pa.types.is_timestamp(field.type) and field.type.tz is not None:
        return field.with_type(pa.timestamp(field.type.unit, "UTC"))
    return field


def extension_name(field: Any) -> str:
    """Give the name of a field's extension type; an empty text where it has none."""
    # A pyarrow that does not know an extension leaves its name in the metadata.
    name = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode()
    return str(field.type.extension_name) if isinstance(field.type, pa.BaseExtensionType) else name


class StoredRows:
    """The rows of a scan under the fields that the engine would give them, handed over once as an Arrow stream."""

    #: The engine's types whose labels a schema lacks: none.
    types = ()

    def __init__(self, scan: Any, fields: Collection[Any], native: list[str]) -> None:
        """Keep the scan, those fields, and the engine's names of their types."""
        self._scan, self.schema, self.native = scan, pa.schema(fields), native

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Give the rows."""
        del requested_schema
        return pa.RecordBatchReader.from_batches(self.schema, self._batches()).__arrow_c_stream__()

    def _batches(self) -> Iterator[Any]:
        for batch in pa.RecordBatchReader.from_stream(self._scan):
            pairs = zip(batch.columns, self.schema.types, strict=True)
            columns = [column if column.type == kind else column.cast(kind) for column, kind in pairs]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def engine_field(field: Any) -> tuple[Any, str] | None:
    """Give a stored column's field as the engine would, and its name of the type; None where values would change."""
    kind = _GIVEN.get(field.type, field.type)
    native = f"decimal({kind.precision},{kind.scale})" if pa.types.is_decimal128(kind) else NATIVE.get(kind)
    if native is None or extension_name(field) or not _is_cast(field.type, kind):
        return None
    return pa.field(field.name, kind, metadata=_MAPPED if kind == pa.string() else None), native


@lru_cache(maxsize=8)
def _is_cast(kind: Any, to: Any) -> bool:
    # Not every pyarrow casts views. The first cast takes milliseconds: only for a type that needs one.
    try:
        return kind == to or pa.array([], kind).cast(to) is not None
    except pa.ArrowNotImplementedError:
        return False


def exact(rows: Any, schema: Any, table: str) -> Any:
    """Give the engine's rows in a table's own types; raises ``DataError`` for a value that would change."""
    return pa.Table.from_arrays(
        [_exact(rows.column(at), field, table) for at, field in enumerate(schema)], schema=schema
    )


def _exact(column: Any, field: Any, table: str) -> Any:
    try:
        for each in column.chunks:
            refuse_own_values(each)
        return column if column.type == field.type else _cast(column, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        message = f"a value does not fit column {field.name!r} of {table!r}, {field.type}: {error}"
        raise DataError(message, column=field.name, native_type=str(field.type), hint=_HINT) from error


def _cast(column: Any, kind: Any) -> Any:
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([each.storage for each in column.chunks], column.type.storage_type)
    if isinstance(kind, pa.BaseExtensionType):
        storage = _cast(column, kind.storage_type)
        return pa.chunked_array([pa.ExtensionArray.from_storage(kind, each) for each in storage.chunks], kind)
    if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(kind):
        column = column.cast(column.type.value_type)
    if pa.types.is_dictionary(kind) and not pa.types.is_dictionary(column.type):
        column = column.cast(kind.value_type).dictionary_encode()
    if pa.types.is_interval(column.type) and pa.types.is_duration(kind):
        column = durations(column)
    made = column if column.type == kind else column.cast(kind)
    # Halves of floats are not looked at by the cast.
    if pa.types.is_float16(kind) and not compute().all(_same(made.cast(column.type), column), min_count=0).as_py():
        raise pa.ArrowInvalid("it has more digits than 16 bits")
    return made


def _same(one: Any, other: Any) -> Any:
    pc = compute()
    both = pc.and_(pc.is_nan(one), pc.is_nan(other))
    return pc.fill_null(pc.or_(pc.equal(one, other), both), fill_value=True)


def first_null(frame: Any, required: Collection[str]) -> tuple[str, int] | None:
    """Give the column and the row of the first NULL where there can be none."""
    table = _table(frame)
    for name, column in zip(table.column_names, table.columns, strict=True):
        if fold_name(name) in required and column.null_count:
            return name, compute().index(column.is_null(), True).as_py()
    return None


def has_lesser_type(kind: Any) -> bool:
    """Whether the engine's own type has fewer values than an Arrow type, or one within it: labels, hours, keys."""
    if isinstance(kind, pa.BaseExtensionType):
        return has_lesser_type(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_time(kind) or pa.types.is_map(kind):
        return True
    return any(has_lesser_type(kind.field(at).type) for at in range(kind.num_fields))
