"""SQLite: its catalogue, and what it means by its types."""

from collections.abc import Sequence
from typing import Any, ClassVar

from longshore.engine.remote.dialect import Ask, Dialect
from longshore.engine.remote.types import Column, Kind, Table, Trust, Type

__all__ = ["SQLite"]

_TABLES = """
SELECT schema, name, type, strict FROM pragma_table_list
WHERE name = ?1 COLLATE NOCASE AND (?2 IS NULL OR schema = ?2 COLLATE NOCASE)
ORDER BY CASE schema WHEN 'temp' THEN 0 WHEN 'main' THEN 1 ELSE 2 END, schema
"""
_COLUMNS = """
SELECT name, upper(type), (SELECT encoding FROM pragma_encoding) FROM pragma_table_xinfo(?1, ?2) WHERE hidden <> 1
"""

# A sum beyond 64 bits is an error here, and not in the engine.
_INTEGER = Type(Kind.INTEGER, "BIGINT", equal=Trust.EXACT, order=Trust.EXACT, groups=True, nulls=True)
_TEXT = Type(Kind.TEXT, "VARCHAR", equal=Trust.EXACT, order=Trust.EXACT, groups=True, nulls=True, collation="BINARY")
#: Of a STRICT table, where a column's values are of its type and of no other.
_STRICT = {
    "INT": _INTEGER,
    "INTEGER": _INTEGER,
    "TEXT": _TEXT,
    "REAL": Type(Kind.OTHER, "DOUBLE", nulls=True),
    "BLOB": Type(Kind.OTHER, "BLOB", nulls=True),
}
_OTHER = Type(Kind.OTHER)


class SQLite(Dialect):
    """SQLite's SQL."""

    listing: ClassVar[str] = "SELECT name FROM {}.sqlite_schema WHERE type IN ('table', 'view')"
    begin_snapshot: ClassVar[Sequence[str]] = ("BEGIN",)
    #: Nor is there need: what a transaction sees has its catalogue with it.
    has_locks: ClassVar[bool] = False

    def find(self, ask: Ask, parts: Sequence[str], lossy_kinds: frozenset[Kind]) -> Table | None:
        """Look a table up in the catalogue. SQLite's own names differ by more than the case of letters."""
        found = ask(_TABLES, [parts[-1], parts[0] if len(parts) > 1 else None])
        if not found:
            return None
        schema, table, what, strict = found[0]
        typed = bool(strict) and what == "table"
        # Before the columns: it is then of no later moment than they.
        ((version,),) = ask(f"PRAGMA {self.name(schema)}.schema_version", [])
        columns = [
            Column(
                name, self.name(name), _type(declared, encoding, typed=typed, lossy_kinds=lossy_kinds), _form(declared)
            )
            for name, declared, encoding in ask(_COLUMNS, [table, schema])
        ]
        return Table(f"{self.name(schema)}.{self.name(table)}", columns, typed=typed, version=version)

    def _text(self, value: str) -> str:
        return "'" + value.replace("'", "''") + "'"


def _form(declared: str) -> str:
    """Compare a text under the engine's collation, whatever the column's is."""
    return "{} COLLATE BINARY" if declared == "TEXT" else "{}"


def _type(declared: str, encoding: str, *, typed: bool, lossy_kinds: frozenset[Any]) -> Type:
    of = _STRICT.get(declared, _OTHER) if typed else _OTHER
    # Bytes of UTF-16 have another order.
    if of.kind in lossy_kinds or (of.kind is Kind.TEXT and encoding != "UTF-8"):
        return _OTHER
    return of
