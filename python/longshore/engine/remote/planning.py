"""A query over attached databases, divided: what each source reads, and what the engine does with it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from longshore.engine.remote.columns import Needs
from longshore.engine.remote.dialect import Dialect
from longshore.engine.remote.filters import conditions
from longshore.engine.remote.kept import Understood, understood
from longshore.engine.remote.literals import Params
from longshore.engine.remote.pieces import Piece, named_in, names_all, pieces, remaining
from longshore.engine.remote.references import Reference, listed, quoted, read_once
from longshore.engine.remote.semantics import semantics
from longshore.engine.remote.text import Edit, edited, keeps_meanings, mixes_parameters, place
from longshore.engine.remote.types import Column, Table, Unsafe
from longshore.engine.remote.whole import Result, checked, stub, write
from longshore.errors import NotSupportedError

__all__ = ["Catalog", "Describe", "Plan", "Read", "plan"]

Tables = Sequence[tuple[Reference, Table]]


class Catalog(Protocol):
    """What planning asks of a source."""

    one_moment: bool

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
    whole: Sequence[Result] | None = None
    #: Columns that the engine compares byte by byte, and their databases do not, with their collations.
    bytewise: Mapping[str, str] = field(default_factory=dict)


#: Gives the names and the engine's types of a query's columns; raises ``Unsafe`` where it cannot be bound.
Describe = Callable[[str, Params], Sequence[tuple[str, str]]]


def plan(query: str, sources: Mapping[str, Catalog], params: Params, describe: Describe, *, whole: bool = True) -> Plan:
    """Divide a query. What is not known to be safe is left to the engine.

    ``whole`` is whether one source may answer all of it.
    """
    text = understood(query, tuple((name, type(source.dialect)) for name, source in sources.items()))
    if (name := listed(text.words, sources)) is not None:
        hint = sources[name].dialect.listing.format(quoted(name))
        message = f"SHOW lists the engine's own tables, and none of an attached database\nHint: {hint}"
        raise NotSupportedError(message, hint=hint)
    if not text.references:
        return Plan(query, params)
    for name, source in sources.items():
        # Set before the first look into a catalogue: names and rows are then of one moment, too.
        source.one_moment = sum(reference.source == name for reference in text.references) > 1
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
        text: Understood,
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
        known = text.trees or []
        self._pushes = not mixes_parameters(text.words) and keeps_meanings(known) and names_all(known, params)
        self._reads: dict[tuple[str, str], Read] = {}
        #: Conditions that a source tests alone, each with what takes its place.
        self._tested: list[tuple[exp.Expression, Edit]] = []

    def whole(self) -> Plan | None:
        """Give the whole query to one source, or None."""
        if not self._pushes or self._trees is None or len(self._trees) != 1:
            return None
        answered = self._answered(self._trees[0], self._query, self._tables)
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
        needs = Needs(self._words, self._trees)
        for reference, table in self._tables:
            if id(reference) not in inside:
                edits += reference.replaced(self._read(reference, table, needs))
        edits += [edit for _, edit in self._tested]
        trees, answered = self._trees or [], [*(piece.node for piece in gone), *(node for node, _ in self._tested)]
        meaning = semantics(trees, self._tables, answered, self._params)
        params = meaning.params(self._params)
        if isinstance(params, dict) and self._trees is not None:
            params = remaining(trees, answered, params)
        sql = edited(self._query, [*edits, *meaning.edits])
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
            answered = self._answered(piece.node.this, text, piece.tables, offset=piece.start)
            if answered is not None:
                read, columns = answered
                once = not isinstance(piece.node, exp.CTE) and read_once(piece.node)
                self._reads[read.source, f"{read.name}: {read.sql}"] = replace(read, once=once)
                edits.append(Edit(piece.start, piece.end, _renamed(read, columns)))
                gone.append(piece)
        return edits, gone

    def _answered(
        self, tree: exp.Expression, text: str, tables: Tables, offset: int = 0
    ) -> tuple[Read, list[Result]] | None:
        """Write a query for the one source of its tables; None where it has several, or where in doubt."""
        first, _ = tables[0]
        if not all(one.source == first.source and table.typed for one, table in tables):
            return None
        dialect = self._sources[first.source].dialect
        try:
            written = write(tree, dialect, tables, self._params)
            edits = [edit.moved(-offset) for one, table in tables for edit in one.replaced(stub(table))]
            columns = checked(written, self._describe(edited(text, edits), named_in(tree, self._params)))
        except (Unsafe, RecursionError):
            return None
        asked = {column.read: column.type for column in columns if column.asked}
        sql = written.write([dialect.name(column.read) for column in columns])
        return Read(self._name(), first.source, sql, parts=False, schema=asked), columns

    def _read(self, reference: Reference, table: Table, needs: Needs) -> str:
        """Give the name under which the engine finds the rows that the query needs of a table."""
        dialect = self._sources[reference.source].dialect
        columns = needs.columns(reference, table)
        _refuse_twins(reference, columns)
        pushes = self._pushes and table.typed
        tests = conditions(reference, table, dialect, self._tables, self._params, self._place) if pushes else []
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


def _renamed(read: Read, columns: Sequence[Result]) -> str:
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
