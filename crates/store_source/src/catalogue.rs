//! The contents of a store, as the rows of catalogue queries; and the names of its types.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, IntervalUnit, TimeUnit};
use longshore_core::{
    COLUMN, CONSTRAINT, CatalogueQueries, EXTENSION, PLACE, Params, Query, Result, Value, catalogue_batch,
};
use longshore_store::Transaction;

/// The one schema.
pub(crate) const SCHEMA: &str = "main";

/// How the queries begin that only this module answers: no table's name does.
const OURS: &str = "TABLE longshore_";

const STATISTIC_OF_ROWS: &str = "6";

/// The queries, each of which [`answer`] knows.
pub(crate) fn queries() -> CatalogueQueries {
    CatalogueQueries {
        current: Cow::Borrowed("TABLE longshore_current"),
        schemas: Cow::Borrowed("TABLE longshore_schemas"),
        tables: Cow::Borrowed("TABLE longshore_tables"),
        found: Cow::Borrowed("TABLE longshore_found"),
        columns: Cow::Borrowed("TABLE longshore_columns"),
        constraints: Cow::Borrowed("TABLE longshore_constraints"),
        statistics: Cow::Borrowed("TABLE longshore_statistics"),
        table_types: Cow::Borrowed("table"),
        found_schema: Cow::Borrowed(""),
        use_schema: Cow::Borrowed(""),
        temporary: Cow::Borrowed(""),
    }
}

/// Whether it is a query of the catalogue.
pub(crate) fn is_ours(query: &Query) -> bool {
    query.text.starts_with(OURS)
}

type Row = Vec<Option<String>>;

/// The rows of a query of the catalogue; `None` for another.
pub(crate) fn answer(query: &Query, transaction: &mut Transaction) -> Result<Option<RecordBatch>> {
    let Some(name) = query.text.strip_prefix(OURS) else { return Ok(None) };
    let of = |names: &[&'static str]| [&PLACE[..], names].concat();
    let (names, rows) = match name {
        "current" => (
            vec!["catalog_name", "db_schema_name", "vendor_name", "vendor_version"],
            vec![row([None, Some(SCHEMA), Some("Longshore"), Some(env!("CARGO_PKG_VERSION"))])],
        ),
        "schemas" => (vec!["catalog_name", "db_schema_name"], vec![row([None, Some(SCHEMA)])]),
        "tables" => {
            (of(&["table_type"]), of_tables(transaction, |table| vec![place(&table.name, [Some("table")])])?)
        }
        "found" => (vec!["found"], find(query, transaction)?),
        "columns" => (of(&COLUMN), of_tables(transaction, columns)?),
        "constraints" => (of(&CONSTRAINT), of_tables(transaction, constraints)?),
        "statistics" => (
            of(&["column_name", "statistic_key", "statistic_value"]),
            of_tables(transaction, |table| {
                vec![place(&table.name, [None, Some(STATISTIC_OF_ROWS), Some(&table.rows().to_string())])]
            })?,
        ),
        _ => return Ok(None),
    };
    catalogue_batch(&names, &rows).map(Some)
}

fn of_tables(
    transaction: &mut Transaction,
    rows: impl Fn(&longshore_store::Table) -> Vec<Row>,
) -> Result<Vec<Row>> {
    let mut found = Vec::new();
    for name in transaction.tables()? {
        if let Some(table) = transaction.table(&name)? {
            found.extend(rows(&table));
        }
    }
    Ok(found)
}

fn find(query: &Query, transaction: &mut Transaction) -> Result<Vec<Row>> {
    let Params::Positional(values) = &query.params else { return Ok(Vec::new()) };
    let [schema, Value::Text(name)] = values.as_slice() else { return Ok(Vec::new()) };
    let is_here = match schema {
        Value::Text(schema) => schema.eq_ignore_ascii_case(SCHEMA),
        _ => true,
    };
    Ok(if is_here && transaction.table(name)?.is_some() { vec![row([Some("YES")])] } else { Vec::new() })
}

fn columns(table: &longshore_store::Table) -> Vec<Row> {
    let fields = table.schema();
    let column = |(field, number): (&Arc<Field>, i32)| {
        let nullable = if field.is_nullable() { "YES" } else { "NO" };
        let (number, kind) = (number.to_string(), type_name(field));
        place(
            &table.name,
            [
                Some(field.name()),
                Some(&number),
                Some(&kind),
                Some(nullable),
                None,
                None,
                Some("NO"),
                Some("NO"),
            ],
        )
    };
    fields.fields().iter().zip(1..).map(column).collect()
}

fn constraints(table: &longshore_store::Table) -> Vec<Row> {
    let column = |name: &String| {
        place(&table.name, [Some("p"), None, Some("PRIMARY KEY"), Some(name), None, None, None, None])
    };
    table.key.iter().map(column).collect()
}

fn place<const N: usize>(table: &str, more: [Option<&str>; N]) -> Row {
    [row([None, Some(SCHEMA), Some(table)]), row(more)].concat()
}

fn row<const N: usize>(texts: [Option<&str>; N]) -> Row {
    texts.into_iter().map(|text| text.map(str::to_owned)).collect()
}

/// The engine's name of a column's type, so that it is called the same in every language.
pub(crate) fn type_name(field: &Field) -> String {
    match field.metadata().get(EXTENSION).map(String::as_str) {
        Some("arrow.uuid") => return "UUID".to_owned(),
        Some("arrow.json") => return "JSON".to_owned(),
        _ => {}
    }
    let plain = match field.data_type() {
        DataType::Null => "NULL",
        DataType::Boolean => "BOOLEAN",
        DataType::Int8 => "TINYINT",
        DataType::Int16 => "SMALLINT",
        DataType::Int32 => "INTEGER",
        DataType::Int64 => "BIGINT",
        DataType::UInt8 => "UTINYINT",
        DataType::UInt16 => "USMALLINT",
        DataType::UInt32 => "UINTEGER",
        DataType::UInt64 => "UBIGINT",
        DataType::Float32 => "FLOAT",
        DataType::Float64 => "DOUBLE",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            "BLOB"
        }
        DataType::Date32 | DataType::Date64 => "DATE",
        DataType::Time32(_) | DataType::Time64(TimeUnit::Microsecond) => "TIME",
        DataType::Time64(_) => "TIME_NS",
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE",
        DataType::Timestamp(TimeUnit::Second, None) => "TIMESTAMP_S",
        DataType::Timestamp(TimeUnit::Millisecond, None) => "TIMESTAMP_MS",
        DataType::Timestamp(TimeUnit::Microsecond, None) => "TIMESTAMP",
        DataType::Timestamp(TimeUnit::Nanosecond, None) => "TIMESTAMP_NS",
        DataType::Duration(_) | DataType::Interval(IntervalUnit::MonthDayNano | _) => "INTERVAL",
        _ => return nested_name(field.data_type()),
    };
    plain.to_owned()
}

fn nested_name(kind: &DataType) -> String {
    match kind {
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
        | DataType::Decimal256(digits, scale) => format!("DECIMAL({digits},{scale})"),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => {
            format!("{}[]", type_name(item))
        }
        DataType::FixedSizeList(item, length) => format!("{}[{length}]", type_name(item)),
        DataType::Struct(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|field| format!("{:?} {}", field.name(), type_name(field))).collect();
            format!("STRUCT({})", fields.join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => {
                format!("MAP({}, {})", type_name(&fields[0]), type_name(&fields[1]))
            }
            other => other.to_string(),
        },
        DataType::Dictionary(_, values) => type_name(&Field::new("", values.as_ref().clone(), true)),
        // The engine has none: Arrow's own name.
        other => other.to_string(),
    }
}
