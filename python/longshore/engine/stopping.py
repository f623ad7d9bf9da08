"""What stops a query of ``sql`` whose task is cancelled, whatever the query is at."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

__all__ = ["Stops", "stopped_by"]

T = TypeVar("T")


class Stops:
    """The parts of one query that can be stopped from any thread."""

    def __init__(self) -> None:
        """Begin without any."""
        self._cancels: list[Callable[[], object]] = []

    def cancel(self) -> None:
        """Stop what there is; called again and again, since what begins later is stopped as well."""
        for cancel in [*self._cancels]:
            cancel()

    def run(self, work: Callable[[], T]) -> T:
        """Do the work, whose parts announce themselves by ``stopped_by``."""
        token = _current.set(self)
        try:
            return work()
        finally:
            _current.reset(token)

    def add(self, cancel: Callable[[], object]) -> None:
        """Add a part."""
        self._cancels.append(cancel)


_current: ContextVar[Stops | None] = ContextVar("longshore_stops", default=None)


def stopped_by(cancel: Callable[[], object]) -> None:
    """Announce what stops a part of the query, where somebody may want to."""
    if (stops := _current.get()) is not None:
        stops.add(cancel)
