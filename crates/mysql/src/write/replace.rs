//! A new table, and how it takes the place of another.

use longshore_core::{Error, Kind, Load, Result};

use super::beside::Beside;
use super::create::{self, check_name};
use super::server::Server;
use super::target::{self, Existing, Name};
use crate::connection::Connection;
use crate::dialect::{literal, quoted_name};

/// The longest name of a table, in characters.
const LONGEST_NAME: usize = 64;

/// Seconds of one wait for another session: a day, after which it is asked for again.
const WAIT: u32 = 86_400;

/// A table on its way to another's name.
#[derive(Debug)]
pub(super) struct Newcomer {
    name: Name,
    pub(super) new: Name,
    old: Name,
    /// Whether there is one to make way.
    takes_place: bool,
    /// The lock that other writes of such a table wait for.
    lock: String,
}

impl Newcomer {
    /// Makes an empty table for the rows of `load`. What an earlier write has left goes. One that others fill is
    /// `beside`. The session has the `lock` from [`lock`].
    pub(super) fn make(
        connection: &mut Connection,
        load: &Load,
        name: &Name,
        takes_place: bool,
        server: &Server,
        beside: Option<&Beside>,
        lock: String,
    ) -> Result<Self> {
        check_name(&name.table)?;
        if takes_place {
            check_dependents(connection, load, name)?;
        }
        let newcomer = Self {
            name: name.clone(),
            new: beside
                .map_or_else(|| name.beside(working_name(&name.table, "new")), |beside| beside.name.clone()),
            old: name.beside(working_name(&name.table, "old")),
            takes_place,
            lock,
        };
        let comment = beside.map_or(String::new(), Beside::comment);
        let statement = create::statement(load, &newcomer.new, server)? + &comment;
        newcomer.clear(connection)?;
        connection.run(&statement)?;
        Ok(newcomer)
    }

    fn clear(&self, connection: &mut Connection) -> Result<()> {
        connection.run(&format!("DROP TABLE IF EXISTS {}, {}", self.new.quoted(), self.old.quoted()))
    }

    /// Gives the new table its name, at one moment, and drops the old one.
    pub(super) fn swap(&self, connection: &mut Connection) -> Result<()> {
        let (name, new, old) = (self.name.quoted(), self.new.quoted(), self.old.quoted());
        if !self.takes_place {
            return connection.run(&format!("RENAME TABLE {new} TO {name}"));
        }
        connection.run(&format!("RENAME TABLE {name} TO {old}, {new} TO {name}"))?;
        let dropped = connection.run(&format!("DROP TABLE {old}"));
        if dropped.is_err() && connection.stop() {
            // Something that this user cannot see depends on it.
            connection.run(&format!("RENAME TABLE {name} TO {new}, {old} TO {name}"))?;
        }
        dropped
    }

    pub(super) fn end(&self, connection: &mut Connection) {
        unlock(connection, &self.lock);
    }

    /// Drops the new table.
    pub(super) fn undo(&self, connection: &mut Connection) -> Result<()> {
        let dropped = connection.run(&format!("DROP TABLE IF EXISTS {}", self.new.quoted()));
        unlock(connection, &self.lock);
        dropped
    }
}

/// Waits until no other session is writing a new table of that name, and gives the name of the lock that says so.
pub(super) fn lock(connection: &mut Connection, name: &Name) -> Result<String> {
    let lock = format!("longshore_{:016x}", hash(&name.shown().to_lowercase()));
    loop {
        let asked = connection.rows(&format!("SELECT GET_LOCK({}, {WAIT})", literal(&lock)));
        let rows = asked.map_err(|error| match error.kind() {
            Kind::Timeout => error
                .within(format!("another session is writing a new table {}", name.shown()))
                .with_hint("give a longer timeout, or wait until it has ended"),
            _ => error,
        })?;
        match rows.into_iter().flatten().next().flatten().as_deref() {
            Some("1") => return Ok(lock),
            Some(_) => {}
            None => {
                return Err(Error::operational(format!(
                    "the wait for another session, which is writing a new table {}, was ended by the server",
                    name.shown()
                )));
            }
        }
    }
}

/// The lock goes with the session in any case.
pub(super) fn unlock(connection: &mut Connection, lock: &str) {
    let _ = connection.run(&format!("DO RELEASE_LOCK({})", literal(lock)));
}

/// Refuses to make a table where there is something.
pub(super) fn check_absent(name: &Name, existing: Option<&Existing>) -> Result<()> {
    if existing.is_none() {
        return Ok(());
    }
    Err(Error::programming(format!("{} is there already", name.shown())).with_sqlstate("42S01").with_hint(
        "add to it with if_exists=\"append\", or put the rows in its place with \"replace\" or \"truncate\"",
    ))
}

/// Refuses to replace what is no ordinary table; tells whether there is one.
pub(super) fn check_replaceable(name: &Name, existing: Option<&Existing>) -> Result<bool> {
    match existing {
        None => Ok(false),
        Some(Existing::Table(_)) => Ok(true),
        Some(Existing::Temporary(_)) => {
            Err(Error::new(Kind::NotSupported, format!("{} is a temporary table", name.shown()))
                .with_hint("use if_exists=\"truncate\", or another name"))
        }
        Some(Existing::Other) => {
            Err(Error::new(Kind::NotSupported, format!("{} is not a table", name.shown()))
                .with_hint("a view is not replaced by a table: use another name"))
        }
    }
}

/// A name that tells whose it is, and that the same table always has.
pub(super) fn working_name(table: &str, what: &str) -> String {
    let name = format!("longshore_{table}_{what}");
    if name.chars().count() <= LONGEST_NAME {
        return name;
    }
    let start: String = table.chars().take(30).collect();
    format!("longshore_{start}_{:016x}_{what}", hash(table))
}

/// FNV-1a, which is the same everywhere.
pub(super) fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The foreign keys of other tables that point at `name`, and what they do when its rows go.
pub(super) fn pointing(connection: &mut Connection, name: &Name) -> Result<Vec<(String, String)>> {
    let rows = connection.rows(&format!(
        "SELECT CONCAT(constraint_schema, '.', table_name, ' (', constraint_name, ')'), delete_rule \
         FROM information_schema.referential_constraints WHERE {} AND NOT ({})",
        name.is("unique_constraint_schema", "referenced_table_name"),
        name.is("constraint_schema", "table_name"),
    ))?;
    let pair = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter().flatten();
        Some((cells.next()?, cells.next()?))
    };
    Ok(rows.into_iter().filter_map(pair).collect())
}

/// Refuses what would be broken without the old table.
fn check_dependents(connection: &mut Connection, load: &Load, name: &Name) -> Result<()> {
    let keys: Vec<String> = pointing(connection, name)?.into_iter().map(|(key, _)| key).collect();
    if !keys.is_empty() {
        return Err(Error::new(
            Kind::Integrity,
            format!("foreign keys point at {}: {}", name.shown(), keys.join(", ")),
        )
        .with_hint("use if_exists=\"truncate\" or \"upsert\", which keep the table"));
    }
    let views = broken_views(connection, load, name)?;
    if views.is_empty() {
        return Ok(());
    }
    Err(Error::new(
        Kind::Integrity,
        format!("views show columns of {} that the data has not: {}", name.shown(), views.join(", ")),
    )
    .with_hint("give the data these columns, or drop the views"))
}

/// The views that name a column which will be there no longer. Their texts name each column behind a point.
fn broken_views(connection: &mut Connection, load: &Load, name: &Name) -> Result<Vec<String>> {
    let fields = load.schema.fields();
    let is_kept = |column: &target::Column| {
        fields.iter().any(|field| field.name().to_lowercase() == column.name.to_lowercase())
    };
    let columns = target::columns(connection, name)?;
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
        literal(&name.quoted())
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
