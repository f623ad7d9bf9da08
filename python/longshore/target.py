"""A database to connect to, as callers name it: a URL, a file, a variable of the environment, or a dict."""

import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeGuard, Union

from longshore import _core, sources
from longshore.errors import InterfaceError
from longshore.sources.known import instead_of

if TYPE_CHECKING:
    from psycopg import AsyncConnection as AsyncPsycopgConnection
    from psycopg import Connection as PsycopgConnection
    from sqlalchemy import Connection as SQLAlchemyConnection
    from sqlalchemy import Engine
    from sqlalchemy.ext.asyncio import AsyncConnection as AsyncSQLAlchemyConnection
    from sqlalchemy.ext.asyncio import AsyncEngine

#: The marks before the name of a variable of the environment.
_MARKS = ("env:", "$")
_VARIABLE = re.compile(r"(?:env:|\$)[A-Za-z_]\w*")
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][\w.-]*(?:\+[\w.+-]*)?)://")
#: libpq's other form, which may hold a password.
_KEYWORDS = re.compile(r"\s*\w+\s*=")
#: A text is a file that is not there yet where it starts as a path does, or ends as SQLite's and DuckDB's files do.
_PATH = re.compile(r"(?:\.{0,2}|~)/|\.{1,2}\\|[A-Za-z]:[\\/]")
_SQLITE = frozenset({".db", ".db3", ".s3db", ".sl3", ".sqlite", ".sqlite3"})
_DUCKDB = frozenset({".ddb", ".duckdb"})

_FORMS = "a URL such as postgresql://user@host:5432/database, the path of a SQLite or DuckDB file, or env:NAME"


_OPENED = "give the URL or the keywords that it was opened with; longshore.connect keeps a session between calls"
_HINTS = {
    "sqlalchemy": "give its engine or its connection: of a Session, session.connection()",
    "asyncpg": _OPENED,
    "pymysql": _OPENED,
    "MySQLdb": _OPENED,
    "mysql": _OPENED,
    "mariadb": _OPENED,
    "aiosqlite": _OPENED,
}


class SQLAlchemyURL(Protocol):
    """A ``sqlalchemy.URL``."""

    def render_as_string(self, hide_password: bool = ...) -> str:  # noqa: FBT001  SQLAlchemy's own
        """Give it as a text."""


class SQLAlchemyText(Protocol):
    """A ``sqlalchemy.text()``: a statement."""

    text: str

    def bindparams(self, *binds: Any, **names_to_values: Any) -> Any:
        """Bind values."""


TargetLike = Union[
    str,
    Mapping[str, Any],
    "os.PathLike[str]",
    SQLAlchemyURL,
    "Engine",
    "SQLAlchemyConnection",
    "AsyncEngine",
    "AsyncSQLAlchemyConnection",
    "PsycopgConnection[Any]",
    "AsyncPsycopgConnection[Any]",
]


class Target(NamedTuple):
    """A connection's parts, as the core takes them."""

    url: str | None
    scheme: str
    keywords: dict[str, str]
    password: Callable[[], str] | None = None

    def __repr__(self) -> str:
        """Show the scheme only: every other part may hold a secret."""
        return f"<Target {self.scheme}://***>"


def target(conn: object, others: str = "") -> Target:
    """Take a connection apart; ``others`` is what its caller takes besides, for the error.

    >>> target("postgresql+psycopg2://localhost"), target("./harbour.db")
    (<Target postgresql://***>, <Target sqlite://***>)

    Raises ``InterfaceError`` for what names no database. The password may be a callable, asked at each connect.
    """
    found = _of_mapping(conn) if isinstance(conn, Mapping) else _of_one(conn, others)
    if found.scheme not in {*_core.SCHEMES, *sources.SCHEMES}:
        raise InterfaceError(f"no driver for URLs that start with {found.scheme}://", hint=instead_of(found.scheme))
    return found


def is_url(text: object) -> TypeGuard[str]:
    """Whether ``text`` starts with a scheme that a driver knows.

    >>> is_url("postgresql+asyncpg://localhost"), is_url("SELECT 'postgresql://'")
    (True, False)
    """
    if not isinstance(text, str):
        return False
    if _source_scheme(text) is not None:
        return True
    found = _SCHEME.match(text)
    return found is not None and _scheme(found["scheme"]) in {*_core.SCHEMES, *sources.SCHEMES}


def is_address(given: object) -> bool:
    """Whether ``given`` names a database, and can be neither a query nor the name of a table or of a file.

    >>> is_address("env:HARBOUR"), is_address({"host": "localhost"}), is_address("harbour.db")
    (True, True, False)
    """
    if isinstance(given, str):
        return is_url(given) or _VARIABLE.fullmatch(given) is not None
    return isinstance(given, Mapping | os.PathLike) or _is_sqlalchemy_url(given)


def _of_mapping(conn: Mapping[Any, Any]) -> Target:
    given = {str(key): value for key, value in conn.items() if value is not None}
    scheme, url = given.pop("scheme", None), given.pop("url", None)
    if url is not None and scheme is not None:
        raise InterfaceError("conn has a url and a scheme: the url has its own")
    if url is None:
        place = Target(None, _scheme(_text("scheme", scheme or "postgresql")), {})
    elif not (isinstance(url, str | os.PathLike) or _is_sqlalchemy_url(url)):
        raise InterfaceError(f"the url of conn is a text, not {type(url).__name__}")
    else:
        place = _of_one(url)
    password = given.pop("password") if callable(given.get("password")) else None
    keywords = {_utf8(key, "a name in conn"): _text(key, value) for key, value in given.items()}
    return place._replace(keywords={**place.keywords, **keywords}, password=password)


def _scheme(written: str) -> str:
    """Give a scheme without the name of the driver that SQLAlchemy would use, where it is not a driver's own."""
    written = written.lower()
    return written if written in _core.SCHEMES else written.partition("+")[0]


def _of_one(conn: object, others: str = "") -> Target:
    if sources.is_adopted(conn) and (address := sources.address(conn)) is not conn:
        return _of_mapping(address) if isinstance(address, Mapping) else _of_one(address)
    if _is_sqlalchemy_url(conn):
        return _of_text(conn.render_as_string(hide_password=False))
    if isinstance(conn, os.PathLike):
        return _file(os.fspath(conn))
    if not isinstance(conn, str):
        raise _refusal(conn, others)
    for mark in _MARKS:
        if conn.startswith(mark):
            return _of_text(_variable(conn.removeprefix(mark)))
    return _of_text(conn)


def _of_text(text: str) -> Target:
    _utf8(text, "the URL")
    if found := _SCHEME.match(text):
        known = is_url(text)
        scheme = _scheme(found["scheme"]) if known else found[0].removesuffix("://")
        return Target(f"{scheme}://{text[found.end() :]}", scheme, {})
    if text.startswith("sqlite:"):
        return Target(f"sqlite:///{text.removeprefix('sqlite:')}", "sqlite", {})
    if (source := _source_scheme(text)) is not None:
        return Target(f"{source}://{text[len(source) + 1 :]}", source, {})
    if text == ":memory:" or _is_file(text):
        return _file(text)
    hint = f"give {_FORMS}"
    if _KEYWORDS.match(text):
        hint = 'give a dict, {"host": ..., "dbname": ..., "user": ...}, or a URL'
    # Nothing of the text, all of which may be a secret.
    raise InterfaceError("conn is not a URL: it has no scheme and ://, and it is not the path of a file", hint=hint)


def _source_scheme(text: str) -> str | None:
    """Give the scheme of a source of ``longshore.sources``, after whose colon there are no slashes."""
    scheme, colon, rest = text.partition(":")
    is_one = colon and not rest.startswith("//") and scheme.lower() in sources.SCHEMES
    return scheme.lower() if is_one else None


def _is_file(text: str) -> bool:
    # A Path fails where a text is too long for a name.
    if os.path.isfile(_expand(text)):  # noqa: PTH113
        return True
    # Else user:password@host/name.db would be shown as a path.
    if "@" in text or "\0" in text or "://" in text or _KEYWORDS.match(text):
        return False
    return _PATH.match(text) is not None or Path(text).suffix.lower() in _SQLITE | _DUCKDB


def _file(path: str | bytes) -> Target:
    """Give a file: SQLite's, or DuckDB's by its first bytes or, where it is not there yet, by its suffix."""
    if isinstance(path, bytes):
        raise InterfaceError("conn is the path of a file as a text, not as bytes")
    path = _expand(_utf8(path, "the path"))
    if _is_of_duckdb(path):
        return Target(None, "duckdb", {"database": path})
    return Target(None, "sqlite", {"database": path})


def _expand(path: str) -> str:
    return str(Path(path).expanduser()) if path.startswith("~/") else path


def _is_of_duckdb(path: str) -> bool:
    there = Path(path)
    if not there.exists():
        return there.suffix.lower() in _DUCKDB
    # A pipe would have to be written first. What cannot be read the source tells of.
    return there.is_file() and (_core.first_bytes(path) or b"")[8:12] == b"DUCK"


def _refusal(conn: object, others: str) -> InterfaceError:
    kind = type(conn)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    hint = _HINTS.get(kind.__module__.partition(".")[0].lstrip("_"), f"give {_FORMS}")
    known = f"a URL, a file, env:NAME{others or ' or a dict of keywords'}"
    return InterfaceError(f"conn is {known}, not {module}{kind.__qualname__}", hint=hint)


def _variable(name: str) -> str:
    if text := os.environ.get(name):
        return text
    shown = f" {name!r}" if name.isidentifier() else ""
    hint = "set it to a URL or to the path of a file"
    raise InterfaceError(f"the environment has no variable{shown}, or it is empty", hint=hint)


def _is_sqlalchemy_url(given: object) -> TypeGuard[SQLAlchemyURL]:
    # Whoever has one has imported its module.
    module = sys.modules.get("sqlalchemy.engine.url")
    return module is not None and isinstance(given, module.URL)


def _text(key: str, value: object) -> str:
    if not isinstance(value, str | int | float | os.PathLike):
        raise InterfaceError(f"{key} of conn is a text or a number, not {type(value).__name__}")
    # libpq's switches are 1 and 0.
    return str(int(value)) if isinstance(value, bool) else _utf8(str(value), f"{key} of conn")


def _utf8(text: str, name: str) -> str:
    """Give ``text`` back; raises ``InterfaceError`` for a lone surrogate, and shows nothing of what may be secret."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise InterfaceError(f"{name} holds a lone surrogate: UTF-8 cannot encode it")
    return text
