"""``mysql+longshore`` and ``mariadb+longshore``: the types of both as SQLAlchemy has them, and their dialects."""

import datetime as dt
import re
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import types as generic
from sqlalchemy.dialects import mysql
from sqlalchemy.dialects.mysql.base import MySQLCompiler, MySQLExecutionContext
from sqlalchemy.dialects.mysql.base import MySQLDialect as _MySQLBase
from sqlalchemy.dialects.mysql.mariadb import MariaDBDialect as _MariaDBBase

from longshore.errors import DataError, NotSupportedError
from longshore.sqlalchemy.dialect import Context, Dialect, Process, without_transaction

_MYSQL_ERROR = re.compile(r"\(error (\d+)\)")
_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)")


class _Naive:
    """A date with a time: MySQL's ``TIMESTAMP`` as the time in the session's zone, as the other drivers give it."""

    timezone: bool

    def result_processor(self, dialect: Any, coltype: object) -> Process | None:
        if self.timezone:
            return None
        return lambda value: None if value is None else value.replace(tzinfo=None)


class _DateTime(_Naive, generic.DateTime):
    pass


class _DATETIME(_Naive, mysql.DATETIME):
    pass


class _TIMESTAMP(_Naive, mysql.TIMESTAMP):
    pass


class _TIME(mysql.TIME):
    def result_processor(self, dialect: Any, coltype: object) -> Process:
        return _time_of_day


def _time_of_day(value: Any) -> Any:
    if not isinstance(value, dt.timedelta):
        return value
    if value.days:
        hint = "read it without a type, as a timedelta: text('SELECT ...'), or type_coerce(column, NullType())"
        raise DataError(f"the TIME {value} is not a time of day", hint=hint)
    return (dt.datetime(1, 1, 1) + value).time()  # noqa: DTZ001  a time of day has no zone


class _BIT(mysql.BIT):
    def result_processor(self, dialect: Any, coltype: object) -> None:
        # It arrives as an int.
        return None


class _MySQLCompiler(MySQLCompiler):
    """The bounds of a window's frame are numbers in the statement: MariaDB takes no parameters there."""

    def visit_frame_clause(self, frameclause: Any, **kw: Any) -> str:
        return super().visit_frame_clause(frameclause, **{**kw, "literal_execute": True})

    def _format_frame_clause(self, range_: Any, **kw: Any) -> str:
        # Of SQLAlchemy 2.0.
        return super()._format_frame_clause(range_, **{**kw, "literal_execute": True})


class _Zoned:
    """A cursor whose datetimes that have a time zone have the session's."""

    def __init__(self, cursor: Any, zone: dt.tzinfo) -> None:
        self._cursor = cursor
        self._zone = zone
        self._columns: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def execute(self, *arguments: Any) -> "_Zoned":
        self._cursor.execute(*arguments)
        columns = enumerate(self._cursor.description or ())
        self._columns = {at for at, (_name, code, *_) in columns if "tz=" in code.kind}
        return self

    def fetchone(self) -> Any:
        row = self._cursor.fetchone()
        return row if row is None else self._in_zone([row])[0]

    def fetchmany(self, size: int | None = None) -> list[Any]:
        return self._in_zone(self._cursor.fetchmany(size))

    def fetchall(self) -> list[Any]:
        return self._in_zone(self._cursor.fetchall())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fetchone, None)

    def _in_zone(self, rows: list[Any]) -> list[Any]:
        if not self._columns:
            return rows
        found = [list(row) for row in rows]
        for row in found:
            for at in self._columns:
                row[at] = row[at] and row[at].astimezone(self._zone)
        return [*map(tuple, found)]


class _MySQLContext(Context, MySQLExecutionContext):
    dialect: "MySQLDialect"

    def create_cursor(self) -> Any:
        # Of each connection, as events set it: it is asked for before the first statement, and after one that sets it.
        zones = self.dialect.zones
        driver = self._dbapi_connection.dbapi_connection
        if driver not in zones:
            zones[driver] = _zone(driver)
        return _Zoned(super().create_cursor(), zones[driver])

    def post_exec(self) -> None:
        super().post_exec()
        statement = self.statement.lower()
        if 0 <= statement.find("set") < statement.rfind("time_zone"):
            self.dialect.zones.pop(self._dbapi_connection.dbapi_connection, None)


def _zone(connection: Any) -> dt.tzinfo:
    with without_transaction(connection), connection.cursor() as cursor:
        offset = _OFFSET.fullmatch(cursor.execute("SELECT @@session.time_zone").fetchone()[0])
    if offset is None:
        # One that is named: the driver refuses to read a TIMESTAMP.
        return dt.UTC
    span = dt.timedelta(hours=int(offset[2]), minutes=int(offset[3]))
    return dt.timezone(-span if offset[1] == "-" else span)


class MySQLDialect(Dialect, _MySQLBase):
    """``mysql+longshore``."""

    supports_statement_cache = True
    supports_native_decimal = True
    #: One statement for many rows takes one wait for the server.
    use_insertmanyvalues_wo_returning = True
    execution_ctx_cls = _MySQLContext
    statement_compiler = _MySQLCompiler
    colspecs = {
        **_MySQLBase.colspecs,
        generic.DateTime: _DateTime,
        generic.TIMESTAMP: _TIMESTAMP,
        mysql.DATETIME: _DATETIME,
        mysql.TIMESTAMP: _TIMESTAMP,
        generic.Time: _TIME,
        mysql.TIME: _TIME,
        mysql.BIT: _BIT,
    }

    def __init__(self, **keywords: Any) -> None:
        """Know no session yet."""
        super().__init__(**keywords)
        #: The time zone of each session.
        self.zones: WeakKeyDictionary[Any, dt.tzinfo] = WeakKeyDictionary()

    def initialize(self, connection: Any) -> None:
        """Look at the server; the program's events may set the session's time zone after that."""
        super().initialize(connection)
        self.zones.clear()

    def _set_mariadb(self, is_mariadb: bool | None, server_version_info: tuple[int, ...]) -> None:
        super()._set_mariadb(is_mariadb, server_version_info)
        # What SQLAlchemy has for MariaDB's uuid makes objects of texts; here they arrive as objects.
        self.colspecs = {type_: own for type_, own in self.colspecs.items() if type_ is not generic.Uuid}

    def _detect_charset(self, connection: Any) -> str:
        return "utf8mb4"

    def _extract_error_code(self, exception: BaseException) -> int | None:
        found = _MYSQL_ERROR.search(str(exception))
        return int(found[1]) if found else None

    def do_begin_twophase(self, connection: Any, xid: Any) -> None:
        # The server prepares no XA statement, and so binds nothing in it.
        raise NotSupportedError("a transaction of two phases is begun in PostgreSQL alone", hint="use begin()")


class MariaDBDialect(_MariaDBBase, MySQLDialect):
    """``mariadb+longshore``."""

    supports_statement_cache = True
