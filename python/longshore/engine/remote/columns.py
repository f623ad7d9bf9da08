"""Which columns of a table a query may need."""

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from longshore.engine.remote.references import Reference
from longshore.engine.remote.types import Column, Table

__all__ = ["Needs"]


class Needs:
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
