//! The catalogue as Flight SQL's commands ask for it.

use std::sync::{Arc, LazyLock};

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Int32Array, RecordBatch, StringArray, StructArray, UInt8Array};
use arrow_flight::sql::metadata::{
    SqlInfoDataBuilder, XdbcTypeInfo, XdbcTypeInfoData, XdbcTypeInfoDataBuilder,
};
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetCrossReference, CommandGetDbSchemas, CommandGetExportedKeys,
    CommandGetImportedKeys, CommandGetPrimaryKeys, CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables,
    CommandGetXdbcTypeInfo, Nullable, Searchable, SqlInfo, SqlSupportedTransaction, XdbcDataType,
};
use arrow_flight::{IpcMessage, SchemaAsIpc};
use arrow_ipc::writer::IpcWriteOptions;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use longshore_core::{CatalogueQueries, Current, Deadline, Depth, Error, ObjectFilter, Result, TableName};
use longshore_flight_protocol::{CATALOGUE, INGESTION};

use crate::engine::Where;

/// A question to the catalogue.
pub(crate) enum Question {
    Catalogs(CommandGetCatalogs),
    Schemas(CommandGetDbSchemas),
    Tables(CommandGetTables),
    TableTypes(CommandGetTableTypes),
    PrimaryKeys(CommandGetPrimaryKeys),
    ImportedKeys(CommandGetImportedKeys),
    ExportedKeys(CommandGetExportedKeys),
    CrossReference(CommandGetCrossReference),
    Types(CommandGetXdbcTypeInfo),
    Info(CommandGetSqlInfo),
}

/// `UpdateDeleteRules` has no "unknown": what the catalogue does not tell is the standard's default, NO ACTION.
const NO_ACTION: u8 = 3;

fn text(name: &str, nullable: bool) -> Field {
    Field::new(name, DataType::Utf8, nullable)
}

fn schema(fields: Vec<Field>) -> SchemaRef {
    Arc::new(Schema::new(fields))
}

static CATALOGS: LazyLock<SchemaRef> = LazyLock::new(|| schema(vec![text("catalog_name", false)]));
static SCHEMAS: LazyLock<SchemaRef> =
    LazyLock::new(|| schema(vec![text("catalog_name", true), text("db_schema_name", false)]));
static TABLES: LazyLock<SchemaRef> = LazyLock::new(|| schema(table_fields()));
static TABLES_WITH_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let mut fields = table_fields();
    fields.push(Field::new("table_schema", DataType::Binary, false));
    schema(fields)
});
static TABLE_TYPES: LazyLock<SchemaRef> = LazyLock::new(|| schema(vec![text("table_type", false)]));
static PRIMARY_KEYS: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        text("catalog_name", true),
        text("db_schema_name", true),
        text("table_name", false),
        text("column_name", false),
        Field::new("key_sequence", DataType::Int32, false),
        text("key_name", true),
    ])
});
static FOREIGN_KEYS: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        text("pk_catalog_name", true),
        text("pk_db_schema_name", true),
        text("pk_table_name", false),
        text("pk_column_name", false),
        text("fk_catalog_name", true),
        text("fk_db_schema_name", true),
        text("fk_table_name", false),
        text("fk_column_name", false),
        Field::new("key_sequence", DataType::Int32, false),
        text("fk_key_name", true),
        text("pk_key_name", true),
        Field::new("update_rule", DataType::UInt8, false),
        Field::new("delete_rule", DataType::UInt8, false),
    ])
});

fn table_fields() -> Vec<Field> {
    vec![
        text("catalog_name", true),
        text("db_schema_name", true),
        text("table_name", false),
        text("table_type", false),
    ]
}

impl Question {
    /// The columns of the answer.
    pub(crate) fn schema(&self) -> SchemaRef {
        match self {
            Self::Catalogs(_) => CATALOGS.clone(),
            Self::Schemas(_) => SCHEMAS.clone(),
            Self::Tables(asked) if asked.include_schema => TABLES_WITH_SCHEMA.clone(),
            Self::Tables(_) => TABLES.clone(),
            Self::TableTypes(_) => TABLE_TYPES.clone(),
            Self::PrimaryKeys(_) => PRIMARY_KEYS.clone(),
            Self::ImportedKeys(_) | Self::ExportedKeys(_) | Self::CrossReference(_) => FOREIGN_KEYS.clone(),
            Self::Types(_) => XdbcTypeInfoDataBuilder::new().schema(),
            Self::Info(_) => Arc::new(SqlInfoDataBuilder::schema().clone()),
        }
    }

    /// Asks the catalogue.
    pub(crate) fn answer(&self, of: &Where, reads_only: bool, deadline: &Deadline) -> Result<RecordBatch> {
        let catalogue = Catalogue { of, deadline };
        match self {
            Self::Catalogs(_) => catalogue.catalogs(),
            Self::Schemas(asked) => catalogue.schemas(asked),
            Self::Tables(asked) => catalogue.tables(asked),
            Self::TableTypes(_) => {
                let mut types = of.table_types(deadline)?;
                types.sort_unstable();
                batch(&TABLE_TYPES, vec![Arc::new(StringArray::from(types))])
            }
            Self::PrimaryKeys(asked) => {
                catalogue.primary_keys(asked.catalog.as_deref(), asked.db_schema.as_deref(), &asked.table)
            }
            Self::ImportedKeys(asked) => catalogue.foreign_keys(|key| {
                key.child.is(asked.catalog.as_deref(), asked.db_schema.as_deref(), &asked.table)
            }),
            Self::ExportedKeys(asked) => catalogue.foreign_keys(|key| {
                key.parent.is(asked.catalog.as_deref(), asked.db_schema.as_deref(), &asked.table)
            }),
            Self::CrossReference(asked) => catalogue.foreign_keys(|key| {
                key.parent.is(asked.pk_catalog.as_deref(), asked.pk_db_schema.as_deref(), &asked.pk_table)
                    && key.child.is(
                        asked.fk_catalog.as_deref(),
                        asked.fk_db_schema.as_deref(),
                        &asked.fk_table,
                    )
            }),
            Self::Types(asked) => types()?.record_batch(asked.data_type).map_err(|error| failure(&error)),
            Self::Info(asked) => {
                let mut info = information(&of.current(deadline)?, reads_only);
                if asked.info.contains(&INGESTION) {
                    info.append(INGESTION, !reads_only);
                }
                if asked.info.contains(&CATALOGUE) {
                    info.append(CATALOGUE, entries(&of.catalogue_queries(deadline)?));
                }
                let info = info.build().map_err(|error| failure(&error))?;
                info.record_batch(asked.info.iter().copied()).map_err(|error| failure(&error))
            }
        }
    }
}

/// A table's name with all of its parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct FullName {
    catalog: Option<String>,
    schema: Option<String>,
    table: String,
}

impl FullName {
    fn is(&self, catalog: Option<&str>, schema: Option<&str>, table: &str) -> bool {
        is_wanted(catalog, self.catalog.as_deref())
            && is_wanted(schema, self.schema.as_deref())
            && self.table == table
    }
}

/// Whether a name is the one that is asked for; an empty one asks for what has none.
fn is_wanted(wanted: Option<&str>, name: Option<&str>) -> bool {
    wanted.is_none_or(|wanted| wanted == name.unwrap_or_default())
}

/// A table and its constraints.
struct Table {
    name: FullName,
    kind: String,
    constraints: Vec<Constraint>,
}

struct Constraint {
    name: Option<String>,
    kind: String,
    columns: Vec<String>,
    /// The columns that a foreign key refers to.
    refers: Vec<(FullName, String)>,
}

/// A table, a column of its key, and the key's name.
type KeyColumn = (FullName, String, Option<String>);

/// A foreign key, and what it refers to.
struct ForeignKey {
    parent: FullName,
    parent_key: Option<String>,
    child: FullName,
    name: Option<String>,
    /// The columns in the parent and in the child.
    columns: Vec<(String, String)>,
}

struct Catalogue<'a> {
    of: &'a Where,
    deadline: &'a Deadline,
}

impl Catalogue<'_> {
    fn objects(&self, filter: &ObjectFilter) -> Result<RecordBatch> {
        self.of.objects(filter, self.deadline)
    }

    fn catalogs(&self) -> Result<RecordBatch> {
        let filter = ObjectFilter { depth: Depth::Catalogs, ..ObjectFilter::default() };
        let objects = self.objects(&filter)?;
        let mut names: Vec<String> = texts(objects.column(0)).into_iter().flatten().collect();
        names.sort_unstable();
        batch(&CATALOGS, vec![Arc::new(StringArray::from(names))])
    }

    fn schemas(&self, asked: &CommandGetDbSchemas) -> Result<RecordBatch> {
        let filter = ObjectFilter {
            depth: Depth::Schemas,
            schema: asked.db_schema_filter_pattern.clone(),
            ..ObjectFilter::default()
        };
        let objects = self.objects(&filter)?;
        let mut rows = Vec::new();
        for (at, catalog) in texts(objects.column(0)).into_iter().enumerate() {
            if !is_wanted(asked.catalog.as_deref(), catalog.as_deref()) {
                continue;
            }
            let Some(schemas) = list(objects.column(1), at) else { continue };
            let names = texts(schemas.column(0)).into_iter().flatten();
            rows.extend(names.map(|name| (catalog.clone(), name)));
        }
        rows.sort_unstable();
        let (catalogs, names): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        batch(&SCHEMAS, vec![Arc::new(StringArray::from(catalogs)), Arc::new(StringArray::from(names))])
    }

    fn tables(&self, asked: &CommandGetTables) -> Result<RecordBatch> {
        let filter = ObjectFilter {
            depth: Depth::Tables,
            schema: asked.db_schema_filter_pattern.clone(),
            table: asked.table_name_filter_pattern.clone(),
            table_types: (!asked.table_types.is_empty()).then(|| asked.table_types.clone()),
            ..ObjectFilter::default()
        };
        let mut tables = tables_of(&self.objects(&filter)?);
        tables.retain(|table| is_wanted(asked.catalog.as_deref(), table.name.catalog.as_deref()));
        tables.sort_by(|one, other| one.name.cmp(&other.name));
        let column = |of: fn(&Table) -> Option<&str>| -> ArrayRef {
            Arc::new(tables.iter().map(of).collect::<StringArray>())
        };
        let mut columns = vec![
            column(|table| table.name.catalog.as_deref()),
            column(|table| table.name.schema.as_deref()),
            column(|table| Some(&table.name.table)),
            column(|table| Some(&table.kind)),
        ];
        if !asked.include_schema {
            return batch(&TABLES, columns);
        }
        let mut schemas = BinaryBuilder::new();
        for table in &tables {
            schemas.append_value(self.table_schema(&table.name)?);
        }
        columns.push(Arc::new(schemas.finish()));
        batch(&TABLES_WITH_SCHEMA, columns)
    }

    /// The columns of a table as a message; none of a view that cannot be read any more.
    fn table_schema(&self, name: &FullName) -> Result<Vec<u8>> {
        let table = TableName { schema: name.schema.clone(), table: name.table.clone() };
        let schema = self.of.table_schema(&table, self.deadline);
        // A time-out is not a fault of the view's.
        self.deadline.check()?;
        let schema = schema.unwrap_or_else(|_| Arc::new(Schema::empty()));
        let message: Result<IpcMessage, ArrowError> =
            SchemaAsIpc::new(&schema, &IpcWriteOptions::default()).try_into();
        message.map(|message| message.0.to_vec()).map_err(|error| failure(&error))
    }

    fn all(&self) -> Result<Vec<Table>> {
        Ok(tables_of(&self.objects(&ObjectFilter::default())?))
    }

    fn primary_keys(&self, catalog: Option<&str>, schema: Option<&str>, name: &str) -> Result<RecordBatch> {
        let (mut rows, mut numbers) = (Vec::new(), Vec::new());
        for table in self.all()?.into_iter().filter(|table| table.name.is(catalog, schema, name)) {
            for key in table.constraints.iter().filter(|key| key.kind == "PRIMARY KEY") {
                for (number, column) in (1..).zip(&key.columns) {
                    rows.push((table.name.clone(), column.clone(), key.name.clone()));
                    numbers.push(number);
                }
            }
        }
        let column = |of: fn(&KeyColumn) -> Option<&str>| -> ArrayRef {
            Arc::new(rows.iter().map(of).collect::<StringArray>())
        };
        batch(
            &PRIMARY_KEYS,
            vec![
                column(|(table, ..)| table.catalog.as_deref()),
                column(|(table, ..)| table.schema.as_deref()),
                column(|(table, ..)| Some(&table.table)),
                column(|(_, column, _)| Some(column)),
                Arc::new(Int32Array::from(numbers)),
                column(|(.., name)| name.as_deref()),
            ],
        )
    }

    fn foreign_keys(&self, is_wanted: impl Fn(&ForeignKey) -> bool) -> Result<RecordBatch> {
        let mut keys = keys_of(&self.all()?);
        keys.retain(is_wanted);
        keys.sort_by(|one, other| {
            (&one.parent, &one.child, &one.name).cmp(&(&other.parent, &other.child, &other.name))
        });
        let rows: Vec<(&ForeignKey, i32, &(String, String))> = keys
            .iter()
            .flat_map(|key| (1..).zip(&key.columns).map(move |(number, columns)| (key, number, columns)))
            .collect();
        let column = |of: fn(&ForeignKey) -> Option<&str>| -> ArrayRef {
            Arc::new(rows.iter().map(|(key, ..)| of(key)).collect::<StringArray>())
        };
        let rules = || -> ArrayRef { Arc::new(UInt8Array::from(vec![NO_ACTION; rows.len()])) };
        batch(
            &FOREIGN_KEYS,
            vec![
                column(|key| key.parent.catalog.as_deref()),
                column(|key| key.parent.schema.as_deref()),
                column(|key| Some(&key.parent.table)),
                Arc::new(rows.iter().map(|(.., (parent, _))| Some(parent)).collect::<StringArray>()),
                column(|key| key.child.catalog.as_deref()),
                column(|key| key.child.schema.as_deref()),
                column(|key| Some(&key.child.table)),
                Arc::new(rows.iter().map(|(.., (_, child))| Some(child)).collect::<StringArray>()),
                Arc::new(rows.iter().map(|(_, number, _)| *number).collect::<Int32Array>()),
                column(|key| key.name.as_deref()),
                column(|key| key.parent_key.as_deref()),
                rules(),
                rules(),
            ],
        )
    }
}

fn keys_of(tables: &[Table]) -> Vec<ForeignKey> {
    let mut keys = Vec::new();
    for table in tables {
        for key in table.constraints.iter().filter(|key| key.kind == "FOREIGN KEY") {
            let Some((parent, _)) = key.refers.first() else { continue };
            let referred: Vec<String> = key.refers.iter().map(|(_, column)| column.clone()).collect();
            let unique =
                tables.iter().filter(|table| table.name == *parent).flat_map(|table| &table.constraints);
            let parent_key =
                unique.filter(|unique| unique.kind != "FOREIGN KEY" && unique.columns == referred);
            keys.push(ForeignKey {
                parent: parent.clone(),
                parent_key: parent_key.into_iter().find_map(|unique| unique.name.clone()),
                child: table.name.clone(),
                name: key.name.clone(),
                columns: referred.into_iter().zip(key.columns.iter().cloned()).collect(),
            });
        }
    }
    keys
}

/// The tables of nested objects.
fn tables_of(objects: &RecordBatch) -> Vec<Table> {
    let mut found = Vec::new();
    for (at, catalog) in texts(objects.column(0)).into_iter().enumerate() {
        let Some(schemas) = list(objects.column(1), at) else { continue };
        for (at, schema) in texts(schemas.column(0)).into_iter().enumerate() {
            let Some(tables) = list(schemas.column(1), at) else { continue };
            let (names, kinds) = (texts(tables.column(0)), texts(tables.column(1)));
            for (at, (name, kind)) in names.into_iter().zip(kinds).enumerate() {
                let table = name.unwrap_or_default();
                found.push(Table {
                    name: FullName { catalog: catalog.clone(), schema: schema.clone(), table },
                    kind: kind.unwrap_or_default(),
                    constraints: list(tables.column(3), at)
                        .map(|rows| constraints_of(&rows))
                        .unwrap_or_default(),
                });
            }
        }
    }
    found
}

fn constraints_of(rows: &StructArray) -> Vec<Constraint> {
    let (names, kinds) = (texts(rows.column(0)), texts(rows.column(1)));
    let columns = rows.column(2).as_list::<i32>();
    let one = |(at, (name, kind)): (usize, (Option<String>, Option<String>))| {
        let refers = list(rows.column(3), at).map(|usage| {
            let parts: Vec<Vec<Option<String>>> = usage.columns().iter().map(texts).collect();
            let part = |part: usize, row: usize| parts[part][row].clone();
            let rows = 0..usage.len();
            rows.map(|row| {
                let table = part(2, row).unwrap_or_default();
                let name = FullName { catalog: part(0, row), schema: part(1, row), table };
                (name, part(3, row).unwrap_or_default())
            })
            .collect()
        });
        Constraint {
            name,
            kind: kind.unwrap_or_default(),
            columns: texts(&columns.value(at)).into_iter().flatten().collect(),
            refers: refers.unwrap_or_default(),
        }
    };
    names.into_iter().zip(kinds).enumerate().map(one).collect()
}

/// The structs in a row of a list, if it has any.
fn list(column: &ArrayRef, at: usize) -> Option<StructArray> {
    let lists = column.as_list::<i32>();
    lists.is_valid(at).then(|| lists.value(at).as_struct().clone())
}

fn texts(column: &ArrayRef) -> Vec<Option<String>> {
    column.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
}

fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>) -> Result<RecordBatch> {
    RecordBatch::try_new(schema.clone(), columns).map_err(|error| failure(&error))
}

fn failure(error: &impl std::fmt::Display) -> Error {
    Error::internal(error.to_string())
}

fn entries(queries: &CatalogueQueries) -> Vec<String> {
    let mut queries = queries.clone();
    queries.entries().into_iter().flat_map(|(name, text)| [name.to_owned(), text.to_string()]).collect()
}

/// The abilities of the server.
fn information(current: &Current, reads_only: bool) -> SqlInfoDataBuilder {
    let quote =
        if matches!(current.vendor.as_str(), "MySQL" | "MariaDB" | "ClickHouse") { "`" } else { "\"" };
    let mut info = SqlInfoDataBuilder::new();
    info.append(SqlInfo::FlightSqlServerName, current.vendor.as_str());
    info.append(SqlInfo::FlightSqlServerVersion, current.version.as_str());
    info.append(SqlInfo::FlightSqlServerArrowVersion, "1.3");
    info.append(SqlInfo::FlightSqlServerReadOnly, reads_only);
    info.append(SqlInfo::FlightSqlServerSql, true);
    info.append(SqlInfo::FlightSqlServerSubstrait, false);
    info.append(SqlInfo::FlightSqlServerTransaction, SqlSupportedTransaction::Transaction as i32);
    info.append(SqlInfo::FlightSqlServerCancel, true);
    info.append(SqlInfo::FlightSqlServerBulkIngestion, !reads_only);
    info.append(SqlInfo::FlightSqlServerIngestTransactionsSupported, !reads_only);
    info.append(SqlInfo::FlightSqlServerStatementTimeout, 0_i32);
    info.append(SqlInfo::FlightSqlServerTransactionTimeout, 0_i32);
    info.append(SqlInfo::SqlDdlTable, !reads_only);
    info.append(SqlInfo::SqlIdentifierQuoteChar, quote);
    info.append(SqlInfo::SqlTransactionsSupported, true);
    info.append(SqlInfo::SqlSavepointsSupported, true);
    info.append(SqlInfo::SqlCatalogAtStart, true);
    info
}

/// The types of SQL that every engine has, by the names that all of them take.
fn types() -> Result<XdbcTypeInfoData> {
    let types = [
        ("boolean", (XdbcDataType::XdbcBit, Some(1), false)),
        ("smallint", (XdbcDataType::XdbcSmallint, Some(16), false)),
        ("integer", (XdbcDataType::XdbcInteger, Some(32), false)),
        ("bigint", (XdbcDataType::XdbcBigint, Some(64), false)),
        ("real", (XdbcDataType::XdbcReal, Some(24), false)),
        ("double precision", (XdbcDataType::XdbcDouble, Some(53), false)),
        ("decimal", (XdbcDataType::XdbcDecimal, Some(38), false)),
        ("varchar", (XdbcDataType::XdbcVarchar, None, true)),
        ("date", (XdbcDataType::XdbcDate, Some(10), true)),
        ("time", (XdbcDataType::XdbcTime, Some(15), true)),
        ("timestamp", (XdbcDataType::XdbcTimestamp, Some(26), true)),
    ];
    let mut builder = XdbcTypeInfoDataBuilder::new();
    for (name, (kind, size, is_quoted)) in types {
        let quote = is_quoted.then(|| "'".to_owned());
        builder.append(XdbcTypeInfo {
            type_name: name.into(),
            data_type: kind,
            column_size: size,
            literal_prefix: quote.clone(),
            literal_suffix: quote,
            create_params: None,
            nullable: Nullable::NullabilityNullable,
            case_sensitive: name == "varchar",
            searchable: Searchable::Full,
            unsigned_attribute: (!is_quoted).then_some(false),
            fixed_prec_scale: false,
            auto_increment: Some(false),
            local_type_name: Some(name.into()),
            minimum_scale: None,
            maximum_scale: None,
            sql_data_type: kind,
            datetime_subcode: None,
            num_prec_radix: size.filter(|_| !is_quoted).map(|_| if name == "decimal" { 10 } else { 2 }),
            interval_precision: None,
        });
    }
    builder.build().map_err(|error| failure(&error))
}
