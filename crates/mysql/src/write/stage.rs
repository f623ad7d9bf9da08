//! Staging tables: rows that several sessions load, or that are merged by their key.

use longshore_core::{Error, Failed, IfExists, Load, Result, Stage, TableName, Transaction};
use longshore_source::hash;
use longshore_source::staging::{self as kit, Expected, Staged, Step, UndoLog};

use super::create::{get_lock, new_table, working_name};
use super::encode::Encoder;
use super::load::column_names;
use super::table::{self, Column, Index, NAMING, Otherwise, Server, is, sibling};
use super::{check_target, encoders};
use crate::connection::Connection;
use crate::dialect::{literal, quoted_name};
use crate::session::MySqlSession;

/// Begins a write of several sessions.
pub(crate) fn begin(session: Box<MySqlSession>, load: &Load) -> Result<Box<dyn Stage>, Failed> {
    kit::open_stage(session, |session, log| start(&mut session.connection, load, log))
}

fn start(connection: &mut Connection, load: &Load, log: &mut UndoLog) -> Result<Staged> {
    if connection.transaction() != Transaction::None {
        return Err(Error::internal("a write of several sessions begins in a transaction"));
    }
    let server = Server::begin(connection, log)?;
    let target = table::resolve(connection, &load.table)?;
    drop_abandoned(connection, &target)?;
    let staging = claim(connection, &target, log)?;
    let (name, comment) = (NAMING.table(&staging), format!(" COMMENT={}", literal(&mark(&target))));
    let undo = format!("DROP TABLE IF EXISTS {name}");
    if load.makes_table() {
        let mut steps = vec![Step::Run(format!("ALTER TABLE {name} COMMENT=''"))];
        steps.extend(new_table(connection, load, &target, &staging, &server, &comment, log)?);
        return Ok(Staged { load: kit::staged_load(load, staging, None), undo, steps });
    }
    check_target(connection, load, &target)?;
    let encoders = encoders(connection, load, &target)?;
    let number = (load.if_exists == IfExists::Upsert).then(|| kit::number_column(load));
    // What is refused is refused with its row.
    let columns = encoders.iter().map(|encoder| definition(&encoder.column, encoder.column.nullable));
    let keyed = number.iter().map(|number| format!("{} BIGINT NOT NULL PRIMARY KEY", quoted_name(number)));
    let lines: Vec<String> = columns.chain(keyed).collect();
    connection.run(&format!("CREATE TABLE {name} ({}) ENGINE=InnoDB{comment}", lines.join(", ")))?;
    let mut steps = vec![Step::Begin("START TRANSACTION")];
    match &number {
        Some(number) => steps.push(merge(&target, &staging, &encoders, &quoted_name(number))),
        None => steps.extend(moves(load, &target, &name, &encoders)),
    }
    steps.push(Step::Commit);
    Ok(Staged { load: kit::staged_load(load, staging, number.as_deref()), undo, steps })
}

/// The steps that add the rows of the table `from` to those of the target, or put them in their place.
fn moves(load: &Load, target: &TableName, from: &str, encoders: &[Encoder]) -> Vec<Step> {
    let (target, names) = (NAMING.table(target), column_names(encoders));
    // TRUNCATE would commit.
    let before = load.if_exists == IfExists::Truncate;
    let before = before.then(|| Step::Run(format!("DELETE FROM {target}")));
    let insert = format!("INSERT INTO {target} ({names}) SELECT {names} FROM {from}");
    before.into_iter().chain([Step::Move(insert, Expected::All)]).collect()
}

/// Characters of the target's name in the staging table's.
const TARGET_CHARACTERS: usize = 45;

/// The name of a staging table, which no other table has. Its comment marks it, for the name alone could be a user's own table's;
/// and the session owns it from here on by a lock of its name, which goes with the session.
fn claim(connection: &mut Connection, target: &TableName, log: &mut UndoLog) -> Result<TableName> {
    let name = kit::staging_name(target.schema.clone(), &prefix(target));
    let lock = lock(&name);
    log.at_end(format!("DO RELEASE_LOCK({})", literal(&lock)));
    if get_lock(connection, &lock, 0)? != Some(true) {
        return Err(Error::operational("another session has a lock of the same name").with_hint("try again"));
    }
    let [wait, drop, restore] = drop_without_wait(&name);
    for statement in [restore, drop, wait] {
        log.at_end(statement);
    }
    Ok(name)
}

/// Removes the staging tables of `target` whose session has ended: what a crash has left. One that is in use stays.
fn drop_abandoned(connection: &mut Connection, target: &TableName) -> Result<()> {
    for name in orphans(connection, target)? {
        let lock = lock(&name);
        if get_lock(connection, &lock, 0)? != Some(true) {
            continue;
        }
        let [wait, drop, restore] = drop_without_wait(&name);
        connection.run(&wait)?;
        let dropped = connection.run(&drop);
        connection.run(&restore)?;
        connection.run(&format!("DO RELEASE_LOCK({})", literal(&lock)))?;
        // One that is in use, or another user's, does not keep this session from writing.
        if dropped.is_err() && !connection.is_usable() {
            return dropped;
        }
    }
    Ok(())
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

/// The statements that drop a table, unless a session whose end the server has not noticed yet still writes it.
fn drop_without_wait(name: &TableName) -> [String; 3] {
    [
        "SET @longshore_wait = @@lock_wait_timeout, SESSION lock_wait_timeout = 1".into(),
        format!("DROP TABLE IF EXISTS {}", NAMING.table(name)),
        "SET SESSION lock_wait_timeout = @longshore_wait".into(),
    ]
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

/// Makes an empty table of the target's types that this session alone has, from which the returned step merges rows by their key.
pub(super) fn upsert_table(
    connection: &mut Connection,
    target: &TableName,
    encoders: &[Encoder],
    log: &mut UndoLog,
) -> Result<(TableName, Step)> {
    let name = sibling(target, working_name(&target.table, "stage"));
    let columns: Vec<String> = encoders.iter().map(|encoder| definition(&encoder.column, true)).collect();
    let drop = format!("DROP TEMPORARY TABLE IF EXISTS {}", NAMING.table(&name));
    connection.run(&drop)?;
    log.at_end(drop);
    connection.run(&format!(
        "CREATE TEMPORARY TABLE {} ({ORDER} BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, {}) ENGINE=InnoDB",
        NAMING.table(&name),
        columns.join(", ")
    ))?;
    let step = merge(target, &name, encoders, ORDER);
    Ok((name, step))
}

/// The step that has the rows of `from` in the target, in the order of the column `order`: of those with one key,
/// the last has the last word.
fn merge(target: &TableName, from: &TableName, encoders: &[Encoder], order: &str) -> Step {
    let names = encoders.iter().map(|it| quoted_name(&it.column.name));
    let updates: Vec<String> = names.map(|name| format!("{name} = VALUES({name})")).collect();
    let insert = format!(
        "INSERT INTO {} ({columns}) SELECT {columns} FROM {} ORDER BY {order} ON DUPLICATE KEY UPDATE {}",
        NAMING.table(target),
        NAMING.table(from),
        updates.join(", "),
        columns = column_names(encoders),
    );
    Step::Move(insert, Expected::Any)
}

/// A column of the target's in another table, where it takes NULL or not.
fn definition(column: &Column, nullable: bool) -> String {
    let collation = column.collation.as_ref().map_or(String::new(), |it| format!(" COLLATE {it}"));
    // Without a default of its own, a TIMESTAMP would have the time of each change, where the server is old.
    let default = match (nullable, column.words.starts_with("timestamp")) {
        (true, true) => " NULL DEFAULT NULL",
        (true, false) => " NULL",
        (false, true) => " NOT NULL DEFAULT '2000-01-01 00:00:00'",
        (false, false) => " NOT NULL",
    };
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
