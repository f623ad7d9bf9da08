"""The SQL of a source: what all have in common, and a name for each difference."""

import abc
import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from longshore.duckdb.remote.types import Kind, Table, Type, Unsafe, unsafe_if
from longshore.errors import ProgrammingError
from longshore.texts import quoted_name

#: Runs a statement in the source, with parameters, and gives its rows.
Ask = Callable[[str, Sequence[Any]], pa.Table]


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Give the rows of an answer as objects."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


class Dialect(abc.ABC):
    """A source's SQL: its catalogue, its names and its constants."""

    #: The query that lists its tables.
    listing: ClassVar[str] = "SELECT table_schema, table_name FROM {}.information_schema.tables"
    #: The quote around names.
    quote: ClassVar[str] = '"'
    #: The statements that begin a transaction with one snapshot.
    begin_snapshot: ClassVar[Sequence[str]]
    #: Whether it may be given a whole query, and not only one of a table's rows.
    answers_queries: ClassVar[bool] = True
    #: Whether a read that is stopped leaves the caller's transaction as it was, by a savepoint where one is needed.
    can_stop_in_transaction: ClassVar[bool] = True
    #: The query of a table's version; without one, all of the catalogue's answer is compared.
    versions: ClassVar[str | None] = None
    #: Whether a transaction locks the tables that it has read against ALTER.
    has_locks: ClassVar[bool] = True
    #: Whether it has NULLS FIRST and NULLS LAST.
    has_nulls_first: ClassVar[bool] = True
    #: Whether a read that is stopped ends the transaction, unless there is a savepoint.
    needs_savepoint: ClassVar[bool] = False
    #: Whether LIKE without a backslash is the engine's, but for the column's collation.
    has_plain_like: ClassVar[bool] = False

    @abc.abstractmethod
    def find(self, ask: Ask, parts: Sequence[str], lossy: frozenset[Kind]) -> Table | None:
        """Look a table up by its exact name, then without regard to case; None where there is none.

        Columns of the kinds ``lossy`` are loaded otherwise than they are stored, so the source does not compare them.
        """

    def name(self, text: str) -> str:
        """Quote a name."""
        return quoted_name(text, self.quote)

    def literal(self, value: Any, wanted: Type) -> str:
        """Write a value of a type."""
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

    def _text(self, value: str) -> str:
        """Quote a text, but for one with a backslash, whose meaning depends on the server's settings."""
        unsafe_if("\\" in value)
        return quoted_name(value, "'")

    def count(self, sql: str, *, is_alone: bool) -> str:
        """Count the values of ``sql``, or with ``*`` the rows; ``is_alone`` where its SELECT has no other count."""
        del is_alone
        return f"count({sql})"

    def sort_key(self, sql: str, _type: Type) -> str:
        """Give the expression by which the source orders a column as the engine does."""
        return sql

    def sort(self, sql: str, wanted: Type, *, descending: bool, nulls_first: bool) -> str:
        """Write one key of an ORDER BY."""
        key = self.sort_key(sql, wanted) + (" DESC" if descending else "")
        if self.has_nulls_first:
            return f"{key} NULLS {'FIRST' if nulls_first else 'LAST'}"
        return f"({sql} IS NULL){' DESC' if nulls_first else ''}, {key}"


def table_rows(
    ask: Ask, query: str, tests: Sequence[tuple[str, str]], here: str, parts: Sequence[str]
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]] | None:
    """Give a table's schema and name, and what a query of the catalogue says of it after these; None for no table.

    ``tests`` are conditions on the table's and the schema's name, the exact ones first, and ``here`` is that on the
    schema where the query names none.
    """
    for table, schema in tests:
        found = ask(query.format(table=table, schema=schema if len(parts) > 1 else here), parts[::-1])
        rows = [tuple(value.decode() if isinstance(value, bytes) else value for value in row) for row in rows_of(found)]
        names = match_table(list(dict.fromkeys((row[0], row[1]) for row in rows)), parts)
        if names is not None:
            return names, [row[2:] for row in rows if row[:2] == names]
    return None


def match_table(candidates: Sequence[tuple[str, ...]], parts: Sequence[str]) -> tuple[str, ...] | None:
    """Choose between tables whose names differ in case; raises where that is ambiguous.

    A catalogue may compare by a collation, which finds more: to it, é may be e.
    """
    matching = [names for names in candidates if _fold(names[-len(parts) :]) == _fold(parts)]
    exact = [names for names in matching if names[-len(parts) :] == tuple(parts)]
    if exact:
        return exact[0]
    if len(matching) > 1:
        names = " and ".join(sorted(".".join(name) for name in matching))
        message = f"{'.'.join(parts)} is not clear: there are {names}; write one of them in its own letters"
        raise ProgrammingError(message)
    return matching[0] if matching else None


def _fold(names: Sequence[str]) -> list[str]:
    return [name.lower() for name in names]


def timestamp_text(value: dt.datetime) -> str:
    """Write a timestamp without its zone, with all of its digits."""
    return value.replace(tzinfo=None).isoformat(sep=" ")
