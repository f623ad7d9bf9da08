"""A query, as a command's argument names it: itself, a file, or standard input."""

import os
import sys

from longshore.errors import InterfaceError
from longshore.shell.streams import path
from longshore.target import is_address

__all__ = ["statement"]


def statement(given: str) -> str:
    """Give the query's text.

    Raises ``InterfaceError`` where there is none, and ``OSError`` for a file that is not there.
    """
    if is_address(given):
        message = "the query is a URL: give the query first, and the URL with --from"
        raise InterfaceError(message)
    if os.path.isfile(given) and not any(map(str.isspace, given)):  # noqa: PTH113  a query may be too long for a path
        hint = f"@{given} is the query in the file; longshore sql \"FROM '{given}'\" reads a file of rows"
        message = f"the query {given!r} is the name of a file\nHint: {hint}"
        raise InterfaceError(message, hint=hint)
    text = given
    if given == "-":
        text = sys.stdin.read()
    elif given.startswith("@"):
        text = path(given[1:]).read_text(encoding="utf-8")
    if not text.strip():
        message = "the query is empty"
        raise InterfaceError(message)
    return text
