"""Any ADBC driver: ``adbc:driver=...;uri=...``, with the driver's package, path or manifest and its own options."""

import contextlib
import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from adbc_driver_manager import dbapi

from longshore import errors
from longshore.sources.arrow import bound_rows, empty, ingest, stream
from longshore.sources.dialects import DUCKDB, POSTGRESQL, SQLITE
from longshore.sources.many import Insert, Kinds, Row
from longshore.sources.session import DriverSession, Result, changes, hide_secrets, settings

_LOSSLESS = "SELECT current_setting('arrow_lossless_conversion')"
_FORM = "write adbc:driver=adbc_driver_sqlite;uri=file.db; a value with a semicolon stands in braces"
#: Databases in which a new table is part of a transaction.
_DIALECTS = {dialect.name: dialect for dialect in (POSTGRESQL, SQLITE, DUCKDB)}


def connect(rest: str, keywords: Mapping[str, str], **_: bool) -> "Session":
    """Load the driver and connect; every option but ``driver`` and ``entrypoint`` is the database's."""
    options = {**settings(rest, form=_FORM), **keywords}
    options.pop("database", None)
    if not (driver := options.pop("driver", "")):
        raise errors.InterfaceError("an ADBC source needs driver=", hint=_FORM)
    entrypoint = options.pop("entrypoint", "duckdb_adbc_init" if driver == "adbc_driver_duckdb" else None)
    return Session(
        lambda: dbapi.connect(_library(driver), entrypoint=entrypoint, db_kwargs=options, autocommit=True), options
    )


def adopt(connection: dbapi.Connection, _owner: object = None) -> "Session":
    """Give a session over a connection of the caller's, which stays open and gets its settings back."""
    return Session(lambda: connection, {}, is_own=False)


def _library(driver: str) -> str:
    """Give the path of the library of a driver's package; a path or the name of a manifest is itself."""
    if not driver.isidentifier() or importlib.util.find_spec(driver) is None:
        return driver
    module = importlib.import_module(driver)
    return str((getattr(module, "driver_path", None) or module._driver_path)())  # noqa: SLF001  most have no other


class Session(DriverSession):
    """One connection of a driver."""

    not_split = "an ADBC driver reads a query whole"
    not_written = "this database has no dialect here, and may keep a part of a write that fails"
    failure = dbapi.Error

    def __init__(
        self, connect: Callable[[], dbapi.Connection], options: Mapping[str, str], *, is_own: bool = True
    ) -> None:
        """Open the connection, and ask it whose it is and, where it is the caller's, whether a transaction is open."""
        self.settings, self.is_own = options, is_own
        with self.translating():
            super().__init__(connect())
            vendor = str(self.connection.adbc_get_info().get("vendor_name", "")).lower()
            self.dialect = _DIALECTS.get(vendor)
            self.places = self.dialect.places if self.dialect else None
            if not is_own and self._is_open():
                self.transaction = "open"
            self.was_lossless = self.dialect is not DUCKDB or is_own or self._value(_LOSSLESS)
            if self.dialect is DUCKDB:
                self._run("SET GLOBAL arrow_lossless_conversion = true", None)

    def _value(self, query: str) -> Any:
        (value,) = self._run(query, None).fetchone()
        return value

    def _is_open(self) -> bool:
        # What began with BEGIN, and not by the interface, the driver's manager does not know of.
        within = self.dialect.within if self.dialect else None
        return not self.connection._autocommit or (  # noqa: SLF001  it has no other name
            within is not None and self._value(within) == self._value(within)
        )

    def _give_back(self) -> None:
        if not self.was_lossless:
            self._run("SET GLOBAL arrow_lossless_conversion = false", None)
            self._close_cursor()

    def translate(self, error: Any) -> errors.Error:
        """Give Longshore's exception for the driver's, whose status may say less than its text."""
        text = hide_secrets(str(error), self.settings).partition(": ")[2]
        return (self.dialect and self.dialect.error(text)) or super().translate(error)

    def _begin(self) -> None:
        self.connection.adbc_connection.set_autocommit(False)

    def _end(self, how: Literal["commit", "rollback"]) -> None:
        self.open_cursor()
        # The DB-API's own methods do nothing on a connection that began with autocommit.
        getattr(self.connection.adbc_connection, how)()
        self.connection.adbc_connection.set_autocommit(True)

    def _run(self, statement: str, params: Any) -> Any:
        return self._run_all(statement, [params])

    def _run_all(self, statement: str, sets: Sequence[Any]) -> Any:
        cursor = self.open_cursor()
        if self.dialect is not None and self.dialect.statement_options:
            cursor.adbc_statement.set_options(**dict(self.dialect.statement_options))
        # PostgreSQL's driver counts rows here alone.
        run = cursor.executemany if changes(statement) else cursor.execute
        try:
            run(statement, bound_rows(cursor, statement, sets))
        except dbapi.Error:
            if self.transaction == "none" and self.dialect is POSTGRESQL:
                # The driver leaves a transaction open, in which it has set the time zone of a timestamp.
                with contextlib.suppress(dbapi.Error):
                    self.open_cursor().execute("ROLLBACK")
            raise
        return cursor

    def _inserts_many(self) -> bool:
        # Other drivers bind one row.
        return self.dialect is POSTGRESQL or self.dialect is SQLITE

    def _insert_many(self, insert: Insert, rows: Sequence[Row], kinds: Kinds | None) -> int | None:
        runs = [rows] if kinds else [[row] for row in rows]
        counts = [self._run_all(insert.by_place, run).rowcount for run in runs]
        return None if min(counts) < 0 else sum(counts)

    def _result(self, statement: str, params: Any, _rows: int) -> Result | None:
        cursor = self._run(statement, params)
        if not cursor.description:
            return None
        # The errors of fetch_record_batch's have no status.
        reader = cursor._results.reader  # noqa: SLF001
        return stream(self, reader.schema, reader), [], []

    def _schema(self, statement: str, _params: Any) -> Result:
        return empty(self.open_cursor().adbc_execute_schema(statement)), [], []

    def _parameters(self, statement: str) -> Any:
        return self.open_cursor().adbc_prepare(statement)

    def _stage(self, name: str, frame: object) -> None:
        rows = ingest(frame, self.dialect)
        self.open_cursor().adbc_ingest(name, rows, mode="replace", temporary=True)

    def _another(self) -> Any:
        if self.dialect is None or self.dialect.reset is None:
            return self.connection.adbc_clone()
        self.execute(self.dialect.reset)
        return self.connection

    def cancel(self) -> None:
        """Stop what runs."""
        if (cursor := self.cursor) is not None:
            cursor.adbc_cancel()
