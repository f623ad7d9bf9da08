"""A database that an engine within this process keeps in a file, or in memory."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from longshore import _core
from longshore.errors import InterfaceError, OperationalError

S = TypeVar("S")

IN_MEMORY = ":memory:"
_KEEP = "give a connection that stays open: longshore.connect, or the engine's own"
_FORKED = 'close it before the fork, or start new processes: multiprocessing\'s "spawn"'
_NO_USER = "write the file behind three slashes, or behind four where its path is absolute"
_OTHER = "all connections of a process to one file share an instance: close those with other settings, or use theirs"
_MAKE = "write_sql makes one; so does the engine itself"
_PORT_DIGITS, _LAST_PORT = 5, 65_535
_ENCODED = "in a URL, percent-encode special characters in user and password: @ as %40, / as %2F, : as %3A"


#: Whether a flag of a URL is set.
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def flag(value: str, name: str) -> bool:
    """Read a flag of a URL."""
    if value.lower() not in _FLAGS:
        raise InterfaceError(f"{name} is true or false")
    return _FLAGS[value.lower()]


def port(value: str) -> int:
    """Read a port. Its text is not repeated: in a URL it may be the start of a password."""
    digits = value.strip()
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _PORT_DIGITS and 0 < int(digits) <= _LAST_PORT):
        raise InterfaceError(f"the port is not a number from 1 to {_LAST_PORT}", hint=_ENCODED)
    return int(digits)


@dataclass(frozen=True)
class DatabaseFile:
    """A file to open, which may be in memory, and the engine's own settings."""

    path: str
    is_read_only: bool
    settings: Mapping[str, str]

    @classmethod
    def of(cls, rest: str, keywords: Mapping[str, str], *, creates: bool) -> "DatabaseFile":
        """Give what follows the scheme's ``://``; a file that is not there is for a write that ``creates``."""
        path, _, query = rest.partition("?")
        if "@" in path and not path.startswith("/"):
            raise InterfaceError("the URL of a file has no user and no password", hint=_NO_USER)
        settings = {**dict(_core.url_query(query)), **keywords}
        path = settings.pop("database", unquote(path.removeprefix("/"))) or IN_MEMORY
        is_read_only = flag(settings.pop("read_only", "false"), "read_only")
        if path == IN_MEMORY and creates:
            message = "the database is in memory: what is written would be gone when the call ends"
            raise InterfaceError(message, hint=_KEEP)
        if path != IN_MEMORY and not creates and not Path(path).exists():
            raise OperationalError(f"there is no file {path!r}", hint=_MAKE)
        if os.path.realpath(path) in _inherited:
            raise InterfaceError(f"the file {path!r} was open when this process was forked from another", hint=_FORKED)
        return cls(path, is_read_only, settings)

    def open(self, connect: Callable[[], S], *, ending: str, other: str) -> S:
        """Give the session that ``connect`` opens, once an instance that is just ending has ended.

        Its errors hold ``ending`` until then, and ``other`` where the file is open with other settings.
        """
        deadline = time.monotonic() + 2
        while True:
            try:
                session = connect()
            except Exception as error:
                if other in str(error):
                    message = f"{self.path!r} is open in this process with other settings"
                    raise InterfaceError(message, hint=_OTHER) from error
                if ending not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            else:
                if self.path != IN_MEMORY:
                    _open[session] = os.path.realpath(self.path)
                return session


def note_end(session: object) -> None:
    """Note that a session has ended."""
    _open.pop(session, None)


#: The file of each session, and those that were open at a fork: their engines' threads are in the parent.
_open: WeakKeyDictionary[object, str] = WeakKeyDictionary()
_inherited: set[str] = set()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _inherited.update(_open.values()))
