"""BigQuery's INFORMATION_SCHEMA over DuckDB's views: the columns that the source asks for."""

#: Of one dataset, main; a primary key is noted, as the service does not enforce it, and no foreign key is known.
VIEWS = """
CREATE SCHEMA standin;
CREATE TABLE standin.keys (table_name VARCHAR, column_name VARCHAR, ordinal_position BIGINT);
CREATE VIEW standin.tables AS SELECT '{project}' AS table_catalog, schema_name AS table_schema, table_name,
    'BASE TABLE' AS table_type FROM duckdb_tables() WHERE schema_name = 'main'
    UNION ALL SELECT '{project}', schema_name, view_name, 'VIEW' FROM duckdb_views()
    WHERE schema_name = 'main' AND NOT internal;
CREATE VIEW standin.columns AS SELECT '{project}' AS table_catalog, schema_name AS table_schema, table_name,
    column_name, column_index AS ordinal_position,
    CASE WHEN data_type IN ('TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT') THEN 'INT64'
    WHEN data_type = 'VARCHAR' THEN 'STRING' WHEN data_type LIKE 'DECIMAL%'
    THEN format('NUMERIC({}, {})', numeric_precision, numeric_scale) ELSE data_type END AS data_type,
    CASE WHEN is_nullable THEN 'YES' ELSE 'NO' END AS is_nullable, COALESCE(column_default, 'NULL') AS column_default,
    'NEVER' AS is_generated, 'NO' AS is_hidden FROM duckdb_columns() WHERE schema_name = 'main' AND NOT internal;
CREATE VIEW standin.column_field_paths AS SELECT schema_name AS table_schema, table_name, column_name AS field_path,
    comment AS description FROM duckdb_columns() WHERE schema_name = 'main';
CREATE VIEW standin.table_constraints AS SELECT DISTINCT '{project}' AS table_catalog, schema_name AS table_schema,
    table_name, table_name || '.pk$' AS constraint_name, 'PRIMARY KEY' AS constraint_type
    FROM standin.keys JOIN duckdb_tables() USING (table_name) WHERE schema_name = 'main';
CREATE VIEW standin.key_column_usage AS SELECT table_name, table_name || '.pk$' AS constraint_name, column_name,
    ordinal_position, NULL::BIGINT AS position_in_unique_constraint FROM standin.keys;
CREATE VIEW standin.constraint_column_usage AS SELECT '' AS constraint_name, '' AS table_catalog, '' AS table_schema,
    '' AS table_name WHERE false;
"""
