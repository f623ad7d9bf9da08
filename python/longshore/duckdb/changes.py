"""Changes of a store's tables: the engine works the rows out over an empty table, and the store takes them."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from longshore.duckdb.mirror import Column, Mirror, Table, shadow
from longshore.duckdb.statements import POSITION, ROWS, TARGET, Change
from longshore.errors import NotSupportedError, ProgrammingError
from longshore.frames.pushdown import fold_name
from longshore.frames.stored import exact, schema_of
from longshore.texts import quoted_name

if TYPE_CHECKING:
    from longshore._core import StoreTransaction

#: The rows that a statement finds by their keys.
_BEFORE = "longshore_before"


class Answer(NamedTuple):
    """The effect of a statement: how many rows it has changed, or the relation of its rows."""

    changed: int | None = None
    relation: Any = None


_Changing = Callable[[Mirror, "StoreTransaction", Change, Any], Answer]


def change(mirror: Mirror, transaction: "StoreTransaction", statement: Change, values: Any) -> Answer:
    """Run a statement that changes a table of the store's."""
    return _CHANGES[statement.verb](mirror, transaction, statement, values)


def _target(mirror: Mirror, transaction: "StoreTransaction", statement: Change) -> Table:
    """Give the table, which no other writer changes from now on."""
    table = mirror.table(statement.name)
    if table is None:
        raise ProgrammingError(f"there is no table {statement.name!r}", sqlstate="42P01")
    transaction.lock(table.name)
    return table


def _made_rows(mirror: Mirror, table: Table, condition: str = "") -> Any:
    """Give the rows of the engine's table in the store's types."""
    rows = mirror.rows(f"SELECT {table.column_list} FROM {shadow(table.name)} {condition}")
    return exact(rows, schema_of(table.stored.schema), table.name)


def _insert(mirror: Mirror, transaction: "StoreTransaction", statement: Change, values: Any) -> Answer:
    table = _target(mirror, transaction, statement)
    if statement.replaces:
        return _insert_or_change(mirror, transaction, statement, values, table)
    mirror.show(transaction, f"{statement.queries} {statement.source}", values)
    with mirror.scratch():
        relation = mirror.run(statement.over(shadow(table.name)), values)
        rows = _made_rows(mirror, table)
    if len(rows):
        transaction.append(table.name, rows, "insert")
    return _answer(statement, relation, len(rows))


def insert_many(mirror: Mirror, transaction: "StoreTransaction", statement: Change, sets: Sequence[Any]) -> Answer:
    """Run an INSERT with each set of values, whose rows the store takes together."""
    table = _target(mirror, transaction, statement)
    mirror.show(transaction, f"{statement.queries} {statement.source}", sets[0])
    with mirror.scratch():
        mirror.run_many(statement.over(shadow(table.name)), sets)
        rows = _made_rows(mirror, table)
    if len(rows):
        transaction.append(table.name, rows, "insert")
    return Answer(len(rows))


def _answer(statement: Change, relation: Any, count: int) -> Answer:
    return Answer(relation=relation) if statement.returning else Answer(count)


def _insert_or_change(
    mirror: Mirror, transaction: "StoreTransaction", statement: Change, values: Any, table: Table
) -> Answer:
    """Give the engine the rows that have the new rows' keys, for it to change or to let be."""
    name, key = shadow(table.name), ", ".join(map(quoted_name, table.stored.key))
    mirror.show(transaction, f"{statement.queries} {statement.source}", values)
    mirror.show_target(transaction, table, f"SELECT * FROM {TARGET}", None)
    columns = ", ".join(map(_definition, table.own))
    with mirror.scratch():
        mirror.run(f"CREATE TEMP TABLE {ROWS} ({columns})")
        mirror.run(statement.filling(f"temp.{ROWS}"), values)
        same = f"SEMI JOIN temp.{ROWS} USING ({key})" if key else "WHERE false"
        mirror.run(f"CREATE TEMP TABLE {_BEFORE} AS SELECT * FROM {TARGET} {same}")
        mirror.run(f"INSERT INTO {name} ({table.column_list}) SELECT {table.column_list} FROM temp.{_BEFORE}")
        relation = mirror.run(statement.applying(f"temp.{ROWS}", name), values)
        count = len(relation) if statement.returning else relation.fetchall()[0][0]
        if statement.keeps:
            rows, positions = _made_rows(mirror, table, f"ANTI JOIN temp.{_BEFORE} USING ({key})" if key else ""), None
        else:
            rows, positions = _made_rows(mirror, table), mirror.rows(f"SELECT {POSITION} FROM temp.{_BEFORE}")
    if count and positions is not None:
        transaction.update(table.name, positions, rows)
    elif count and len(rows):
        transaction.append(table.name, rows, "insert")
    return _answer(statement, relation, count)


def _definition(column: Column) -> str:
    default = "" if column.default is None else f" DEFAULT ({column.default})"
    return f"{quoted_name(column.name)} {column.kind}{default}"


def _delete(mirror: Mirror, transaction: "StoreTransaction", statement: Change, values: Any) -> Answer:
    table = _target(mirror, transaction, statement)
    if not (statement.others or statement.condition or statement.returning):
        return Answer(transaction.truncate(table.name))
    if statement.returning:
        return _update(mirror, transaction, statement, values)
    mirror.run(f"EXPLAIN {statement.over(shadow(table.name))}", values)
    text = statement.positions()
    mirror.show(transaction, text, values)
    mirror.show_target(transaction, table, text, values)
    positions = mirror.rows(text, values)
    return Answer(transaction.delete(table.name, positions) if len(positions) else 0)


def _update(mirror: Mirror, transaction: "StoreTransaction", statement: Change, values: Any) -> Answer:
    """Work out the rows as they will be, or those to be deleted where they are returned."""
    table = _target(mirror, transaction, statement)
    name = shadow(table.name)
    # The engine's own rules, of which a SELECT has fewer.
    mirror.run(f"EXPLAIN {statement.over(name)}", values)
    text = statement.rows({each.name: (each.kind, each.default) for each in table.own})
    mirror.show(transaction, text, values)
    mirror.show_target(transaction, table, text, values)
    with mirror.scratch():
        mirror.run(f"CREATE TEMP TABLE {ROWS} AS {text}", values)
        mirror.run(f"INSERT INTO {name} ({table.column_list}) SELECT {table.column_list} FROM temp.{ROWS}")
        relation = mirror.run(statement.returned_rows(name), values).materialize() if statement.returning else None
        positions = mirror.rows(f"SELECT {POSITION} FROM temp.{ROWS}")
        rows = _made_rows(mirror, table) if statement.verb == "update" else None
    if not len(positions):
        return _answer(statement, relation, 0)
    if rows is None:
        count = transaction.delete(table.name, positions)
    else:
        count = transaction.update(table.name, positions, rows)
    return _answer(statement, relation, count)


def _truncate(mirror: Mirror, transaction: "StoreTransaction", statement: Change, values: Any) -> Answer:
    del values
    return Answer(transaction.truncate(_target(mirror, transaction, statement).name))


def _create(mirror: Mirror, transaction: "StoreTransaction", statement: Change, values: Any) -> Answer:
    if statement.kind != "table":
        hint = f"make it one of the session's own: CREATE TEMP {statement.kind.upper()}"
        hint = hint if statement.kind in {"view", "macro", "function"} else _INSTEAD.get(statement.kind, "leave it out")
        raise NotSupportedError(f"a store has tables, and no {statement.kind}", hint=hint)
    is_there = transaction.table(statement.name) is not None
    mirror.show(transaction, statement.tail, values)
    with mirror.scratch():
        mirror.run(statement.over(shadow(statement.name)), values)
        if is_there and not statement.replaces:
            return Answer()
        schema, key, columns = mirror.describe(statement.name)
        listed = ", ".join(quoted_name(each.name) for each in columns if each.generated is None)
        rows = exact(mirror.rows(f"SELECT {listed} FROM {shadow(statement.name)}"), schema, statement.name)
        definition = mirror.definitions()[statement.name]
    transaction.create(statement.name, schema, key, definition, statement.replaces)
    mirror.is_stale = True
    if len(rows):
        transaction.append(statement.name, rows, "insert")
    return Answer()


_INSTEAD = {
    "index": "chunks that a condition rules out are not read; a primary key finds single rows",
    "schema": "open a store for each",
    "type": "write the type where a column has it",
    "sequence": "number the rows by a query: row_number() OVER ()",
}


def _drop(mirror: Mirror, transaction: "StoreTransaction", statement: Change, values: Any) -> Answer:
    if statement.kind != "table":
        raise NotSupportedError(f"a store has tables, and no {statement.kind}", hint="DROP TABLE drops a table")
    is_there = mirror.table(statement.name) is not None
    with mirror.scratch():
        mirror.run(statement.over(shadow(statement.name)), values)
    if is_there:
        transaction.drop(statement.name)
        mirror.is_stale = True
    return Answer()


def _alter(mirror: Mirror, transaction: "StoreTransaction", statement: Change, values: Any) -> Answer:
    if statement.kind != "table":
        raise NotSupportedError(f"a store keeps no {statement.kind}", hint="keep it in a table of your own")
    table = mirror.table(statement.name)
    if table is not None:
        transaction.lock(table.name)
    text = statement.over(shadow(statement.name))
    with mirror.scratch():
        before = mirror.definitions()
        mirror.run(text, values)
        if table is None:
            # IF EXISTS, or the engine has said so.
            return Answer()
        after = mirror.definitions()
        (name,) = {*after} - {*before} or {table.name}
        altered = _Altered.of(mirror, table, name)
        definition = after[name]
    rows = _altered_rows(mirror, transaction, table, text, altered) if altered.has_new_values else None
    if rows is not None:
        transaction.truncate(table.name)
    if name != table.name:
        transaction.rename(table.name, name)
    transaction.alter(name, altered.fields, altered.schema, altered.key, definition)
    mirror.is_stale = True
    if rows is not None and len(rows):
        transaction.append(name, rows, "alter")
    return Answer()


def _altered_rows(mirror: Mirror, transaction: "StoreTransaction", table: Table, text: str, altered: "_Altered") -> Any:
    """Give all rows, which the engine has altered."""
    name = shadow(table.name)
    mirror.show(transaction, quoted_name(table.name), None)
    with mirror.scratch():
        mirror.run(
            f"INSERT INTO {name} ({table.column_list}) SELECT {table.column_list} FROM {quoted_name(table.name)}"
        )
        mirror.run(text)
        listed = ", ".join(quoted_name(field.name) for field in altered.schema)
        return exact(mirror.rows(f"SELECT {listed} FROM {name}"), altered.schema, table.name)


class _Altered(NamedTuple):
    """A table that the engine has altered."""

    schema: Any
    key: list[str]
    #: The new and the old name of each column; None for a new one.
    fields: list[tuple[str, str | None]]
    #: Whether rows have values that they had not, or have to be looked at.
    has_new_values: bool

    @classmethod
    def of(cls, mirror: Mirror, table: Table, name: str) -> "_Altered":
        """Compare it with what it was."""
        schema, key, columns = mirror.describe(name)
        now, before = [each for each in columns if each.generated is None], table.own
        olds = {fold_name(each.name): each for each in before}
        pairs = [(each, olds.get(fold_name(each.name))) for each in now]
        if len(now) == len(before):
            # One may have another name.
            pairs = list(zip(now, before, strict=True))
        stored = {each.name: each for each in schema_of(table.stored.schema)}
        for at, (each, old) in enumerate(pairs):
            if old is not None and old.kind == each.kind:
                kept = stored[old.name].with_name(each.name).with_nullable(each.is_nullable)
                schema = schema.set(at, kept)
        is_new = any(_has_new_values(each, old) for each, old in pairs)
        is_keyed = len(key) > len(table.stored.key)
        # A column of another type is a new one.
        fields = [(each.name, old.name if old is not None and old.kind == each.kind else None) for each, old in pairs]
        return cls(schema, key, fields, is_new or is_keyed)


def _has_new_values(now: Column, before: Column | None) -> bool:
    if before is None:
        return now.default not in {None, "NULL"} or not now.is_nullable
    return now.kind != before.kind or (before.is_nullable and not now.is_nullable)


_CHANGES: dict[str, _Changing] = {
    "insert": _insert,
    "copy": _insert,
    "update": _update,
    "delete": _delete,
    "truncate": _truncate,
    "create": _create,
    "drop": _drop,
    "alter": _alter,
    "comment": _alter,
}
