"""A whole query in a source's SQL, where every part of it is known to mean the same there."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from sqlglot import exp

from longshore.engine.remote.dialect import Dialect
from longshore.engine.remote.literals import Params
from longshore.engine.remote.names import Names, Relation, Value, only
from longshore.engine.remote.selects import Select, Written
from longshore.engine.remote.types import Kind, Type, Unsafe

__all__ = ["Queries", "Written"]

#: Gives a table of the source under an alias of the source's SQL; raises ``Unsafe`` for what is none.
Tables = Callable[[exp.Table, str], tuple[str, Relation]]

_PARTS = ("expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct", "with_")


class Queries:
    """Writes SELECTs; whatever is not known to be safe raises ``Unsafe``."""

    def __init__(self, dialect: Dialect, tables: Tables, params: Params) -> None:
        """Keep what a table is, and the values of parameters."""
        self.dialect = dialect
        self._tables = tables
        self.params = params
        self._aliases = 0

    def query(self, node: exp.Expression, common: Mapping[str, Written] | None = None) -> Written:
        """Write a query; ``common`` are the tables of a WITH around it."""
        if isinstance(node, exp.Subquery):
            only(node, "this")
            return self.query(node.this, common)
        if isinstance(node, exp.Union):
            return self._union(node, common)
        if not isinstance(node, exp.Select):
            raise Unsafe
        only(node, *_PARTS)
        return Select(self, node, {**(common or {}), **self._common(node, common or {})}).written()

    def column(self, node: exp.Expression, common: Mapping[str, Written], outer: Names) -> tuple[str, Type]:
        """Write the query of an IN, and tell the type of its one column."""
        # MySQL has no LIMIT here.
        select = self._inside(node, "expressions", "from_", "joins", "where", "group", "having", "distinct")
        written = Select(self, select, common, outer).written()
        if len(written.outputs) != 1:
            raise Unsafe
        return written.sql, written.outputs[0].value.type

    def single(self, node: exp.Expression, common: Mapping[str, Written]) -> Value:
        """Write a query of one row and one column, which depends on no other."""
        select = self._inside(node, "expressions", "from_", "joins", "where")
        written = Select(self, select, common).written()
        if len(written.outputs) != 1 or not written.outputs[0].node.find(exp.AggFunc):
            raise Unsafe
        of = written.outputs[0].value.type
        # Beside another text, its collation would have to be named.
        if of.kind is Kind.TEXT:
            raise Unsafe
        return Value(f"({written.sql})", of)

    def rows(self, node: exp.Expression, common: Mapping[str, Written], outer: Names) -> str:
        """Write the query of an EXISTS. What it selects does not matter, unless that makes rows, or one of many."""
        select = self._inside(node, "expressions", "from_", "joins", "where")
        if not all(isinstance(item.unalias(), exp.Literal | exp.Column | exp.Star) for item in select.expressions):
            raise Unsafe
        return f"SELECT 1 {Select(self, select, common, outer, items=()).rest}"

    def _inside(self, node: exp.Expression, *parts: str) -> exp.Select:
        if isinstance(node, exp.Subquery):
            only(node, "this")
            node = node.this
        if not isinstance(node, exp.Select):
            raise Unsafe
        only(node, *parts)
        return node

    def _union(self, node: exp.Union, common: Mapping[str, Written] | None) -> Written:
        only(node, "this", "expression", "distinct")
        sides = node.this, node.expression
        if any(side.args.get(name) for side in sides for name in ("order", "limit", "offset", "with_")):
            raise Unsafe
        # In a row, they are done from the left.
        if isinstance(node.expression, exp.Union) or any(isinstance(side, exp.Subquery) for side in sides):
            raise Unsafe
        left, right = (self.query(side, common) for side in sides)
        types = [[output.value.type for output in side.outputs] for side in (left, right)]
        distinct = bool(node.args.get("distinct"))
        if types[0] != types[1] or (distinct and not all(of.groups for of in types[0])):
            raise Unsafe
        outputs = [replace(output, value=replace(output.value, plain=False)) for output in left.outputs]
        word = "UNION" if distinct else "UNION ALL"
        return Written(lambda names: f"{left.write(names)} {word} {right.sql}", outputs)

    def _common(self, node: exp.Select, common: Mapping[str, Written]) -> Mapping[str, Written]:
        with_ = node.args.get("with_")
        if with_ is None:
            return {}
        only(with_, "expressions")
        known = dict(common)
        for one in with_.expressions:
            only(one, "this", "alias", "materialized")
            only(one.args["alias"], "this")
            known[one.alias.lower()] = self._inner(one.this, known)
        return known

    def _inner(self, node: exp.Expression, common: Mapping[str, Written]) -> Written:
        """Write a query that is a table of another."""
        if node.find(exp.Order) and not self.dialect.keeps_order:
            raise Unsafe
        return self.query(node, common)

    def alias(self) -> str:
        """Give a name that the query has not had."""
        self._aliases += 1
        return self.dialect.name(f"t{self._aliases}")

    def relation(self, node: exp.Expression, common: Mapping[str, Written]) -> tuple[str, Relation]:
        """Write what stands in a FROM."""
        alias = self.alias()
        if isinstance(node, exp.Subquery):
            only(node, "this", "alias")
            _plain_alias(node)
            return self._derived(self._inner(node.this, common), alias, node.alias)
        if not isinstance(node, exp.Table):
            raise Unsafe
        only(node, "this", "db", "catalog", "alias")
        _plain_alias(node)
        if len(node.parts) == 1:
            if node.name.lower() not in common:
                raise Unsafe
            return self._derived(common[node.name.lower()], alias, node.alias_or_name)
        return self._tables(node, alias)

    def _derived(self, written: Written, alias: str, name: str) -> tuple[str, Relation]:
        columns: dict[str, Value | None] = {}
        spelled = []
        for at, output in enumerate(written.outputs, 1):
            if output.name is None:
                raise Unsafe
            key = output.name.lower()
            columns[key] = None if key in columns else Value(f"{alias}.c{at}", output.value.type)
            spelled.append(output.name)
        return f"({written.sql}) AS {alias}", Relation({(name.lower(),)} if name else set(), columns, spelled)


def _plain_alias(node: exp.Expression) -> None:
    alias = node.args.get("alias")
    if alias is not None:
        only(alias, "this")
