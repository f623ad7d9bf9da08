"""PEP 249 on a ``Connection``: cursors with ADBC's Arrow methods, and the module's globals, types and constructors."""

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, Self, final

from longshore import _core, frames
from longshore.arguments import (
    UNSPLIT,
    IfExists,
    Number,
    core_params,
    exact_name,
    lease_time,
    partition,
    without_clauses,
)
from longshore.catalogue import calling, has_table, temporary_schema
from longshore.connection import arrow_schema, statement
from longshore.errors import InterfaceError, NotSupportedError, ProgrammingError
from longshore.options import Options
from longshore.read import policy, whole
from longshore.stream import Stream
from longshore.texts import display, first_word, statement_text
from longshore.write import write_sql

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from longshore.connection import Connection
    from longshore.target import SQLAlchemyText

apilevel: Final = "2.0"
#: Threads share the module; each has connections of its own.
threadsafety: Final = 1
#: ``:name`` in every source; each source's own form besides.
paramstyle: Final = "named"

Parameters = Sequence[Any] | Mapping[str, Any] | None
Row = tuple[Any, ...]
Description = tuple[str, "TypeCode", None, None, int | None, int | None, bool]

#: Rows that wait for their cursor while the connection runs another statement, in bytes of Arrow's memory.
_READ_AHEAD = 64 << 20
_DIGITS = re.compile(r"decimal\d+\((\d+), (-?\d+)\)")
#: The first words of statements that are plainly queries; any other is run to its end at once.
_QUERIES = frozenset({"SELECT", "VALUES", "TABLE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "FROM", "WITH"})
_CHANGE = re.compile(r"(?>.*?\bWITH\b).*?\b(?:INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE | re.DOTALL)
#: The looks at longer statements are not kept.
_LONG = 2048
_FIRST = "call execute() with a statement that returns rows"


class TypeCode(str):
    """The database's own name of a column's type; equal to the type object of its kind."""

    __slots__ = ("kind",)
    #: The name of the Arrow type that arrives.
    kind: str

    def __new__(cls, native: str, kind: str) -> Self:
        """Keep both names."""
        code = super().__new__(cls, native)
        code.kind = kind
        return code


@final
class TypeObject:
    """A kind of types, as PEP 249 has them: it equals each type code of its kind."""

    def __init__(self, name: str, kinds: str) -> None:
        """Keep the name, and a pattern of the Arrow types or of the database's own."""
        self._name = name
        self._kinds = re.compile(kinds)

    def __repr__(self) -> str:
        """Show the name."""
        return f"longshore.{self._name}"

    def __eq__(self, other: object) -> bool:
        """Whether it is a type code of this kind, or this very object."""
        if isinstance(other, TypeCode):
            return self._kinds.match(other.kind) is not None or (self is ROWID and other in {"oid", "tid"})
        return self is other

    def __hash__(self) -> int:
        """Be as good a key as any object."""
        return id(self)


STRING = TypeObject("STRING", "string|large_string|string_view|dictionary")
BINARY = TypeObject("BINARY", "binary|large_binary|binary_view|fixed_size_binary")
NUMBER = TypeObject("NUMBER", "u?int|halffloat|float|double|decimal")
DATETIME = TypeObject("DATETIME", "date|time")
ROWID = TypeObject("ROWID", "(?!)")

Date = dt.date
Time = dt.time
Timestamp = dt.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> dt.date:  # noqa: N802  PEP 249 gives the name
    """Give the date of seconds since 1970, in local time."""
    return dt.date.fromtimestamp(ticks)  # noqa: DTZ012  PEP 249's ticks are local


def TimeFromTicks(ticks: float) -> dt.time:  # noqa: N802  likewise
    """Give the time of day of seconds since 1970, in local time."""
    return dt.datetime.fromtimestamp(ticks).time()  # noqa: DTZ006  likewise


def TimestampFromTicks(ticks: float) -> dt.datetime:  # noqa: N802  likewise
    """Give the timestamp of seconds since 1970, in local time."""
    return dt.datetime.fromtimestamp(ticks)  # noqa: DTZ006  likewise


@final
class Cursor(AbstractContextManager["Cursor"]):
    """Statements and their rows; made by ``Connection.cursor``.

    Rows are tuples of Python objects that keep every value. They come from the server while they are fetched, a few
    thousand at a time, whatever the size of the result. A connection runs one statement at a time: the rows that
    another cursor of it has not fetched are read ahead first, into 64 MiB at most; more is an ``InterfaceError``.
    ``read_ahead`` is that number of bytes, or None.

    >>> import longshore
    >>> with longshore.connect(url) as connection, connection.cursor() as cursor:
    ...     cursor.execute("SELECT 1.50::numeric(5, 2), :b", {"b": "pier"}).fetchall()
    [(Decimal('1.50'), 'pier')]
    """

    def __init__(self, connection: "Connection", options: Mapping[str, Any] | Options | None = None) -> None:
        """Keep the connection, which the cursor does not close, and the options of its reads."""
        self.connection: Final = connection
        self._policy = None if options is None else policy("arrow", None, Options.of(options))
        #: How many rows ``fetchmany`` gives where it is not told.
        self.arraysize = 1
        #: How many bytes of rows wait in memory while the connection does something else; None is all of them.
        self.read_ahead: int | None = _READ_AHEAD
        #: Whether a query runs to its first rows only; else it has run to its end, as in most drivers.
        self.streams = True
        self._result: _core.Result | None = None
        self._changed: tuple[int | None, int | None] = (None, None)
        self._description: list[Description] | None = None
        self._cancel_handle = _core.CancelHandle()
        self._closed = False

    def execute(self, operation: "str | SQLAlchemyText", parameters: Parameters = None) -> Self:
        """Run one statement, with or without rows, and give the cursor itself.

        A query runs to its first rows; what may change the database has run to its end, and its rows wait in memory.
        With ``streams = False`` so has a query.

        ``parameters`` are a dict for ``:name``, or a sequence for the source's own places: ``$1`` in PostgreSQL, ``?``
        elsewhere. What an earlier statement of this cursor has left is thrown away.
        """
        core = self._begin()
        if type(operation) is not str:
            operation, parameters = without_clauses(operation, parameters)
            operation = statement(operation)
        is_query = _is_query(operation) if len(operation) < _LONG else _is_query.__wrapped__(operation)
        self._cancel_handle = cancel_handle = _core.CancelHandle()
        # What may change the database is done before its rows are fetched, which may be never.
        result = core.run(
            operation,
            None if parameters is None else core_params(parameters),
            whole=not (self.streams and is_query),
            policy=self._policy,
            cancel_handle=cancel_handle,
        )
        if (done := result.done) is not None:
            self._changed = done
        else:
            self._result = result
            self.connection._stream(result, self)  # noqa: SLF001  the two belong together
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Parameters]) -> Self:
        """Run one statement with each set of parameters; ``rowcount`` is of all of them, and rows are thrown away.

        Where no transaction is open, all are one: a failure undoes it. PostgreSQL is sent many at once; an ``INSERT``
        of nothing but parameters goes by arrays where the outcome is the same.
        """
        core = self._begin()
        self._cancel_handle = cancel_handle = _core.CancelHandle()
        plain = (list, tuple)
        sets = (each if type(each) in plain else core_params(each) for each in seq_of_parameters)
        self._changed = (core.execute_many(statement(operation), sets, cancel_handle=cancel_handle), None)
        return self

    def callproc(self, procname: str, parameters: Sequence[Any] = ()) -> Sequence[Any]:
        """Call a stored procedure of PostgreSQL, MySQL or MariaDB, or a function of PostgreSQL, and fetch its rows.

        Gives the parameters as they are. Raises ``NotSupportedError`` for sources that have none.
        """
        self._check()
        names = {f"p{at}": value for at, value in enumerate(core_params(parameters) or ())}  # type: ignore[var-annotated,arg-type]
        self.execute(calling(self.connection, procname, names), names)
        return parameters

    def fetchone(self) -> Row | None:
        """Give the next row, or None after the last."""
        return self._rows().fetch_one()

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Give so many of the next rows, ``arraysize`` by default; fewer at the end."""
        size = self.arraysize if size is None else size
        if not isinstance(size, int) or size < 0:
            raise InterfaceError(f"size is a number of rows, not {display(size)}")
        return self._rows().fetch(size)

    def fetchall(self) -> list[Row]:
        """Give all rows that are left."""
        return self._rows().fetch()

    def __iter__(self) -> Iterator[Row]:
        """Give the cursor itself: it iterates over the rows that are left."""
        return self

    def __next__(self) -> Row:
        """Give the next row."""
        row = self._rows().fetch_one()
        if row is None:
            raise StopIteration
        return row

    @property
    def description(self) -> list[Description] | None:
        """The columns: name, type code, None, None, precision, scale, and whether it may hold NULL."""
        if self._description is None and self._result is not None:
            self._description = [_description(*column) for column in self._result.columns()]
        return self._description

    @property
    def rowcount(self) -> int:
        """How many rows the statement changed, or gave once all have come; -1 where it is not known, as of a frame."""
        rows = self._changed[0] if self._result is None else self._result.rows
        return -1 if rows is None else rows

    @property
    def lastrowid(self) -> int | None:
        """The rowid of SQLite, or the number of MySQL's AUTO_INCREMENT, of the row that was inserted; else None."""
        return self._changed[1]

    def nextset(self) -> None:
        """Give None: a statement has one result."""
        self._check()

    def setinputsizes(self, sizes: Sequence[Any]) -> None:  # noqa: ARG002  PEP 249 gives the signature
        """Do nothing: the server tells the types."""
        self._check()

    def setoutputsize(self, size: int, column: int | None = None) -> None:  # noqa: ARG002  likewise
        """Do nothing: every value comes whole."""
        self._check()

    def close(self) -> None:
        """End the cursor; closing twice is not an error.

        What is left of its rows is thrown away. Where they take longer than a twentieth of a second, the statement is
        stopped on the server; in a transaction of PostgreSQL, which fails by that, they have ten seconds.
        """
        self._forget()
        self._closed = True

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        """Close it; after an exception the statement is stopped, and the transaction may have to be rolled back."""
        self._forget(undone=kind is not None)
        self._closed = True

    # ADBC's.

    def fetch_arrow_table(self) -> "pa.Table":
        """Give the rows that are left as a ``pyarrow.Table``, with the types of ``read_sql(return_type="arrow")``.

        Those of a partition have the types of a stream, which are the same in all partitions.
        """
        return self._whole("arrow")

    fetchallarrow = fetch_arrow_table

    def fetch_df(self) -> "pd.DataFrame":
        """Give the rows that are left as a pandas DataFrame, with the dtypes of ``read_sql``."""
        frame: pd.DataFrame = self._whole("pandas")
        return frame

    def fetch_polars(self) -> "pl.DataFrame":
        """Give the rows that are left as a polars DataFrame, with the dtypes of ``read_sql``."""
        frame: pl.DataFrame = self._whole("polars")
        return frame

    def fetch_arrow(self) -> Stream:
        """Give the rows that are left as a stream, for any library that knows the Arrow PyCapsule interface.

        The stream has the connection until its end. Types are those of ``read_sql(return_type="arrow_stream")``.
        """
        return Stream(self._rows().reading("stream").stream(), exact=(), json_objects=False)

    def fetch_record_batch(self) -> "pa.RecordBatchReader":
        """Give the rows that are left as a ``pyarrow.RecordBatchReader``, which has the connection until its end."""
        from longshore.frames.arrow import reader

        return reader(self.fetch_arrow())

    def adbc_ingest(
        self,
        table_name: str,
        data: Any,
        mode: str = "create",
        *,
        catalog_name: str | None = None,
        db_schema_name: str | None = None,
        temporary: bool = False,
    ) -> int:
        """Write data into a table as ``write_sql`` does, in the connection's transaction, and give the number of rows.

        ``mode`` is ``"create"``, ``"append"``, ``"replace"`` or ``"create_append"``. ``catalog_name`` is the current
        one. With ``temporary`` the table is the session's own, and goes with it: in PostgreSQL and SQLite.
        """
        self._begin()
        if mode not in _MODES:
            raise ValueError(f"mode is one of {', '.join(map(repr, _MODES))}, not {display(mode)}")
        if catalog_name is not None and catalog_name != self.connection.adbc_current_catalog:
            message = f"no table is written into another catalog, as {display(catalog_name)}"
            raise NotSupportedError(message, hint="connect to that database")
        if temporary and db_schema_name is not None:
            raise InterfaceError("a temporary table has a schema of its own", hint="leave db_schema_name out")
        if temporary:
            db_schema_name = temporary_schema(self.connection)
        table = exact_name(table_name, db_schema_name)
        if mode == "create_append":
            mode = "append" if has_table(self.connection, table) else "create"
        return write_sql(data, table, self.connection, if_exists=_MODES[mode])

    def adbc_execute_schema(self, operation: str, parameters: Parameters = None) -> "pa.Schema":
        """Give the schema of the rows that a statement would return; it is not run."""
        from longshore.schema import schema

        self._begin()
        return schema(operation, self.connection, params=parameters)

    def adbc_prepare(self, operation: str) -> "pa.Schema | None":
        """Give the types of a statement's parameters, or None where the source does not tell; it is not run."""
        self._begin()
        try:
            return self.connection.parameters(operation)
        except NotSupportedError:
            return None

    def adbc_execute_partitions(
        self,
        operation: str,
        parameters: Parameters = None,
        *,
        partition_on: str | None = None,
        partition_num: Number = "auto",
        lease: float = 600,
    ) -> "tuple[list[bytes], pa.Schema]":
        """Divide a query into partitions, and give them as bytes with the schema that each has; none is read yet.

        Connections to the same database read them by ``adbc_read_partition``, in this process or in others, which need
        a URL of their own: the bytes hold the query's text, and nothing that opens a connection. All of them are of one
        snapshot, which PostgreSQL keeps for ``lease`` seconds, or until this connection is closed. After that they are
        an ``OperationalError``. A query that is too small to divide is one partition.

        ``partition_on``, ``partition_num``
            As in ``read_sql``.
        ``lease``
            Seconds. The snapshot is that of a further connection, which is open for so long.

        Other sources have no snapshot for others. A cursor with ``options={"snapshot": False}`` has each partition be
        read as the database is then.

        Raises ``NotSupportedError`` with the reason for a query that cannot be divided, and for parameters.
        """
        core = self._begin()
        operation, parameters = without_clauses(operation, parameters)
        if parameters is not None:
            raise NotSupportedError("partitions have no parameters", hint="write the values into the query")
        split = partition(operation, partition_on, partition_num, None) or UNSPLIT
        self._cancel_handle = cancel_handle = _core.CancelHandle()
        schema, parts = core.execute_partitions(
            statement(operation), split, lease=lease_time(lease), policy=self._policy, cancel_handle=cancel_handle
        )
        return parts, arrow_schema(schema)

    def adbc_read_partition(self, partition: bytes) -> None:
        """Read a partition of ``adbc_execute_partitions``, whose rows are then fetched.

        It is a query that somebody has written: read none from where you would take no SQL. It has a connection of its
        own, which only reads, and does not see what the transaction of this one has done.
        """
        core = self._begin()
        if not isinstance(partition, bytes):
            raise InterfaceError(f"a partition is bytes, not {type(partition).__name__}")
        self._cancel_handle = cancel_handle = _core.CancelHandle()
        self._result = core.read_partition(partition, policy=self._policy, cancel_handle=cancel_handle)
        self.connection._stream(self._result, self)  # noqa: SLF001  the two belong together

    def adbc_cancel(self) -> None:
        """Stop the cursor's statement, from any thread: it raises ``OperationalError``, and so does a later fetch."""
        self._cancel_handle.cancel()

    def _whole(self, return_type: Literal["arrow", "pandas", "polars"]) -> Any:
        frame = frames.target(return_type)
        return whole(self._rows().reading(return_type), frame, json_objects=False)

    def _begin(self) -> _core.Connection:
        """Give the connection for another statement of this cursor."""
        self._check()
        self._forget()
        self._changed = (None, None)
        return self.connection._free()  # noqa: SLF001

    def _check(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed", hint="make another: connection.cursor()")
        if self.connection.closed:
            raise InterfaceError("the connection is closed", hint="connect again")

    def _forget(self, *, undone: bool = False) -> None:
        result, self._result, self._description = self._result, None, None
        if result is not None:
            result.close(undone=undone)

    def _rows(self) -> _core.Result:
        self._check()
        if self._result is not None:
            return self._result
        raise ProgrammingError("there are no rows to fetch", hint=_FIRST)


_MODES: dict[str, IfExists] = {"create": "fail", "append": "append", "replace": "replace", "create_append": "append"}


@lru_cache(maxsize=128)
def _is_query(text: str) -> bool:
    """Whether a statement is plainly a query; raises ``InterfaceError`` for a text that is not a statement."""
    word = first_word(statement_text(text, "the statement"))
    return word in _QUERIES and not (word == "WITH" and _CHANGE.match(text))


def _description(name: str, kind: str, native: str | None, nullable: bool) -> Description:  # noqa: FBT001
    digits = _DIGITS.match(kind)
    precision, scale = (int(digits[1]), int(digits[2])) if digits else (None, None)
    # A column without a type has the kind of its values, which is not known yet.
    return name, TypeCode(native or (kind or "any"), kind), None, None, precision, scale, nullable
