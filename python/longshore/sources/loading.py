"""Rows into a table by SQL: in one transaction, and each value as it was or a word about it."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from longshore.errors import DataError, NotSupportedError, ProgrammingError

_EXISTS = 'if_exists="append" adds to it, "replace" makes another'
_MISSING = 'if_exists="fail" makes it'
_UNIQUE = "make a unique index on these columns, or name the primary key"
#: Types without a value that a cast could change.
_WIDE = {"VARCHAR", "JSON"}


class Engine(Protocol):
    """A session that loads by SQL."""

    transaction: Literal["none", "open", "failed"]

    def execute(self, query: str, params: Any = None) -> int | None:
        """Run one statement."""

    def rows(self, query: str, params: Any = None) -> list[tuple[Any, ...]]:
        """Give the rows of a query."""

    def register(self, name: str, frame: object) -> None:
        """Make a frame a table."""

    def begin(self) -> None:
        """Begin a transaction."""

    def commit(self) -> None:
        """End it."""

    def rollback(self) -> None:
        """Undo it."""


class TableLoader:
    """Rows on their way into a table."""

    def __init__(
        self,
        engine: Engine,
        *,
        schema: str | None,
        table: str,
        columns: object,
        required: Sequence[str],
        if_exists: str,
        key: Sequence[str],
        types: Mapping[str, str],
    ) -> None:
        """Make the table, or look at the one that is there."""
        self._engine, self._key, self._required = engine, list(key), {*required}
        self._schema, self._table, self._name = schema, table, table if schema is None else f"{schema}.{table}"
        self._target = ".".join(map(quoted, (schema, table) if schema is not None else (table,)))
        self._rows = f"longshore_{secrets.token_hex(8)}"
        self._is_upsert = if_exists == "upsert"
        self._owns = engine.transaction == "none"
        if self._owns:
            engine.begin()
        try:
            engine.register(self._rows, columns)
            self._from = [(str(name), str(kind)) for name, kind, *_ in engine.rows(f"DESCRIBE {self._rows}")]
            if if_exists in {"fail", "replace"}:
                self._make(types, replaces=if_exists == "replace")
            self._to = self._columns()
            if if_exists == "truncate":
                engine.execute(f"DELETE FROM {self._target}")  # noqa: S608  the name is quoted
            if self._is_upsert:
                self._check_key()
        except BaseException:
            self.abort()
            raise

    def _catalogue(self, query: str) -> list[tuple[Any, ...]]:
        """Give what a function of the catalogue says of the table."""
        schema = "current_schema()" if self._schema is None else "?"
        where = f"database_name = current_database() AND schema_name = {schema} AND lower(table_name) = lower(?)"
        params = [self._table] if self._schema is None else [self._schema, self._table]
        return self._engine.rows(f"{query} WHERE {where}", params)

    def _described(self) -> list[tuple[Any, ...]]:
        return self._catalogue(
            "SELECT column_name, data_type, generation_expression, is_nullable FROM duckdb_columns()"
        )

    def _make(self, types: Mapping[str, str], *, replaces: bool) -> None:
        if self._described():
            if not replaces:
                message = f"the table {self._name} is there already\nHint: {_EXISTS}"
                raise ProgrammingError(message, hint=_EXISTS)
            self._engine.execute(f"DROP TABLE {self._target}")
        lines = []
        for name, kind in self._from:
            native = types.get(name) or ("VARCHAR" if kind == '"NULL"' else kind)
            lines.append(f"{quoted(name)} {native}{' NOT NULL' if name in self._required else ''}")
        if self._key:
            lines.append(f"PRIMARY KEY ({', '.join(map(quoted, self._key))})")
        self._engine.execute(f"CREATE TABLE {self._target} ({', '.join(lines)})")

    def _columns(self) -> list[tuple[str, str]]:
        """Give the table's name and type of each column of the data."""
        described = {str(name).lower(): (str(name), str(kind), *more) for name, kind, *more in self._described()}
        if not described:
            message = f"there is no table {self._name}\nHint: {_MISSING}"
            raise ProgrammingError(message, hint=_MISSING)
        unknown = [name for name, _ in self._from if name.lower() not in described]
        if unknown:
            hint = f"it has {', '.join(name for name, *_ in described.values())}"
            message = f"the table {self._name} has no column {', '.join(map(repr, unknown))}\nHint: {hint}"
            raise ProgrammingError(message, hint=hint)
        found = [described[name.lower()] for name, _ in self._from]
        if generated := [name for name, _, expression, _ in found if expression]:
            message = f"the table {self._name} generates {', '.join(generated)}: leave it out of the data"
            raise ProgrammingError(message)
        if len({name for name, *_ in found}) < len(found):
            message = "the data has two columns that the table does not tell apart"
            raise ProgrammingError(message)
        self._needed = {name for name, _, _, nullable in found if not nullable}
        return [(name, kind) for name, kind, *_ in found]

    def _check_key(self) -> None:
        query = "SELECT constraint_column_names::VARCHAR[], constraint_type FROM duckdb_constraints()"
        wanted = {name.lower() for name in self._key}
        rows = [row for row in self._catalogue(query) if row[1] in {"PRIMARY KEY", "UNIQUE"}]
        uniques = [{str(name).lower() for name in names} for names, _ in rows]
        if wanted not in uniques:
            message = f"the table {self._name} has no unique index on {', '.join(self._key)}\nHint: {_UNIQUE}"
            raise ProgrammingError(message, hint=_UNIQUE)

    def push(self, frame: object, before: int) -> None:
        """Write rows; raises ``DataError`` for a value that the column does not hold exactly."""
        self._engine.register(self._rows, frame)
        for (name, kind), (to, native) in zip(self._from, self._to, strict=True):
            self._check(name, kind, to, native, before)
        names = ", ".join(quoted(name) for name, _ in self._to)
        own = ", ".join(quoted(name) for name, _ in self._from)
        if not self._is_upsert:
            self._engine.execute(f"INSERT INTO {self._target} ({names}) SELECT {own} FROM {self._rows}")  # noqa: S608
            return
        # The last of equal keys wins.
        keys = ", ".join(map(quoted, self._key))
        wanted = {name.lower() for name in self._key}
        changes = ", ".join(
            f"{quoted(name)} = excluded.{quoted(name)}" for name, _ in self._to if name.lower() not in wanted
        )
        self._engine.execute(
            f"INSERT INTO {self._target} ({names}) SELECT {own} FROM "  # noqa: S608  the names are quoted
            f"(SELECT *, row_number() OVER () AS {self._rows} FROM {self._rows}) "
            f"QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY {self._rows} DESC) = 1 "
            f"ON CONFLICT ({keys}) DO {f'UPDATE SET {changes}' if changes else 'NOTHING'}"
        )

    def _check(self, name: str, kind: str, to: str, native: str, before: int) -> None:
        """Raise for the first value that would change, and for a NULL where none can be."""
        column, tests = quoted(name), []
        if to in self._needed or name in self._key:
            tests.append(f"{column} IS NULL")
        if kind not in {native, '"NULL"'} and native not in _WIDE:
            tests.append(_is_lossy(name, kind, native))
        if not tests:
            return
        query = (
            f"SELECT n, v::VARCHAR FROM (SELECT row_number() OVER () - 1 AS n, {column} AS v, "  # noqa: S608  quoted
            f"{' OR '.join(tests)} AS is_lossy FROM {self._rows}) WHERE is_lossy LIMIT 1"
        )
        for row, value in self._engine.rows(query):
            message = "NULL in a column that must have a value" if value is None else _misfit(value, kind, native)
            raise DataError(message, column=name, row=before + row, native_type=native.lower())

    def commit(self) -> None:
        """Make the rows the table's, unless a transaction of the caller's is open."""
        self._engine.execute(f"DROP VIEW IF EXISTS {self._rows}")
        if self._owns:
            self._engine.commit()

    def abort(self) -> None:
        """Leave the table as it was; a transaction of the caller's has to be rolled back."""
        if self._owns and self._engine.transaction != "none":
            self._engine.rollback()


def _is_lossy(name: str, kind: str, native: str) -> str:
    """Give the condition of a value that does not come back as it was."""
    zone = "WITH TIME ZONE"
    if "TIMESTAMP" in kind and "TIMESTAMP" in native and (zone in kind) != (zone in native):
        message = f"{kind.lower()} would become {native.lower()} by the session's time zone"
        raise NotSupportedError(message, column=name)
    before, after = quoted(name), f"TRY_CAST(TRY_CAST({quoted(name)} AS {native}) AS {kind})"
    if kind == "VARCHAR" and native.startswith(("DECIMAL", "DOUBLE", "FLOAT")):
        # 1.50 is 1.5.
        short = "CASE WHEN contains({0}, '.') THEN rtrim(rtrim({0}, '0'), '.') ELSE {0} END"
        before, after = short.format(before), short.format(after)
    return f"{after} IS DISTINCT FROM {before}"


def _misfit(value: str, kind: str, native: str) -> str:
    if native == "DATE" and kind.startswith("TIMESTAMP"):
        return f"{value} has a time of day, which a date has not"
    return f"{value} does not fit {native.lower()} exactly"


def quoted(name: str) -> str:
    """Give a name in quotes."""
    return '"' + name.replace('"', '""') + '"'
