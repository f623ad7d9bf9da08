"""A fake of oracledb's connection: its own types and errors, and the conversions to Arrow that its source has.

It loses what the driver loses: a NUMBER without precision is a double, a negative scale is off, times have
microseconds, and one with a zone is local. So a value is exact only where the source has asked for it in another way.
"""

import datetime as dt
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import oracledb
import pyarrow as pa

_WRAPPED = re.compile(r"SELECT (?P<items>.*) FROM \(\n(?P<query>.*)\n\)", re.DOTALL)
_ITEM = re.compile(r'(?P<sql>.+?) AS "(?P<name>[^"]+)"(?:, |$)', re.DOTALL)
_LOB = re.compile(r'CASE WHEN DBMS_LOB\.GETLENGTH\("(.+)"\) (NOT )?BETWEEN 1 AND 32768 THEN "\1" END')
_TABLE = re.compile(r"SELECT \* FROM (.*)")
#: The units of a LOB that comes whole.
SHORT = 32_768


@dataclass(frozen=True)
class Info:
    """The driver's description of a column."""

    name: str
    type_code: Any
    precision: int | None = None
    scale: int | None = None
    internal_size: int | None = None
    display_size: int | None = None
    null_ok: bool = True
    vector_format: Any = None
    vector_is_sparse: bool = False


def error(number: int, text: str, kind: type[Exception] = oracledb.DatabaseError, offset: int = 0) -> Exception:
    """Return an exception of the driver's, with its own object inside."""
    from oracledb.errors import _Error

    return kind(_Error(f"ORA-{number:05}: {text}", code=number, offset=offset))


def _local(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text[:26])


def _utc(text: str) -> str:
    clock, _, zone = text.partition(" +")
    hours, minutes = map(int, (zone or "00:00").split(":"))
    at = _local(clock) - dt.timedelta(hours=hours, minutes=minutes)
    return at.isoformat(" ", "microseconds") + clock[26:29]


def _time(text: str) -> str:
    return (text if text.startswith("-") else f" {text}")[:30]


def _number(value: Decimal) -> str:
    text = f"{value:f}"
    return re.sub(r"^(-?)0\.", r"\1.", text)


#: SQL around a column's name, and what Oracle makes of a value.
EXPRESSIONS: list[tuple[str, Callable[[Any], Any], pa.DataType]] = [
    ("TO_CHAR({}, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,''')", _number, pa.large_string()),
    ("TO_CHAR({}, 'SYYYY-MM-DD HH24:MI:SS.FF9')", _time, pa.large_string()),
    ("TO_CHAR(SYS_EXTRACT_UTC({}), 'SYYYY-MM-DD HH24:MI:SS.FF9')", lambda value: _time(_utc(value)), pa.large_string()),
    ("CAST(SYS_EXTRACT_UTC({}) AS TIMESTAMP(6))", lambda value: _local(_utc(value)), pa.timestamp("us")),
    ("TO_CHAR({})", str, pa.large_string()),
    ("CAST({} AS VARCHAR2(4000))", str, pa.large_string()),
    ("JSON_SERIALIZE({} RETURNING CLOB)", str, pa.large_string()),
    ("XMLSERIALIZE(CONTENT {} AS CLOB)", str, pa.large_string()),
    ("FROM_VECTOR({} RETURNING CLOB)", str, pa.large_string()),
]
_UNITS = ["s", "ms", "ms", "ms", "us", "us", "us", "ns", "ns", "ns"]


def plain(info: Info, values: list[Any]) -> pa.Array:
    """Convert as the driver does by itself."""
    kinds = {
        oracledb.DB_TYPE_BINARY_FLOAT: pa.float32(),
        oracledb.DB_TYPE_BINARY_DOUBLE: pa.float64(),
        oracledb.DB_TYPE_BOOLEAN: pa.bool_(),
        oracledb.DB_TYPE_RAW: pa.large_binary(),
        oracledb.DB_TYPE_BLOB: pa.large_binary(),
        oracledb.DB_TYPE_VECTOR: pa.list_(pa.float32()),
    }
    kinds |= {getattr(oracledb, f"DB_TYPE_{name}"): pa.large_string() for name in ("VARCHAR", "CHAR", "CLOB", "NCLOB")}
    code = info.type_code
    if code in kinds:
        return pa.array(values, kinds[code])
    if code == oracledb.DB_TYPE_NUMBER:
        precision, scale = info.precision or 0, info.scale or 0
        if not precision or scale == -127:
            return pa.array([None if value is None else float(value) for value in values], pa.float64())
        # Of a negative scale the driver takes the digits as they are.
        made = [None if value is None else value * 10**-scale if scale < 0 else value for value in values]
        return pa.array(made, pa.decimal128(38, scale) if scale < 0 else pa.decimal128(precision, scale))
    if code == oracledb.DB_TYPE_DATE:
        return pa.array([value and dt.datetime.fromisoformat(value) for value in values], pa.timestamp("s"))
    if code in {oracledb.DB_TYPE_TIMESTAMP, oracledb.DB_TYPE_TIMESTAMP_TZ, oracledb.DB_TYPE_TIMESTAMP_LTZ}:
        places = 6 if info.scale is None else info.scale
        return pa.array([value and _local(value) for value in values], pa.timestamp("us")).cast(
            pa.timestamp(_UNITS[places]), safe=False
        )
    raise oracledb.NotSupportedError(f'DPY-3030: conversion from "{code.name}" to Apache Arrow is not supported')


@dataclass
class Database:
    """Queries with their columns and rows, tables, and a log of what was run."""

    queries: dict[str, tuple[list[Info], list[tuple[Any, ...]]]] = field(default_factory=dict)
    tables: dict[str, list[Info]] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    written: list[tuple[str, Any]] = field(default_factory=list)
    #: The error of a statement that holds the text.
    failures: dict[str, Exception] = field(default_factory=dict)
    #: How many units the pieces of LOBs lack.
    missing: int = 0
    #: The error of a batch after the first.
    later: Exception | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    sizes: list[Any] = field(default_factory=list)
    #: Set by `cancel`; a query that waits ends with it.
    cancelled: threading.Event = field(default_factory=threading.Event)
    waits: bool = False

    def connect(self, **arguments: Any) -> "Connection":
        """Stand in for `oracledb.connect`."""
        self.arguments = arguments
        return Connection(self)

    def run(self, statement: str) -> None:
        """Note a statement, or fail."""
        self.log.append(statement)
        for text, failure in self.failures.items():
            if text in statement:
                raise failure

    def described(self, statement: str) -> list[Info]:
        """Return the columns of a query."""
        if statement in self.queries:
            return self.queries[statement][0]
        if (found := _TABLE.fullmatch(statement)) and found[1] in self.tables:
            return self.tables[found[1]]
        raise error(942, "table or view does not exist")


class Connection:
    """The methods of the driver's connection that the source calls."""

    def __init__(self, database: Database) -> None:
        """Open it."""
        self.database = database
        self.autocommit = False

    def cursor(self) -> "Cursor":
        """Open a cursor."""
        return Cursor(self.database)

    def fetch_df_batches(
        self, statement: str, parameters: Any, *, size: int, fetch_decimals: bool
    ) -> Iterator[pa.RecordBatch]:
        """Run a query, and yield its rows."""
        assert fetch_decimals
        self.database.arguments["parameters"] = parameters
        self.database.run(statement)
        if self.database.waits:
            assert self.database.cancelled.wait(30)
            raise error(1013, "user requested cancel of current operation")
        infos, sqls, rows = self.asked(statement)
        for at in range(0, max(len(rows), 1), size):
            columns = list(zip(*rows[at : at + size], strict=True)) or [() for _ in infos]
            arrays = [self.array(*each) for each in zip(sqls, infos, columns, strict=True)]
            yield pa.record_batch(arrays, names=[each.name for each in infos])
            if self.database.later is not None:
                raise self.database.later

    def asked(self, statement: str) -> tuple[list[Info], list[str], list[tuple[Any, ...]]]:
        """Return what a query, or the one within it, has: its columns, what is asked for of each, and its rows."""
        found = _WRAPPED.fullmatch(statement)
        infos, rows = self.database.queries[found["query"] if found else statement]
        items = [*_ITEM.finditer(found["items"])] if found else []
        return infos, [item["sql"] for item in items] or [f'"{each.name}"' for each in infos], rows

    def array(self, sql: str, info: Info, values: tuple[Any, ...]) -> pa.Array:
        """Return what the driver makes of an expression of a column."""
        if sql == f'"{info.name}"':
            return plain(info, list(values))
        for template, make, kind in EXPRESSIONS:
            if sql == template.format(f'"{info.name}"'):
                return pa.array([None if value is None else make(value) for value in values], kind)
        raise error(904, f"{sql}: invalid identifier")

    def commit(self) -> None:
        """Note it."""
        self.database.log.append("COMMIT")

    def rollback(self) -> None:
        """Note it."""
        self.database.log.append("ROLLBACK")

    def cancel(self) -> None:
        """End what waits."""
        self.database.cancelled.set()

    def close(self) -> None:
        """Close it."""
        self.database.log.append("close")


class Cursor:
    """The methods of the driver's cursor that the source calls."""

    def __init__(self, database: Database) -> None:
        """Open it."""
        self.database = database
        self.description: list[Info] | None = None
        self.rowcount = 0
        self.arraysize = self.prefetchrows = 100
        self.outputtypehandler: Any = None
        self._rows: list[tuple[Any, ...]] = []

    def parse(self, statement: str) -> None:
        """Describe a query."""
        self.description = self.database.described(statement)

    def setinputsizes(self, *sizes: Any, **named: Any) -> None:
        """Note the types of parameters."""
        self.database.sizes.append(named or sizes)

    def var(self, kind: Any, arraysize: int = 1) -> "Variable":
        """Return a variable."""
        return Variable(kind, arraysize)

    def execute(
        self, statement: str, parameters: Any = None, *, fetch_lobs: bool = False, fetch_decimals: bool = False
    ) -> None:
        """Run a statement."""
        self.database.run(statement)
        self.database.arguments["parameters"] = parameters
        if fetch_lobs:
            assert fetch_decimals
            self._rows = self._with_lobs(statement)
        elif statement in self.database.queries:
            self.description, self._rows = self.database.queries[statement]
        elif statement.startswith("CREATE TABLE "):
            self.database.tables[statement.split(" (", maxsplit=1)[0].removeprefix("CREATE TABLE ")] = created(
                statement
            )
        elif statement.startswith("DROP TABLE "):
            del self.database.tables[statement.removeprefix("DROP TABLE ")]
        elif found := re.fullmatch(r'ALTER TABLE ("[^"]+") RENAME TO (.*)', statement):
            self.database.tables[found[2]] = self.database.tables.pop(found[1])
        self.rowcount = 1 if statement.startswith(("INSERT", "UPDATE", "DELETE")) else 0

    def executemany(self, statement: str, rows: Any) -> None:
        """Run a statement for each row of an Arrow table, or for each set of parameters."""
        self.database.run(statement)
        written = pa.table(rows) if hasattr(rows, "__arrow_c_stream__") else rows
        self.database.written.append((statement, written))
        self.rowcount = len(written)

    def _with_lobs(self, statement: str) -> list[tuple[Any, ...]]:
        """Return rows in which a LOB is a locator, unless a variable of another type is there for it."""
        connection = Connection(self.database)
        infos, sqls, rows = connection.asked(statement)
        named = {f'"{each.name}"': at for at, each in enumerate(infos)}
        columns = [*zip(*rows, strict=True)] or [() for _ in infos]
        found: list[list[Any]] = []
        for at, sql in enumerate(sqls):
            lob = _LOB.fullmatch(sql)
            place = at if lob is None else named[f'"{lob[1]}"']
            info, values = infos[place], columns[place]
            if lob is not None:
                name = info.name if at == place else f"longshore_lob_{place}"
                variable = self.outputtypehandler(self, replace(info, name=name))
                is_locator = lob[2] is not None
                assert (variable is None) == is_locator
                asked = [
                    value if value is not None and (1 <= len(value) <= SHORT) != is_locator else None
                    for value in values
                ]
                found.append(
                    [
                        Lob(value, self.database.missing) if is_locator and value is not None else value
                        for value in asked
                    ]
                )
            elif sql == f'"{info.name}"' and info.type_code == oracledb.DB_TYPE_NUMBER:
                found.append([*values])
            else:
                found.append(connection.array(sql, info, values).to_pylist())
        return [*zip(*found, strict=True)]

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return a row."""
        return next(iter(self.fetchmany(1)), None)

    def fetchmany(self, count: int) -> list[tuple[Any, ...]]:
        """Return rows."""
        rows, self._rows = self._rows[:count], self._rows[count:]
        return rows

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows."""
        return self.fetchmany(len(self._rows))

    def close(self) -> None:
        """Close it."""
        self.description = None


@dataclass
class Variable:
    """A variable of the driver's: the type of a column's values, or of a parameter."""

    kind: Any
    size: int
    value: Any = None

    def setvalue(self, at: int, value: Any) -> None:
        """Keep the value."""
        assert at == 0
        self.value = value


class Lob:
    """A locator, whose places and sizes are in units of UTF-16, or in bytes."""

    def __init__(self, value: Any, missing: int = 0) -> None:
        """Keep the value; the pieces lack so many units."""
        self.missing, self.is_text = missing, isinstance(value, str)
        self.type = oracledb.DB_TYPE_CLOB if self.is_text else oracledb.DB_TYPE_BLOB
        self.data = value.encode("utf-16-be") if self.is_text else value

    def size(self) -> int:
        """Return how many units there are."""
        return len(self.data) // (1 + self.is_text)

    def read(self, offset: int, amount: int) -> Any:
        """Return a piece; half a character is an error, as in the driver's own code."""
        unit = 1 + self.is_text
        piece = self.data[(offset - 1) * unit : (offset - 1 + amount - self.missing) * unit]
        return piece.decode("utf-16-be") if self.is_text else piece


def created(statement: str) -> list[Info]:
    """Return the columns of a CREATE TABLE."""
    infos = []
    for name, kind, rest in re.findall(
        r'"([^"]+)" ([A-Z_]+[0-9]?)(?:\((\d+(?:,-?\d+)?)\))?', statement.split(" (", 1)[1]
    ):
        code = getattr(oracledb, f"DB_TYPE_{kind.replace('VARCHAR2', 'VARCHAR')}", None)
        zone = "_TZ" if f'"{name}" {kind}({rest}) WITH TIME ZONE' in statement else ""
        code = oracledb.DB_TYPE_INTERVAL_DS if kind == "INTERVAL" else getattr(oracledb, f"DB_TYPE_{kind}{zone}", code)
        numbers = [int(each) for each in rest.split(",") if each]
        precision, scale = (numbers[0], numbers[1]) if len(numbers) > 1 else (None, numbers[0] if numbers else None)
        infos.append(Info(name, code, precision, scale))
    return infos
