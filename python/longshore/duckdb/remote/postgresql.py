"""PostgreSQL: its catalogue and types."""

import dataclasses
import datetime as dt
import uuid
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from longshore.duckdb.remote.dialect import Ask, Dialect, rows_of, table_rows, timestamp_text
from longshore.duckdb.remote.types import Column, Kind, Table, Trust, Type, decimal_type, scalar

#: Expressions alone: of a plain column, a read would also ask whether it may be NULL.
_COLUMNS = """
SELECT n.nspname || '', c.relname || '', a.attname || '', CAST(a.atttypid AS int8), CAST(t.typtype AS text),
    a.atttypmod + 0, CAST(t.typbasetype AS int8), t.typtypmod + 0,
    co.collisdeterministic IS TRUE, co.collname || '', CAST(a.attcollation AS int8),
    current_setting('server_encoding'), version(), concat(c.oid, ' ', c.xmin, ' ', a.xmin),
    has_column_privilege(c.oid, a.attnum, 'SELECT') IS TRUE, t.typname || ''
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_collation AS co ON co.oid = a.attcollation
WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND {table} AND {schema}
ORDER BY array_position(current_schemas(true), n.nspname), n.nspname, c.relname, a.attnum
"""

#: The base type of a domain.
_BASE = "SELECT CAST(typbasetype AS int8), typtypmod + 0 FROM pg_catalog.pg_type WHERE oid = $1 AND typtype = 'd'"

#: By the name in the pushed text, which without a schema may mean another table by now.
_VERSIONS = """
SELECT concat(c.oid, ' ', c.xmin, ' ', a.xmin)
FROM pg_catalog.pg_class AS c
LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.oid = to_regclass($1) ORDER BY a.attnum
"""

_TESTS = (("c.relname = $1", "n.nspname = $2"), ("lower(c.relname) = lower($1)", "lower(n.nspname) = lower($2)"))
_IN_PATH = "n.nspname = ANY (current_schemas(true))"

#: By OID; other types are loaded only.
_TYPES = {
    16: Type(Kind.BOOLEAN, "BOOLEAN", equal=Trust.EXACT, groups=True, nulls=True),
    20: scalar(Kind.INTEGER, "BIGINT"),
    21: scalar(Kind.INTEGER, "SMALLINT"),
    23: scalar(Kind.INTEGER, "INTEGER"),
    # Compared with 0.1, real is double precision in PostgreSQL, and the literal is real in the engine.
    700: Type(Kind.OTHER, "FLOAT", nulls=True),
    # 0 and -0 are equal and differ. Sums depend on the order of rows.
    701: Type(Kind.DOUBLE, "DOUBLE", equal=Trust.EXACT, order=Trust.EXACT, nulls=True),
    1082: scalar(Kind.DATE, "DATE"),
    1114: scalar(Kind.TIMESTAMP, "TIMESTAMP"),
    1184: scalar(Kind.TIMESTAMPTZ, "TIMESTAMP WITH TIME ZONE"),
    # Versions before 18 lack min(uuid).
    2950: Type(Kind.UUID, "UUID", equal=Trust.EXACT, groups=True, nulls=True),
}
_NUMERIC = 1700
_PADDED, _PADDED_ARRAY = 1042, 1014
_VARYING = 1043
_TEXTS = (25, _VARYING, _PADDED)
#: A cast removes the padding, which comparisons ignore.
_FORMS = {_PADDED: "{}::text", _PADDED_ARRAY: "{}::text[]"}
#: Types of extensions whose Arrow types the engine has not, or of which it drops the reference system.
_WITHOUT_ENGINE = {"halfvec", "geometry", "geography"}
#: Bytes of a value's length, which a modifier counts.
_HEADER = 4
#: OIDs of users' types; the server's domains below are not padded.
_FIRST_OF_USERS = 16384
_OTHER = Type(Kind.OTHER)
#: Python's names of server encodings; all others contain ASCII.
_CHARSETS = {"UTF8": "utf-8", "LATIN1": "iso8859-1", "LATIN9": "iso8859-15", "WIN1252": "cp1252"}


class PostgreSQL(Dialect):
    """PostgreSQL's SQL."""

    begin_snapshot: ClassVar[Sequence[str]] = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",)
    versions: ClassVar[str | None] = _VERSIONS
    needs_savepoint: ClassVar[bool] = True
    has_plain_like: ClassVar[bool] = True

    def find(self, ask: Ask, parts: Sequence[str], lossy: frozenset[Kind]) -> Table | None:
        """Look a table up in the catalogue; without a schema, in the search path."""
        found = table_rows(ask, _COLUMNS, _TESTS, _IN_PATH, parts)
        if found is None:
            return None
        names, own = found[0], [_Row(*row) for row in found[1]]
        columns = [self._column(_domain_base(row, ask), lossy) for row in own if row.name is not None]
        return Table(".".join(map(self.name, names)), columns, version=[row.version for row in own])

    def _column(self, row: "_Row", lossy: frozenset[Kind]) -> Column:
        of = _type(row.oid, row.modifier, row.collation, deterministic=row.deterministic and row.encoding == "UTF8")
        if of.kind is Kind.TEXT:
            of = dataclasses.replace(of, charset=_CHARSETS.get(row.encoding, "ascii"))
        form = "{}::text" if row.type_name in _WITHOUT_ENGINE else _FORMS.get(row.oid, "{}")
        if row.category == "e" and row.encoding == "UTF8":
            # An enumeration is a text to the engine, and its order is that of texts.
            of, form = _text(Trust.EXACT, "enum"), "{}::text"
        if not _is_postgresql(row.server) or of.kind in lossy:
            of = _OTHER
        of = dataclasses.replace(of, varying=_VARYING in (row.oid, row.base))
        return Column(
            row.name,
            self.name(row.name),
            of,
            form,
            readable=row.readable,
            is_cast=row.oid in _FORMS or row.type_name in _WITHOUT_ENGINE,
            padded=max(row.modifier - _HEADER, 0) if row.oid == _PADDED else None,
            collation=row.collation_name if row.collation and not row.deterministic else None,
        )

    def sort_key(self, sql: str, wanted: Type) -> str:
        """Order texts by their bytes, as the engine does."""
        return f'{sql} COLLATE "C"' if wanted.kind is Kind.TEXT else sql

    def _text(self, value: str) -> str:
        if "\\" in value:
            # This does not depend on standard_conforming_strings.
            return "E'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
        return "'" + value.replace("'", "''") + "'"

    def _double(self, value: float) -> str:
        return f"'{value!r}'::float8"

    def _date(self, value: dt.date) -> str:
        return f"'{value.isoformat()}'::date"

    def _timestamp(self, value: dt.datetime) -> str:
        return f"'{timestamp_text(value)}'::timestamp"

    def _timestamptz(self, value: dt.datetime) -> str:
        return f"'{timestamp_text(value)}+00'::timestamptz"

    def _uuid(self, value: uuid.UUID) -> str:
        return f"'{value}'::uuid"


class _Row(NamedTuple):
    """A column's row in the catalogue."""

    name: str
    oid: int
    category: str
    modifier: int
    base: int
    base_modifier: int
    deterministic: bool
    collation_name: str
    collation: int
    encoding: str
    server: str
    version: str
    readable: bool
    type_name: str


def _domain_base(row: _Row, ask: Ask) -> _Row:
    """Give a domain over a ``char(n)`` as the ``char(n)`` that comparisons and LIKE see."""
    base, modifier = row.base, row.base_modifier
    while base >= _FIRST_OF_USERS:
        below = rows_of(ask(_BASE, [base]))
        if not below:
            break
        ((base, modifier),) = below
    return row._replace(oid=base, modifier=modifier) if base in _FORMS else row._replace(base=base)


def _is_postgresql(version: str) -> bool:
    """Whether it is PostgreSQL 12 or newer, and not another server of its protocol."""
    name, number, *_ = [*version.split(), "", ""]
    major = number.partition(".")[0]
    return name == "PostgreSQL" and major.isdecimal() and int(major) >= 12 and "-YB-" not in version  # noqa: PLR2004


def _type(oid: int, modifier: int, collation: int, *, deterministic: bool) -> Type:
    if oid == _NUMERIC:
        return _numeric(modifier)
    if oid in _TEXTS:
        return _text(Trust.EXACT if deterministic else Trust.SUPERSET, str(collation))
    return _TYPES.get(oid, _OTHER)


def _text(equal: Trust, collation: str) -> Type:
    exact = equal is Trust.EXACT
    order = Trust.EXACT if exact else Trust.NONE
    return Type(Kind.TEXT, "VARCHAR", equal=equal, order=order, groups=exact, nulls=True, collation=collation)


def _numeric(modifier: int) -> Type:
    """Give precision and scale; without them, the type depends on the values."""
    if modifier < 0:
        return _OTHER
    # The header's four bytes come first; the scale has eleven bits, with a sign since version 15.
    scale = (modifier - _HEADER) & 0x7FF
    scale -= 0x800 if scale & 0x400 else 0
    return decimal_type(((modifier - _HEADER) >> 16) & 0xFFFF, scale)
