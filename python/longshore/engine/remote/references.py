"""Where a query names tables of attached databases."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from longshore.engine.remote.text import Edit
from longshore.errors import NotSupportedError

__all__ = ["Reference", "in_tokens", "in_trees", "is_table_statement", "listed", "quoted", "read_once"]

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


def in_trees(trees: Sequence[exp.Expression], sources: Collection[str]) -> list[Reference]:
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


def listed(words: Sequence[Token], sources: Collection[str]) -> str | None:
    """Give the source whose tables ``SHOW TABLES FROM`` or ``SHOW ALL TABLES`` would list, if there is one."""
    texts = [word.text.lower() for word in words]
    for at in range(len(texts)):
        if texts[at : at + 3] == ["show", "tables", "from"] and texts[at + 3 : at + 4] and texts[at + 3] in sources:
            return texts[at + 3]
        if texts[at : at + 3] == ["show", "all", "tables"]:
            return next(iter(sources), None)
    return None


def in_tokens(words: Sequence[Token], sources: Collection[str]) -> list[Reference]:
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
