//! The tables that a query reads, as the catalogue has them.

use super::halt::Halt;
use super::statement::Statement;
use crate::session::MySqlSession;
use crate::tokens::{literal, quoted_name};

/// A table of the query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    schema: String,
    name: String,
    /// About so many bytes.
    pub(super) bytes: u64,
}

impl Table {
    /// The name that means this table whatever the session's database.
    pub(super) fn qualified(&self) -> String {
        format!("{}.{}", quoted_name(&self.schema), quoted_name(&self.name))
    }

    /// A condition on the catalogue's columns that names this table.
    pub(super) fn condition(&self) -> String {
        format!("table_schema = {} AND table_name = {}", literal(&self.schema), literal(&self.name))
    }
}

/// The tables of `statements`, each of which must be one that several sessions can read at one moment.
pub(super) fn look_up(session: &mut MySqlSession, statements: &[Statement]) -> Result<Vec<Table>, Halt> {
    let database = check_session(session)?;
    let mut tables: Vec<Table> = Vec::new();
    for (schema, name) in statements.iter().flat_map(|statement| &statement.tables) {
        let schema = schema.clone().or_else(|| database.clone());
        let Some(schema) = schema else { return Err(Halt::serial("a table without a database")) };
        let mut table = Table { schema, name: name.clone(), bytes: 0 };
        if tables.iter().any(|known| known.qualified() == table.qualified()) {
            continue;
        }
        check(session, &mut table)?;
        tables.push(table);
    }
    check_calls(session, statements)?;
    Ok(tables)
}

/// What the session has of its own, and a further one has not.
fn check_session(session: &mut MySqlSession) -> Result<Option<String>, Halt> {
    let rows = session
        .connection
        .rows("SELECT DATABASE(), @@session.sql_mode = @@global.sql_mode, @@session.autocommit")?;
    let Some([database, modes, autocommit]) = rows.first().map(Vec::as_slice) else {
        return Err(Halt::serial("the session says nothing of itself"));
    };
    if database.as_deref() != session.connection.database() {
        return Err(Halt::serial("the session uses another database than its URL names"));
    }
    if modes.as_deref() != Some("1") {
        return Err(Halt::serial("the session has a sql_mode of its own"));
    }
    if autocommit.as_deref() != Some("1") {
        return Err(Halt::serial("the session has autocommit off"));
    }
    Ok(database.clone())
}

fn check(session: &mut MySqlSession, table: &mut Table) -> Result<(), Halt> {
    let name = table.qualified();
    // A temporary table hides another of its name, and only this session has it.
    let definition = session.connection.rows(&format!("SHOW CREATE TABLE {name}"))?;
    let text = definition.first().and_then(|row| row.get(1)?.as_deref()).unwrap_or_default();
    if text.starts_with("CREATE TEMPORARY") {
        return Err(Halt::serial("a temporary table"));
    }
    let rows = session.connection.rows(&format!(
        "SELECT table_type, engine, data_length FROM information_schema.tables WHERE {}",
        table.condition()
    ))?;
    let Some([kind, engine, bytes]) = rows.first().map(Vec::as_slice) else {
        return Err(Halt::serial(format!("the catalogue has no table {name}")));
    };
    if kind.as_deref() != Some("BASE TABLE") {
        return Err(Halt::serial(format!("{name} is no table but a view, which may hold anything")));
    }
    match engine.as_deref() {
        Some("InnoDB") => {}
        other => {
            let engine = other.unwrap_or("unknown");
            return Err(Halt::serial(format!("{name} has the engine {engine}, which has no snapshots")));
        }
    }
    table.bytes = bytes.as_deref().and_then(|bytes| bytes.parse().ok()).unwrap_or_default();
    Ok(())
}

/// A function that somebody has made may be another in each part.
fn check_calls(session: &mut MySqlSession, statements: &[Statement]) -> Result<(), Halt> {
    let mut names: Vec<&String> = statements.iter().flat_map(|statement| &statement.calls).collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = names.into_iter().map(|name| literal(name)).collect();
    let found = session.connection.rows(&format!(
        "SELECT routine_name FROM information_schema.routines WHERE routine_type = 'FUNCTION' \
         AND LOWER(routine_name) IN ({}) LIMIT 1",
        names.join(", ")
    ))?;
    match found.first().and_then(|row| row.first()?.as_deref()) {
        Some(name) => Err(Halt::serial(format!("{name}() may differ from part to part"))),
        None => Ok(()),
    }
}
