"""A query, as a command's argument names it: itself, a file, or standard input."""

import sys
from pathlib import Path

from longshore.errors import InterfaceError
from longshore.shell.places import is_place

__all__ = ["statement"]


def statement(given: str) -> str:
    """Give the query's text.

    Raises ``InterfaceError`` where there is none, and ``OSError`` for a file that is not there.
    """
    if is_place(given):
        message = "the query is a URL: give the query first, and the URL with --from"
        raise InterfaceError(message)
    text = given
    if given == "-":
        text = sys.stdin.read()
    elif given.startswith("@"):
        text = Path(given[1:]).read_text(encoding="utf-8")
    if not text.strip():
        message = "the query is empty"
        raise InterfaceError(message)
    return text
