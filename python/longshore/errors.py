"""The exceptions of the DB-API, and texts without passwords."""

import builtins
import re

STARS = "***"
#: In a URL, whose password may hold what should have been percent-encoded. The bound keeps the search linear.
LOGIN = re.compile(r"(?P<before>://[^\s:/@]*:)(?P<password>[^'\"\n]{0,4096})@")
#: In a setting, ``password=rope``, and in SQL, ``SECRET 'rope'``.
SETTING = re.compile(
    r"(?P<before>(?:^|[?&;,(\s'\"])(?:\w*(?:password|token|secret|api_key)|passwd|pwd|identified\s+by)"
    r"(?:\s*=\s*['\"]*|\s+['\"]+))(?P<password>[^&;\s'\"]+)",
    re.IGNORECASE,
)


def mask(text: str) -> str:
    """Give a text without the passwords of the URLs and the settings in it.

    >>> mask("near 'mysql://me:rope@host/x?token=anchor'")
    "near 'mysql://me:***@host/x?token=***'"
    >>> mask("ATTACH 'host=quay password=''rope'''")
    "ATTACH 'host=quay password=''***'''"
    >>> mask("CREATE SECRET s (TYPE s3, SECRET 'rope'), motherduck_token = anchor")
    "CREATE SECRET s (TYPE s3, SECRET '***'), motherduck_token = ***"
    """
    if "://" in text:
        text = LOGIN.sub(rf"\g<before>{STARS}@", text)
    return SETTING.sub(rf"\g<before>{STARS}", text)


class Warning(UserWarning):  # noqa: A001  PEP 249 gives the name
    """Something that the caller should know and that stops nothing."""


class SerialReadWarning(Warning):
    """A read that was asked to be parallel is serial, for the reason given."""


class SerialWriteWarning(Warning):
    """A write that was asked to be parallel is serial, for the reason given."""


class DataWarning(Warning):
    """Values that arrived or were compared otherwise than they are, as a documented default says, told once a column.

    pandas' float64 for a numeric of more digits, lists for arrays whose lower bounds are not 1, NULL for MySQL's zero
    dates, what MySQL and MariaDB themselves warn of while they compute a result, and bytes where `sql` compares what a
    collation of the database would.
    """


class Error(Exception):
    """The base of every exception of Longshore.

    The text says what happened, where, and what to do. The attributes say the same for programs; each is None
    where it does not apply.
    """

    def __init__(
        self,
        message: str,
        *,
        sqlstate: str | None = None,
        detail: str | None = None,
        hint: str | None = None,
        position: int | None = None,
        column: str | None = None,
        row: int | None = None,
        native_type: str | None = None,
    ) -> None:
        """Keep the text and the attributes, without the passwords that a server, or an engine, has quoted."""
        whole = message if hint is None or hint in message else f"{message}\nHint: {hint}"
        super().__init__(mask(whole))
        self.sqlstate = sqlstate
        """The SQL standard's state, five characters: the server's, or of class 08 for a connection that failed."""
        self.detail = detail and mask(detail)
        """The server's longer explanation."""
        self.hint = hint and mask(hint)
        """The remedy."""
        self.position = position
        """The position in the statement, in characters from 1."""
        self.column = column
        """The name of the column."""
        self.row = row
        """The number of the row in the result, from 0."""
        self.native_type = native_type
        """The database's own name of the column's type."""


class InterfaceError(Error):
    """The library was used wrongly: an unknown option, a text that is not a URL."""


class DatabaseError(Error):
    """Everything that the database, its data or the way to it causes."""


class OperationalError(DatabaseError):
    """The connection or the server failed: refused, cut, out of resources, stopped."""


class TimeoutError(OperationalError, builtins.TimeoutError):  # noqa: A001  the name that its users look for
    """The time-out passed; the query has been cancelled on the server."""


class MemoryLimitError(OperationalError, MemoryError):
    """The result is larger than ``options={"memory_limit": ...}``, or than the memory that there is."""


class DataError(DatabaseError):
    """A value cannot be represented exactly in the type that was asked for."""


class IntegrityError(DatabaseError):
    """A constraint of the database was violated."""


class InternalError(DatabaseError):
    """The server or this library broke its own rules."""


class ProgrammingError(DatabaseError):
    """The statement or its parameters are wrong."""


class NotSupportedError(DatabaseError):
    """The server, or the frame, cannot do what was asked."""
