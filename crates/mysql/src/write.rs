//! Rows into a table, and what is undone where that fails.
//!
//! See `docs/design/mysql.md`.

mod create;
mod encode;
mod load;
mod number;
mod stage;
mod table;
mod temporal;

use arrow_array::RecordBatch;
use longshore_core::{Error, Failed, IfExists, Kind, Load, Result, Sink, TableName, Transaction};
use longshore_source::staging::{self as kit, Expected, Rows, Scope, Step, Undo, UndoLog, Writer};

use crate::connection::{Connection, cleanup};
use crate::session::MySqlSession;
use create::working_name;
use encode::Encoder;
use load::{Loader, check_arrived};
use table::{NAMING, Server, sibling};

pub use create::{column_types, new_table_statement};
pub(crate) use stage::begin as begin_stage;
pub(crate) use table::{is as in_catalogue, resolve, takes_rows_at_once};

/// Begins to write.
pub(crate) fn begin(session: Box<MySqlSession>, load: &Load) -> Result<Box<dyn Sink>, Failed> {
    kit::open(session, |session, log| start(session, load, log))
}

fn start(session: &mut MySqlSession, load: &Load, log: &mut UndoLog) -> Result<(Loader, Vec<Step>)> {
    let connection = &mut session.connection;
    check_transaction(connection.transaction(), load.if_exists)?;
    let server = Server::begin(connection, log)?;
    let name = table::resolve(connection, &load.table)?;
    let (mut table, mut steps) = (name.clone(), vec![Step::Commit]);
    if load.makes_table() {
        table = sibling(&name, working_name(&name.table, "new"));
        // Tables are not part of a transaction: it is only for the rows.
        steps.extend(create::new_table(connection, load, &name, &table, &server, "", log)?);
    } else {
        check_target(connection, load, &name)?;
    }
    let encoders = encoders(connection, load, &table)?;
    if load.if_exists == IfExists::Upsert {
        let merge;
        (table, merge) = stage::upsert_table(connection, &name, &encoders, log)?;
        steps.insert(0, merge);
    }
    log.begin(session, "START TRANSACTION")?;
    let connection = &mut session.connection;
    if load.if_exists == IfExists::Truncate {
        // TRUNCATE would commit.
        connection.run(&format!("DELETE FROM {}", NAMING.table(&name)))?;
    }
    let mut loader = Loader::new(encoders, load.schema.clone(), NAMING.table(&table), &server);
    loader.try_file(connection)?;
    Ok((loader, steps))
}

impl Writer for MySqlSession {
    fn perform(&mut self, statement: &str) -> Result<()> {
        self.connection.run(statement)
    }

    fn move_rows(&mut self, statement: &str, expected: &Expected, rows: u64) -> Result<()> {
        let done = self.connection.insert(statement.as_bytes())?;
        let rows = matches!(expected, Expected::All).then_some(rows);
        check_arrived(&mut self.connection, &done, rows, "the table")
    }

    fn undo(&mut self, scope: Option<Scope>, undo: &[Undo], is_hurried: bool) -> bool {
        let connection = &mut self.connection;
        let is_hurried = is_hurried || connection.check().is_err();
        let deadline = is_hurried.then(|| connection.set_deadline(cleanup()));
        let is_good = connection.stop() && {
            let drops_rows = undo.iter().any(|undo| !undo.is_always);
            let rolled_back = roll_back(connection, scope, drops_rows);
            let failures = undo.iter().filter(|undo| connection.run(&undo.statement).is_err()).count();
            rolled_back.is_ok() && failures == 0
        };
        // A session that keeps settings of ours is of no more use.
        if !is_good {
            connection.give_up();
            let failed = undo.iter().filter(|undo| !undo.is_always);
            connection.undo_elsewhere(failed.map(|undo| undo.statement.clone()).collect());
        }
        if let Some(deadline) = deadline {
            connection.set_deadline(deadline);
        }
        connection.is_usable()
    }
}

/// Takes the rows back, unless their table is about to go.
fn roll_back(connection: &mut Connection, scope: Option<Scope>, drops_rows: bool) -> Result<()> {
    match scope {
        None => Ok(()),
        // With the new table the rows go, too, and faster.
        Some(Scope::Transaction) if drops_rows => connection.run("COMMIT"),
        // The caller is told of the loss.
        Some(Scope::Savepoint) if connection.transaction() != Transaction::Open => Ok(()),
        Some(scope) => {
            if scope == Scope::Transaction {
                connection.forget_loss();
            }
            scope.rollback().iter().try_for_each(|statement| connection.run(statement))
        }
    }
}

impl Rows<MySqlSession> for Loader {
    fn push(&mut self, session: &mut MySqlSession, batch: &RecordBatch) -> Result<()> {
        let connection = &mut session.connection;
        let pushed = self.append(connection, batch);
        // Where the caller does not wait, the file's statement is stopped instead.
        if pushed.as_ref().is_err_and(|error| !kit::is_interruption(error)) && connection.check().is_ok() {
            self.abandon(connection);
        }
        pushed
    }

    fn flush(&mut self, session: &mut MySqlSession) -> Result<()> {
        self.finish(&mut session.connection)
    }

    fn count(&self) -> u64 {
        self.rows
    }
}

/// Refuses an existing table that the rows cannot go into.
fn check_target(connection: &mut Connection, load: &Load, name: &TableName) -> Result<()> {
    let existing = table::existing(connection, name)?;
    table::check(name, existing.as_ref())?;
    if load.if_exists == IfExists::Truncate { check_cascades(connection, name) } else { Ok(()) }
}

/// The encoders of the data's columns into those of a table.
fn encoders(connection: &mut Connection, load: &Load, table: &TableName) -> Result<Vec<Encoder>> {
    let columns = table::columns(connection, table)?;
    let encoders = encode::encoders(load, table, &columns, connection.zone().offset())?;
    if load.if_exists == IfExists::Upsert {
        stage::check_key(connection, load, table, &encoders, &columns)?;
    }
    Ok(encoders)
}

fn check_transaction(before: Transaction, if_exists: IfExists) -> Result<()> {
    match (before, if_exists) {
        (Transaction::Failed, _) => Err(Error::operational("the transaction has failed: roll it back first")),
        (Transaction::Open, IfExists::Fail | IfExists::Replace) => Err(Error::programming(
            "a new table would commit the open transaction",
        )
        .with_hint(
            "commit it first, or use if_exists=\"append\", \"truncate\" or \"upsert\", which take part in it",
        )),
        _ => Ok(()),
    }
}

/// Deleting the rows must not delete others.
fn check_cascades(connection: &mut Connection, name: &TableName) -> Result<()> {
    let pointing = create::foreign_keys(connection, name)?;
    let changes = |rule: &str| ["CASCADE", "SET NULL", "SET DEFAULT"].contains(&rule);
    let keys: Vec<String> =
        pointing.into_iter().filter(|(_, rule)| changes(rule)).map(|(key, _)| key).collect();
    if keys.is_empty() {
        return Ok(());
    }
    let text = format!(
        "without the rows of {}, foreign keys would change those of other tables: {}",
        name,
        keys.join(", ")
    );
    Err(Error::new(Kind::Integrity, text)
        .with_hint("use if_exists=\"upsert\", or drop the foreign keys first"))
}
