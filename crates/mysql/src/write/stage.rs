//! Staging tables: rows that several sessions load, or that are merged by their key.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use longshore_core::{Error, Failed, IfExists, Load, Result, Session, Stage, TableName, Transaction};

use super::create::{NewTable, get_lock, hash, release_lock, working_name};
use super::encode::Encoder;
use super::load::{check_arrived, column_names};
use super::table::{self, Column, Index, NAMING, Otherwise, Server, is, sibling};
use super::{Attempt, Rollback, Undo, check_target, encoders};
use crate::connection::Connection;
use crate::dialect::{literal, quoted_name};
use crate::session::MySqlSession;

/// A write by several sessions.
struct LoadStage {
    attempt: Attempt,
    /// What each of the others writes.
    load: Load,
    staging: StagingTable,
    /// What moves the rows into the target, where the staging table does not become it.
    moves: Option<Moves>,
}

/// The statements that move rows out of a staging table, in one transaction.
struct Moves {
    before: Option<String>,
    insert: String,
    /// Whether each row is added, and counted.
    is_counted: bool,
}

/// Makes the staging table.
pub(crate) fn begin(session: MySqlSession, load: &Load) -> Result<Box<dyn Stage>, Failed> {
    let (attempt, (load, staging, moves)) =
        Attempt::begin(session, |connection, undo| start(connection, load, undo))?;
    Ok(Box::new(LoadStage { attempt, load, staging, moves }))
}

fn start(
    connection: &mut Connection,
    load: &Load,
    undo: &mut Undo,
) -> Result<(Load, StagingTable, Option<Moves>)> {
    if connection.transaction() != Transaction::None {
        return Err(Error::internal("a write of several sessions begins in a transaction"));
    }
    let server = undo.server.insert(Server::begin(connection)?).clone();
    let name = table::resolve(connection, &load.table)?;
    StagingTable::clear(connection, &name)?;
    let staging = undo.staging.insert(StagingTable::claim(connection, &name)?).clone();
    if load.makes_table() {
        undo.new_table = Some(NewTable::create(connection, load, &name, &server, Some(&staging))?);
        return Ok((staged_load(load, None, &staging), staging, None));
    }
    check_target(connection, load, &name)?;
    let encoders = encoders(connection, load, &name)?;
    let (moves, numbers) = moves(load, &name, &staging, &encoders);
    let columns = encoders.iter().map(|encoder| definition(&encoder.column));
    let number = numbers.iter().map(|it| format!("{} BIGINT NOT NULL PRIMARY KEY", quoted_name(it.name())));
    let lines: Vec<String> = columns.chain(number).collect();
    connection.run(&format!(
        "CREATE TABLE {} ({}) ENGINE=InnoDB{}",
        NAMING.table(&staging.name),
        lines.join(", "),
        staging.comment()
    ))?;
    Ok((staged_load(load, numbers, &staging), staging, Some(moves)))
}

/// What moves the rows, and the column of the rows' numbers, where their order counts.
fn moves(
    load: &Load,
    target: &TableName,
    staging: &StagingTable,
    encoders: &[Encoder],
) -> (Moves, Option<Field>) {
    if load.if_exists == IfExists::Upsert {
        let numbers = Field::new(numbers(encoders), DataType::Int64, false);
        let insert = merge(target, &staging.name, encoders, &quoted_name(numbers.name()));
        return (Moves { before: None, insert, is_counted: false }, Some(numbers));
    }
    let (target, names) = (NAMING.table(target), column_names(encoders));
    // TRUNCATE would commit.
    let before = (load.if_exists == IfExists::Truncate).then(|| format!("DELETE FROM {target}"));
    let insert =
        format!("INSERT INTO {target} ({names}) SELECT {names} FROM {}", NAMING.table(&staging.name));
    (Moves { before, insert, is_counted: true }, None)
}

/// A name for the rows' numbers that no column of the data has.
fn numbers(encoders: &[Encoder]) -> String {
    let mut name = ORDER.to_owned();
    while encoders.iter().any(|it| it.column.name.eq_ignore_ascii_case(&name)) {
        name.push('_');
    }
    name
}

/// As the target has it, with NULL where that may be: what is refused is refused with its row.
fn definition(column: &Column) -> String {
    if column.nullable {
        return nullable_definition(column);
    }
    let collation = column.collation.as_ref().map_or(String::new(), |it| format!(" COLLATE {it}"));
    // Without a default of its own, it would have the time of each change, where the server is old.
    let default = if column.words.starts_with("timestamp") { " DEFAULT '2000-01-01 00:00:00'" } else { "" };
    format!("{} {}{collation} NOT NULL{default}", quoted_name(&column.name), column.words)
}

/// What each of the other sessions writes.
fn staged_load(load: &Load, numbers: Option<Field>, staging: &StagingTable) -> Load {
    let fields = load.schema.fields().iter().cloned().chain(numbers.map(Arc::new));
    Load {
        table: staging.name.clone(),
        schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
        if_exists: IfExists::Append,
        ..load.clone()
    }
}

impl Stage for LoadStage {
    fn load(&self) -> &Load {
        &self.load
    }

    fn keep(&mut self) -> Result<()> {
        self.attempt.run(|connection, _| connection.run("DO 0"))
    }

    fn commit(self: Box<Self>, rows: u64) -> Result<Box<dyn Session>, Failed> {
        let Self { attempt, staging, moves, .. } = *self;
        attempt.commit(|connection, undo| {
            if let Some(Moves { before, insert, is_counted }) = moves {
                connection.run("START TRANSACTION")?;
                undo.rollback = Rollback::Transaction;
                before.map_or(Ok(()), |before| connection.run(&before))?;
                let done = connection.insert(insert.as_bytes())?;
                check_arrived(connection, &done, is_counted.then_some(rows), "the table")?;
                connection.run("COMMIT")?;
                undo.rollback = Rollback::Nothing;
            }
            if undo.new_table.is_some() {
                staging.unmark(connection)?;
            }
            undo.rename(connection)
        })
    }

    fn abort(mut self: Box<Self>) -> Option<Box<dyn Session>> {
        self.attempt.end()
    }

    fn undo(&self) -> String {
        self.staging.undo()
    }
}

/// Characters of the target's name in the staging table's.
const TARGET_CHARACTERS: usize = 45;

/// A table that other sessions fill. Its comment marks it, for the name alone could be a user's own table's; and the session
/// that owns it has a lock of its name, which goes with the session.
#[derive(Clone, Debug)]
pub(super) struct StagingTable {
    pub(super) name: TableName,
    lock: String,
    mark: String,
}

impl StagingTable {
    /// A name that no other table has. The session is from here on the table's owner.
    pub(super) fn claim(connection: &mut Connection, target: &TableName) -> Result<Self> {
        let number = RandomState::new().build_hasher().finish() >> 32;
        let name = sibling(target, format!("{}{number:08x}", prefix(target)));
        let staging = Self { lock: lock(&name), mark: mark(target), name };
        if get_lock(connection, &staging.lock, 0)? == Some(true) {
            return Ok(staging);
        }
        Err(Error::operational("another session has a lock of the same name").with_hint("try again"))
    }

    /// Removes the staging tables of `target` whose session has ended: what a crash has left. One that is in use stays.
    pub(super) fn clear(connection: &mut Connection, target: &TableName) -> Result<()> {
        for name in orphans(connection, target)? {
            let lock = lock(&name);
            if get_lock(connection, &lock, 0)? != Some(true) {
                continue;
            }
            let dropped = drop_without_wait(connection, &name);
            release_lock(connection, &lock);
            // One that is in use, or another user's, does not keep this session from writing.
            if dropped.is_err() && !connection.is_usable() {
                return dropped;
            }
        }
        Ok(())
    }

    /// What follows the definition of the table.
    pub(super) fn comment(&self) -> String {
        format!(" COMMENT={}", literal(&self.mark))
    }

    /// Takes the mark from a table that stays.
    pub(super) fn unmark(&self, connection: &mut Connection) -> Result<()> {
        connection.run(&format!("ALTER TABLE {} COMMENT=''", NAMING.table(&self.name)))
    }

    /// The statement by which any session removes the table.
    pub(super) fn undo(&self) -> String {
        format!("DROP TABLE IF EXISTS {}", NAMING.table(&self.name))
    }

    /// Removes the table. The lock goes with the session in any case.
    pub(super) fn drop(&self, connection: &mut Connection) -> Result<()> {
        let dropped = drop_without_wait(connection, &self.name);
        release_lock(connection, &self.lock);
        dropped
    }
}

/// The tables that have the mark. Only those with such a name are opened to be asked for it.
fn orphans(connection: &mut Connection, target: &TableName) -> Result<Vec<TableName>> {
    let prefix = prefix(target);
    let named = connection.rows(&format!(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = {} AND LEFT(table_name, {}) = {}",
        literal(target.schema.as_deref().unwrap_or_default()),
        prefix.chars().count(),
        literal(&prefix)
    ))?;
    let mut orphans = Vec::new();
    for table in named.into_iter().flatten().flatten() {
        let name = sibling(target, table);
        let comment = connection.value(&format!(
            "SELECT table_comment FROM information_schema.tables WHERE {}",
            is(&name, "table_schema", "table_name")
        ))?;
        if comment == Some(mark(target)) {
            orphans.push(name);
        }
    }
    Ok(orphans)
}

/// Drops a table, unless a session whose end the server has not noticed yet still writes it.
fn drop_without_wait(connection: &mut Connection, name: &TableName) -> Result<()> {
    connection.run("SET @longshore_wait = @@lock_wait_timeout, SESSION lock_wait_timeout = 1")?;
    let dropped = connection.run(&format!("DROP TABLE IF EXISTS {}", NAMING.table(name)));
    connection.run("SET SESSION lock_wait_timeout = @longshore_wait")?;
    dropped
}

fn lock(name: &TableName) -> String {
    format!("longshore_{:016x}", hash(&name.to_string()))
}

/// In ASCII, as a comment has to be: what connects the table with its target.
fn mark(target: &TableName) -> String {
    format!("longshore: rows on their way into another table ({:016x})", hash(&target.to_string()))
}

/// The start of the names of `target`'s staging tables.
fn prefix(target: &TableName) -> String {
    let start: String = target.table.chars().take(TARGET_CHARACTERS).collect();
    format!("longshore_{start}_")
}

/// The column of a staging table that has the rows' order.
const ORDER: &str = "longshore_row";

/// The table of this session alone from which rows are merged by their key, and how.
#[derive(Debug)]
pub(super) struct UpsertTable {
    pub(super) name: TableName,
    merge: String,
}

impl UpsertTable {
    /// Makes an empty table of the target's types.
    pub(super) fn create(
        connection: &mut Connection,
        target: &TableName,
        encoders: &[Encoder],
    ) -> Result<Self> {
        let name = sibling(target, working_name(&target.table, "stage"));
        let columns: Vec<String> =
            encoders.iter().map(|encoder| nullable_definition(&encoder.column)).collect();
        connection.run(&format!("DROP TEMPORARY TABLE IF EXISTS {}", NAMING.table(&name)))?;
        connection.run(&format!(
            "CREATE TEMPORARY TABLE {} ({ORDER} BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, {}) ENGINE=InnoDB",
            NAMING.table(&name),
            columns.join(", ")
        ))?;
        Ok(Self { merge: merge(target, &name, encoders, ORDER), name })
    }

    pub(super) fn merge(&self, connection: &mut Connection) -> Result<()> {
        connection.run(&self.merge)
    }

    pub(super) fn drop(&self, connection: &mut Connection) -> Result<()> {
        connection.run(&format!("DROP TEMPORARY TABLE IF EXISTS {}", NAMING.table(&self.name)))
    }
}

/// The statement that has the rows of `from` in the target, in the order of the column `order`: of those with one key,
/// the last has the last word.
fn merge(target: &TableName, from: &TableName, encoders: &[Encoder], order: &str) -> String {
    let names = encoders.iter().map(|it| quoted_name(&it.column.name));
    let updates: Vec<String> = names.map(|name| format!("{name} = VALUES({name})")).collect();
    format!(
        "INSERT INTO {} ({columns}) SELECT {columns} FROM {} ORDER BY {order} ON DUPLICATE KEY UPDATE {}",
        NAMING.table(target),
        NAMING.table(from),
        updates.join(", "),
        columns = column_names(encoders),
    )
}

/// A column of the target's in another table, which takes NULL.
fn nullable_definition(column: &Column) -> String {
    let collation =
        column.collation.as_ref().map_or(String::new(), |collation| format!(" COLLATE {collation}"));
    let default = if column.words.starts_with("timestamp") { " NULL DEFAULT NULL" } else { " NULL" };
    format!("{} {}{collation}{default}", quoted_name(&column.name), column.words)
}

/// Refuses a key without a unique index of its own, and another unique index, which could find another row.
pub(super) fn check_key(
    connection: &mut Connection,
    load: &Load,
    name: &TableName,
    encoders: &[Encoder],
    columns: &[Column],
) -> Result<()> {
    let indexes = table::unique_indexes(connection, name)?;
    let whole = indexes.iter().filter(|index| index.is_whole).map(|index| index.columns.clone());
    NAMING.check_key(load, name, &whole.collect::<Vec<_>>())?;
    let is_same = NAMING.is_same;
    let has = |index: &Index, column: &str| index.columns.iter().any(|known| is_same(known, column));
    // A row that meets all of the key's columns is the key's own row; a number that the server counts is new.
    let is_counted = |column: &str| {
        let written = encoders.iter().any(|it| is_same(&it.column.name, column));
        !written
            && columns
                .iter()
                .any(|known| known.otherwise == Otherwise::Counted && is_same(&known.name, column))
    };
    let is_harmless = |index: &Index| {
        load.key.iter().all(|column| has(index, column))
            || index.columns.iter().any(|column| is_counted(column))
    };
    match indexes.iter().find(|index| !is_harmless(index)) {
        None => Ok(()),
        Some(index) => Err(Error::programming(format!(
            "{name} has another unique index, which could find another row than the key: {} ({})",
            index.name,
            index.columns.join(", ")
        ))
        .with_hint("MySQL updates the row that any unique index finds: drop it, or make it the key")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_room() {
        for table in ["t".to_owned(), "é".repeat(64)] {
            let target = TableName { schema: Some("d".into()), table };
            assert!(prefix(&target).chars().count() + 8 <= 64, "{target:?}");
        }
    }
}
