//! A new table: its types (Arrow -> MySQL), and how it replaces another.

use arrow_schema::{DataType, Field, FieldRef, Schema};
use longshore_core::{EXTENSION, Error, IfExists, Kind, Load, Result, TableName};
use longshore_source::sql::Token;
use longshore_source::staging::{Step, UndoLog};
use longshore_source::table::{column_place, no_type, value_type};
use longshore_source::{Nested, hash};
use longshore_values::is_nested;

use super::table::{self, Existing, NAMING, Server, is, sibling};
use crate::connection::Connection;
use crate::dialect::{literal, quoted_name, tokens};

/// The longest name of a column or table, in characters.
const LONGEST_NAME: usize = 64;

/// Bytes of an index of InnoDB that are left to texts, where numbers take the rest.
const KEY_BYTES: usize = 2816;

/// The statement that makes `name` for the rows of `load`.
fn create_statement(load: &Load, name: &TableName, server: &Server) -> Result<String> {
    let fields = load.schema.fields();
    let is_key = |field: &Field| load.key.iter().any(|key| key == field.name());
    let long =
        fields.iter().filter(|field| is_key(field) && has_length(value_type(field.data_type()))).count();
    let mut lines = Vec::with_capacity(fields.len() + 1);
    for field in fields {
        check_name(field.name())?;
        let native = NAMING.column_type(load, field, || {
            if is_key(field) {
                key_type(field, Nested::of(load), long, server)
            } else {
                native_type(field, Nested::of(load), server)
            }
        })?;
        let nullable = field.is_nullable() && !is_key(field);
        lines.push(format!("{} {}", quoted_name(field.name()), definition(&native, nullable)));
    }
    lines.extend(NAMING.primary_key(load));
    Ok(format!(
        "CREATE TABLE {} ({}) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE {}",
        NAMING.table(name),
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

/// Refuses a name that no column and no table can have.
fn check_name(name: &str) -> Result<()> {
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

fn is_binary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// Whether a key holds only some of its values.
fn has_length(data_type: &DataType) -> bool {
    data_type.is_string() || is_binary(data_type)
}

/// The type of a column of the primary key, which holds no long texts.
fn key_type(field: &Field, nested: Nested, long: usize, server: &Server) -> Result<String> {
    let bytes = KEY_BYTES / long.max(1);
    match value_type(field.data_type()) {
        DataType::Null => {
            Err(Error::data("a column without values cannot be part of a key").at(column_place(field)))
        }
        text if text.is_string() => Ok(format!("VARCHAR({})", (bytes / 4).min(255))),
        binary if is_binary(binary) => Ok(format!("VARBINARY({})", bytes.min(767))),
        _ => native_type(field, nested, server),
    }
}

fn native_type(field: &Field, nested: Nested, server: &Server) -> Result<String> {
    let extension = field.metadata().get(EXTENSION).map(String::as_str);
    let native = match value_type(field.data_type()) {
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
        text if text.is_string() && extension == Some("arrow.json") => "JSON",
        text if text.is_string() || text.is_null() => "LONGTEXT",
        DataType::FixedSizeBinary(16) if extension == Some("arrow.uuid") => server.uuid(),
        DataType::FixedSizeBinary(length @ 0..=255) => return Ok(format!("BINARY({length})")),
        bytes if bytes.is_binary() => "LONGBLOB",
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
            return Err(no_type("MySQL", field, hint));
        }
    };
    Ok(native.to_owned())
}

/// The name and the type of a new table's column for each of `schema`, on a server of this version.
pub fn column_types(schema: &Schema, version: &str) -> Result<Vec<(String, String)>> {
    let server = Server::of(version);
    let column = |field: &FieldRef| Ok((field.name().clone(), native_type(field, Nested::Error, &server)?));
    schema.fields().iter().map(column).collect()
}

/// The statement that makes the table for the rows of `load`, on a server of this version.
pub fn new_table_statement(load: &Load, version: &str) -> Result<String> {
    create_statement(load, &load.table, &Server::of(version))
}

fn decimal(field: &Field, precision: u8, scale: i8, server: &Server) -> Result<String> {
    let precision = i16::from(precision) + i16::from(scale).min(0).abs();
    let precision = precision.max(scale.into());
    let scale = scale.max(0);
    if precision > 65 || i16::from(scale) > server.most_decimals() {
        return Err(Error::not_supported(format!("MySQL has no DECIMAL({precision},{scale})"))
            .with_hint(format!(
                "65 digits and {} behind the point are the most; types={{\"<column>\": \"longtext\"}} keeps them as text",
                server.most_decimals()
            ))
            .at(column_place(field)));
    }
    Ok(format!("DECIMAL({precision},{scale})"))
}

/// Seconds of one wait for another session: a day, after which it is asked for again.
const WAIT: u32 = 86_400;

/// Makes an empty table `new` for the rows of `load`, which takes the `name` by the steps that are returned. What an earlier
/// write has left goes.
pub(super) fn new_table(
    connection: &mut Connection,
    load: &Load,
    name: &TableName,
    new: &TableName,
    server: &Server,
    comment: &str,
    log: &mut UndoLog,
) -> Result<Vec<Step>> {
    let lock = format!("longshore_{:016x}", hash(&name.to_string().to_lowercase()));
    log.at_end(format!("DO RELEASE_LOCK({})", literal(&lock)));
    wait_for_lock(connection, name, &lock)?;
    connection.note_table_lock(&lock);
    // The existing table is looked at once no other session can change it.
    let existing = table::existing(connection, name)?;
    let replaces = match load.if_exists {
        IfExists::Replace => check_replaceable(name, existing.as_ref())?,
        _ if existing.is_some() => return Err(NAMING.already_exists(name)),
        _ => false,
    };
    check_name(&name.table)?;
    if replaces {
        check_dependents(connection, load, name)?;
    }
    let statement = create_statement(load, new, server)? + comment;
    let [old, back] =
        ["old", "back"].map(|what| NAMING.table(&sibling(name, working_name(&name.table, what))));
    let (name, new) = (NAMING.table(name), NAMING.table(new));
    connection.run(&format!("DROP TABLE IF EXISTS {new}, {old}"))?;
    log.on_failure(format!("DROP TABLE IF EXISTS {new}"));
    connection.run(&statement)?;
    if !replaces {
        return Ok(vec![Step::Run(format!("RENAME TABLE {new} TO {name}"))]);
    }
    let (swap, undo) = (
        format!("RENAME TABLE {name} TO {old}, {new} TO {name}"),
        // First what fails where there has been no swap: not every server takes a half of a statement back.
        format!("RENAME TABLE {old} TO {back}, {name} TO {new}, {back} TO {name}"),
    );
    // Something that this user cannot see may depend on the old one.
    Ok(vec![Step::Undoable(swap, undo), Step::Run(format!("DROP TABLE {old}"))])
}

/// Waits until no other session is writing a new table of that name, which `lock` says.
fn wait_for_lock(connection: &mut Connection, name: &TableName, lock: &str) -> Result<()> {
    loop {
        let locked = get_lock(connection, lock, WAIT).map_err(|error| match error.kind() {
            Kind::Timeout => error
                .within(format!("another session is writing a new table {name}"))
                .with_hint("give a longer timeout, or wait until it has ended"),
            _ => error,
        })?;
        match locked {
            Some(true) => return Ok(()),
            Some(false) => {}
            None => {
                return Err(Error::operational(format!(
                    "the wait for another session, which is writing a new table {name}, was ended by the server"
                )));
            }
        }
    }
}

/// Asks for a lock of the server for so long, which goes with the session; `None` where the server has ended the wait.
pub(super) fn get_lock(connection: &mut Connection, lock: &str, seconds: u32) -> Result<Option<bool>> {
    let locked = connection.value(&format!("SELECT GET_LOCK({}, {seconds})", literal(lock)))?;
    Ok(locked.map(|locked| locked == "1"))
}

/// Refuses to replace what is not an ordinary table; tells whether there is one.
fn check_replaceable(name: &TableName, existing: Option<&Existing>) -> Result<bool> {
    match existing {
        None => Ok(false),
        Some(Existing::Table(_)) => Ok(true),
        Some(Existing::Temporary(_)) => Err(Error::not_supported(format!("{name} is a temporary table"))
            .with_hint("use if_exists=\"truncate\", or another name")),
        Some(Existing::Other) => Err(Error::not_supported(format!("{name} is not a table"))
            .with_hint("a view is not replaced by a table: use another name")),
    }
}

/// A name that tells its owner and its purpose, and that the same table always has.
pub(super) fn working_name(table: &str, what: &str) -> String {
    let name = format!("longshore_{table}_{what}");
    if name.chars().count() <= LONGEST_NAME {
        return name;
    }
    let start: String = table.chars().take(30).collect();
    format!("longshore_{start}_{:016x}_{what}", hash(table))
}

/// The foreign keys of other tables that point at `name`, and what they do when its rows go.
pub(super) fn foreign_keys(connection: &mut Connection, name: &TableName) -> Result<Vec<(String, String)>> {
    let rows = connection.rows(&format!(
        "SELECT CONCAT(constraint_schema, '.', table_name, ' (', constraint_name, ')'), delete_rule \
         FROM information_schema.referential_constraints WHERE {} AND NOT ({})",
        is(name, "unique_constraint_schema", "referenced_table_name"),
        is(name, "constraint_schema", "table_name"),
    ))?;
    let pair = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter().flatten();
        Some((cells.next()?, cells.next()?))
    };
    Ok(rows.into_iter().filter_map(pair).collect())
}

/// Refuses what would be broken without the old table.
fn check_dependents(connection: &mut Connection, load: &Load, name: &TableName) -> Result<()> {
    let keys: Vec<String> = foreign_keys(connection, name)?.into_iter().map(|(key, _)| key).collect();
    if !keys.is_empty() {
        return Err(Error::new(
            Kind::Integrity,
            format!("foreign keys point at {}: {}", name, keys.join(", ")),
        )
        .with_hint("use if_exists=\"truncate\" or \"upsert\", which keep the table"));
    }
    let views = broken_views(connection, load, name)?;
    if views.is_empty() {
        return Ok(());
    }
    Err(Error::new(
        Kind::Integrity,
        format!("views show columns of {} that the data has not: {}", name, views.join(", ")),
    )
    .with_hint("give the data these columns, or drop the views"))
}

/// The views that name a column which will be there no longer. Their texts name each column behind a point.
fn broken_views(connection: &mut Connection, load: &Load, name: &TableName) -> Result<Vec<String>> {
    let fields = load.schema.fields();
    let is_kept = |column: &table::Column| {
        fields.iter().any(|field| field.name().to_lowercase() == column.name.to_lowercase())
    };
    let columns = table::columns(connection, name)?;
    let gone: Vec<String> = columns
        .iter()
        .filter(|column| !is_kept(column))
        .map(|column| format!(".{}", quoted_name(&column.name)))
        .collect();
    if gone.is_empty() {
        return Ok(Vec::new());
    }
    let rows = connection.rows(&format!(
        "SELECT CONCAT(table_schema, '.', table_name), view_definition FROM information_schema.views \
         WHERE LOCATE({}, view_definition) > 0",
        literal(&NAMING.table(name))
    ))?;
    let view = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter().flatten();
        let (view, text) = (cells.next()?, cells.next()?);
        gone.iter().any(|column| text.contains(column.as_str())).then_some(view)
    };
    Ok(rows.into_iter().filter_map(view).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn working_names_have_room() {
        assert_eq!(working_name("orders", "new"), "longshore_orders_new");
        for table in ["x".repeat(64), "é".repeat(60)] {
            let name = working_name(&table, "stage");
            assert!(name.chars().count() <= LONGEST_NAME && name != working_name(&table, "new"), "{name}");
        }
        assert_ne!(working_name(&"x".repeat(63), "new"), working_name(&"x".repeat(64), "new"));
    }
}
