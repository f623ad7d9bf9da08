"""Warnings, told at the line of the user's code that asked for what they are of."""

import contextlib
import contextvars
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

#: Whose lines no user looks for: this package's, and what enters its blocks.
_INNER = {__name__.partition(".")[0], contextlib.__name__}


@dataclass(frozen=True)
class _Line:
    file: str
    number: int
    module: str
    #: The warnings that the module's lines have warned of.
    registry: dict[Any, Any]

    @classmethod
    def of_caller(cls) -> "_Line":
        """Find the innermost line outside this package."""
        frame = sys._getframe(1)  # noqa: SLF001  whose caller is looked for
        while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _INNER:
            frame = frame.f_back
        registry = frame.f_globals.setdefault("__warningregistry__", {})
        return cls(frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__", "<unknown>"), registry)


#: The line that began the work of this thread, where another thread did.
_BEGUN_AT: contextvars.ContextVar[_Line | None] = contextvars.ContextVar("begun_at", default=None)

#: The category that no one is told of.
_WITHOUT: contextvars.ContextVar[type[Warning] | None] = contextvars.ContextVar("without", default=None)


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the caller's line; raises ``category`` where the caller's filters make an error of it."""
    if _WITHOUT.get() is category:
        return
    line = _BEGUN_AT.get() or _Line.of_caller()
    warnings.warn_explicit(message, category, line.file, line.number, line.module, line.registry)


@contextlib.contextmanager
def without(category: type[Warning]) -> Iterator[None]:
    """Do what is within and tell of none of this category: Python's own filters are those of all threads."""
    token = _WITHOUT.set(category)
    try:
        yield
    finally:
        _WITHOUT.reset(token)


def copy_context() -> contextvars.Context:
    """Copy the context for a thread, whose warnings are those of the line that is waiting for it."""
    context = contextvars.copy_context()
    context.run(_BEGUN_AT.set, _BEGUN_AT.get() or _Line.of_caller())
    return context
