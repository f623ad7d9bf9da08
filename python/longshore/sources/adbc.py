"""Any ADBC driver: ``adbc:driver=...;uri=...``, with the driver's package, path or manifest and its own options."""

import importlib
import importlib.util
import json
from collections.abc import Mapping
from typing import Any, Literal

from adbc_driver_manager import dbapi

from longshore import errors
from longshore.sources.arrow import ingested, numerics, one_row, streamed
from longshore.sources.dialects import DUCKDB, POSTGRESQL, SQLITE
from longshore.sources.loading import TableLoader
from longshore.sources.session import CHANGE, DriverSession, Result, hidden, settings

_FORM = "write adbc:driver=adbc_driver_sqlite;uri=file.db; a value with a semicolon stands in braces"
#: Databases in which a new table is part of a transaction, and their parameters' places, by the drivers' names of them.
_DIALECTS = {"postgresql": (POSTGRESQL, "$1"), "sqlite": (SQLITE, "?"), "duckdb": (DUCKDB, "$1")}


def connect(rest: str, keywords: Mapping[str, str], **_: bool) -> "Session":
    """Load the driver and connect; every option but ``driver`` and ``entrypoint`` is the database's."""
    options = {**settings(rest, form=_FORM), **keywords}
    options.pop("database", None)
    if not (driver := options.pop("driver", "")):
        raise errors.InterfaceError("an ADBC source needs driver=", hint=_FORM)
    return Session(driver, options)


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
    _vendor = ""

    def __init__(self, driver: str, options: dict[str, str]) -> None:
        """Open the connection, and ask it whose it is."""
        self.settings = options
        entrypoint = options.pop("entrypoint", "duckdb_adbc_init" if driver == "adbc_driver_duckdb" else None)
        with self.translating():
            super().__init__(dbapi.connect(_library(driver), entrypoint=entrypoint, db_kwargs=options, autocommit=True))
            self._vendor = str(self.connection.adbc_get_info().get("vendor_name", "")).lower()
        self.dialect, self.places = _DIALECTS.get(self._vendor, (None, None))
        if self._vendor == "duckdb":
            self._run("SET GLOBAL arrow_lossless_conversion = true", None)

    def translated(self, error: Any) -> errors.Error:
        """Give Longshore's exception for the driver's; DuckDB's status says less than its text."""
        text = hidden(str(error), self.settings).partition(": ")[2]
        if self._vendor != "duckdb" or ("Error: " not in text and not text.startswith("{")):
            return super().translated(error)
        from longshore.duckdb.failures import error_from_text

        form = "{exception_type} Error: {exception_message}"
        return error_from_text(form.format_map(json.loads(text)) if text.startswith("{") else text)

    def _begin(self) -> None:
        self.connection.adbc_connection.set_autocommit(False)

    def _end(self, how: Literal["commit", "rollback"]) -> None:
        self.opened()
        # The DB-API's own methods do nothing on a connection that began with autocommit.
        getattr(self.connection.adbc_connection, how)()
        self.connection.adbc_connection.set_autocommit(True)

    def _run(self, statement: str, params: Any) -> Any:
        cursor = self.opened()
        # Drivers let values be that have no place.
        places = None if params is None else cursor.adbc_prepare(statement)
        if places is not None and len(places) != len(params):
            raise errors.ProgrammingError(f"the statement has {len(places)} parameters, and params {len(params)}")
        if CHANGE.match(statement):
            # PostgreSQL's driver counts rows here alone.
            cursor.executemany(statement, one_row(params) if params else None)
        else:
            cursor.execute(statement, one_row(params) if params else None)
        return cursor

    def _result(self, statement: str, params: Any, _rows: int) -> Result | None:
        cursor = self._run(statement, params)
        # The errors of fetch_record_batch's have no status.
        return (streamed(self, cursor._results.reader), [], []) if cursor.description else None  # noqa: SLF001

    def _count(self, cursor: Any) -> int:
        return sum(batch.num_rows for batch in cursor.fetch_record_batch())

    def _schema(self, statement: str, _params: Any) -> Result:
        return self.opened().adbc_execute_schema(statement).empty_table(), [], []

    def _parameters(self, statement: str) -> Any:
        return self.opened().adbc_prepare(statement)

    def load(self, **load: Any) -> TableLoader:
        """Begin to write; a new table of PostgreSQL's has decimals as the data has them."""
        if self._vendor == "postgresql" and load["if_exists"] in {"fail", "replace"}:
            load["types"] = numerics(load["columns"]) | load["types"]
        return super().load(**load)

    def _stage(self, name: str, frame: object) -> None:
        table = ingested(frame, self._vendor)
        self.opened().adbc_ingest(name, table, mode="replace", temporary=True)

    def _another(self) -> Any:
        if self._vendor == "postgresql":
            self.execute("DISCARD ALL")
            return self.connection
        return self.connection.adbc_clone()

    def cancel(self) -> None:
        """Stop what runs."""
        if (cursor := self.cursor) is not None:
            cursor.adbc_cancel()
