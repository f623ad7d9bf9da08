"""Any ODBC driver: ``odbc:DSN=...`` or ``odbc:Driver=...;Server=...``, a connection string as the driver has it."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import pyarrow as pa

from longshore import _core, errors
from longshore.odbc.columns import Column
from longshore.odbc.cursor import Cursor, by_place
from longshore.odbc.drivers import SQLITE, Driver, driver_of, open_connection
from longshore.odbc.manager import DESCRIBE_PARAMETER, GENERAL_WARNING, Connection, OdbcError
from longshore.odbc.parameters import execute_all
from longshore.odbc.staging import as_sqlite, has_empty_bytes, sqlite_type
from longshore.sources.arrow import ingest, stream
from longshore.sources.dialects import POSTGRESQL
from longshore.sources.files import flag
from longshore.sources.many import FEW, Row, runs
from longshore.sources.session import DriverSession, Result, changes, hide_secrets, only

_FORM = "write odbc:DSN=name;UID=user or odbc:Driver=...;Server=...; a value with a semicolon stands in braces"
_SETTING = re.compile(r"\s*([^=;{}]+?)\s*=\s*(\{(?:[^}]|\}\})*+\}|[^;]*?)\s*(?:;|$)")
_SECRETS = re.compile(r"(?:pass?|pwd|secret|token|key)\w*\s*=\s*([^&;\s}]+)", re.IGNORECASE)
#: The classes of SQLSTATE, by the exception that each is.
_STATES: list[tuple[str, type[errors.Error]]] = [
    ("22|2201", errors.DataError),
    ("23", errors.IntegrityError),
    ("0A|HYC00|IM001", errors.NotSupportedError),
    ("08|57|53|54|55|58|40|HYT|HY008|HY018|IM00[2-9]", errors.OperationalError),
    ("2|3|42|07|HY|IM", errors.ProgrammingError),
]

#: SQLite's own codes, of a driver that has one state for all: busy, locked, disk, full, cannot open; constraint.
_SQLITE_CODE = re.compile(r"^\[SQLite\].*\((\d+)\)", re.DOTALL)
_SQLITE_KINDS: dict[str, type[errors.Error]] = {
    **dict.fromkeys(("5", "6", "10", "13", "14"), errors.OperationalError),
    "19": errors.IntegrityError,
}


def connect(rest: str, keywords: Mapping[str, str], **_: bool) -> "Session":
    """Connect; every setting but ``max_text_size`` and ``rounded_floats`` is the driver's."""
    if _SETTING.sub("", rest):
        raise errors.InterfaceError("the settings are not key=value with semicolons between", hint=_FORM)
    names = {"user": "UID", "password": "PWD"}
    given = dict(_SETTING.findall(rest))
    given |= {names.get(name, name): _brace(value) for name, value in keywords.items()}
    most, rounded = given.pop("max_text_size", None), given.pop("rounded_floats", "false")
    if most is not None and not most.isdecimal():
        raise errors.InterfaceError(f"max_text_size is a number of characters, not {most!r}")
    may_round = flag(rounded, "rounded_floats")
    return Session(given, None if most is None else int(most), may_round=may_round)


def _brace(value: str) -> str:
    """Give a value as it stands in a connection string."""
    return "{" + value.replace("}", "}}") + "}" if re.search(r"[;{}]|^\s|\s$", value) else value


def _secrets(settings: Mapping[str, str]) -> dict[str, str]:
    """Give the settings as values that errors may quote; something of a URL's may be within another setting."""
    plain = {name: value.removeprefix("{").removesuffix("}").replace("}}", "}") for name, value in settings.items()}
    return plain | {f"secret {found}": found for text in settings.values() for found in _SECRETS.findall(text)}


def _kind(error: OdbcError, driver: Driver) -> type[errors.Error]:
    """Give the exception for a SQLSTATE."""
    state = error.sqlstate or ""
    if state == GENERAL_WARNING and driver.hides_failures:
        return errors.DataError
    if state == "HY000" and (code := _SQLITE_CODE.search(str(error))) and code[1] in _SQLITE_KINDS:
        return _SQLITE_KINDS[code[1]]
    return next((kind for states, kind in _STATES if re.match(states, state)), errors.DatabaseError)


class Session(DriverSession):
    """One connection of a driver."""

    not_split = "an ODBC driver reads a query whole"
    failure = OdbcError
    driver = Driver()
    places = "?"

    def __init__(self, settings: Mapping[str, str], most: int | None, *, may_round: bool = False) -> None:
        """Connect, and ask the driver whose it is."""
        self.settings = _secrets(settings)
        with self.translating():
            super().__init__(open_connection(settings))
            self.driver = driver = driver_of(self.connection, max_text_size=most, may_round=may_round)
            self.dialect, self.loader, self.not_written = driver.dialect, driver.loader, driver.not_written
            self.new_table_commits = driver.new_table_commits
            self._set_zone()

    def _set_zone(self) -> None:
        if self.driver.utc:
            self._run(self.driver.utc, None)

    def translate(self, error: Any) -> errors.Error:
        """Give Longshore's exception for the driver's, by its SQLSTATE."""
        return _kind(error, self.driver)(hide_secrets(str(error), self.settings), sqlstate=error.sqlstate)

    def _end(self, how: Literal["commit", "rollback"]) -> None:
        self._close_cursor()
        super()._end(how)

    def _is_undone(self, error: errors.Error | None) -> bool:
        return error is not None and (error.sqlstate or "")[:2] in self.driver.undone_alone

    def clean_up(self) -> None:
        """End what a statement that has failed has left, and the transaction that the driver has begun for it."""
        self._close_cursor()
        if self.transaction == "none" and self.driver.begins_alone:
            with suppress(OdbcError):
                self._begin()
                self._end("rollback")

    def _is_usable(self) -> bool:
        return self.dialect is not POSTGRESQL or super()._is_usable()

    def open_cursor(self) -> Cursor:
        """Open a statement, which ends the one before."""
        self._close_cursor()
        self.cursor = cursor = Cursor(self.connection, self.driver)
        return cursor

    def _prepare(self, query: str, params: Any) -> tuple[Any, Any]:
        return super()._prepare(only(self._statements(query)) if self.driver.splits_scripts else query, params)

    def _statements(self, script: str) -> list[str]:
        if not self.driver.splits_scripts:
            return super()._statements(script)
        return _core.sql_statements(script, "sqlite" if self.dialect is SQLITE else "postgresql")

    def _result(self, statement: str, params: Any, rows: int) -> Result | None:
        cursor = self._run(statement, params)
        if not cursor.description:
            return None
        found = cursor.rows(rows)
        return stream(self, found.schema, found.batches()), found.native, []

    def _schema(self, statement: str, params: Any) -> Result | None:
        del params
        cursor = self.open_cursor()
        cursor.prepare(statement)
        if not cursor.describe():
            return None
        rows = cursor.rows(1)
        return rows.schema.empty_table(), rows.native, []

    def _parameters(self, statement: str) -> Any:
        if not self.driver.describes_parameters and self.connection.text(DESCRIBE_PARAMETER) != "Y":
            return None
        cursor = self.open_cursor()
        cursor.prepare(statement)
        # A driver looks at it only now.
        cursor.columns()
        told = enumerate(cursor.parameters(), 1)
        return pa.schema([Column(number, parameter, self.driver).field for number, parameter in told])

    def execute_many(self, query: str, sets: Sequence[Any]) -> int | None:
        """Run one statement with each set of parameters, many at a time where that is known to be the same."""
        if len(sets) < FEW or not changes(query) or not all(sets) or not self.driver.takes_sets:
            return super().execute_many(query, sets)
        statement, _ = self._check(query, sets[0])
        rows: Sequence[Row] = sets
        if self.driver.numbers_places:
            placed = [by_place(statement, each) for each in sets]
            statement, rows = placed[0][0], [row for _, row in placed]
        parts: list[Sequence[Row]] = []
        for run, kinds in runs(rows):
            # Of many bytes PostgreSQL's driver makes others than of one in a column of texts.
            are_alike = kinds is not None and bytes not in kinds
            parts += [run] if are_alike else [[row] for row in run]
        with self.running():
            # It also keeps the types of what a prepared statement ran with first.
            counts = [self.open_cursor().executemany(statement, part) for part in parts]
        return None if min(counts) < 0 else sum(counts)

    def _stage(self, name: str, frame: object) -> None:
        table = ingest(frame, self.dialect)
        if self.dialect is SQLITE:
            table = as_sqlite(table)
            named = [(field.name, sqlite_type(field)) for field in table.schema]
        else:
            named = _core.postgresql_columns(table.schema.empty_table())
        columns = ", ".join(f"{POSTGRESQL.quoted_name(column)} {kind}" for column, kind in named)
        for statement in (f"DROP TABLE IF EXISTS {name}", f"CREATE TEMPORARY TABLE {name} ({columns})"):
            self._run(statement, None)
        cursor = self.open_cursor()
        cursor.prepare(f"INSERT INTO {name} VALUES ({', '.join('?' * table.num_columns)})")
        more = {"most": 1} if self.dialect is SQLITE and has_empty_bytes(table) else {}
        for batch in table.to_batches():
            execute_all(cursor, batch, is_utc=True, **more)

    def _count(self, cursor: Cursor) -> int:
        return sum(batch.num_rows for batch in cursor.rows(10_000).batches())

    def _another(self) -> Connection:
        if self.dialect is None or self.dialect.reset is None:
            return Connection(self.connection.address)
        self.execute(self.dialect.reset)
        connection: Connection = self.connection
        return connection

    def reset(self) -> None:
        """Make it like new for another read."""
        super().reset()
        with self.translating():
            self._set_zone()

    def cancel(self) -> None:
        """Stop what runs."""
        if (cursor := self.cursor) is not None:
            cursor.cancel()
