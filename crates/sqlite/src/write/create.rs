//! The types of a new table's columns, and its statement.

use std::borrow::Cow;

use arrow_schema::{DataType, Field};
use longshore_cells::is_nested;
use longshore_core::{EXTENSION, Error, Kind, Load, Nested, Place, Quotes, Result, check_type, type_name};

use crate::dialect::quoted_name;

const QUOTES: &[Quotes] = &[('\'', '\''), ('"', '"'), ('`', '`'), ('[', ']')];

/// The type that CREATE TABLE declares for a column of `field`. What is declared decides what the column is read as, and
/// what SQLite does to its values: texts that must stay as they are have a type with TEXT in its name.
pub(super) fn native(field: &Field, nested: Nested) -> Result<Cow<'static, str>> {
    let extension = field.metadata().get(EXTENSION).map(String::as_str);
    if nested == Nested::Json && is_nested(field.data_type()) {
        return Ok("JSON_TEXT".into());
    }
    of(field.data_type(), extension).ok_or_else(|| {
        let place = Place { column: Some(field.name().clone()), row: None, native_type: None };
        Error::new(Kind::NotSupported, format!("SQLite has no type for {}", type_name(field.data_type())))
            .with_hint("options={\"nested\": \"json\"} writes lists, structs and maps as JSON")
            .at(place)
    })
}

fn of(data_type: &DataType, extension: Option<&str>) -> Option<Cow<'static, str>> {
    Some(match data_type {
        // Whatever comes later is kept as it is.
        DataType::Null => "".into(),
        DataType::Boolean => "BOOLEAN".into(),
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => "INTEGER".into(),
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => "UNSIGNED INTEGER".into(),
        DataType::Float16 | DataType::Float32 | DataType::Float64 => "REAL".into(),
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
        | DataType::Decimal256(digits, scale) => format!("DECIMAL_TEXT({digits},{scale})").into(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View if extension == Some("arrow.json") => {
            "JSON_TEXT".into()
        }
        // Spans are texts as SQLite's own functions take them, or in the form of ISO 8601.
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Duration(_)
        | DataType::Interval(_) => "TEXT".into(),
        DataType::FixedSizeBinary(_) if extension == Some("arrow.uuid") => "TEXT".into(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            "BLOB".into()
        }
        DataType::Date32 => "DATE".into(),
        DataType::Date64 | DataType::Timestamp(_, None) => "TIMESTAMP".into(),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE".into(),
        DataType::Time32(_) | DataType::Time64(_) => "TIME".into(),
        DataType::Dictionary(_, values) => return of(values, extension),
        DataType::RunEndEncoded(_, values) => return of(values.data_type(), extension),
        _ => return None,
    })
}

/// The statement that makes the table of `load`, whose name is `quoted`.
pub(super) fn statement(load: &Load, quoted: &str) -> Result<String> {
    let mut parts = Vec::with_capacity(load.schema.fields().len() + 1);
    for field in load.schema.fields() {
        let own = load.types.iter().find(|(name, _)| name == field.name());
        let native = match own {
            Some((name, native)) => {
                check_type(name, native, QUOTES)?;
                Cow::Owned(native.clone())
            }
            None => native(field, load.nested)?,
        };
        // A key of SQLite's takes NULLs unless it is told not to.
        let not_null = !field.is_nullable() || load.key.contains(field.name());
        let promise = if not_null { " NOT NULL" } else { "" };
        parts.push(format!("{} {native}{promise}", quoted_name(field.name())));
    }
    if !load.key.is_empty() {
        let names: Vec<String> = load.key.iter().map(|name| quoted_name(name)).collect();
        parts.push(format!("PRIMARY KEY ({})", names.join(", ")));
    }
    Ok(format!("CREATE TABLE {quoted} ({})", parts.join(", ")))
}
