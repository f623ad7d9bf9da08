"""Oracle's dictionary views over DuckDB's: the columns that the source asks for, as Oracle's documentation has them."""

#: Of one user, MAIN; DuckDB keeps the length of a text as a CHECK, and names constraints by itself.
VIEWS = """
CREATE VIEW IF NOT EXISTS dual AS SELECT 'X' AS DUMMY;
CREATE VIEW IF NOT EXISTS constraints AS SELECT * REPLACE (upper(table_name) AS table_name)
    FROM duckdb_constraints() WHERE constraint_text NOT LIKE 'CHECK((strlen%' AND constraint_type <> 'NOT NULL';
CREATE VIEW IF NOT EXISTS user_tables AS SELECT table_name AS TABLE_NAME FROM duckdb_tables();
CREATE VIEW IF NOT EXISTS all_users AS SELECT 'MAIN' AS USERNAME, 'N' AS ORACLE_MAINTAINED
    UNION ALL SELECT 'SYS', 'Y';
CREATE VIEW IF NOT EXISTS product_component_version AS SELECT 'Oracle Database 23ai' AS PRODUCT, '23.0.0' AS VERSION;
CREATE VIEW IF NOT EXISTS all_tables AS SELECT 'MAIN' AS OWNER, table_name AS TABLE_NAME, 'NO' AS DROPPED,
    'NO' AS NESTED, 'N' AS SECONDARY, NULL AS IOT_TYPE, 'N' AS TEMPORARY, 'NO' AS EXTERNAL,
    estimated_size AS NUM_ROWS, NULL AS BLOCKS FROM duckdb_tables()
    UNION ALL SELECT 'SYS', 'OBJ$', 'NO', 'NO', 'N', NULL, 'N', 'NO', 7, 1;
CREATE VIEW IF NOT EXISTS all_policies AS SELECT '' AS OBJECT_OWNER, '' AS OBJECT_NAME WHERE false;
CREATE VIEW IF NOT EXISTS all_views AS SELECT 'MAIN' AS OWNER, view_name AS VIEW_NAME FROM duckdb_views()
    WHERE NOT internal AND sql LIKE '% T!_%' ESCAPE '!' UNION ALL SELECT 'SYS', 'ALL_TABLES';
CREATE VIEW IF NOT EXISTS all_tab_cols AS SELECT 'MAIN' AS OWNER, c.table_name AS TABLE_NAME,
    c.column_name AS COLUMN_NAME, c.column_index AS COLUMN_ID,
    CASE WHEN data_type LIKE 'DECIMAL%' THEN 'NUMBER' WHEN data_type = 'VARCHAR' THEN 'VARCHAR2'
    WHEN data_type = 'TIMESTAMP_S' THEN 'DATE' WHEN data_type IN ('FLOAT', 'DOUBLE') THEN 'BINARY_' || data_type
    ELSE data_type END
    AS DATA_TYPE, numeric_precision AS DATA_PRECISION, numeric_scale AS DATA_SCALE, NULL AS DATA_LENGTH,
    COALESCE((SELECT max(regexp_extract(k.expression, '<= (\\d+)', 1)) FROM duckdb_constraints() k
        WHERE k.table_name = c.table_name AND k.expression LIKE '(strlen(%' AND k.constraint_column_names
        = [c.column_name]), '4000') AS CHAR_LENGTH, CASE WHEN is_nullable THEN 'Y' ELSE 'N' END AS NULLABLE,
    column_default AS DATA_DEFAULT, 'NO' AS IDENTITY_COLUMN, 'NO' AS VIRTUAL_COLUMN, 'NO' AS HIDDEN_COLUMN
    FROM duckdb_columns() c WHERE NOT internal;
CREATE VIEW IF NOT EXISTS all_col_comments AS SELECT 'MAIN' AS OWNER, table_name AS TABLE_NAME,
    column_name AS COLUMN_NAME, comment AS COMMENTS FROM duckdb_columns() WHERE NOT internal;
CREATE VIEW IF NOT EXISTS all_tab_col_statistics AS SELECT '' AS OWNER, '' AS TABLE_NAME, '' AS COLUMN_NAME,
    NULL AS NUM_DISTINCT WHERE false;
CREATE VIEW IF NOT EXISTS all_constraints AS SELECT 'MAIN' AS OWNER, c.table_name AS TABLE_NAME,
    c.constraint_name AS CONSTRAINT_NAME,
    CASE c.constraint_type WHEN 'FOREIGN KEY' THEN 'R' ELSE left(c.constraint_type, 1) END AS CONSTRAINT_TYPE,
    c.expression AS SEARCH_CONDITION_VC, CASE WHEN k.constraint_name IS NOT NULL THEN 'MAIN' END AS R_OWNER,
    k.constraint_name AS R_CONSTRAINT_NAME FROM constraints c LEFT JOIN constraints k
    ON k.table_name = upper(c.referenced_table) AND k.constraint_type IN ('PRIMARY KEY', 'UNIQUE')
    AND k.constraint_column_names = c.referenced_column_names;
CREATE VIEW IF NOT EXISTS all_cons_columns AS SELECT 'MAIN' AS OWNER, table_name AS TABLE_NAME,
    constraint_name AS CONSTRAINT_NAME, unnest(constraint_column_names) AS COLUMN_NAME,
    unnest(range(1, len(constraint_column_names) + 1)) AS POSITION FROM constraints;
CREATE VIEW IF NOT EXISTS all_indexes AS SELECT 'MAIN' AS OWNER, 'MAIN' AS TABLE_OWNER, table_name AS TABLE_NAME,
    table_name || constraint_index AS INDEX_NAME, 'UNIQUE' AS UNIQUENESS FROM duckdb_constraints()
    WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE');
CREATE VIEW IF NOT EXISTS all_ind_columns AS SELECT 'MAIN' AS INDEX_OWNER,
    table_name || constraint_index AS INDEX_NAME, unnest(constraint_column_names) AS COLUMN_NAME
    FROM duckdb_constraints() WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE');
"""
