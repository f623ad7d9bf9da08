"""A whole query in a source's SQL, where every part of it is known to mean the same there."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from longshore.engine.remote.dialect import Dialect
from longshore.engine.remote.literals import Params, constant, whole_number
from longshore.engine.remote.names import Names, Relation, Value, only
from longshore.engine.remote.types import Trust, Unsafe
from longshore.engine.remote.values import Values

__all__ = ["Output", "Queries", "Written"]

#: Gives a table of the source under an alias of the source's SQL; raises ``Unsafe`` for what is none.
Tables = Callable[[exp.Table, str], tuple[str, Relation]]

_PARTS = ("expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct", "with_")


@dataclass(frozen=True)
class Output:
    """A column of a query: the names that other parts of the query know it by, and what is written for it."""

    name: str | None
    value: Value
    node: exp.Expression


@dataclass(frozen=True)
class Written:
    """A query in the source's SQL."""

    #: Writes it with names for its columns, quoted.
    write: Callable[[Sequence[str]], str]
    outputs: Sequence[Output]

    @property
    def sql(self) -> str:
        """The query with the columns c1, c2, ..."""
        return self.write([f"c{at}" for at in range(1, len(self.outputs) + 1)])


class Queries:
    """Writes SELECTs; whatever is not known to be safe raises ``Unsafe``."""

    def __init__(self, dialect: Dialect, tables: Tables, params: Params) -> None:
        """Keep what a table is, and the values of parameters."""
        self._dialect = dialect
        self._tables = tables
        self._params = params
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
        return _Select(self, node, {**(common or {}), **self._common(node, common or {})}).written()

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
        if node.find(exp.Order) and not self._dialect.keeps_order:
            raise Unsafe
        return self.query(node, common)

    def alias(self) -> str:
        """Give a name that the query has not had."""
        self._aliases += 1
        return self._dialect.name(f"t{self._aliases}")

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


class _Select:
    """One SELECT on its way."""

    def __init__(self, queries: Queries, node: exp.Select, common: Mapping[str, Written]) -> None:
        self._queries = queries
        self._node = node
        self._common = common
        self._dialect = queries._dialect  # noqa: SLF001  a part of it
        self._params = queries._params  # noqa: SLF001
        self._from, self._names = self._relations()
        self._write = Values(self._dialect, self._names, self._params)
        self._outputs = [output for item in node.expressions for output in self._output(item)]

    def written(self) -> Written:
        """Put the parts together."""
        distinct = self._distinct()
        parts = [self._where(), self._group(), self._having(), self._order(), self._limit()]
        rest = " ".join(part for part in [f"FROM {self._from}", *parts] if part)

        def write(names: Sequence[str]) -> str:
            named = zip(self._outputs, names, strict=True)
            return f"SELECT {distinct}{', '.join(f'{output.value.sql} AS {name}' for output, name in named)} {rest}"

        return Written(write, self._outputs)

    def _relations(self) -> tuple[str, Names]:
        place = self._node.args.get("from_")
        if place is None:
            raise Unsafe
        only(place, "this")
        sql, first = self._queries.relation(place.this, self._common)
        relations = [first]
        for join in self._node.args.get("joins") or []:
            only(join, "this", "on", "side", "kind")
            if join.side not in {"", "LEFT"} or join.kind not in {"", "INNER", "OUTER", "CROSS"}:
                raise Unsafe
            right, relation = self._queries.relation(join.this, self._common)
            relations.append(relation)
            sql += self._join(join, right, Names(relations))
        return sql, Names(relations)

    def _join(self, join: exp.Join, right: str, names: Names) -> str:
        on = join.args.get("on")
        if on is None:
            if join.side:
                raise Unsafe
            return f" CROSS JOIN {right}"
        if join.kind == "CROSS":
            raise Unsafe
        test, trust = Values(self._dialect, names, self._params).test(on)
        if trust is not Trust.EXACT or on.find(exp.AggFunc):
            raise Unsafe
        return f" {join.side or 'INNER'} JOIN {right} ON {test}"

    def _output(self, item: exp.Expression) -> list[Output]:
        if isinstance(item, exp.Star):
            only(item)
            return self._star(None)
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            only(item.this)
            return self._star(tuple(part.name.lower() for part in item.parts[:-1]))
        node, name = item, item.name if isinstance(item, exp.Column) else None
        if isinstance(item, exp.Alias):
            only(item, "this", "alias")
            node, name = item.this, item.alias
        return [Output(name, self._write.computed(node), node)]

    def _star(self, table: tuple[str, ...] | None) -> list[Output]:
        found = [one for one in self._names.relations if table is None or table in one.names]
        if not found or (table is not None and len(found) > 1):
            raise Unsafe
        outputs = []
        for relation in found:
            for name in relation.spelled:
                value = relation.columns[name.lower()]
                if value is None:
                    raise Unsafe
                outputs.append(Output(name, value, exp.Star()))
        return outputs

    def _distinct(self) -> str:
        distinct = self._node.args.get("distinct")
        if distinct is None:
            return ""
        only(distinct)
        if not all(output.value.type.groups for output in self._outputs):
            raise Unsafe
        return "DISTINCT "

    def _where(self) -> str:
        where = self._node.args.get("where")
        if where is None:
            return ""
        if where.find(exp.AggFunc):
            raise Unsafe
        return f"WHERE {self._test(where.this)}"

    def _having(self) -> str:
        having = self._node.args.get("having")
        if having is None:
            return ""
        if self._node.args.get("group") is None:
            raise Unsafe
        # The engine takes an output's name for the output, even where a column has it too.
        aliases = {item.alias.lower() for item in self._node.expressions if isinstance(item, exp.Alias)}
        if any(len(one.parts) == 1 and one.name.lower() in aliases for one in having.find_all(exp.Column)):
            raise Unsafe
        return f"HAVING {self._test(having.this)}"

    def _test(self, node: exp.Expression) -> str:
        sql, trust = self._write.test(node)
        if trust is not Trust.EXACT:
            raise Unsafe
        return sql

    def _group(self) -> str:
        group = self._node.args.get("group")
        if group is None:
            return ""
        only(group, "expressions", "all")
        if group.args.get("all"):
            # Quoted, it would be a column's name.
            if any("all" in relation.columns for relation in self._names.relations):
                raise Unsafe
            keys = [output.value for output in self._outputs if not output.node.find(exp.AggFunc)]
        else:
            keys = [self._key(node) for node in group.expressions]
        if not keys or not all(key.type.groups for key in keys):
            raise Unsafe
        return f"GROUP BY {', '.join(key.sql for key in keys)}"

    def _key(self, node: exp.Expression) -> Value:
        """Find what is grouped by: an output's number, a column, or else an output's name."""
        if isinstance(node, exp.Literal):
            return self._numbered(node)
        try:
            return self._write.value(node)
        except Unsafe:
            return self._named(node)

    def _order(self) -> str:
        order = self._node.args.get("order")
        if order is None:
            return ""
        only(order, "expressions")
        return f"ORDER BY {', '.join(self._ordered(one) for one in order.expressions)}"

    def _ordered(self, one: exp.Expression) -> str:
        only(one, "this", "desc", "nulls_first")
        key = self._sort_key(one.this)
        if key.type.order is not Trust.EXACT:
            raise Unsafe
        descending, first = bool(one.args.get("desc")), bool(one.args.get("nulls_first"))
        sql = self._dialect.sort(key.sql, key.type, descending=descending, nulls_first=first)
        # Rows that stand for several are ordered by what they have, and by nothing that is made of it.
        if self._node.args.get("distinct") and not any(
            sql.removeprefix(output.value.sql).startswith((" DESC NULLS", " NULLS")) for output in self._outputs
        ):
            raise Unsafe
        return sql

    def _sort_key(self, node: exp.Expression) -> Value:
        """Find what is sorted by: an output's number or name, or else a value."""
        if isinstance(node, exp.Literal):
            return self._numbered(node)
        names = {(output.name or "").lower() for output in self._outputs}
        bare = node.unnest()
        if isinstance(bare, exp.Column) and len(bare.parts) == 1 and bare.name.lower() in names:
            return self._named(bare)
        return self._write.value(node)

    def _numbered(self, node: exp.Expression) -> Value:
        at = constant(node, None)
        if type(at) is not int or not 1 <= at <= len(self._outputs):
            raise Unsafe
        return self._outputs[at - 1].value

    def _named(self, node: exp.Expression) -> Value:
        if not isinstance(node, exp.Column) or len(node.parts) != 1:
            raise Unsafe
        found = [output.value for output in self._outputs if (output.name or "").lower() == node.name.lower()]
        if len(found) != 1:
            raise Unsafe
        return found[0]

    def _limit(self) -> str:
        limit, offset = self._node.args.get("limit"), self._node.args.get("offset")
        sql = ""
        if limit is not None:
            only(limit, "expression")
            sql = f"LIMIT {whole_number(limit.expression, self._params)}"
        if offset is not None:
            only(offset, "expression")
            if limit is None:
                raise Unsafe
            sql += f" OFFSET {whole_number(offset.expression, self._params)}"
        return sql


def _plain_alias(node: exp.Expression) -> None:
    alias = node.args.get("alias")
    if alias is not None:
        only(alias, "this")
