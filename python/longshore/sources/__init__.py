"""Sources whose driver yields Arrow: the scheme, and the module that connects; one line each.

A source's module has ``connect(rest, keywords, creates=...)``, which takes what follows the scheme, and whether one
write that makes its table is to come, and gives a ``Session``. The core has the rest: types, ``schema=``, deadlines,
Ctrl-C, memory, streams, pools and asyncio. Where the driver has an object for a connection of its own, ``adopt(value)``
gives a session over it.
"""

import importlib
import sys
from collections.abc import Mapping
from typing import Any, Literal, Protocol

#: Each scheme, and the name of its module here.
SCHEMES = {"duckdb": "duckdb", "adbc": "adbc"}

#: The driver's own connections, by the module and the name of their class, and the scheme whose module takes them.
_CONNECTIONS = {("_duckdb", "DuckDBPyConnection"): "duckdb", ("duckdb", "DuckDBPyConnection"): "duckdb"}

#: The rows of a result as an object that hands an Arrow stream over, the native type of each column, and the labels of
#: each ENUM, which an Arrow schema does not hold.
Result = tuple[object, list[str], list[list[str]]]


class Loader(Protocol):
    """Rows on their way into a table."""

    def push(self, frame: object, before: int) -> None:
        """Write the rows of an object that hands an Arrow stream over; ``before`` rows went before."""

    def commit(self) -> None:
        """Make them the table's."""

    def abort(self) -> None:
        """Leave the table as it was."""


class Session(Protocol):
    """One connection of a driver. Each call comes on a thread of its own, one at a time, but for ``cancel``."""

    #: Why a read is not split.
    not_split: str
    #: Why there are no types of parameters, where `parameters` is missing.
    not_prepared: str
    #: The query of the tables and views: catalog_name, db_schema_name, table_name and table_type. It may be missing.
    tables: str
    #: Whether a transaction is open, and whether a statement has failed in it.
    transaction: Literal["none", "open", "failed"]

    def read(self, query: str, params: Any, rows: int) -> Result:
        """Run a query, which gives at most so many ``rows`` in a batch."""

    def describe(self, query: str, params: Any, rows: int) -> Result:
        """Give the columns of a query without running it: a result without rows."""

    def execute(self, query: str, params: Any) -> int | None:
        """Run one statement, and tell how many rows it changed."""

    def execute_script(self, script: str) -> None:
        """Run several statements."""

    def begin(self) -> None:
        """Begin a transaction."""

    def commit(self) -> None:
        """End it."""

    def rollback(self) -> None:
        """Undo it."""

    def fail(self) -> None:
        """Note that a result has ended with an error."""

    def load(self, **load: Any) -> Loader:
        """Begin to write."""

    def reset(self) -> None:
        """Make it like new for another read."""

    def cancel(self) -> None:
        """Stop what runs, from any thread."""

    def close(self) -> None:
        """End it."""


def connect(scheme: str, rest: str, keywords: Mapping[str, str], creates: bool) -> Session:  # noqa: FBT001  the core's
    """Open a session of the source that has this scheme."""
    session: Session = _module(scheme).connect(rest, keywords, creates=creates)
    return session


def adopted_scheme(value: object) -> str | None:
    """Give the scheme of a driver's own connection; None for anything else."""
    kind = type(value)
    scheme = _CONNECTIONS.get((kind.__module__, kind.__name__))
    # Whoever has one has imported its module.
    return scheme if scheme is not None and kind.__module__ in sys.modules else None


def adopt(value: object) -> Session:
    """Give a session over a driver's own connection."""
    session: Session = _module(str(adopted_scheme(value))).adopt(value)
    return session


def _module(scheme: str) -> Any:
    return importlib.import_module(f"longshore.sources.{SCHEMES[scheme]}")
