"""BigQuery's catalogue: the queries of INFORMATION_SCHEMA, of the connection's dataset or of all in its location.

Each is a job, which bills 10 MiB at least. Rows are counted: the tables' statistics are only of whole locations.
"""

from longshore.sources.bigquery_loading import quoted_name
from longshore.sources.dialects import escape

_PLACE = "{0}.table_catalog AS catalog_name, {0}.table_schema AS db_schema_name, {0}.table_name AS table_name"
_TABLES = """SELECT {place}, CASE WHEN t.table_type LIKE '%VIEW' THEN 'view' ELSE 'table' END AS table_type
    FROM {views}.TABLES AS t ORDER BY 2, 3"""
_COLUMNS = """SELECT {place}, c.column_name AS column_name, CAST(c.ordinal_position AS STRING) AS ordinal_position,
    c.data_type AS type_name, c.is_nullable AS is_nullable, NULLIF(c.column_default, 'NULL') AS column_default,
    f.description AS remarks, 'NO' AS is_autoincrement,
    CASE c.is_generated WHEN 'ALWAYS' THEN 'YES' ELSE 'NO' END AS is_generated
    FROM {views}.COLUMNS AS c LEFT JOIN {views}.COLUMN_FIELD_PATHS AS f ON f.table_schema = c.table_schema
    AND f.table_name = c.table_name AND f.field_path = c.column_name
    WHERE c.is_hidden = 'NO' ORDER BY c.table_schema, c.table_name, c.ordinal_position"""
#: A foreign key's columns stand for those of the other table's primary key, by their place there.
_CONSTRAINTS = """SELECT {place}, c.constraint_name AS constraint_key, c.constraint_name AS constraint_name,
    c.constraint_type AS constraint_type, k.column_name AS column_name, u.table_catalog AS fk_catalog,
    u.table_schema AS fk_db_schema, u.table_name AS fk_table, p.column_name AS fk_column_name
    FROM {views}.TABLE_CONSTRAINTS AS c
    JOIN {views}.KEY_COLUMN_USAGE AS k ON k.constraint_name = c.constraint_name AND k.table_name = c.table_name
    LEFT JOIN (SELECT DISTINCT constraint_name, table_catalog, table_schema, table_name
    FROM {views}.CONSTRAINT_COLUMN_USAGE) AS u
    ON c.constraint_type = 'FOREIGN KEY' AND u.constraint_name = c.constraint_name
    LEFT JOIN {views}.TABLE_CONSTRAINTS AS o ON o.constraint_type = 'PRIMARY KEY' AND o.table_name = u.table_name
    LEFT JOIN {views}.KEY_COLUMN_USAGE AS p ON p.constraint_name = o.constraint_name AND p.table_name = o.table_name
    AND p.ordinal_position = k.position_in_unique_constraint
    ORDER BY c.table_name, c.constraint_name, k.ordinal_position"""
_NONE = "SELECT '' AS nothing LIMIT 0"


def catalogue(project: str, dataset: str, location: str) -> dict[str, str]:
    """Give the queries, of a dataset where there is one."""
    views = f"{quoted_name(project, dataset or f'region-{location.lower()}')}.INFORMATION_SCHEMA"
    schema = escape(dataset) if dataset else "CAST(NULL AS STRING)"
    own = f"{escape(project)} AS catalog_name, {schema} AS db_schema_name"
    all_datasets = f"SELECT catalog_name, schema_name AS db_schema_name FROM {views}.SCHEMATA ORDER BY 2"  # noqa: S608
    return {
        "current": f"SELECT {own}, 'BigQuery' AS vendor_name, 'v2' AS vendor_version",
        "schemas": f"SELECT {own}" if dataset else all_datasets,
        "tables": _TABLES.format(place=_PLACE.format("t"), views=views),
        "columns": _COLUMNS.format(place=_PLACE.format("c"), views=views),
        # A location has no view of them.
        "constraints": _CONSTRAINTS.format(place=_PLACE.format("c"), views=views) if dataset else _NONE,
        "table_types": "table, view",
    }
