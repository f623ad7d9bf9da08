"""Any ADBC driver: ``adbc:driver=...;uri=...``, with the driver's package, path or manifest and its own options."""

import contextlib
import importlib
import importlib.util
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal

from longshore import errors
from longshore.frames import missing
from longshore.sources import Result
from longshore.sources.ingest import IngestLoader
from longshore.sources.session import DriverSession

if importlib.util.find_spec("adbc_driver_manager") is None or importlib.util.find_spec("pyarrow") is None:
    raise missing(library="adbc-driver-manager and pyarrow", extra="adbc", purpose="an ADBC driver")

import pyarrow as pa
import pyarrow.compute as pc
from adbc_driver_manager import dbapi

_OPTION = re.compile(r"([\w.]+)=(?:\{([^}]*)\}|([^;]*))(?:;|$)")
_FORM = "write adbc:driver=adbc_driver_sqlite;uri=file.db; a value with a semicolon stands in braces"
_SECRETS = re.compile(r"://[^/]*?:([^/]*)@|password=([^&;\s]*)", re.IGNORECASE)
_PLACES = "give params as a list, for the driver's own placeholders"
#: PostgreSQL's first day and microsecond, in 4713 BC, by the test of an Arrow type.
_LOWEST = ((pa.types.is_date32, -2_440_588), (pa.types.is_timestamp, -210_866_803_200_000_000))
#: What makes a driver's export exact, by the database's name.
_EXACT = {"duckdb": "SET SESSION arrow_lossless_conversion = true"}


def connect(rest: str, keywords: Mapping[str, str], *, creates: bool) -> "Session":
    """Load the driver and connect; every option but ``driver`` and ``entrypoint`` is the database's."""
    del creates
    if _OPTION.sub("", rest):
        message = f"the options of an ADBC driver are not key=value with semicolons between\nHint: {_FORM}"
        raise errors.InterfaceError(message, hint=_FORM)
    given = {name: braces or plain for name, braces, plain in _OPTION.findall(rest)}
    options = {**given, **{name: value for name, value in keywords.items() if name != "database"}}
    driver = options.pop("driver", "")
    if not driver:
        message = f"an ADBC source needs driver=\nHint: {_FORM}"
        raise errors.InterfaceError(message, hint=_FORM)
    entrypoint = options.pop("entrypoint", "duckdb_adbc_init" if driver == "adbc_driver_duckdb" else None)
    with _translated(options):
        connection = dbapi.connect(_library(driver), entrypoint=entrypoint, db_kwargs=options, autocommit=True)
    return Session(connection, options)


def _library(driver: str) -> str:
    """Give the path of the library of a driver's package; a path or the name of a manifest is itself."""
    if not driver.isidentifier() or importlib.util.find_spec(driver) is None:
        return driver
    module = importlib.import_module(driver)
    path = getattr(module, "driver_path", None) or module._driver_path  # noqa: SLF001  most packages have no other
    return str(path())


@contextlib.contextmanager
def _translated(options: Mapping[str, str]) -> Iterator[None]:
    """Raise Longshore's exceptions for the driver's, which quote what they were given."""
    try:
        yield
    except dbapi.Error as error:
        text = str(error)
        uri = options.get("uri", "")
        secrets = {value for name, value in options.items() if re.search("pass|secret|token|key|uri", name.lower())}
        secrets |= {*uri.split()} | {part for found in _SECRETS.findall(uri) for part in found}
        for secret in sorted(filter(None, secrets), key=len, reverse=True):
            text = text.replace(secret, "***")
        kind = getattr(errors, type(error).__name__, errors.DatabaseError)
        raise kind(text, sqlstate=error.sqlstate) from None


class Session(DriverSession):
    """One connection of a driver."""

    not_split = "an ADBC driver reads a query whole"

    def __init__(self, connection: Any, options: Mapping[str, str]) -> None:
        """Keep the connection."""
        self.connection, self._options = connection, options
        self._cursor: Any = None
        with self.running():
            self.vendor = str(connection.adbc_get_info().get("vendor_name", "")).lower()
        if self.vendor in _EXACT:
            self.execute(_EXACT[self.vendor])

    def translated(self) -> AbstractContextManager[None]:
        """Raise Longshore's exceptions for the driver's."""
        return _translated(self._options)

    def _begin(self) -> None:
        self.connection.adbc_connection.set_autocommit(False)

    def _end(self, how: Literal["commit", "rollback"]) -> None:
        self.cursor()
        # The DB-API's own methods do nothing on a connection that began with autocommit.
        getattr(self.connection.adbc_connection, how)()
        self.connection.adbc_connection.set_autocommit(True)

    def cursor(self) -> Any:
        """Open a cursor, which ends the one before."""
        if self._cursor is not None:
            self._cursor.close()
        self._cursor = self.connection.cursor()
        return self._cursor

    def _execute(self, query: str, params: Any) -> Any:
        if isinstance(params, dict):
            message = f"ADBC binds parameters by place alone\nHint: {_PLACES}"
            raise errors.NotSupportedError(message, hint=_PLACES)
        cursor = self.cursor()
        cursor.execute(query, params)
        return cursor

    def read(self, query: str, params: Any, rows: int) -> Result:
        """Run a query."""
        del rows
        with self.running():
            reader = self._execute(query, params).fetch_record_batch()
        if self.vendor == "postgresql":
            reader = pa.RecordBatchReader.from_batches(reader.schema, _without_wrapped(reader))
        return reader, [_native_type(field) for field in reader.schema], []

    def describe(self, query: str, params: Any, rows: int) -> Result:
        """Ask the driver for the schema of a query, which not every one tells."""
        del params, rows
        with self.running():
            schema = self.cursor().adbc_execute_schema(query)
        return schema.empty_table(), [_native_type(field) for field in schema], []

    def parameters(self, query: str, params: Any, rows: int) -> Result:
        """Ask the driver for the types of parameters, where it knows them; null is a type that it leaves open."""
        del params, rows
        with self.running():
            schema = self.cursor().adbc_prepare(query)
        if schema is None:
            message = "parameters cannot be described: the driver does not tell their types"
            raise errors.NotSupportedError(message)
        return schema.empty_table(), [_native_type(field) for field in schema], []

    def execute(self, query: str, params: Any = None) -> int | None:
        """Run one statement."""
        with self.running():
            cursor = self._execute(query, params)
            count = cursor.rowcount
            if cursor.description:
                count = sum(batch.num_rows for batch in cursor.fetch_record_batch())
        return None if count < 0 else int(count)

    def execute_script(self, script: str) -> None:
        """Refuse: a driver does not tell statements apart."""
        del script
        message = "an ADBC driver runs one statement at a time"
        raise errors.NotSupportedError(message)

    def load(self, **load: Any) -> IngestLoader:
        """Begin to write."""
        return IngestLoader(self, **load)

    def reset(self) -> None:
        """Go on with another connection of the same database."""
        before, self.connection = self.connection, self.connection.adbc_clone()
        self._cursor = None
        before.close()

    def cancel(self) -> None:
        """Stop what runs."""
        cursor = self._cursor
        if cursor is not None:
            cursor.adbc_cancel()

    def close(self) -> None:
        """End it."""
        if self._cursor is not None:
            self._cursor.close()
        self.connection.close()


def _without_wrapped(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Raise for infinite dates and timestamps, and those beyond Arrow's: the driver counts on past the lowest."""
    rows = 0
    for batch in reader:
        for field, column in zip(batch.schema, batch.columns, strict=True):
            lowest = next((low for is_kind, low in _LOWEST if is_kind(field.type)), None)
            if lowest is None:
                continue
            least = pc.min(column.view(pa.int32() if pa.types.is_date32(field.type) else pa.int64())).as_py()
            if least is not None and least < lowest:
                message = (
                    f"Conversion Error: column {field.name!r}, after row {rows}: an infinite date or timestamp, or one "
                    "that Arrow cannot hold; read it as text with CAST in the query"
                )
                # The stream hands its text on, whose beginning says that it is of the data.
                raise OSError(message)
        rows += batch.num_rows
        yield batch


def _native_type(field: pa.Field) -> str:
    metadata = field.metadata or {}
    return next((value.decode() for key, value in metadata.items() if key.endswith((b":typname", b":type"))), "")
