"""Longshore loads and unloads databases: query results become dataframes at the speed of the wire."""

from longshore._core import __version__
from longshore.connection import AsyncConnection, Connection, connect, connect_async
from longshore.copy import copy, copy_async
from longshore.dbapi import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Cursor,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
    apilevel,
    paramstyle,
    threadsafety,
)
from longshore.errors import (
    DatabaseError,
    DataError,
    DataWarning,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    MemoryLimitError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    SerialReadWarning,
    SerialWriteWarning,
    TimeoutError,  # noqa: A004  the name that PEP 249's users look for
    Warning,  # noqa: A004  the name that PEP 249 gives
)
from longshore.interval import Interval
from longshore.magic import load_ipython_extension
from longshore.options import Options
from longshore.partition_sql import partition_sql
from longshore.pool import AsyncPool, Pool
from longshore.progress import Progress
from longshore.read import read_sql, read_sql_async
from longshore.schema import schema
from longshore.server import Server, serve
from longshore.sources.known import list_sources
from longshore.sql import sql, sql_async
from longshore.store import Store, open  # noqa: A004  as a file is opened
from longshore.stream import Frames, Stream
from longshore.write import write_sql, write_sql_async

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "AsyncConnection",
    "AsyncPool",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DataWarning",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "Frames",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "Interval",
    "MemoryLimitError",
    "NotSupportedError",
    "OperationalError",
    "Options",
    "Pool",
    "ProgrammingError",
    "Progress",
    "SerialReadWarning",
    "SerialWriteWarning",
    "Server",
    "Store",
    "Stream",
    "Time",
    "TimeFromTicks",
    "TimeoutError",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "__version__",
    "apilevel",
    "connect",
    "connect_async",
    "copy",
    "copy_async",
    "list_sources",
    "load_ipython_extension",
    "open",
    "paramstyle",
    "partition_sql",
    "read_sql",
    "read_sql_async",
    "schema",
    "serve",
    "sql",
    "sql_async",
    "threadsafety",
    "write_sql",
    "write_sql_async",
]


def __dir__() -> list[str]:
    """Give the public names: the modules behind them are no one's to use."""
    return sorted(__all__)
