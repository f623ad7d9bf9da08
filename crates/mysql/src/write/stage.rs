//! Staging tables: rows that several sessions load, or that are merged by their key.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use longshore_core::{Error, Failed, IfExists, Kind, Load, Result, Session, Stage, TableName, Transaction};

use super::create::{hash, working_name};
use super::encode::{self, Encoder};
use super::table::{self, Column, Index, Name, Otherwise, Server};
use super::{Begun, Undo, check_cascades, load, newcomer};
use crate::connection::Connection;
use crate::dialect::{literal, quoted_name};
use crate::session::MySqlSession;

/// A write of several sessions on its way.
struct LoadStage {
    /// Gone at its end.
    session: Option<MySqlSession>,
    /// What each of the others writes.
    load: Load,
    beside: StagingTable,
    /// What brings the rows home, where the table beside does not become the target.
    moves: Option<Moves>,
    undo: Undo,
}

/// The statements that bring rows home, in one transaction.
struct Moves {
    before: Option<String>,
    insert: String,
    /// Whether each row is added, and counted.
    is_counted: bool,
}

/// Makes the table beside the target.
pub(crate) fn begin(mut session: MySqlSession, load: &Load) -> Result<Box<dyn Stage>, Failed> {
    let mut undo = Undo::default();
    match start(&mut session.connection, load, &mut undo) {
        Ok((load, beside, moves)) => {
            Ok(Box::new(LoadStage { session: Some(session), load, beside, moves, undo }))
        }
        Err(error) => {
            undo.note(&error);
            let is_good = undo.all(&mut session.connection);
            Err(Failed { error, session: is_good.then(|| Box::new(session) as Box<dyn Session>) })
        }
    }
}

fn start(
    connection: &mut Connection,
    load: &Load,
    undo: &mut Undo,
) -> Result<(Load, StagingTable, Option<Moves>)> {
    if connection.transaction() != Transaction::None {
        return Err(Error::internal("a write of several sessions begins in a transaction"));
    }
    let server = Server::begin(connection)?;
    undo.server = Some(server.clone());
    let name = Name::resolve(connection, &load.table)?;
    StagingTable::clear(connection, &name)?;
    let beside = StagingTable::claim(connection, &name)?;
    undo.beside = Some(beside.clone());
    if load.makes_table() {
        newcomer(connection, load, &name, &server, undo)?;
        return Ok((others(load, &[], &beside), beside, None));
    }
    let existing = table::existing(connection, &name)?;
    table::check(&name, existing.as_ref())?;
    if load.if_exists == IfExists::Truncate {
        check_cascades(connection, &name)?;
    }
    let columns = table::columns(connection, &name)?;
    let encoders = encode::encoders(load, &name, &columns, connection.zone().offset())?;
    if load.if_exists == IfExists::Upsert {
        check_key(connection, load, &name, &encoders, &columns)?;
    }
    let (moves, numbers) = moves(load, &name, &beside, &encoders);
    make(connection, &beside, &encoders, numbers.as_ref())?;
    Ok((others(load, numbers.as_slice(), &beside), beside, Some(moves)))
}

/// What brings the rows home, and the column that has their numbers, where their order counts.
fn moves(load: &Load, target: &Name, beside: &StagingTable, encoders: &[Encoder]) -> (Moves, Option<Field>) {
    if load.if_exists == IfExists::Upsert {
        let numbers = Field::new(numbers(encoders), DataType::Int64, false);
        let insert = merge(target, &beside.name, encoders, &quoted_name(numbers.name()));
        return (Moves { before: None, insert, is_counted: false }, Some(numbers));
    }
    let names: Vec<String> = encoders.iter().map(|it| quoted_name(&it.column.name)).collect();
    let (target, names) = (target.quoted(), names.join(", "));
    // TRUNCATE would commit.
    let before = (load.if_exists == IfExists::Truncate).then(|| format!("DELETE FROM {target}"));
    let insert = format!("INSERT INTO {target} ({names}) SELECT {names} FROM {}", beside.name.quoted());
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

/// Makes a table of the target's columns that the data has, and of the rows' numbers.
fn make(
    connection: &mut Connection,
    beside: &StagingTable,
    encoders: &[Encoder],
    numbers: Option<&Field>,
) -> Result<()> {
    let columns = encoders.iter().map(|encoder| definition(&encoder.column));
    let numbers = numbers.map(|it| format!("{} BIGINT NOT NULL PRIMARY KEY", quoted_name(it.name())));
    let lines: Vec<String> = columns.chain(numbers).collect();
    connection.run(&format!(
        "CREATE TABLE {} ({}) ENGINE=InnoDB{}",
        beside.name.quoted(),
        lines.join(", "),
        beside.comment()
    ))
}

/// As the target has it, with NULL where that may be: what is refused is refused with its row.
fn definition(column: &Column) -> String {
    if column.nullable {
        return nullable_definition(column);
    }
    let collation = column.collation.as_ref().map_or(String::new(), |it| format!(" COLLATE {it}"));
    // Without a default of its own, it would have the moment of each change, where the server is old.
    let default = if column.words.starts_with("timestamp") { " DEFAULT '2000-01-01 00:00:00'" } else { "" };
    format!("{} {}{collation} NOT NULL{default}", quoted_name(&column.name), column.words)
}

/// What each of the other sessions writes.
fn others(load: &Load, further: &[Field], beside: &StagingTable) -> Load {
    let Name { database, table } = beside.name.clone();
    let fields = load.schema.fields().iter().cloned().chain(further.iter().cloned().map(Arc::new));
    Load {
        table: TableName { schema: Some(database), table },
        schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
        if_exists: IfExists::Append,
        ..load.clone()
    }
}

impl Moves {
    fn run(&self, connection: &mut Connection, rows: u64) -> Result<()> {
        if let Some(before) = &self.before {
            connection.run(before)?;
        }
        let done = connection.insert(self.insert.as_bytes())?;
        if done.warnings > 0
            && let Some(error) = load::first_warning(connection)?
        {
            return Err(error);
        }
        if self.is_counted && done.affected != rows {
            let text = format!("{} of {rows} rows arrived ({})", done.affected, done.info);
            return Err(Error::new(Kind::Integrity, text)
                .with_hint("a unique index, a check or a trigger has kept the others out"));
        }
        Ok(())
    }
}

impl LoadStage {
    fn finish(&mut self, connection: &mut Connection, rows: u64) -> Result<()> {
        if let Some(moves) = &self.moves {
            connection.run("START TRANSACTION")?;
            self.undo.transaction = Begun::Transaction;
            moves.run(connection, rows)?;
            connection.run("COMMIT")?;
            self.undo.transaction = Begun::Nothing;
        }
        if let Some(newcomer) = &self.undo.newcomer {
            self.beside.unmark(connection)?;
            newcomer.swap(connection)?;
            newcomer.end(connection);
            self.undo.newcomer = None;
        }
        Ok(())
    }

    fn end(&mut self) -> Option<MySqlSession> {
        let mut session = self.session.take()?;
        self.undo.all(&mut session.connection).then_some(session)
    }
}

impl Stage for LoadStage {
    fn load(&self) -> &Load {
        &self.load
    }

    fn keep(&mut self) -> Result<()> {
        self.session.as_mut().map_or(Ok(()), |session| session.connection.run("DO 0"))
    }

    fn commit(mut self: Box<Self>, rows: u64) -> Result<Box<dyn Session>, Failed> {
        let Some(mut session) = self.session.take() else {
            return Err(Error::internal("a write without its session").into());
        };
        let finished = self.finish(&mut session.connection, rows);
        if let Err(error) = &finished {
            self.undo.note(error);
        }
        // After the rows only the table beside is left, and the settings.
        let is_good = self.undo.all(&mut session.connection);
        let session: Box<dyn Session> = Box::new(session);
        match finished {
            Ok(()) => Ok(session),
            Err(error) => Err(Failed { error, session: is_good.then_some(session) }),
        }
    }

    fn abort(mut self: Box<Self>) -> Option<Box<dyn Session>> {
        self.end().map(|session| Box::new(session) as Box<dyn Session>)
    }

    fn undo(&self) -> String {
        self.beside.undo()
    }
}

impl Drop for LoadStage {
    fn drop(&mut self) {
        drop(self.end());
    }
}

/// Characters of the target's name that the table's own has room for.
const ROOM: usize = 45;

/// A table that has the owner's mark: the name alone could be a user's own table's. The owner has a lock of that name, which
/// goes with its session.
#[derive(Clone, Debug)]
pub(super) struct StagingTable {
    pub(super) name: Name,
    lock: String,
    mark: String,
}

impl StagingTable {
    /// A name that no other table has. The session is from here on the table's owner.
    pub(super) fn claim(connection: &mut Connection, target: &Name) -> Result<Self> {
        let number = RandomState::new().build_hasher().finish() >> 32;
        let name = target.beside(format!("{}{number:08x}", prefix(target)));
        let beside = Self { lock: lock(&name), mark: mark(target), name };
        if is_locked(connection, &beside.lock)? {
            return Ok(beside);
        }
        Err(Error::operational("another session has a lock of the same name").with_hint("try again"))
    }

    /// Removes the tables beside `target` whose owner's session has ended: what a crash has left. One that somebody still
    /// uses stays.
    pub(super) fn clear(connection: &mut Connection, target: &Name) -> Result<()> {
        for name in left(connection, target)? {
            let lock = lock(&name);
            if !is_locked(connection, &lock)? {
                continue;
            }
            let dropped = drop_soon(connection, &name);
            connection.run(&format!("DO RELEASE_LOCK({})", literal(&lock)))?;
            // One that is in use, or another user's, is no reason not to write.
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
        connection.run(&format!("ALTER TABLE {} COMMENT=''", self.name.quoted()))
    }

    /// The statement by which any session removes the table.
    pub(super) fn undo(&self) -> String {
        format!("DROP TABLE IF EXISTS {}", self.name.quoted())
    }

    /// Removes the table. The lock goes with the session in any case.
    pub(super) fn drop(&self, connection: &mut Connection) -> Result<()> {
        let dropped = drop_soon(connection, &self.name);
        let _ = connection.run(&format!("DO RELEASE_LOCK({})", literal(&self.lock)));
        dropped
    }
}

/// The tables that have the mark. Only those with such a name are opened to be asked for it.
fn left(connection: &mut Connection, target: &Name) -> Result<Vec<Name>> {
    let prefix = prefix(target);
    let named = connection.rows(&format!(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = {} AND LEFT(table_name, {}) = {}",
        literal(&target.database),
        prefix.chars().count(),
        literal(&prefix)
    ))?;
    let mut left = Vec::new();
    for table in named.into_iter().flatten().flatten() {
        let name = target.beside(table);
        let comment = connection.rows(&format!(
            "SELECT table_comment FROM information_schema.tables WHERE {}",
            name.is("table_schema", "table_name")
        ))?;
        if comment.into_iter().flatten().flatten().any(|comment| comment == mark(target)) {
            left.push(name);
        }
    }
    Ok(left)
}

/// Drops a table, unless a session whose end the server has not noticed yet still writes it.
fn drop_soon(connection: &mut Connection, name: &Name) -> Result<()> {
    connection.run("SET @longshore_wait = @@lock_wait_timeout, SESSION lock_wait_timeout = 1")?;
    let dropped = connection.run(&format!("DROP TABLE IF EXISTS {}", name.quoted()));
    connection.run("SET SESSION lock_wait_timeout = @longshore_wait")?;
    dropped
}

/// Tells whether the lock is the session's now.
fn is_locked(connection: &mut Connection, lock: &str) -> Result<bool> {
    let rows = connection.rows(&format!("SELECT GET_LOCK({}, 0)", literal(lock)))?;
    Ok(rows.into_iter().flatten().next().flatten().as_deref() == Some("1"))
}

fn lock(name: &Name) -> String {
    format!("longshore_{:016x}", hash(&name.shown()))
}

/// In ASCII, as a comment has to be: what connects the table with its target.
fn mark(target: &Name) -> String {
    format!("longshore: rows on their way into another table ({:016x})", hash(&target.shown()))
}

/// What the names of all tables beside `target` begin with.
fn prefix(target: &Name) -> String {
    let start: String = target.table.chars().take(ROOM).collect();
    format!("longshore_{start}_")
}

/// The stage's column that has the rows' order.
pub(super) const ORDER: &str = "longshore_row";

/// The table that the rows wait in, and how they get out of it.
#[derive(Debug)]
pub(super) struct UpsertTable {
    pub(super) name: Name,
    merge: String,
}

impl UpsertTable {
    /// Makes an empty table of the target's types that only this session sees.
    pub(super) fn make(connection: &mut Connection, target: &Name, encoders: &[Encoder]) -> Result<Self> {
        let name = target.beside(working_name(&target.table, "stage"));
        let columns: Vec<String> =
            encoders.iter().map(|encoder| nullable_definition(&encoder.column)).collect();
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
pub(super) fn nullable_definition(column: &Column) -> String {
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
    let indexes = table::unique_indexes(connection, name)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_room() {
        for table in ["t".to_owned(), "é".repeat(64)] {
            let target = Name { database: "d".into(), table };
            assert!(prefix(&target).chars().count() + 8 <= 64, "{target:?}");
        }
    }
}
