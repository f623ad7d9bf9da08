"""A query over attached databases, divided: what each source reads, and what the engine does with it.

The engine tests the filters of one table again, so a source's has to be true wherever the engine's is, but for a
condition on texts that the source compares otherwise.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from longshore.duckdb.parameters import Params
from longshore.duckdb.remote.dialect import Dialect
from longshore.duckdb.remote.expressions import ExpressionWriter, NameScope, Relation, relation_of
from longshore.duckdb.remote.queries import ResultColumn, SelectWriter, empty_table, result_columns
from longshore.duckdb.remote.semantics import bytewise
from longshore.duckdb.remote.text import (
    Edit,
    ParsedQuery,
    Projection,
    Reference,
    Tokens,
    apply_edits,
    is_read_once,
    is_stateless,
    listed_source,
    locate,
    mixes_parameter_styles,
    parentheses,
    parse,
    parse_query,
)
from longshore.duckdb.remote.types import Column, Table, Trust, Unsafe
from longshore.errors import NotSupportedError
from longshore.texts import quoted_name

if TYPE_CHECKING:
    from longshore.duckdb.remote.attach import AnySource

Tables = Sequence[tuple[Reference, Table]]

_JOINS = {"", "INNER", "CROSS", "OUTER"}
_SIDES = {"", "LEFT", "RIGHT", "FULL"}

#: The parts of a subquery that reduce its rows, beyond its tables' filters.
_REDUCING = (exp.AggFunc, exp.Group, exp.Join, exp.Limit, exp.Distinct, exp.Union)


@dataclass(frozen=True)
class Read:
    """A query that a source runs, and the name of its result in the engine's query."""

    name: str
    source: str
    sql: str
    #: Whether the result's types are known before its rows.
    is_typed: bool = True
    #: Whether the engine reads the rows once, so that they can be streamed.
    is_read_once: bool = True
    #: Whether several connections may read it, a part each.
    can_split: bool = True
    #: The table and its columns, where it is not more than that.
    table: str = ""
    columns: Sequence[str] = ()
    #: The Arrow types that the engine's columns have.
    schema: Mapping[str, pa.DataType] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """The engine's query, and the reads that it needs."""

    sql: str
    params: Params
    reads: Sequence[Read] = ()
    #: The columns of the result if the one read is all of the query.
    whole: Sequence[ResultColumn] | None = None
    #: The columns that the engine compares by bytes and their databases otherwise, with the reason.
    bytewise: Mapping[str, str] = field(default_factory=dict)


#: Gives the names and the engine's types of a query's columns; raises ``Unsafe`` where it cannot be bound.
Describe = Callable[[str, Params], Sequence[tuple[str, str]]]


def plan(query: str, sources: Mapping[str, "AnySource"], params: Params, describe: Describe) -> Plan:
    """Divide a query."""
    text = parse_query(query, tuple((name, type(source.dialect)) for name, source in sources.items()))
    if (name := listed_source(text.words, sources)) is not None:
        hint = sources[name].dialect.listing.format(quoted_name(name))
        raise NotSupportedError("SHOW lists the engine's own tables, and none of an attached database", hint=hint)
    if not text.references:
        return Plan(query, params)
    for name, source in sources.items():
        # Before the first query of a catalogue, which is then of the same snapshot as the rows.
        source.in_snapshot = sum(reference.source == name for reference in text.references) > 1
    tables = [sources[one.source].table(one.parts) for one in text.references]

    def make() -> Plan:
        described = list(zip(text.references, tables, strict=True))
        planner = _Planner(query, text, sources, described, params, describe)
        return planner.whole() or planner.parts()

    # Equal parameters, such as 1 and True, can be different constants.
    return text.plan(tables, make) if params is None else make()


@dataclass(frozen=True)
class Subquery:
    """A subquery: its span in the text without the parentheses, its tree, and its tables."""

    start: int
    end: int
    node: exp.Expression
    tables: Tables


@dataclass
class _Planner:
    """The planner of one query."""

    query: str
    text: ParsedQuery
    sources: Mapping[str, "AnySource"]
    tables: Tables
    params: Params
    describe: Describe

    def __post_init__(self) -> None:
        trees = self.text.trees or []
        #: Whether a source may get more than a selection of columns.
        self._pushes = (
            not mixes_parameter_styles(self.text.words) and is_stateless(trees) and _has_all_params(trees, self.params)
        )
        self._reads: dict[tuple[str, str], Read] = {}
        #: Conditions that a source tests alone, each with its replacement.
        self._replaced: list[tuple[exp.Expression, Edit]] = []

    def whole(self) -> Plan | None:
        """Give the whole query to one source, or None."""
        if not self._pushes or self.text.trees is None or len(self.text.trees) != 1:
            return None
        answered = self._push(self.text.trees[0], self.query, self.tables)
        if answered is None:
            return None
        read, columns = answered
        if all(column.type for column in columns):
            return Plan("", None, [read], whole=columns)
        return Plan(_rename(read, columns), None, [read])

    def parts(self) -> Plan:
        """Give subqueries to sources, read the other tables one by one, and have the engine do the rest."""
        edits, pushed = self._push_subqueries()
        inside = {id(one) for subquery in pushed for one, _ in subquery.tables}
        projection = Projection(self.text.words, self.text.trees)
        for reference, table in self.tables:
            if id(reference) not in inside:
                edits += reference.replacements(self._read(reference, table, projection))
        edits += [edit for _, edit in self._replaced]
        trees = self.text.trees or []
        answered = [*(subquery.node for subquery in pushed), *(node for node, _ in self._replaced)]
        params = self.params
        if isinstance(params, dict) and self.text.trees is not None:
            params = _params_without(trees, answered, params)
        differing = bytewise(trees, self.tables, answered, self.params)
        return Plan(apply_edits(self.query, edits), params, list(self._reads.values()), bytewise=differing)

    def _push_subqueries(self) -> tuple[list[Edit], list[Subquery]]:
        """Give the subqueries that sources answer, outer ones first, and the edits that replace them."""
        edits: list[Edit] = []
        pushed: list[Subquery] = []
        trees = self.text.trees or [] if self._pushes else []
        nodes: Iterator[Any] = (node for tree in trees for node in tree.find_all(exp.Subquery, exp.CTE, bfs=True))
        for node in nodes:
            subquery = self._subquery(node)
            if subquery is None or any(one.start <= subquery.start <= one.end for one in pushed):
                continue
            text = self.query[subquery.start : subquery.end + 1]
            answered = self._push(node.this, text, subquery.tables, offset=subquery.start)
            if answered is not None:
                read, columns = answered
                streams = not isinstance(node, exp.CTE) and is_read_once(node)
                self._reads[read.source, f"{read.name}: {read.sql}"] = replace(read, is_read_once=streams)
                edits.append(Edit(subquery.start, subquery.end, _rename(read, columns)))
                pushed.append(subquery)
        return edits, pushed

    def _subquery(self, node: Any) -> Subquery | None:
        """Give a subquery over tables of one source that reduces rows, without positional parameters; else None."""
        tables = [(one, table) for one, table in self.tables if one.node is not None and _within(one.node, node)]
        if not tables or len({one.source for one, _ in tables}) > 1 or not node.this.find(*_REDUCING):
            return None
        if isinstance(self.params, list) and node.find(exp.Placeholder):
            return None
        span = _locate_subquery(self.query, self.text.words, node, tables)
        return span and Subquery(*span, node, tables)

    def _push(
        self, tree: exp.Expression, text: str, tables: Tables, offset: int = 0
    ) -> tuple[Read, list[ResultColumn]] | None:
        """Write a query for the one source of its tables; None where it has several, or cannot be pushed."""
        first, _ = tables[0]
        if not all(one.source == first.source and table.is_typed for one, table in tables):
            return None
        dialect = self.sources[first.source].dialect
        if not dialect.answers_queries:
            return None
        try:
            written = SelectWriter(dialect, tables, self.params, tree)
            edits = [edit.shift(-offset) for one, table in tables for edit in one.replacements(empty_table(table))]
            columns = result_columns(written, self.describe(apply_edits(text, edits), _params_of(tree, self.params)))
        except (Unsafe, RecursionError):
            return None
        types = {column.read: column.type for column in columns if column.type is not None}
        sql = written.sql([dialect.name(column.read) for column in columns])
        return Read(self._name(), first.source, sql, can_split=False, schema=types), columns

    def _read(self, reference: Reference, table: Table, projection: Projection) -> str:
        """Read the rows and columns that the query needs of a table, and give their name in the engine's query."""
        dialect = self.sources[reference.source].dialect
        columns = projection.columns(reference, table)
        _refuse_ambiguous(reference, columns)
        sql = f"SELECT {', '.join(column.select_item for column in columns)} FROM {table.sql}"
        if filters := self._filters(reference, table, dialect):
            sql += f" WHERE {' AND '.join(filters)}"
        key = reference.source, sql
        if key in self._reads:
            self._reads[key] = replace(self._reads[key], is_read_once=False)
        else:
            name = self._name()
            self._reads[key] = Read(
                name,
                reference.source,
                sql,
                is_typed=table.is_typed,
                is_read_once=reference.is_read_once,
                table=reference.parts[-1],
                columns=[column.name for column in columns],
            )
        return self._reads[key].name

    def _filters(self, reference: Reference, table: Table, dialect: Dialect) -> list[str]:
        """Give the filters of a table in its source's SQL, its columns without an alias.

        A condition on a text that the source compares otherwise is its alone, if its text can be replaced.
        """
        node, select = reference.node, reference.select
        if not self._pushes or not table.is_typed or node is None or select is None or node.args.get("sample"):
            return []
        others = [(one, of) for one, of in self.tables if one.node is not node]
        names = _names(reference, table, others, select)
        if names is None:
            return []
        in_source = replace(table, columns=[column.in_source for column in table.columns])
        source_names = _names(reference, in_source, others, select) or names
        collated = {column.name.lower() for column in table.columns if column.own_equality}
        filters = []
        for condition in _conjuncts(select, node):
            if any(one.name.lower() in collated for one in condition.find_all(exp.Column)):
                with contextlib.suppress(Unsafe):
                    sql, trust = ExpressionWriter(dialect, source_names, self.params).test(condition)
                    span = self._locate(condition)
                    if trust is Trust.EXACT and span is not None:
                        filters.append(sql)
                        self._replaced.append((condition, Edit(*span, "TRUE")))
                        continue
            with contextlib.suppress(Unsafe):
                filters.append(ExpressionWriter(dialect, names, self.params).test(condition)[0])
        return filters

    def _locate(self, condition: exp.Expression) -> tuple[int, int] | None:
        """Give a condition's span in the text, if it can be replaced there."""
        if isinstance(self.params, list) and condition.find(exp.Placeholder):
            return None
        return locate(self.query, self.text.words, condition)

    def _name(self) -> str:
        name = f"longshore_{len(self._reads) + 1}"
        while name in self.query.lower():
            name += "_"
        return name


def _rename(read: Read, columns: Sequence[ResultColumn]) -> str:
    """Give a source's columns the engine's names."""
    return f"SELECT {', '.join(column.sql for column in columns)} FROM {read.name}"


def _refuse_ambiguous(reference: Reference, columns: Sequence[Column]) -> None:
    """Refuse two columns whose names differ in case: the engine would rename one."""
    seen: dict[str, str] = {}
    for column in columns:
        twin = seen.setdefault(column.name.lower(), column.name)
        if twin != column.name:
            table = ".".join((reference.source, *reference.parts))
            raise NotSupportedError(
                f"{table} has the columns {twin!r} and {column.name!r}, which are one name to the engine; "
                "read_sql gives a frame in which they can be renamed"
            )


def _names(reference: Reference, table: Table, others: Tables, select: exp.Select) -> NameScope | None:
    """Give the columns that are the table's alone, but for those of a USING; None for other kinds of joins."""
    joins = select.args.get("joins") or []
    if any(join.kind not in _JOINS or join.side not in _SIDES or join.method for join in joins):
        return None
    if any(select.args.get(name) for name in ("sample", "laterals", "pivots", "prewhere", "connect", "match")):
        return None
    merged = {name.name.lower() for join in joins for name in join.args.get("using") or []}
    own = relation_of(reference, table, table.sql)
    relations = [Relation(own.names, {name: None if name in merged else value for name, value in own.columns.items()})]
    for other, of in others:
        if other.node is not None and other.node.parent_select is select:
            hidden = relation_of(other, of, "")
            relations.append(Relation(hidden.names, dict.fromkeys(hidden.columns)))
    return NameScope(relations)


def _conjuncts(select: exp.Select, table: exp.Table) -> list[exp.Expression]:
    """Give the conditions that hold for every row of the table in the result."""
    joins: Sequence[exp.Join] = select.args.get("joins") or []
    own = next((at for at, join in enumerate(joins) if join.this is table), -1)
    conjuncts: list[exp.Expression] = []
    if own >= 0 and joins[own].side in {"", "LEFT"}:
        # A row of the table that fails its join's condition is not joined.
        conjuncts += _split(joins[own].args.get("on"))
    if _may_be_missing(joins, own):
        return conjuncts
    where = select.args.get("where")
    conjuncts += _split(where.this if where else None)
    for at, join in enumerate(joins):
        if at != own and not join.side:
            conjuncts += _split(join.args.get("on"))
    return conjuncts


def _may_be_missing(joins: Sequence[exp.Join], own: int) -> bool:
    """Whether an outer join may give NULLs instead of the table's row."""
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


def _params_of(tree: exp.Expression, params: Params) -> Params:
    """Give the parameters of a query, or the named ones of its part."""
    if not isinstance(params, dict):
        return params if tree.parent is None else None
    names = {one.name for one in tree.find_all(exp.Placeholder)}
    return {name: value for name, value in params.items() if name in names} or None


def _has_all_params(trees: Sequence[exp.Expression], params: Params) -> bool:
    """Whether the query has all named parameters; one that it does not have is the engine's error."""
    if not isinstance(params, dict):
        return True
    return params.keys() <= {one.name for tree in trees for one in tree.find_all(exp.Placeholder)}


def _params_without(
    trees: Sequence[exp.Expression], pushed: Sequence[exp.Expression], params: Mapping[str, object]
) -> dict[str, object]:
    """Give the named parameters of the query without its pushed parts."""
    inside = {id(one) for node in pushed for one in node.find_all(exp.Placeholder)}
    used = {one.name for tree in trees for one in tree.find_all(exp.Placeholder) if id(one) not in inside}
    unused = {one.name for node in pushed for one in node.find_all(exp.Placeholder)} - used
    return {name: value for name, value in params.items() if name not in unused}


def _within(node: Any, around: Any) -> bool:
    while node is not None and node is not around:
        node = node.parent
    return node is not None


def _locate_subquery(query: str, words: Tokens, node: exp.Expression, tables: Tables) -> tuple[int, int] | None:
    """Find where the text of a subquery begins and ends: it has to parse to the same tree."""
    start, end = min(one.start for one, _ in tables), max(one.end for one, _ in tables)
    for opening, closing in parentheses(words):
        inner = words[opening + 1 : closing]
        if not inner or inner[0].start > start or inner[-1].end < end:
            continue
        alone = parse(query, inner)
        if alone is not None and len(alone) == 1 and alone[0] == node.this:
            return inner[0].start, inner[-1].end
    return None
