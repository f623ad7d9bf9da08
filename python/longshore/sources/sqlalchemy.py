"""SQLAlchemy's engines and connections: their URL where that says all of them, else the driver's connection."""

import contextlib
import inspect
import sys
from collections.abc import Iterator
from typing import Any

from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import SingletonThreadPool, StaticPool

from longshore import errors, threads
from longshore.errors import InterfaceError, OperationalError
from longshore.sources import LIBPQ, Resolved
from longshore.sources.mysql_texts import Leased

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
    "dialect": ("do_connect", "do_execute", "do_execute_no_params", "do_executemany", "do_setinputsizes"),
    "engine": ("engine_connect", "begin", "before_execute", "before_cursor_execute"),
}
#: Options of a connection by which its transactions are others.
_OPTIONS = ("isolation_level", "postgresql_readonly", "postgresql_deferrable")
_AUTOCOMMIT = "AUTOCOMMIT"
#: The parts of a URL that have to be there: drivers differ in what they take otherwise, from the environment or by
#: default.
_NAMED = {"host": "host", "username": "user", "database": "dbname"}
_ENGINE = "create_engine.<locals>.connect"

#: Those whose connections can be read and written through.
_DRIVERS = {"psycopg", "psycopg2", "pg8000", "pymysql", "mysqldb", "pysqlite", "longshore"}
#: The statement that begins a transaction, as any statement does.
_BEGIN = {"sqlite": "SELECT 1", "postgresql": "SHOW transaction_isolation"}
#: A bit of MySQL's status.
_IN_TRANSACTION = 1
_OPEN = "a transaction is open on it"
_CONNECTED = "give a connection of it, engine.connect(), and commit there"
_ALONE = "the connection is in autocommit: each statement of ours would be for itself"
_BEGUN = "give one that is not in autocommit, or the URL"
_NAME = "name the schema: table=(schema, table)"
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
    options = (connection or engine).get_execution_options()
    if options.get("schema_translate_map"):
        raise InterfaceError("the schema_translate_map is not followed", hint=f"{_NAME}, without the map")
    level = getattr(engine.dialect, "_on_connect_isolation_level", None)
    if {level, *map(options.get, _OPTIONS)} - {None, False, _AUTOCOMMIT}:
        return None, "its transactions have an isolation level, or are read-only or deferrable"
    creator: Any = engine.pool._creator  # noqa: SLF001  no other name tells
    if getattr(creator, "__qualname__", "") != _ENGINE:
        return None, "its engine has a creator of its own"
    given = inspect.getclosurevars(creator).nonlocals
    arguments, keywords = engine.dialect.create_connect_args(engine.url)
    if given.get("cparams") != keywords:
        return None, "its engine has connect_args"
    if any(_listeners(engine, connection)):
        return None, "it has listeners for events"
    return of_url(engine.url, given.get("cargs_tup", arguments))


def through(value: object, reason: str) -> Resolved:
    """Give the driver's connection: of an engine one that is lent, which ``close`` gives back."""
    engine, connection = _parts(value)
    driver = engine.dialect.driver
    if engine.dialect.is_async or driver not in _DRIVERS:
        kind = "a connection for asyncio" if engine.dialect.is_async else f"a connection of {driver}"
        hint = _ENDED if reason == _OPEN else _URL
        raise InterfaceError(f"{kind} cannot be read through, and has to be, since {reason}", hint=hint)
    if connection is not None:
        return _through_transaction(connection)
    return _through_pool(engine)


def driver_connection(value: object) -> object:
    """Give the driver's connection that is gone through where there is one already."""
    engine, connection = _parts(value)
    if isinstance(engine.pool, SingletonThreadPool | StaticPool):
        return engine.pool
    return None if connection is None else connection.connection.driver_connection


def _through_transaction(connection: Connection) -> Resolved:
    """Have SQLAlchemy begin the transaction, and leave it open: the caller ends it."""
    driver: Any = connection.connection.driver_connection
    _not_in_autocommit(connection, driver)
    # The driver of PostgreSQL tells where it has not begun what SQLAlchemy has told of.
    if not connection.in_transaction() or getattr(getattr(driver, "info", None), "transaction_status", None) == 0:
        ConnectionOwner(connection).begin()
    if getattr(driver, "isolation_level", "") is None and not getattr(driver, "in_transaction", True):
        _refuse(_ALONE, _BEGUN)
    return Resolved(_lease(connection.engine, driver), is_open=True)


def _through_pool(engine: Engine) -> Resolved:
    """Have an engine lend a connection for us alone, whose transaction we end."""
    name, is_threads = engine.dialect.name, isinstance(engine.pool, SingletonThreadPool)
    if is_threads and threads.is_own():
        _refuse("each thread has a connection of its own from the engine's pool, and this verb is on another")
    # What such a pool takes back it rolls back, with all that others have done on the same connection.
    is_shared = isinstance(engine.pool, StaticPool) or (is_threads and name != "sqlite")
    if engine.dialect.driver == "longshore" or is_shared:
        _refuse("the connections of this engine are not for us alone")
    with _unwrapping():
        connection = engine.connect()
    owner, driver = ConnectionOwner(connection), connection.connection.driver_connection
    try:
        # pymysql's server tells of one.
        has_begun = getattr(driver, "server_status", 0) & _IN_TRANSACTION
        if (name == "sqlite" and getattr(driver, "in_transaction", False)) or has_begun:
            _refuse("a transaction is open on the connection that the engine lends")
        if name != "sqlite":
            _not_in_autocommit(connection, driver)
    except InterfaceError:
        owner.close()
        raise
    return Resolved(_lease(engine, driver), owner)


def _lease(engine: Engine, driver: Any) -> Any:
    """Give a connection that the core cannot speak on with what opens another one, by which it is stopped."""
    if engine.dialect.driver != "mysqldb":
        return driver
    from longshore.sources.mysqlclient import Driver

    pool: Any = engine.pool
    return Leased(Driver(driver), lambda: pool._invoke_creator(None))  # noqa: SLF001  as above


def _refuse(message: str, hint: str = _CONNECTED) -> None:
    raise InterfaceError(message, hint=hint)


def _not_in_autocommit(connection: Connection, driver: Any) -> None:
    """Refuse a connection whose transaction SQLAlchemy would not end."""
    is_sqlite = connection.dialect.name == "sqlite"
    told = connection.get_execution_options().get("isolation_level")
    level = told or getattr(connection.dialect, "_on_connect_isolation_level", None)
    # Python's sqlite3 has a number there, where it begins transactions as it always has.
    if getattr(driver, "autocommit", False) is True or (is_sqlite and level == _AUTOCOMMIT):
        _refuse(_ALONE, _BEGUN)


class ConnectionOwner:
    """A connection of SQLAlchemy's, by which the transaction of the driver's begins and ends."""

    def __init__(self, connection: Connection) -> None:
        """Keep the connection."""
        self._connection = connection

    def begin(self) -> None:
        """Begin a transaction, as any statement does."""
        with _unwrapping():
            self._connection.exec_driver_sql(_BEGIN.get(self._connection.dialect.name, "SELECT 1")).close()

    def commit(self) -> None:
        """Make what was done lasting."""
        with _unwrapping():
            self._connection.commit()

    def rollback(self) -> None:
        """Undo it."""
        with _unwrapping():
            self._connection.rollback()

    def close(self) -> None:
        """Give the connection back to its pool."""
        with _unwrapping():
            self._connection.close()


@contextlib.contextmanager
def _unwrapping() -> Iterator[None]:
    """Raise an error of the driver's as one of ours."""
    try:
        yield
    except DBAPIError as error:
        sqlstate = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
        # Both have PEP 249's names.
        raise getattr(errors, type(error).__name__, OperationalError)(str(error.orig), sqlstate=sqlstate) from None


def _parts(value: Any) -> tuple[Engine, Connection | None]:
    if hasattr(value, "sync_connection"):
        value = value.sync_connection
        if value is None:
            raise InterfaceError("the SQLAlchemy connection is not open", hint="await its start()")
    value = getattr(value, "sync_engine", value)
    return (value, None) if isinstance(value, Engine) else (value.engine, value)


def _listeners(engine: Engine, connection: Connection | None) -> Iterator[object]:
    """Give the listeners that are not SQLAlchemy's own."""
    for name, events in _EVENTS.items():
        # A connection has the engine's, and its own.
        dispatch = ((connection or engine) if name == "engine" else getattr(engine, name)).dispatch
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
    missing = [part for part, key in _NAMED.items() if not (getattr(url, part) or query.get(key))]
    if missing and driver != "longshore":
        return None, f"its URL has no {missing[0]}"
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
