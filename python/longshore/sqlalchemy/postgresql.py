"""``postgresql+longshore``: PostgreSQL's types as SQLAlchemy has them, and its dialect."""

import copy
import datetime as dt
import decimal
import ipaddress
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from sqlalchemy import URL, bindparam, text
from sqlalchemy import types as generic
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import ranges
from sqlalchemy.dialects.postgresql.base import PGCompiler, PGDialect, PGExecutionContext
from sqlalchemy.dialects.postgresql.json import JSONPathType

import longshore
from longshore.errors import DataError
from longshore.sqlalchemy.dialect import Context, Dialect, Process, without_transaction

_LIMITS = frozenset({"precision", "scale", "fields"})


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


def _unlimited_type(type_: Any, dialect: Any) -> Any:
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
        limited.item_type = _unlimited_type(own.item_type, dialect)
    elif isinstance(own, postgresql.BIT):
        limited.varying, limited.length = True, None
    elif not isinstance(own, generic.Float):
        for limit in _LIMITS & vars(own).keys():
            setattr(limited, limit, None)
    return limited


class _PostgreSQLCompiler(PGCompiler):
    def render_bind_cast(self, type_: Any, dbapi_type: Any, sqltext: str) -> str:
        cast: str = super().render_bind_cast(type_, _unlimited_type(dbapi_type, self.dialect), sqltext)
        return cast


class _PostgreSQLContext(Context, PGExecutionContext):
    pass


class PostgreSQLDialect(Dialect, PGDialect):
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
        with without_transaction(connection):
            connection.execute(f"SET SESSION CHARACTERISTICS AS TRANSACTION {characteristic}")

    @staticmethod
    def _is_on(connection: Any, setting: str) -> bool:
        with without_transaction(connection), connection.cursor() as cursor:
            return bool(cursor.execute(f"SHOW {setting}").fetchone() == ("on",))

    def do_rollback_twophase(self, connection: Any, xid: Any, is_prepared: bool = True, recover: bool = False) -> None:
        if is_prepared:
            self._end_prepared(connection, "ROLLBACK", xid)
        else:
            self.do_rollback(connection.connection)

    def do_commit_twophase(self, connection: Any, xid: Any, is_prepared: bool = True, recover: bool = False) -> None:
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
        with without_transaction(driver):
            connection.execute(statement)
