//! The table that rows go into: its columns, as the catalogue has them, and THE TABLE of Arrow's types and what PostgreSQL
//! has for them, for new ones.

use arrow_schema::{DataType, Field};
use longshore_core::{EXTENSION, Error, Kind, Load, Place, Quotes, Result, check_type, type_name};

use super::{Ending, quoted_list};
use crate::connection::Described;
use crate::connection::pipeline::Step;
use crate::dialect::DIALECT;
use crate::session::PostgresSession;
use crate::types::Type;

const COLUMNS: &str = "\
SELECT a.attname, a.atttypid, a.atttypmod, a.attgenerated, a.attidentity \
FROM pg_catalog.pg_attribute a WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped \
ORDER BY a.attnum";

/// A column that is written.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) native: Type,
}

/// The columns that a load writes, in the order of its own.
#[derive(Debug)]
pub(super) struct TargetColumns {
    pub(super) columns: Vec<Column>,
    /// Whether one is GENERATED ALWAYS AS IDENTITY, into which INSERT writes only on request.
    pub(super) has_identity: bool,
}

impl TargetColumns {
    pub(super) fn describe(session: &mut PostgresSession, load: &Load, table: &str) -> Result<Self> {
        let rows = session.connection.ask(Step::run(COLUMNS).bind(table))?.rows;
        if rows.is_empty() {
            return Err(missing(load));
        }
        let cell = |row: &[Option<String>], at: usize| row.get(at).cloned().flatten().unwrap_or_default();
        let known: Vec<String> = rows.iter().map(|row| cell(row, 0)).collect();
        let wanted: Vec<&String> = load.schema.fields().iter().map(|field| field.name()).collect();
        let extra: Vec<String> =
            wanted.iter().filter(|name| !known.contains(name)).map(|name| format!("{name:?}")).collect();
        if !extra.is_empty() {
            return Err(Error::programming(format!("{} has no column {}", load.table, extra.join(", ")))
                .with_hint(format!(
                    "its columns are {}; rename or drop what is too much",
                    known.join(", ")
                )));
        }
        let found: Vec<_> =
            wanted.iter().filter_map(|name| rows.iter().find(|row| cell(row, 0) == **name)).collect();
        if let Some(row) = found.iter().find(|row| !cell(row, 3).is_empty()) {
            return Err(Error::programming(format!(
                "column {:?} of {} is generated",
                cell(row, 0),
                load.table
            ))
            .with_hint("drop it from the data: the server computes it"));
        }
        let described: Vec<Described> =
            found.iter().map(|row| described(&cell(row, 0), &cell(row, 1), &cell(row, 2))).collect();
        session.load_types(&described, &[])?;
        let column = |column: &Described| Column {
            name: column.name.clone(),
            native: session.catalogue.type_of(column.oid, column.modifier),
        };
        Ok(Self {
            columns: described.iter().map(column).collect(),
            has_identity: found.iter().any(|row| cell(row, 4) == "a"),
        })
    }

    pub(super) fn names(&self) -> String {
        self.columns.iter().map(|column| DIALECT.quoted_name(&column.name)).collect::<Vec<_>>().join(", ")
    }
}

fn described(name: &str, oid: &str, modifier: &str) -> Described {
    Described {
        name: name.to_owned(),
        table: 0,
        attribute: 0,
        oid: oid.parse().unwrap_or_default(),
        modifier: modifier.parse().unwrap_or(-1),
    }
}

/// Fails where there is no `table`, a quoted name.
pub(super) fn must_exist(session: &mut PostgresSession, load: &Load, table: &str) -> Result<()> {
    if exists(session, table)? { Ok(()) } else { Err(missing(load)) }
}

/// Fails before anything is made on a server that only speaks the wire: its CREATE TABLE would not be undone.
pub(super) fn must_be_postgresql(session: &mut PostgresSession) -> Result<()> {
    let asked = session.connection.ask(Step::run("SELECT to_regclass('pg_catalog.pg_class')"));
    match asked {
        Err(error) if error.sqlstate().is_some_and(|state| state == "00000" || state.starts_with("42")) => {
            Err(Error::new(
                Kind::NotSupported,
                "the server speaks PostgreSQL's protocol, but is not PostgreSQL",
            )
            .with_hint("write into it by its own client: its catalogue and its COPY are others"))
        }
        other => other.map(drop),
    }
}

pub(super) fn exists(session: &mut PostgresSession, table: &str) -> Result<bool> {
    Ok(session.connection.ask(Step::run("SELECT to_regclass($1) IS NOT NULL").bind(table))?.cell(0, 0) == "t")
}

#[cold]
pub(super) fn missing(load: &Load) -> Error {
    Error::programming(format!("there is no table {}", load.table))
        .with_sqlstate("42P01")
        .with_hint("if_exists=\"fail\" makes one; the name counts with its case")
}

const QUOTES: &[Quotes] = &[('\'', '\''), ('"', '"')];

/// Makes the table `name`, a quoted one; its primary key comes once its rows are there.
pub(super) fn create(session: &mut PostgresSession, load: &Load, name: &str) -> Result<Ending> {
    run_alone(session, &create_statement(load, name)?).map_err(already_exists)?;
    Ok(primary_key(load, name).map_or(Ending::Nothing, Ending::Key))
}

/// Runs a statement in the protocol that takes one at a time.
pub(super) fn run_alone(session: &mut PostgresSession, statement: &str) -> Result<()> {
    session.connection.ask(Step::run(statement)).map(drop)
}

/// An error of a name that another table has, with what to do.
pub(super) fn already_exists(error: Error) -> Error {
    if error.sqlstate() != Some("42P07") {
        return error;
    }
    error.with_hint(
        "if_exists=\"append\" adds to the table, \"truncate\" and \"replace\" replace it, \"upsert\" needs a key",
    )
}

/// The statement that makes a table of the load's columns.
pub(super) fn create_statement(load: &Load, name: &str) -> Result<String> {
    let columns = load.schema.fields().iter().map(|field| {
        let requested = load.types.iter().find(|(column, _)| column == field.name());
        let native = match requested {
            Some((column, native)) => {
                check_type(column, native, QUOTES)?;
                native.clone()
            }
            None => type_of(field)?,
        };
        let not_null = if field.is_nullable() { "" } else { " NOT NULL" };
        Ok(format!("{} {native}{not_null}", DIALECT.quoted_name(field.name())))
    });
    let columns: Vec<String> = columns.collect::<Result<_>>()?;
    Ok(format!("CREATE TABLE {name} ({})", columns.join(", ")))
}

/// The statement that makes the load's key the primary key of `name`, if it has one.
pub(super) fn primary_key(load: &Load, name: &str) -> Option<String> {
    let columns = quoted_list(&load.key);
    (!load.key.is_empty()).then(|| format!("ALTER TABLE {name} ADD PRIMARY KEY ({columns})"))
}

fn type_of(field: &Field) -> Result<String> {
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
        DataType::Dictionary(_, values) => type_of(
            &Field::new(field.name(), values.as_ref().clone(), true).with_metadata(field.metadata().clone()),
        )?,
        DataType::RunEndEncoded(_, values) => type_of(values)?,
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
    let native = type_of(item)?;
    Ok(if native.ends_with("[]") { native } else { format!("{native}[]") })
}

/// A negative scale is zeros before the point, which version 14 cannot declare.
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
