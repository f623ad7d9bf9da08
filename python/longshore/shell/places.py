"""Databases, as a command's arguments name them."""

import os

from longshore.connection import is_url
from longshore.errors import InterfaceError

__all__ = ["database", "is_place"]

_MARKS = ("env:", "$")


def database(given: str | None, option: str) -> str:
    """Give a URL: the one given, or that of the environment variable in ``env:NAME`` or ``$NAME``.

    Raises ``InterfaceError`` for what is none, and shows nothing of it: it may hold a password.
    """
    if not given:
        message = f"{option} is missing: give a URL, or env:NAME for a variable of the environment that holds one"
        raise InterfaceError(message)
    for mark in _MARKS:
        if given.startswith(mark):
            return _checked(_variable(given.removeprefix(mark)), f"the variable of {option}")
    return _checked(given, option)


def is_place(text: str) -> bool:
    """Whether a text names a database and no file."""
    return text.startswith(_MARKS) or is_url(text)


def _variable(name: str) -> str:
    text = os.environ.get(name)
    if text:
        return text
    message = f"the environment has no variable {name!r}, or it is empty: set it to a URL"
    raise InterfaceError(message)


def _checked(url: str, option: str) -> str:
    if "://" in url:
        return url
    message = f"{option} is no URL: write it as postgresql://user@host/database, mysql://... or sqlite:///file.db"
    raise InterfaceError(message)
