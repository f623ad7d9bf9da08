"""A query's text as the parser has it, and the plan that was made of it, for the next time that it comes."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from longshore.engine.remote.references import Reference, in_tokens, in_trees, is_table_statement
from longshore.engine.remote.text import Tokens, parsed, tokens
from longshore.engine.remote.types import Table

if TYPE_CHECKING:
    from sqlglot import exp

    from longshore.engine.remote.planning import Plan

__all__ = ["Sources", "Understood", "understood"]

#: The names of the attached databases in lower case, each with the class of its SQL.
Sources = tuple[tuple[str, type], ...]

#: Texts that are kept, and the letters of the longest: a tree is many times as large.
_MOST = 64
_LONGEST = 4096


class Understood:
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
        self.references: Sequence[Reference] = in_tokens(self.words, names) if trees is None else in_trees(trees, names)
        self._last: tuple[Sequence[Table], bool, Plan] | None = None

    def planned(self, tables: Sequence[Table], make: Callable[[], "Plan"], *, whole: bool) -> "Plan":
        """Give the plan for tables as the catalogues have them now: the last one, or a new one where they differ."""
        last = self._last
        if last is not None and last[1] is whole and last[0] == tables:
            return last[2]
        plan = make()
        self._last = (tables, whole, plan)
        return plan


def understood(query: str, sources: Sources) -> Understood:
    """Parse a query, or give what was made of the same text before."""
    return _kept(query, sources) if len(query) <= _LONGEST else Understood(query, sources)


@lru_cache(maxsize=_MOST)
def _kept(query: str, sources: Sources) -> Understood:
    return Understood(query, sources)
