"""What the names of columns mean at one place of a query."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from sqlglot import exp

from longshore.engine.remote.references import Reference
from longshore.engine.remote.types import Table, Type, Unsafe

__all__ = ["Names", "Relation", "Value", "known", "only"]


@dataclass(frozen=True)
class Value:
    """An expression in the source's SQL."""

    sql: str
    type: Type
    #: Whether it is a column of a table, as it is.
    plain: bool = False


@dataclass(frozen=True)
class Relation:
    """A table of a FROM, by the names that columns call it."""

    names: AbstractSet[tuple[str, ...]]
    #: By name in lower case, in the table's order; None for what is there and cannot be used.
    columns: Mapping[str, Value | None]
    #: The columns' names in their own letters.
    spelled: Sequence[str] = field(default=())


class Names:
    """The relations of one FROM."""

    def __init__(self, relations: Sequence[Relation]) -> None:
        """Keep the relations in their order."""
        self.relations = relations

    def find(self, column: exp.Column) -> Value:
        """Give what a column stands for; raises ``Unsafe`` for what is not clear."""
        parts = column.parts
        if not all(isinstance(part, exp.Identifier) for part in parts):
            raise Unsafe
        only(column, "this", "table", "db", "catalog")
        *table, name = (part.name.lower() for part in parts)
        found = [
            relation.columns[name]
            for relation in self.relations
            if name in relation.columns and (not table or tuple(table) in relation.names)
        ]
        if len(found) != 1 or found[0] is None:
            raise Unsafe
        return found[0]


def known(reference: Reference, table: Table, alias: str) -> Relation:
    """Give a table of a source, under an alias of the source's SQL."""
    names = {(reference.alias.lower(),), *reference.full_names}
    columns: dict[str, Value | None] = {}
    for column in table.columns:
        name = column.name.lower()
        # Two names that differ in the case of letters are one to the engine.
        columns[name] = None if name in columns else Value(column.sql(alias), column.type, plain=column.form == "{}")
    return Relation(names, columns, [column.name for column in table.columns])


def only(node: exp.Expression, *names: str) -> None:
    """Raise ``Unsafe`` where a node has more to say than ``names``."""
    if any(value for name, value in node.args.items() if name not in names and name != "_type"):
        raise Unsafe
