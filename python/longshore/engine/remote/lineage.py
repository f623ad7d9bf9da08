"""The columns of attached tables that the expressions of a query are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from longshore.engine.remote.references import Reference
from longshore.engine.remote.types import Column, Table

__all__ = ["Found", "Lineage"]

#: What gives one of its argument's values.
_ONE_OF = (exp.Paren, exp.Alias, exp.Min, exp.Max, exp.AnyValue, exp.IgnoreNulls, exp.First, exp.Last, exp.Window)


@dataclass(frozen=True)
class Found:
    """A column, and the name of its table in the query."""

    table: str
    column: Column

    def __str__(self) -> str:
        """Name it as the query may."""
        return f"{self.table}.{self.column.name}"


#: The name of a query's column, and what it is.
Output = tuple[str, Found | None]


class Lineage:
    """Follows names through the subqueries of a query; what is not clear is not found."""

    def __init__(self, trees: Sequence[exp.Expression], tables: Sequence[tuple[Reference, Table]]) -> None:
        """Look at each SELECT once."""
        self._tables = {id(reference.node): (reference, table) for reference, table in tables}
        scopes: list[Scope] = []
        for tree in trees:
            try:
                scopes += traverse_scope(tree)
            except SqlglotError:
                continue
        self._by_node = {id(scope.expression): scope for scope in scopes}
        self._trees = trees
        self._outputs: dict[int, list[Output]] = {}

    def nodes(self) -> Iterator[tuple[Any, Scope]]:
        """Give each expression with the SELECT that its names are of."""
        for tree in self._trees:
            for node in tree.walk():
                scope = self.scope(node)
                if scope is not None:
                    yield node, scope

    def scope(self, node: Any) -> Scope | None:
        """Give the SELECT that the names of an expression are of."""
        around = node if id(node) in self._by_node else node.find_ancestor(exp.Select, exp.SetOperation)
        return self._by_node.get(id(around))

    def find(self, node: exp.Expression | None, scope: Scope) -> Found | None:
        """Give the column that an expression is, or gives one value of."""
        if isinstance(node, exp.Column):
            return self._named(node.name.lower(), node.table.lower(), scope)
        if isinstance(node, _ONE_OF):
            return self.find(node.this, scope)
        if isinstance(node, exp.Subquery):
            outputs = self.outputs(node.this)
            return outputs[0][1] if outputs else None
        return None

    def outputs(self, node: Any) -> list[Output]:
        """Give the columns of a query, each with its name in lower case."""
        if id(node) not in self._outputs:
            # What a recursive query has of itself is what it begins with.
            self._outputs[id(node)] = []
            self._outputs[id(node)] = self._listed(node)
        return self._outputs[id(node)]

    def inputs(self, scope: Scope) -> list[Output]:
        """Give the columns of all tables of a FROM."""
        return [one for _, *of in self._sources(scope) for one in self._columns(*of)]

    def _listed(self, node: Any) -> list[Output]:
        if isinstance(node, exp.Subquery):
            return self.outputs(node.this)
        if isinstance(node, exp.SetOperation):
            sides = self.outputs(node.this), self.outputs(node.expression)
            if not all(sides):
                return sides[0] or sides[1]
            return [(name, _either(left, right)) for (name, left), (_, right) in zip(*sides, strict=False)]
        scope = self._by_node.get(id(node))
        if scope is None or not isinstance(node, exp.Select):
            return []
        found: list[Output] = []
        for item in node.expressions:
            if item.is_star:
                found += self._star(item, scope)
            else:
                found.append((item.alias_or_name.lower(), self.find(item, scope)))
        return found

    def _star(self, item: exp.Expression, scope: Scope) -> list[Output]:
        table = item.table.lower() if isinstance(item, exp.Column) else ""
        sources = self._sources(scope)
        return [one for name, *of in sources if not table or table == name.lower() for one in self._columns(*of)]

    def _named(self, name: str, table: str, scope: Scope) -> Found | None:
        around: Scope | None = scope
        while around is not None:
            for alias, *of in self._sources(around):
                if not table or alias.lower() == table:
                    for own, found in self._columns(*of):
                        if own == name:
                            return found
            select = around.expression
            if not table and isinstance(select, exp.Select):
                for item in select.expressions:
                    if isinstance(item, exp.Alias) and item.alias.lower() == name and not _names(item, name):
                        return self.find(item, around)
            around = around.parent
        return None

    def _sources(self, scope: Scope) -> Iterator[tuple[str, Any, Any]]:
        """Give what stands in a FROM: its alias, its node, and the table or the query that it is."""
        for name, node in scope.references:
            # Of subqueries without an alias there may be several.
            source = self._by_node.get(id(node)) or scope.sources.get(name)
            if source is not None:
                yield name, node, source

    def _columns(self, node: Any, source: Any) -> list[Output]:
        """Give the columns of what stands in a FROM, under the names that it has there."""
        if isinstance(source, Scope):
            found = self.outputs(source.expression)
            common = source.expression.parent
            names = common.alias_column_names if isinstance(common, exp.CTE) else []
            found = _renamed(found, names)
        elif id(source) in self._tables:
            reference, table = self._tables[id(source)]
            name = ".".join((reference.source, *reference.parts))
            found = [(column.name.lower(), Found(name, column)) for column in table.columns]
        else:
            return []
        place = node if isinstance(node, exp.Table) else node.parent
        return _renamed(found, place.alias_column_names if isinstance(place, exp.Table | exp.Subquery) else [])


def _renamed(columns: list[Output], names: Sequence[str]) -> list[Output]:
    return [(name.lower(), found) for name, (_, found) in zip(names, columns, strict=False)] + columns[len(names) :]


def _names(item: exp.Expression, name: str) -> bool:
    return any(column.name.lower() == name for column in item.find_all(exp.Column))


def _either(left: Found | None, right: Found | None) -> Found | None:
    """Give what one column of a UNION is: padded if both are, and to a length if that is one."""
    if left is None or right is None or left.column.padded is right.column.padded is None:
        return left or right
    if left.column.padded is None or right.column.padded is None:
        return None
    if left.column.padded == right.column.padded:
        return left
    return replace(left, column=replace(left.column, padded=0))
