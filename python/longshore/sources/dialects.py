"""The ways in which databases differ: one value for each."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from longshore import errors
from longshore._core import CATALOGUES
from longshore.texts import quoted_name

_FRACTIONS = ("DECIMAL", "NUMERIC", "DOUBLE", "FLOAT", "REAL")
#: A number's text without the zeros at its end.
_SHORT = "CASE WHEN {0} LIKE '%.%' THEN rtrim(rtrim({0}, '0'), '.') ELSE {0} END"


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """A database's SQL. In its queries, {schema} and {table} are literals, and {target} is one of the quoted name."""

    #: The database's name, as its drivers tell it.
    name: str
    #: The query of the names and types of the staged rows' columns.
    staged: str
    #: The query of a table's columns: name, type, whether it is generated, whether it may be NULL.
    columns: str
    #: The query of a table's unique keys: the number of the key, and the name of one of its columns.
    keys: str
    #: The queries of the catalogue, as the core's `CatalogueQueries` describes them.
    catalogue: Mapping[str, str]
    #: The statement that gives a transaction that has just begun one snapshot, where it has not.
    snapshot: str | None = None
    #: The bytes of a name that the database keeps; it would cut a longer one without a word.
    longest: int | None = None
    #: Whether a part of a transaction can be undone.
    has_savepoints: bool = True
    #: A query whose answer stays the same within a transaction, and is another outside of one.
    within: str | None = None
    #: The exception for a text of its driver's; None where the driver's status tells as much.
    error: Callable[[str], errors.Error | None] = lambda _text: None
    #: The options of its ADBC driver's statements, as names and values.
    statement_options: tuple[tuple[str, str], ...] = ()
    #: The statement that makes a connection like new; without it another is opened.
    reset: str | None = None
    #: The types of a new table's columns that the staged rows' columns do not tell, by the data.
    new_types: Callable[[object], dict[str, str]] = lambda _frame: {}
    #: How parameters are written by their places.
    places: Literal["$1", "?"] = "$1"
    #: The schema of a table that is named without one.
    schema: str = "NULL"
    #: The type that every value has a text of, and the name of the type of staged rows that are all NULL.
    text: str = "VARCHAR"
    null: str = ""
    #: Types without a value that a cast to them could change.
    wide: frozenset[str] = frozenset()
    #: A value as another type, and the same in a test, where a failure may be NULL.
    cast: str = "CAST({} AS {})"
    tested_cast: str = "CAST({} AS {})"
    #: The end of an INSERT that changes the rows that have its {keys}, or lets them be; None where there is none.
    upsert: str | None = "ON CONFLICT ({keys}) DO UPDATE SET {changes}"
    upsert_of_keys: str = "ON CONFLICT ({keys}) DO NOTHING"
    change: str = "{0} = excluded.{0}"
    #: The name's quote, which is doubled within names.
    quote: str = '"'
    #: The condition of a column's value that does not come back as it was from another type; None where each does.
    lossy: Callable[["Dialect", str, str, str], str | None]

    def quoted_name(self, *names: str) -> str:
        """Give a name, which may have several parts, in quotes."""
        return ".".join(quoted_name(name, self.quote) for name in names)


def literal(text: str) -> str:
    """Give a text in quotes."""
    return quoted_name(text, "'")


#: A quote around names.
BACKTICK = "`"


def escape(text: str, mark: str = "'") -> str:
    """Give a text, or a name, in quotes where a backslash escapes, as in ClickHouse and BigQuery."""
    return mark + text.replace("\\", "\\\\").replace(mark, f"\\{mark}") + mark


def cast_and_back(dialect: Dialect, column: str, kind: str, native: str) -> str | None:
    """Compare a value with itself after two casts; a text's 1.50 is 1.5."""
    if kind in {native, dialect.null} or native in dialect.wide:
        return None
    cast = dialect.tested_cast.format
    before, after = column, cast(cast(column, native), kind)
    if kind == dialect.text and native.upper().startswith(_FRACTIONS):
        before, after = _SHORT.format(before), _SHORT.format(after)
    return f"{after} IS DISTINCT FROM {before}"


def _by_affinity(dialect: Dialect, column: str, kind: str, native: str) -> str | None:
    """Find what SQLite changes by the column's affinity ("Datatypes In SQLite", 3.1)."""
    declared = native.upper()
    if "INT" not in declared and (not declared or "BLOB" in declared):
        return None
    if kind != "TEXT":
        lossy = cast_and_back(dialect, column, kind, native)
        # Of which the double, 2 ** 63, is cast back to it.
        return lossy and f"({lossy} OR {column} = 9223372036854775807 AND typeof(CAST({column} AS {native})) = 'real')"
    if "INT" not in declared and re.search("CHAR|CLOB|TEXT", declared):
        return None
    # True where the text would become a number.
    return f"{column} = CAST({column} AS NUMERIC)"


_IN_CATALOGUE = (
    "WHERE database_name = current_database() AND schema_name = {schema} AND lower(table_name) = lower({table})"
)

_DUCKDB_TABLE = "SELECT database_name AS catalog_name, schema_name AS db_schema_name, table_name"
_DUCKDB_CATALOGUE = {
    "current": "SELECT current_database() AS catalog_name, current_schema() AS db_schema_name, "
    "'DuckDB' AS vendor_name, version() AS vendor_version",
    "schemas": "SELECT database_name AS catalog_name, schema_name AS db_schema_name FROM duckdb_schemas() "
    "WHERE database_name <> 'system' AND schema_name NOT IN ('information_schema', 'pg_catalog') ORDER BY 1, 2",
    "tables": "SELECT table_catalog AS catalog_name, table_schema AS db_schema_name, table_name, "
    "CASE table_type WHEN 'VIEW' THEN 'view' ELSE 'table' END AS table_type "
    "FROM information_schema.tables ORDER BY 1, 2, 3",
    "columns": f"{_DUCKDB_TABLE}, column_name, column_index::VARCHAR AS ordinal_position, data_type AS type_name, "
    "CASE WHEN is_nullable THEN 'YES' ELSE 'NO' END AS is_nullable, "
    "CASE WHEN NOT is_generated THEN column_default END AS column_default, comment AS remarks, "
    "CASE WHEN column_default LIKE 'nextval(%' THEN 'YES' ELSE 'NO' END AS is_autoincrement, "
    "CASE WHEN is_generated THEN 'YES' ELSE 'NO' END AS is_generated "
    "FROM duckdb_columns() WHERE NOT internal ORDER BY 1, 2, 3, column_index",
    "constraints": f"{_DUCKDB_TABLE}, constraint_index::VARCHAR AS constraint_key, constraint_name, constraint_type, "
    "unnest(CASE WHEN len(constraint_column_names) > 0 THEN constraint_column_names ELSE [NULL] END) AS column_name, "
    "CASE WHEN constraint_type = 'FOREIGN KEY' THEN database_name END AS fk_catalog, "
    "CASE WHEN constraint_type = 'FOREIGN KEY' THEN schema_name END AS fk_db_schema, referenced_table AS fk_table, "
    "unnest(referenced_column_names) AS fk_column_name FROM duckdb_constraints() "
    "WHERE constraint_type <> 'NOT NULL' ORDER BY 1, 2, 3, constraint_index",
    "statistics": f"{_DUCKDB_TABLE}, NULL::VARCHAR AS column_name, '6' AS statistic_key, "
    "estimated_size::VARCHAR AS statistic_value FROM duckdb_tables() WHERE NOT internal",
    "table_types": "table, view",
    "use_schema": "USE {}",
}


def _duckdb_error(text: str) -> errors.Error | None:
    from longshore.duckdb.failures import error_from_driver

    return error_from_driver(text)


DUCKDB = Dialect(
    name="duckdb",
    error=_duckdb_error,
    has_savepoints=False,
    within="SELECT txid_current()::VARCHAR",
    staged="DESCRIBE {name}",
    columns="SELECT column_name, data_type, generation_expression IS NOT NULL, is_nullable FROM duckdb_columns() "
    + _IN_CATALOGUE,
    keys="SELECT constraint_index, unnest(constraint_column_names)::VARCHAR FROM duckdb_constraints() "
    f"{_IN_CATALOGUE} AND constraint_type IN ('PRIMARY KEY', 'UNIQUE')",
    catalogue=_DUCKDB_CATALOGUE,
    schema="current_schema()",
    null='"NULL"',
    wide=frozenset({"VARCHAR", "JSON"}),
    tested_cast="TRY_CAST({} AS {})",
    lossy=cast_and_back,
)


def _numerics(frame: object) -> dict[str, str]:
    from longshore.sources.arrow import numerics

    return numerics(frame)


_ATTRIBUTES = "FROM pg_attribute a WHERE a.attrelid = to_regclass({target}) AND a.attnum > 0 AND NOT a.attisdropped"
_TYPE = "a.attname::text, format_type(a.atttypid, a.atttypmod)"

POSTGRESQL = Dialect(
    name="postgresql",
    staged=f"SELECT {_TYPE} {_ATTRIBUTES} ORDER BY a.attnum",
    columns=f"SELECT {_TYPE}, a.attgenerated <> '', NOT a.attnotnull {_ATTRIBUTES} ORDER BY a.attnum",
    keys="SELECT i.indexrelid::bigint, a.attname::text FROM pg_index i "
    "CROSS JOIN unnest(i.indkey) WITH ORDINALITY k (number, place) "
    "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number WHERE i.indrelid = to_regclass({target}) "
    "AND i.indisunique AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL AND k.place <= i.indnkeyatts",
    catalogue=CATALOGUES["postgresql"],
    snapshot="SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    within="SELECT transaction_timestamp()::text",
    longest=63,
    # The driver has two of them at a time, of 16 MiB by default.
    statement_options=(("adbc.postgresql.batch_size_hint_bytes", str(4 << 20)),),
    reset="DISCARD ALL",
    new_types=_numerics,
    text="text",
    wide=frozenset({"text", "character varying", "json", "jsonb"}),
    lossy=cast_and_back,
)

SQLITE = Dialect(
    name="sqlite",
    staged="SELECT name, type FROM pragma_table_info({table})",
    # NULL in a key of integers would become a number.
    columns="SELECT name, type, hidden > 1, NOT (\"notnull\" OR pk AND upper(type) = 'INTEGER') "
    "FROM pragma_table_xinfo({table}, {schema})",
    keys="SELECT -1, name FROM pragma_table_info({table}, {schema}) WHERE pk "
    "UNION ALL SELECT l.seq, i.name FROM pragma_index_list({table}, {schema}) l, pragma_index_info(l.name, {schema}) i "
    'WHERE l."unique" AND NOT l.partial',
    places="?",
    catalogue=CATALOGUES["sqlite"],
    schema="'main'",
    text="TEXT",
    cast="{0}",
    lossy=_by_affinity,
)


def _accurate(dialect: Dialect, column: str, kind: str, native: str) -> str | None:
    """Compare texts of a value with those after two exact casts, in which NaN is itself."""
    if kind in {native, f"Nullable({native})"} or native in dialect.wide:
        return None
    if "Enum" in native:
        labels = ", ".join(re.findall(r"'(?:[^'\\]|\\.)*'", native))
        return f"isNotNull({column}) AND toString({column}) NOT IN ({labels})"
    source = f"toString({column})" if is_cut(kind, native) else column
    after = f"accurateCastOrNull({source}, {escape(native)})"
    back = f"accurateCastOrNull({after}, {escape(kind)})"
    before, text = f"toString({column})", f"toString({back})"
    if "String" in kind and any(word in native for word in ("Decimal", "Float")):
        before = _SHORT.format(before).replace("rtrim", "trimRight")
    # Of equal texts is NaN, of equal values a zero with a sign.
    lossy = f"coalesce({text} <> {before} AND {back} <> {column}, true)"
    if found := re.search(r"Decimal\((\d+), (\d+)\)", native):
        precision, scale = map(int, found.groups())
        # Its decimals hold more digits than they are declared with.
        digits = f"accurateCastOrNull({source}, 'Decimal(76, {scale})')"
        lossy += f" OR coalesce(abs({digits}) >= toDecimal256('1{'0' * (precision - scale)}', {scale}), true)"
    return f"isNotNull({column}) AND ({lossy})"


def is_cut(kind: str, native: str) -> bool:
    """Whether ClickHouse cuts the digits of a value that it casts."""
    return "Float" in kind and "Decimal" in native


_CLICKHOUSE_TABLE = "SELECT database AS catalog_name, database AS db_schema_name"
_CLICKHOUSE_OWN = "database NOT IN ('system', 'information_schema', 'INFORMATION_SCHEMA')"

CLICKHOUSE = Dialect(
    name="clickhouse",
    has_savepoints=False,
    staged="DESCRIBE TABLE {name}",
    columns="SELECT name, type, default_kind IN ('MATERIALIZED', 'ALIAS'), "
    "type LIKE 'Nullable(%' OR type LIKE 'LowCardinality(Nullable(%' FROM system.columns "
    "WHERE database = {schema} AND table = {table} ORDER BY position",
    keys="",
    catalogue={
        "current": "SELECT currentDatabase() AS catalog_name, currentDatabase() AS db_schema_name, "
        "'ClickHouse' AS vendor_name, version() AS vendor_version",
        "schemas": f"SELECT name AS catalog_name, name AS db_schema_name FROM system.databases "
        f"WHERE {_CLICKHOUSE_OWN.replace('database', 'name', 1)} ORDER BY 1",
        "tables": f"{_CLICKHOUSE_TABLE}, name AS table_name, "
        "if(engine LIKE '%View', 'view', 'table') AS table_type FROM system.tables "
        f"WHERE {_CLICKHOUSE_OWN} AND NOT is_temporary ORDER BY 1, 2, 3",
        "columns": f"{_CLICKHOUSE_TABLE}, table AS table_name, name AS column_name, "
        "toString(position) AS ordinal_position, type AS type_name, "
        "if(type LIKE 'Nullable(%' OR type LIKE 'LowCardinality(Nullable(%', 'YES', 'NO') AS is_nullable, "
        "if(default_kind = 'DEFAULT', default_expression, NULL) AS column_default, nullIf(comment, '') AS remarks, "
        "'NO' AS is_autoincrement, if(default_kind IN ('MATERIALIZED', 'ALIAS'), 'YES', 'NO') AS is_generated "
        f"FROM system.columns WHERE {_CLICKHOUSE_OWN} ORDER BY 1, 2, 3, position",
        "constraints": f"{_CLICKHOUSE_TABLE}, table AS table_name, '1' AS constraint_key, "
        "NULL AS constraint_name, 'PRIMARY KEY' AS constraint_type, name AS column_name, NULL AS fk_catalog, "
        "NULL AS fk_db_schema, NULL AS fk_table, NULL AS fk_column_name FROM system.columns "
        f"WHERE is_in_primary_key AND {_CLICKHOUSE_OWN} ORDER BY 1, 2, 3, position",
        "statistics": f"{_CLICKHOUSE_TABLE}, name AS table_name, CAST(NULL AS Nullable(String)) AS column_name, "
        "'6' AS statistic_key, toString(total_rows) AS statistic_value FROM system.tables "
        f"WHERE total_rows IS NOT NULL AND {_CLICKHOUSE_OWN}",
        "table_types": "table, view",
        "use_schema": "USE {}",
    },
    schema="currentDatabase()",
    text="Nullable(String)",
    wide=frozenset({"String", "Nullable(String)"}),
    upsert=None,
    quote="`",
    lossy=_accurate,
)


_TRINO_TABLE = "SELECT table_catalog AS catalog_name, table_schema AS db_schema_name, table_name"
_TRINO_OWN = "table_schema <> 'information_schema'"
_NO_TEXT = "CAST(NULL AS varchar)"

TRINO = Dialect(
    name="trino",
    has_savepoints=False,
    staged="",
    columns="SELECT column_name, data_type, false, is_nullable = 'YES' FROM information_schema.columns "
    "WHERE table_schema = lower({schema}) AND table_name = lower({table}) ORDER BY ordinal_position",
    keys="",
    catalogue={
        "current": "SELECT current_catalog AS catalog_name, current_schema AS db_schema_name, "
        "'Trino' AS vendor_name, version() AS vendor_version",
        "schemas": "SELECT catalog_name, schema_name AS db_schema_name FROM information_schema.schemata "
        "WHERE schema_name <> 'information_schema' ORDER BY 1, 2",
        "tables": f"{_TRINO_TABLE}, CASE table_type WHEN 'VIEW' THEN 'view' ELSE 'table' END AS table_type "
        f"FROM information_schema.tables WHERE {_TRINO_OWN} ORDER BY 1, 2, 3",
        "columns": f"{_TRINO_TABLE}, column_name, CAST(ordinal_position AS varchar) AS ordinal_position, "
        f"data_type AS type_name, is_nullable, column_default, {_NO_TEXT} AS remarks, 'NO' AS is_autoincrement, "
        f"'NO' AS is_generated FROM information_schema.columns WHERE {_TRINO_OWN} ORDER BY 1, 2, 3, ordinal_position",
        "constraints": f"{_TRINO_TABLE}, '1' AS constraint_key, {_NO_TEXT} AS constraint_name, "
        f"'PRIMARY KEY' AS constraint_type, {_NO_TEXT} AS column_name, {_NO_TEXT} AS fk_catalog, "
        f"{_NO_TEXT} AS fk_db_schema, {_NO_TEXT} AS fk_table, {_NO_TEXT} AS fk_column_name "
        "FROM information_schema.tables WHERE false",
        # SHOW STATS is of one table: nothing is estimated, and rows are counted where exact ones are asked for.
        "statistics": f"{_TRINO_TABLE}, {_NO_TEXT} AS column_name, '6' AS statistic_key, {_NO_TEXT} AS statistic_value "
        "FROM information_schema.tables WHERE false",
        "table_types": "table, view",
        "use_schema": "USE {}",
    },
    schema="current_schema",
    text="varchar",
    wide=frozenset({"varchar"}),
    tested_cast="TRY_CAST({} AS {})",
    upsert=None,
    lossy=cast_and_back,
)
