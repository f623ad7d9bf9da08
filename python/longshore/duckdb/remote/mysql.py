"""MySQL and MariaDB: their catalogue and types."""

import dataclasses
import datetime as dt
from collections.abc import Sequence
from typing import Any, ClassVar

from longshore.duckdb.remote.dialect import Ask, Dialect, table_rows, timestamp_text
from longshore.duckdb.remote.types import BASIC_PLANE, Column, Kind, Table, Trust, Type, decimal_type, scalar

_COLUMNS = """
SELECT table_schema, table_name, column_name, data_type, column_type, numeric_precision, numeric_scale,
    collation_name, extra, character_set_name, privileges
FROM information_schema.columns WHERE {table} AND {schema} ORDER BY table_schema, table_name, ordinal_position
"""

_TESTS = (
    ("table_name = ?", "table_schema = ?"),
    ("lower(table_name) = lower(?)", "lower(table_schema) = lower(?)"),
)
_HERE = "table_schema = database()"

_INTEGERS = {"tinyint": "TINYINT", "smallint": "SMALLINT", "mediumint": "INTEGER", "int": "INTEGER", "bigint": "BIGINT"}
_TYPES = {
    # Zero dates are NULL when they are loaded, and less than every date in the server.
    "date": Type(Kind.DATE, "DATE", equal=Trust.SUPERSET, order=Trust.SUPERSET),
    "datetime": Type(Kind.TIMESTAMP, "TIMESTAMP", equal=Trust.SUPERSET, order=Trust.SUPERSET),
    "float": Type(Kind.OTHER, "FLOAT", nulls=True),
}
#: Collations find different texts equal, and a text always equal to itself.
_TEXT = Type(Kind.TEXT, "VARCHAR", equal=Trust.SUPERSET, nulls=True)
#: Collations that compare bytes, with spaces at the end.
_BYTEWISE = ("_nopad_bin", "_0900_bin")
_TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
_OTHER = Type(Kind.OTHER)
#: Python's names of character sets; all others but swe7 contain ASCII.
_CHARSETS = {"utf8mb4": "utf-8", "utf8mb3": BASIC_PLANE, "utf8": BASIC_PLANE, "latin1": "cp1252", "swe7": "undefined"}


class MySQL(Dialect):
    """The SQL of MySQL and MariaDB."""

    quote: ClassVar[str] = "`"
    begin_snapshot: ClassVar[Sequence[str]] = (
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    )
    has_nulls_first: ClassVar[bool] = False
    has_plain_like: ClassVar[bool] = True

    def find(self, ask: Ask, parts: Sequence[str], lossy: frozenset[Kind]) -> Table | None:
        """Look a table up in the catalogue; without a database, in the session's."""
        found = table_rows(ask, _COLUMNS, _TESTS, _HERE, parts)
        return found and self._table(*found, lossy)

    def count(self, sql: str, *, is_alone: bool) -> str:
        """Count what looks nullable to the server: one count of all rows makes MySQL 8.0.15 answer others with it."""
        if is_alone:
            return super().count(sql, is_alone=is_alone)
        return "count(nullif(1, 2))" if sql == "*" else f"count(nullif({sql}, NULL))"

    def _table(self, names: Sequence[str], rows: Sequence[Any], lossy: frozenset[Kind]) -> Table:
        columns = []
        for name, data_type, column_type, precision, scale, collation, extra, charset, privileges in rows:
            if "INVISIBLE" in extra.upper():
                continue
            of = _type(data_type.lower(), column_type.lower(), precision, scale)
            if of.kind is Kind.TEXT:
                of = dataclasses.replace(of, charset=_CHARSETS.get(charset, "ascii"))
                # In these, equal texts are the same bytes.
                if collation and collation.endswith(_BYTEWISE):
                    of = dataclasses.replace(of, equal=Trust.EXACT, groups=True)
                of = dataclasses.replace(of, collation=collation)
            if data_type.lower() == "longtext" and collation == "utf8mb4_bin":
                # MariaDB's JSON.
                of = _OTHER
            boolean = column_type.lower().startswith("tinyint(1)")
            if of.kind in lossy or (boolean and Kind.BOOLEAN in lossy):
                of = _OTHER
            columns.append(
                Column(
                    name,
                    self.name(name),
                    of,
                    readable="select" in privileges.lower(),
                    collation=None if not collation or collation.endswith(_BYTEWISE) else collation,
                )
            )
        return Table(".".join(map(self.name, names)), columns)

    def _double(self, value: float) -> str:
        text = repr(value)
        # Without an exponent it would be a decimal.
        return text if "e" in text else f"{text}e0"

    def _date(self, value: dt.date) -> str:
        return f"DATE '{value.isoformat()}'"

    def _timestamp(self, value: dt.datetime) -> str:
        return f"TIMESTAMP '{timestamp_text(value)}'"


def _type(data_type: str, column_type: str, precision: int | None, scale: int | None) -> Type:
    if data_type in _INTEGERS:
        prefix = "U" if "unsigned" in column_type else ""
        return scalar(Kind.INTEGER, prefix + _INTEGERS[data_type])
    if data_type == "decimal" and precision is not None and scale is not None:
        return decimal_type(int(precision), int(scale))
    if data_type == "double" and "(" not in column_type:
        return Type(Kind.DOUBLE, "DOUBLE", equal=Trust.EXACT, order=Trust.EXACT, nulls=True)
    if data_type in _TEXTS:
        return _TEXT
    return _TYPES.get(data_type, _OTHER)
