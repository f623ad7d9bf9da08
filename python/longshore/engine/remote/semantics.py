"""Where the engine would compare a column otherwise than its database: what is done about it, or told."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from longshore.engine.remote.literals import Params, Quoted, constant
from longshore.engine.remote.references import Reference
from longshore.engine.remote.text import Edit
from longshore.engine.remote.types import Column, Table, Unsafe
from longshore.errors import NotSupportedError

__all__ = ["Found", "Lineage", "Semantics", "semantics"]

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


_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
#: What sees the padding of its first operand.
_PATTERNS = (exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpILike, exp.RegexpFullMatch, exp.SimilarTo)
#: What sees the padding of each.
_BYTES = (exp.Concat, exp.ConcatWs, exp.Encode)
_ENDS = (exp.Max, exp.Min)
#: What gives one of its arguments, with its padding.
_CHOICES = (exp.Paren, exp.Coalesce, exp.Case, exp.If, exp.Nullif, exp.Greatest, exp.Least, *_ENDS)


class _Kind(Enum):
    """What decides whether blanks at the end count in a comparison."""

    PADDED = "char(n)"
    VARYING = "varchar"
    CONSTANT = "constant"
    OTHER = "other"


@dataclass
class Semantics:
    """What makes the engine's query mean what the databases mean."""

    edits: list[Edit] = field(default_factory=list)
    #: Values of parameters that blanks are taken from, by name, or by place from 0.
    stripped: dict[Any, str] = field(default_factory=dict)
    #: The columns that the engine compares byte by byte, and their databases do not, with their collations.
    bytewise: dict[str, str] = field(default_factory=dict)

    def params(self, params: Params) -> Params:
        """Give the parameters of the engine's query."""
        if isinstance(params, Mapping):
            return {name: self.stripped.get(name, value) for name, value in params.items()}
        return params and [self.stripped.get(at, value) for at, value in enumerate(params)]


def semantics(
    trees: Sequence[exp.Expression],
    tables: Sequence[tuple[Reference, Table]],
    gone: Sequence[exp.Expression],
    params: Params,
) -> Semantics:
    """Look at what the engine does with the columns of ``tables``; ``gone`` are the parts that a source answers."""
    found = Semantics()
    if not any(_is_own(column) for _, table in tables for column in table.columns):
        return found
    away = {id(node) for part in gone for node in part.walk()}
    look = _Look(Lineage(trees, tables), params, found)
    for node, scope in look.lineage.nodes():
        if id(node) not in away:
            look.at(node, scope)
    look.end(trees, away)
    return found


class _Look:
    """One look at a query."""

    def __init__(self, lineage: Lineage, params: Params, found: Semantics) -> None:
        self.lineage = lineage
        self._params = params
        self._found = found
        #: Placeholders that are compared with a padded column, by their names.
        self._placeholders: dict[str, list[exp.Expression]] = {}

    def at(self, node: exp.Expression, scope: Scope) -> None:
        """Look at one expression."""
        for operand in _padded(node):
            self._pad(operand, scope)
        for one, other in _compared(node):
            self._compare(one, other, scope)
        for equal in self._equals(node, scope):
            found = equal if equal is None or isinstance(equal, Found) else self.lineage.find(equal, scope)
            if found is not None and found.column.collation is not None:
                self._found.bytewise[str(found)] = found.column.collation

    def end(self, trees: Sequence[exp.Expression], away: set[int]) -> None:
        """Take the blanks from parameters, which are constants as well."""
        for name, compared in self._placeholders.items():
            everywhere = [one for tree in trees for one in tree.find_all(exp.Placeholder) if one.name == name]
            if len([one for one in everywhere if id(one) not in away]) > len(compared):
                message = (
                    f"the parameter {name} has blanks at its end, which mean nothing to a char(n) column and "
                    "something elsewhere in the query; give it twice, or without them"
                )
                raise NotSupportedError(message)
            key = int(name) - 1 if name.isdecimal() else name
            self._found.stripped[key] = constant(compared[0], self._params).rstrip(" ")

    def _pad(self, node: Any, scope: Scope) -> None:
        """Give a char(n) its padding where PostgreSQL sees it."""
        node, scope = self._inner(node, scope)
        if isinstance(node, _CHOICES):
            for one in _branches(node):
                self._pad(one, scope)
        if not isinstance(node, exp.Column):
            return
        found = self.lineage.find(node, scope)
        if found is None or found.column.padded is None:
            return
        if found.column.padded == 0:
            hint = f"CAST({found.column.name} AS VARCHAR) is the text without them, here and in PostgreSQL"
            message = (
                f"{found} is a bpchar without a length: LIKE, regular expressions and concat see the blanks at its "
                f"end, which sql does not have\nHint: {hint}"
            )
            raise NotSupportedError(message, hint=hint)
        self._wrap(node, "rpad(", f", {found.column.padded}, ' ')")

    def _compare(self, one: exp.Expression, other: exp.Expression, scope: Scope) -> None:
        """Take the blanks from what is compared with a char(n), unless that is a text."""
        kinds = {self._kind(one, scope), self._kind(other, scope)}
        if _Kind.PADDED in kinds and _Kind.OTHER not in kinds:
            self._trim(one, scope)
            self._trim(other, scope)

    def _kind(self, node: Any, scope: Scope) -> "_Kind":
        """Tell what a value is to PostgreSQL."""
        node, scope = self._inner(node, scope)
        if isinstance(node, exp.Null) or _text(node, self._params) is not None:
            return _Kind.CONSTANT
        if isinstance(node, _CHOICES):
            kinds = {self._kind(one, scope) for one in _branches(node)} - {_Kind.CONSTANT}
            # The greatest of varchar is a text.
            relation_of = {_Kind.PADDED} if isinstance(node, _ENDS) else {_Kind.PADDED, _Kind.VARYING}
            return min(kinds, key=lambda kind: kind.value) if kinds and kinds <= relation_of else _Kind.OTHER
        found = self.lineage.find(node, scope)
        if found is not None and found.column.padded is not None:
            return _Kind.PADDED
        return _Kind.VARYING if found is not None and found.column.type.varying else _Kind.OTHER

    def _inner(self, node: Any, scope: Scope) -> tuple[Any, Scope]:
        """Give a value without parentheses; of a subquery, its column."""
        node = node.unnest()
        inner = self.lineage.scope(node) if isinstance(node, exp.Select) else None
        return (node, scope) if inner is None else self._inner(node.expressions[0].unalias(), inner)

    def _trim(self, node: Any, scope: Scope) -> None:
        """Take the blanks from the end of a value."""
        node, scope = self._inner(node, scope)
        text = _text(node, self._params)
        if text is not None and text.endswith(" "):
            if isinstance(node, exp.Placeholder):
                self._placeholders.setdefault(node.name, []).append(node)
            else:
                stripped = text.rstrip(" ").replace("'", "''")
                self._found.edits.append(Edit(node.meta["start"], node.meta["end"], f"'{stripped}'"))
        elif isinstance(node, _CHOICES) and not isinstance(node, _ENDS):
            for one in _branches(node):
                self._trim(one, scope)
        elif isinstance(node, exp.Column) and self._kind(node, scope) is _Kind.VARYING:
            self._wrap(node, "rtrim(", ", ' ')")

    def _wrap(self, node: exp.Column, before: str, after: str) -> None:
        start, end = node.parts[0].meta["start"], node.parts[-1].meta["end"]
        self._found.edits += [Edit(start, start - 1, before), Edit(end + 1, end, after)]

    def _equals(self, node: exp.Expression, scope: Scope) -> Iterator[exp.Expression | Found | None]:
        """Give what is compared by its bytes, with another or with itself in other rows."""
        for one, other in _compared(node):
            yield from (one, other)
        if isinstance(node, exp.Like):
            yield from (node.this, node.expression)
        elif isinstance(node, exp.Join):
            names = {name.name.lower() for name in node.args.get("using") or []}
            inputs = self.lineage.inputs(scope)
            if node.method.upper() == "NATURAL":
                names = {name for name, count in Counter(name for name, _ in inputs).items() if count > 1}
            yield from (found for name, found in inputs if name in names)
        elif isinstance(node, exp.Window):
            yield from node.args.get("partition_by") or []
        elif isinstance(node, exp.Distinct) and isinstance(node.parent, exp.AggFunc):
            yield from node.expressions
        elif isinstance(node, exp.SetOperation) and not isinstance(node.parent, exp.SetOperation):
            every = isinstance(node, exp.Union) and not node.args.get("distinct")
            yield from () if every else (found for _, found in self.lineage.outputs(node))
        elif isinstance(node, exp.Select):
            yield from self._grouped(node)

    def _grouped(self, node: exp.Select) -> Iterator[exp.Expression | Found | None]:
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            yield from distinct.args["on"].expressions
        elif distinct is not None:
            yield from (found for _, found in self.lineage.outputs(node))
        group = node.args.get("group")
        if group is None:
            return
        plain = [item for item in node.expressions if not item.find(exp.AggFunc)]
        yield from plain if group.args.get("all") else ()
        for key in group.expressions:
            if isinstance(key, exp.Literal) and not key.is_string and key.name.isdecimal():
                yield from node.expressions[int(key.name) - 1 : int(key.name)]
            else:
                yield key


def _text(node: Any, params: Params) -> str | None:
    """Give a constant text; None for what is none."""
    try:
        value = constant(node, params)
    except Unsafe:
        return None
    if isinstance(value, Quoted):
        return value.text if isinstance(node, exp.Literal) else None
    return value if isinstance(value, str) and isinstance(node, exp.Placeholder) else None


def _is_own(column: Column) -> bool:
    return column.padded is not None or column.collation is not None


def _padded(node: exp.Expression) -> Sequence[exp.Expression]:
    """Give the operands of which PostgreSQL sees the padding."""
    if isinstance(node, _PATTERNS):
        return [node.this]
    if isinstance(node, _BYTES):
        return [node.this] if isinstance(node, exp.Encode) else node.expressions
    if isinstance(node, exp.Cast) and node.to.is_type(exp.DataType.Type.VARBINARY, exp.DataType.Type.BINARY):
        return [node.this]
    return []


def _branches(node: exp.Expression) -> list[exp.Expression]:
    """Give the values of which an expression gives one."""
    if isinstance(node, exp.Case):
        return [*(one.args["true"] for one in node.args["ifs"]), *filter(None, [node.args.get("default")])]
    if isinstance(node, exp.If):
        return [node.args["true"], *filter(None, [node.args.get("false")])]
    if isinstance(node, exp.Nullif):
        return [node.this]
    return [node.this, *(node.args.get("expressions") or [])]


def _compared(node: exp.Expression) -> Iterator[tuple[exp.Expression, exp.Expression]]:
    """Give the pairs that are compared."""
    if isinstance(node, (*_COMPARISONS, exp.Nullif)):
        left, right = node.this.unnest(), node.expression.unnest()
        right = right.this if isinstance(right, exp.Any | exp.All) else right
        if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple):
            yield from zip(left.expressions, right.expressions, strict=False)
        else:
            yield left, right
    elif isinstance(node, exp.In):
        query = node.args.get("query")
        yield from ((node.this, one) for one in ([query] if query is not None else node.expressions))
    elif isinstance(node, exp.Between):
        yield from ((node.this, node.args[end]) for end in ("low", "high"))
    elif isinstance(node, exp.Case) and node.this is not None:
        yield from ((node.this, one.this) for one in node.args["ifs"])
