"""SQLAlchemy's engines and connections: their URL where that says all of them, else the driver's connection."""

import inspect
import sys
from collections.abc import Iterator
from typing import Any

from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError

from longshore.errors import InterfaceError, OperationalError
from longshore.sources import LIBPQ, Resolved

#: Drivers on libpq, or by Longshore: what the URL's query says means the same here.
_LIBPQ = {"psycopg", "psycopg_async", "psycopg2", "psycopg2cffi", "longshore"}
#: Others, whose URLs mean the same as long as they have no query.
_PLAIN = {"asyncpg", "pg8000", "pymysql", "mysqldb", "mysqlconnector", "mariadbconnector", "aiomysql", "asyncmy"}
_SQLITE = {"pysqlite", "aiosqlite"}
#: The driver's own choice of it changes no value here.
_CHARSET = "charset"
#: SQLAlchemy's own listeners of its pools.
_OWN = {"create_engine.<locals>.on_connect", "create_engine.<locals>.first_connect"}
#: Events of a pool, of a dialect and of an engine by which a connection, or a statement, becomes another.
_EVENTS = {
    "pool": ("connect", "first_connect", "checkout"),
    "dialect": ("do_connect", "do_execute", "do_execute_no_params"),
    "engine": ("engine_connect", "before_execute", "before_cursor_execute"),
}
_ENGINE = "create_engine.<locals>.connect"

#: Those whose connections can be read and written through.
_DRIVERS = {"psycopg", "psycopg2", "pysqlite", "longshore"}
_OPEN = "a transaction is open on it"
_ENDED = "end its transaction first, or give a URL"
_URL = "give its URL, without what only the driver knows: engine.url"


def scheme(value: object) -> str:
    """Give the scheme of the dialect."""
    name: str = _parts(value)[0].dialect.name
    return name


def address(value: object) -> tuple[Any, str]:
    """Give the URL, or None and why it does not say all that the connection is."""
    engine, connection = _parts(value)
    if connection is not None and connection.closed:
        raise InterfaceError("the SQLAlchemy connection is closed", hint="connect again, or give the engine")
    if connection is not None and connection.in_transaction():
        return None, _OPEN
    creator: Any = engine.pool._creator  # noqa: SLF001  no other name tells
    if getattr(creator, "__qualname__", "") != _ENGINE:
        return None, "its engine has a creator of its own"
    given = inspect.getclosurevars(creator).nonlocals
    arguments, keywords = engine.dialect.create_connect_args(engine.url)
    if given.get("cparams") != keywords:
        return None, "its engine has connect_args"
    if any(_listeners(engine)):
        return None, "its engine has listeners for events"
    return of_url(engine.url, given.get("cargs_tup", arguments))


def through(value: object, reason: str) -> Resolved:
    """Give the driver's connection: of an engine one that is lent, which ``close`` gives back."""
    engine, connection = _parts(value)
    driver = engine.dialect.driver
    if engine.dialect.is_async or driver not in _DRIVERS:
        kind = "a connection for asyncio" if engine.dialect.is_async else f"a connection of {driver}"
        hint = _ENDED if reason == _OPEN else _URL
        message = f"{kind} cannot be read through, and has to be, since {reason}\nHint: {hint}"
        raise InterfaceError(message, hint=hint)
    if connection is not None:
        return Resolved(connection.connection.driver_connection, is_open=connection.in_transaction())
    try:
        lender = engine.connect()
    except DBAPIError as error:
        raise OperationalError(str(error.orig)) from None
    return Resolved(lender.connection.driver_connection, lender)


def _parts(value: Any) -> tuple[Engine, Connection | None]:
    if hasattr(value, "sync_connection"):
        value = value.sync_connection
        if value is None:
            raise InterfaceError("the SQLAlchemy connection is not open", hint="await its start()")
    value = getattr(value, "sync_engine", value)
    return (value, None) if isinstance(value, Engine) else (value.engine, value)


def _listeners(engine: Engine) -> Iterator[object]:
    """Give the listeners that are not SQLAlchemy's own."""
    for name, events in _EVENTS.items():
        dispatch = (engine if name == "engine" else getattr(engine, name)).dispatch
        for event in events:
            yield from (each for each in getattr(dispatch, event) if _name(each) not in _OWN)


def _name(listener: Any) -> str:
    """Give the name of a listener, which one that is called once stands around."""
    if getattr(listener, "__qualname__", "") == "only_once.<locals>.go":
        listener = inspect.getclosurevars(listener).nonlocals.get("fn")
    name: str = getattr(listener, "__qualname__", "")
    return name


def of_url(url: Any, arguments: Any) -> tuple[Any, str]:
    """Give what an engine's URL says here, or None and why it says something else; ``arguments`` are the driver's."""
    backend, driver, query = url.get_backend_name(), url.get_driver_name(), dict(url.query)
    if backend == "sqlite" and driver in _SQLITE:
        return _of_file(str(arguments[0]), query)
    if driver not in _LIBPQ | _PLAIN:
        return None, f"of {backend}+{driver} there is no URL here"
    if driver in _PLAIN and query.keys() <= {_CHARSET}:
        return url.set(query={}), ""
    if driver in _LIBPQ and query.keys() <= LIBPQ and all(isinstance(value, str) for value in query.values()):
        return url, ""
    return None, "its URL has a query with keys of the driver"


def _of_file(path: str, query: object) -> tuple[Any, str]:
    if query or path.startswith("file:") or path in {"", ":memory:"}:
        return None, "its URL has a query" if query else "its database is in memory"
    if sys.platform != "linux":
        return None, "two copies of SQLite in one process would break each other's locks"
    return {"scheme": "sqlite", "database": path}, ""
