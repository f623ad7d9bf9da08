"""The conditions of a query that its sources may test before, on the rows of one table.

The engine tests them again, so a condition of a source has to be true wherever the engine's is, and no more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from longshore.engine.remote.dialect import Dialect
from longshore.engine.remote.expressions import Expressions
from longshore.engine.remote.literals import Params
from longshore.engine.remote.names import Names, Relation, known
from longshore.engine.remote.references import Reference
from longshore.engine.remote.types import Table, Trust, Unsafe

__all__ = ["Filter", "conditions"]

_JOINS = {"", "INNER", "CROSS", "OUTER"}
_SIDES = {"", "LEFT", "RIGHT", "FULL"}


@dataclass(frozen=True)
class Filter:
    """A condition in a source's SQL."""

    sql: str
    #: Where the condition stands in the query if the engine may not test it again: its first and its last letter.
    place: tuple[int, int] | None = None
    node: exp.Expression | None = None


def conditions(
    reference: Reference,
    table: Table,
    dialect: Dialect,
    others: Sequence[tuple[Reference, Table]],
    params: Params,
    place: Callable[[exp.Expression], tuple[int, int] | None],
) -> list[Filter]:
    """Give the conditions on a table in its source's SQL, its columns without an alias; none where in doubt.

    What a collation decides is the source's alone, if ``place`` tells where in the query it stands.
    """
    node = reference.node
    if (
        node is None
        or not isinstance(node.parent, exp.From | exp.Join)
        or not isinstance(node.parent.parent, exp.Select)
    ):
        return []
    select = node.parent.parent
    names = _names(reference, table, [(one, of) for one, of in others if one.node is not node], select)
    if names is None or node.alias_column_names or any(node.args.get(name) for name in ("sample", "pivots", "joins")):
        return []
    inside = replace(table, columns=[column.in_source for column in table.columns])
    own = _names(reference, inside, [(one, of) for one, of in others if one.node is not node], select) or names
    collated = {column.name.lower() for column in table.columns if column.collation is not None}
    found = []
    for condition in _conjuncts(select, node):
        try:
            if any(one.name.lower() in collated for one in condition.find_all(exp.Column)):
                sql, trust = Expressions(dialect, own, params).test(condition)
                where = place(condition)
                if trust is Trust.EXACT and where is not None:
                    found.append(Filter(sql, where, condition))
                    continue
        except Unsafe:
            pass
        try:
            found.append(Filter(Expressions(dialect, names, params).test(condition)[0]))
        except Unsafe:
            continue
    return found


def _names(
    reference: Reference, table: Table, others: Sequence[tuple[Reference, Table]], select: exp.Select
) -> Names | None:
    """Give the columns that are the table's alone, and none of a USING; None for joins of another kind."""
    joins = select.args.get("joins") or []
    if any(join.kind not in _JOINS or join.side not in _SIDES or join.method for join in joins):
        return None
    if any(select.args.get(name) for name in ("sample", "laterals", "pivots", "prewhere", "connect", "match")):
        return None
    merged = {name.name.lower() for join in joins for name in join.args.get("using") or []}
    own = known(reference, table, table.sql)
    relations = [Relation(own.names, {name: None if name in merged else value for name, value in own.columns.items()})]
    for other, of in others:
        if other.node is not None and other.node.parent_select is select:
            named = known(other, of, "")
            relations.append(Relation(named.names, dict.fromkeys(named.columns)))
    return Names(relations)


def _conjuncts(select: exp.Select, table: exp.Table) -> list[exp.Expression]:
    """Give the conditions that every row of the table meets which has a part in the result."""
    joins: Sequence[exp.Join] = select.args.get("joins") or []
    own = next((at for at, join in enumerate(joins) if join.this is table), -1)
    found: list[exp.Expression] = []
    if own >= 0 and joins[own].side in {"", "LEFT"}:
        # A row that fails its own join's condition meets nothing there, and is left out or goes without it.
        found += _split(joins[own].args.get("on"))
    if _may_be_missing(joins, own):
        return found
    where = select.args.get("where")
    found += _split(where.this if where else None)
    for at, join in enumerate(joins):
        if at != own and not join.side:
            found += _split(join.args.get("on"))
    return found


def _may_be_missing(joins: Sequence[exp.Join], own: int) -> bool:
    """Whether an outer join may put NULLs in the place of the table's row."""
    if own >= 0 and joins[own].side in {"LEFT", "FULL"}:
        return True
    return any(join.side in {"RIGHT", "FULL"} for join in joins[own + 1 :])


def _split(condition: exp.Expression | None) -> list[exp.Expression]:
    if condition is None:
        return []
    if isinstance(condition, exp.Paren):
        return _split(condition.this)
    if isinstance(condition, exp.And):
        return [*_split(condition.this), *_split(condition.expression)]
    return [condition]
