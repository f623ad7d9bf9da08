"""Databases, as a command's arguments name them."""

from longshore.errors import InterfaceError
from longshore.target import target

__all__ = ["database"]


def database(given: str | None, option: str) -> str:
    """Give what names a database: a URL, a file, or ``env:NAME`` or ``$NAME`` for a variable of the environment.

    Raises ``InterfaceError`` for what names none, and shows nothing of it: it may hold a password.
    """
    if not given:
        message = f"{option} is missing: give a URL, a file, or env:NAME for what the environment has"
        raise InterfaceError(message)
    try:
        target(given)
    except InterfaceError as error:
        message = f"{option}: {error}"
        raise InterfaceError(message, hint=error.hint) from None
    return given
