"""Longshore as an ADBC driver: where its library is, and connections of Python's driver manager over it."""

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longshore.errors import InterfaceError, NotSupportedError
from longshore.frames import missing

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Connection

#: The entry point of the library, which every manager looks for.
ENTRYPOINT = "AdbcDriverInit"

_PREFIX, _SUFFIX = {"win32": ("", "dll"), "darwin": ("lib", "dylib")}.get(sys.platform, ("lib", "so"))
_LIBRARY = f"{_PREFIX}longshore_adbc.{_SUFFIX}"
_HINT = "a wheel of longshore has it; in a checkout, `make adbc` builds it"


def driver_path() -> str:
    """Give the absolute path of the driver's library, which managers of all languages load.

    Raises ``NotSupportedError`` where this install has none, as one from an sdist.
    """
    path = Path(__file__).resolve().with_name(_LIBRARY)
    if not path.exists():
        raise NotSupportedError("this install of longshore has no ADBC driver", hint=_HINT)
    return str(path)


def connect(uri: str, *, autocommit: bool = False, **options: str) -> "Connection":
    """Open a connection of ``adbc_driver_manager.dbapi`` through the driver, to any database that this has.

    pandas and polars take it for ADBC's, and read and write Arrow data through it.

    ``uri``
        The URL of the database.
    ``autocommit``
        Without it, the first statement begins a transaction that ``commit`` or ``rollback`` ends (PEP 249).
    ``options``
        The source's own keywords, such as ``password``.

    Raises ``ImportError`` without adbc-driver-manager, and the manager's exceptions.
    """
    if not isinstance(uri, str):
        raise InterfaceError(f"uri is the URL of a database, not {type(uri).__name__}")
    if importlib.util.find_spec("adbc_driver_manager") is None:
        raise missing(library="adbc-driver-manager", extra="adbc", purpose="longshore.adbc.connect")
    from adbc_driver_manager import dbapi

    settings: dict[str, Any] = {"uri": uri, **options}
    return dbapi.connect(driver_path(), entrypoint=ENTRYPOINT, db_kwargs=settings, autocommit=autocommit)
