//! THE TABLE for new tables: Arrow's types, and what PostgreSQL has for them.

use arrow_schema::{DataType, Field};
use longshore_core::{EXTENSION, Error, Kind, Load, Place, Quotes, Result, check_type, type_name};

use super::{Ending, quoted_list, quoted_name};
use crate::connection::pipeline::Step;
use crate::session::PostgresSession;

const QUOTES: &[Quotes] = &[('\'', '\''), ('"', '"')];

/// Makes the table `name`, a quoted one; its primary key comes once its rows are there.
pub(super) fn table(session: &mut PostgresSession, load: &Load, name: &str) -> Result<Ending> {
    alone(session, &statement(load, name)?).map_err(taken)?;
    Ok(key(load, name).map_or(Ending::Nothing, Ending::Key))
}

/// Runs a statement in the protocol that takes one at a time.
pub(super) fn alone(session: &mut PostgresSession, statement: &str) -> Result<()> {
    session.connection.flight(&[Step::run(statement)]).map(drop)
}

/// An error of a name that another table has, with what to do.
pub(super) fn taken(error: Error) -> Error {
    if error.sqlstate() != Some("42P07") {
        return error;
    }
    error.with_hint(
        "if_exists=\"append\" adds to the table, \"truncate\" and \"replace\" replace it, \"upsert\" needs a key",
    )
}

/// The statement that makes a table of the load's columns.
pub(super) fn statement(load: &Load, name: &str) -> Result<String> {
    let columns = load.schema.fields().iter().map(|field| {
        let chosen = load.types.iter().find(|(column, _)| column == field.name());
        let native = match chosen {
            Some((column, native)) => {
                check_type(column, native, QUOTES)?;
                native.clone()
            }
            None => native(field)?,
        };
        let not_null = if field.is_nullable() { "" } else { " NOT NULL" };
        Ok(format!("{} {native}{not_null}", quoted_name(field.name())))
    });
    let columns: Vec<String> = columns.collect::<Result<_>>()?;
    Ok(format!("CREATE TABLE {name} ({})", columns.join(", ")))
}

/// The statement that makes the load's key the primary key of `name`, if it has one.
pub(super) fn key(load: &Load, name: &str) -> Option<String> {
    let columns = quoted_list(&load.key);
    (!load.key.is_empty()).then(|| format!("ALTER TABLE {name} ADD PRIMARY KEY ({columns})"))
}

fn native(field: &Field) -> Result<String> {
    let extension = field.metadata().get(EXTENSION).map(String::as_str);
    Ok(match field.data_type() {
        DataType::Boolean => "boolean".into(),
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => "smallint".into(),
        DataType::Int32 | DataType::UInt16 => "integer".into(),
        DataType::Int64 | DataType::UInt32 => "bigint".into(),
        DataType::UInt64 => "numeric(20,0)".into(),
        DataType::Float16 | DataType::Float32 => "real".into(),
        DataType::Float64 => "double precision".into(),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => numeric(*precision, *scale),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View if extension == Some("arrow.json") => {
            "json".into()
        }
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".into(),
        DataType::FixedSizeBinary(16) if extension == Some("arrow.uuid") => "uuid".into(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            "bytea".into()
        }
        DataType::Date32 | DataType::Date64 => "date".into(),
        DataType::Time32(_) | DataType::Time64(_) => "time".into(),
        DataType::Timestamp(_, None) => "timestamp".into(),
        DataType::Timestamp(_, Some(_)) => "timestamptz".into(),
        DataType::Duration(_) | DataType::Interval(_) => "interval".into(),
        DataType::Dictionary(_, values) => native(
            &Field::new(field.name(), values.as_ref().clone(), true).with_metadata(field.metadata().clone()),
        )?,
        DataType::RunEndEncoded(_, values) => native(values)?,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => list(item)?,
        DataType::Struct(_) | DataType::Map(..) => "json".into(),
        other @ DataType::Union(..) => return Err(no_type(field, other)),
    })
}

/// An array of whatever the elements are; a list of lists is an array of more dimensions.
fn list(item: &Field) -> Result<String> {
    let native = native(item)?;
    Ok(if native.ends_with("[]") { native } else { format!("{native}[]") })
}

/// A negative scale is zeros before the point, for which version 14 has no word.
fn numeric(precision: u8, scale: i8) -> String {
    if scale < 0 {
        return format!("numeric({},0)", u32::from(precision) + u32::from(scale.unsigned_abs()));
    }
    let precision = i32::from(precision).max(i32::from(scale));
    format!("numeric({precision},{scale})")
}

#[cold]
fn no_type(field: &Field, data_type: &DataType) -> Error {
    Error::new(Kind::NotSupported, format!("PostgreSQL has no type for {}", type_name(data_type)))
        .with_hint("leave the column out, or convert it")
        .at(Place { column: Some(field.name().clone()), row: None, native_type: None })
}
