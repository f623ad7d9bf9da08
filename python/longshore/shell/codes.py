"""The exit codes, which scripts rely on."""

from enum import IntEnum

__all__ = ["Code"]


class Code(IntEnum):
    """What the shell is told at the end."""

    DONE = 0
    DATABASE = 1
    """The database refused: a statement, a value, a constraint."""
    USAGE = 2
    CONNECTION = 3
    """The way to the database, or the server, failed."""
    FILE = 4
    LIBRARY = 5
    """A Python library is not installed."""
    INTERNAL = 70
    """A fault of Longshore's own."""
    TIMEOUT = 124
    """As timeout(1) has it."""
    HUNG_UP = 129
    """The terminal was closed."""
    INTERRUPTED = 130
    PIPE = 141
    """Nobody reads the output any more."""
    TERMINATED = 143
