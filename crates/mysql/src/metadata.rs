//! The queries of MySQL's and MariaDB's catalogue.

use std::borrow::Cow;

use longshore_core::CatalogueQueries;

/// The system's databases.
macro_rules! own {
    ($schema:literal) => {
        concat!($schema, " NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')")
    };
}

const TABLES: &str = concat!(
    "SELECT table_catalog AS catalog_name, table_schema AS db_schema_name, \
     table_name AS table_name, CASE WHEN table_type = 'VIEW' THEN 'view' WHEN table_type = 'SEQUENCE' THEN 'sequence' \
     ELSE 'table' END AS table_type FROM information_schema.tables WHERE ",
    own!("table_schema"),
    " ORDER BY 2, 3"
);

const SCHEMAS: &str = concat!(
    "SELECT catalog_name AS catalog_name, schema_name AS db_schema_name FROM information_schema.schemata WHERE ",
    own!("schema_name"),
    " ORDER BY 2"
);

/// MariaDB writes NULL where there is no default, and quotes a text.
const COLUMNS: &str = concat!(
    "SELECT table_catalog AS catalog_name, table_schema AS db_schema_name, table_name AS table_name, \
     column_name AS column_name, CAST(ordinal_position AS CHAR) AS ordinal_position, column_type AS type_name, \
     is_nullable AS is_nullable, IF(VERSION() LIKE '%MariaDB%', NULLIF(column_default, 'NULL'), column_default) \
     AS column_default, NULLIF(column_comment, '') AS remarks, \
     IF(extra LIKE '%auto_increment%', 'YES', 'NO') AS is_autoincrement, \
     IF(COALESCE(generation_expression, '') = '', 'NO', 'YES') AS is_generated \
     FROM information_schema.columns WHERE ",
    own!("table_schema"),
    " ORDER BY table_schema, table_name, ordinal_position"
);

const CONSTRAINTS: &str = concat!(
    "SELECT t.constraint_catalog AS catalog_name, t.table_schema AS db_schema_name, t.table_name AS table_name, \
     t.constraint_name AS constraint_key, t.constraint_name AS constraint_name, t.constraint_type AS constraint_type, \
     k.column_name AS column_name, IF(k.referenced_table_name IS NULL, NULL, t.constraint_catalog) AS fk_catalog, \
     k.referenced_table_schema AS fk_db_schema, k.referenced_table_name AS fk_table, k.referenced_column_name AS fk_column_name \
     FROM information_schema.table_constraints AS t LEFT JOIN information_schema.key_column_usage AS k \
     ON t.constraint_type <> 'CHECK' AND k.constraint_schema = t.constraint_schema AND k.constraint_name = t.constraint_name \
     AND k.table_schema = t.table_schema AND k.table_name = t.table_name \
     AND (t.constraint_type = 'FOREIGN KEY') = (k.referenced_table_name IS NOT NULL) WHERE ",
    own!("t.table_schema"),
    " ORDER BY t.table_schema, t.table_name, t.constraint_name, k.ordinal_position"
);

/// The rows of tables, and the distinct values of columns that an index begins with.
const STATISTICS: &str = concat!(
    "SELECT table_catalog AS catalog_name, table_schema AS db_schema_name, table_name AS table_name, \
     CAST(NULL AS CHAR) AS column_name, '6' AS statistic_key, CAST(table_rows AS CHAR) AS statistic_value \
     FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_rows IS NOT NULL AND ",
    own!("table_schema"),
    " UNION ALL SELECT table_catalog, table_schema, table_name, column_name, '1', CAST(MAX(cardinality) AS CHAR) \
     FROM information_schema.statistics WHERE seq_in_index = 1 AND cardinality IS NOT NULL AND column_name IS NOT NULL AND ",
    own!("table_schema"),
    " GROUP BY table_catalog, table_schema, table_name, column_name"
);

/// The queries of a server's catalogue.
pub static CATALOGUE: CatalogueQueries = CatalogueQueries {
    current: Cow::Borrowed(
        "SELECT 'def' AS catalog_name, DATABASE() AS db_schema_name, \
         IF(VERSION() LIKE '%MariaDB%', 'MariaDB', 'MySQL') AS vendor_name, VERSION() AS vendor_version",
    ),
    schemas: Cow::Borrowed(SCHEMAS),
    tables: Cow::Borrowed(TABLES),
    found: Cow::Borrowed(""),
    columns: Cow::Borrowed(COLUMNS),
    constraints: Cow::Borrowed(CONSTRAINTS),
    statistics: Cow::Borrowed(STATISTICS),
    table_types: Cow::Borrowed("table, view, sequence"),
    found_schema: Cow::Borrowed(""),
    use_schema: Cow::Borrowed("USE {}"),
    temporary: Cow::Borrowed(""),
};
