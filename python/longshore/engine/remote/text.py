"""The text of a query, as tokens and as a tree whose names know their places."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType

__all__ = [
    "Edit",
    "Tokens",
    "apply_edits",
    "is_stateless",
    "mixes_parameter_styles",
    "parenthesized",
    "parsed",
    "place",
    "tokens",
]

Tokens = Sequence[Token]

#: How many tokens are tried after the last one whose place is known.
_MOST_MORE = 8

#: What a dollar can stand in that is no parameter's, and a parameter's name.
_DOLLARS = re.compile(
    r"""(?<!\w)[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$((?:[^\W\d]\w*)?)\$.*?\$\1\$"""
    r"""|--[^\n]*|/\*.*?\*/|(?<![\w$])\$(\w+)""",
    re.DOTALL,
)


@dataclass(frozen=True, order=True)
class Edit:
    """A piece of the text, its end included, and what takes its place."""

    start: int
    end: int
    text: str

    def moved(self, by: int) -> "Edit":
        """Give the same in a text that begins elsewhere."""
        return replace(self, start=self.start + by, end=self.end + by)


def tokens(query: str) -> Tokens:
    """Give the tokens; none where the text has no end to a quotation."""
    try:
        words = _tokenized(query)
        if words and words[0].token_type is TokenType.COMMAND:
            # EXPLAIN, and what else the tokenizer takes for one word and a text.
            rest = _tokenized(query[words[0].end + 1 :])
            return [words[0], *(_moved(word, words[0].end + 1) for word in rest)]
    except SqlglotError:
        return []
    return words


def parsed(query: str, words: Tokens) -> Sequence[exp.Expression] | None:
    """Give a tree for each statement; None for a text that the parser does not know.

    A parameter without a name has its number, from 1.
    """
    # What the parser passes over, it complains of in the log.
    if any(word.token_type is TokenType.COMMAND for word in words) or (words and words[0].token_type is TokenType.SHOW):
        return None
    try:
        trees = sqlglot.Dialect.get_or_raise("duckdb").parser().parse(_numbered(words), query)
    except (SqlglotError, RecursionError):
        return None
    relation_of = [tree for tree in trees if isinstance(tree, exp.Expression) and not isinstance(tree, exp.Command)]
    return relation_of if len(relation_of) == sum(tree is not None for tree in trees) else None


def _tokenized(query: str) -> list[Token]:
    """Give the tokens, where the tokenizer itself would take ``$1,$`` for the beginning of a quotation."""
    dollars = {found.start(2) - 1 for found in _DOLLARS.finditer(query) if found[2]}
    letters = list(query)
    for at in dollars:
        letters[at] = "_"
    found = []
    for word in sqlglot.tokenize("".join(letters), read="duckdb"):
        found += _parameter(word) if word.start in dollars else [word]
        dollars.discard(word.start)
    if dollars and found[0].token_type is not TokenType.COMMAND:
        # One within another token is a part of its text.
        return sqlglot.tokenize(query, read="duckdb")
    return found


def _parameter(word: Token) -> list[Token]:
    name = word.text[1:]
    kind = TokenType.NUMBER if name.isdecimal() else TokenType.VAR
    return [
        Token(TokenType.PARAMETER, "$", line=word.line, col=word.col, start=word.start, end=word.start),
        Token(kind, name, line=word.line, col=word.col, start=word.start + 1, end=word.end),
    ]


def _moved(word: Token, by: int) -> Token:
    return Token(word.token_type, word.text, line=word.line, col=word.col, start=word.start + by, end=word.end + by)


def parenthesized(words: Tokens) -> list[tuple[int, int]]:
    """Give the places of each pair of parentheses, inner ones before those around them."""
    opened: list[int] = []
    pairs = []
    for at, word in enumerate(words):
        if word.token_type is TokenType.L_PAREN:
            opened.append(at)
        elif word.token_type is TokenType.R_PAREN and opened:
            pairs.append((opened.pop(), at))
    return pairs


def place(query: str, words: Tokens, node: exp.Expression) -> tuple[int, int] | None:
    """Find where the text of an expression begins and ends: what is there has to be read as the same tree."""
    relation_of = [one.meta for one in node.walk() if "start" in one.meta]
    if not relation_of:
        return None
    start, end = min(one["start"] for one in relation_of), max(one["end"] for one in relation_of)
    inner = [word for word in words if start <= word.start and word.end <= end]
    # A parenthesis at its end has no place of its own, nor has a parameter.
    more = [word for word in words if word.start > end][:_MOST_MORE]
    for count in range(len(more) + 1):
        alone = parsed(query, [*inner, *more[:count]])
        if alone is not None and list(alone) == [node]:
            return start, max(end, *(word.end for word in more[:count])) if count else end
    return None


def _numbered(words: Tokens) -> list[Token]:
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
    """Whether parameters without a number stand beside others: the engine counts them on from the highest before."""
    kinds = {word.token_type for word in words}
    return TokenType.PLACEHOLDER in kinds and TokenType.PARAMETER in kinds


def is_stateless(trees: Sequence[exp.Expression]) -> bool:
    """Whether the statements before the last are none that settle what it means, as settings and macros do."""
    return all(
        isinstance(tree, exp.Query) or (isinstance(tree, exp.Create) and tree.kind == "TABLE") for tree in trees[:-1]
    )


def apply_edits(query: str, edits: Sequence[Edit]) -> str:
    """Give the text with each piece replaced; of pieces within each other, the outer one.

    A piece that ends before it begins is put before what begins there.
    """
    done, at = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.start <= edit.end, -edit.end)):
        if edit.start >= at:
            done += [query[at : edit.start], edit.text]
            at = edit.end + 1
    return "".join([*done, query[at:]])
