"""Sources whose driver yields Arrow: the scheme, and the module that connects; one line each.

A source's module has ``connect(rest, keywords, creates=...)``, which takes what follows the scheme, and whether one
write that makes its table is to come, and gives a ``session.DriverSession``. The core has the rest: types, ``schema=``,
deadlines, Ctrl-C, memory, streams, pools and asyncio. Where callers may give a connection that they have opened,
``adopt(connection, owner)`` gives a session over it. Where an address may say as much as the connection,
``address(connection)`` gives that, or None and why it does not; and ``through(connection)`` gives the driver's own
connection where the caller's is another library's around it, and ``driver_connection(connection)`` the same without a
transaction.
"""

import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from longshore.errors import InterfaceError
from longshore.frames import missing

if TYPE_CHECKING:
    from longshore.sources.session import DriverSession

#: Each scheme: the name of its module here and of its extra, what it is for, and the packages that it imports.
SCHEMES = {
    "duckdb": ("duckdb", "a DuckDB database", ["duckdb"]),
    "store": ("store", "SQL over a store", ["duckdb", "pyarrow"]),
    "trino": ("trino", "Trino", ["pyarrow"]),
    "clickhouse": ("clickhouse", "ClickHouse", ["pyarrow"]),
    "adbc": ("adbc", "an ADBC driver", ["adbc_driver_manager", "pyarrow"]),
    "oracle": ("oracle", "Oracle", ["oracledb", "pyarrow"]),
    "bigquery": ("bigquery", "BigQuery", ["google.cloud.bigquery", "google.cloud.bigquery_storage", "pyarrow"]),
    "odbc": ("odbc", "an ODBC driver", ["pyarrow"]),
}

#: Connections that callers may give, by the module and the name of their class: the module here that takes each, and
#: its scheme, which SQLAlchemy's have by their dialect.
_CONNECTIONS = {
    ("_duckdb", "DuckDBPyConnection"): ("duckdb", "duckdb"),
    ("duckdb", "DuckDBPyConnection"): ("duckdb", "duckdb"),
    ("adbc_driver_manager.dbapi", "Connection"): ("adbc", "adbc"),
    ("psycopg", "Connection"): ("psycopg", "postgresql"),
    ("psycopg", "AsyncConnection"): ("psycopg", "postgresql"),
    ("sqlalchemy.engine.base", "Engine"): ("sqlalchemy", ""),
    ("sqlalchemy.engine.base", "Connection"): ("sqlalchemy", ""),
    ("sqlalchemy.ext.asyncio.engine", "AsyncEngine"): ("sqlalchemy", ""),
    ("sqlalchemy.ext.asyncio.engine", "AsyncConnection"): ("sqlalchemy", ""),
    ("sqlite3", "Connection"): ("sqlite3", "sqlite"),
    ("psycopg2.extensions", "connection"): ("psycopg2", "postgresql"),
    ("pg8000.dbapi", "Connection"): ("pg8000", "postgresql"),
    ("pg8000.legacy", "Connection"): ("pg8000", "postgresql"),
    ("pymysql.connections", "Connection"): ("pymysql", "mysql"),
    ("longshore.sources.mysql_texts", "Leased"): ("mysql_texts", "mysql"),
    ("longshore.store", "Store"): ("store", "store"),
}

#: Settings of libpq that mean the same here.
LIBPQ = frozenset(
    {"host", "hostaddr", "port", "user", "dbname", "password", "passfile", "connect_timeout", "options"}
    | {"application_name", "fallback_application_name", "client_encoding", "target_session_attrs", "load_balance_hosts"}
    | {"sslmode", "sslnegotiation", "sslrootcert", "sslcert", "sslkey", "sslcertmode", "sslsni", "channel_binding"}
    | {"ssl_min_protocol_version", "ssl_max_protocol_version", "require_auth", "gssencmode", "tcp_user_timeout"}
    | {"keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"}
)

#: Why one connection of a caller's cannot be both source and target.
SHARED = "the rows to be written are read through the same connection, which does one thing at a time"
APART = "read them whole first: write_sql(read_sql(...), ...), or give the URL"

_CONNECTED = "give a connection of it: engine.connect()"
_SESSION = "give it to read_sql, write_sql and the other verbs, which go through it, or connect by a URL"


class Resolved(NamedTuple):
    """The connection that a caller's is read and written through."""

    #: An address, or a driver's own connection.
    conn: Any
    #: The owner that has lent the driver's connection for us alone, begins and ends its transaction, and takes it back.
    owner: Any = None
    #: Whether a transaction is open, though SQLite may not have begun it yet.
    is_open: bool = False

    def __repr__(self) -> str:
        """Show nothing: an address may hold a password."""
        return "<Resolved>"


def connect(scheme: str, rest: str, keywords: Mapping[str, str], creates: bool) -> "DriverSession":  # noqa: FBT001  the core's
    """Open a session of the source that has this scheme."""
    session: DriverSession = _module(require(scheme)).connect(rest, keywords, creates=creates)
    return session


def require(scheme: str) -> str:
    """Give the name of a source's module; raises the error of one whose packages are not there."""
    name, purpose, packages = SCHEMES[scheme]
    if not are_installed(packages):
        library = " and ".join(package.replace("_", "-").replace(".", "-") for package in packages)
        raise missing(library=library, extra=name, purpose=purpose)
    return name


def are_installed(packages: Sequence[str]) -> bool:
    """Whether all of these packages are there; none is imported."""
    return all(map(_is_installed, packages))


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        # Of what it is a part of.
        return False


def is_adopted(value: object) -> bool:
    """Whether ``value`` is a connection that a caller may have opened with another library."""
    return _entry_of(value) is not None


def address(value: object) -> Any:
    """Give what names the database of a caller's connection; raises ``InterfaceError`` where nothing says all of it."""
    module: Any = _adopter(value)
    if not hasattr(module, "address"):
        return value
    found, reason = module.address(value)
    if found is None:
        kind = type(value).__name__
        raise InterfaceError(f"a session of its own cannot be opened from this {kind}: {reason}", hint=_SESSION)
    return found


def resolve(value: object) -> Resolved:
    """Give what a caller's connection is read and written through; anything else is itself."""
    module: Any = _adopter(value)
    if not hasattr(module, "address"):
        return Resolved(value)
    found, reason = module.address(value)
    if found is not None:
        return Resolved(found)
    return module.through(value, reason) if hasattr(module, "through") else Resolved(value)


def lasting(value: object) -> Any:
    """Give an address, or a connection that is the same one for several reads; anything else is itself."""
    module: Any = _adopter(value)
    if not hasattr(module, "address"):
        return value
    found, reason = module.address(value)
    if found is None and not hasattr(value, "closed"):
        message = f"several reads of this {type(value).__name__} would be over several connections, since {reason}"
        raise InterfaceError(message, hint=_CONNECTED)
    return value if found is None else found


def scheme(value: object) -> str:
    """Give the scheme whose SQL a caller's connection speaks."""
    scheme = (_entry_of(value) or ("", ""))[1]
    if scheme:
        return scheme
    name: str = _adopter(value).scheme(value)
    return name


def adopt(value: object, owner: object = None) -> Any:
    """Give a session over a driver's own connection, which may be lent for us alone."""
    return _adopter(value).adopt(value, owner)


def driver_connection(value: object) -> object:
    """Give the driver's connection that is gone through; None where sessions of our own are opened, or it is ours."""
    module: Any = _adopter(value)
    if module is None or (hasattr(module, "address") and module.address(value)[0] is not None):
        return None
    return module.driver_connection(value) if hasattr(module, "driver_connection") else value


def _adopter(value: object) -> Any:
    """Give the module that takes a caller's connection; None for anything else."""
    known = _entry_of(value)
    return None if known is None else _module(known[0])


def _entry_of(value: object) -> tuple[str, str] | None:
    for kind in type(value).__mro__:
        # Whoever has one has imported its module.
        if kind.__module__ in sys.modules and (kind.__module__, kind.__name__) in _CONNECTIONS:
            return _CONNECTIONS[kind.__module__, kind.__name__]
    return None


def _module(name: str) -> Any:
    return importlib.import_module(f"longshore.sources.{name}")
