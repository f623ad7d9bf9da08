"""SQLAlchemy's dialects ``postgresql+longshore``, ``mysql+longshore``, ``mariadb+longshore`` and ``sqlite+longshore``.

An engine moves by its URL: ``create_engine("postgresql+longshore://user@host/database")``.
"""

import contextlib
import copy
import dataclasses
import datetime as dt
import decimal
import functools
import ipaddress
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast
from weakref import WeakKeyDictionary

from sqlalchemy import URL, bindparam, pool, text
from sqlalchemy import types as generic
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.dialects.mysql.base import MySQLCompiler, MySQLExecutionContext
from sqlalchemy.dialects.mysql.base import MySQLDialect as _MySQLBase
from sqlalchemy.dialects.mysql.mariadb import MariaDBDialect as _MariaDBBase
from sqlalchemy.dialects.postgresql import ranges
from sqlalchemy.dialects.postgresql.base import PGCompiler, PGDialect, PGExecutionContext
from sqlalchemy.dialects.postgresql.json import JSONPathType
from sqlalchemy.dialects.sqlite.base import SQLiteDialect as _SQLiteBase
from sqlalchemy.dialects.sqlite.base import SQLiteExecutionContext
from sqlalchemy.exc import ArgumentError

import longshore
from longshore.errors import DataError, Error

Process = Callable[[Any], Any]

#: Of a URL or of ``connect_args``, what only Python's sqlite3 has: our connections go from thread to thread.
_OF_SQLITE3 = frozenset({"check_same_thread"})
#: Of a connection's info: whether it leaves autocommit after a transaction of two phases.
_IN_XA = "longshore_in_xa"
_MYSQL_ERROR = re.compile(r"\(error (\d+)\)")
_LIMITS = frozenset({"precision", "scale", "fields"})
_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)")


class Module:
    """Longshore as the module of PEP 249 that a dialect has: ``connect`` takes what ``create_connect_args`` gives."""

    def __getattr__(self, name: str) -> Any:
        """Give what the package has."""
        return getattr(longshore, name)

    @functools.cached_property
    def sqlite_version_info(self) -> tuple[int, ...]:
        """The version of SQLite that is built in."""
        with longshore.connect("sqlite://") as connection, connection.cursor() as cursor:
            (version,) = cursor.execute("SELECT sqlite_version()").fetchone() or ("0",)
        return tuple(int(part) for part in version.split("."))

    @staticmethod
    def connect(*, timeout: float | None = None, autocommit: bool = False, **place: Any) -> longshore.Connection:
        """Open a connection: the names of ``longshore.connect``, and the source's own settings."""
        if place.get("scheme") == "sqlite":
            # What sqlite3 calls so is the wait for a lock.
            place = {key: value for key, value in place.items() if key not in _OF_SQLITE3}
            place, timeout = {**place, "timeout": timeout}, None
        return longshore.connect(place, autocommit=autocommit, timeout=timeout)


_MODULE = Module()


@contextlib.contextmanager
def _begins_none(connection: Any) -> Iterator[None]:
    """Have the block's statements begin no transaction where none is open."""
    if connection.autocommit or connection.in_transaction:
        yield
        return
    connection.autocommit = True
    try:
        yield
    finally:
        connection.autocommit = False


class _Context:
    """A statement's cursors. Longshore's stream, which is what ``stream_results`` asks for."""

    _dbapi_connection: Any
    execution_options: Mapping[str, Any]
    #: The options of its reads, besides those that the program gives.
    options: Mapping[str, Any] = {}

    def create_server_side_cursor(self) -> Any:
        return self._dbapi_connection.cursor(options=self._reading())

    def create_default_cursor(self) -> Any:
        # What its functions write is done although the rows may never be fetched.
        cursor = self.create_server_side_cursor()
        cursor.streams = False
        return cursor

    def _reading(self) -> Any:
        given = self.execution_options.get("longshore_options") or {}
        if isinstance(given, longshore.Options):
            return dataclasses.replace(given, **self.options)
        return {**self.options, **given} or None if isinstance(given, Mapping) else given


class _Dialect:
    """The base of the dialects; a base of SQLAlchemy's own comes behind it."""

    name: str
    driver = "longshore"
    supports_statement_cache = True
    supports_server_side_cursors = True
    supports_sane_multi_rowcount = True
    #: The source's own places need no look at the names in a statement.
    default_paramstyle = "qmark"

    def __init__(self, **keywords: Any) -> None:
        keywords.setdefault("paramstyle", self.default_paramstyle)
        super().__init__(**keywords)

    @classmethod
    def import_dbapi(cls) -> Module:
        return _MODULE

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """Give the keywords of ``longshore.connect``, in which nothing has to be encoded."""
        place = url.translate_connect_args(username="user")
        return [], {"scheme": self.name, **place, **url.query}

    def retrieve_dbapi_version(self, dbapi: Any) -> Any:
        from sqlalchemy import util

        return util.parse_version_string(dbapi.__version__)

    def is_disconnect(self, e: BaseException, connection: Any, cursor: Any) -> bool:
        if not isinstance(e, Error):
            return False
        return (e.sqlstate or "").startswith("08") or bool(getattr(connection, "closed", False))

    def do_ping(self, dbapi_connection: Any) -> bool:
        with _begins_none(dbapi_connection), dbapi_connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return True

    def detect_autocommit_setting(self, dbapi_conn: Any) -> bool:
        return bool(dbapi_conn.autocommit)

    def get_isolation_level_values(self, dbapi_conn: Any) -> tuple[str, ...]:
        levels: tuple[str, ...] = tuple(super().get_isolation_level_values(dbapi_conn))
        return (*levels, "AUTOCOMMIT")

    def get_isolation_level(self, dbapi_connection: Any) -> str:
        with _begins_none(dbapi_connection):
            level: str = super().get_isolation_level(dbapi_connection)
        return level

    def set_isolation_level(self, dbapi_connection: Any, level: str) -> None:
        # What the dialect itself has looked at may have begun one.
        dbapi_connection.rollback()
        dbapi_connection.autocommit = level == "AUTOCOMMIT"
        if level != "AUTOCOMMIT":
            with _begins_none(dbapi_connection):
                super().set_isolation_level(dbapi_connection, level)


# PostgreSQL


def _cast(base: type, **more: Any) -> type:
    """Give a type whose parameters say it: PostgreSQL would infer another, or text where nothing tells it."""
    return type(f"_{base.__name__}", (base,), {"render_bind_cast": True, **more})


class _Numeric(generic.Numeric[Any]):
    render_bind_cast = True

    def result_processor(self, dialect: Any, coltype: object) -> Process | None:
        if not self.asdecimal:
            return super().result_processor(dialect, coltype)
        scale = self._effective_decimal_return_scale

        def process(value: Any) -> Any:
            return decimal.Decimal(f"{value:.{scale}f}") if isinstance(value, float) else value

        return process


class _Time(generic.Time):
    render_bind_cast = True

    def result_processor(self, dialect: Any, coltype: object) -> Process:
        def process(value: Any) -> Any:
            # A time with an offset arrives as text.
            return dt.time.fromisoformat(value) if isinstance(value, str) else value

        return process


class _Interval(postgresql.INTERVAL):
    render_bind_cast = True

    @classmethod
    def adapt_emulated_to_native(cls, interval: Any, **_keywords: Any) -> "_Interval":
        return cls(precision=interval.second_precision)

    def result_processor(self, dialect: Any, coltype: object) -> Process:
        return _timedelta


def _timedelta(value: Any) -> Any:
    if not isinstance(value, longshore.Interval):
        return value
    if value.months:
        hint = "read it without a type, as a longshore.Interval: text('SELECT ...'), or type_coerce(column, NullType())"
        raise DataError(f"the interval {value} has months, which have no number of days", hint=hint)
    return dt.timedelta(days=value.days, microseconds=value.nanoseconds // 1000)


class _Untyped(generic.NullType):
    """A column of a text: JSON arrives as Python's objects, as it does from the other drivers."""

    def result_processor(self, dialect: Any, coltype: object) -> Process | None:
        if coltype not in {"json", "jsonb"}:
            return None
        loads = dialect._json_deserializer or json.loads

        def process(value: Any) -> Any:
            return None if value is None else loads(value)

        return process


def _address(type_: type, parsed: Process) -> type:
    """Give a type of addresses: texts, or objects of ``ipaddress`` with ``native_inet_types=True``."""

    def bind_processor(self: Any, dialect: Any) -> Process:
        return lambda value: None if value is None else str(value)

    def result_processor(self: Any, dialect: Any, coltype: object) -> Process | None:
        if not dialect._native_inet_types:
            return None
        return lambda value: None if value is None else parsed(value)

    return _cast(type_, bind_processor=bind_processor, result_processor=result_processor)


def _inet(value: str) -> Any:
    return ipaddress.ip_interface(value) if "/" in value else ipaddress.ip_address(value)


_BOUND = r'("(?:[^"\\]|\\.|"")*"|[^,"\[\]()]*)'
_RANGE = re.compile(rf"(?P<empty>empty)|(?P<open>[\[(]){_BOUND},{_BOUND}(?P<close>[\])])")
_KIND = re.compile(r"(?:multi)?range$", re.IGNORECASE)
_ELEMENTS: Mapping[str, Process] = {
    "int4": int,
    "int8": int,
    "num": decimal.Decimal,
    "date": dt.date.fromisoformat,
    "ts": dt.datetime.fromisoformat,
    "tstz": dt.datetime.fromisoformat,
}


#: Of a range's type, the bounds that PostgreSQL would change without a word, and what to give instead.
_CHANGED: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "DATE": (lambda bound: isinstance(bound, dt.datetime), "give dates: value.date()"),
    "TS": (
        lambda bound: isinstance(bound, dt.datetime) and bound.tzinfo is not None,
        "give datetimes without a time zone: value.astimezone(timezone.utc).replace(tzinfo=None)",
    ),
    "TSTZ": (
        lambda bound: isinstance(bound, dt.date) and (not isinstance(bound, dt.datetime) or bound.tzinfo is None),
        "give datetimes with a time zone: value.replace(tzinfo=timezone.utc)",
    ),
}


def _bound_text(bound: Any, name: str) -> str:
    if bound is None:
        return ""
    message = f"the bound {bound} does not fit {name.lower()} exactly"
    is_changed, remedy = _CHANGED.get(_KIND.sub("", name), (None, ""))
    if is_changed is not None and is_changed(bound):
        raise DataError(message, hint=remedy)
    if getattr(bound, "nanosecond", 0):
        raise DataError(message, hint="round it to microseconds")
    return '"{}"'.format(str(bound).replace("\\", "\\\\").replace('"', '\\"'))


def _range_text(value: Any, name: str) -> Any:
    """Give a range as PostgreSQL writes it, and anything else as it is."""
    if not isinstance(value, ranges.Range):
        return value
    if value.empty:
        return "empty"
    return f"{value.bounds[0]}{_bound_text(value.lower, name)},{_bound_text(value.upper, name)}{value.bounds[1]}"


def _ranges(written: str, coltype: object) -> "Iterator[ranges.Range[Any]]":
    """Give the ranges in a text of PostgreSQL's."""
    native = str(coltype).removesuffix("[]")
    hint = "read its text: type_coerce(column, Text()), or lower(column) and upper(column)"
    if (element := _ELEMENTS.get(_KIND.sub("", native))) is None:
        raise DataError(f"the bounds of {written}, a {native}, have a type that is not known", hint=hint)

    def bound(found: str) -> Any:
        try:
            return element(found.strip('"')) if found else None
        except ValueError:
            raise DataError(f"the {native} {written} has a bound that Python cannot hold", hint=hint) from None

    for found in _RANGE.finditer(written):
        if found["empty"]:
            yield ranges.Range(empty=True)
        else:
            bounds = cast("Any", found["open"] + found["close"])
            yield ranges.Range(bound(found[3]), bound(found[4]), bounds=bounds)


class _Range(ranges.AbstractSingleRangeImpl[Any]):
    def bind_processor(self, dialect: Any) -> Process:
        return lambda value: _range_text(value, self.__visit_name__)

    def result_processor(self, dialect: Any, coltype: object) -> Process:
        return lambda value: None if value is None else next(_ranges(value, coltype))


class _MultiRange(ranges.AbstractMultiRangeImpl[Any]):
    def bind_processor(self, dialect: Any) -> Process:
        def process(value: Any) -> Any:
            if value is None or isinstance(value, str):
                return value
            return f"{{{','.join(_range_text(each, self.__visit_name__) for each in value)}}}"

        return process

    def result_processor(self, dialect: Any, coltype: object) -> Process:
        return lambda value: None if value is None else ranges.MultiRange(_ranges(value, coltype))


class _BlankPadded(generic.UserDefinedType[str]):
    """A CHAR of any length: it equals itself with other blanks at its end, as a column does."""

    cache_ok = True

    def get_col_spec(self, **_keywords: Any) -> str:
        return "BPCHAR"


def _unlimited(type_: Any, dialect: Any) -> Any:
    """Give a type that holds each value whole: a cast would cut or round it, and a column tells of it or rounds."""
    own = type_._variant_mapping.get(dialect.name, type_)
    if isinstance(own, generic.TypeDecorator):
        own = own.type_engine(dialect)
    if isinstance(own, generic.CHAR):
        return _BlankPadded()
    if own._type_affinity is generic.String and own.length:
        return generic.STRINGTYPE
    limited = copy.copy(own)
    if isinstance(own, postgresql.ARRAY):
        limited.item_type = _unlimited(own.item_type, dialect)
    elif isinstance(own, postgresql.BIT):
        limited.varying, limited.length = True, None
    elif not isinstance(own, generic.Float):
        for limit in _LIMITS & vars(own).keys():
            setattr(limited, limit, None)
    return limited


class _PostgreSQLCompiler(PGCompiler):
    def render_bind_cast(self, type_: Any, dbapi_type: Any, sqltext: str) -> str:
        cast: str = super().render_bind_cast(type_, _unlimited(dbapi_type, self.dialect), sqltext)
        return cast


class _PostgreSQLContext(_Context, PGExecutionContext):
    pass


class PostgreSQLDialect(_Dialect, PGDialect):
    """``postgresql+longshore``."""

    default_paramstyle = "numeric_dollar"
    supports_statement_cache = True
    supports_native_decimal = True
    execution_ctx_cls = _PostgreSQLContext
    statement_compiler = _PostgreSQLCompiler
    colspecs = {
        **PGDialect.colspecs,
        **{
            type_: _cast(type_)
            for type_ in (
                generic.String,
                generic.CHAR,
                generic.Integer,
                generic.SmallInteger,
                generic.BigInteger,
                generic.Boolean,
                generic.Float,
                generic.Date,
                generic.DateTime,
                postgresql.JSONB,
                postgresql.BYTEA,
                postgresql.CITEXT,
                postgresql.OID,
                postgresql.REGCLASS,
                postgresql.REGCONFIG,
            )
        },
        generic.Numeric: _Numeric,
        generic.Time: _Time,
        generic.Interval: _Interval,
        postgresql.INTERVAL: _Interval,
        generic.LargeBinary: _cast(postgresql.BYTEA),
        generic.Enum: _cast(postgresql.ENUM),
        generic.ARRAY: _cast(postgresql.ARRAY),
        generic.JSON: _cast(postgresql.JSON),
        generic.JSON.JSONPathType: JSONPathType,
        generic.JSON.JSONIntIndexType: _cast(generic.JSON.JSONIntIndexType, __visit_name__="json_int_index"),
        generic.JSON.JSONStrIndexType: _cast(generic.JSON.JSONStrIndexType, __visit_name__="json_str_index"),
        generic.NullType: _Untyped,
        postgresql.INET: _address(postgresql.INET, _inet),
        postgresql.CIDR: _address(postgresql.CIDR, ipaddress.ip_network),
        ranges.AbstractSingleRange: _Range,
        ranges.AbstractMultiRange: _MultiRange,
    }

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """Give the keywords of ``longshore.connect``; several hosts as libpq writes them."""
        none, place = super().create_connect_args(url)
        place["dbname"] = place.pop("database", None)
        hosts, ports = self._split_multihost_from_url(url)
        if hosts:
            place["host"] = ",".join(host or "" for host in hosts)
            if any(ports or ()):
                place["port"] = ",".join(str(port or "") for port in ports or ())
        return none, place

    def set_readonly(self, connection: Any, value: bool) -> None:
        self._set(connection, "READ ONLY" if value else "READ WRITE")

    def get_readonly(self, connection: Any) -> bool:
        return self._is_on(connection, "transaction_read_only")

    def set_deferrable(self, connection: Any, value: bool) -> None:
        self._set(connection, "DEFERRABLE" if value else "NOT DEFERRABLE")

    def get_deferrable(self, connection: Any) -> bool:
        return self._is_on(connection, "transaction_deferrable")

    @staticmethod
    def _set(connection: Any, characteristic: str) -> None:
        # It counts from the next transaction, and a rollback undoes it within one.
        connection.rollback()
        with _begins_none(connection):
            connection.execute(f"SET SESSION CHARACTERISTICS AS TRANSACTION {characteristic}")

    @staticmethod
    def _is_on(connection: Any, setting: str) -> bool:
        with _begins_none(connection), connection.cursor() as cursor:
            return bool(cursor.execute(f"SHOW {setting}").fetchone() == ("on",))

    def do_rollback_twophase(
        self,
        connection: Any,
        xid: Any,
        is_prepared: bool = True,
        recover: bool = False,
    ) -> None:
        if is_prepared:
            self._end_prepared(connection, "ROLLBACK", xid)
        else:
            self.do_rollback(connection.connection)

    def do_commit_twophase(
        self,
        connection: Any,
        xid: Any,
        is_prepared: bool = True,
        recover: bool = False,
    ) -> None:
        if is_prepared:
            self._end_prepared(connection, "COMMIT", xid)
        else:
            self.do_commit(connection.connection)

    @staticmethod
    def _end_prepared(connection: Any, verb: str, xid: Any) -> None:
        driver = connection.connection.dbapi_connection
        # A look at what was prepared has begun one; nothing ends it but this.
        driver.rollback()
        statement = text(f"{verb} PREPARED :xid").bindparams(bindparam("xid", xid, literal_execute=True))
        with _begins_none(driver):
            connection.execute(statement)


# MySQL and MariaDB


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
        return [tuple(self._value(at, value) for at, value in enumerate(row)) for row in rows]

    def _value(self, at: int, value: Any) -> Any:
        return value.astimezone(self._zone) if at in self._columns and value is not None else value


class _MySQLContext(_Context, MySQLExecutionContext):
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
    with _begins_none(connection), connection.cursor() as cursor:
        offset = _OFFSET.fullmatch(cursor.execute("SELECT @@session.time_zone").fetchone()[0])
    if offset is None:
        # One that is named: the driver refuses to read a TIMESTAMP.
        return dt.UTC
    span = dt.timedelta(hours=int(offset[2]), minutes=int(offset[3]))
    return dt.timezone(-span if offset[1] == "-" else span)


class MySQLDialect(_Dialect, _MySQLBase):
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

    # The server prepares no XA statement, and so binds nothing in it. It refuses one within another transaction, and
    # another transaction within its own: the session is in autocommit meanwhile.

    def _run_xa(self, connection: Any, verb: str, xid: str) -> None:
        connection.exec_driver_sql(f"XA {verb} x'{xid.encode().hex()}'")

    def _end_xa(self, connection: Any, verb: str, xid: str) -> None:
        with _begins_none(connection.connection.dbapi_connection):
            self._run_xa(connection, verb, xid)
        if connection.info.pop(_IN_XA, False):
            connection.connection.dbapi_connection.autocommit = False

    def do_begin_twophase(self, connection: Any, xid: Any) -> None:
        dbapi_connection = connection.connection.dbapi_connection
        connection.info[_IN_XA] = not dbapi_connection.autocommit
        dbapi_connection.autocommit = True
        self._run_xa(connection, "BEGIN", xid)

    def do_prepare_twophase(self, connection: Any, xid: Any) -> None:
        self._run_xa(connection, "END", xid)
        self._run_xa(connection, "PREPARE", xid)

    def do_rollback_twophase(self, connection: Any, xid: Any, is_prepared: bool = True, recover: bool = False) -> None:
        if not is_prepared:
            self._run_xa(connection, "END", xid)
        self._end_xa(connection, "ROLLBACK", xid)

    def do_commit_twophase(self, connection: Any, xid: Any, is_prepared: bool = True, recover: bool = False) -> None:
        if not is_prepared:
            self.do_prepare_twophase(connection, xid)
        self._end_xa(connection, "COMMIT", xid)

    def do_recover_twophase(self, connection: Any) -> list[Any]:
        with _begins_none(connection.connection.dbapi_connection):
            found: list[Any] = super().do_recover_twophase(connection)
        return [xid.decode() if isinstance(xid, bytes) else xid for xid in found]


class MariaDBDialect(_MariaDBBase, MySQLDialect):
    """``mariadb+longshore``."""

    supports_statement_cache = True


# SQLite


class _SQLiteContext(_Context, SQLiteExecutionContext):
    # SQLAlchemy's own types read what is stored.
    options = {"sqlite_types": "stored"}


class SQLiteDialect(_Dialect, _SQLiteBase):
    """``sqlite+longshore``."""

    supports_statement_cache = True
    returns_native_bytes = True
    execution_ctx_cls = _SQLiteContext

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        """Give a pool: each thread has one connection of its own to a database in memory, which is another one."""
        return pool.QueuePool if cls._is_url_file_db(url) else pool.SingletonThreadPool

    @classmethod
    def _is_url_file_db(cls, url: URL) -> bool:
        return url.database not in {None, "", ":memory:"} and url.query.get("mode") != "memory"

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """Give the keywords of ``longshore.connect``; a file that is not there is made, as other drivers do."""
        if url.username or url.password or url.host or url.port:
            forms = "sqlite+longshore:///relative/path.db, or four slashes before an absolute path"
            raise ArgumentError(f"a URL of SQLite has no user and no host: write {forms}")
        none, place = super().create_connect_args(url)
        if self._is_url_file_db(url):
            # The same file after the program has changed its folder.
            place["database"] = str(Path.cwd() / place["database"])
            if "immutable" not in place:
                place.setdefault("mode", "rwc")
        return none, place

    def _get_server_version_info(self, connection: Any) -> tuple[int, ...]:
        return _MODULE.sqlite_version_info
