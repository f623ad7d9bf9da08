"""A whole query in a source's SQL, where every part of it is known to mean the same there."""

from collections.abc import Callable

from sqlglot import exp

from longshore.engine.remote.dialect import Dialect
from longshore.engine.remote.literals import Params
from longshore.engine.remote.names import Relation, Value, only
from longshore.engine.remote.selects import Select, Written
from longshore.engine.remote.types import Unsafe

__all__ = ["Queries", "Written"]

#: Gives a table of the source under an alias of the source's SQL; raises ``Unsafe`` for what is none.
Tables = Callable[[exp.Table, str], tuple[str, Relation]]

_PARTS = ("expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct")


class Queries:
    """Writes SELECTs; whatever is not known to be safe raises ``Unsafe``."""

    def __init__(self, dialect: Dialect, tables: Tables, params: Params) -> None:
        """Keep what a table is, and the values of parameters."""
        self.dialect = dialect
        self._tables = tables
        self.params = params
        self._aliases = 0

    def query(self, node: exp.Expression) -> Written:
        """Write a query."""
        if isinstance(node, exp.Subquery):
            only(node, "this")
            return self.query(node.this)
        if not isinstance(node, exp.Select):
            raise Unsafe
        only(node, *_PARTS)
        return Select(self, node).written()

    def alias(self) -> str:
        """Give a name that the query has not had."""
        self._aliases += 1
        return self.dialect.name(f"t{self._aliases}")

    def relation(self, node: exp.Expression) -> tuple[str, Relation]:
        """Write what stands in a FROM."""
        alias = self.alias()
        if isinstance(node, exp.Subquery):
            only(node, "this", "alias")
            _plain_alias(node)
            if node.this.find(exp.Order) and not self.dialect.keeps_order:
                raise Unsafe
            return self._derived(self.query(node.this), alias, node.alias)
        if not isinstance(node, exp.Table):
            raise Unsafe
        only(node, "this", "db", "catalog", "alias")
        _plain_alias(node)
        return self._tables(node, alias)

    def _derived(self, written: Written, alias: str, name: str) -> tuple[str, Relation]:
        columns: dict[str, Value | None] = {}
        spelled = []
        for at, output in enumerate(written.outputs, 1):
            if output.name is None:
                raise Unsafe
            key = output.name.lower()
            columns[key] = None if key in columns else Value(f"{alias}.c{at}", output.value.type)
            spelled.append(output.name)
        return f"({written.sql}) AS {alias}", Relation({(name.lower(),)} if name else set(), columns, spelled)


def _plain_alias(node: exp.Expression) -> None:
    alias = node.args.get("alias")
    if alias is not None:
        only(alias, "this")
