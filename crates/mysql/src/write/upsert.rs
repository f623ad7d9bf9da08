//! Rows that take the place of those with the same key.

use longshore_core::{Error, Load, Result};

use super::encode::Encoder;
use super::replace::working_name;
use super::target::{self, Column, Index, Name, Otherwise};
use crate::connection::Connection;
use crate::dialect::quoted_name;

/// The stage's column that has the rows' order.
pub(super) const ORDER: &str = "longshore_row";

/// The table that the rows wait in, and how they get out of it.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) name: Name,
    merge: String,
}

impl Stage {
    /// Makes an empty table of the target's types that only this session sees.
    pub(super) fn make(connection: &mut Connection, target: &Name, encoders: &[Encoder]) -> Result<Self> {
        let name = target.beside(working_name(&target.table, "stage"));
        let columns: Vec<String> = encoders.iter().map(|encoder| definition(&encoder.column)).collect();
        connection.run(&format!("DROP TEMPORARY TABLE IF EXISTS {}", name.quoted()))?;
        connection.run(&format!(
            "CREATE TEMPORARY TABLE {} ({ORDER} BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, {}) ENGINE=InnoDB",
            name.quoted(),
            columns.join(", ")
        ))?;
        Ok(Self { merge: merge(target, &name, encoders, ORDER), name })
    }

    /// Has the rows in the target.
    pub(super) fn merge(&self, connection: &mut Connection) -> Result<()> {
        connection.run(&self.merge)
    }

    pub(super) fn drop(&self, connection: &mut Connection) -> Result<()> {
        connection.run(&format!("DROP TEMPORARY TABLE IF EXISTS {}", self.name.quoted()))
    }
}

/// The statement that has the rows of `from` in the target, in the order of the column `order`: of those with one key,
/// the last has the last word.
pub(super) fn merge(target: &Name, from: &Name, encoders: &[Encoder], order: &str) -> String {
    let names: Vec<String> = encoders.iter().map(|it| quoted_name(&it.column.name)).collect();
    let updates: Vec<String> = names.iter().map(|name| format!("{name} = VALUES({name})")).collect();
    format!(
        "INSERT INTO {} ({columns}) SELECT {columns} FROM {} ORDER BY {order} ON DUPLICATE KEY UPDATE {}",
        target.quoted(),
        from.quoted(),
        updates.join(", "),
        columns = names.join(", "),
    )
}

/// A column of the target's in another table, which takes NULL.
pub(super) fn definition(column: &Column) -> String {
    let collation =
        column.collation.as_ref().map_or(String::new(), |collation| format!(" COLLATE {collation}"));
    let default = if column.words.starts_with("timestamp") { " NULL DEFAULT NULL" } else { " NULL" };
    format!("{} {}{collation}{default}", quoted_name(&column.name), column.words)
}

/// Refuses a key that is none, and another index that could find another row.
pub(super) fn check_key(
    connection: &mut Connection,
    load: &Load,
    name: &Name,
    encoders: &[Encoder],
    columns: &[Column],
) -> Result<()> {
    let indexes = target::unique_indexes(connection, name)?;
    let key: Vec<&str> = encoders.iter().filter(|it| it.is_key).map(|it| it.column.name.as_str()).collect();
    let has = |index: &Index, column: &str| index.columns.iter().any(|known| is_same(known, column));
    let covers = |index: &Index| {
        index.is_whole && index.columns.len() == key.len() && key.iter().all(|column| has(index, column))
    };
    if !indexes.iter().any(covers) {
        let known: Vec<String> = indexes.iter().map(shown).collect();
        let known = if known.is_empty() { "it has none".to_owned() } else { known.join(", ") };
        return Err(Error::programming(format!(
            "{} has no unique index of exactly the key's columns ({})",
            name.shown(),
            load.key.join(", ")
        ))
        .with_hint(format!("its unique indexes: {known}; make one, or choose another key")));
    }
    // A row that meets all of the key's columns is the key's own row; a number that the server counts is new.
    let is_counted = |column: &str| {
        let written = encoders.iter().any(|it| is_same(&it.column.name, column));
        !written
            && columns
                .iter()
                .any(|known| known.otherwise == Otherwise::Counted && is_same(&known.name, column))
    };
    let is_harmless = |index: &Index| {
        key.iter().all(|column| has(index, column)) || index.columns.iter().any(|column| is_counted(column))
    };
    match indexes.iter().find(|index| !is_harmless(index)) {
        None => Ok(()),
        Some(index) => Err(Error::programming(format!(
            "{} has another unique index, which could find another row than the key: {}",
            name.shown(),
            shown(index)
        ))
        .with_hint("MySQL updates the row that any unique index finds: drop it, or make it the key")),
    }
}

fn shown(index: &Index) -> String {
    format!("{} ({})", index.name, index.columns.join(", "))
}

/// Columns have one name, in whatever case.
fn is_same(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}
