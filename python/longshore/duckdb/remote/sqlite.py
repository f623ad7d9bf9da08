"""SQLite: its catalogue and types."""

from collections.abc import Sequence
from typing import ClassVar

from longshore.duckdb.remote.dialect import Ask, Dialect, rows_of
from longshore.duckdb.remote.types import Column, Kind, Table, Trust, Type
from longshore.texts import quoted_name

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
#: The types of a STRICT table, whose values are of their column's type.
_STRICT = {
    "INT": _INTEGER,
    "INTEGER": _INTEGER,
    "TEXT": _TEXT,
    "REAL": Type(Kind.OTHER, "DOUBLE", nulls=True),
    "BLOB": Type(Kind.OTHER, "BLOB", nulls=True),
}
_OTHER = Type(Kind.OTHER)
#: Texts are compared by bytes, as the engine does.
_FORMS = {"TEXT": "{} COLLATE BINARY"}


class SQLite(Dialect):
    """SQLite's SQL."""

    listing: ClassVar[str] = "SELECT name FROM {}.sqlite_schema WHERE type IN ('table', 'view')"
    begin_snapshot: ClassVar[Sequence[str]] = ("BEGIN",)
    #: Not needed: a snapshot includes its catalogue.
    has_locks: ClassVar[bool] = False

    def find(self, ask: Ask, parts: Sequence[str], lossy: frozenset[Kind]) -> Table | None:
        """Look a table up in the catalogue, whose names differ by more than case."""
        tables = rows_of(ask(_TABLES, [parts[-1], parts[0] if len(parts) > 1 else None]))
        if not tables:
            return None
        schema, table, kind, strict = tables[0]
        is_typed = bool(strict) and kind == "table"
        # Before the columns: a change in between then shows.
        ((version,),) = rows_of(ask(f"PRAGMA {self.name(schema)}.schema_version", []))
        columns = []
        for name, declared, encoding in rows_of(ask(_COLUMNS, [table, schema])):
            of = _STRICT.get(declared, _OTHER) if is_typed else _OTHER
            # Bytes of UTF-16 have another order.
            if of.kind in lossy or (of.kind is Kind.TEXT and encoding != "UTF-8"):
                of = _OTHER
            columns.append(Column(name, self.name(name), of, _FORMS.get(declared, "{}")))
        return Table(f"{self.name(schema)}.{self.name(table)}", columns, is_typed=is_typed, version=version)

    def _text(self, value: str) -> str:
        return quoted_name(value, "'")
