//! THE TABLE of a new table's types: Arrow type -> MySQL's.

use arrow_schema::{DataType, Field};
use longshore_cells::is_nested;
use longshore_core::{EXTENSION, Error, Kind, Load, Nested, Place, Quotes, Result, check_type, type_name};
use longshore_source::sql::Token;

use super::server::Server;
use super::target::Name;
use crate::dialect::{quoted_name, tokens};

const QUOTES: &[Quotes] = &[('\'', '\''), ('"', '"'), ('`', '`')];

/// The longest name of a column or table, in characters.
const LONGEST_NAME: usize = 64;

/// Bytes of an index of InnoDB that are left to texts, where numbers take the rest.
const KEY_BYTES: usize = 2816;

/// The statement that makes `name` for the rows of `load`.
pub(super) fn statement(load: &Load, name: &Name, server: &Server) -> Result<String> {
    let fields = load.schema.fields();
    let is_key = |field: &Field| load.key.iter().any(|key| key == field.name());
    let long = fields.iter().filter(|field| is_key(field) && has_length(value_type(field))).count();
    let mut lines = Vec::with_capacity(fields.len() + 1);
    for field in fields {
        check_name(field.name())?;
        let chosen = load.types.iter().find(|(column, _)| column == field.name());
        let native = match chosen {
            Some((column, native)) => {
                check_type(column, native, QUOTES)?;
                native.clone()
            }
            None if is_key(field) => key_type(field, load.nested, long, server)?,
            None => native_type(field, load.nested, server)?,
        };
        let nullable = field.is_nullable() && !is_key(field);
        lines.push(format!("{} {}", quoted_name(field.name()), definition(&native, nullable)));
    }
    if !load.key.is_empty() {
        let columns: Vec<String> = load.key.iter().map(|name| quoted_name(name)).collect();
        lines.push(format!("PRIMARY KEY ({})", columns.join(", ")));
    }
    Ok(format!(
        "CREATE TABLE {} ({}) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {}",
        name.quoted(),
        lines.join(", "),
        server.collation()
    ))
}

/// A type with what says whether NULL may be: before the constraints that end it. What the caller says of NULL stays, unless
/// the data promises more.
fn definition(native: &str, nullable: bool) -> String {
    let tokens = tokens(native, true);
    let ends =
        |token: &&Token<'_>| ["check", "constraint", "references"].iter().any(|word| token.is_word(word));
    let (kind, constraints) =
        native.split_at(tokens.iter().find(ends).map_or(native.len(), |token| token.start));
    let kind = kind.trim_end();
    let is_said = tokens.iter().any(|token| token.is_word("null"));
    let words = if nullable && is_said { "" } else { null_words(kind, nullable) };
    format!("{kind}{words} {constraints}").trim_end().to_owned()
}

/// A TIMESTAMP without a word on it would change with every update of its row, where the server is old.
fn null_words(native: &str, nullable: bool) -> &'static str {
    let is_timestamp = native.get(..9).is_some_and(|start| start.eq_ignore_ascii_case("timestamp"));
    match (nullable, is_timestamp) {
        (true, true) => " NULL DEFAULT NULL",
        (true, false) => " NULL",
        (false, true) if native.ends_with("(6)") => " NOT NULL DEFAULT CURRENT_TIMESTAMP(6)",
        (false, _) => " NOT NULL",
    }
}

/// Refuses a name that no table has room for.
pub(super) fn check_name(name: &str) -> Result<()> {
    if name.chars().count() > LONGEST_NAME {
        return Err(Error::programming(format!("the name {name:?} has more than {LONGEST_NAME} characters"))
            .with_sqlstate("42000")
            .with_hint("rename it: MySQL has no longer names"));
    }
    if name.is_empty() || name.ends_with(' ') || name.contains('\0') {
        return Err(Error::programming(format!("{name:?} cannot be the name of a column or a table"))
            .with_sqlstate("42000")
            .with_hint("rename it: MySQL has no names that are empty or end with a space"));
    }
    Ok(())
}

/// The type of a column's values, behind dictionaries and runs.
fn value_type(field: &Field) -> &DataType {
    match field.data_type() {
        DataType::Dictionary(_, values) => values,
        DataType::RunEndEncoded(_, values) => values.data_type(),
        other => other,
    }
}

fn is_binary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// Whether a key has room for only some of its values.
fn has_length(data_type: &DataType) -> bool {
    data_type.is_string() || is_binary(data_type)
}

/// The type of a column of the primary key, which has no room for long texts.
fn key_type(field: &Field, nested: Nested, long: usize, server: &Server) -> Result<String> {
    let bytes = KEY_BYTES / long.max(1);
    match value_type(field) {
        DataType::Null => {
            Err(Error::data("a column without values cannot be part of a key").at(place(field)))
        }
        text if text.is_string() => Ok(format!("VARCHAR({})", (bytes / 4).min(255))),
        binary if is_binary(binary) => Ok(format!("VARBINARY({})", bytes.min(767))),
        _ => native_type(field, nested, server),
    }
}

fn native_type(field: &Field, nested: Nested, server: &Server) -> Result<String> {
    let extension = field.metadata().get(EXTENSION).map(String::as_str);
    let native = match value_type(field) {
        DataType::Boolean => "TINYINT(1)",
        DataType::Int8 => "TINYINT",
        DataType::Int16 => "SMALLINT",
        DataType::Int32 => "INT",
        DataType::Int64 => "BIGINT",
        DataType::UInt8 => "TINYINT UNSIGNED",
        DataType::UInt16 => "SMALLINT UNSIGNED",
        DataType::UInt32 => "INT UNSIGNED",
        DataType::UInt64 => "BIGINT UNSIGNED",
        DataType::Float16 | DataType::Float32 => "FLOAT",
        DataType::Float64 => "DOUBLE",
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => return decimal(field, *precision, *scale, server),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View if extension == Some("arrow.json") => {
            "JSON"
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => "LONGTEXT",
        DataType::FixedSizeBinary(16) if extension == Some("arrow.uuid") => server.uuid(),
        DataType::FixedSizeBinary(length @ 0..=255) => return Ok(format!("BINARY({length})")),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            "LONGBLOB"
        }
        DataType::Date32 | DataType::Date64 => "DATE",
        DataType::Timestamp(_, None) => "DATETIME(6)",
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP(6)",
        DataType::Time32(_) | DataType::Time64(_) | DataType::Duration(_) => "TIME(6)",
        other if nested == Nested::Json && is_nested(other) => "JSON",
        other => {
            let hint = match other {
                DataType::Interval(_) => {
                    "types={\"<column>\": \"longtext\"} keeps spans as text, such as P1M2DT3.5S"
                }
                _ => "options={\"nested\": \"json\"} writes lists, structs and maps as JSON",
            };
            let text = format!("MySQL has no type for {}", type_name(other));
            return Err(Error::new(Kind::NotSupported, text).with_hint(hint).at(place(field)));
        }
    };
    Ok(native.to_owned())
}

fn decimal(field: &Field, precision: u8, scale: i8, server: &Server) -> Result<String> {
    let precision = i16::from(precision) + i16::from(scale).min(0).abs();
    let precision = precision.max(scale.into());
    let scale = scale.max(0);
    if precision > 65 || i16::from(scale) > server.most_decimals() {
        return Err(Error::new(Kind::NotSupported, format!("MySQL has no DECIMAL({precision},{scale})"))
            .with_hint(format!(
                "65 digits and {} behind the point are the most; types={{\"<column>\": \"longtext\"}} keeps them as text",
                server.most_decimals()
            ))
            .at(place(field)));
    }
    Ok(format!("DECIMAL({precision},{scale})"))
}

fn place(field: &Field) -> Place {
    Place { column: Some(field.name().clone()), row: None, native_type: None }
}
