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
    #: A ``char(n)`` as its table has it: its comparisons with constants, and LIKE, are the source's own.
    padded: str | None = None

    @property
    def compared(self) -> str:
        """What is compared with a constant, where the source may use an index."""
        return self.padded or self.sql


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

    def __init__(
        self,
        relations: Sequence[Relation],
        merged: Mapping[str, Value] | None = None,
    ) -> None:
        """Keep the relations in their order; ``merged`` are the columns of a USING."""
        self.relations = relations
        self.merged = merged or {}

    def find(self, column: exp.Column) -> Value:
        """Give what a column stands for; raises ``Unsafe`` for what is not clear."""
        parts = column.parts
        if not all(isinstance(part, exp.Identifier) for part in parts):
            raise Unsafe
        only(column, "this", "table", "db", "catalog")
        *table, name = (part.name.lower() for part in parts)
        return self.named(name, tuple(table))

    def named(self, name: str, table: tuple[str, ...] = ()) -> Value:
        """Give the column of a name in lower case, of one table or of any; raises ``Unsafe`` as ``find`` does."""
        if not table and name in self.merged:
            return self.merged[name]
        near = [relation for relation in self.relations if not table or table in relation.names]
        found = [relation.columns[name] for relation in near if name in relation.columns]
        if len(found) != 1 or found[0] is None:
            raise Unsafe
        return found[0]


def known(reference: Reference, table: Table, alias: str) -> Relation:
    """Give a table of a source, under an alias of the source's SQL."""
    names = {(reference.alias.lower(),), *reference.full_names}
    columns: dict[str, Value | None] = {}
    for column in table.columns:
        name = column.name.lower()
        padded = f"{alias}.{column.quoted}" if column.padded is not None else None
        value = Value(column.sql(alias), column.type, plain=column.form == "{}", padded=padded)
        # Two names that differ in the case of letters are one to the engine.
        columns[name] = None if name in columns else value
    return Relation(names, columns, [column.name for column in table.columns])


def only(node: exp.Expression, *names: str) -> None:
    """Raise ``Unsafe`` where a node has more to say than ``names``."""
    if any(value for name, value in node.args.items() if name not in names and name != "_type"):
        raise Unsafe
