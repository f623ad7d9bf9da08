"""What the sources' kinds of SQL have in common, and the word for each difference."""

import abc
import datetime as dt
import decimal
import uuid
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from longshore.engine.remote.types import Kind, Table, Type, Unsafe
from longshore.errors import ProgrammingError

__all__ = ["Ask", "Dialect", "chosen"]

#: Runs a statement in the source, with parameters, and gives its rows.
Ask = Callable[[str, Sequence[Any]], Sequence[tuple[Any, ...]]]


class Dialect(abc.ABC):
    """A source's SQL: its catalogue, its names and its constants."""

    #: What lists its tables.
    listing: ClassVar[str] = "SELECT table_schema, table_name FROM {}.information_schema.tables"
    #: Around names.
    quote: ClassVar[str] = '"'
    #: What begins a transaction that sees one moment.
    begin_snapshot: ClassVar[Sequence[str]]
    #: Asks for a table's version as the catalogue's answer had it; without it, all of that answer is asked for again.
    versions: ClassVar[str | None] = None
    #: Whether a transaction keeps the tables that it has read from being altered.
    has_locks: ClassVar[bool] = True
    #: Whether NULLS FIRST and NULLS LAST are known.
    has_nulls_first: ClassVar[bool] = True
    #: Whether a read that is stopped takes the transaction with it, but for a savepoint.
    needs_savepoint: ClassVar[bool] = False
    #: Whether the rows of a subquery are taken in its own order.
    has_ordered_subqueries: ClassVar[bool] = True
    #: Whether decimals are added and multiplied as the engine does, or with an error.
    has_exact_decimals: ClassVar[bool] = False
    #: Whether LIKE without a backslash is the engine's, but for what the column's collation finds equal.
    has_plain_like: ClassVar[bool] = False

    @abc.abstractmethod
    def find(self, ask: Ask, parts: Sequence[str], lossy_kinds: frozenset[Kind]) -> Table | None:
        """Look a table up, first by its very name, then by its letters; None where there is none.

        Columns of the kinds ``lossy_kinds`` are loaded otherwise than they are stored, so nothing is asked of them.
        """

    def name(self, text: str) -> str:
        """Quote a name."""
        return self.quote + text.replace(self.quote, 2 * self.quote) + self.quote

    def literal(self, value: Any, wanted: Type) -> str:
        """Write a value that fits a type."""
        if wanted.kind is Kind.BOOLEAN:
            return "TRUE" if value else "FALSE"
        if wanted.kind is Kind.INTEGER:
            return str(value)
        if wanted.kind is Kind.DECIMAL:
            return format(value, "f")
        writer: Callable[[Any], str] | None = getattr(self, f"_{wanted.kind.value}", None)
        if writer is None:
            raise Unsafe
        return writer(value)

    def count(self, sql: str, *, is_alone: bool) -> str:
        """Count the values of ``sql``, or with ``*`` the rows; it is alone if its SELECT counts nothing else."""
        del is_alone
        return f"count({sql})"

    def ordered(self, sql: str, _type: Type) -> str:
        """Give what the engine's order of a column is the source's order of."""
        return sql

    def sort(self, sql: str, wanted: Type, *, descending: bool, nulls_first: bool) -> str:
        """Write one key of an ORDER BY."""
        key = self.ordered(sql, wanted) + (" DESC" if descending else "")
        if self.has_nulls_first:
            return f"{key} NULLS {'FIRST' if nulls_first else 'LAST'}"
        return f"({sql} IS NULL){' DESC' if nulls_first else ''}, {key}"


def chosen(found: Sequence[tuple[str, ...]], parts: Sequence[str]) -> tuple[str, ...] | None:
    """Choose between tables whose names differ in the case of letters; raises where that is not clear.

    A catalogue's own comparison may be a collation's, which finds more: what is an é to the engine, and no e.
    """
    found = [names for names in found if _folded(names[-len(parts) :]) == _folded(parts)]
    exact = [names for names in found if names[-len(parts) :] == tuple(parts)]
    if exact:
        return exact[0]
    if len(found) > 1:
        names = " and ".join(sorted(".".join(name) for name in found))
        message = f"{'.'.join(parts)} is not clear: there are {names}; write one of them in its own letters"
        raise ProgrammingError(message)
    return found[0] if found else None


def _folded(names: Sequence[str]) -> list[str]:
    return [name.lower() for name in names]


def timestamp_text(value: dt.datetime) -> str:
    """Write a moment without its zone, with all of its digits."""
    return value.replace(tzinfo=None).isoformat(sep=" ")


def plain(value: str) -> str:
    """Quote a text; raises ``Unsafe`` for a backslash, which settings of a server may give a meaning."""
    if "\\" in value:
        raise Unsafe
    return "'" + value.replace("'", "''") + "'"


Constant = decimal.Decimal | float | dt.date | uuid.UUID | str
