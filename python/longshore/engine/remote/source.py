"""An attached database: how it is asked, and what it is found to have."""

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from longshore import _core
from longshore.connection import Connection, connect, scheme_of
from longshore.engine.connections import TAKEN
from longshore.engine.remote.changed import changed
from longshore.engine.remote.dialect import Dialect
from longshore.engine.remote.mysql import MySQL
from longshore.engine.remote.postgresql import PostgreSQL
from longshore.engine.remote.sqlite import SQLite
from longshore.engine.remote.types import Kind, Table
from longshore.errors import InterfaceError, NotSupportedError, ProgrammingError
from longshore.options import Options
from longshore.reading import read

__all__ = ["Source", "attached", "untrusted"]

_DIALECTS: Mapping[str, type[Dialect]] = {
    "postgresql": PostgreSQL,
    "postgres": PostgreSQL,
    "mysql": MySQL,
    "mariadb": MySQL,
    "sqlite": SQLite,
}


class Source:
    """One database of ``attach``, for one query."""

    def __init__(self, name: str, conn: Any, options: Options) -> None:
        """Keep what was attached; nothing is opened before it is needed."""
        self.name = name
        self.dialect = _dialect(name, conn)
        self._given = conn
        self._options = options
        self._own: Connection | None = None
        self._tables: dict[tuple[str, ...], Table] = {}
        self._checked = False
        self.one_moment = False

    @property
    def conn(self) -> Any:
        """What reads are given: the caller's own connection or pool, else one that this query has opened."""
        if not isinstance(self._given, str | Mapping):
            return self._given
        if self._own is None:
            self._own = connect(self._given, autocommit=True)
            for statement in self.dialect.one_moment if self.one_moment else []:
                self._own.execute(statement)
        return self._own

    @property
    def identity(self) -> int:
        """What is the same where two names stand for one connection of the caller's."""
        return id(self if isinstance(self._given, str | Mapping) else self._given)

    @property
    def opens(self) -> bool:
        """Whether a read may open further connections: of a URL, where it is alone."""
        return isinstance(self._given, str | Mapping) and not self.one_moment

    @property
    def stays(self) -> bool:
        """Whether it answers this thread alone, as Python's own connections to SQLite do."""
        return isinstance(self._given, sqlite3.Connection)

    def table(self, parts: tuple[str, ...]) -> Table:
        """Look a table up; raises ``ProgrammingError`` where there is none."""
        if parts not in self._tables:
            found = self._found(parts)
            if found is None or not found.columns:
                what = "has no columns" if found else "is not there, or this user may not see it"
                message = f"the table {'.'.join(parts)} of the attached database {self.name} {what}"
                raise ProgrammingError(message)
            self._tables[parts] = found
        return self._tables[parts]

    def check(self) -> None:
        """Look at the tables once more after the last read; raises ``Changed`` where they are not what they were.

        Nothing need hold them meanwhile: what is the same before and after the reads was so during them.
        """
        if self._checked:
            return
        is_open = self._own is not None
        if self._own is not None and self.one_moment:
            # Its transaction shows its own moment's catalogue to the last.
            self._own.rollback()
        try:
            if any(self._found(parts) != table for parts, table in self._tables.items()):
                raise changed(self.name)
        finally:
            if not is_open:
                self.close()
        self._checked = True

    def _found(self, parts: tuple[str, ...]) -> Table | None:
        return self.dialect.find(self._ask, parts, untrusted(self._options))

    def close(self) -> None:
        """Close what was opened; a stream that still reads from it goes on to its end."""
        if self._own is not None:
            self._own.close()
            self._own = None

    def _ask(self, statement: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        table = read(statement, self.conn, _core.Switch(), return_type="arrow", params=list(params))
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@contextlib.contextmanager
def attached(attach: Mapping[str, Any], options: Options) -> Iterator[dict[str, Source]]:
    """Give the sources by their names in lower case, and close what they opened; raises for names that do not do."""
    sources: dict[str, Source] = {}
    if not isinstance(attach, Mapping):
        message = f"attach is a dict from name to connection, not {type(attach).__name__}"
        raise InterfaceError(message)
    for name, conn in attach.items():
        if not isinstance(name, str) or not name:
            message = f"attach names its databases by texts, not {name!r}"
            raise InterfaceError(message)
        if name.lower() in TAKEN or name.lower() in sources:
            message = f"attach cannot name a database {name!r}: that is another's name already"
            raise InterfaceError(message)
        sources[name.lower()] = Source(name, conn, options)
    try:
        yield sources
    finally:
        for one in sources.values():
            one.close()


def untrusted(options: Options) -> frozenset[Kind]:
    """Give the kinds of which options load another value than the one that is stored."""
    kinds = set()
    if options.numeric_nan == "null":
        kinds.add(Kind.DECIMAL)
    if options.infinity == "null":
        kinds |= {Kind.DATE, Kind.TIMESTAMP, Kind.INSTANT}
    if options.tinyint1 == "bool":
        kinds.add(Kind.BOOLEAN)
    if options.uuid == "text":
        kinds.add(Kind.UUID)
    return frozenset(kinds)


def _dialect(name: str, conn: Any) -> Dialect:
    scheme = scheme_of(conn)
    if scheme not in _DIALECTS:
        message = f"attach[{name!r}] is of {scheme}://, whose tables sql does not read; read_sql gives a frame for it"
        raise NotSupportedError(message)
    return _DIALECTS[scheme]()
