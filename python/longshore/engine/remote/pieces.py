"""Subqueries that one source answers, in a query that goes on beyond them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from longshore.engine.parameters import Params
from longshore.engine.remote.references import Reference
from longshore.engine.remote.text import Tokens, parenthesized, parsed
from longshore.engine.remote.types import Table

__all__ = ["Piece", "named_in", "names_all", "pieces", "remaining"]

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


def named_in(tree: exp.Expression, params: Params) -> Params:
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


def remaining(
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
