"""Longshore loads and unloads databases: query results become dataframes at the speed of the wire."""

from longshore._core import __version__
from longshore.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    MemoryLimitError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    SerialReadWarning,
    TimeoutError,  # noqa: A004  the name that PEP 249's users look for
    Warning,  # noqa: A004  the name that PEP 249 gives
)
from longshore.interval import Interval
from longshore.options import Options
from longshore.read import read_sql

__all__ = [
    "DataError",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "Interval",
    "MemoryLimitError",
    "NotSupportedError",
    "OperationalError",
    "Options",
    "ProgrammingError",
    "SerialReadWarning",
    "TimeoutError",
    "Warning",
    "__version__",
    "read_sql",
]
