"""Where a query names tables of attached databases, and which of their columns it needs."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from longshore.engine.remote.text import Edit, Tokens, parsed, tokens
from longshore.engine.remote.types import Column, Table
from longshore.errors import NotSupportedError

if TYPE_CHECKING:
    from longshore.engine.remote.plan import Plan

__all__ = [
    "ParsedQuery",
    "Projection",
    "Reference",
    "Sources",
    "find_in_tokens",
    "find_in_trees",
    "is_table_statement",
    "listed_source",
    "parse_query",
    "quoted",
    "read_once",
]

_WRITES = (
    exp.Insert,
    exp.Update,
    exp.Delete,
    exp.Merge,
    exp.Create,
    exp.Drop,
    exp.Alter,
    exp.TruncateTable,
    exp.Schema,
)
_NAMES = {TokenType.VAR, TokenType.IDENTIFIER}
_BEFORE = {TokenType.FROM, TokenType.JOIN, TokenType.COMMA, TokenType.L_PAREN, TokenType.TABLE}
#: What a table follows that takes no alias.
_BARE = {"TABLE", "PIVOT", "PIVOT_WIDER", "UNPIVOT", "PIVOT_LONGER", "SUMMARIZE", "DESCRIBE", "DESC", "SHOW"}
#: An attached name, a schema and a table.
_MOST_PARTS = 3


@dataclass
class Reference:
    """One place where a table is read."""

    source: str
    #: Schema and table, or the table alone.
    parts: tuple[str, ...]
    start: int
    end: int
    #: The name by which the query's columns call it.
    alias: str
    #: Whether the query gives the alias itself, or can have none.
    named: bool
    node: exp.Table | None = None
    #: Columns that call the table by its full name.
    edits: list[Edit] = field(default_factory=list)

    @property
    def full_names(self) -> list[tuple[str, ...]]:
        """The names other than the alias by which columns may call the table, in lower case."""
        if self.named:
            return []
        parts = tuple(part.lower() for part in self.parts)
        return [(self.source, *parts), *([parts] if len(parts) > 1 else [])]

    @property
    def read_once(self) -> bool:
        """Whether the engine goes through the rows once: not so in a WITH, which may be used anywhere and again."""
        return self.node is not None and read_once(self.node)

    def replaced(self, by: str) -> list[Edit]:
        """Give the edits that put another table in its place."""
        return [Edit(self.start, self.end, by if self.named else f"{by} AS {quoted(self.alias)}"), *self.edits]


def read_once(node: exp.Expression) -> bool:
    """Whether what stands in a FROM is gone through once, however often the rest of the query is."""
    while node.parent is not None:
        if not isinstance(node.parent, exp.From | exp.Join | exp.Select | exp.Union) or node.arg_key == "expressions":
            return False
        node = node.parent
    return isinstance(node, exp.Select | exp.Union)


def quoted(name: str) -> str:
    """Give a name as the engine reads it, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'


def find_in_trees(trees: Sequence[exp.Expression], sources: Collection[str]) -> list[Reference]:
    """Find the tables of ``sources``, whose names are in lower case; raises where one would be written."""
    found = []
    for tree in trees:
        for node in tree.find_all(exp.Table):
            reference = _table(node, sources)
            if reference is not None:
                found.append(reference)
    for tree in trees:
        _add_columns(tree, found)
    return found


def _table(node: exp.Table, sources: Collection[str]) -> Reference | None:
    parts = node.parts
    if len(parts) == 1 or parts[0].name.lower() not in sources:
        return None
    name = ".".join(part.name for part in parts)
    if len(parts) > _MOST_PARTS or not all(isinstance(part, exp.Identifier) for part in parts):
        message = f"{name} is not a table of an attached database: write {parts[0].name}.schema.table"
        raise NotSupportedError(message)
    if isinstance(node.parent, _WRITES) and node.arg_key != "using":
        message = f"{name} is in an attached database, which sql only reads; write_sql and copy write tables"
        raise NotSupportedError(message)
    return Reference(
        source=parts[0].name.lower(),
        parts=tuple(part.name for part in parts[1:]),
        start=parts[0].meta["start"],
        end=parts[-1].meta["end"],
        alias=node.alias or parts[-1].name,
        named=bool(node.alias) or not isinstance(node.parent, exp.From | exp.Join),
        node=node,
    )


def _add_columns(tree: exp.Expression, found: Sequence[Reference]) -> None:
    """Call columns under a table's full name by its alias instead, as the table goes to another place."""
    unnamed = [reference for reference in found if not reference.named]
    by_name = {full: reference for reference in unnamed for full in reference.full_names}
    for column in tree.find_all(exp.Column):
        parts = [part for part in column.parts if isinstance(part, exp.Identifier)]
        for length in (_MOST_PARTS, _MOST_PARTS - 1):
            reference = by_name.get(tuple(part.name.lower() for part in parts[:length]))
            after = column.parts[length : length + 1]
            if reference is None or not after:
                continue
            reference.edits.append(Edit(parts[0].meta["start"], parts[length - 1].meta["end"], quoted(reference.alias)))
            break


def is_table_statement(words: Sequence[Token]) -> bool:
    """Whether these are ``TABLE t``, which stands for a whole SELECT; its table takes no alias."""
    return bool(words) and words[0].token_type is TokenType.TABLE


def listed_source(words: Sequence[Token], sources: Collection[str]) -> str | None:
    """Give the source whose tables ``SHOW TABLES FROM`` or ``SHOW ALL TABLES`` would list, if there is one."""
    texts = [word.text.lower() for word in words]
    for at in range(len(texts)):
        if texts[at : at + 3] == ["show", "tables", "from"] and texts[at + 3 : at + 4] and texts[at + 3] in sources:
            return texts[at + 3]
        if texts[at : at + 3] == ["show", "all", "tables"]:
            return next(iter(sources), None)
    return None


def find_in_tokens(words: Sequence[Token], sources: Collection[str]) -> list[Reference]:
    """Find what stands where a table does, in a text that no parser knows."""
    found = []
    for at, word in enumerate(words):
        if word.token_type not in _NAMES or word.text.lower() not in sources:
            continue
        bare = at > 0 and words[at - 1].text.upper() in _BARE
        if at and not bare and words[at - 1].token_type not in _BEFORE:
            continue
        parts = _dotted(words, at)
        if len(parts) > 1:
            names = tuple(part.text for part in parts[1:])
            named = bare or _has_alias(words, at + 2 * len(parts) - 1)
            found.append(Reference(word.text.lower(), names, word.start, parts[-1].end, names[-1], named))
    return found


def _dotted(words: Sequence[Token], at: int) -> list[Token]:
    parts = [words[at]]
    while at + 2 < len(words) and words[at + 1].token_type is TokenType.DOT and len(parts) < _MOST_PARTS:
        parts.append(words[at + 2])
        at += 2
    return parts


def _has_alias(words: Sequence[Token], at: int) -> bool:
    if at >= len(words):
        return False
    return words[at].token_type in {TokenType.ALIAS, TokenType.VAR, TokenType.IDENTIFIER}


class Projection:
    """What a query's text and tree tell of the columns that it reads.

    A column whose name is nowhere in the text can be reached only through a star, or through the row as a whole. So
    the answer needs no binding, and errs only on the side of a column too many.
    """

    def __init__(self, words: Sequence[Token], trees: Sequence[exp.Expression] | None) -> None:
        """Look at the query once for all tables."""
        self._words = {word.text.lower() for word in words}
        self._trees = trees
        self._everything = trees is None or any(word.token_type is TokenType.HASH for word in words)
        self._stars: list[exp.Expression] = []
        self._rows: set[str] = set()
        for tree in trees or []:
            self._look(tree)

    def columns(self, reference: Reference, table: Table) -> list[Column]:
        """Give the columns, in the table's order; one where none is named, as for ``count(*)``."""
        if self._whole(reference):
            return list(table.columns)
        named = [column for column in table.columns if column.name.lower() in self._words]
        return named or sorted(table.columns, key=_width)[:1]

    def _look(self, tree: exp.Expression) -> None:
        for node in tree.walk():
            if isinstance(node, exp.Columns | exp.PositionalColumn) or (
                isinstance(node, exp.Join) and node.method.upper() == "NATURAL"
            ):
                self._everything = True
            elif isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
                self._stars.append(node)
            elif isinstance(node, exp.Column) and len(node.parts) == 1:
                self._rows.add(node.name.lower())

    def _whole(self, reference: Reference) -> bool:
        if self._everything or reference.node is None or not _is_simple(reference.node):
            return True
        # The name of a table is its row, as one value.
        if reference.alias.lower() in self._rows:
            return True
        return any(_reaches(star, reference) for star in self._stars)


def _is_simple(table: exp.Table) -> bool:
    """Whether it stands in the FROM of a SELECT, with nothing but an alias."""
    place = table.parent
    return (
        isinstance(place, exp.From | exp.Join)
        and isinstance(place.parent, exp.Select)
        and not table.args.get("pivots")
        and not table.args.get("joins")
        and not table.alias_column_names
    )


def _reaches(star: exp.Expression, reference: Reference) -> bool:
    if isinstance(star.parent, exp.Column) and star.parent.table:
        return star.parent.table.lower() == reference.alias.lower()
    select = star.find_ancestor(exp.Select)
    return select is None or reference.node is None or reference.node.parent_select is select


def _width(column: Column) -> int:
    """Put fixed widths before texts, and these before what is unknown."""
    kinds = ["boolean", "integer", "date", "timestamp", "instant", "double", "decimal", "uuid", "text", "other"]
    return kinds.index(column.type.kind.value)


#: The names of the attached databases in lower case, each with the class of its SQL.
Sources = tuple[tuple[str, type], ...]

#: Texts that are kept, and the letters of the longest: a tree is many times as large.
_MOST = 64
_LONGEST = 4096


class ParsedQuery:
    """A query's tokens, trees and references. Nobody changes them: other threads plan by them, too."""

    def __init__(self, query: str, sources: Sources) -> None:
        """Parse; raises where a table of the sources would be written."""
        self.words: Tokens = tokens(query)
        trees = parsed(query, self.words)
        if trees is not None and is_table_statement(self.words):
            # Not every version of the parser knows it, and says so.
            trees = None
        self.trees: Sequence[exp.Expression] | None = trees
        names = {name for name, _ in sources}
        self.references: Sequence[Reference] = (
            find_in_tokens(self.words, names) if trees is None else find_in_trees(trees, names)
        )
        self._last: tuple[Sequence[Table], bool, Plan] | None = None

    def planned(self, tables: Sequence[Table], make: Callable[[], "Plan"], *, whole: bool) -> "Plan":
        """Give the plan for tables as the catalogues have them now: the last one, or a new one where they differ."""
        last = self._last
        if last is not None and last[1] is whole and last[0] == tables:
            return last[2]
        plan = make()
        self._last = (tables, whole, plan)
        return plan


def parse_query(query: str, sources: Sources) -> ParsedQuery:
    """Parse a query, or give what was made of the same text before."""
    return _cached(query, sources) if len(query) <= _LONGEST else ParsedQuery(query, sources)


@lru_cache(maxsize=_MOST)
def _cached(query: str, sources: Sources) -> ParsedQuery:
    return ParsedQuery(query, sources)
