"""Tables of a store into Parquet files and Delta tables, whose readers know nothing of a store: exactly, or refused."""

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from longshore.errors import DataError, InterfaceError, NotSupportedError, OperationalError, ProgrammingError
from longshore.frames import needing
from longshore.frames.stored import extension_name
from longshore.sources.arrow import first_failure
from longshore.texts import quoted_name

with needing(library="pyarrow", extra="store", purpose="an export of a store"):
    import pyarrow as pa
    import pyarrow.parquet as pq

#: Rows and bytes of a group of rows in a Parquet file.
_MOST_ROWS = 1 << 20
_MOST_BYTES = 64 << 20

#: Characters that Delta's Parquet files have in no column's name.
_NOT_IN_DELTA = re.compile(r"[ ,;{}()\n\t=]")
_DIGITS_OF_DELTA = 38


class Rows(NamedTuple):
    """A table on its way out."""

    name: str
    schema: Any
    #: Opens the rows, whose batches have the schema.
    open: Callable[[], Any]


def export(
    tables: Sequence[Rows], form: "Parquet | Delta", *, replaces: bool, until: Callable[[], None]
) -> dict[str, int]:
    """Write tables, of which none is begun before all are known to fit; give the rows of each."""
    fitting = [(table, _fitting(table, type(form).__name__)) for table in tables]
    form.check(tables, replaces=replaces)
    counts = form.write(fitting, replaces=replaces, until=until)
    return dict(zip((table.name for table in tables), counts, strict=True))


def form_of(name: str, url: str, storage_options: Mapping[str, str] | None) -> "Parquet | Delta":
    """Find what writes a format; raises ``InterfaceError`` for a place or options that it does not have."""
    if name == "delta":
        return Delta(url, storage_options)
    if storage_options is not None:
        raise InterfaceError('storage_options are those of format="delta"')
    return Parquet(_directory(url))


def _directory(url: str) -> Path:
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in {"", "localhost"}:
        return Path(unquote(parts.path))
    if "://" in url:
        hint = 'export to a directory, and copy it; format="delta" writes to cloud storage'
        raise NotSupportedError("Parquet files are written to a directory of this machine", hint=hint)
    return Path(url).expanduser()


class Parquet:
    """A Parquet file for each table, in one directory."""

    def __init__(self, directory: Path) -> None:
        """Keep the directory, which is made where it is missing."""
        self._directory = directory

    def check(self, tables: Sequence[Rows], *, replaces: bool) -> None:
        """Raise ``ProgrammingError`` where a file of a table's name is there, unless it is to be replaced."""
        for table in tables:
            path = self._path(table)
            if path.exists() and not replaces:
                raise _there(f"the file {str(path)!r}")

    def _path(self, table: Rows) -> Path:
        return self._directory / f"{table.name}.parquet"

    def write(self, tables: Sequence[tuple[Rows, Any]], *, replaces: bool, until: Callable[[], None]) -> list[int]:
        """Write each under another name, and give how many rows each has; all get their own once all are on the disk.

        ``until`` raises once the caller has stopped.
        """
        del replaces
        written: list[tuple[Path, Path]] = []
        counts = []
        with contextlib.ExitStack() as stack, _failing(f"writing to {str(self._directory)!r}"):
            self._directory.mkdir(parents=True, exist_ok=True)
            for table, schema in tables:
                # What begins with a dot is not read with the directory.
                hidden = self._directory / f".{table.name}.{secrets.token_hex(4)}.partial"
                stack.callback(hidden.unlink, missing_ok=True)
                counts.append(_write_parquet(hidden, table, schema, until))
                written.append((hidden, self._path(table)))
            for hidden, path in written:
                hidden.replace(path)
            _sync(self._directory)
        return counts


def _write_parquet(path: Path, table: Rows, schema: Any, until: Callable[[], None]) -> int:
    count = 0
    with path.open("xb") as file:
        with pq.ParquetWriter(file, schema) as writer:
            for group in _groups(_batches(table, schema, until), schema):
                writer.write_table(group, row_group_size=_MOST_ROWS)
                count += len(group)
        file.flush()
        os.fsync(file.fileno())
    return count


def _groups(batches: Iterator[Any], schema: Any) -> Iterator[Any]:
    """Gather batches, of which a table with deleted rows has many, into groups of rows."""
    waiting: list[Any] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + len(batch), size + batch.nbytes
        if rows >= _MOST_ROWS or size >= _MOST_BYTES:
            yield pa.Table.from_batches(waiting, schema)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting, schema)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Delta:
    """A Delta table for each table, in one directory or under one URL."""

    def __init__(self, url: str, storage_options: Mapping[str, str] | None) -> None:
        """Keep the place, and what the storage wants to know."""
        with needing(library="deltalake", extra="delta", purpose='format="delta"'):
            import deltalake
        self._lake = deltalake
        self._is_local = "://" not in url or url.startswith("file://")
        self._place = str(_directory(url).absolute()) if self._is_local else url.rstrip("/")
        self._storage = None if storage_options is None else dict(storage_options)

    def _uri(self, table: Rows) -> str:
        return f"{self._place}/{table.name}"

    def check(self, tables: Sequence[Rows], *, replaces: bool) -> None:
        """Raise ``ProgrammingError`` where a table of a name is there, unless it is to be replaced."""
        for table in tables:
            with self._failing(table):
                is_there = self._lake.DeltaTable.is_deltatable(self._uri(table), self._storage)
            if is_there and not replaces:
                raise _there(f"the Delta table {table.name!r}")

    def write(self, tables: Sequence[tuple[Rows, Any]], *, replaces: bool, until: Callable[[], None]) -> list[int]:
        """Write each, which is a commit of its own, and give how many rows each has; ``until`` as above."""
        return [self._write(table, schema, replaces, until) for table, schema in tables]

    def _write(self, table: Rows, schema: Any, replaces: bool, until: Callable[[], None]) -> int:  # noqa: FBT001  as its caller has it
        raised: list[BaseException] = []
        counts: list[int] = []

        def batches() -> Iterator[Any]:
            # An Arrow stream hands on no more of an exception than its text.
            try:
                for batch in _batches(table, schema, until):
                    counts.append(len(batch))
                    yield batch
            except BaseException as error:
                raised.append(error)
                raise

        uri = self._uri(table)
        is_new = self._is_local and not Path(uri).exists()
        try:
            with self._failing(table):
                self._lake.write_deltalake(
                    uri,
                    pa.RecordBatchReader.from_batches(schema, batches()),
                    mode="overwrite" if replaces else "error",
                    schema_mode="overwrite" if replaces else None,
                    storage_options=self._storage,
                )
        except OperationalError as error:
            if is_new:
                shutil.rmtree(uri, ignore_errors=True)
            raise (raised or [error])[0] from None
        return sum(counts)

    @contextlib.contextmanager
    def _failing(self, table: Rows) -> Iterator[None]:
        # Its exceptions have no base of their own.
        try:
            yield
        except Exception as error:  # noqa: BLE001  likewise
            plain = " ".join(_COLOUR.sub("", str(error)).split())
            raise OperationalError(f"writing the Delta table {table.name!r}: {plain}") from None


#: The texts that a terminal makes colours of.
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@contextlib.contextmanager
def _failing(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OperationalError(f"{doing}: {error}") from error


def _there(what: str) -> ProgrammingError:
    return ProgrammingError(f"{what} is there already", hint='export to another place, or if_exists="replace"')


# Types.

#: Gives the type that a column has in a format; raises ``_Unfit`` where the format has none.
_Fit = Callable[[Any, str], Any]


class _Unfit(Exception):  # noqa: N818  it does not reach a caller
    """A type that a format does not have, and the engine's type that holds its values."""

    def __init__(self, what: str, remedy: str = "VARCHAR") -> None:
        super().__init__(what)
        self.remedy = remedy


_TYPES = pa.types
#: The values that a format does not have: a test, how they are called, and the engine's type that holds them.
_Missing = tuple[tuple[Callable[[Any], bool], str, str], ...]
_NEITHER_HAS: _Missing = (
    (_TYPES.is_duration, "durations", "VARCHAR"),
    (_TYPES.is_interval, "intervals", "VARCHAR"),
    (_TYPES.is_union, "unions", "VARCHAR"),
    (_TYPES.is_run_end_encoded, "runs", "VARCHAR"),
    (lambda kind: _TYPES.is_struct(kind) and kind.num_fields == 0, "structs without a field", "VARCHAR"),
    (lambda kind: _TYPES.is_decimal(kind) and kind.scale > kind.precision, "digits behind more zeros", "VARCHAR"),
    (lambda kind: _TYPES.is_decimal(kind) and kind.scale < 0, "decimals of negative scale", "DECIMAL(38, 0)"),
)
_DELTA_LACKS: _Missing = (
    (_TYPES.is_uint8, "unsigned integers", "SMALLINT"),
    (_TYPES.is_uint16, "unsigned integers", "INTEGER"),
    (_TYPES.is_uint32, "unsigned integers", "BIGINT"),
    (_TYPES.is_uint64, "unsigned integers", "DECIMAL(20, 0)"),
    (_TYPES.is_float16, "floats of 16 bits", "FLOAT"),
    (_TYPES.is_time, "times of day", "VARCHAR"),
    (_TYPES.is_null, "columns without a type", "INTEGER"),
    (lambda kind: kind in {pa.timestamp("ns"), pa.timestamp("ns", "UTC")}, "nanoseconds", "TIMESTAMP"),
    (lambda kind: _TYPES.is_timestamp(kind) and kind.unit == "ns", "nanoseconds", "TIMESTAMPTZ"),
    (
        lambda kind: _TYPES.is_decimal(kind) and kind.precision > _DIGITS_OF_DELTA,
        f"decimals of more than {_DIGITS_OF_DELTA} digits",
        "VARCHAR",
    ),
)


def _refuse(kind: Any, missing: _Missing) -> None:
    for is_one, what, remedy in missing:
        if is_one(kind):
            raise _Unfit(what, remedy)


def _fitting(table: Rows, form: str) -> Any:
    """Give a table's schema in a format; raises ``NotSupportedError`` with column, type and remedy."""
    if "/" in table.name or table.name.startswith(".") or "\0" in table.name:
        hint = "give it another: ALTER TABLE ... RENAME TO ..."
        raise NotSupportedError(f"a file cannot have the name of the table {table.name!r}", hint=hint)
    fields, fit = [], _in_delta if form == "Delta" else _in_parquet
    for field in table.schema:
        try:
            fields.append(_fit_field(field, fit))
        except _Unfit as unfit:
            name = quoted_name(field.name)
            cast = f"SELECT * REPLACE (CAST({name} AS {unfit.remedy}) AS {name}) FROM {quoted_name(table.name)}"  # noqa: S608  quoted
            hint = f"export a table that holds it otherwise: CREATE TABLE ... AS {cast}"
            if not unfit.remedy:
                hint = "give it another name: ALTER TABLE ... RENAME ... TO ..."
            message = f"column {field.name!r} of {table.name!r} is {field.type}: {form} has no {unfit}"
            raise NotSupportedError(message, hint=hint, column=field.name, native_type=str(field.type)) from None
    return pa.schema(fields, table.schema.metadata)


def _fit_field(field: Any, fit: _Fit) -> Any:
    if fit is _in_delta and _NOT_IN_DELTA.search(field.name):
        raise _Unfit(f"name such as {field.name!r}", "")
    kind = fit(field.type, extension_name(field))
    return field if kind == field.type else field.with_type(kind)


def _in_parquet(kind: Any, extension: str) -> Any:
    """Give the type of a column in a file, whose Arrow schema is kept with it."""
    if isinstance(kind, pa.BaseExtensionType):
        return _as_stored(kind, _in_parquet, extension)
    _refuse(kind, _NEITHER_HAS)
    if _TYPES.is_time(kind) and kind.unit == "s":
        return pa.time32("ms")
    if _TYPES.is_timestamp(kind) and kind.unit == "s":
        return pa.timestamp("ms", kind.tz)
    return _within(kind, _in_parquet)


def _in_delta(kind: Any, extension: str) -> Any:
    """Give the type of a column of a Delta table."""
    if extension == "arrow.uuid":
        raise _Unfit("UUIDs")
    if isinstance(kind, pa.BaseExtensionType):
        return _as_stored(kind, _in_delta, extension)
    _refuse(kind, (*_NEITHER_HAS, *_DELTA_LACKS))
    if _TYPES.is_decimal(kind):
        return pa.decimal128(kind.precision, kind.scale)
    if _TYPES.is_timestamp(kind):
        return pa.timestamp("us", kind.tz and "UTC")
    return _within(kind, _in_delta)


def _as_stored(kind: Any, fit: _Fit, extension: str) -> Any:
    if fit(kind.storage_type, "") != kind.storage_type:
        raise _Unfit(extension)
    return kind


def _within(kind: Any, fit: _Fit) -> Any:
    """Give a type that has others within it, or one that both formats have."""
    if _TYPES.is_dictionary(kind):
        return fit(kind.value_type, "")
    if _TYPES.is_struct(kind):
        return pa.struct([_fit_field(kind.field(at), fit) for at in range(kind.num_fields)])
    if _TYPES.is_map(kind):
        return pa.map_(_fit_field(kind.key_field, fit), _fit_field(kind.item_field, fit), kind.keys_sorted)
    if kind.num_fields == 0:
        return pa.date32() if _TYPES.is_date64(kind) else kind
    item = _fit_field(kind.value_field, fit)
    if _TYPES.is_fixed_size_list(kind):
        return pa.list_(item, kind.list_size)
    # Lists of views, too, whose offsets may be of 64 bits.
    return pa.list_(item) if _TYPES.is_list(kind) else pa.large_list(item)


# Values.


def _batches(table: Rows, schema: Any, until: Callable[[], None]) -> Iterator[Any]:
    """Give a table's rows in the types of a format; raises ``DataError`` for a value that would change."""
    before = 0
    for batch in table.open():
        until()
        arrays = [_cast(array, field, table.name, before) for array, field in zip(batch.columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        before += len(batch)


def _cast(array: Any, field: Any, table: str, before: int) -> Any:
    if array.type == field.type:
        return array
    try:
        return _exact(array, field.type)
    except pa.ArrowInvalid:
        row = before + first_failure(array, lambda part: _exact(part, field.type))
        hint = f"cast it, or delete the row, and export the table {table!r} again"
        message = f"column {field.name!r}, row {row}: a value of {array.type} does not fit {field.type}"
        raise DataError(message, column=field.name, row=row, native_type=str(array.type), hint=hint) from None


def _exact(array: Any, kind: Any) -> Any:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    made = array.cast(kind)
    # Of a date with milliseconds, the cast takes the day alone.
    if "date64" in str(array.type) and not made.cast(array.type).equals(array):
        raise pa.ArrowInvalid("a date has a time of day")
    return made
