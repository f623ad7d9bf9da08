"""DuckDB's exceptions as Longshore's."""

import contextlib
import re
from collections.abc import Iterator

from longshore import errors
from longshore.engine.duckdb import duckdb

__all__ = ["missing_table", "translated"]

#: From the particular to the general: the first that fits is taken.
_KINDS: list[tuple[str, type[errors.Error]]] = [
    ("OutOfMemoryException", errors.MemoryLimitError),
    ("ConversionException", errors.DataError),
    ("OutOfRangeException", errors.DataError),
    ("TypeMismatchException", errors.DataError),
    ("InternalException", errors.InternalError),
    ("FatalException", errors.InternalError),
    ("NotImplementedException", errors.NotSupportedError),
    ("ConstraintException", errors.IntegrityError),
    ("InterruptException", errors.OperationalError),
    ("IOException", errors.OperationalError),
    ("ProgrammingError", errors.ProgrammingError),
    ("DataError", errors.DataError),
    ("IntegrityError", errors.IntegrityError),
    ("NotSupportedError", errors.NotSupportedError),
    ("OperationalError", errors.OperationalError),
    ("InternalError", errors.InternalError),
]

_MISSING = re.compile(r"Catalog Error: Table with name (.+) does not exist!")
_LINE = re.compile(r"^LINE (\d+): (?:\.\.\.)?", re.MULTILINE)


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Raise Longshore's exceptions where DuckDB raises its own."""
    try:
        yield
    except duckdb.Error as error:
        raise _translation(error) from error


def missing_table(error: BaseException) -> str | None:
    """Give the unqualified name of the table whose absence is the whole of ``error``."""
    if not isinstance(error, duckdb.CatalogException):
        return None
    found = _MISSING.match(str(error))
    return found[1] if found else None


def _translation(error: Exception) -> errors.Error:
    text = str(error).strip()
    for name, kind in _KINDS:
        if isinstance(error, getattr(duckdb, name)):
            return kind(text)
    return errors.DatabaseError(text)
