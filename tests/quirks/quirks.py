"""The class of quirks: how a source says what all sources can do, and what it cannot do, with the reason."""

import contextlib
import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import longshore
from tests.cutter import Messages, Way
from tests.servers import Endpoint, MySQLEndpoint


def same(value: Any) -> Any:
    """Return the value: it arrives as it was written."""
    return value


@dataclass(frozen=True)
class Kind:
    """A type of a source: its name there, the Arrow type that arrives, and what arrives of a value."""

    native: str
    arrow: pa.DataType
    cell: Callable[[Any], Any] = same


@dataclass(frozen=True)
class Column:
    """A column's Arrow type and two of its values, which every source holds, or says why it cannot."""

    arrow: pa.DataType
    held: tuple[Any, Any]


@dataclass(frozen=True)
class Refusal:
    """A refusal of a source: the reason, which the error says, and the error's class; a warning is an error here."""

    reason: str
    error: type[Exception] = longshore.NotSupportedError


#: The tests of writes that are rolled back or committed.
OF_TRANSACTIONS = (
    *("test_commit_and_rollback", "test_sessions.test_leaving_by_an_exception_rolls_back"),
    *("test_transactions", "test_executemany_is_all_or_nothing"),
    *("test_a_cancelled_executemany_leaves_no_transaction", "test_a_cursor_that_is_closed_leaves_the_transaction"),
    *("test_an_error_of_the_first_rows_is_raised_by_execute", "test_a_rollback_throws_away_what_was_not_fetched"),
    *("test_rows_that_are_given_up_leave_the_transaction", "test_a_query_that_an_exception_leaves_is_stopped"),
    *("test_ingest", "test_what_is_known_of_statements_and_tables", "test_counts_stay_after_close"),
)


@dataclass(frozen=True, kw_only=True)
class Quirks:
    """A source, as the contract's tests see it."""

    source: str
    #: The modules of the contract, and the tests of one, that have no meaning for it, and why.
    left_out: Mapping[str, str] = field(default_factory=dict)
    #: Those that would take it seconds: the long run alone runs them.
    in_the_long_run: frozenset[str] = frozenset()
    #: Gives the URL of an empty database that lasts as long as the block.
    place: Callable[[pytest.FixtureRequest, Path], AbstractContextManager[str]]
    #: The type that holds each of the columns that all sources share.
    types: Mapping[str, Kind]
    #: Columns of types that the source has next to those: the native type, and what is read.
    more: Mapping[str, Column] = field(default_factory=dict)
    #: Parameter number {n}.
    placeholder: str = "?"
    #: The start of a query that knows `series`, whose column `i` counts from 1 to {rows}.
    series: str
    #: A query that computes for long before its first row.
    computing: str
    #: A query whose rows, of a column `i` and a text `t`, have no end.
    streaming: str
    #: A query that counts the running statements in whose text is {marker}, or what tells of a URL and a marker whether
    #: there are such, where a query is slow; None where no server runs them.
    running: str | Callable[[str, str], bool] | None = None
    #: A query that counts the other sessions of the database, or what counts all at a URL; None where there is none.
    sessions: str | Callable[[str], int] | None = None
    #: A query of the session's number, which no other has; None where they have none.
    session: str | None = None
    #: Seconds in which the columns of a query are known, on a machine that is busy.
    seconds_to_answer: float = 0.3
    #: A query of the names of all tables.
    tables: str
    #: Numbers, bytes, and timestamps with time zone, as SQL has them.
    number: str = "{}"
    binary: str = "x'{}'"
    instant: str = "%Y-%m-%d %H:%M:%S.%f+00:00"
    #: The native type of integers' literals and expressions, where it has no scale, so that they arrive as text.
    numbers_as_text: str = ""
    #: A name without quotes as the database keeps it.
    kept: Callable[[str], str] = same
    #: An integer as a query's column that arrives as one.
    integer: str = "{}"
    #: A literal as a value of a native type, where the database does not convert it.
    typed: Callable[[str, str], str] = lambda literal, _native: literal
    #: The quote around names.
    quote: str = '"'
    #: How a key of several columns that tell rows apart is declared; nothing where tables have none.
    unique: str = "UNIQUE"
    #: The name of the type of decimals.
    numeric: str = "numeric"
    #: How a column is declared the primary key; nothing where tables have none.
    primary_key: str = "PRIMARY KEY"
    #: The default of a column that is left out; None where columns have none.
    default: int | None = 5
    #: Whether a key keeps a second row of its values out.
    enforces_keys: bool = True
    #: Whether a column without a default that must have a value has to be named.
    asks_for_values: bool = True
    #: The constraint that keeps a second 1 out of a column `i`; nothing where there is none.
    constraint: str = "PRIMARY KEY"
    #: How a generated column is kept.
    generated: str = "STORED"
    #: Whether a column of a query is known to be NOT NULL, and whether errors have an SQLSTATE.
    tells_not_null: bool = True
    #: Whether the error of a value that its column's type cannot hold has the column and the row.
    tells_failed_casts: bool = True
    has_sqlstates: bool = True
    #: Whether there are views, and UNIQUE constraints and foreign keys.
    has_views: bool = True
    has_references: bool = True
    #: Whether tables have constraints at all but for NOT NULL.
    has_constraints: bool = True
    #: Whether a batch has as many rows as are asked for, and no fewer before the last.
    fills_batches: bool = True
    #: How many of values of many types a column of one type takes at least.
    kinds_that_fit: int = 3
    #: Whether `statistics` tells rows where they need not be exact.
    estimates_rows: bool = True
    #: The database's name for itself, in lower case, where that is not the source's.
    vendor: str = ""
    #: Whether what is written can be rolled back; where not, a connection writes with autocommit alone.
    has_transactions: bool = True
    #: Whether an UPDATE and a DELETE tell how many rows they have changed.
    counts_changes: bool = True
    #: How the catalogue calls the shared int32, varchar(50) and decimal(10,2).
    listed_types: tuple[str, str, str]
    #: The columns that the catalogue tells of a CHECK over one; None where it tells of none.
    check_columns: tuple[str, ...] | None = None
    #: Whether the catalogue keeps the names of constraints.
    tells_constraint_names: bool = True
    #: The statement that has the server estimate the rows of {table}; None where it keeps no statistics.
    analyze: str | None = "ANALYZE {table}"
    #: Whether an open session reads a table that another has replaced, or has to be told to read it again.
    reads_what_is_replaced: bool = True
    #: Options under which several sessions see one snapshot.
    together: Mapping[str, Any] = field(default_factory=dict)
    #: Whether the queries of a list see one snapshot, in a transaction; where not, its isolation is the server's own.
    lists_see_one_snapshot: bool = True
    #: Whether each of the partitions of a small table has rows; where not, a few batches are dealt out.
    fills_partitions: bool = True
    #: Settings of a URL under which a session that another's locks keep out is told so soon; empty where none is.
    contended: str = ""
    #: Settings of a URL without encryption; empty where there is no server.
    plain: str = ""
    #: The statements that make and drop a user {name} with a password, who may do all.
    users: tuple[str, ...] = ()
    no_users: str = ""
    #: A query of few rows and several types, for a network that fails.
    small: str = "SELECT 1 AS n"
    #: Finds where the messages of one side begin.
    messages: Messages | None = None
    #: How many bytes of each side's last words may be lost after a whole result.
    last_words: Mapping[Way, int] = field(default_factory=dict)
    #: The masks that turn a message's type into that of another.
    masks: tuple[int, ...] = ()
    #: Columns that it has no type for, whose values a new table holds in another.
    holds_otherwise: frozenset[str] = frozenset()
    #: The promises that the source cannot keep, some by the name of the test that is about one alone.
    cannot: Mapping[str, Refusal] = field(default_factory=dict)

    def __str__(self) -> str:
        """Name the test."""
        return self.source

    def not_run(self, *, is_long: bool) -> frozenset[str]:
        """Return the names of modules and tests that are not run."""
        return frozenset(self.left_out) if is_long else self.in_the_long_run | {*self.left_out}

    def literal(self, value: Any) -> str:
        """Return a value as SQL has it."""
        match value:
            case None:
                text = "NULL"
            case bool() | int() | float():
                text = self.number.format(value)
            case bytes():
                text = self.binary.format(value.hex())
            case list():
                # Only PostgreSQL has arrays.
                text = "'{" + ",".join("NULL" if each is None else f'"{each}"' for each in value) + "}'"
            case dt.datetime() if value.tzinfo:
                text = f"'{value.astimezone(dt.UTC).strftime(self.instant)}'"
            case dt.datetime():
                text = f"'{value.isoformat(' ')}'"
            case dt.timedelta():
                seconds = abs(value) // dt.timedelta(seconds=1)
                sign = "-" if value < dt.timedelta(0) else ""
                text = f"'{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}'"
            case _:
                text = "'" + str(value).replace("'", "''") + "'"
        return text

    def name(self, text: str) -> str:
        """Return a name in quotes."""
        return self.quote + text.replace(self.quote, self.quote * 2) + self.quote

    def select(self, number: int) -> str:
        """Return a query of an integer, `n`."""
        return f"SELECT {self.integer.format(number)} AS n"

    def places(self, count: int) -> str:
        """Return so many parameters, with commas between."""
        return ", ".join(self.placeholder.format(n=n + 1) for n in range(count))


def on_server(
    fixture: str,
) -> Callable[[pytest.FixtureRequest, Path], AbstractContextManager[str]]:
    """Return what gives the URL of a database of a server that is a fixture."""

    @contextlib.contextmanager
    def place(request: pytest.FixtureRequest, directory: Path) -> Iterator[str]:
        server: Endpoint | MySQLEndpoint = request.getfixturevalue(fixture)
        run = server.psql if isinstance(server, Endpoint) else server.sql
        run(f"CREATE DATABASE {directory.name}")
        try:
            yield server.url(database=directory.name)
        finally:
            run(f"DROP DATABASE {directory.name}")

    return place
