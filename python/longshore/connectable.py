"""The arguments ``conn`` of the verbs, and what the core reads from and writes to by each."""

from typing import TYPE_CHECKING, Any, Protocol, Union

from longshore import _core, sources
from longshore.connection import AsyncConnection, Connection, Session
from longshore.pool import AsyncPool, Pool, Sessions
from longshore.sources import sqlite3
from longshore.target import TargetLike, target

if TYPE_CHECKING:
    from sqlite3 import Connection as SQLiteConnection

    from adbc_driver_manager.dbapi import Connection as ADBCConnection
    from duckdb import DuckDBPyConnection

    from longshore.store import Store

#: The arguments that reads and writes take besides what can be connected to.
_OTHERS = (
    ", a dict of keywords, a Connection or a Pool, an engine or a connection of SQLAlchemy, or one of psycopg, "
    "sqlite3, DuckDB or ADBC"
)

Source = (
    _core.Target
    | _core.Pool
    | _core.Connection
    | _core.SqliteConnection
    | _core.MySqlConnection
    | _core.ArrowConnection
)


class Psycopg2Connection(Protocol):
    """A connection of psycopg2."""

    def get_dsn_parameters(self) -> dict[str, str]:
        """Give settings of libpq's."""


class PyMySQLConnection(Protocol):
    """A connection of PyMySQL."""

    def insert_id(self) -> Any:
        """Give the number of the last new row."""

    def thread_id(self) -> Any:
        """Give the server's number of the connection."""


ConnectionLike = Union[
    TargetLike,
    Connection,
    Pool,
    AsyncConnection,
    AsyncPool,
    "SQLiteConnection",
    "DuckDBPyConnection",
    "ADBCConnection",
    Psycopg2Connection,
    PyMySQLConnection,
    "Store",
]
"""A URL, the path of a SQLite or DuckDB file, ``env:NAME``, a ``sqlalchemy.URL``, a mapping of keywords (``host``,
``dbname``, ``password``, ..., and ``url`` or ``scheme``), a connection, a pool or a store of Longshore's, or what the
caller has opened: an ``Engine`` or a ``Connection`` of SQLAlchemy, or a connection of psycopg, sqlite3, DuckDB or
ADBC."""


def source(conn: object, *, creates: bool = False) -> Source:
    """Give what the core reads from; raises ``InterfaceError`` for what is none.

    ``creates`` says that a write is to come that makes its table: a SQLite file that is not there is made with it.
    """
    if isinstance(conn, Session):
        return conn._free()  # noqa: SLF001  what a session keeps for the verbs
    if isinstance(conn, Sessions):
        return conn._core  # noqa: SLF001  likewise
    conn, owner, is_open = sources.resolve(conn)
    if isinstance(conn, Session):
        return conn._free()  # noqa: SLF001  behind an engine of SQLAlchemy's
    if not sources.is_adopted(conn):
        return _core.Target(**target(conn, _OTHERS)._asdict(), creates=creates)
    if sources.scheme(conn) == "sqlite":
        if is_open:
            sqlite3.begin(conn)
        return _core.SqliteConnection(conn if owner is None else sqlite3.PooledConnection(conn, owner))
    adopted = sources.adopt(conn, owner)
    return (_core.MySqlConnection if sources.scheme(conn) == "mysql" else _core.ArrowConnection)(adopted)


def is_connection(value: object) -> bool:
    """Whether ``value`` is a session or a pool that is open already."""
    return isinstance(value, Session | Sessions) or sources.is_adopted(value)


def scheme_of(conn: object) -> str:
    """Give the scheme of what the core reads from; raises ``InterfaceError`` for what is none.

    >>> scheme_of("mariadb+pymysql://localhost/test"), scheme_of({"host": "localhost"})
    ('mariadb', 'postgresql')
    """
    if isinstance(conn, Session | Sessions):
        return conn._scheme  # noqa: SLF001  what a session keeps for the verbs
    return sources.scheme(conn) if sources.is_adopted(conn) else target(conn, _OTHERS).scheme
