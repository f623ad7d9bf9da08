"""Connections: what a read can be given, and ``connect`` and ``Pool``, which outlive it."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self, Union

from longshore import _core
from longshore.errors import InterfaceError
from longshore.parameters import bound, seconds
from longshore.schema import encodable

if TYPE_CHECKING:
    import sqlite3

__all__ = [
    "Connection",
    "ConnectionLike",
    "Pool",
    "Source",
    "Target",
    "connect",
    "is_connection",
    "is_url",
    "scheme_of",
    "source",
    "target",
]

#: No server has more connections than that.
_MOST = 1 << 16

Source = _core.Target | _core.Pool | _core.Connection | _core.SqliteConnection


class Connection:
    """One session of a database, for one statement at a time.

    Made by ``longshore.connect``, and given to ``read_sql`` instead of a URL, which then sees the session's
    transaction, settings and temporary tables. Leaving a ``with`` block commits, or rolls back after an exception,
    and closes.

    While a stream or another thread has the session, every other use is an ``InterfaceError``. It is free again after
    the stream's end, failure or ``close``.
    """

    def __init__(self, core: _core.Connection, scheme: str) -> None:
        """Keep the session."""
        self._core = core
        self._scheme = scheme

    def __repr__(self) -> str:
        """Show no more than the scheme and the state."""
        return f"<Connection {self._scheme}://*** {'closed' if self.closed else 'open'}>"

    def __reduce__(self) -> NoReturn:
        """Refuse: the session belongs to its process, and what opens it may hold a password."""
        raise _unpicklable(self)

    def execute(
        self, sql: str, params: Sequence[Any] | Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> int | None:
        """Run one statement, and return how many rows it changed, or None where the server does not tell.

        ``params`` are bound as in ``read_sql``. Rows that the statement returns are counted and thrown away:
        ``read_sql`` keeps them. ``timeout`` is in seconds. Raises the exceptions of ``longshore.errors``; a failed
        statement leaves the connection usable, but its transaction has to be rolled back.
        """
        if not isinstance(sql, str):
            message = f"a statement is a text, not {type(sql).__name__}"
            raise InterfaceError(message)
        return self._core.execute(encodable(sql, "the statement"), bound(params), timeout=seconds(timeout))

    def commit(self) -> None:
        """Make what the transaction did lasting; nothing where none is open.

        Raises ``OperationalError`` where a statement of the transaction has failed: it is rolled back.
        """
        self._core.commit()

    def rollback(self) -> None:
        """Undo what the transaction did; nothing where none is open."""
        self._core.rollback()

    def close(self) -> None:
        """End the session, and roll an open transaction back first. Closing twice is no error.

        A stream that has the session goes on to its end, which then ends the session.
        """
        self._core.close()

    @property
    def closed(self) -> bool:
        """Whether the session has ended, by ``close`` or because the connection was lost."""
        return self._core.closed

    @property
    def in_transaction(self) -> bool | None:
        """Whether a transaction is open; None while a stream has the session."""
        return self._core.in_transaction

    def __enter__(self) -> Self:
        """Give the connection itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit, or roll back after an exception, and close."""
        try:
            if kind is None:
                self.commit()
        finally:
            self.close()


class Pool:
    """At most ``size`` sessions, shared by any number of reads from any thread.

    Given to ``read_sql`` instead of a URL. A read waits until it can have all the sessions that it needs, in its turn
    and as long as its ``timeout`` lets it. A session is cleaned of what an earlier read left in it, and replaced where
    it no longer answers. None is opened before it is needed. A forked child begins with an empty pool.

    >>> import longshore
    >>> with longshore.Pool(url, size=2) as pool:
    ...     for _ in range(3):
    ...         frame = longshore.read_sql("SELECT 1 AS one", pool)
    ...     pool
    <Pool postgresql://*** 0 in use, 1 idle, at most 2>
    """

    def __init__(self, conn: str | Mapping[str, Any], *, size: int = 8) -> None:
        """Take a URL or a dict of keywords; ``password`` may be a callable, asked at each connect.

        Raises ``InterfaceError`` for what is none, and for a ``size`` that is no number from 1.
        """
        if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= _MOST:
            message = f"size is a number of connections from 1 to {_MOST}, not {size!r}"
            raise InterfaceError(message)
        parts = target(conn)
        self._scheme = parts.scheme
        self.size = size
        self._core = _core.Pool(_core.Target(**parts._asdict()), size=size)

    def __repr__(self) -> str:
        """Show no more than the scheme and the numbers."""
        return f"<Pool {self._scheme}://*** {self.in_use} in use, {self.idle} idle, at most {self.size}>"

    def __reduce__(self) -> NoReturn:
        """Refuse: the sessions belong to their process, and what opens them may hold a password."""
        raise _unpicklable(self)

    @property
    def in_use(self) -> int:
        """How many sessions reads have, or may open."""
        return self._core.in_use

    @property
    def idle(self) -> int:
        """How many sessions are open and wait for a read."""
        return self._core.idle

    def close(self) -> None:
        """Close the idle sessions; those in use are closed when their reads end. Closing twice is no error."""
        self._core.close()

    def __enter__(self) -> Self:
        """Give the pool itself."""
        return self

    def __exit__(self, *_exception: object) -> None:
        """Close it."""
        self.close()


ConnectionLike = Union[str, Mapping[str, Any], Connection, Pool, "sqlite3.Connection"]
"""A URL, a mapping of keywords (``host``, ``dbname``, ``password``, ..., and ``url`` or ``scheme``), a connection, a
pool, or a ``sqlite3.Connection``."""


def connect(conn: str | Mapping[str, Any], *, autocommit: bool = False, timeout: float | None = None) -> Connection:
    """Open one session that outlives a read.

    >>> import longshore
    >>> with longshore.connect(url) as connection:
    ...     connection.execute("CREATE TEMPORARY TABLE harbour (berth int)")
    ...     connection.execute("INSERT INTO harbour VALUES ($1), ($2)", [7, 8])
    ...     longshore.read_sql("SELECT sum(berth) AS total FROM harbour", connection, return_type="numpy")["total"].data
    2
    array([15])

    ``conn``
        A URL, or a dict of the source's keywords, in which ``password`` may be a callable.
    ``autocommit``
        Without it, the first statement, a read's as well, begins a transaction that ``commit`` or ``rollback`` ends
        (PEP 249). With it, each statement is a transaction of its own. A list of queries and a read in parts are a
        transaction of their own in either case.
    ``timeout``
        Seconds for the whole attempt to connect.

    Raises the exceptions of ``longshore.errors``.
    """
    if not isinstance(autocommit, bool):
        message = f"autocommit is True or False, not {autocommit!r}"
        raise InterfaceError(message)
    parts = target(conn)
    opened = _core.Connection(_core.Target(**parts._asdict()), autocommit=autocommit, timeout=seconds(timeout))
    return Connection(opened, parts.scheme)


def source(conn: object) -> Source:
    """Give what the core reads from; raises ``InterfaceError`` for what is none."""
    if isinstance(conn, Connection | Pool):
        return conn._core  # noqa: SLF001  the two are this file's own
    if isinstance(conn, str | Mapping):
        return _core.Target(**target(conn)._asdict())
    # Whoever has such a connection has imported its module.
    sqlite3 = sys.modules.get("sqlite3")
    if sqlite3 is not None and isinstance(conn, sqlite3.Connection):
        return _core.SqliteConnection(conn)
    given = type(conn).__name__
    message = f"conn is a URL, a dict of keywords, a Connection or a Pool, or a sqlite3.Connection, not {given}"
    raise InterfaceError(message)


def is_connection(value: object) -> bool:
    """Whether ``value`` is a session or a pool that is open already."""
    if isinstance(value, Connection | Pool):
        return True
    sqlite3 = sys.modules.get("sqlite3")
    return sqlite3 is not None and isinstance(value, sqlite3.Connection)


def scheme_of(conn: object) -> str:
    """Give the scheme of what the core reads from; raises ``InterfaceError`` for what is none.

    >>> scheme_of("mariadb://localhost/test"), scheme_of({"host": "localhost"})
    ('mariadb', 'postgresql')
    """
    if isinstance(conn, Connection | Pool):
        return conn._scheme.lower()  # noqa: SLF001  the two are this file's own
    if not isinstance(conn, str | Mapping):
        # Raises for what is no connection.
        source(conn)
        return "sqlite"
    parts = target(conn)
    scheme = parts.scheme if parts.url is None else _scheme(parts.url)
    if not scheme:
        hint = "write it as postgresql://user@host:5432/database"
        message = f'the connection is not a URL: it has no "://"\nHint: {hint}'
        raise InterfaceError(message, hint=hint)
    return scheme.lower()


def _scheme(url: str) -> str:
    """Give a URL's scheme; none for another text, all of which may be a secret."""
    scheme, separator, _ = url.partition("://")
    return scheme if separator else ""


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
    return bool(separator) and scheme.lower() in _core.SCHEMES


def target(conn: object) -> Target:
    """Take a connection apart.

    Raises ``InterfaceError`` for what is neither a URL nor a mapping. The password may be a callable, which is
    asked at each connect.
    """
    if isinstance(conn, str):
        return Target(_utf8(conn, "the URL"), _scheme(conn), {}, None)
    if not isinstance(conn, Mapping):
        message = f"conn is a URL or a dict of keywords, not {type(conn).__name__}"
        raise InterfaceError(message)
    given = {str(key): value for key, value in conn.items() if value is not None}
    url = given.pop("url", None)
    if not (url is None or isinstance(url, str)):
        message = f"the url of conn is a text, not {type(url).__name__}"
        raise InterfaceError(message)
    if url is not None and "scheme" in given:
        message = "conn has a url and a scheme: the url has its own"
        raise InterfaceError(message)
    scheme = _text("scheme", given.pop("scheme", "postgresql"))
    password = given.pop("password") if callable(given.get("password")) else None
    keywords = {_utf8(key, "a name in conn"): _text(key, value) for key, value in given.items()}
    return Target(None if url is None else _utf8(url, "the URL"), scheme, keywords, password)


def _unpicklable(what: object) -> TypeError:
    name = type(what).__name__
    return TypeError(f"a {name} belongs to its process and cannot be pickled: make one in each process")


def _text(key: str, value: object) -> str:
    if not isinstance(value, str | int | float | os.PathLike):
        message = f"{key} of conn is a text or a number, not {type(value).__name__}"
        raise InterfaceError(message)
    # libpq's switches are 1 and 0.
    return str(int(value)) if isinstance(value, bool) else _utf8(str(value), f"{key} of conn")


def _utf8(text: str, name: str) -> str:
    """Give ``text`` back; raises ``InterfaceError`` for a lone surrogate, and shows nothing of what may be secret."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        message = f"{name} holds a lone surrogate: it is no text"
        raise InterfaceError(message)
    return text
