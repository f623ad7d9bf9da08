"""A fake of oracledb over an engine: DuckDB runs what a few replacements make of Oracle's SQL (of 23ai).

It keeps what the server keeps: names without quotes are capitals, an empty text is NULL, a statement that fails is
undone alone, CREATE, DROP and ALTER commit, a text has its length, and an expression of integers has no precision. It
does not tell apart names that differ in case, CLOB and VARCHAR2, RAW and BLOB; NUMBER has 17 digits after the point.
"""

import bisect
import contextlib
import datetime as dt
import functools
import itertools
import math
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import duckdb
import oracledb
import pyarrow as pa
from oracledb import errors

from tests.oracle.dictionary import VIEWS
from tests.oracle.fake import Info, Lob, Variable, error

#: The parts that stay as they are: texts and timestamps, names in quotes, comments.
_FIXED = re.compile(r"(?:TIMESTAMP )?'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
_ZONED = re.compile(r"TIMESTAMP ('.*) ([+-]\d\d:\d\d')")
_MASK = re.compile("\x00(\\d+)\x00")
_QUERY = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?:SELECT|WITH)\b", re.IGNORECASE | re.DOTALL)
_DEFINES = re.compile(r"\s*(?:CREATE|DROP|ALTER)\b", re.IGNORECASE)
_CHANGES = re.compile(r"\s*(?:INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE)
_BACK = re.compile(r"ROLLBACK TO SAVEPOINT (\w+)")
_AS_OF = re.compile(r" AS OF SCN (\d+)")
_USER = re.compile(r'ALTER SESSION SET CURRENT_SCHEMA = "(.*)"')
#: The digits of a NUMBER without precision.
_ALL_DIGITS = "DECIMAL(38, 17)"
#: Oracle's SQL in capitals, and DuckDB's.
_REPLACED = [
    (r"\bAS VARCHAR2?\(\d+\)", "AS VARCHAR"),
    (r"([^\s(,]+) VARCHAR2?\((\d+)\)", r"\1 VARCHAR CHECK (strlen(\1) <= \2)"),
    (r"\bN?CLOB\b", "VARCHAR"),
    (r"\bRAW\(\d+\)", "BLOB"),
    (r"\bNUMBER\(", "DECIMAL("),
    (r"\bNUMBER\b", _ALL_DIGITS),
    (r"\b(?:INT|INTEGER|SMALLINT)\b", "DECIMAL(38, 0)"),
    (r"\bBINARY_(FLOAT|DOUBLE)\b", r"\1"),
    (r"\bTIMESTAMP\(\d\) WITH TIME ZONE", "TIMESTAMPTZ"),
    (r"\bTIMESTAMP\([789]\)", "TIMESTAMP_NS"),
    (r"\bTIMESTAMP\(\d\)", "TIMESTAMP"),
    (r"\bDATE\b", "TIMESTAMP_S"),
    (r"\bINTERVAL DAY\(\d\) TO SECOND\(\d\)", "INTERVAL"),
    (r" RETURNING VARCHAR\)", ")"),
    (r" SAMPLE BLOCK \([\d.]+\)| AS OF SCN \d+", ""),
    (r":(\w+)", r"$\1"),
]
_MACROS = """
SET GLOBAL TimeZone = 'UTC';
CREATE MACRO IF NOT EXISTS sys_context(a, b) AS 'MAIN';
CREATE SCHEMA IF NOT EXISTS dbms_lob;
CREATE MACRO IF NOT EXISTS dbms_lob.getlength(x) AS octet_length(x);
CREATE MACRO IF NOT EXISTS chartorowid(x) AS CAST(x AS BIGINT);
CREATE MACRO IF NOT EXISTS rowidtochar(x) AS CAST(x AS VARCHAR);
CREATE MACRO IF NOT EXISTS to_date(x, mask) AS CAST(x AS TIMESTAMP_S);
CREATE MACRO IF NOT EXISTS hextoraw(x) AS from_hex(x);
CREATE MACRO IF NOT EXISTS from_tz(x, zone) AS x AT TIME ZONE zone;
CREATE MACRO IF NOT EXISTS sys_extract_utc(x) AS x AT TIME ZONE 'UTC';
CREATE MACRO IF NOT EXISTS numtodsinterval(x, unit) AS to_microseconds(CAST(x * 1000000 AS BIGINT));
CREATE MACRO IF NOT EXISTS json_serialize(x) AS CAST(json(x) AS VARCHAR);
CREATE MACRO IF NOT EXISTS to_char(x) AS
    format('{}{:09} {:02}:{:02}:{:02}.{:06}', CASE WHEN epoch_us(x) < 0 THEN '-' ELSE '+' END,
        abs(epoch_us(x)) // 86400000000, abs(epoch_us(x)) // 3600000000 % 24, abs(epoch_us(x)) // 60000000 % 60,
        abs(epoch_us(x)) // 1000000 % 60, abs(epoch_us(x)) % 1000000),
    (x, template) AS ' ' || strftime(x, '%Y-%m-%d %H:%M:%S.%n'),
    (x, template, nls) AS CASE WHEN CAST(x AS VARCHAR) LIKE '%.%' THEN rtrim(rtrim(CAST(x AS VARCHAR), '0'), '.')
        ELSE CAST(x AS VARCHAR) END;
"""
#: The types that the driver tells of DuckDB's, and those that it sends.
_TYPES = {
    "FLOAT": (oracledb.DB_TYPE_BINARY_FLOAT, pa.float32()),
    "DOUBLE": (oracledb.DB_TYPE_BINARY_DOUBLE, pa.float64()),
    "BOOLEAN": (oracledb.DB_TYPE_BOOLEAN, pa.bool_()),
    "VARCHAR": (oracledb.DB_TYPE_VARCHAR, pa.large_string()),
    '"NULL"': (oracledb.DB_TYPE_VARCHAR, pa.large_string()),
    "BLOB": (oracledb.DB_TYPE_BLOB, pa.large_binary()),
    "TIMESTAMP_S": (oracledb.DB_TYPE_DATE, pa.timestamp("s")),
    "TIMESTAMP": (oracledb.DB_TYPE_TIMESTAMP, pa.timestamp("us")),
    "TIMESTAMP_NS": (oracledb.DB_TYPE_TIMESTAMP, pa.timestamp("ns")),
    "TIMESTAMP WITH TIME ZONE": (oracledb.DB_TYPE_TIMESTAMP_TZ, pa.timestamp("us")),
    "INTERVAL": (oracledb.DB_TYPE_INTERVAL_DS, pa.month_day_nano_interval()),
    "JSON": (oracledb.DB_TYPE_JSON, pa.large_string()),
}
_LENGTH = 4000
_BATCH = 10_000
_SNAPSHOTS = 8
_BOUND = (type(None), bool, int, float, Decimal, str, bytes, dt.datetime, dt.date, dt.timedelta)
#: ORA-01013: the statement was stopped.
_CANCELLED = 1013
#: The errors of DuckDB by a part of their text, and Oracle's numbers and words for them.
_ERRORS = [
    ("Duplicate key", 1, "unique constraint violated"),
    ("duplicate key", 1, "unique constraint violated"),
    ("NOT NULL constraint", 1400, "cannot insert NULL into {}"),
    ("CHECK((strlen", 12899, "value too large for column {}"),
    ("Could not convert", 1722, "unable to convert string value to number"),
    ("Could not cast", 1438, "value larger than specified precision allowed for this column"),
    ("generated column", 54013, "INSERT operation disallowed on virtual columns"),
    ("already exists", 955, "name is already used by an existing object"),
    ("Table with name", 942, 'table or view "MAIN".{} does not exist'),
    ("INTERRUPT", _CANCELLED, "user requested cancel of current operation"),
]


@dataclass
class Engine:
    """A database: what its connections share."""

    database: duckdb.DuckDBPyConnection = field(default_factory=lambda: duckdb.connect().execute(VIEWS + _MACROS))
    connections: "set[Connection]" = field(default_factory=set)
    #: The last snapshots by their SCNs, each a transaction's, of which one query reads at a time.
    snapshots: dict[int, duckdb.DuckDBPyConnection] = field(default_factory=dict)
    lock: Any = field(default_factory=threading.Lock)
    scn: int = 0

    def connect(self, **_: Any) -> "Connection":
        """Stand in for `oracledb.connect`."""
        return Connection(self)

    def snapshot(self) -> int:
        """Keep what is committed, and return its SCN; the undo of all but the last few is gone."""
        with self.lock:
            self.scn += 1
            connection = self.snapshots[self.scn] = self.database.cursor()
            connection.execute("BEGIN").execute("SELECT 1 FROM dual").fetchall()
            if (before := self.snapshots.pop(self.scn - _SNAPSHOTS, None)) is not None:
                before.close()
            return self.scn

    def as_of(self, scn: int, query: str, params: Any) -> pa.Table:
        """Return the rows that a query had at an SCN."""
        with self.lock:
            if scn not in self.snapshots:
                raise _server(1555, 'snapshot too old: rollback segment number 1 with name "UNDO" too small')
            found: pa.Table = self.snapshots[scn].sql(query, params=params).to_arrow_table()
            return found

    def running(self, marker: str) -> bool:
        """Tell whether a statement with this text runs."""
        return any(marker in connection.text for connection in [*self.connections])


@dataclass(frozen=True)
class Change:
    """A statement of a transaction, which can be run again."""

    statement: str
    params: Any = None
    rows: pa.Table | None = None


class Connection:
    """The methods of the driver's connection that the source calls."""

    def __init__(self, engine: Engine) -> None:
        """Connect."""
        self.engine, self.autocommit, self.text = engine, False, ""
        self.duckdb = engine.database.cursor()
        #: The open transaction's changes, and how many there were at each savepoint; None where none is open.
        self.changes: list[Change] | None = None
        self.savepoints: dict[str, int] = {}
        engine.connections.add(self)

    def cursor(self) -> "Cursor":
        """Open a cursor."""
        return Cursor(self)

    def planned(self, statement: str, params: Any) -> duckdb.DuckDBPyRelation:
        """Begin a query."""
        with answering():
            if not self.autocommit and self.changes is None:
                self._begin()
            text, values = translated(statement), bound(statement, params)
            if past := _AS_OF.search(statement):
                return self.duckdb.from_arrow(self.engine.as_of(int(past[1]), text, values))
            return self.duckdb.sql(text, params=values)

    def fetch_df_batches(
        self, statement: str, parameters: Any, *, size: int, fetch_decimals: bool
    ) -> Iterator[pa.RecordBatch]:
        """Run a query, and yield its rows."""
        assert fetch_decimals
        self.text = statement
        try:
            with answering():
                found = self.planned(statement, taken(parameters, {}))
                infos = described(found)
                schema = pa.schema(
                    [(info.name, _sent(info, kind)) for info, kind in zip(infos, found.types, strict=True)]
                )
                for batch in found.to_arrow_reader(size):
                    columns = [values.cast(each.type) for values, each in zip(batch.columns, schema, strict=True)]
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)
        except BaseException:
            self.undo_statement()
            raise
        finally:
            self.text = ""

    def undo_statement(self) -> None:
        """Undo what has failed alone: DuckDB undoes the transaction. What stops the statement must not stop this."""
        self.text = ""
        if self.changes is not None:
            self._return_to(len(self.changes))

    def change(self, change: Change) -> int:
        """Run a statement that has no rows; returns how many it has changed."""
        if _DEFINES.match(change.statement):
            self.commit()
        elif not self.autocommit and self.changes is None:
            self._begin()
        self.text = change.statement
        try:
            with answering():
                count = self._run(change)
        except BaseException as failure:
            self.undo_statement()
            is_of_a_row = isinstance(failure, oracledb.Error) and failure.args[0].code != _CANCELLED
            if self.changes is not None and change.rows is not None and is_of_a_row:
                failure.args[0].offset = self._first(change.statement, change.rows)
            raise
        finally:
            self.text = ""
        if self.changes is not None:
            self.changes.append(change)
        return count

    def _run(self, change: Change) -> int:
        statement = translated(change.statement)
        if change.rows is not None:
            return sum(self._run_array(statement, rows) for rows in rounds(statement, change.rows))
        found = self.duckdb.execute(statement, bound(change.statement, change.params)).fetchall()
        return found[0][0] if _CHANGES.match(statement) else 0

    def _run_array(self, statement: str, rows: pa.Table) -> int:
        self.duckdb.register("bound", rows)
        try:
            statement = re.sub(r"\bVALUES \((.*\$.*)\)$", r"SELECT \1 FROM bound", statement).replace(
                " FROM DUAL)", " FROM bound)"
            )
            count: int = self.duckdb.execute(re.sub(r"\$(\w+)", r'bound."\1"', statement)).fetchall()[0][0]
        finally:
            with contextlib.suppress(duckdb.Error):
                self.duckdb.unregister("bound")
        return count

    def _first(self, statement: str, rows: pa.Table) -> int:
        """Return the first row that fails."""

        def fails(count: int) -> bool:
            try:
                self._run(Change(statement, rows=rows.slice(0, count)))
            except duckdb.Error:
                return True
            finally:
                self._return_to(len(self.changes or ()))
            return False

        return bisect.bisect_left(range(len(rows) + 1), x=True, key=fails) - 1

    def control(self, statement: str) -> bool:
        """Run a statement about the transaction; tells whether it is one."""
        if statement.startswith("SAVEPOINT "):
            self.savepoints[statement.removeprefix("SAVEPOINT ")] = len(self.changes or ())
        elif back := _BACK.fullmatch(statement):
            self._return_to(self.savepoints[back[1]])
        elif user := _USER.fullmatch(statement):
            if user[1] != "MAIN":
                raise _server(1435, f"user does not exist: {user[1]}")
            return True
        return statement.startswith(("SAVEPOINT ", "SET TRANSACTION ", "ROLLBACK TO ", "ANALYZE TABLE "))

    def _begin(self) -> None:
        self.duckdb.execute("BEGIN")
        self.changes = []

    def _return_to(self, count: int) -> None:
        """Undo the changes after the first: DuckDB has no savepoints, and undoes all."""
        again = (self.changes or [])[:count]
        self.rollback()
        self._begin()
        for change in again:
            self._run(change)
        self.changes = again

    def commit(self) -> None:
        """Commit."""
        if self.changes is not None:
            self.changes = None
            with answering():
                self.duckdb.execute("COMMIT")

    def rollback(self) -> None:
        """Roll back."""
        if self.changes is not None:
            self.changes = None
            self.duckdb.execute("ROLLBACK")

    def cancel(self) -> None:
        """End what runs."""
        if self.text:
            self.duckdb.interrupt()

    def close(self) -> None:
        """Close it, which rolls back."""
        self.engine.connections.discard(self)
        self.duckdb.close()


class Cursor:
    """The methods of the driver's cursor that the source calls."""

    def __init__(self, connection: Connection) -> None:
        """Open it."""
        self.connection, self.rowcount = connection, 0
        self.description: list[Info] | None = None
        self._rows: Iterator[tuple[Any, ...]] = iter(())
        self._sizes: Any = {}

    def parse(self, statement: str) -> None:
        """Describe a query, whose parameters have no values."""
        with answering():
            text = re.sub(r"\$\w+", "NULL", translated(statement))
            self.description = described(self.connection.duckdb.sql(text))

    def setinputsizes(self, *sizes: Any, **named: Any) -> None:
        """Note the types of parameters."""
        keys: Any = named or range(len(sizes))
        self._sizes = dict(zip(keys, named.values() if named else sizes, strict=True))

    def var(self, kind: Any, arraysize: int = 1) -> Variable:
        """Return a variable."""
        return Variable(kind, arraysize)

    def execute(
        self, statement: str, parameters: Any = None, *, fetch_lobs: bool = False, fetch_decimals: bool = False
    ) -> None:
        """Run a statement."""
        assert fetch_lobs == fetch_decimals
        if self.connection.control(statement):
            return
        if "GET_SYSTEM_CHANGE_NUMBER" in statement:
            self._rows = iter([(self.connection.engine.snapshot(),)])
            return
        params = taken(parameters, self._sizes)
        if _QUERY.match(statement):
            self.connection.text = statement
            try:
                found = self.connection.planned(statement, params)
                self.description = described(found)
                with answering():
                    self._rows = self._read(found.to_arrow_reader(_BATCH))
            except oracledb.Error:
                self.connection.undo_statement()
                self.close()
                raise
        else:
            self.rowcount = self.connection.change(Change(statement, params))

    def executemany(self, statement: str, rows: Any) -> None:
        """Run a statement for each row of an Arrow table, or for each set of parameters."""
        if hasattr(rows, "__arrow_c_stream__"):
            changes = [Change(statement, rows=pa.table(rows))]
        elif statement.startswith("INSERT "):
            changes = [Change(statement, rows=together([taken(each, self._sizes) for each in rows]))]
        else:
            changes = [Change(statement, taken(each, self._sizes)) for each in rows]
        self.rowcount = sum(map(self.connection.change, changes))

    def _read(self, reader: pa.RecordBatchReader) -> Iterator[tuple[Any, ...]]:
        try:
            with answering():
                for batch in reader:
                    yield from zip(*map(_fetched, batch.schema.names, batch.columns), strict=True)
        finally:
            self.connection.text = ""

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return a row."""
        return next(self._rows, None)

    def fetchmany(self, count: int) -> list[tuple[Any, ...]]:
        """Return rows."""
        return [*itertools.islice(self._rows, count)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows."""
        return [*self._rows]

    def close(self) -> None:
        """Close it."""
        self.connection.text = ""
        self.description, self._rows = None, iter(())


def _fetched(name: str, values: pa.Array) -> list[Any]:
    """Return a column's values, which may be locators."""
    is_lob = name.startswith("longshore_lob_")
    return [Lob(value) if is_lob and value is not None else value for value in values.to_pylist()]


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Raise Oracle's errors for the engine's."""
    try:
        yield
    except (duckdb.Error, RuntimeError) as failure:
        text = str(failure)
        if "parameters: " in text or "Parameter argument/count" in text:
            raise _driver(errors.ERR_MISSING_BIND_VALUE, name=text.rpartition(" ")[2]) from None
        name = re.search(r'failed: \w+\.(\w+)|strlen\("?([^")]+)|Table with name (\w+)', text)
        for part, number, words in _ERRORS:
            if part in text:
                raise _server(number, words.format(name and f'"{name[1] or name[2] or name[3]}"')) from None
        raise _server(904 if isinstance(failure, duckdb.BinderException) else 900, text) from None


def _server(number: int, text: str) -> Exception:
    kind = errors._Error(f"ORA-{number:05}: {text}", code=number).exc_type  # noqa: SLF001  the driver's own
    return error(number, text, kind)


def _driver(number: int, **arguments: Any) -> Exception:
    found = errors._create_err(number, **arguments)  # noqa: SLF001  the driver's own
    return found.exc_type(found)


@functools.cache
def translated(statement: str) -> str:
    """Return what DuckDB means by a statement."""
    fixed: list[str] = []

    def mask(found: re.Match[str]) -> str:
        if found[0] == "''":
            return "NULL"
        fixed.append(_ZONED.sub(r"TIMESTAMPTZ \1\2", found[0]))
        return f"\x00{len(fixed) - 1}\x00"

    text = _FIXED.sub(mask, statement).upper()
    if ";" in text:
        raise _server(933, "SQL command not properly ended")
    if " RETURNING " in text.partition(" INTO ")[2] and " INTO " not in text.partition(" RETURNING ")[2]:
        raise _server(925, "missing INTO keyword")
    for pattern, replacement in _REPLACED:
        text = re.sub(pattern, replacement, text)
    before, word, after = text.partition("UPDATE SET ")
    text = before + word + re.sub(r"\bT\.", "", after)
    return _MASK.sub(lambda found: fixed[int(found[1])], text)


def bound(statement: str, params: Any) -> Any:
    """Return parameters by the names that they have in the statement."""
    if isinstance(params, dict):
        return {name.upper(): value for name, value in params.items()}
    names = {*re.findall(r"\$(\w+)", _FIXED.sub("", translated(statement)))}
    if len(names) != len(params or ()):
        raise _driver(
            errors.ERR_WRONG_NUMBER_OF_POSITIONAL_BINDS, expected_num=len(names), actual_num=len(params or ())
        )
    return params or None


def taken(params: Any, sizes: Any) -> Any:
    """Return parameters as the driver sends them, of which some have been told their types."""
    if isinstance(params, dict):
        return {name: _taken(value, sizes.get(name)) for name, value in params.items()}
    return [_taken(value, sizes.get(at)) for at, value in enumerate(params or ())]


def _taken(value: Any, size: Any) -> Any:
    if isinstance(value, Variable):
        value, size = value.value, value.kind
    if not isinstance(value, _BOUND):
        raise _driver(errors.ERR_PYTHON_TYPE_NOT_SUPPORTED, typ=type(value))
    if isinstance(value, float) and size is None:
        # It is sent as a NUMBER.
        if not math.isfinite(value) or abs(value) >= 1e126:
            raise _driver(errors.ERR_ORACLE_NUMBER_NO_REPR)
        return value
    if isinstance(value, dt.datetime) and size is None:
        return value.replace(microsecond=0)
    return None if value in ("", b"") else value


def together(sets: list[Any]) -> pa.Table:
    """Return sets of parameters, of one type each, as the rows of a table; integers may have more than 64 bits."""
    named = [each if isinstance(each, dict) else {str(at): value for at, value in enumerate(each, 1)} for each in sets]

    def number(value: Any) -> Any:
        return Decimal(value) if type(value) is int else value

    return pa.table({name.upper(): [number(each[name]) for each in named] for name in named[0]})


def rounds(statement: str, rows: pa.Table) -> list[pa.Table]:
    """Return rows in as many parts as a MERGE has rows of the same key: it is run row by row."""
    found = re.search(r" ON \((.*?)\) WHEN ", statement)
    if found is None:
        return [rows]
    names = re.findall(r'T\.("[^"]*") =', found[1])
    numbers = [re.search(rf"\$(\d+)[^$]* AS {re.escape(name)}", statement) for name in names]
    keys = [rows.column(int(number[1]) - 1).to_pylist() for number in numbers if number]
    counts: dict[Any, int] = {}
    turns = []
    for key in zip(*keys, strict=True):
        turns.append(counts.get(key, 0))
        counts[key] = turns[-1] + 1
    return [
        rows.filter(pa.array([turn == each for turn in turns], pa.bool_())) for each in range(max(turns, default=0) + 1)
    ]


def described(found: duckdb.DuckDBPyRelation) -> list[Info]:
    """Return what the driver tells of a query's columns."""
    return [_info(*each) for each in zip(found.columns, found.types, strict=True)]


def _info(name: str, kind: Any) -> Info:
    if str(kind) in _TYPES:
        places = {"TIMESTAMP": 6, "TIMESTAMP WITH TIME ZONE": 6, "TIMESTAMP_NS": 9}.get(str(kind))
        return Info(name, _TYPES[str(kind)][0], None, places, _LENGTH, _LENGTH)
    if kind.id == "decimal" and str(kind) != _ALL_DIGITS.replace(" ", ""):
        precision, scale = (number for _, number in kind.children)
        return Info(name, oracledb.DB_TYPE_NUMBER, precision, scale)
    return Info(name, oracledb.DB_TYPE_NUMBER, 0, -127)


def _sent(info: Info, kind: Any) -> pa.DataType:
    if info.type_code != oracledb.DB_TYPE_NUMBER:
        return _TYPES[str(kind)][1]
    return pa.decimal128(info.precision, info.scale) if info.precision else pa.float64()
