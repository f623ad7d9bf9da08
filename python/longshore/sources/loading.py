"""Rows into a table by SQL: in one transaction, and each value as it was or a word about it."""

import contextlib
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from longshore.errors import DataError, Error, InterfaceError, NotSupportedError, ProgrammingError
from longshore.sources.dialects import Dialect, literal

if TYPE_CHECKING:
    from longshore.sources.session import DriverSession

T = TypeVar("T")

EXISTS = 'if_exists="append" adds to it, "replace" makes another'
CONVERT = "convert the data to the column's type, or write it into a column for it"
MISSING = 'if_exists="fail" makes it'
_LEFT_OUT = "a trigger or a rule of the table leaves rows out; nothing was written"
_UNIQUE = "make a unique index on these columns, or name the primary key"


@dataclass(frozen=True, kw_only=True)
class Load:
    """A write, as the core asks for it."""

    schema: str | None
    table: str
    #: An object that hands an Arrow stream over, with the data's columns and no rows.
    columns: object
    #: The columns of a new table that have a value in each row.
    required: Sequence[str]
    if_exists: str
    key: Sequence[str]
    types: Mapping[str, str]


class TableLoader:
    """Rows on their way into a table."""

    def __init__(self, session: "DriverSession", dialect: Dialect, load: Load) -> None:
        """Make the table, or look at the one that is there."""
        schema, table = load.schema, load.table
        self._session, self._dialect, self._key, self._required = session, dialect, list(load.key), {*load.required}
        path = self._path = (table,) if schema is None else (schema, table)
        self._name, self._target = ".".join(path), dialect.quoted_name(*path)
        self._schema, self._table = dialect.schema if schema is None else literal(schema), literal(table)
        self._rows = f"longshore_{secrets.token_hex(8)}"
        self._is_upsert = load.if_exists == "upsert"
        if self._is_upsert and dialect.upsert is None:
            raise NotSupportedError("this database has no statement for an upsert")
        self._owns = session.transaction == "none"
        self._has_savepoint = not self._owns and dialect.has_savepoints
        if self._owns:
            session.begin()
        elif self._has_savepoint:
            session.execute(f"SAVEPOINT {self._rows}")
        try:
            self._begin(load.columns, load.if_exists, load.types)
        except BaseException:
            self.abort()
            raise

    def _begin(self, columns: object, if_exists: str, types: Mapping[str, str]) -> None:
        self._session.stage(self._rows, columns)
        name = self._dialect.quoted_name(self._rows)
        staged = self._dialect.staged.format(name=name, table=literal(self._rows), target=literal(name))
        self._from = [(str(name), str(kind)) for name, kind, *_ in self._session.rows(staged)]
        most = self._dialect.longest
        if long := [name for name in self._path if most is not None and len(name.encode()) > most]:
            message = f"the name {long[0]!r} has {len(long[0].encode())} bytes, of which the database keeps {most}"
            raise InterfaceError(message)
        if if_exists in {"fail", "replace"}:
            self._make({**self._dialect.new_types(columns), **types}, replaces=if_exists == "replace")
        self._to = self._columns()
        if if_exists == "truncate":
            self._session.execute(f"DELETE FROM {self._target}")
        if self._is_upsert:
            self._check_key()

    def _catalogue(self, query: str) -> list[tuple[Any, ...]]:
        """Give what the catalogue says of the table."""
        query = query.format(schema=self._schema, table=self._table, target=literal(self._target))
        return self._session.rows(query)

    def _make(self, types: Mapping[str, str], *, replaces: bool) -> None:
        if self._catalogue(self._dialect.columns):
            if not replaces:
                raise ProgrammingError(f"the table {self._name} is there already", hint=EXISTS)
            self._session.execute(f"DROP TABLE {self._target}")
        lines = []
        for name, kind in self._from:
            native = types.get(name) or (self._dialect.text if kind == self._dialect.null else kind)
            lines.append(f"{self._dialect.quoted_name(name)} {native}{' NOT NULL' if name in self._required else ''}")
        if self._key:
            lines.append(f"PRIMARY KEY ({self._quoted_names(self._key)})")
        self._session.execute(f"CREATE TABLE {self._target} ({', '.join(lines)})")

    def _quoted_names(self, names: Sequence[str]) -> str:
        return ", ".join(map(self._dialect.quoted_name, names))

    def _columns(self) -> list[tuple[str, str]]:
        """Give the table's name and type of each column of the data."""
        found = [(str(name), str(kind), *more) for name, kind, *more in self._catalogue(self._dialect.columns)]
        if not found:
            raise ProgrammingError(f"there is no table {self._name}", hint=MISSING)
        names, own = [name for name, _ in self._from], [name for name, *_ in found]
        # Where letters count, a name is exact.
        known = {column[0].lower(): column for column in found} | {column[0]: column for column in found}
        columns = match_columns(self._name, names, known, str.lower, own)
        if generated := [name for name, _, is_generated, _ in columns if is_generated]:
            raise ProgrammingError(f"the table {self._name} generates {', '.join(generated)}: leave it out of the data")
        self._needed = {name for name, _, _, nullable in columns if not nullable}
        return [(name, kind) for name, kind, *_ in columns]

    def _check_key(self) -> None:
        keys = [(number, str(name).lower()) for number, name in self._catalogue(self._dialect.keys)]
        check_unique(self._name, self._key, keys, {name.lower() for name in self._key})

    def push(self, frame: object, before: int) -> None:
        """Write rows; raises ``DataError`` for a value that the column does not hold exactly."""
        self._session.stage(self._rows, frame)
        columns = list(zip(self._from, self._to, strict=True))
        for (name, kind), (to, native) in columns:
            self._check(name, kind, to, native, before)
        values = ", ".join(self._cast(name, kind, native) for (name, kind), (_, native) in columns)
        stored = self._session.execute(
            f"INSERT INTO {self._target} ({self._quoted_names([to for to, _ in self._to])}) "
            f"SELECT {values} FROM {self._source()}"
        )
        if stored is None or self._is_upsert:
            return
        ((count,),) = self._session.rows(f"SELECT count(*) FROM {self._rows}")
        if stored != count:
            raise DataError(f"of {count} rows the table took {stored}", hint=_LEFT_OUT)

    def _cast(self, name: str, kind: str, native: str) -> str:
        """Give a staged column as the type of the table's."""
        column = self._dialect.quoted_name(name)
        return column if kind == native else self._dialect.cast.format(column, native)

    def _source(self) -> str:
        """Give the staged rows, of which an upsert takes the last of equal keys."""
        if not self._is_upsert or self._dialect.upsert is None:
            return self._rows
        keys = self._quoted_names(self._key)
        wanted = {name.lower() for name in self._key}
        changes = [self._dialect.quoted_name(name) for name, _ in self._to if name.lower() not in wanted]
        end = self._dialect.upsert if changes else self._dialect.upsert_of_keys
        return (
            f"(SELECT *, row_number() OVER (PARTITION BY {keys} ORDER BY {self._rows}_n DESC) AS {self._rows}_r "
            f"FROM (SELECT *, row_number() OVER () AS {self._rows}_n FROM {self._rows}) AS numbered) AS ranked "
            f"WHERE {self._rows}_r = 1 "
            + end.format(keys=keys, changes=", ".join(map(self._dialect.change.format, changes)))
        )

    def _check(self, name: str, kind: str, to: str, native: str, before: int) -> None:
        """Raise for the first value that would change, and for a NULL where none can be."""
        column, tests = self._dialect.quoted_name(name), []
        if to in self._needed or name in self._key:
            tests.append(f"{column} IS NULL")
        self._check_zones(name, kind, native)
        if (lossy := self._dialect.lossy(self._dialect, column, kind, native)) is not None:
            tests.append(lossy)
        if not tests:
            return
        query = (
            f"SELECT n, CAST(v AS {self._dialect.text}) FROM (SELECT row_number() OVER () - 1 AS n, {column} AS v, "
            f"{' OR '.join(tests)} AS is_lossy FROM {self._rows}) AS tested WHERE is_lossy LIMIT 1"
        )
        for row, value in self._session.rows(query):
            message = "NULL in a column that must have a value" if value is None else misfit(value, kind, native)
            raise DataError(message, column=name, row=before + int(row), native_type=native.lower())

    def _check_zones(self, name: str, kind: str, native: str) -> None:
        if "TIMESTAMP" in kind.upper() and "TIMESTAMP" in native.upper() and _is_zoned(kind) != _is_zoned(native):
            message = f"{kind.lower()} would become {native.lower()} by the session's time zone"
            raise NotSupportedError(message, column=name)

    def commit(self) -> None:
        """Make the rows the table's, unless a transaction of the caller's is open."""
        self._session.unstage(self._rows)
        if self._owns:
            self._session.commit()
        elif self._has_savepoint:
            self._session.execute(f"RELEASE SAVEPOINT {self._rows}")

    def abort(self) -> None:
        """Leave the table as it was, and a transaction of the caller's too, where the database has savepoints."""
        if self._owns and self._session.transaction != "none":
            self._session.rollback()
        elif self._has_savepoint:
            self._has_savepoint = False
            # A driver may take nothing but the rollback of the whole, as PostgreSQL's ADBC driver after an error.
            with contextlib.suppress(Error):
                self._session.execute(f"ROLLBACK TO SAVEPOINT {self._rows}")
                self._session.execute(f"RELEASE SAVEPOINT {self._rows}")
                self._session.transaction = "open"


class HiddenTableLoader(TableLoader):
    """Rows on their way through a table of their own, where there are no transactions.

    It becomes the new table in the end, or the table gets its rows.
    """

    #: The table that is dropped in the end.
    _hidden: str | None = None

    def _look(self, if_exists: str) -> None:
        """Look whether there is a table."""
        self._mode, self._is_there = if_exists, bool(self._catalogue(self._dialect.columns))
        if if_exists == "fail" and self._is_there:
            raise ProgrammingError(f"the table {self._name} is there already", hint=EXISTS)

    def abort(self) -> None:
        """Leave the table as it was."""
        with contextlib.suppress(Error):
            self._drop()
        super().abort()

    def _drop(self) -> None:
        hidden, self._hidden = self._hidden, None
        if hidden is not None:
            self._change(f"DROP TABLE IF EXISTS {hidden}")

    def _change(self, statement: str) -> None:
        """Run a statement that comes to its end, whatever is cancelled."""
        with self._session.connection.interruption.suspend():
            self._session.execute(statement)


def match_columns(
    table: str, names: Sequence[str], known: Mapping[str, T], fold: Callable[[str], str], own: Iterable[str]
) -> list[T]:
    """Give the table's column for each of the data's, by its name or by that as the database folds it."""
    found = {name: known.get(name, known.get(fold(name))) for name in names}
    if unknown := [name for name, column in found.items() if column is None]:
        message = f"the table {table} has no column {', '.join(map(repr, unknown))}"
        raise ProgrammingError(message, hint=f"it has {', '.join(own)}")
    columns = [column for name in names if (column := found[name]) is not None]
    if len({*map(id, columns)}) < len(columns):
        raise ProgrammingError("the data has two columns that the table does not tell apart")
    return columns


def check_unique(table: str, key: Sequence[str], found: Iterable[tuple[Any, str]], wanted: set[str]) -> None:
    """Refuse a key that is not one of the table's, which are told by a number and one of their columns."""
    keys = defaultdict(set)
    for number, name in found:
        keys[number].add(name)
    if wanted not in keys.values():
        raise ProgrammingError(f"the table {table} has no unique index on {', '.join(key)}", hint=_UNIQUE)


def _is_zoned(kind: str) -> bool:
    # Within an array or a struct, too.
    return "WITH TIME ZONE" in kind.upper()


def misfit(value: str, kind: str, native: str) -> str:
    """Say that a value does not fit."""
    is_date = "DATE" in native.upper() and "TIME" not in native.upper()
    if is_date and any(word in kind.upper() for word in ("TIMESTAMP", "DATETIME")):
        return f"{value} has a time of day, which a date has not"
    return f"{value} does not fit {native.lower()} exactly"
