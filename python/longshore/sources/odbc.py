"""Any ODBC driver: ``odbc:DSN=...`` or ``odbc:Driver=...;Server=...``, a connection string as the driver has it."""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import pyarrow as pa

from longshore import _core, errors
from longshore.odbc import manager
from longshore.odbc.columns import Column, Driver, Rows
from longshore.odbc.manager import Connection, Description, OdbcError, Statement
from longshore.odbc.mariadb import MARIADB, MariaDBLoader
from longshore.odbc.parameters import bind, execute_all, rows_of
from longshore.odbc.staging import as_sqlite, has_empty_bytes, sqlite_new_types, sqlite_type
from longshore.sources.arrow import ingested, objects, streamed
from longshore.sources.dialects import POSTGRESQL, SQLITE
from longshore.sources.loading import TableLoader
from longshore.sources.many import FEW, Row, runs
from longshore.sources.session import CHANGE, NOTHING, DriverSession, Result, hidden, only
from longshore.sources.transport import flag

_FORM = "write odbc:DSN=name;UID=user or odbc:Driver=...;Server=...; a value with a semicolon stands in braces"
_SETTING = re.compile(r"\s*([^=;{}]+?)\s*=\s*(\{(?:[^}]|\}\})*+\}|[^;]*?)\s*(?:;|$)")
_SECRETS = re.compile(r"(?:pass?|pwd|secret|token|key)\w*\s*=\s*([^&;\s}]+)", re.IGNORECASE)
#: The parts of a statement with semicolons and dollars: texts, names, comments. The last are an end and a place.
_TOKENS = re.compile(
    r"(?<!\w)[eE]'(?:[^'\\]|''|\\.)*'|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$(\w*)\$.*?\$\1\$|--[^\n]*|/\*.*?\*/"
    r"|(;)|(?<![\w$])\$(\d+)",
    re.DOTALL,
)
#: PostgreSQL's driver: rows by a cursor and not all at once, booleans as such, errors that undo nothing more.
POSTGRESQL_SETTINGS = {
    "BoolsAsChar": "0",
    "UseDeclareFetch": "1",
    "Fetch": "2000",
    "Protocol": "7.4-0",
    "ByteaAsLongVarBinary": "1",
}
_MARIADB = {"FORWARDONLY": "1", "NO_CACHE": "1"}
#: The last second of the year 9999, in microseconds.
_LAST = 253_402_300_799_000_000
#: By the name of the database: the zone of the session, and what its driver does otherwise than others.
_UTC = {"PostgreSQL": "SET TIME ZONE 'UTC'", "MariaDB": "SET time_zone = '+00:00'", "MySQL": "SET time_zone = '+00:00'"}
_QUIRKS: dict[str, dict[str, Any]] = {
    "PostgreSQL": {
        "zoned": frozenset({"timestamptz"}),
        "undeclared": frozenset({28}),
        "texts": frozenset({"money"}),
        "has_wrong_dates": True,
        "infinity": _LAST,
    },
    "MariaDB": {"zoned": frozenset({"timestamp"})},
    "MySQL": {"zoned": frozenset({"timestamp"})},
    "SQLite": {"has_loose_types": True, "takes_utf8": True},
}
#: Databases whose drivers run several statements, or the first of them: here they are told apart.
_SEVERAL = {"PostgreSQL", "SQLite"}
#: Classes of SQLSTATE of statements that MariaDB undoes alone: data, constraints, and what is not SQL or not allowed.
_UNDONE_ALONE = {"22", "23", "42"}
_SQLITE = replace(SQLITE, new_types=sqlite_new_types)
_DIALECTS = {"PostgreSQL": POSTGRESQL, "SQLite": _SQLITE, "MariaDB": MARIADB, "MySQL": MARIADB}
_NOT_WRITTEN = "this database has no dialect here, and may keep a part of a write that fails"
#: Databases that have a source of their own, which writes.
_OWN = {"Microsoft SQL Server": "mssql", "Oracle": "oracle"}
#: Databases whose drivers do with many sets of parameters what they do with each; MariaDB's leaves sets out.
_MANY = {"PostgreSQL", "SQLite"}
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
    given |= {names.get(name, name): _braced(value) for name, value in keywords.items()}
    most, rounded = given.pop("max_text_size", None), given.pop("rounded_floats", "false")
    if most is not None and not most.isdecimal():
        raise errors.InterfaceError(f"max_text_size is a number of characters, not {most!r}")
    may_round = flag(rounded, "rounded_floats")
    return Session(given, None if most is None else int(most), may_round=may_round)


def _braced(value: str) -> str:
    """Give a value as it stands in a connection string."""
    return "{" + value.replace("}", "}}") + "}" if re.search(r"[;{}]|^\s|\s$", value) else value


def _ended(statement: str) -> str:
    """Give a statement with an end of a comment: PostgreSQL's driver goes on behind it, on the same line."""
    return f"{statement}\n" if "--" in statement else statement


def _by_place(statement: str, params: list[Any]) -> tuple[str, list[Any]]:
    """Give a statement with PostgreSQL's ``$1`` as one with ``?``, and its parameters in that order."""
    found: list[Any] = []

    def place(match: re.Match[str]) -> str:
        if match[3] is None or not 0 < int(match[3]) <= len(params):
            return match[0]
        found.append(params[int(match[3]) - 1])
        return "?"

    text = _TOKENS.sub(place, statement)
    return (text, found) if found else (statement, params)


class Cursor(Statement):
    """A statement, as the sessions of other drivers have PEP 249's cursor."""

    #: How many rows were changed; -1 where that is not known, or there are rows to fetch.
    rowcount = -1

    def __init__(self, connection: Connection, driver: Driver) -> None:
        """Open it."""
        super().__init__(connection)
        self._driver, self.takes_utf8 = driver, driver.takes_utf8
        self.hides_failures, self.keeps_zeros = driver.hides_failures, driver.keeps_zeros
        self.fetches_whole = driver.fetches_whole
        self.description: list[Description] = []

    def describe(self) -> bool:
        """Look at what has run, or is prepared: whether it has columns."""
        self.description = self.columns()
        if not self.description:
            self.rowcount = self.changed
        return bool(self.description)

    def require(self, params: int) -> None:
        """Raise ``ProgrammingError`` where the prepared statement has another number of parameters."""
        if (places := self.places) != params:
            raise errors.ProgrammingError(f"the statement has {places} parameters, and params {params}")

    def rows(self, most: int) -> Rows:
        """Give the rows, at most so many in a batch."""
        return Rows(self, self._driver, most)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Fetch all rows as objects."""
        return objects(self.rows(10_000).batches())

    def close(self) -> None:
        """End it."""
        self.free()


class Session(DriverSession):
    """One connection of a driver."""

    not_split = "an ODBC driver reads a query whole"
    failure = OdbcError
    driver = Driver(has_long_values=False, max_text_size=None)
    places = "?"

    def __init__(self, settings: Mapping[str, str], most: int | None, *, may_round: bool = False) -> None:
        """Connect, and ask the driver whose it is."""
        self._text = ";".join(f"{name}={value}" for name, value in settings.items())
        plain = {name: value.removeprefix("{").removesuffix("}").replace("}}", "}") for name, value in settings.items()}
        # Something of a URL's may be within another setting.
        self.settings = plain | {f"secret {found}": found for found in _SECRETS.findall(self._text)}
        with self.translating():
            connection = Connection(self._text)
            more = self._more(connection.text(manager.DRIVER_NAME))
            given = {name.lower() for name in settings}
            if added := [f";{name}={value}" for name, value in more.items() if name.lower() not in given]:
                connection.close()
                self._text += "".join(added)
                connection = Connection(self._text)
            super().__init__(connection)
            self._vendor = vendor = connection.text(manager.DBMS_NAME)
            # A bit for values of a fetched block, and one for those of columns that are bound.
            has_long = connection.number(manager.GETDATA_EXTENSIONS) & 12 == 12  # noqa: PLR2004
            self.driver = Driver(has_long, most, **_QUIRKS.get(vendor, {}))
            is_mariadb = connection.text(manager.DRIVER_NAME).startswith("libmaodbc")
            self.driver = self.driver._replace(
                hides_failures=is_mariadb,
                has_utf8=is_mariadb,
                keeps_zeros=is_mariadb,
                fetches_whole=is_mariadb,
                rounds_floats=vendor == "SQLite" and not may_round,
            )
            self.dialect = _DIALECTS.get(vendor)
            self.new_table_commits = self.dialect is MARIADB
            self.not_written = _NOT_WRITTEN + (f": write to {_OWN[vendor]}://" if vendor in _OWN else "")
            self.runs_several = vendor in _SEVERAL
            self._set_zone()

    def _set_zone(self) -> None:
        if self._vendor in _UTC:
            self._run(_UTC[self._vendor], None)

    @staticmethod
    def _more(driver: str) -> dict[str, str]:
        return (
            POSTGRESQL_SETTINGS if driver.startswith("psqlodbc") else _MARIADB if driver.startswith("libmaodbc") else {}
        )

    def translated(self, error: Any) -> errors.Error:
        """Give Longshore's exception for the driver's, by its SQLSTATE."""
        state = error.sqlstate or ""
        kind = next((kind for states, kind in _STATES if re.match(states, state)), errors.DatabaseError)
        if state == manager.GENERAL_WARNING and self.driver.hides_failures:
            kind = errors.DataError
        if state == "HY000" and (code := _SQLITE_CODE.search(str(error))):
            kind = _SQLITE_KINDS.get(code[1], kind)
        return kind(hidden(str(error), self.settings), sqlstate=error.sqlstate)

    def _begin(self) -> None:
        self.connection.set(manager.ATTR_AUTOCOMMIT, 0)

    def _end(self, how: Literal["commit", "rollback"]) -> None:
        self._close_cursor()
        self.connection.end(manager.COMMIT if how == "commit" else manager.ROLLBACK)
        self.connection.set(manager.ATTR_AUTOCOMMIT, 1)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Call the driver; what fails outside of a transaction leaves none open."""
        before = self.transaction
        try:
            with super().running():
                yield
        except errors.Error as error:
            if self.dialect is MARIADB and (error.sqlstate or "")[:2] in _UNDONE_ALONE:
                self.transaction = before
            self._end_own_transaction()
            raise

    def _end_own_transaction(self) -> None:
        """End the transaction that PostgreSQL's driver has begun by itself, for a cursor on the server."""
        self._close_cursor()
        if self.transaction == "none" and self.dialect is POSTGRESQL:
            with contextlib.suppress(OdbcError):
                self._begin()
                self._end("rollback")

    def _is_usable(self) -> bool:
        return self.dialect is not POSTGRESQL or super()._is_usable()

    def opened(self) -> Cursor:
        """Open a statement, which ends the one before."""
        self._close_cursor()
        self.cursor = cursor = Cursor(self.connection, self.driver)
        return cursor

    def _prepared(self, query: str, params: Any) -> tuple[Any, Any]:
        statements = self._statements(query) if self.runs_several else [query]
        return super()._prepared(only(statements), params)

    def _statements(self, script: str) -> list[str]:
        if not self.runs_several:
            return super()._statements(script)
        ends = [0, *(found.end() for found in _TOKENS.finditer(script) if found[2]), len(script)]
        pieces = [script[start:end] for start, end in pairwise(ends)]
        return [piece for piece in pieces if not NOTHING.fullmatch(piece)]

    def _prepare(self, statement: str) -> Cursor:
        """Prepare a statement."""
        cursor = self.opened()
        cursor.prepare(_ended(statement))
        return cursor

    def _run(self, statement: str, params: Any) -> Cursor:
        if not params:
            cursor = self.opened()
            cursor.execute(_ended(statement))
        else:
            if self.dialect is POSTGRESQL:
                statement, params = _by_place(statement, params)
            cursor = self._prepare(statement)
            cursor.require(len(params))
            bind(cursor, rows_of([params]), is_utc=bool(self.driver.zoned))
            cursor.execute()
        cursor.describe()
        return cursor

    def execute_many(self, query: str, sets: Sequence[Any]) -> int | None:
        """Run one statement with each set of parameters, many at a time where that is known to be the same."""
        if len(sets) < FEW or not CHANGE.match(query) or not all(sets) or self._vendor not in _MANY:
            return super().execute_many(query, sets)
        statement, _ = self._checked(query, sets[0])
        placed = [_by_place(statement, each) for each in sets] if self.dialect is POSTGRESQL else []
        rows: list[Row] = [row for _, row in placed] or [*sets]
        counts = []
        with self.running():
            for run, kinds in runs(rows):
                # Of many bytes PostgreSQL's driver makes others than of one in a column of texts.
                are_alike = kinds is not None and bytes not in kinds
                for part in [run] if are_alike else [[row] for row in run]:
                    # It also keeps the types of what a prepared statement ran with first.
                    cursor = self._prepare(placed[0][0] if placed else statement)
                    cursor.require(len(part[0]))
                    counts.append(execute_all(cursor, rows_of(part), is_utc=bool(self.driver.zoned)))
        return None if min(counts) < 0 else sum(counts)

    def _result(self, statement: str, params: Any, rows: int) -> Result | None:
        cursor = self._run(statement, params)
        if not cursor.description:
            return None
        found = cursor.rows(rows)
        return streamed(self, found.schema, self._batches(cursor, found)), found.native, []

    def _batches(self, cursor: Cursor, rows: Rows) -> Iterator[pa.RecordBatch]:
        try:
            yield from rows.batches()
        except OdbcError:
            self._end_own_transaction()
            raise
        finally:
            # What the driver has open on the server for the rows goes at once.
            cursor.close()

    def _schema(self, statement: str, params: Any) -> Result | None:
        del params
        cursor = self._prepare(statement)
        if not cursor.describe():
            return None
        rows = cursor.rows(1)
        return rows.schema.empty_table(), rows.native, []

    def _parameters(self, statement: str) -> Any:
        # PostgreSQL's driver says that it cannot; MariaDB's says so, too, and crashes.
        if self.dialect is not POSTGRESQL and self.connection.text(manager.DESCRIBE_PARAMETER) != "Y":
            return None
        cursor = self._prepare(statement)
        # A driver looks at it only now.
        cursor.columns()
        told = enumerate(cursor.parameters(), 1)
        return pa.schema([Column(number, parameter, self.driver).field for number, parameter in told])

    def _stage(self, name: str, frame: object) -> None:
        table = ingested(frame, self.dialect)
        if self.dialect is _SQLITE:
            table = as_sqlite(table)
            named = [(field.name, sqlite_type(field)) for field in table.schema]
        else:
            named = _core.postgresql_columns(table.schema.empty_table())
        columns = ", ".join(f"{POSTGRESQL.quoted(column)} {kind}" for column, kind in named)
        for statement in (f"DROP TABLE IF EXISTS {name}", f"CREATE TEMPORARY TABLE {name} ({columns})"):
            self._run(statement, None)
        cursor = self.opened()
        cursor.prepare(f"INSERT INTO {name} VALUES ({', '.join('?' * table.num_columns)})")
        more = {"most": 1} if self.dialect is _SQLITE and has_empty_bytes(table) else {}
        for batch in table.to_batches():
            execute_all(cursor, batch, is_utc=True, **more)

    def load(self, **load: Any) -> TableLoader:
        """Begin to write."""
        return MariaDBLoader(self, MARIADB, **load) if self.dialect is MARIADB else super().load(**load)

    def _count(self, cursor: Cursor) -> int:
        return sum(batch.num_rows for batch in cursor.rows(10_000).batches())

    def _another(self) -> Connection:
        if self.dialect is None or self.dialect.reset is None:
            return Connection(self._text)
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
