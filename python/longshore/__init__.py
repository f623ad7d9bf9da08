"""Longshore loads and unloads databases: query results become dataframes at the speed of the wire."""

from longshore._core import __version__
from longshore.asynchronous import read_sql_async
from longshore.connection import Connection, Pool, connect
from longshore.copy import copy
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
from longshore.progress import Progress
from longshore.read import read_sql
from longshore.sql import sql
from longshore.stream import Frames, Stream
from longshore.write import write_sql

__all__ = [
    "Connection",
    "DataError",
    "DataWarning",
    "DatabaseError",
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
    "Stream",
    "TimeoutError",
    "Warning",
    "__version__",
    "connect",
    "copy",
    "load_ipython_extension",
    "read_sql",
    "read_sql_async",
    "sql",
    "write_sql",
]
