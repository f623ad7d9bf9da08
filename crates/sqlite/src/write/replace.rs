//! Tables whose rows go.

use longshore_core::{Error, Kind, Result, TableName};

use super::target::Table;
use crate::cell::Cell;
use crate::session::SqliteSession;

/// Drops `table`. All happens in one transaction, so that nobody sees the database without a table: there is no need to fill
/// a second one and to rename it, which would fail where a view names the table.
pub(super) fn dropped(session: &mut SqliteSession, table: &Table) -> Result<()> {
    table.expect_ordinary()?;
    let pointing = table.pointing(session)?;
    if !pointing.is_empty() {
        return Err(in_use(table, pointing.into_iter().map(|(name, _)| name)));
    }
    session.tell(&format!("DROP TABLE {}", table.quoted()))
}

/// The table without its rows.
pub(super) fn emptied(session: &mut SqliteSession, name: &TableName) -> Result<Table> {
    let table = Table::expect(session, name)?;
    let enforced = session.ask("PRAGMA foreign_keys", |row| row.cell(0) == Cell::Integer(1))?;
    if enforced.contains(&true) {
        let losing = table.pointing(session)?.into_iter().filter(|(_, action)| acts(action));
        let losing: Vec<String> = losing.map(|(name, _)| name).collect();
        if !losing.is_empty() {
            return Err(in_use(&table, losing.into_iter()));
        }
    }
    session.tell(&format!("DELETE FROM {}", table.quoted()))?;
    Ok(table)
}

/// Whether rows that point at one that goes are changed.
fn acts(on_delete: &str) -> bool {
    !matches!(on_delete, "NO ACTION" | "RESTRICT")
}

fn in_use(table: &Table, names: impl Iterator<Item = String>) -> Error {
    let mut names: Vec<String> = names.collect();
    names.dedup();
    Error::new(Kind::Integrity, format!("foreign keys of {} point at table {}", names.join(", "), table.name))
        .with_hint("drop those first, or change its rows with if_exists=\"upsert\"")
}
