"""Rows into a table of BigQuery's: as one file of Parquet, which becomes the table's in one job.

A job that loads is free, and whole or not at all. Where it cannot do what the write is for, it fills a table of the
write's own, and one statement of SQL does the rest. That table has an end of its own: the service drops it in a day,
whatever happens here.
"""

import contextlib
import datetime as dt
import io
import secrets
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from google.api_core import exceptions
from google.cloud import bigquery

from longshore.errors import DataError, Error, NotSupportedError, OperationalError, ProgrammingError
from longshore.sources.bigquery_types import native_of
from longshore.sources.bigquery_values import Column, new_type, parse_field
from longshore.sources.dialects import BACKTICK, escape
from longshore.sources.loading import EXISTS, MISSING, Load, match_columns

if TYPE_CHECKING:
    from longshore.sources.bigquery import Session

_DATASET = "name it: bigquery://project/dataset, or dataset.table"
_ALONE = "write with autocommit, or over the URL"
_ROOM = "make room there, or name another folder: TMPDIR=..."
_DISPOSITIONS = {"fail": "WRITE_EMPTY", "replace": "WRITE_TRUNCATE", "append": "WRITE_APPEND"}
#: The bytes of a row group, which are in memory, and those of a batch without its values.
_GROUP, _BATCH = 16 << 20, 1 << 10
_STAGED_FOR = dt.timedelta(days=1)


def quoted_name(*names: str) -> str:
    """Give a name, which may have several parts, in quotes."""
    return ".".join(escape(name, BACKTICK) for name in names)


class TableLoader:
    """Rows on their way into a table."""

    def __init__(self, session: "Session", load: Load) -> None:
        """Look at the table that is there, and make none."""
        if session.transaction != "none":
            raise NotSupportedError("a write of BigQuery's cannot be part of a transaction", hint=_ALONE)
        self._session, self._mode, self._key = session, load.if_exists, list(load.key)
        self._path = _path(session, load.schema, load.table)
        self._name, self._target = f"{self._path[1]}.{load.table}", quoted_name(*self._path)
        self._before = self._existing_table()
        data, makes = pa.table(load.columns).schema, self._mode in {"fail", "replace"}
        self._columns = self._new(data, {*load.required}, load.types) if makes else self._existing_columns(data)
        for column, kind in zip(self._columns, data.types, strict=True):
            column.check(kind)
        self._needed = {each.field.name for each in self._columns if each.field.mode == "REQUIRED"}
        self._rows = f"longshore_{secrets.token_hex(8)}"
        self._is_staged = False
        arrow = [each.arrow for each in self._columns]
        #: Of equal keys the last counts.
        self._places = [pa.field(f"{self._rows}_n", pa.int64())] if self._mode == "upsert" else []
        self._schema = pa.schema(arrow + self._places)
        with _file_errors(), contextlib.ExitStack() as failed:
            self._file: IO[bytes] = failed.enter_context(tempfile.TemporaryFile(prefix="longshore"))
            self._writer = pq.ParquetWriter(self._file, self._schema, compression="snappy")
            failed.pop_all()
        self._group: list[pa.RecordBatch] = []
        self._count = self._waiting = 0

    def _existing_table(self) -> Any:
        """Give the table that is there; None where there is none."""
        with self._session.translating():
            try:
                found = self._session.connection.get_table(_reference(self._path))
            except exceptions.NotFound:
                found = None
        if self._mode == "fail" and found is not None:
            raise ProgrammingError(f"the table {self._name} is there already", hint=EXISTS)
        if self._mode not in {"fail", "replace"} and found is None:
            raise ProgrammingError(f"there is no table {self._name}", hint=MISSING)
        return found

    def _new(self, data: pa.Schema, required: set[str], types: Mapping[str, str]) -> list[Column]:
        columns = []
        for field in data:
            native = types.get(field.name) or new_type(field)
            mode = "REQUIRED" if field.name in required or field.name in self._key else "NULLABLE"
            columns.append(Column(field.name, native, parse_field(field.name, native, mode)))
        if len({name.lower() for name in data.names}) < len(data):
            raise ProgrammingError("the data has two columns that the table does not tell apart")
        return columns

    def _existing_columns(self, data: pa.Schema) -> list[Column]:
        fields = {each.name.lower(): each for each in self._before.schema}
        found = match_columns(self._name, data.names, fields, str.lower, (each.name for each in fields.values()))
        given = {field.name for field in found}
        if needed := [
            each.name for each in fields.values()
            if each.mode == "REQUIRED" and each.name not in given and each.default_value_expression is None
        ]:  # fmt: skip
            message = f"the table {self._name} needs a value of {', '.join(needed)}, which the data has not"
            raise ProgrammingError(message)
        return [Column(name, native_of(field), field) for name, field in zip(data.names, found, strict=True)]

    def push(self, frame: object, before: int) -> None:
        """Write rows into the file; raises ``DataError`` for a value that the column does not hold exactly."""
        table = pa.table(frame)
        arrays = []
        for column, values in zip(self._columns, table.columns, strict=True):
            if values.null_count and (column.field.name in self._needed or column.name in self._key):
                row = pc.index(pc.is_null(values), value=True).as_py()
                message = "NULL in a column that must have a value"
                raise DataError(message, column=column.name, row=before + row, native_type=column.native.lower())
            arrays.append(column.fit(values, before))
        if self._places:
            arrays.append(pa.array(range(before, before + len(table)), pa.int64()))
        self._group.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._count += len(table)
        self._waiting += self._group[-1].nbytes + _BATCH
        if self._waiting > _GROUP:
            self._end_group()

    def _end_group(self) -> None:
        group, self._group, self._waiting = self._group, [], 0
        if group:
            with _file_errors():
                self._writer.write_table(pa.Table.from_batches(group))

    @property
    def _is_direct(self) -> bool:
        """Whether a job that loads does all that the write is for."""
        if self._mode == "append":
            # A column that is left out has its default by SQL alone.
            is_whole = len(self._columns) == len(self._before.schema)
        else:
            is_whole = self._mode in _DISPOSITIONS and not self._key
        return is_whole and all(each.is_loaded for each in self._columns)

    def commit(self) -> None:
        """Make the rows the table's."""
        self._end_group()
        with _file_errors():
            self._writer.close()
            self._file.flush()
        self._session.is_stopped.clear()
        with self._session.translating():
            if not self._count:
                self._run(self._without_rows())
            elif self._is_direct:
                fields = [_shape(each.field) for each in self._columns]
                self._load(_reference(self._path), fields, _DISPOSITIONS[self._mode])
            else:
                self._stage()
                self._run(self._statement())
        self._end()

    def _load(self, table: Any, fields: list[Any], disposition: str) -> None:
        self._check_stopped()
        client = self._session.connection
        options = bigquery.ParquetOptions()
        options.enable_list_inference = True
        config = bigquery.LoadJobConfig(
            source_format="PARQUET", schema=fields, write_disposition=disposition, parquet_options=options
        )
        size = self._file.seek(0, io.SEEK_END)
        self._file.seek(0)
        upload = _Upload(self._file, self._session.is_stopped)
        job = client.load_table_from_file(upload, table, size=size, location=self._location, job_config=config)
        self._session.wait_for(job)
        if job.output_rows != self._count:
            raise OperationalError(f"of {self._count} rows the table took {job.output_rows}")

    @property
    def _location(self) -> str | None:
        """Where the job runs: where the dataset is."""
        client = self._session.connection
        if client.location is None and self._before is None:
            found = client.get_dataset(bigquery.DatasetReference(*self._path[:2])).location
        else:
            found = client.location or self._before.location
        return found  # type: ignore[no-any-return]

    def _stage(self) -> None:
        """Fill a table of the write's own."""
        path = (*self._path[:2], self._rows)
        places = [bigquery.SchemaField(each.name, "INT64") for each in self._places]
        table = bigquery.Table(_reference(path), schema=[each.staged_field for each in self._columns] + places)
        table.expires = dt.datetime.now(dt.UTC) + _STAGED_FOR
        self._is_staged = True
        self._session.connection.create_table(table)
        self._load(_reference(path), table.schema, "WRITE_APPEND")

    def _run(self, statement: str) -> None:
        if not statement:
            return
        self._check_stopped()
        job = self._session.begin_job(statement)
        self._session.wait_for(job)
        changed = job.num_dml_affected_rows
        if self._mode == "append" and changed != self._count:
            raise OperationalError(f"of {self._count} rows the table took {changed}")

    def _check_stopped(self) -> None:
        if self._session.is_stopped.is_set():
            raise OperationalError("the write was cancelled")

    def _definitions(self) -> str:
        lines = [
            f"{quoted_name(each.field.name)} {each.native}{' NOT NULL' if each.field.name in self._needed else ''}"
            for each in self._columns
        ]
        # BigQuery takes a key's word for it.
        key = f", PRIMARY KEY ({', '.join(map(quoted_name, self._key))}) NOT ENFORCED" if self._key else ""
        return f"{', '.join(lines)}{key}"

    def _without_rows(self) -> str:
        makes = {"fail": "CREATE TABLE", "replace": "CREATE OR REPLACE TABLE"}
        if self._mode in makes:
            return f"{makes[self._mode]} {self._target} ({self._definitions()})"
        return self._delete() if self._mode == "truncate" else ""

    def _statement(self) -> str:
        """Give what makes the staged rows the table's."""
        names = ", ".join(quoted_name(each.field.name) for each in self._columns)
        places = [(each, quoted_name(each.field.name)) for each in self._columns]
        values = ", ".join(f"{each.sql(name)} AS {name}" for each, name in places)
        source = quoted_name(*self._path[:2], self._rows)
        rows = f"SELECT {values} FROM {source}"  # noqa: S608  names in quotes
        if self._mode in {"fail", "replace"}:
            return f"{self._without_rows()} AS {rows}"
        if self._mode == "upsert":
            return self._merge(values, names, source)
        insert = f"INSERT INTO {self._target} ({names}) {rows}"
        if self._mode == "append":
            return insert
        return f"BEGIN TRANSACTION; {self._delete()}; {insert}; COMMIT TRANSACTION;"

    def _delete(self) -> str:
        return f"DELETE FROM {self._target} WHERE true"  # noqa: S608  names in quotes

    def _merge(self, values: str, names: str, source: str) -> str:
        wanted = {name.lower() for name in self._key}
        all_names = [quoted_name(each.field.name) for each in self._columns]
        keys = [name for name in all_names if name[1:-1].lower() in wanted]
        place, rank = quoted_name(f"{self._rows}_n"), quoted_name(f"{self._rows}_r")
        ranked = (
            f"SELECT *, row_number() OVER (PARTITION BY {', '.join(keys)} ORDER BY {place} DESC) AS {rank} "  # noqa: S608
            f"FROM (SELECT {values}, {place} FROM {source})"
        )
        changes = ", ".join(f"{name} = s.{name}" for name in all_names if name not in keys)
        update = f"WHEN MATCHED THEN UPDATE SET {changes} " if changes else ""
        return (
            f"MERGE INTO {self._target} AS t USING (SELECT * FROM ({ranked}) WHERE {rank} = 1) AS s "  # noqa: S608
            f"ON {' AND '.join(f't.{name} = s.{name}' for name in keys)} {update}"
            f"WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({', '.join(f's.{name}' for name in all_names)})"
        )

    def abort(self) -> None:
        """Leave the table as it was."""
        self._end()

    def _end(self) -> None:
        # Of a full disk there has been an error.
        with contextlib.suppress(OSError):
            self._writer.close()
        with contextlib.suppress(OSError):
            self._file.close()
        is_staged, self._is_staged = self._is_staged, False
        if is_staged:
            # Where this fails, the service drops it in a day.
            with contextlib.suppress(Error), self._session.translating():
                path = (*self._path[:2], self._rows)
                self._session.connection.delete_table(_reference(path), not_found_ok=True)


@contextlib.contextmanager
def _file_errors() -> Iterator[None]:
    """Raise ``OperationalError`` where the file cannot be written."""
    try:
        yield
    except OSError as error:
        message = f"the rows cannot be written to a temporary file: {error.strerror}"
        raise OperationalError(message, hint=_ROOM) from None


class _Upload(io.RawIOBase):
    """A file that is sent, until the write is stopped."""

    def __init__(self, file: IO[bytes], is_stopped: threading.Event) -> None:
        self._file, self._is_stopped = file, is_stopped

    def read(self, size: int = -1) -> bytes:
        if self._is_stopped.is_set():
            raise OperationalError("the write was cancelled")
        return self._file.read(size)

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(place, whence)


def _path(session: "Session", schema: str | None, table: str) -> tuple[str, str, str]:
    """Give the project, the dataset and the table."""
    dataset = session.defaults.get("default_dataset", "") if schema is None else schema
    if not dataset:
        raise ProgrammingError(f"the table {table} has no dataset", hint=_DATASET)
    project, _, name = dataset.rpartition(".")
    if bad := [each for each in (project, name, table) if "`" in each or "\\" in each]:
        raise ProgrammingError(f"{bad[0]!r} has a character that a name of BigQuery's cannot have")
    return project or session.connection.project, name, table


def _reference(path: Sequence[str]) -> Any:
    return bigquery.TableReference(bigquery.DatasetReference(*path[:2]), path[2])


def _shape(field: Any) -> Any:
    """Give a field as a file is loaded by it, without what the table has of its own."""
    kept = {"name", "type", "mode", "fields", "precision", "scale", "maxLength"}
    return bigquery.SchemaField.from_api_repr({key: each for key, each in field.to_api_repr().items() if key in kept})
