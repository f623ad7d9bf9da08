"""The text of a query: tokens, trees, edits, and where it names tables of attached databases."""

import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType

from longshore import _core
from longshore.duckdb.remote.types import Column, Table
from longshore.errors import NotSupportedError
from longshore.texts import quoted_name

if TYPE_CHECKING:
    from longshore.duckdb.remote.plan import Plan


Tokens = Sequence[Token]

#: The tokens tried after the last one whose position is known.
_LOOKAHEAD = 8


@dataclass(frozen=True, order=True)
class Edit:
    """A replacement of the text from ``start`` to ``end``, inclusive."""

    start: int
    end: int
    text: str

    def shift(self, by: int) -> "Edit":
        """Give the same edit in a text that begins elsewhere."""
        return replace(self, start=self.start + by, end=self.end + by)


def tokenize(query: str) -> Tokens:
    """Give the tokens; none where a quotation does not end."""
    try:
        words = _tokenize(query)
        if words and words[0].token_type is TokenType.COMMAND:
            # EXPLAIN and other commands, which the tokenizer takes for one word and a text.
            rest = _tokenize(query[words[0].end + 1 :])
            return [words[0], *(_shift(word, words[0].end + 1) for word in rest)]
    except SqlglotError:
        return []
    return words


def parse(query: str, words: Tokens) -> Sequence[exp.Expression] | None:
    """Give a tree for each statement; None for a text that the parser does not know.

    Parameters without a name are numbered from 1.
    """
    # The parser would log a warning for these.
    if any(word.token_type is TokenType.COMMAND for word in words) or (words and words[0].token_type is TokenType.SHOW):
        return None
    try:
        trees = sqlglot.Dialect.get_or_raise("duckdb").parser().parse(_number_parameters(words), query)
    except (SqlglotError, RecursionError):
        return None
    statements = [tree for tree in trees if isinstance(tree, exp.Expression) and not isinstance(tree, exp.Command)]
    return statements if len(statements) == sum(tree is not None for tree in trees) else None


def _tokenize(query: str) -> list[Token]:
    """Give the tokens, in spite of the tokenizer, which takes ``$1,$`` for the beginning of a quotation."""
    pieces = _core.sql_places(query, "duckdb")
    ends = [*itertools.accumulate(map(len, pieces))]
    dollars = {start for start, place in zip(ends[::2], pieces[1::2], strict=False) if place[0] == "$"}
    letters = list(query)
    for at in dollars:
        letters[at] = "_"
    words = []
    for word in sqlglot.tokenize("".join(letters), read="duckdb"):
        words += _parameter(word) if word.start in dollars else [word]
        dollars.discard(word.start)
    if dollars and words[0].token_type is not TokenType.COMMAND:
        # A dollar within another token is part of its text.
        return sqlglot.tokenize(query, read="duckdb")
    return words


def _parameter(word: Token) -> list[Token]:
    name = word.text[1:]
    kind = TokenType.NUMBER if name.isdecimal() else TokenType.VAR
    return [
        Token(TokenType.PARAMETER, "$", line=word.line, col=word.col, start=word.start, end=word.start),
        Token(kind, name, line=word.line, col=word.col, start=word.start + 1, end=word.end),
    ]


def _shift(word: Token, by: int) -> Token:
    return Token(word.token_type, word.text, line=word.line, col=word.col, start=word.start + by, end=word.end + by)


def parentheses(words: Tokens) -> list[tuple[int, int]]:
    """Give the positions of each pair of parentheses, inner pairs first."""
    opened: list[int] = []
    pairs = []
    for at, word in enumerate(words):
        if word.token_type is TokenType.L_PAREN:
            opened.append(at)
        elif word.token_type is TokenType.R_PAREN and opened:
            pairs.append((opened.pop(), at))
    return pairs


def locate(query: str, words: Tokens, node: exp.Expression) -> tuple[int, int] | None:
    """Find where the text of an expression begins and ends: it has to parse to the same tree."""
    positions = [one.meta for one in node.walk() if "start" in one.meta]
    if not positions:
        return None
    start, end = min(one["start"] for one in positions), max(one["end"] for one in positions)
    inner = [word for word in words if start <= word.start and word.end <= end]
    # The position of a parenthesis or a parameter at its end is not known.
    more = [word for word in words if word.start > end][:_LOOKAHEAD]
    for count in range(len(more) + 1):
        alone = parse(query, [*inner, *more[:count]])
        if alone is not None and list(alone) == [node]:
            return start, max(end, *(word.end for word in more[:count])) if count else end
    return None


def _number_parameters(words: Tokens) -> list[Token]:
    numbered = []
    count = 0
    for word in words:
        if word.token_type is not TokenType.PLACEHOLDER or word.text != "?":
            numbered.append(word)
            continue
        count += 1
        for kind, text in ((TokenType.PARAMETER, "$"), (TokenType.NUMBER, str(count))):
            numbered.append(Token(kind, text, line=word.line, col=word.col, start=word.start, end=word.end))
    return numbered


def mixes_parameter_styles(words: Tokens) -> bool:
    """Whether some parameters are numbered and some are not: the engine counts on from the highest before."""
    kinds = {word.token_type for word in words}
    return TokenType.PLACEHOLDER in kinds and TokenType.PARAMETER in kinds


def is_stateless(trees: Sequence[exp.Expression]) -> bool:
    """Whether the statements before the last cannot change its meaning, as settings and macros do."""
    return all(
        isinstance(tree, exp.Query) or (isinstance(tree, exp.Create) and tree.kind == "TABLE") for tree in trees[:-1]
    )


def apply_edits(query: str, edits: Sequence[Edit]) -> str:
    """Give the edited text; of edits within each other, the outer one counts."""
    done, at = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.start, -edit.end)):
        if edit.start >= at:
            done += [query[at : edit.start], edit.text]
            at = edit.end + 1
    return "".join([*done, query[at:]])


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
#: The words before a table without an alias.
_BARE = {"TABLE", "PIVOT", "PIVOT_WIDER", "UNPIVOT", "PIVOT_LONGER", "SUMMARIZE", "DESCRIBE", "DESC", "SHOW"}
#: An attached name, a schema and a table.
_MOST_PARTS = 3
#: Fixed widths before texts, and these before other types.
_WIDTHS = ["boolean", "integer", "date", "timestamp", "timestamptz", "double", "decimal", "uuid", "text", "other"]


@dataclass
class Reference:
    """One place where a table is read."""

    source: str
    #: Schema and table, or the table alone.
    parts: tuple[str, ...]
    start: int
    end: int
    #: Its name in the query's columns.
    alias: str
    #: Whether the query gives the alias, or cannot have one.
    is_named: bool
    node: exp.Table | None = None
    #: Edits of columns that have the table's full name.
    edits: list[Edit] = field(default_factory=list)

    @property
    def full_names(self) -> list[tuple[str, ...]]:
        """The table's names in columns other than the alias, in lower case."""
        if self.is_named:
            return []
        parts = tuple(part.lower() for part in self.parts)
        return [(self.source, *parts), *([parts] if len(parts) > 1 else [])]

    @property
    def select(self) -> exp.Select | None:
        """The SELECT whose FROM has the table with an alias at most; None for any other place."""
        node = self.node
        if node is None or node.alias_column_names or node.args.get("pivots") or node.args.get("joins"):
            return None
        select = node.parent.parent if isinstance(node.parent, exp.From | exp.Join) else None
        return select if isinstance(select, exp.Select) else None

    @property
    def is_read_once(self) -> bool:
        """Whether the engine reads the rows once; in a WITH, it may read them again."""
        return self.node is not None and is_read_once(self.node)

    def replacements(self, by: str) -> list[Edit]:
        """Give the edits that replace it by another table."""
        return [Edit(self.start, self.end, by if self.is_named else f"{by} AS {quoted_name(self.alias)}"), *self.edits]


def is_read_once(node: exp.Expression) -> bool:
    """Whether a table or subquery stands in the FROM of the outermost query, which is read once."""
    while node.parent is not None:
        if not isinstance(node.parent, exp.From | exp.Join | exp.Select | exp.Union) or node.arg_key == "expressions":
            return False
        node = node.parent
    return isinstance(node, exp.Select | exp.Union)


def find_in_trees(trees: Sequence[exp.Expression], sources: Collection[str]) -> list[Reference]:
    """Find the tables of ``sources``, whose names are in lower case; raises where one would be written."""
    references = []
    for tree in trees:
        for node in tree.find_all(exp.Table):
            reference = _table(node, sources)
            if reference is not None:
                references.append(reference)
    for tree in trees:
        _add_columns(tree, references)
    return references


def _table(node: exp.Table, sources: Collection[str]) -> Reference | None:
    parts = node.parts
    if len(parts) == 1 or parts[0].name.lower() not in sources:
        return None
    name = ".".join(part.name for part in parts)
    if len(parts) > _MOST_PARTS or not all(isinstance(part, exp.Identifier) for part in parts):
        raise NotSupportedError(f"{name} is not a table of an attached database: write {parts[0].name}.schema.table")
    if isinstance(node.parent, _WRITES) and node.arg_key != "using":
        message = f"{name} is in an attached database, which sql only reads; write_sql and copy write tables"
        raise NotSupportedError(message)
    return Reference(
        source=parts[0].name.lower(),
        parts=tuple(part.name for part in parts[1:]),
        start=parts[0].meta["start"],
        end=parts[-1].meta["end"],
        alias=node.alias or parts[-1].name,
        is_named=bool(node.alias) or not isinstance(node.parent, exp.From | exp.Join),
        node=node,
    )


def _add_columns(tree: exp.Expression, references: Sequence[Reference]) -> None:
    """Have columns with a table's full name use its alias instead, as another table replaces it."""
    unnamed = [reference for reference in references if not reference.is_named]
    by_name = {full: reference for reference in unnamed for full in reference.full_names}
    for column in tree.find_all(exp.Column):
        parts = [part for part in column.parts if isinstance(part, exp.Identifier)]
        for length in (_MOST_PARTS, _MOST_PARTS - 1):
            reference = by_name.get(tuple(part.name.lower() for part in parts[:length]))
            after = column.parts[length : length + 1]
            if reference is None or not after:
                continue
            reference.edits.append(
                Edit(parts[0].meta["start"], parts[length - 1].meta["end"], quoted_name(reference.alias))
            )
            break


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
    """Find tables by the words before them, in a text that the parser does not know."""
    references = []
    for at, word in enumerate(words):
        if word.token_type not in _NAMES or word.text.lower() not in sources:
            continue
        bare = at > 0 and words[at - 1].text.upper() in _BARE
        if at and not bare and words[at - 1].token_type not in _BEFORE:
            continue
        parts = _dotted_name(words, at)
        if len(parts) > 1:
            names = tuple(part.text for part in parts[1:])
            behind = words[at + 2 * len(parts) - 1 :][:1]
            named = bare or any(word.token_type in {TokenType.ALIAS, *_NAMES} for word in behind)
            references.append(Reference(word.text.lower(), names, word.start, parts[-1].end, names[-1], named))
    return references


def _dotted_name(words: Sequence[Token], at: int) -> list[Token]:
    parts = [words[at]]
    while at + 2 < len(words) and words[at + 1].token_type is TokenType.DOT and len(parts) < _MOST_PARTS:
        parts.append(words[at + 2])
        at += 2
    return parts


class Projection:
    """The columns that a query may read, by its words and trees.

    A column whose name is not in the text can be reached only through a star, or through the row as a whole. So this
    does not need binding, and errs only on the side of a column too many.
    """

    def __init__(self, words: Sequence[Token], trees: Sequence[exp.Expression] | None) -> None:
        """Collect the words, stars and rows of the query."""
        self._words = {word.text.lower() for word in words}
        self._trees = trees
        self._reads_all = trees is None or any(word.token_type is TokenType.HASH for word in words)
        self._stars: list[exp.Expression] = []
        self._rows: set[str] = set()
        for tree in trees or []:
            self._collect(tree)

    def columns(self, reference: Reference, table: Table) -> list[Column]:
        """Give the columns in the table's order; where none is named, as for ``count(*)``, the narrowest."""
        if self._is_read_whole(reference):
            return list(table.columns)
        columns = [column for column in table.columns if column.name.lower() in self._words]
        return columns or sorted(table.columns, key=lambda column: _WIDTHS.index(column.type.kind.value))[:1]

    def _collect(self, tree: exp.Expression) -> None:
        for node in tree.walk():
            if isinstance(node, exp.Columns | exp.PositionalColumn) or (
                isinstance(node, exp.Join) and node.method.upper() == "NATURAL"
            ):
                self._reads_all = True
            elif isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
                self._stars.append(node)
            elif isinstance(node, exp.Column) and len(node.parts) == 1:
                self._rows.add(node.name.lower())

    def _is_read_whole(self, reference: Reference) -> bool:
        if self._reads_all or reference.select is None:
            return True
        # The name of a table as a column is its row.
        if reference.alias.lower() in self._rows:
            return True
        return any(_reaches(star, reference) for star in self._stars)


def _reaches(star: exp.Expression, reference: Reference) -> bool:
    if isinstance(star.parent, exp.Column) and star.parent.table:
        return star.parent.table.lower() == reference.alias.lower()
    select = star.find_ancestor(exp.Select)
    return select is None or reference.node is None or reference.node.parent_select is select


#: The names of the attached databases in lower case, each with the class of its SQL.
Sources = tuple[tuple[str, type], ...]

#: The texts in the cache, and the length of the longest: a tree is many times as large.
_CACHE_SIZE = 64
_LONGEST_TEXT = 4096


class ParsedQuery:
    """A query's tokens, trees and references; read only, as other threads plan by them, too."""

    def __init__(self, query: str, sources: Sources) -> None:
        """Parse; raises where a table of the sources would be written."""
        self.words: Tokens = tokenize(query)
        trees = parse(query, self.words)
        if self.words and self.words[0].token_type is TokenType.TABLE:
            # ``TABLE t`` is a whole SELECT: some versions of the parser do not know it, without an error.
            trees = None
        self.trees: Sequence[exp.Expression] | None = trees
        names = {name for name, _ in sources}
        self.references: Sequence[Reference] = (
            find_in_tokens(self.words, names) if trees is None else find_in_trees(trees, names)
        )
        self._last: tuple[Sequence[Table], Plan] | None = None

    def plan(self, tables: Sequence[Table], make: Callable[[], "Plan"]) -> "Plan":
        """Give the last plan if the catalogues' tables are the same, else a new one."""
        last = self._last
        if last is None or last[0] != tables:
            self._last = last = (tables, make())
        return last[1]


def parse_query(query: str, sources: Sources) -> ParsedQuery:
    """Parse a query, or give it from the cache."""
    return _parse(query, sources) if len(query) <= _LONGEST_TEXT else ParsedQuery(query, sources)


@lru_cache(maxsize=_CACHE_SIZE)
def _parse(query: str, sources: Sources) -> ParsedQuery:
    return ParsedQuery(query, sources)
