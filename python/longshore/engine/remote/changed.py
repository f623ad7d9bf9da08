"""What becomes of a query whose tables are altered between the catalogue's answer and the end of the reads."""

from collections.abc import Callable
from typing import Any

from longshore.errors import OperationalError

__all__ = ["Changed", "changed", "settled"]

#: How often a query is planned.
_TRIES = 3


class Changed(OperationalError):  # noqa: N818  callers see an OperationalError
    """The rows, or some of them, may mean something else than was planned with."""

    #: Whether the query can be run again as if for the first time.
    again = True


def changed(source: str) -> Changed:
    """Say what to do, as a server does that could not serialize."""
    hint = "run the query again; within a transaction that has read before, end that first"
    message = f"a table of the attached database {source} was altered while the query read it [SQLSTATE 40001]"
    return Changed(f"{message}\nHint: {hint}", sqlstate="40001", hint=hint)


def settled(once: Callable[[], Any]) -> Any:
    """Run a query, and run it again where its tables were altered meanwhile."""
    for _ in range(_TRIES - 1):
        try:
            return once()
        except Changed as error:
            if not error.again:
                raise
    return once()
