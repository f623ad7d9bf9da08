"""The comparisons that a database makes otherwise than the engine: char(n) is edited, collations are reported."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from longshore.duckdb.parameters import Params
from longshore.duckdb.remote.text import Edit, Reference
from longshore.duckdb.remote.types import Column, Quoted, Table, Unsafe, constant
from longshore.errors import NotSupportedError

#: Expressions with a value of their argument.
_ONE_OF = (exp.Paren, exp.Alias, exp.Min, exp.Max, exp.AnyValue, exp.IgnoreNulls, exp.First, exp.Last, exp.Window)


@dataclass(frozen=True)
class SourceColumn:
    """A column of an attached table, and the table's name in the query."""

    table: str
    column: Column

    def __str__(self) -> str:
        """Give its name in the query."""
        return f"{self.table}.{self.column.name}"


#: The name of a query's column, and the source's column that it is.
Output = tuple[str, SourceColumn | None]


class Lineage:
    """The columns of attached tables behind the names of a query, through subqueries; None where ambiguous."""

    def __init__(self, trees: Sequence[exp.Expression], tables: Sequence[tuple[Reference, Table]]) -> None:
        """Collect the scope of each SELECT."""
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
        """Give each expression with the scope of its names."""
        for tree in self._trees:
            for node in tree.walk():
                scope = self.scope(node)
                if scope is not None:
                    yield node, scope

    def scope(self, node: Any) -> Scope | None:
        """Give the scope of the names of an expression."""
        around = node if id(node) in self._by_node else node.find_ancestor(exp.Select, exp.SetOperation)
        return self._by_node.get(id(around))

    def find(self, node: exp.Expression | None, scope: Scope) -> SourceColumn | None:
        """Give the column whose values an expression has."""
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
            # A recursive query has the columns of its first part.
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
        outputs: list[Output] = []
        for item in node.expressions:
            if item.is_star:
                outputs += self._star(item, scope)
            else:
                outputs.append((item.alias_or_name.lower(), self.find(item, scope)))
        return outputs

    def _star(self, item: exp.Expression, scope: Scope) -> list[Output]:
        table = item.table.lower() if isinstance(item, exp.Column) else ""
        sources = self._sources(scope)
        return [one for name, *of in sources if not table or table == name.lower() for one in self._columns(*of)]

    def _named(self, name: str, table: str, scope: Scope) -> SourceColumn | None:
        around: Scope | None = scope
        while around is not None:
            for alias, *of in self._sources(around):
                if not table or alias.lower() == table:
                    for column_name, column in self._columns(*of):
                        if column_name == name:
                            return column
            select = around.expression
            if not table and isinstance(select, exp.Select):
                for item in select.expressions:
                    if isinstance(item, exp.Alias) and item.alias.lower() == name and not _refers_to(item, name):
                        return self.find(item, around)
            around = around.parent
        return None

    def _sources(self, scope: Scope) -> Iterator[tuple[str, Any, Any]]:
        """Give the tables and subqueries of a FROM: alias, node, and table or scope."""
        for name, node in scope.references:
            # There may be several subqueries without an alias.
            source = self._by_node.get(id(node)) or scope.sources.get(name)
            if source is not None:
                yield name, node, source

    def _columns(self, node: Any, source: Any) -> list[Output]:
        """Give the columns of a table or subquery of a FROM, by their names there."""
        if isinstance(source, Scope):
            columns = self.outputs(source.expression)
            common = source.expression.parent
            names = common.alias_column_names if isinstance(common, exp.CTE) else []
            columns = _renamed(columns, names)
        elif id(source) in self._tables:
            reference, table = self._tables[id(source)]
            name = ".".join((reference.source, *reference.parts))
            columns = [(column.name.lower(), SourceColumn(name, column)) for column in table.columns]
        else:
            return []
        item = node if isinstance(node, exp.Table) else node.parent
        return _renamed(columns, item.alias_column_names if isinstance(item, exp.Table | exp.Subquery) else [])


def _renamed(columns: list[Output], names: Sequence[str]) -> list[Output]:
    return [(name.lower(), column) for name, (_, column) in zip(names, columns, strict=False)] + columns[len(names) :]


def _refers_to(item: exp.Expression, name: str) -> bool:
    return any(column.name.lower() == name for column in item.find_all(exp.Column))


def _either(left: SourceColumn | None, right: SourceColumn | None) -> SourceColumn | None:
    """Give one column of a UNION: padded if both are, and to their length if it is the same."""
    if left is None or right is None or left.column.padded is right.column.padded is None:
        return left or right
    if left.column.padded is None or right.column.padded is None:
        return None
    if left.column.padded == right.column.padded:
        return left
    return replace(left, column=replace(left.column, padded=0))


_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
#: Operators that see the padding of their first operand.
_PATTERNS = (exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpILike, exp.RegexpFullMatch, exp.SimilarTo)
#: Functions that see the padding of each argument.
_BYTES = (exp.Concat, exp.ConcatWs, exp.Encode)
_ENDS = (exp.Max, exp.Min)
#: Expressions with the value of one argument, and its padding.
_CHOICES = (exp.Paren, exp.Coalesce, exp.Case, exp.If, exp.Nullif, exp.Greatest, exp.Least, *_ENDS)


class _Kind(Enum):
    """The kinds of values that decide whether blanks at the end count in a comparison."""

    PADDED = "char(n)"
    VARYING = "varchar"
    CONSTANT = "constant"
    OTHER = "other"


@dataclass
class Semantics:
    """The changes by which the engine's query means what the databases mean."""

    edits: list[Edit] = field(default_factory=list)
    #: Values of parameters without their blanks, by name, or by position from 0.
    stripped: dict[Any, str] = field(default_factory=dict)
    #: The columns that the engine compares by bytes and their databases by a collation, with that.
    bytewise: dict[str, str] = field(default_factory=dict)

    def params(self, params: Params) -> Params:
        """Give the parameters of the engine's query."""
        if isinstance(params, Mapping):
            return {name: self.stripped.get(name, value) for name, value in params.items()}
        return params and [self.stripped.get(at, value) for at, value in enumerate(params)]


def semantics(
    trees: Sequence[exp.Expression],
    tables: Sequence[tuple[Reference, Table]],
    pushed: Sequence[exp.Expression],
    params: Params,
) -> Semantics:
    """Analyse what the engine does with the columns of ``tables``; ``pushed`` are the parts that sources answer."""
    result = Semantics()
    if not any(one.padded is not None or one.collation is not None for _, table in tables for one in table.columns):
        return result
    pushed_nodes = {id(node) for part in pushed for node in part.walk()}
    analysis = _Analysis(Lineage(trees, tables), params, result)
    for node, scope in analysis.lineage.nodes():
        if id(node) not in pushed_nodes:
            analysis.visit(node, scope)
    analysis.strip_parameters(trees, pushed_nodes)
    return result


class _Analysis:
    """The analysis of one query."""

    def __init__(self, lineage: Lineage, params: Params, result: Semantics) -> None:
        self.lineage = lineage
        self._params = params
        self._result = result
        #: Placeholders that are compared with a padded column, by their names.
        self._placeholders: dict[str, list[exp.Expression]] = {}

    def visit(self, node: exp.Expression, scope: Scope) -> None:
        """Analyse one expression."""
        for operand in _padded(node):
            self._pad(operand, scope)
        for one, other in _compared(node):
            self._compare(one, other, scope)
        for equal in self._equals(node, scope):
            column = equal if equal is None or isinstance(equal, SourceColumn) else self.lineage.find(equal, scope)
            if column is not None and column.column.collation is not None:
                self._result.bytewise[str(column)] = column.column.collation

    def strip_parameters(self, trees: Sequence[exp.Expression], pushed_nodes: set[int]) -> None:
        """Strip the blanks of parameters that are compared with a ``char(n)``."""
        for name, compared in self._placeholders.items():
            everywhere = [one for tree in trees for one in tree.find_all(exp.Placeholder) if one.name == name]
            if len([one for one in everywhere if id(one) not in pushed_nodes]) > len(compared):
                raise NotSupportedError(
                    f"the parameter {name} has blanks at its end, which mean nothing to a char(n) column and "
                    "something elsewhere in the query; give it twice, or without them"
                )
            key = int(name) - 1 if name.isdecimal() else name
            self._result.stripped[key] = constant(compared[0], self._params).rstrip(" ")

    def _pad(self, node: Any, scope: Scope) -> None:
        """Pad a char(n) where PostgreSQL sees its padding."""
        node, scope = self._inner(node, scope)
        if isinstance(node, _CHOICES):
            for one in _branches(node):
                self._pad(one, scope)
        if not isinstance(node, exp.Column):
            return
        column = self.lineage.find(node, scope)
        if column is None or column.column.padded is None:
            return
        if column.column.padded == 0:
            hint = f"CAST({column.column.name} AS VARCHAR) is the text without them, here and in PostgreSQL"
            message = (
                f"{column} is a bpchar without a length: LIKE, regular expressions and concat see the blanks at its "
                f"end, which sql does not have"
            )
            raise NotSupportedError(message, hint=hint)
        self._wrap(node, "rpad(", f", {column.column.padded}, ' ')")

    def _compare(self, one: exp.Expression, other: exp.Expression, scope: Scope) -> None:
        """Strip the blanks of what is compared with a char(n), unless that is a text."""
        kinds = {self._kind(one, scope), self._kind(other, scope)}
        if _Kind.PADDED in kinds and _Kind.OTHER not in kinds:
            self._trim(one, scope)
            self._trim(other, scope)

    def _kind(self, node: Any, scope: Scope) -> "_Kind":
        """Give the kind of a value to PostgreSQL."""
        node, scope = self._inner(node, scope)
        if isinstance(node, exp.Null) or _text(node, self._params) is not None:
            return _Kind.CONSTANT
        if isinstance(node, _CHOICES):
            kinds = {self._kind(one, scope) for one in _branches(node)} - {_Kind.CONSTANT}
            # The greatest of varchar is a text.
            with_padding = {_Kind.PADDED} if isinstance(node, _ENDS) else {_Kind.PADDED, _Kind.VARYING}
            return min(kinds, key=lambda kind: kind.value) if kinds and kinds <= with_padding else _Kind.OTHER
        column = self.lineage.find(node, scope)
        if column is not None and column.column.padded is not None:
            return _Kind.PADDED
        return _Kind.VARYING if column is not None and column.column.type.varying else _Kind.OTHER

    def _inner(self, node: Any, scope: Scope) -> tuple[Any, Scope]:
        """Give a value without its parentheses, and of a subquery its column."""
        node = node.unnest()
        inner = self.lineage.scope(node) if isinstance(node, exp.Select) else None
        return (node, scope) if inner is None else self._inner(node.expressions[0].unalias(), inner)

    def _trim(self, node: Any, scope: Scope) -> None:
        """Strip the blanks of a value."""
        node, scope = self._inner(node, scope)
        text = _text(node, self._params)
        if text is not None and text.endswith(" "):
            if isinstance(node, exp.Placeholder):
                self._placeholders.setdefault(node.name, []).append(node)
            else:
                stripped = text.rstrip(" ").replace("'", "''")
                self._result.edits.append(Edit(node.meta["start"], node.meta["end"], f"'{stripped}'"))
        elif isinstance(node, _CHOICES) and not isinstance(node, _ENDS):
            for one in _branches(node):
                self._trim(one, scope)
        elif isinstance(node, exp.Column) and self._kind(node, scope) is _Kind.VARYING:
            self._wrap(node, "rtrim(", ", ' ')")

    def _wrap(self, node: exp.Column, before: str, after: str) -> None:
        start, end = node.parts[0].meta["start"], node.parts[-1].meta["end"]
        self._result.edits += [Edit(start, start - 1, before), Edit(end + 1, end, after)]

    def _equals(self, node: exp.Expression, scope: Scope) -> Iterator[exp.Expression | SourceColumn | None]:
        """Give the values that the engine compares by bytes, with others or between rows."""
        for one, other in _compared(node):
            yield from (one, other)
        if isinstance(node, exp.Like):
            yield from (node.this, node.expression)
        elif isinstance(node, exp.Join):
            names = {name.name.lower() for name in node.args.get("using") or []}
            inputs = self.lineage.inputs(scope)
            if node.method.upper() == "NATURAL":
                names = {name for name, count in Counter(name for name, _ in inputs).items() if count > 1}
            yield from (column for name, column in inputs if name in names)
        elif isinstance(node, exp.Window):
            yield from node.args.get("partition_by") or []
        elif isinstance(node, exp.Distinct) and isinstance(node.parent, exp.AggFunc):
            yield from node.expressions
        elif isinstance(node, exp.SetOperation) and not isinstance(node.parent, exp.SetOperation):
            every = isinstance(node, exp.Union) and not node.args.get("distinct")
            yield from () if every else (column for _, column in self.lineage.outputs(node))
        elif isinstance(node, exp.Select):
            yield from self._grouped(node)

    def _grouped(self, node: exp.Select) -> Iterator[exp.Expression | SourceColumn | None]:
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            yield from distinct.args["on"].expressions
        elif distinct is not None:
            yield from (column for _, column in self.lineage.outputs(node))
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
    """Give the text of a constant; None for other expressions."""
    try:
        value = constant(node, params)
    except Unsafe:
        return None
    if isinstance(value, Quoted):
        return value.text if isinstance(node, exp.Literal) else None
    return value if isinstance(value, str) and isinstance(node, exp.Placeholder) else None


def _padded(node: exp.Expression) -> Sequence[exp.Expression]:
    """Give the operands whose padding PostgreSQL sees."""
    if isinstance(node, _PATTERNS):
        return [node.this]
    if isinstance(node, _BYTES):
        return [node.this] if isinstance(node, exp.Encode) else node.expressions
    if isinstance(node, exp.Cast) and node.to.is_type(exp.DataType.Type.VARBINARY, exp.DataType.Type.BINARY):
        return [node.this]
    return []


def _branches(node: exp.Expression) -> list[exp.Expression]:
    """Give the values of which an expression has one."""
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
