//! The queries of SQLite's catalogue.

use std::borrow::Cow;

use longshore_core::CatalogueQueries;

/// The table of a row of `pragma_table_list`.
macro_rules! table {
    () => {
        "SELECT CAST(NULL AS TEXT) AS catalog_name, t.schema AS db_schema_name, t.name AS table_name, "
    };
}

/// Tables that are not the system's.
macro_rules! own {
    () => {
        "substr(t.name, 1, 7) <> 'sqlite_' AND t.type <> 'shadow'"
    };
}

const TABLES: &str = concat!(
    table!(),
    "CASE t.type WHEN 'virtual' THEN 'virtual table' ELSE t.type END AS table_type FROM pragma_table_list AS t WHERE ",
    own!(),
    " ORDER BY 2, 3"
);

/// The one column that is another name of the row's number: never NULL, and filled where it is left out.
macro_rules! alias {
    () => {
        "(c.pk = 1 AND upper(c.type) = 'INTEGER' AND NOT t.wr \
         AND (SELECT count(*) FROM pragma_table_info(t.name, t.schema) AS i WHERE i.pk > 0) = 1)"
    };
}

/// A view of what is not there has no columns, and an error for whoever asks for them.
const COLUMNS: &str = concat!(
    table!(),
    "c.name AS column_name, CAST(c.cid + 1 AS TEXT) AS ordinal_position, nullif(c.type, '') AS type_name, \
     CASE WHEN c.\"notnull\" OR c.pk > 0 AND t.wr OR ",
    alias!(),
    " THEN 'NO' ELSE 'YES' END AS is_nullable, c.dflt_value AS column_default, CAST(NULL AS TEXT) AS remarks, CASE WHEN ",
    alias!(),
    " THEN 'YES' ELSE 'NO' END AS is_autoincrement, CASE WHEN c.hidden > 1 THEN 'YES' ELSE 'NO' END AS is_generated \
     FROM pragma_table_list AS t CROSS JOIN pragma_table_xinfo(t.name, t.schema) AS c \
     WHERE t.ncol > 0 AND c.hidden <> 1 AND ",
    own!(),
    " ORDER BY 2, 3, c.cid"
);

/// Foreign keys that name no columns are to the primary key. Conditions stand in the text of the table alone.
const CONSTRAINTS: &str = concat!(
    table!(),
    "'p' AS constraint_key, CAST(NULL AS TEXT) AS constraint_name, 'PRIMARY KEY' AS constraint_type, c.name AS column_name, \
     CAST(NULL AS TEXT) AS fk_catalog, CAST(NULL AS TEXT) AS fk_db_schema, CAST(NULL AS TEXT) AS fk_table, \
     CAST(NULL AS TEXT) AS fk_column_name, printf('%05d', c.pk) AS place \
     FROM pragma_table_list AS t CROSS JOIN pragma_table_info(t.name, t.schema) AS c \
     WHERE t.ncol > 0 AND c.pk > 0 AND ",
    own!(),
    " UNION ALL ",
    table!(),
    "l.name, l.name, 'UNIQUE', i.name, NULL, NULL, NULL, NULL, printf('%05d', i.seqno) FROM pragma_table_list AS t \
     CROSS JOIN pragma_index_list(t.name, t.schema) AS l CROSS JOIN pragma_index_info(l.name, t.schema) AS i \
     WHERE l.origin = 'u' AND ",
    own!(),
    " UNION ALL ",
    table!(),
    "'f' || k.id, NULL, 'FOREIGN KEY', k.\"from\", NULL, t.schema, k.\"table\", coalesce(k.\"to\", \
     (SELECT p.name FROM pragma_table_info(k.\"table\", t.schema) AS p WHERE p.pk = k.seq + 1)), printf('%05d', k.seq) \
     FROM pragma_table_list AS t CROSS JOIN pragma_foreign_key_list(t.name, t.schema) AS k WHERE ",
    own!(),
    " ORDER BY 2, 3, 4, place"
);

/// The queries of a database's catalogue.
pub static CATALOGUE: CatalogueQueries = CatalogueQueries {
    current: Cow::Borrowed(
        "SELECT CAST(NULL AS TEXT) AS catalog_name, 'main' AS db_schema_name, 'SQLite' AS vendor_name, \
         sqlite_version() AS vendor_version",
    ),
    schemas: Cow::Borrowed(
        "SELECT CAST(NULL AS TEXT) AS catalog_name, name AS db_schema_name FROM pragma_database_list ORDER BY seq",
    ),
    tables: Cow::Borrowed(TABLES),
    found: Cow::Borrowed(
        "SELECT 'YES' AS found FROM pragma_table_list AS t \
         WHERE coalesce(t.schema = ? COLLATE NOCASE, 1) AND t.name = ? COLLATE NOCASE",
    ),
    columns: Cow::Borrowed(COLUMNS),
    constraints: Cow::Borrowed(CONSTRAINTS),
    statistics: Cow::Borrowed(""),
    table_types: Cow::Borrowed("table, view, virtual table"),
    found_schema: Cow::Borrowed(""),
    use_schema: Cow::Borrowed(""),
    temporary: Cow::Borrowed("temp"),
};
