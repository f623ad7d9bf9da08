"""Rows into a table of MariaDB's or MySQL's, whose CAST knows few types, and whose changes of tables commit.

Staged rows go into a temporary table of the target's types and back into one of their own. What comes back as another
value would change.
"""

import contextlib
import datetime as dt
import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from longshore import _core
from longshore.errors import DataError, Error, IntegrityError, NotSupportedError, OperationalError, ProgrammingError
from longshore.odbc.parameters import execute_all
from longshore.sources.arrow import ingest
from longshore.sources.dialects import Dialect
from longshore.sources.loading import EXISTS, TableLoader, misfit

if TYPE_CHECKING:
    from longshore.sources.odbc import Session

_MODES = "STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION"
_TRANSACTIONAL = {"innodb", "rocksdb", "ndbcluster", "tokudb"}
_UNDONE = 'a failure would leave some of the rows: ALTER TABLE ... ENGINE=InnoDB first, or if_exists="replace"'
_COMMITS = 'commit first, or write with if_exists="append", "truncate" or "upsert"'
_KEEPS_TABLE = 'if_exists="truncate" or "upsert" keeps the table'
_FOUND = "the server updates the row that any unique index finds: drop it, or make it the key"
#: The server's words of a value that it refuses.
_REFUSED = re.compile(r"column (?:`[^`]*`\.`[^`]*`\.)?[`'](.*)[`'] at row (\d+)")
#: A number's text without the zeros at its end.
_SHORT = "CASE WHEN {0} LIKE '%.%' THEN trim(TRAILING '.' FROM trim(TRAILING '0' FROM {0})) ELSE {0} END"
_IN_CATALOGUE = "WHERE table_schema = {schema} AND table_name = {table}"

MARIADB = Dialect(
    name="mariadb",
    staged="",
    columns="SELECT column_name, column_type, extra LIKE '%GENERATED' OR extra LIKE '%PERSISTENT', "
    f"is_nullable = 'YES' FROM information_schema.columns {_IN_CATALOGUE} ORDER BY ordinal_position",
    keys=f"SELECT index_name, column_name FROM information_schema.statistics {_IN_CATALOGUE} AND non_unique = 0 AND "
    f"index_name NOT IN (SELECT index_name FROM information_schema.statistics {_IN_CATALOGUE} "
    "AND (sub_part IS NOT NULL OR column_name IS NULL))",
    catalogue=_core.CATALOGUES["mysql"],
    schema="database()",
    text="LONGTEXT",
    quote="`",
    lossy=lambda _dialect, _column, _kind, _native: None,
)


class MariaDBLoader(TableLoader):
    """Rows on their way into a table."""

    _session: "Session"
    _dialect: Dialect
    #: The statements that end the write, and the table that becomes the new one.
    _ends: tuple[str, ...] = ()
    _new: str | None = None

    def _begin(self, columns: object, if_exists: str, types: Mapping[str, str]) -> None:
        session, path = self._session, self._path
        self._schema, self._table = "database()" if len(path) == 1 else _literal(path[0]), _literal(path[-1])
        self._number, self._typed, self._back = (f"{self._rows}_{what}" for what in ("n", "typed", "back"))
        if if_exists in {"fail", "replace"} and not self._owns:
            raise ProgrammingError("a new table would commit the open transaction", hint=_COMMITS)
        ((modes, version),) = session.rows("SELECT @@sql_mode, version()")
        session.execute(f"SET sql_mode = '{_MODES}'")
        dropped = f"{self._rows}, {self._typed}, {self._back}"
        self._ends = (f"DROP TEMPORARY TABLE IF EXISTS {dropped}", f"SET sql_mode = {_literal(modes)}")
        empty = ingest(columns, self._dialect).schema.empty_table()
        self._from = _core.mysql_columns(empty, version)
        if if_exists in {"fail", "replace"}:
            self._make_hidden(empty, types, version, replaces=if_exists == "replace")
        elif (engine := self._engine()) is not None and engine not in _TRANSACTIONAL:
            raise NotSupportedError(f"{self._name} has the engine {engine}, which takes no row back", hint=_UNDONE)
        self._to = self._columns()
        for (name, kind), (_, native) in zip(self._from, self._to, strict=True):
            _check_kinds(name, kind, native)
        self._make_temporary()
        if if_exists == "truncate":
            session.execute(f"DELETE FROM {self._target}")
        if self._is_upsert:
            self._check_key()

    def _engine(self) -> str | None:
        """Give the table's engine; None where there is no table."""
        query = "SELECT table_type, engine FROM information_schema.tables " + _IN_CATALOGUE
        for kind, engine in self._catalogue(query):
            if str(kind) != "BASE TABLE":
                raise NotSupportedError(f"{self._name} is not a table", hint=_NAMED)
            return str(engine).lower()
        return None

    def _catalogue(self, query: str) -> list[tuple[Any, ...]]:
        return self._session.rows(query.format(schema=self._schema, table=self._table))

    def _make_hidden(self, empty: pa.Table, types: Mapping[str, str], version: str, *, replaces: bool) -> None:
        """Make a table that gets its name at the end; no other write of this name is on its way then."""
        session, final = self._session, self._target
        ((database,),) = session.rows(f"SELECT {self._schema}")
        hidden = "longshore_" + hashlib.sha256(f"{database}.{self._path[-1]}".lower().encode()).hexdigest()[:32]
        if session.rows(f"SELECT GET_LOCK('{hidden}', 86400)") != [(1,)]:
            raise OperationalError(f"another session is writing a new table {self._name}")
        self._ends = (*self._ends, f"DO RELEASE_LOCK('{hidden}')")
        self._is_there = self._engine() is not None
        if self._is_there and not replaces:
            raise ProgrammingError(f"the table {self._name} is there already", hint=EXISTS)
        self._check_references()
        new, old = (self._dialect.quoted_name(*self._path[:-1], hidden + what) for what in ("", "_old"))
        # Of a write whose connection was lost.
        session.execute(f"DROP TABLE IF EXISTS {new}, {old}")
        self._final, self._old, self._new = final, old, new
        self._target, self._table = new, _literal(hidden)
        schema = None if len(self._path) == 1 else self._path[0]
        session.execute(_core.mysql_new_table(empty, schema, hidden, self._key, [*types.items()], version))

    def _check_references(self) -> None:
        found = self._catalogue(
            "SELECT constraint_name, table_name FROM information_schema.referential_constraints "
            "WHERE unique_constraint_schema = {schema} AND referenced_table_name = {table} "
            "AND NOT (constraint_schema = {schema} AND table_name = {table})"
        )
        if found:
            keys = ", ".join(f"{table} ({name})" for name, table in found)
            raise IntegrityError(f"foreign keys point at {self._name}: {keys}", hint=_KEEPS_TABLE)

    def _make_temporary(self) -> None:
        """Make tables of the rows' own types and of the target's; in one that is there, a TIMESTAMP may be NULL."""
        quoted, number = self._dialect.quoted_name, f"{self._number} BIGINT DEFAULT 0 PRIMARY KEY"
        columns = [f"{quoted(name)} {kind}{' NULL' if kind == 'TIMESTAMP(6)' else ''}" for name, kind in self._from]
        for name in (self._rows, self._back):
            self._session.execute(
                f"CREATE TEMPORARY TABLE {name} ({', '.join([number, *columns])}) DEFAULT CHARACTER SET utf8mb4"
            )
        targets = self._quoted_names([to for to, _ in self._to])
        self._session.execute(
            f"CREATE TEMPORARY TABLE {self._typed} ({number}) SELECT {targets} FROM {self._target} LIMIT 0"
        )

    def _check_key(self) -> None:
        super()._check_key()
        wanted = {name.lower() for name in self._key}
        counted = "SELECT column_name FROM information_schema.columns " + _IN_CATALOGUE
        written = {to.lower() for to, _ in self._to}
        # A number that the server counts is new.
        new = {str(name).lower() for (name,) in self._catalogue(counted + " AND extra = 'auto_increment'")} - written
        query = "SELECT index_name, column_name FROM information_schema.statistics " + _IN_CATALOGUE
        indexes: dict[str, set[str]] = {}
        for name, column in self._catalogue(query + " AND non_unique = 0"):
            indexes.setdefault(str(name), set()).add(str(column).lower())
        for name, columns in indexes.items():
            if not wanted <= columns and not new & columns:
                message = f"{self._name} has another unique index, which could find another row than the key: {name}"
                raise ProgrammingError(message, hint=_FOUND)

    def _rows_of(self, frame: object) -> pa.Table:
        """Give rows as they are staged; raises ``DataError`` for a value that no column of the server's has."""
        table = ingest(frame, self._dialect)
        for at, field in enumerate(table.schema):
            column = _plain(table.column(at), field.name)
            table = table.set_column(at, field.with_type(column.type), column)
        return table

    def push(self, frame: object, before: int) -> None:
        """Write rows; raises ``DataError`` for a value that the column does not hold exactly."""
        try:
            table = self._rows_of(frame)
            self._check_nulls(table)
            self._fill(table)
        except DataError as error:
            if error.row is not None:
                error.row += before
            raise
        if all(kind.lower() == native.lower() for (_, kind), (_, native) in zip(self._from, self._to, strict=True)):
            source = self._rows
        else:
            self._convert(before)
            source = self._typed
        names = self._quoted_names([to for to, _ in self._to])
        read = self._quoted_names([name for name, _ in (self._from if source == self._rows else self._to)])
        end = self._changes() if self._is_upsert else ""
        stored = self._session.execute(
            f"INSERT INTO {self._target} ({names}) SELECT {read} FROM {source} ORDER BY {self._number}{end}"
        )
        if stored != table.num_rows and not self._is_upsert:
            raise DataError(f"of {table.num_rows} rows the table took {stored}")

    def _check_nulls(self, table: pa.Table) -> None:
        for at, (to, native) in enumerate(self._to):
            name, column = self._from[at][0], table.column(at)
            if column.null_count and (to in self._needed or name in self._key):
                row = pc.index(pc.is_null(column), value=True).as_py()
                raise DataError("NULL in a column that must have a value", column=name, row=row, native_type=native)

    def _fill(self, table: pa.Table) -> None:
        """Stage rows, with their numbers."""
        session = self._session
        session.execute(f"DELETE FROM {self._rows}")
        table = table.add_column(0, self._number, pa.array(range(table.num_rows), pa.int64()))
        with session.running():
            cursor = session.open_cursor()
            cursor.prepare(f"INSERT INTO {self._rows} VALUES ({', '.join('?' * table.num_columns)})")
            for batch in table.to_batches():
                execute_all(cursor, batch, is_utc=True)
        ((count,),) = session.rows(f"SELECT count(*) FROM {self._rows}")
        if count != table.num_rows:
            raise DataError(f"of {table.num_rows} rows the driver staged {count}")

    def _convert(self, before: int) -> None:
        """Make the target's types of staged rows; raises ``DataError`` for the first value that is not itself then."""
        froms, tos = (self._quoted_names([name for name, _ in pairs]) for pairs in (self._from, self._to))
        session, number = self._session, self._number
        session.execute(f"DELETE FROM {self._typed}")
        into = f"INSERT INTO {self._typed} ({number}, {tos}) SELECT {number}, {froms} FROM {self._rows}"
        try:
            session.execute(f"{into} ORDER BY {number}")
        except Error as error:
            raise self._locate(error, before) from None
        session.execute(f"DELETE FROM {self._back}")
        session.execute("SET sql_mode = ''")
        session.execute(f"INSERT INTO {self._back} ({number}, {froms}) SELECT {number}, {tos} FROM {self._typed}")
        session.execute(f"SET sql_mode = '{_MODES}'")
        for (name, kind), (_, native) in zip(self._from, self._to, strict=True):
            self._compare(name, kind, native, before)

    def _locate(self, error: Error, before: int) -> Error:
        """Give the server's error with the column and the row that it tells."""
        if (found := _REFUSED.search(str(error))) is None:
            return error
        names = {to.lower(): (name, native) for (name, _), (to, native) in zip(self._from, self._to, strict=True)}
        name, native = names.get(found[1].lower(), (found[1], None))
        row = before + int(found[2]) - 1
        return DataError(str(error), sqlstate=error.sqlstate, column=name, row=row, native_type=native)

    def _compare(self, name: str, kind: str, native: str, before: int) -> None:
        if kind.lower() == native.lower():
            return
        column = self._dialect.quoted_name(name)
        one, other = f"s.{column}", f"b.{column}"
        if kind in {"LONGTEXT", "JSON"}:
            if _family(native) in {"number", "date", "datetime", "timestamp", "time"}:
                one, other = map(_SHORT.format, (one, other))
            # Of texts, each letter and each space counts.
            one, other = f"BINARY {one}", f"BINARY {other}"
        lossy = f"NOT ({one} <=> {other})"
        if kind in {"FLOAT", "DOUBLE"} and native.lower().startswith("bigint"):
            # The double after the greatest integer becomes that one without a word, and itself again.
            lossy += f" OR s.{column} >= {'18446744073709551615' if 'unsigned' in native else '9223372036854775807'}e0"
        rows = self._session.rows(
            f"SELECT s.{self._number}, CAST(s.{column} AS CHAR) FROM {self._rows} AS s JOIN {self._back} AS b "
            f"ON s.{self._number} = b.{self._number} WHERE {lossy} ORDER BY 1 LIMIT 1"
        )
        for row, value in rows:
            raise DataError(misfit(value, kind, native), column=name, row=before + int(row), native_type=native)

    def _changes(self) -> str:
        wanted = {name.lower() for name in self._key}
        quoted = self._dialect.quoted_name
        changes = [f"{quoted(to)} = VALUES({quoted(to)})" for to, _ in self._to if to.lower() not in wanted]
        same = f"{self._target}.{quoted(self._key[0])}"
        return f" ON DUPLICATE KEY UPDATE {', '.join(changes) or f'{same} = {same}'}"

    def commit(self) -> None:
        """Make the rows the table's, unless a transaction of the caller's is open."""
        if self._owns:
            self._session.commit()
        else:
            self._session.execute(f"RELEASE SAVEPOINT {self._rows}")
            self._has_savepoint = False
        if self._new is not None:
            self._take_place(self._new)
        self._end()

    def _take_place(self, new: str) -> None:
        """Give the new table its name, in one step with the one that had it."""
        swap = f"{self._final} TO {self._old}, " if self._is_there else ""
        self._session.execute(f"RENAME TABLE {swap}{new} TO {self._final}")
        try:
            if self._is_there:
                self._session.execute(f"DROP TABLE {self._old}")
        except Error:
            self._session.execute(f"RENAME TABLE {self._final} TO {new}, {self._old} TO {self._final}")
            raise
        self._new = None

    def abort(self) -> None:
        """Leave the table as it was."""
        with contextlib.suppress(Error):
            super().abort()
        self._end()

    def _end(self) -> None:
        """Leave the session as it was, and nothing of the write."""
        ends = self._ends if self._new is None else (f"DROP TABLE IF EXISTS {self._new}", *self._ends)
        self._ends, self._new = (), None
        for statement in ends:
            with contextlib.suppress(Error):
                self._session.execute(statement)


_NAMED = "name the table that a view shows, or another name"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


_NUMBERS = {"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "year", "bit"}
_BYTES = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}


def _family(native: str) -> str:
    """Give what a type's values are: numbers, bytes, or else the name of the type itself, or text."""
    name = re.split(r"[^a-z0-9]", native.lower(), maxsplit=1)[0]
    if name in _NUMBERS:
        return "number"
    if name in _BYTES:
        return "bytes"
    return name if name in {"date", "datetime", "timestamp", "time", "enum", "set", "uuid"} else "text"


#: The kinds of values that become those of others: a TIME would get today's date, a number choose a label.
_BECOMES = {
    "number": {"text"},
    "bytes": {"text", "uuid"},
    "date": {"text", "datetime"},
    "datetime": {"text", "date"},
    "time": {"text"},
    "timestamp": set(),
    "uuid": {"text", "bytes"},
    "text": {"number", "bytes", "date", "datetime", "timestamp", "time", "enum", "set", "uuid"},
}


def _check_kinds(name: str, kind: str, native: str) -> None:
    before, after = _family(kind), _family(native)
    is_bits = native.lower().startswith("bit") and before == "text"
    if is_bits or (before != after and after not in _BECOMES[before]):
        raise NotSupportedError(f"{kind.lower()} does not become {native}", column=name, native_type=native)


_FIRST, _LAST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001  naive
_SPAN = dt.timedelta(hours=838, minutes=59, seconds=59, microseconds=999999)
_EPOCH = dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC), dt.datetime(2038, 1, 19, 3, 14, 7, 999999, tzinfo=dt.UTC)


def _plain(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Give a column in a form that the driver takes, of values that the server has."""
    kind = column.type
    if pa.types.is_floating(kind):
        _refuse(pc.invert(pc.is_finite(column)), name, "the server has neither NaN nor infinity")
    elif limits := _limits(kind):
        first, last = (pa.scalar(limit, kind) for limit in limits)
        why = f"a value that is not from {limits[0]} to {limits[1]}, as the server's are"
        _refuse(pc.or_(pc.less(column, first), pc.greater(column, last)), name, why)
    if pa.types.is_duration(kind):
        spans = pa.RecordBatch.from_arrays([column.cast(pa.duration("us")).combine_chunks()], [name])
        return pa.chunked_array([pa.array(_core.file_texts(spans, as_json=False)[0], pa.string())])
    return column.cast(pa.large_binary()) if str(kind) == "binary_view" else column


def _limits(kind: pa.DataType) -> tuple[Any, Any] | None:
    if pa.types.is_timestamp(kind):
        return (_FIRST, _LAST) if kind.tz is None else _EPOCH
    if pa.types.is_date(kind):
        return _FIRST.date(), _LAST.date()
    return (-_SPAN, _SPAN) if pa.types.is_duration(kind) else None


def _refuse(is_refused: Any, name: str, why: str) -> None:
    row = pc.index(is_refused, value=True).as_py()
    if row >= 0:
        raise DataError(why, column=name, row=row)
