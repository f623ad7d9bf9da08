"""What to connect to: a URL, or a dict of libpq's keywords."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from longshore._core import SCHEMES
from longshore.errors import InterfaceError

__all__ = ["ConnectionLike", "Target", "is_url", "target"]

ConnectionLike = str | Mapping[str, Any]
"""A URL, or a mapping of keywords (``host``, ``dbname``, ``password``, ..., and ``url`` or ``scheme``)."""


class Target(NamedTuple):
    """A connection's parts, as the core takes them."""

    url: str | None
    scheme: str
    keywords: dict[str, str]
    password: Callable[[], str] | None

    def __repr__(self) -> str:
        """Show the scheme only: every other part may hold a secret."""
        return f"<Target {self.scheme}://***>"


def is_url(text: object) -> bool:
    """Whether ``text`` starts with a scheme that a driver knows.

    >>> is_url("postgresql://localhost"), is_url("SELECT 'postgresql://'")
    (True, False)
    """
    if not isinstance(text, str):
        return False
    scheme, separator, _ = text.partition("://")
    return bool(separator) and scheme.lower() in SCHEMES


def target(conn: ConnectionLike) -> Target:
    """Take a connection apart.

    Raises ``InterfaceError`` for what is neither a URL nor a mapping. The password may be a callable, which is
    asked at each connect.
    """
    if isinstance(conn, str):
        return Target(conn, conn.partition("://")[0], {}, None)
    if not isinstance(conn, Mapping):
        message = f"conn is a URL or a dict of keywords, not {type(conn).__name__}"
        raise InterfaceError(message)
    given = {str(key): value for key, value in conn.items() if value is not None}
    url = given.pop("url", None)
    scheme = str(given.pop("scheme", "postgresql"))
    password = given.pop("password") if callable(given.get("password")) else None
    return Target(url, scheme, {key: _text(value) for key, value in given.items()}, password)


def _text(value: object) -> str:
    # libpq's switches are 1 and 0.
    return str(int(value)) if isinstance(value, bool) else str(value)
