//! The queries of SQL Server's catalogue.

use std::borrow::Cow;

use longshore_core::CatalogueQueries;

const SCHEMAS: &str = "SELECT DB_NAME() AS catalog_name, name AS db_schema_name FROM sys.schemas \
     WHERE schema_id < 16384 AND name NOT IN ('sys', 'INFORMATION_SCHEMA', 'guest') ORDER BY 2";

const TABLES: &str = "SELECT DB_NAME() AS catalog_name, s.name AS db_schema_name, o.name AS table_name, \
     CASE o.type WHEN 'V' THEN 'view' ELSE 'table' END AS table_type FROM sys.objects AS o \
     JOIN sys.schemas AS s ON s.schema_id = o.schema_id WHERE o.type IN ('U', 'V') AND o.is_ms_shipped = 0 ORDER BY 2, 3";

/// A table's own temporary ones are in another database.
const FOUND: &str =
    "SELECT 1 AS found WHERE OBJECT_ID(COALESCE(QUOTENAME(?) + N'.', N'') + QUOTENAME(?)) IS NOT NULL";

const COLUMNS: &str = "SELECT DB_NAME() AS catalog_name, s.name AS db_schema_name, o.name AS table_name, \
     c.name AS column_name, CAST(c.column_id AS nvarchar(10)) AS ordinal_position, t.name + CASE \
     WHEN t.name IN (N'nvarchar', N'nchar') AND c.max_length > 0 THEN N'(' + CAST(c.max_length / 2 AS nvarchar(10)) + N')' \
     WHEN t.name IN (N'varchar', N'char', N'varbinary', N'binary') AND c.max_length > 0 \
     THEN N'(' + CAST(c.max_length AS nvarchar(10)) + N')' \
     WHEN t.name IN (N'nvarchar', N'varchar', N'varbinary') THEN N'(max)' \
     WHEN t.name IN (N'decimal', N'numeric') \
     THEN N'(' + CAST(c.precision AS nvarchar(10)) + N',' + CAST(c.scale AS nvarchar(10)) + N')' \
     WHEN t.name IN (N'time', N'datetime2', N'datetimeoffset') THEN N'(' + CAST(c.scale AS nvarchar(10)) + N')' \
     ELSE N'' END AS type_name, IIF(c.is_nullable = 1, 'YES', 'NO') AS is_nullable, d.definition AS column_default, \
     CAST(p.value AS nvarchar(4000)) AS remarks, IIF(c.is_identity = 1, 'YES', 'NO') AS is_autoincrement, \
     IIF(c.is_computed = 1, 'YES', 'NO') AS is_generated FROM sys.columns AS c \
     JOIN sys.objects AS o ON o.object_id = c.object_id JOIN sys.schemas AS s ON s.schema_id = o.schema_id \
     JOIN sys.types AS t ON t.user_type_id = c.user_type_id \
     LEFT JOIN sys.default_constraints AS d ON d.object_id = c.default_object_id \
     LEFT JOIN sys.extended_properties AS p ON p.class = 1 AND p.major_id = c.object_id AND p.minor_id = c.column_id \
     AND p.name = N'MS_Description' WHERE o.type IN ('U', 'V') AND o.is_ms_shipped = 0 ORDER BY s.name, o.name, c.column_id";

const CONSTRAINTS: &str = "SELECT DB_NAME() AS catalog_name, s.name AS db_schema_name, o.name AS table_name, \
     k.name AS constraint_key, k.name AS constraint_name, k.kind AS constraint_type, c.name AS column_name, \
     IIF(f.object_id IS NULL, NULL, DB_NAME()) AS fk_catalog, SCHEMA_NAME(r.schema_id) AS fk_db_schema, \
     r.name AS fk_table, COL_NAME(f.referenced_object_id, f.referenced_column_id) AS fk_column_name FROM (\
     SELECT object_id, parent_object_id, name, schema_id, CASE type WHEN 'PK' THEN 'PRIMARY KEY' WHEN 'UQ' THEN 'UNIQUE' \
     WHEN 'F' THEN 'FOREIGN KEY' ELSE 'CHECK' END AS kind FROM sys.objects WHERE type IN ('PK', 'UQ', 'F', 'C')) AS k \
     JOIN sys.objects AS o ON o.object_id = k.parent_object_id JOIN sys.schemas AS s ON s.schema_id = o.schema_id \
     LEFT JOIN sys.foreign_key_columns AS f ON f.constraint_object_id = k.object_id \
     LEFT JOIN sys.objects AS r ON r.object_id = f.referenced_object_id \
     LEFT JOIN sys.key_constraints AS u ON u.object_id = k.object_id \
     LEFT JOIN sys.index_columns AS i ON i.object_id = u.parent_object_id AND i.index_id = u.unique_index_id \
     AND i.key_ordinal > 0 LEFT JOIN sys.columns AS c ON c.object_id = o.object_id \
     AND c.column_id = COALESCE(f.parent_column_id, i.column_id) WHERE o.is_ms_shipped = 0 \
     ORDER BY s.name, o.name, k.name, COALESCE(f.constraint_column_id, i.key_ordinal)";

const STATISTICS: &str = "SELECT DB_NAME() AS catalog_name, s.name AS db_schema_name, o.name AS table_name, \
     CAST(NULL AS nvarchar(128)) AS column_name, '6' AS statistic_key, CAST(SUM(p.rows) AS nvarchar(20)) AS statistic_value \
     FROM sys.partitions AS p JOIN sys.objects AS o ON o.object_id = p.object_id \
     JOIN sys.schemas AS s ON s.schema_id = o.schema_id WHERE p.index_id IN (0, 1) AND o.type = 'U' \
     AND o.is_ms_shipped = 0 GROUP BY s.name, o.name";

/// The queries of a server's catalogue.
pub(crate) static CATALOGUE: CatalogueQueries = CatalogueQueries {
    current: Cow::Borrowed(
        "SELECT DB_NAME() AS catalog_name, SCHEMA_NAME() AS db_schema_name, N'Microsoft SQL Server' AS vendor_name, \
         CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(128)) AS vendor_version",
    ),
    schemas: Cow::Borrowed(SCHEMAS),
    tables: Cow::Borrowed(TABLES),
    found: Cow::Borrowed(FOUND),
    columns: Cow::Borrowed(COLUMNS),
    constraints: Cow::Borrowed(CONSTRAINTS),
    statistics: Cow::Borrowed(STATISTICS),
    table_types: Cow::Borrowed("table, view"),
    found_schema: Cow::Borrowed(""),
    use_schema: Cow::Borrowed(""),
    temporary: Cow::Borrowed(""),
};
