"""A store as a database of ``attach``: the engine reads its mapped rows, and nothing is sent."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from longshore import sources
from longshore.duckdb.mirror import Column as Stored
from longshore.duckdb.mirror import columns_in, keys_of, means_of, predicates_of
from longshore.duckdb.remote.dialect import Ask, Dialect, rows_of
from longshore.duckdb.remote.types import Column, Kind, Table, Type
from longshore.duckdb.session import View
from longshore.errors import DataError, ProgrammingError
from longshore.frames.pushdown import Pushdown, fold_name
from longshore.frames.stored import FORM, engine_rows, numbered_flags, schema_of, without_nulls
from longshore.options import Options
from longshore.target import target
from longshore.texts import quoted_name

if TYPE_CHECKING:
    from longshore._core import StoreTable, StoreTransaction
    from longshore.sources.store import Session

_COLUMNS = """SELECT column_name FROM duckdb_columns()
WHERE database_name = 'memory' AND schema_name = 'main' AND lower(table_name) = lower(?) ORDER BY column_index"""
_SCHEMA = "main"


class StoreDialect(Dialect):
    """A store's SQL is the engine's, which does all the work: a connection only loads tables."""

    listing: ClassVar[str] = "for name in store.names(), in Python"
    begin_snapshot: ClassVar[Sequence[str]] = ("BEGIN",)
    has_locks: ClassVar[bool] = False

    def find(self, ask: Ask, parts: Sequence[str], lossy: frozenset[Kind]) -> Table | None:
        """Look a table up through a connection."""
        del lossy
        names = [] if _is_elsewhere(parts) else [name for (name,) in rows_of(ask(_COLUMNS, [parts[-1]]))]
        return _table(parts[-1], names) if names else None


def _is_elsewhere(parts: Sequence[str]) -> bool:
    return len(parts) > 1 and fold_name(parts[0]) != _SCHEMA


def _table(name: str, columns: Sequence[str]) -> Table:
    return Table(
        quoted_name(name), [Column(each, quoted_name(each), Type(Kind.OTHER)) for each in columns], is_typed=False
    )


class StoreSource:
    """A store, in one version for one query."""

    dialect = StoreDialect()
    in_snapshot = False

    def __init__(self, name: str, conn: Any, options: Options) -> None:
        """Take a ``Store`` or what names one, which is opened when it is needed."""
        self.name = name
        self._conn = conn
        self._verifies = options.verify
        self._session: Session | None = None

    @property
    def _transaction(self) -> "StoreTransaction":
        session = self._session = self._session or _open(self._conn)
        return session.snapshot()

    def table(self, parts: tuple[str, ...]) -> Table:
        """Look a table up; raises ``ProgrammingError`` where there is none."""
        stored = None if _is_elsewhere(parts) else self._transaction.table(parts[-1])
        if stored is None:
            raise ProgrammingError(f"the table {'.'.join(parts)} of the attached store {self.name} is not there")
        return _table(stored.name, [each.name for each in _columns(stored)])

    def rows(self, table: str, columns: Sequence[str], pushdown: Pushdown) -> Any:
        """Map what a query reads of a table."""
        stored = self._transaction.table(table)
        assert stored is not None  # noqa: S101  it has been looked up
        known = {fold_name(each.name): each for each in _columns(stored)}
        wanted = [known[fold_name(name)] for name in columns]
        own = {key: each.name for key, each in known.items() if each.generated is None}
        read, keys = [each.name for each in wanted], keys_of(pushdown, wanted)
        if any(each.generated is not None for each in wanted):
            # They are computed of texts.
            read, keys = list(own.values()), []
        try:
            rows = self._scan(table, read, predicates_of(pushdown, own))
        except DataError:
            # It names a row, counted among all of them.
            rows = self._scan(table, read, [])
        rows, texts = numbered_flags(rows, keys)
        if stored.definition is None and not texts:
            return rows
        condition = without_nulls(rows, means_of(pushdown, wanted)) if texts else ""
        return View(rows, [f"{_view_item(each, texts)} AS {quoted_name(each.name)}" for each in wanted], condition)

    def _scan(self, table: str, columns: list[str], predicates: list[tuple[str, str, Any]]) -> Any:
        form = "stored" if self._verifies else FORM
        scan = self._transaction.scan(table, columns, predicates, form=form, verified=self._verifies)
        return engine_rows(scan, table)

    def close(self) -> None:
        """End its transaction; what is mapped stays."""
        session, self._session = self._session, None
        if session is not None:
            session.close()


def _view_item(column: Stored, texts: Mapping[str, str]) -> str:
    value = column.generated or texts.get(column.name) or quoted_name(column.name)
    return f"CAST({value} AS {column.kind})" if column.kind else value


def _open(conn: Any) -> "Session":
    session: Any
    if sources.is_adopted(conn):
        session = sources.adopt(conn)
    else:
        place = target(conn)
        session = sources.connect("store", (place.url or "").partition("://")[2], place.keywords, creates=False)
    return cast("Session", session)


def _columns(stored: "StoreTable") -> Sequence[Stored]:
    if stored.definition is not None:
        return columns_in(stored.definition, stored.name)
    return [Stored(each.name, "", None, None, each.nullable) for each in schema_of(stored.schema)]
