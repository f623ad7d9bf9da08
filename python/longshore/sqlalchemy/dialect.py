"""The parts that Longshore's dialects for SQLAlchemy share: module, cursors, connections."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sqlalchemy import URL

import longshore
from longshore.errors import Error

Process = Callable[[Any], Any]

#: Of a URL or of ``connect_args``, what only Python's sqlite3 has: our connections go from thread to thread.
_OF_SQLITE3 = frozenset({"check_same_thread"})


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


MODULE = Module()


@contextlib.contextmanager
def without_transaction(connection: Any) -> Iterator[None]:
    """Have the block's statements begin no transaction where none is open."""
    if connection.autocommit or connection.in_transaction:
        yield
        return
    connection.autocommit = True
    try:
        yield
    finally:
        connection.autocommit = False


class Context:
    """A statement's cursors. Longshore's stream, which is what ``stream_results`` asks for."""

    _dbapi_connection: Any
    execution_options: Mapping[str, Any]
    #: The options of its reads, besides those that the program gives.
    options: Mapping[str, Any] = {}

    def create_server_side_cursor(self) -> Any:
        given = self.execution_options.get("longshore_options") or {}
        if isinstance(given, longshore.Options):
            given = dataclasses.replace(given, **self.options)
        elif isinstance(given, Mapping):
            given = {**self.options, **given} or None
        return self._dbapi_connection.cursor(options=given)

    def create_default_cursor(self) -> Any:
        # What its functions write is done although the rows may never be fetched.
        cursor = self.create_server_side_cursor()
        cursor.streams = False
        return cursor


class Dialect:
    """The base of the dialects; a base of SQLAlchemy's own comes behind it."""

    name: str
    driver = "longshore"
    supports_statement_cache = True
    supports_server_side_cursors = True
    supports_sane_multi_rowcount = True
    #: The source's own places need no look at the names in a statement.
    default_paramstyle = "qmark"

    def __init__(self, **keywords: Any) -> None:
        """Have parameters by place."""
        keywords.setdefault("paramstyle", self.default_paramstyle)
        super().__init__(**keywords)

    @classmethod
    def import_dbapi(cls) -> Module:
        return MODULE

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
        with without_transaction(dbapi_connection), dbapi_connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return True

    def detect_autocommit_setting(self, dbapi_conn: Any) -> bool:
        return bool(dbapi_conn.autocommit)

    def get_isolation_level_values(self, dbapi_conn: Any) -> tuple[str, ...]:
        levels: tuple[str, ...] = tuple(super().get_isolation_level_values(dbapi_conn))
        return (*levels, "AUTOCOMMIT")

    def get_isolation_level(self, dbapi_connection: Any) -> str:
        with without_transaction(dbapi_connection):
            level: str = super().get_isolation_level(dbapi_connection)
        return level

    def set_isolation_level(self, dbapi_connection: Any, level: str) -> None:
        # What the dialect itself has looked at may have begun one.
        dbapi_connection.rollback()
        dbapi_connection.autocommit = level == "AUTOCOMMIT"
        if level != "AUTOCOMMIT":
            with without_transaction(dbapi_connection):
                super().set_isolation_level(dbapi_connection, level)
