"""The tables of a store as DuckDB sees them: empty ones that its catalogue has, and views of the rows.

The empty tables have the columns, types, keys, constraints and defaults, so that all rules are the engine's own; they
stand in the schema main of its database. A statement reads the rows by temporary views of the same names, which come
first.
"""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from longshore.duckdb.instance import engine, spare
from longshore.duckdb.many import insert_rows, takes_rows_at_once
from longshore.duckdb.parameters import by_parameter_name
from longshore.duckdb.statements import TARGET, names_in, tokens
from longshore.errors import DataError, NotSupportedError, ProgrammingError
from longshore.frames.pushdown import Pushdown, fold_name
from longshore.frames.stored import (
    FORM,
    engine_empty,
    engine_rows,
    is_plain,
    numbered_flags,
    own_schema,
    schema_of,
    without_nulls,
)
from longshore.sources.many import plain_insert, runs
from longshore.texts import quoted_name

if TYPE_CHECKING:
    from longshore._core import StoreScan, StoreTable, StoreTransaction

#: Functions that may read a table that the statement does not name.
_BY_TEXT = {"query", "query_table"}
#: Statements that tell of a table what the view of its rows does not have.
_TELLING = {"describe", "desc", "show"}
#: Comparisons by which the store leaves chunks out.
_OPERATORS = {"=", "<", "<=", ">", ">=", "start"}

_Predicates = list[tuple[str, str, Any]]

#: The engine's name for texts, and that of a column whose type is not told.
_TEXTS = {"VARCHAR", ""}

#: How names begin that are not the user's.
_OURS = "longshore_"

_COLUMNS = """SELECT column_name, data_type, column_default, generation_expression, is_nullable FROM duckdb_columns()
WHERE database_name = 'memory' AND schema_name = 'main' AND table_name = ? ORDER BY column_index"""
_CONSTRAINTS = """SELECT constraint_type, constraint_column_names FROM duckdb_constraints()
WHERE database_name = 'memory' AND schema_name = 'main' AND table_name = ?"""
_DEFINITIONS = "SELECT table_name, sql FROM duckdb_tables() WHERE database_name = 'memory' AND schema_name = 'main'"

_REFUSED = {
    "UNIQUE": "name the columns as the primary key, or check them with a query",
    "FOREIGN KEY": "check it with a query",
}


def shadow(name: str) -> str:
    """Give the name of a store's table in the engine's catalogue, behind the view of its rows."""
    return f"memory.main.{quoted_name(name)}"


@dataclass(frozen=True)
class Column:
    """A column of the engine's."""

    name: str
    kind: str
    default: str | None
    #: The expression of a column that is computed when it is read.
    generated: str | None
    is_nullable: bool


@dataclass
class Table:
    """A table of the store's, and the empty one in the engine's catalogue."""

    stored: "StoreTable"
    mark: object
    columns: list[Column]
    #: Whether the engine scans each column as it is.
    is_plain: bool
    #: The engine's types of its columns as Arrow shows them, so far as they are known.
    shown: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name."""
        return self.stored.name

    @property
    def own(self) -> list[Column]:
        """The columns that are stored."""
        return [each for each in self.columns if each.generated is None]

    @property
    def column_list(self) -> str:
        """Their names, as SQL lists them."""
        return ", ".join(quoted_name(each.name) for each in self.own)


class View(NamedTuple):
    """A view of a table's rows."""

    stored: "StoreTable"
    columns: list[str]
    #: Those by which rows were left out.
    predicates: _Predicates
    #: The columns of texts by which rows are grouped together with others.
    keys: list[str]
    #: Those whose means are asked for.
    means: list[str]
    #: Its label, and what it shows.
    names: list[str]

    def is_same(self, other: "View") -> bool:
        """Whether both show the same rows."""
        is_like = self.columns == other.columns and self.predicates == other.predicates
        is_like &= (self.keys, self.means) == (other.keys, other.means)
        return is_like and self.stored.is_same(other.stored)


class Mirror:
    """The tables of one store in one engine."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        """Keep what gives the engine's connection."""
        self._connect = connect
        #: Whether tables may have been made, altered or dropped since the engine's were.
        self.is_stale = True
        self._version: int | None = None
        self._tables: dict[str, Table] = {}
        #: By their folded labels.
        self._views: dict[str, View] = {}
        self._hidden = 0
        #: The folded names of the session's own tables, and whether it has views or functions, which may read any.
        self._temporary: frozenset[str] = frozenset()
        self._has_views = self._has_functions = False
        #: Whether files are compared with their checksums before they are read.
        self.verifies = False
        #: The chunks that the last statement reads, by the name that it has for the table.
        self.chunks: dict[str, int] = {}

    @property
    def connection(self) -> Any:
        """The engine's connection."""
        return self._connect()

    def renew(self) -> None:
        """Go on over another connection of the engine's, which has none of the session's own tables."""
        self._views = {}
        self._temporary, self._has_views, self._has_functions, self.is_stale = frozenset(), False, False, True

    def run(self, text: str, values: Any = None) -> Any:
        """Run one statement with those of the values that it has parameters for, and give its relation."""
        (statement,) = self.connection.extract_statements(text)
        known = by_parameter_name(values)
        params = {name: known[name] for name in statement.named_parameters if name in known}
        return self.connection.sql(statement, params=params or None)

    def run_many(self, text: str, sets: Sequence[Any]) -> None:
        """Run one statement with each set of values; rows of nothing but parameters go at once."""
        insert = plain_insert(text)
        rows = None if insert is None else insert.rows(sets)
        if insert is not None and rows is not None and takes_rows_at_once(self.connection):
            for run, kinds in runs(rows):
                insert_rows(self.connection, insert, run, kinds)
            return
        (statement,) = self.connection.extract_statements(text)
        for values in sets:
            self.connection.execute(statement, by_parameter_name(values) or None)

    def rows(self, query: str, values: Any = None) -> Any:
        """Give the rows of a query as an Arrow table."""
        return self.run(query, values).to_arrow_table()

    def check(self, statement: Any, values: Any) -> None:
        """Raise ``ProgrammingError`` for values that a statement has no parameters for: its parts run one by one."""
        if more := sorted(by_parameter_name(values).keys() - statement.named_parameters):
            raise ProgrammingError(f"the statement has no parameter {more[0]}, for which there is a value")

    @contextlib.contextmanager
    def scratch(self) -> Iterator[None]:
        """Undo in the end what the engine does here."""
        self.connection.begin()
        try:
            yield
        finally:
            # An interrupt has ended it.
            with contextlib.suppress(engine().Error):
                self.connection.rollback()

    # The engine's catalogue.

    def follow(self, transaction: "StoreTransaction", *, keeps: bool = False) -> None:
        """Have the tables that a transaction sees, and no views of their rows but those that a query ``keeps``."""
        self.chunks = {}
        is_same = not self.is_stale and transaction.version == self._version
        if not (is_same and keeps):
            self.hide()
        if is_same:
            return
        stored = {fold_name(name): transaction.table(name) for name in transaction.tables()}
        tables = {key: (table, _mark(table)) for key, table in stored.items() if table is not None}
        for key, known in list(self._tables.items()):
            if key not in tables or tables[key][1] != known.mark:
                self.connection.execute(f"DROP TABLE IF EXISTS {shadow(known.name)}")
                del self._tables[key]
        for key, (table, mark) in tables.items():
            if key not in self._tables:
                # One that was being made when a deadline ended it.
                self.connection.execute(f"DROP TABLE IF EXISTS {shadow(table.name)}")
                self._make(table)
                self._tables[key] = Table(table, mark, self.columns(table.name), is_plain(table.schema))
            self._tables[key].stored = table
        self._version, self.is_stale = transaction.version, False

    def _make(self, table: "StoreTable") -> None:
        if table.definition is not None:
            self.connection.execute(table.definition)
            return
        schema = schema_of(table.schema)
        self.connection.register(TARGET, engine_empty(schema, table.name))
        name = shadow(table.name)
        self.connection.execute(f"CREATE TABLE {name} AS FROM {TARGET}")
        self.connection.unregister(TARGET)
        for each in schema:
            if not each.nullable:
                self.connection.execute(f"ALTER TABLE {name} ALTER {quoted_name(each.name)} SET NOT NULL")
        if table.key:
            self.connection.execute(f"ALTER TABLE {name} ADD PRIMARY KEY ({', '.join(map(quoted_name, table.key))})")

    def columns(self, name: str) -> list[Column]:
        """Give the columns of a table in the engine's catalogue."""
        return [Column(*row) for row in self.connection.execute(_COLUMNS, [name]).fetchall()]

    def definitions(self) -> dict[str, str]:
        """Give the statements that make the tables of the engine's catalogue, by their names."""
        return dict(self.connection.execute(_DEFINITIONS).fetchall())

    def describe(self, name: str) -> tuple[Any, list[str], list[Column]]:
        """Give the Arrow schema, the key and the columns of a table of the engine's; refuse what is not kept."""
        columns, key = self.columns(name), list[str]()
        for kind, names in self.connection.execute(_CONSTRAINTS, [name]).fetchall():
            if kind in _REFUSED:
                message = f"a store has no {kind} constraint, as {name!r} would have"
                raise NotSupportedError(message, hint=_REFUSED[kind])
            key = names if kind == "PRIMARY KEY" else key
        self._check_definition(name)
        listed = ", ".join(quoted_name(each.name) for each in columns if each.generated is None)
        rows = self.rows(f"SELECT {listed} FROM {shadow(name)} LIMIT 0")
        return own_schema(rows, [each.name for each in columns if not each.is_nullable]), key, columns

    def _check_definition(self, name: str) -> None:
        """Refuse a table that no other session could make, or whose texts are not compared as they are stored."""
        definition = self.definitions()[name]
        if any(each.word == "collate" for each in tokens(definition)):
            hint = "compare with lower(...), or give the query a COLLATE"
            raise NotSupportedError(f"a store has no collations, as {name!r} would have", hint=hint)
        try:
            with spare.connection() as bare:
                bare.execute(definition)
        except engine().Error as error:
            hint = "use the engine's own functions and types"
            message = f"the definition of {name!r} needs what only this session has: {error}"
            raise NotSupportedError(message, hint=hint) from None

    def table(self, name: str) -> Table | None:
        """Give a table of the store's by its name."""
        return self._tables.get(fold_name(name))

    def is_own(self, name: str) -> bool:
        """Whether the session itself has a table or a view of this name, which comes before the store's."""
        return fold_name(name) in self._temporary

    def note_temporary(self) -> None:
        """See what the session has of its own."""
        views = "SELECT view_name FROM duckdb_views() WHERE temporary AND NOT internal"
        own = f"{views} UNION ALL SELECT table_name FROM duckdb_tables() WHERE temporary"
        names = {name for (name,) in self.connection.execute(own).fetchall()}.difference(self._view_names())
        self._temporary = frozenset(map(fold_name, names))
        self._has_views = self._has_own(views)

    def note_functions(self) -> None:
        """See which functions the session has of its own: to list the engine's takes longer than most statements."""
        self._has_functions = self._has_own("SELECT function_name FROM duckdb_functions() WHERE NOT internal")

    def _has_own(self, query: str) -> bool:
        names = {name for (name,) in self.connection.execute(query).fetchall()}.difference(self._view_names())
        return any(not name.startswith(_OURS) for name in names)

    # The views of rows.

    def show(self, transaction: "StoreTransaction", text: str, values: Any) -> None:
        """Make the rows of all tables that a statement may read visible."""
        first, *_ = words = [each.word for each in tokens(text)] or [""]
        named, reads_all = names_in(text), self._has_views or self._has_functions or not _BY_TEXT.isdisjoint(words)
        # What it reads may be the engine's catalogue.
        self.hide([key for key in self._views if first in _TELLING or key not in named])
        if first in _TELLING:
            return
        _refuse_hidden(text, self._tables)
        for key, table in self._tables.items():
            if (reads_all or key in named) and not self.is_own(key):
                pushdown = Pushdown() if reads_all else self._pushdown(table.name, text, values)
                self._register(table.name, table, transaction, pushdown)

    def show_target(self, transaction: "StoreTransaction", table: Table, text: str, values: Any) -> None:
        """Make the rows that a statement changes visible to it, with their positions."""
        self._register(TARGET, table, transaction, self._pushdown(TARGET, text, values))

    def _pushdown(self, label: str, text: str, values: Any) -> Pushdown:
        # A write reads no query.
        from longshore.duckdb.pushdown import serialize, syntax_of

        syntax = syntax_of(text, lambda: serialize(self.connection, text))
        return syntax.pushdown(label, by_parameter_name(values))

    def _register(self, label: str, table: Table, transaction: "StoreTransaction", pushdown: Pushdown) -> None:
        own = {fold_name(each.name): each.name for each in table.own}
        columns = list(own.values())
        # Where each column is as the engine has it, all are shown, so that the next statement finds them.
        is_narrow = label == TARGET or not table.is_plain
        if is_narrow and pushdown.columns is not None and len(own) == len(table.columns):
            # Rows are counted by one of them.
            columns = [name for key, name in own.items() if key in pushdown.columns] or columns[:1]
        predicates = predicates_of(pushdown, own)
        keys = keys_of(pushdown, table.own)
        means = means_of(pushdown, table.own) if keys else []

        def scan(predicates: _Predicates) -> "StoreScan":
            form = "stored" if self.verifies else FORM
            return transaction.scan(
                table.name, columns, predicates, positions=label == TARGET, form=form, verified=self.verifies
            )

        # The transaction may have changed it since the engine's tables were made.
        view = View(transaction.table(table.name) or table.stored, columns, [], keys, means, [label])
        known = None if self.verifies else self._views.get(fold_name(label))
        self.chunks[label] = view.stored.chunks
        if not predicates and known is not None and known.is_same(view):
            return
        found = scan(predicates)
        self.chunks[label] = found.chunks
        if found.rows < view.stored.rows:
            view = view._replace(predicates=predicates)
        if known is not None and known.is_same(view):
            return
        self.hide([label])
        try:
            rows = engine_rows(found, table.name)
        except DataError:
            # It names a row, counted among all of them.
            rows = engine_rows(scan([]), table.name)
        self._views[fold_name(label)] = view
        self._show(view, table, rows)

    def _show(self, view: View, table: Table, rows: Any) -> None:
        (label,) = view.names
        self.connection.register(label, rows)
        # The empty table of one without a definition is made of the same.
        replaced = {} if table.stored.definition is None else self._replacements(label, table, view.columns)
        if replaced:
            wanted = {*view.columns} | {each.name for each in table.columns if each.generated is not None}
            shown = [
                f"{replaced[each.name]} AS {quoted_name(each.name)}"
                if each.name in replaced
                else quoted_name(each.name)
                for each in table.columns
                if each.name in wanted
            ]
            shown += [name for name in rows.column_names if name not in wanted]
            self._show_over(view, rows, ", ".join(shown))
            return
        numbers, texts = numbered_flags(rows, view.keys)
        if texts:
            listed = ", ".join(f"{text} AS {quoted_name(name)}" for name, text in texts.items())
            self._show_over(view, numbers, f"* REPLACE ({listed})", without_nulls(rows, view.means))

    def _show_over(self, view: View, rows: Any, shown: str, condition: str = "") -> None:
        """Have a view of other rows in place of what has its label."""
        (label,) = view.names
        self.connection.unregister(label)
        self._hidden += 1
        hidden = f"{_OURS}rows_of_{self._hidden}"
        self.connection.register(hidden, rows)
        view.names.append(hidden)
        self.connection.execute(f"CREATE TEMP VIEW {quoted_name(label)} AS SELECT {shown} FROM {hidden}{condition}")

    def _replacements(self, label: str, table: Table, columns: Collection[str]) -> Mapping[str, str]:
        """Give expressions for columns that an Arrow table does not show as the type that they have."""
        if not table.shown.keys() >= {*columns}:
            described = self.connection.execute(f"DESCRIBE {quoted_name(label)}").fetchall()
            table.shown.update({name: kind for name, kind, *_ in described})
        wanted = [each for each in table.columns if each.generated is not None or each.name in columns]
        return {
            each.name: f"CAST({each.generated or quoted_name(each.name)} AS {each.kind})"
            for each in wanted
            if table.shown.get(each.name) != each.kind
        }

    def hide(self, labels: Collection[str] | None = None) -> None:
        """Have no views of these names, or of any, so that their files are let go."""
        keys = [*self._views] if labels is None else map(fold_name, labels)
        names = [name for key in keys if key in self._views for name in self._views.pop(key).names]
        for name in names:
            self.connection.execute(f"DROP VIEW IF EXISTS temp.{quoted_name(name)}")
            self.connection.unregister(name)

    def _view_names(self) -> list[str]:
        return [name for view in self._views.values() for name in view.names]


def predicates_of(pushdown: Pushdown, own: Mapping[str, str]) -> _Predicates:
    """Give the predicates by which chunks are left out; ``own`` has the columns' names by the folded ones."""
    return [
        (own[each.column], each.operator, each.constant)
        for each in pushdown.predicates
        if each.column in own and each.operator in _OPERATORS
    ]


def keys_of(pushdown: Pushdown, columns: Collection[Column]) -> list[str]:
    """Give the columns of texts by which rows are grouped together with others."""
    is_key = [fold_name(each.name) in pushdown.keys and each.kind in _TEXTS for each in columns]
    return [each.name for each, is_one in zip(columns, is_key, strict=True) if is_one and len(pushdown.keys) > 1]


def means_of(pushdown: Pushdown, columns: Collection[Column]) -> list[str]:
    """Give the columns whose means are asked for."""
    return [each.name for each in columns if fold_name(each.name) in pushdown.means]


@lru_cache(maxsize=64)
def columns_in(definition: str, name: str) -> Sequence[Column]:
    """Give the columns of a table that a statement makes."""
    with spare.connection() as bare:
        bare.execute(definition)
        return [Column(*row) for row in bare.execute(_COLUMNS, [name]).fetchall()]


def _refuse_hidden(text: str, tables: Collection[str]) -> None:
    """Refuse the names of the empty tables behind the views, within a text that is run as well."""
    found = [fold_name(each.text.strip('"')) for each in tokens(text)]
    is_run = not _BY_TEXT.isdisjoint(found)
    for at, word in enumerate(found):
        is_name = found[at : at + 2] == ["memory", "."] and {*found[at + 2 : at + 3]} <= {"main", *tables}
        if is_name or (is_run and word.startswith(("'", "$", "e'")) and "memory" in word):
            raise NotSupportedError("a table of the store is not named by its database", hint="leave the database out")


def _mark(table: "StoreTable | None") -> object:
    """Give what is another once the table's columns, key or constraints are."""
    if table is None or table.definition is not None:
        return table and (table.name, table.definition)
    schema = schema_of(table.schema)
    return table.name, schema.serialize().to_pybytes(), tuple(table.key)
