"""The text of a query: its tokens, its trees, the positions of nodes, and edits."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType

Tokens = Sequence[Token]

#: The tokens tried after the last one whose position is known.
_LOOKAHEAD = 8

#: Quoted texts and comments, whose dollars are not a parameter's, and a parameter's name.
_DOLLARS = re.compile(
    r"""(?<!\w)[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$((?:[^\W\d]\w*)?)\$.*?\$\1\$"""
    r"""|--[^\n]*|/\*.*?\*/|(?<![\w$])\$(\w+)""",
    re.DOTALL,
)


@dataclass(frozen=True, order=True)
class Edit:
    """A replacement of the text from ``start`` to ``end``, inclusive."""

    start: int
    end: int
    text: str

    def shifted(self, by: int) -> "Edit":
        """Give the same edit in a text that begins elsewhere."""
        return replace(self, start=self.start + by, end=self.end + by)


def tokenize(query: str) -> Tokens:
    """Give the tokens; none where a quotation does not end."""
    try:
        words = _tokenized(query)
        if words and words[0].token_type is TokenType.COMMAND:
            # EXPLAIN and other commands, which the tokenizer takes for one word and a text.
            rest = _tokenized(query[words[0].end + 1 :])
            return [words[0], *(_shifted(word, words[0].end + 1) for word in rest)]
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


def _tokenized(query: str) -> list[Token]:
    """Give the tokens, in spite of the tokenizer, which takes ``$1,$`` for the beginning of a quotation."""
    dollars = {match.start(2) - 1 for match in _DOLLARS.finditer(query) if match[2]}
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


def _shifted(word: Token, by: int) -> Token:
    return Token(word.token_type, word.text, line=word.line, col=word.col, start=word.start + by, end=word.end + by)


def parenthesized(words: Tokens) -> list[tuple[int, int]]:
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
    """Give the edited text; of edits within each other, the outer one counts.

    An edit that ends before it begins is an insertion.
    """
    done, at = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.start <= edit.end, -edit.end)):
        if edit.start >= at:
            done += [query[at : edit.start], edit.text]
            at = edit.end + 1
    return "".join([*done, query[at:]])
