"""Trino, by its client protocol: ``trino://user@host:port/catalog/schema``."""

import datetime as dt
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

from longshore import _core, errors
from longshore.sources.arrow import empty, objects, stream
from longshore.sources.dialects import TRINO, literal
from longshore.sources.loading import TableLoader
from longshore.sources.session import DriverSession, Result, hide_secrets
from longshore.sources.trino_http import Address, Connection, Statement, TrinoError
from longshore.sources.trino_loading import UPSERT, TrinoLoader
from longshore.texts import first_word

#: The class and the SQLSTATE of Trino's errors, by their names; others by their kind.
_ERRORS: dict[str, tuple[type[errors.Error], str]] = {
    "SYNTAX_ERROR": (errors.ProgrammingError, "42601"),
    "TABLE_NOT_FOUND": (errors.ProgrammingError, "42P01"),
    "COLUMN_NOT_FOUND": (errors.ProgrammingError, "42703"),
    "SCHEMA_NOT_FOUND": (errors.ProgrammingError, "3F000"),
    "CATALOG_NOT_FOUND": (errors.ProgrammingError, "3D000"),
    "FUNCTION_NOT_FOUND": (errors.ProgrammingError, "42883"),
    "TYPE_MISMATCH": (errors.ProgrammingError, "42804"),
    "TABLE_ALREADY_EXISTS": (errors.ProgrammingError, "42P07"),
    "PERMISSION_DENIED": (errors.ProgrammingError, "42501"),
    "NOT_SUPPORTED": (errors.NotSupportedError, "0A000"),
    "AUTOCOMMIT_WRITE_CONFLICT": (errors.NotSupportedError, "0A000"),
    "DIVISION_BY_ZERO": (errors.DataError, "22012"),
    "NUMERIC_VALUE_OUT_OF_RANGE": (errors.DataError, "22003"),
    "INVALID_CAST_ARGUMENT": (errors.DataError, "22018"),
    "INVALID_FUNCTION_ARGUMENT": (errors.DataError, "22023"),
    "INVALID_LITERAL": (errors.DataError, "22P02"),
    "CONSTRAINT_VIOLATION": (errors.IntegrityError, "23000"),
    "USER_CANCELED": (errors.OperationalError, "57014"),
    "EXCEEDED_TIME_LIMIT": (errors.OperationalError, "57014"),
    "TRANSACTION_ALREADY_ABORTED": (errors.OperationalError, "25P02"),
    "AUTHENTICATION": (errors.OperationalError, "28000"),
}
_ALONE = "give the URL, or longshore.connect(..., autocommit=True)"
_AUTOCOMMIT = "longshore.connect(..., autocommit=True), and write_sql for many rows: executemany is a transaction"
_QUERIES = frozenset({"SELECT", "WITH", "VALUES", "TABLE"})


def connect(rest: str, keywords: Mapping[str, str], **_: bool) -> "Session":
    """Connect to the coordinator after ``trino://``."""
    address = Address.of(rest, keywords)
    return Session(address)


class Session(DriverSession):
    """One session."""

    not_split = "Trino exports no snapshot that sessions share, and reads a query in parallel inside"
    not_prepared = "Trino tells their types as text alone"
    dialect = TRINO
    loader = TrinoLoader
    failure = TrinoError
    #: Whether a write is under way, whose statements are for themselves.
    is_loading = False

    def __init__(self, address: Address) -> None:
        """Connect."""
        self.settings = {"password": address.headers.get("Authorization", "").partition(" ")[2]}
        with self.translating():
            super().__init__(Connection(address))

    def translate(self, error: Any) -> errors.Error:
        """Give Longshore's exception for Trino's name."""
        other = (errors.ProgrammingError if error.kind == "USER_ERROR" else errors.OperationalError, None)
        kind, sqlstate = _ERRORS.get(error.name, other)
        hint = _AUTOCOMMIT if error.name == "AUTOCOMMIT_WRITE_CONFLICT" else None
        return kind(hide_secrets(str(error), self.settings), sqlstate=sqlstate, hint=hint)

    def _prepare(self, query: str, params: Any) -> tuple[Any, Any]:
        if not first_word(query):
            raise errors.ProgrammingError("the query holds no statement")
        return bind(query, params)

    def _run(self, statement: str, values: Any) -> "Cursor":
        cursor = self.cursor = Cursor(self.connection.run(compose(statement, values)))
        return cursor

    def _result(self, statement: str, params: Any, rows: int) -> Result | None:
        running = self._run(statement, params).statement
        # What changes something tells how many rows in a column.
        if running.schema is None or running.update_type is not None:
            running.finish()
            return None
        return stream(self, running.schema, running.batches(rows)), [], []

    def _schema(self, statement: str, params: Any) -> Result | None:
        if first_word(statement) not in _QUERIES:
            return None
        # The server plans such a query, and reads nothing for it.
        running = self.connection.run(compose(f"SELECT * FROM (\n{statement}\n) LIMIT 0", params))
        # One that is left before its end would abort the transaction.
        running.finish()
        return None if running.schema is None else (empty(running.schema), [], [])

    def _statements(self, script: str) -> list[str]:
        return _core.sql_statements(script, "standard")

    def _begin(self) -> None:
        if not self.is_loading:
            self.connection.run("START TRANSACTION").finish()

    def _end(self, how: Literal["commit", "rollback"]) -> None:
        self.is_loading = False
        if "X-Trino-Transaction-Id" in self.connection.headers:
            self.connection.run(how.upper()).finish()

    def _is_usable(self) -> bool:
        return not self.connection.is_aborted

    def _count(self, cursor: "Cursor") -> int:
        return sum(batch.num_rows for batch in cursor.statement.batches())

    def _close_cursor(self) -> None:
        self.cursor = None
        self.connection.leave()

    def _another(self) -> Connection:
        return Connection(self.connection.address)

    def load(self, **load: Any) -> TableLoader:
        """Begin to write."""
        if self.transaction != "none":
            raise errors.NotSupportedError("a write of Trino's cannot be part of a transaction", hint=_ALONE)
        if load["if_exists"] == "upsert":
            raise errors.NotSupportedError("not every catalog of Trino's has a MERGE", hint=UPSERT)
        self.is_loading = True
        return super().load(**load)


class Cursor:
    """A statement's result, with PEP 249's names."""

    def __init__(self, statement: Statement) -> None:
        """Keep the statement, of which one that changes something has ended."""
        self.statement, self.rowcount = statement, -1
        is_change = statement.update_type is not None or statement.schema is None
        if is_change:
            statement.finish()
            self.rowcount = -1 if statement.update_count is None else statement.update_count
        self.description = None if is_change or statement.schema is None else statement.schema.names

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Give all rows as objects."""
        return objects(self.statement.batches())


def compose(statement: str, values: list[str]) -> str:
    """Give the statement that has the server bind literals."""
    return f"EXECUTE IMMEDIATE {literal(statement)} USING {', '.join(values)}" if values else statement


def bind(query: str, params: Any) -> tuple[str, list[str]]:
    """Give a statement with its parameters by place, and of each the literal of its value's type."""
    query = query.rstrip().removesuffix(";")
    if params is None:
        return query, []
    pieces = _core.sql_places(query, "standard")
    places = pieces[1::2]
    if isinstance(params, dict):
        names = [place[1:] for place in places if place != "?"]
        if missing := [name for name in names if name not in params]:
            raise errors.ProgrammingError(f"there is no parameter :{missing[0]} in params")
        if unused := [name for name in params if name not in names]:
            raise errors.ProgrammingError(f"the statement has no parameter {', '.join(unused)}")
        pieces[1::2] = ["?"] * len(places)
        values = [params[name] for name in names]
    else:
        values, count = list(params), places.count("?")
        if count != len(values):
            raise errors.ProgrammingError(f"the statement has {count} parameters, and params {len(values)}")
    return "".join(pieces), [*map(_literal, values)]


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    write = _LITERALS.get(type(value))
    if write is None:
        raise errors.NotSupportedError(f"a {type(value).__name__} cannot be a parameter of Trino's")
    return write(value)


def _integer(value: int) -> str:
    # As in a text of SQL: one of 32 bits goes into every wider column.
    if -(2**31) < value < 2**31:
        return str(value)
    if -(2**63) <= value < 2**63:
        return f"BIGINT '{value}'"
    return _decimal(Decimal(value))


def _decimal(value: Decimal) -> str:
    text = f"{value:f}"
    if not value.is_finite() or sum(letter.isdigit() for letter in text) > 38:  # noqa: PLR2004  Trino's digits
        raise errors.NotSupportedError(f"{value} has more digits than Trino's decimals, which have 38")
    return f"DECIMAL '{text}'"


def _float(value: float) -> str:
    if math.isnan(value):
        return "nan()"
    if math.isinf(value):
        return "infinity()" if value > 0 else "-infinity()"
    return f"DOUBLE '{value!r}'"


def _timestamp(value: dt.datetime) -> str:
    if value.tzinfo is None:
        return f"TIMESTAMP '{value.isoformat(' ', 'microseconds')}'"
    instant = value.astimezone(dt.UTC).replace(tzinfo=None)
    return f"TIMESTAMP '{instant.isoformat(' ', 'microseconds')} UTC'"


def _span(value: dt.timedelta) -> str:
    if value.microseconds % 1000:
        raise errors.NotSupportedError(f"{value} has microseconds, and Trino's intervals milliseconds")
    milliseconds = value // dt.timedelta(milliseconds=1)
    sign = "-" if milliseconds < 0 else ""
    seconds, rest = divmod(abs(milliseconds), 1000)
    return f"INTERVAL {sign}'{seconds}.{rest:03}' SECOND"


_LITERALS: Mapping[type, Callable[[Any], str]] = {
    bool: lambda value: str(value).lower(),
    int: _integer,
    float: _float,
    Decimal: _decimal,
    str: literal,
    bytes: lambda value: f"X'{value.hex()}'",
    dt.date: lambda value: f"DATE '{value.isoformat()}'",
    dt.datetime: _timestamp,
    dt.time: lambda value: f"TIME '{value.isoformat('microseconds')}'",
    dt.timedelta: _span,
    UUID: lambda value: f"UUID '{value}'",
    list: lambda value: f"ARRAY[{', '.join(map(_literal, value))}]",
}
