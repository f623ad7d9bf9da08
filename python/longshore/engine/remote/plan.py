"""A query over attached databases, divided: what each source reads, and what the engine does with it.

The engine tests the conditions of one table again, so a condition of a source has to be true wherever the engine's is,
and no more.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa
from sqlglot import exp

from longshore.engine.remote.dialect import Dialect
from longshore.engine.remote.expressions import ExpressionWriter, NameScope, Relation, relation_of
from longshore.engine.remote.literals import Params
from longshore.engine.remote.queries import ResultColumn, checked, empty_table, write
from longshore.engine.remote.references import (
    ParsedQuery,
    Projection,
    Reference,
    listed_source,
    parse_query,
    quoted,
    read_once,
)
from longshore.engine.remote.semantics import semantics
from longshore.engine.remote.text import (
    Edit,
    Tokens,
    apply_edits,
    is_stateless,
    mixes_parameter_styles,
    parenthesized,
    parsed,
    place,
)
from longshore.engine.remote.types import Column, Table, Trust, Unsafe
from longshore.errors import NotSupportedError

__all__ = [
    "Catalog",
    "Describe",
    "Filter",
    "Piece",
    "Plan",
    "Read",
    "filters",
    "names_all",
    "params_of",
    "params_without",
    "pieces",
    "plan",
]

_JOINS = {"", "INNER", "CROSS", "OUTER"}
_SIDES = {"", "LEFT", "RIGHT", "FULL"}


@dataclass(frozen=True)
class Filter:
    """A condition in a source's SQL."""

    sql: str
    #: Where the condition stands in the query if the engine may not test it again: its first and its last letter.
    place: tuple[int, int] | None = None
    node: exp.Expression | None = None


def filters(
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
                sql, trust = ExpressionWriter(dialect, own, params).test(condition)
                where = place(condition)
                if trust is Trust.EXACT and where is not None:
                    found.append(Filter(sql, where, condition))
                    continue
        except Unsafe:
            pass
        try:
            found.append(Filter(ExpressionWriter(dialect, names, params).test(condition)[0]))
        except Unsafe:
            continue
    return found


def _names(
    reference: Reference, table: Table, others: Sequence[tuple[Reference, Table]], select: exp.Select
) -> NameScope | None:
    """Give the columns that are the table's alone, and none of a USING; None for joins of another kind."""
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
            named = relation_of(other, of, "")
            relations.append(Relation(named.names, dict.fromkeys(named.columns)))
    return NameScope(relations)


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


#: What makes less of the rows than the conditions of their table do.
_WORTH = (exp.AggFunc, exp.Group, exp.Join, exp.Limit, exp.Distinct, exp.Union)


@dataclass(frozen=True)
class Piece:
    """A subquery: its place in the text without its parentheses, its tree, and the tables in it."""

    start: int
    end: int
    node: exp.Expression
    tables: Sequence[tuple[Reference, Table]]


def pieces(
    query: str,
    words: Tokens,
    trees: Sequence[exp.Expression],
    tables: Sequence[tuple[Reference, Table]],
    *,
    by_place: bool,
) -> Iterator[Piece]:
    """Find the subqueries that have tables of one source only, and something to gain; the outer ones first.

    Where parameters are given ``by_place``, none may go.
    """
    for tree in trees:
        nodes: Iterator[Any] = tree.find_all(exp.Subquery, exp.CTE, bfs=True)
        for node in nodes:
            inside = [(one, table) for one, table in tables if one.node is not None and _within(one.node, node)]
            if not inside or len({one.source for one, _ in inside}) > 1 or not node.this.find(*_WORTH):
                continue
            if by_place and node.find(exp.Placeholder):
                continue
            place = _place(query, words, node, inside)
            if place is not None:
                yield Piece(*place, node, inside)


def params_of(tree: exp.Expression, params: Params) -> Params:
    """Give the parameters of a query, or of a part of it that has none by place."""
    if not isinstance(params, dict):
        return params if tree.parent is None else None
    names = {one.name for one in tree.find_all(exp.Placeholder)}
    return {name: value for name, value in params.items() if name in names} or None


def names_all(trees: Sequence[exp.Expression], params: Params) -> bool:
    """Whether there is no parameter by name that the query does not have, which is the engine's error."""
    if not isinstance(params, dict):
        return True
    return params.keys() <= {one.name for tree in trees for one in tree.find_all(exp.Placeholder)}


def params_without(
    trees: Sequence[exp.Expression], gone: Sequence[exp.Expression], params: Mapping[str, object]
) -> dict[str, object]:
    """Give the named parameters that the query without its pieces still has."""
    inside = {id(one) for node in gone for one in node.find_all(exp.Placeholder)}
    used = {one.name for tree in trees for one in tree.find_all(exp.Placeholder) if id(one) not in inside}
    went = {one.name for node in gone for one in node.find_all(exp.Placeholder)} - used
    return {name: value for name, value in params.items() if name not in went}


def _within(node: Any, around: Any) -> bool:
    while node is not None and node is not around:
        node = node.parent
    return node is not None


def _place(
    query: str, words: Tokens, node: exp.Expression, tables: Sequence[tuple[Reference, Table]]
) -> tuple[int, int] | None:
    """Find where the text of a subquery begins and ends: what is there has to be read as the same tree."""
    start, end = min(one.start for one, _ in tables), max(one.end for one, _ in tables)
    for opening, closing in parenthesized(words):
        inner = words[opening + 1 : closing]
        if not inner or inner[0].start > start or inner[-1].end < end:
            continue
        alone = parsed(query, inner)
        if alone is not None and len(alone) == 1 and alone[0] == node.this:
            return inner[0].start, inner[-1].end
    return None


Tables = Sequence[tuple[Reference, Table]]


class Catalog(Protocol):
    """What planning asks of a source."""

    in_snapshot: bool

    @property
    def dialect(self) -> Dialect:
        """The source's SQL."""

    def table(self, parts: tuple[str, ...]) -> Table:
        """Look a table up; raises ``ProgrammingError`` where there is none."""


@dataclass(frozen=True)
class Read:
    """A query that a source runs, and the name of its result in the engine's query."""

    name: str
    source: str
    sql: str
    #: Whether the result's types are known before its rows.
    typed: bool = True
    #: Whether the engine looks at the rows once only, so that they can be streamed.
    once: bool = True
    #: Whether several connections may read it, a part each.
    parts: bool = True
    #: Arrow types of the columns whose type in the source is another.
    schema: Mapping[str, pa.DataType] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """What is to be done."""

    sql: str
    params: Params
    reads: Sequence[Read] = ()
    #: The columns of the result where the one read is all there is to do.
    whole: Sequence[ResultColumn] | None = None
    #: Columns that the engine compares byte by byte, and their databases do not, with their collations.
    bytewise: Mapping[str, str] = field(default_factory=dict)


#: Gives the names and the engine's types of a query's columns; raises ``Unsafe`` where it cannot be bound.
Describe = Callable[[str, Params], Sequence[tuple[str, str]]]


def plan(query: str, sources: Mapping[str, Catalog], params: Params, describe: Describe, *, whole: bool = True) -> Plan:
    """Divide a query. What is not known to be safe is left to the engine.

    ``whole`` is whether one source may answer all of it.
    """
    text = parse_query(query, tuple((name, type(source.dialect)) for name, source in sources.items()))
    if (name := listed_source(text.words, sources)) is not None:
        hint = sources[name].dialect.listing.format(quoted(name))
        message = f"SHOW lists the engine's own tables, and none of an attached database\nHint: {hint}"
        raise NotSupportedError(message, hint=hint)
    if not text.references:
        return Plan(query, params)
    for name, source in sources.items():
        # Set before the first look into a catalogue: names and rows are then of one moment, too.
        source.in_snapshot = sum(reference.source == name for reference in text.references) > 1
    tables = [sources[one.source].table(one.parts) for one in text.references]

    def made() -> Plan:
        described = list(zip(text.references, tables, strict=True))
        planner = _Planner(query, text, sources, described, params, describe)
        return (planner.whole() if whole else None) or planner.parts()

    # Values that are equal, as 1 and True are, are not the same constants.
    return text.planned(tables, made, whole=whole) if params is None else made()


class _Planner:
    """The pieces of one query."""

    def __init__(
        self,
        query: str,
        text: ParsedQuery,
        sources: Mapping[str, Catalog],
        tables: Tables,
        params: Params,
        describe: Describe,
    ) -> None:
        self._query = query
        self._words = text.words
        self._trees = text.trees
        self._sources = sources
        self._tables = tables
        self._params = params
        self._describe = describe
        #: Whether a source may be asked for more than columns.
        relation_of = text.trees or []
        self._pushes = (
            not mixes_parameter_styles(text.words) and is_stateless(relation_of) and names_all(relation_of, params)
        )
        self._reads: dict[tuple[str, str], Read] = {}
        #: Conditions that a source tests alone, each with what takes its place.
        self._tested: list[tuple[exp.Expression, Edit]] = []

    def whole(self) -> Plan | None:
        """Give the whole query to one source, or None."""
        if not self._pushes or self._trees is None or len(self._trees) != 1:
            return None
        answered = self._push(self._trees[0], self._query, self._tables)
        if answered is None:
            return None
        read, columns = answered
        if all(column.type for column in columns):
            return Plan("", None, [read], whole=columns)
        return Plan(_renamed(read, columns), None, [read])

    def parts(self) -> Plan:
        """Give what one source can answer to it, read the other tables each by itself, and leave the rest."""
        edits, gone = self._pieces()
        inside = {id(one) for piece in gone for one, _ in piece.tables}
        needs = Projection(self._words, self._trees)
        for reference, table in self._tables:
            if id(reference) not in inside:
                edits += reference.replaced(self._read(reference, table, needs))
        edits += [edit for _, edit in self._tested]
        trees, answered = self._trees or [], [*(piece.node for piece in gone), *(node for node, _ in self._tested)]
        meaning = semantics(trees, self._tables, answered, self._params)
        params = meaning.params(self._params)
        if isinstance(params, dict) and self._trees is not None:
            params = params_without(trees, answered, params)
        sql = apply_edits(self._query, [*edits, *meaning.edits])
        return Plan(sql, params, list(self._reads.values()), bytewise=meaning.bytewise)

    def _pieces(self) -> tuple[list[Edit], list[Piece]]:
        """Give the subqueries that a source answers, and what takes their places."""
        edits: list[Edit] = []
        gone: list[Piece] = []
        if not self._pushes or self._trees is None:
            return edits, gone
        by_place = isinstance(self._params, list)
        for piece in pieces(self._query, self._words, self._trees, self._tables, by_place=by_place):
            if any(one.start <= piece.start <= one.end for one in gone):
                continue
            text = self._query[piece.start : piece.end + 1]
            answered = self._push(piece.node.this, text, piece.tables, offset=piece.start)
            if answered is not None:
                read, columns = answered
                once = not isinstance(piece.node, exp.CTE) and read_once(piece.node)
                self._reads[read.source, f"{read.name}: {read.sql}"] = replace(read, once=once)
                edits.append(Edit(piece.start, piece.end, _renamed(read, columns)))
                gone.append(piece)
        return edits, gone

    def _push(
        self, tree: exp.Expression, text: str, tables: Tables, offset: int = 0
    ) -> tuple[Read, list[ResultColumn]] | None:
        """Write a query for the one source of its tables; None where it has several, or where in doubt."""
        first, _ = tables[0]
        if not all(one.source == first.source and table.typed for one, table in tables):
            return None
        dialect = self._sources[first.source].dialect
        try:
            written = write(tree, dialect, tables, self._params)
            edits = [edit.moved(-offset) for one, table in tables for edit in one.replaced(empty_table(table))]
            columns = checked(written, self._describe(apply_edits(text, edits), params_of(tree, self._params)))
        except (Unsafe, RecursionError):
            return None
        asked = {column.read: column.type for column in columns if column.asked}
        sql = written.write([dialect.name(column.read) for column in columns])
        return Read(self._name(), first.source, sql, parts=False, schema=asked), columns

    def _read(self, reference: Reference, table: Table, needs: Projection) -> str:
        """Give the name under which the engine finds the rows that the query needs of a table."""
        dialect = self._sources[reference.source].dialect
        columns = needs.columns(reference, table)
        _refuse_twins(reference, columns)
        pushes = self._pushes and table.typed
        tests = filters(reference, table, dialect, self._tables, self._params, self._place) if pushes else []
        for test in tests:
            if test.node is not None and test.place is not None:
                self._tested.append((test.node, Edit(*test.place, "TRUE")))
        sql = f"SELECT {', '.join(column.loaded for column in columns)} FROM {table.sql}"
        if tests:
            sql += f" WHERE {' AND '.join(test.sql for test in tests)}"
        key = reference.source, sql
        if key in self._reads:
            self._reads[key] = replace(self._reads[key], once=False)
        else:
            name = self._name()
            self._reads[key] = Read(name, reference.source, sql, typed=table.typed, once=reference.read_once)
        return self._reads[key].name

    def _place(self, condition: exp.Expression) -> tuple[int, int] | None:
        """Find where a condition stands in the text, if it may go from there."""
        if isinstance(self._params, list) and condition.find(exp.Placeholder):
            return None
        return place(self._query, self._words, condition)

    def _name(self) -> str:
        name = f"longshore_{len(self._reads) + 1}"
        while name in self._query.lower():
            name += "_"
        return name


def _renamed(read: Read, columns: Sequence[ResultColumn]) -> str:
    """Give a source's answer the names that the engine would give."""
    return f"SELECT {', '.join(column.sql for column in columns)} FROM {read.name}"


def _refuse_twins(reference: Reference, columns: Sequence[Column]) -> None:
    """Refuse two columns whose names differ in the case of letters: the engine would rename one."""
    seen: dict[str, str] = {}
    for column in columns:
        twin = seen.setdefault(column.name.lower(), column.name)
        if twin != column.name:
            table = ".".join((reference.source, *reference.parts))
            message = (
                f"{table} has the columns {twin!r} and {column.name!r}, which are one name to the engine; "
                "read_sql gives a frame in which they can be renamed"
            )
            raise NotSupportedError(message)
