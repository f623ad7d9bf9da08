"""Sources whose driver yields Arrow: the scheme, and the module that connects; one line each.

A source's module has ``connect(rest, keywords, creates=...)``, which takes what follows the scheme, and whether one
write that makes its table is to come, and gives a ``session.DriverSession``. The core has the rest: types, ``schema=``,
deadlines, Ctrl-C, memory, streams, pools and asyncio. Where the driver has an object for a connection of its own,
``adopt(value)`` gives a session over it.
"""

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from longshore.frames import missing

if TYPE_CHECKING:
    from longshore.sources.session import DriverSession

#: Each scheme: the name of its module here and of its extra, what it is for, and the packages that it imports.
SCHEMES = {
    "duckdb": ("duckdb", "a DuckDB database", ["duckdb"]),
    "adbc": ("adbc", "an ADBC driver", ["adbc_driver_manager", "pyarrow"]),
}

#: The driver's own connections, by the module and the name of their class, and the scheme whose module takes them.
_CONNECTIONS = {("_duckdb", "DuckDBPyConnection"): "duckdb", ("duckdb", "DuckDBPyConnection"): "duckdb"}


def connect(scheme: str, rest: str, keywords: Mapping[str, str], creates: bool) -> "DriverSession":  # noqa: FBT001  the core's
    """Open a session of the source that has this scheme."""
    session: DriverSession = _module(scheme).connect(rest, keywords, creates=creates)
    return session


def adopted_scheme(value: object) -> str | None:
    """Give the scheme of a driver's own connection; None for anything else."""
    kind = type(value)
    scheme = _CONNECTIONS.get((kind.__module__, kind.__name__))
    # Whoever has one has imported its module.
    return scheme if scheme is not None and kind.__module__ in sys.modules else None


def adopt(value: object) -> "DriverSession":
    """Give a session over a driver's own connection."""
    session: DriverSession = _module(str(adopted_scheme(value))).adopt(value)
    return session


def _module(scheme: str) -> Any:
    name, purpose, packages = SCHEMES[scheme]
    if not all(map(importlib.util.find_spec, packages)):
        library = " and ".join(package.replace("_", "-") for package in packages)
        raise missing(library=library, extra=name, purpose=purpose)
    return importlib.import_module(f"longshore.sources.{name}")
