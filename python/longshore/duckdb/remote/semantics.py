"""The comparisons that a database makes otherwise than the engine: by a collation, or of ``char(n)``.

Columns are followed by their names through the whole statement, so that one of the same name in another table may be
reported, too, where no alias tells them apart.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlglot import exp

from longshore.duckdb.parameters import Params
from longshore.duckdb.remote.text import Reference
from longshore.duckdb.remote.types import Column, Quoted, Table, Unsafe, constant

#: Expressions with a value of their argument.
_ONE_OF = (exp.Paren, exp.Alias, exp.Min, exp.Max, exp.AnyValue, exp.IgnoreNulls, exp.First, exp.Last, exp.Window)
#: Expressions with a value of one of their arguments.
_CHOICES = (exp.Coalesce, exp.Greatest, exp.Least)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Nullif)
#: Operators and functions that see the padding of a ``char(n)``.
_PATTERNS = (exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpILike, exp.RegexpFullMatch, exp.SimilarTo)
_BYTES = (exp.Concat, exp.ConcatWs, exp.Encode)

Tables = Sequence[tuple[Reference, Table]]
#: A column of an attached table after its name in the query.
Found = tuple[str, Column]


def bytewise(
    trees: Sequence[exp.Expression], tables: Tables, pushed: Iterable[exp.Expression], params: Params
) -> Mapping[str, str]:
    """Give the columns that the engine compares by bytes and their databases otherwise, each with the reason.

    ``pushed`` are the parts that sources answer.
    """
    if not any(column.own_equality for _, table in tables for column in table.columns):
        return {}
    answered = {id(node) for part in pushed for node in part.walk()}
    columns = _Columns(trees, tables)
    nodes = (node for tree in trees for node in tree.walk() if id(node) not in answered)
    return {name: str(column.own_equality) for node in nodes for name, column in _differing(node, columns, params)}


class _Columns:
    """The columns whose texts a database compares its own way, by the names that a statement gives them."""

    def __init__(self, trees: Sequence[exp.Expression], tables: Tables) -> None:
        self._by_table: dict[str, dict[str, Found]] = {}
        for reference, table in tables:
            renamed = reference.node.alias_column_names if reference.node is not None else []
            names = [*renamed, *(column.name for column in table.columns[len(renamed) :])]
            columns = {
                alias.lower(): (".".join((reference.source, *reference.parts, column.name)), column)
                for alias, column in zip(names, table.columns, strict=False)
                if column.own_equality or column.type.varying
            }
            self._by_table.setdefault(reference.alias.lower(), {}).update(columns)
        common = {node.alias.lower() for tree in trees for node in tree.find_all(exp.CTE)}
        named = [node for tree in trees for node in tree.find_all(exp.Table) if node.name.lower() not in common]
        self._tables = {node.alias_or_name.lower() for node in named}
        self._by_name: dict[str, list[Found]] = defaultdict(list)
        for columns in self._by_table.values():
            for column_name, found in columns.items():
                self._by_name[column_name].append(found)
        self._follow(trees)

    def _follow(self, trees: Sequence[exp.Expression]) -> None:
        """Add the names that aliases, lists of columns and the first part of a UNION give the columns."""
        nodes = [node for tree in trees for node in tree.walk()]
        renamed: list[tuple[str, Any]] = [(node.alias, node.this) for node in nodes if isinstance(node, exp.Alias)]
        for node in nodes:
            if isinstance(node, exp.Subquery | exp.CTE):
                query, names = node.this, node.alias_column_names
                if not isinstance(query, exp.Query):
                    # PIVOT and SUMMARIZE have columns of their own.
                    continue
            elif isinstance(node, exp.SetOperation):
                query, names = node.right, node.named_selects
            else:
                continue
            # What stands for a star is not counted.
            renamed += [(name, query) for name in names] if query.is_star else zip(names, query.selects, strict=False)
        found = True
        while found:
            named = [(self._by_name[name.lower()], self.find(item)) for name, item in renamed]
            found = any(one not in known for known, items in named for one in items)
            for known, items in named:
                known += [one for one in items if one not in known]

    def find(self, node: Any) -> list[Found]:
        """Give the columns whose values an expression may have."""
        if isinstance(node, exp.Query) and node.is_star:
            return list(self.of_query(node))
        return [found for leaf in _leaves(node) if isinstance(leaf, exp.Column) for found in self.columns(leaf)]

    def columns(self, node: Any) -> list[Found]:
        """Give the column of a name, of one table or of any."""
        table = node.table.lower() if isinstance(node, exp.Column) else ""
        name = node.name.lower()
        if table not in self._tables:
            return self._by_name.get(name, [])
        columns = self._by_table.get(table, {})
        return [columns[name]] if name in columns else []

    def of_query(self, query: Any) -> Iterator[Found]:
        """Give the columns of a query's result; a star stands for those of all its tables."""
        yield from (found for item in query.selects if not item.is_star for found in self.find(item))
        if query.is_star:
            for name in (table.alias_or_name.lower() for table in query.find_all(exp.Table)):
                yield from self._by_table.get(name, {}).values() if name in self._tables else self._every()

    def _every(self) -> Iterator[Found]:
        return (found for columns in self._by_table.values() for found in columns.values())

    def shared_columns(self, join: exp.Join) -> Iterator[Found]:
        """Give the columns that a join compares by their names."""
        for name in join.args.get("using") or []:
            yield from self.columns(name)
        if join.method.upper() == "NATURAL":
            yield from self._every()


def _leaves(node: Any) -> Iterator[Any]:
    """Give the expressions of which one has the value of a choice between them."""
    inner: Sequence[Any] = ()
    if isinstance(node, exp.Case):
        inner = [*(one.args["true"] for one in node.args["ifs"]), node.args.get("default")]
    elif isinstance(node, exp.If):
        inner = [node.args["true"], node.args.get("false")]
    elif isinstance(node, _CHOICES):
        inner = [node.this, *node.expressions]
    elif isinstance(node, exp.Query):
        inner = node.selects[:1]
    elif isinstance(node, (*_ONE_OF, exp.Nullif)):
        inner = [node.this]
    elif node is not None:
        yield node
    for one in inner:
        yield from _leaves(one)


def _differing(node: Any, columns: _Columns, params: Params) -> Iterator[Found]:
    """Give the columns that an expression compares otherwise than their database."""
    collated = list(_made_equal(node, columns))
    for pair in _comparisons(node):
        found = [one for side in pair for one in columns.find(side)]
        collated += found
        # A char(n) ignores the blanks of constants and of varchar, not those of text.
        is_varying = any(column.type.varying for _, column in found)
        if is_varying or any(_ends_blank(leaf, params) for side in pair for leaf in _leaves(side)):
            yield from (one for one in found if one[1].padded is not None)
    for operand in _padding_seen(node):
        yield from (one for one in columns.find(operand) if one[1].padded is not None)
    yield from (one for one in collated if one[1].collation is not None)


def _ends_blank(node: exp.Expression, params: Params) -> bool:
    """Whether it is a constant text with blanks at its end."""
    try:
        value = constant(node, params)
    except Unsafe:
        return False
    text = value.text if isinstance(value, Quoted) else value
    return isinstance(text, str) and text.endswith(" ")


def _comparisons(node: Any) -> Iterator[tuple[exp.Expression, exp.Expression]]:
    """Give the pairs that are compared."""
    if isinstance(node, _COMPARISONS):
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


def _padding_seen(node: Any) -> Sequence[Any]:
    """Give the operands whose padding PostgreSQL sees."""
    if isinstance(node, _PATTERNS):
        return [node.this]
    if isinstance(node, _BYTES):
        return [node.this] if isinstance(node, exp.Encode) else node.expressions
    if isinstance(node, exp.Cast) and node.to.is_type(exp.DataType.Type.VARBINARY, exp.DataType.Type.BINARY):
        return [node.this]
    return []


def _made_equal(node: Any, columns: _Columns) -> Iterator[Found]:
    """Give the columns of which the engine compares the values of rows, or with a pattern."""
    if isinstance(node, exp.Join):
        yield from columns.shared_columns(node)
    elif isinstance(node, exp.SetOperation):
        every = isinstance(node, exp.Union) and not node.args.get("distinct")
        yield from () if every else (one for side in (node.left, node.right) for one in columns.of_query(side))
    elif isinstance(node, exp.Select) and (distinct := node.args.get("distinct")) and not distinct.args.get("on"):
        yield from columns.of_query(node)
    for key in _keys(node):
        yield from columns.find(key)


def _keys(node: Any) -> Iterator[Any]:
    """Give the expressions by which rows are told apart, or found."""
    if isinstance(node, exp.Like):
        yield from (node.this, node.expression)
    elif isinstance(node, exp.Window):
        yield from node.args.get("partition_by") or []
    elif isinstance(node, exp.Distinct):
        on = node.args.get("on")
        yield from node.expressions if on is None else on.expressions
    elif isinstance(node, exp.Group):
        items = node.parent.expressions if isinstance(node.parent, exp.Select) else []
        yield from (item for item in items if node.args.get("all") and not item.find(exp.AggFunc))
        for key in node.expressions:
            is_number = isinstance(key, exp.Literal) and not key.is_string and key.name.isdecimal()
            yield from items[int(key.name) - 1 : int(key.name)] if is_number else [key]
