//! The queries of PostgreSQL's catalogue.

use std::borrow::Cow;

use longshore_core::CatalogueQueries;

/// Schemas that are not the system's; temporary tables are this session's own.
macro_rules! own {
    () => {
        "n.nspname <> 'information_schema' AND (left(n.nspname, 3) <> 'pg_' OR n.oid = pg_my_temp_schema())"
    };
}

/// The table of a row of `pg_class` and its schema.
macro_rules! table {
    () => {
        "SELECT current_database()::text AS catalog_name, n.nspname::text AS db_schema_name, c.relname::text AS table_name, "
    };
}

const TABLES: &str = concat!(
    table!(),
    "CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' ELSE 'table' END AS table_type \
     FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace \
     WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND ",
    own!(),
    " ORDER BY 2, 3"
);

const SCHEMAS: &str = concat!(
    "SELECT d.datname::text AS catalog_name, n.nspname::text AS db_schema_name FROM pg_catalog.pg_database AS d \
     LEFT JOIN pg_catalog.pg_namespace AS n ON d.datname = current_database() AND ",
    own!(),
    " WHERE d.datname = current_database() \
     OR d.datallowconn AND NOT d.datistemplate AND has_database_privilege(d.oid, 'CONNECT') ORDER BY 1, 2"
);

const COLUMNS: &str = concat!(
    table!(),
    "a.attname::text AS column_name, a.attnum::text AS ordinal_position, format_type(a.atttypid, a.atttypmod) AS type_name, \
     CASE WHEN a.attnotnull OR t.typtype = 'd' AND t.typnotnull THEN 'NO' ELSE 'YES' END AS is_nullable, \
     CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, d.adrelid) END AS column_default, \
     col_description(a.attrelid, a.attnum) AS remarks, \
     CASE WHEN a.attidentity <> '' OR pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%' THEN 'YES' ELSE 'NO' END \
     AS is_autoincrement, CASE WHEN a.attgenerated <> '' THEN 'YES' ELSE 'NO' END AS is_generated \
     FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace \
     JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid \
     LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
     WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.attnum > 0 AND NOT a.attisdropped AND ",
    own!(),
    " ORDER BY 2, 3, a.attnum"
);

const CONSTRAINTS: &str = concat!(
    table!(),
    "o.oid::text AS constraint_key, o.conname::text AS constraint_name, CASE o.contype WHEN 'p' THEN 'PRIMARY KEY' \
     WHEN 'u' THEN 'UNIQUE' WHEN 'f' THEN 'FOREIGN KEY' ELSE 'CHECK' END AS constraint_type, a.attname::text AS column_name, \
     CASE WHEN o.contype = 'f' THEN current_database()::text END AS fk_catalog, fn.nspname::text AS fk_db_schema, \
     fc.relname::text AS fk_table, fa.attname::text AS fk_column_name FROM pg_catalog.pg_constraint AS o \
     JOIN pg_catalog.pg_class AS c ON c.oid = o.conrelid JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace \
     LEFT JOIN LATERAL unnest(o.conkey, o.confkey) WITH ORDINALITY AS k (number, other, place) ON true \
     LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = o.conrelid AND a.attnum = k.number \
     LEFT JOIN pg_catalog.pg_class AS fc ON fc.oid = o.confrelid \
     LEFT JOIN pg_catalog.pg_namespace AS fn ON fn.oid = fc.relnamespace \
     LEFT JOIN pg_catalog.pg_attribute AS fa ON fa.attrelid = o.confrelid AND fa.attnum = k.other \
     WHERE o.contype IN ('p', 'u', 'f', 'c') AND ",
    own!(),
    " ORDER BY 2, 3, o.conname, k.place"
);

/// A table that was never looked at has -1 rows, or none in no pages. Those of a table with children are its own rows' alone,
/// as its number of rows is; a partitioned one has none but its partitions'.
const STATISTICS: &str = concat!(
    table!(),
    "NULL::text AS column_name, '6' AS statistic_key, c.reltuples::bigint::text AS statistic_value \
     FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace \
     WHERE c.relkind IN ('r', 'p', 'm') AND (c.reltuples > 0 OR c.reltuples = 0 AND c.relpages > 0) AND ",
    own!(),
    " UNION ALL ",
    table!(),
    "s.attname::text, k.key, k.value::text FROM pg_catalog.pg_stats AS s \
     JOIN pg_catalog.pg_namespace AS n ON n.nspname = s.schemaname \
     JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid AND c.relname = s.tablename \
     CROSS JOIN LATERAL (VALUES ('0', s.avg_width::float8), \
     ('1', CASE WHEN s.n_distinct < 0 THEN round(-s.n_distinct * c.reltuples::float8) ELSE s.n_distinct END), \
     ('5', round(s.null_frac * c.reltuples::float8))) AS k (key, value) \
     WHERE c.relkind IN ('r', 'p', 'm') AND s.inherited = (c.relkind = 'p') AND c.reltuples >= 0 AND ",
    own!()
);

/// The queries of a server's catalogue.
pub static CATALOGUE: CatalogueQueries = CatalogueQueries {
    current: Cow::Borrowed(
        "SELECT current_database()::text AS catalog_name, current_schema()::text AS db_schema_name, \
         'PostgreSQL'::text AS vendor_name, current_setting('server_version') AS vendor_version",
    ),
    schemas: Cow::Borrowed(SCHEMAS),
    tables: Cow::Borrowed(TABLES),
    found: Cow::Borrowed(
        "SELECT 'YES'::text AS found FROM pg_catalog.pg_class AS c WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') \
         AND c.oid = to_regclass(coalesce(quote_ident($1::text) || '.', '') || quote_ident($2::text))",
    ),
    columns: Cow::Borrowed(COLUMNS),
    constraints: Cow::Borrowed(CONSTRAINTS),
    statistics: Cow::Borrowed(STATISTICS),
    table_types: Cow::Borrowed("table, view, materialized view, foreign table"),
    // One that may not be used is left out of the search path without a word, as one that is not there.
    found_schema: Cow::Borrowed(
        "SELECT 'YES'::text AS found FROM pg_catalog.pg_namespace AS n \
         WHERE n.nspname = $1::text AND has_schema_privilege(n.oid, 'USAGE')",
    ),
    use_schema: Cow::Borrowed("SET search_path TO {}"),
    temporary: Cow::Borrowed("pg_temp"),
};
