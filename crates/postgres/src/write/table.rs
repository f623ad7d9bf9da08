//! The table that rows go into: its columns, as the catalogue has them, and THE TABLE of Arrow's types and what PostgreSQL
//! has for them, for new ones.

use arrow_schema::{DataType, Field};
use longshore_core::{EXTENSION, Error, Load, Result};
use longshore_source::staging as kit;
use longshore_source::table::{EXISTS_HINT, Naming, TableColumn, no_type, value_type};

use crate::connection::Described;
use crate::connection::pipeline::Step;
use crate::dialect::DIALECT;
use crate::geometry;
use crate::session::PostgresSession;
use crate::types::Type;

pub(super) const NAMING: Naming = Naming {
    dialect: DIALECT,
    is_same: |a, b| a == b,
    type_quotes: &[('\'', '\''), ('"', '"')],
    missing_table: "42P01",
    existing_table: "42P07",
    missing_column: "42703",
};

const COLUMNS: &str = "\
SELECT a.attname, a.atttypid, a.atttypmod, a.attgenerated, a.attidentity \
FROM pg_catalog.pg_attribute a WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped \
ORDER BY a.attnum";

/// A column of the table.
#[derive(Debug)]
struct Attribute {
    described: Described,
    is_generated: bool,
    is_identity: bool,
}

impl TableColumn for Attribute {
    fn name(&self) -> &str {
        &self.described.name
    }

    fn is_generated(&self) -> bool {
        self.is_generated
    }
}

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
    has_identity: bool,
}

impl TargetColumns {
    pub(super) fn describe(session: &mut PostgresSession, load: &Load, table: &str) -> Result<Self> {
        let rows = session.connection.ask(Step::run(COLUMNS).bind(table))?.rows;
        if rows.is_empty() {
            return Err(NAMING.no_table(&load.table));
        }
        let attributes: Vec<Attribute> = rows.iter().map(|row| attribute(row)).collect();
        let found = NAMING.mapping(load, &load.table, &attributes)?;
        let oids: Vec<u32> = found.iter().map(|attribute| attribute.described.oid).collect();
        session.load_types(&[], &oids)?;
        let column = |Attribute { described, .. }: &&Attribute| Column {
            name: described.name.clone(),
            native: session.catalogue.type_of(described.oid, described.modifier),
        };
        Ok(Self {
            columns: found.iter().map(column).collect(),
            has_identity: found.iter().any(|attribute| attribute.is_identity),
        })
    }

    /// The clause of an INSERT on the columns that it writes.
    pub(super) fn overriding(&self) -> &'static str {
        if self.has_identity { "OVERRIDING SYSTEM VALUE " } else { "" }
    }

    pub(super) fn names(&self) -> String {
        NAMING.list(self.columns.iter().map(|column| &column.name))
    }
}

fn attribute(row: &[Option<String>]) -> Attribute {
    let cell = |at: usize| row.get(at).and_then(Option::as_deref).unwrap_or_default();
    Attribute {
        described: Described {
            name: cell(0).to_owned(),
            table: 0,
            attribute: 0,
            oid: cell(1).parse().unwrap_or_default(),
            modifier: cell(2).parse().unwrap_or(-1),
        },
        is_generated: !cell(3).is_empty(),
        is_identity: cell(4) == "a",
    }
}

/// Fails where there is no `table`, a quoted name.
pub(super) fn must_exist(session: &mut PostgresSession, load: &Load, table: &str) -> Result<()> {
    if exists(session, table)? { Ok(()) } else { Err(NAMING.no_table(&load.table)) }
}

/// Fails before anything is made on a server that only speaks the wire: its CREATE TABLE would not be undone.
pub(super) fn must_be_postgresql(session: &mut PostgresSession) -> Result<()> {
    let asked = session.connection.ask(Step::run("SELECT to_regclass('pg_catalog.pg_class')"));
    match asked {
        Err(error) if error.sqlstate().is_some_and(|state| state == "00000" || state.starts_with("42")) => {
            Err(Error::not_supported("the server speaks PostgreSQL's protocol, but is not PostgreSQL")
                .with_hint("write into it by its own client: its catalogue and its COPY are others"))
        }
        other => other.map(drop),
    }
}

pub(super) fn exists(session: &mut PostgresSession, table: &str) -> Result<bool> {
    Ok(session.connection.ask(Step::run("SELECT to_regclass($1) IS NOT NULL").bind(table))?.cell(0, 0) == "t")
}

/// Makes the table `name`, a quoted one; its primary key comes once its rows are there.
pub(super) fn create(session: &mut PostgresSession, load: &Load, name: &str) -> Result<Vec<kit::Step>> {
    run_alone(session, &create_statement(load, name)?).map_err(already_exists)?;
    Ok(primary_key(load, name).map(kit::Step::Run).into_iter().collect())
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
    error.with_hint(EXISTS_HINT)
}

/// The statement that makes a table of the load's columns.
pub(super) fn create_statement(load: &Load, name: &str) -> Result<String> {
    let columns = load.schema.fields().iter().map(|field| {
        let native = NAMING.column_type(load, field, || type_of(field))?;
        let not_null = if field.is_nullable() { "" } else { " NOT NULL" };
        Ok(format!("{} {native}{not_null}", DIALECT.quoted_name(field.name())))
    });
    let columns: Vec<String> = columns.collect::<Result<_>>()?;
    Ok(format!("CREATE TABLE {name} ({})", columns.join(", ")))
}

/// The statement that makes the load's key the primary key of `name`, if it has one.
pub(super) fn primary_key(load: &Load, name: &str) -> Option<String> {
    NAMING.primary_key(load).map(|key| format!("ALTER TABLE {name} ADD {key}"))
}

pub(super) fn type_of(field: &Field) -> Result<String> {
    let extension = field.metadata().get(EXTENSION).map(String::as_str);
    Ok(match value_type(field.data_type()) {
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
        text if text.is_string() && extension == Some("arrow.json") => "json".into(),
        text if text.is_string() || text.is_null() => "text".into(),
        DataType::FixedSizeBinary(16) if extension == Some("arrow.uuid") => "uuid".into(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView
            if extension == Some(geometry::EXTENSION_NAME) =>
        {
            geometry::type_of(field)?
        }
        bytes if bytes.is_binary() => "bytea".into(),
        DataType::Date32 | DataType::Date64 => "date".into(),
        DataType::Time32(_) | DataType::Time64(_) => "time".into(),
        DataType::Timestamp(_, None) => "timestamp".into(),
        DataType::Timestamp(_, Some(_)) => "timestamptz".into(),
        DataType::Duration(_) | DataType::Interval(_) => "interval".into(),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => list(item)?,
        DataType::Struct(_) | DataType::Map(..) => "json".into(),
        _ => return Err(no_type("PostgreSQL", field, "leave the column out, or convert it")),
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
