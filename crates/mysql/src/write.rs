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
use longshore_core::{
    Error, Failed, IfExists, Kind, Load, Result, Session, Sink, TableName, Transaction, Written,
};

use crate::connection::{Connection, cleanup};
use crate::session::MySqlSession;
use create::NewTable;
use encode::Encoder;
use load::Loader;
use stage::{StagingTable, UpsertTable};
use table::{NAMING, Server};

pub(crate) use stage::begin as begin_stage;

/// Begins to write.
pub(crate) fn begin(session: MySqlSession, load: &Load) -> Result<Box<dyn Sink>, Failed> {
    let (attempt, loader) = Attempt::begin(session, |connection, undo| start(connection, load, undo))?;
    Ok(Box::new(Writing { attempt, loader }))
}

/// What a write has done so far, apart from its rows.
#[derive(Default)]
struct Undo {
    server: Option<Server>,
    new_table: Option<NewTable>,
    upsert: Option<UpsertTable>,
    /// The table that other sessions fill.
    staging: Option<StagingTable>,
    rollback: Rollback,
    /// Whether the caller does not wait any longer.
    is_hurried: bool,
}

/// How the write's rows can be taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Rollback {
    #[default]
    Nothing,
    /// A transaction of the write's own.
    Transaction,
    /// A savepoint in the caller's transaction.
    Savepoint,
}

fn start(connection: &mut Connection, load: &Load, undo: &mut Undo) -> Result<Loader> {
    let before = connection.transaction();
    check_transaction(before, load.if_exists)?;
    let server = undo.server.insert(Server::begin(connection)?).clone();
    let name = table::resolve(connection, &load.table)?;
    let mut table = name.clone();
    if load.makes_table() {
        let new = NewTable::create(connection, load, &name, &server, None)?;
        table = undo.new_table.insert(new).new.clone();
    } else {
        check_target(connection, load, &name)?;
    }
    let encoders = encoders(connection, load, &table)?;
    if load.if_exists == IfExists::Upsert {
        table = undo.upsert.insert(UpsertTable::create(connection, &name, &encoders)?).name.clone();
    }
    undo.rollback = begin_transaction(connection, before)?;
    if load.if_exists == IfExists::Truncate {
        // TRUNCATE would commit.
        connection.run(&format!("DELETE FROM {}", NAMING.table(&name)))?;
    }
    let mut loader = Loader::new(encoders, load.schema.clone(), NAMING.table(&table), &server);
    loader.try_file(connection)?;
    Ok(loader)
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

fn begin_transaction(connection: &mut Connection, before: Transaction) -> Result<Rollback> {
    if before == Transaction::Open {
        connection.run("SAVEPOINT longshore_write")?;
        return Ok(Rollback::Savepoint);
    }
    connection.run("START TRANSACTION")?;
    Ok(Rollback::Transaction)
}

impl Undo {
    /// Restores all as it was; tells whether the session is ready for the next statement.
    fn all(&mut self, connection: &mut Connection) -> bool {
        let is_hurried = self.is_hurried || connection.check().is_err();
        let deadline = is_hurried.then(|| connection.set_deadline(cleanup()));
        let is_good =
            connection.stop() && self.rows(connection).and_then(|()| self.tables(connection)).is_ok();
        // A session that keeps settings of ours is of no more use.
        let restored = self.server.take().map_or(Ok(()), |server| server.end(connection));
        if !is_good || restored.is_err() {
            connection.give_up();
        }
        if let Some(deadline) = deadline {
            connection.set_deadline(deadline);
        }
        connection.is_usable()
    }

    fn rows(&mut self, connection: &mut Connection) -> Result<()> {
        match std::mem::take(&mut self.rollback) {
            Rollback::Nothing => Ok(()),
            // With the new table the rows go, too, and faster.
            Rollback::Transaction if self.new_table.is_some() => connection.run("COMMIT"),
            Rollback::Transaction => {
                connection.forget_loss();
                connection.run("ROLLBACK")
            }
            // The caller is told of the loss.
            Rollback::Savepoint if connection.transaction() != Transaction::Open => Ok(()),
            Rollback::Savepoint => {
                connection.run("ROLLBACK TO SAVEPOINT longshore_write")?;
                connection.run("RELEASE SAVEPOINT longshore_write")
            }
        }
    }

    fn tables(&mut self, connection: &mut Connection) -> Result<()> {
        if let Some(upsert) = self.upsert.take() {
            upsert.drop(connection)?;
        }
        let new_table = self.new_table.take();
        let dropped = match (&new_table, self.staging.take()) {
            // It is the new table, too, where there is one.
            (_, Some(staging)) => staging.drop(connection),
            (Some(new_table), None) => new_table.drop(connection),
            (None, None) => Ok(()),
        };
        if let Some(new_table) = new_table {
            new_table.unlock(connection);
        }
        dropped
    }

    /// Gives the new table its name, if there is one.
    fn rename(&mut self, connection: &mut Connection) -> Result<()> {
        if let Some(new_table) = &self.new_table {
            new_table.rename(connection)?;
            new_table.unlock(connection);
            self.new_table = None;
        }
        Ok(())
    }
}

/// The session of a write, in which all is undone that has not been committed.
struct Attempt {
    /// Gone at its end.
    session: Option<MySqlSession>,
    undo: Undo,
}

impl Attempt {
    /// Takes the first step.
    fn begin<T>(
        session: MySqlSession,
        start: impl FnOnce(&mut Connection, &mut Undo) -> Result<T>,
    ) -> Result<(Self, T), Failed> {
        let mut attempt = Self { session: Some(session), undo: Undo::default() };
        match attempt.run(start) {
            Ok(started) => Ok((attempt, started)),
            Err(error) => Err(Failed { error, session: attempt.end() }),
        }
    }

    fn run<T>(&mut self, step: impl FnOnce(&mut Connection, &mut Undo) -> Result<T>) -> Result<T> {
        let Some(session) = &mut self.session else {
            return Err(Error::internal("a write without its session"));
        };
        let done = step(&mut session.connection, &mut self.undo);
        // A Ctrl-C is told once.
        self.undo.is_hurried |= done.as_ref().is_err_and(is_interruption);
        done
    }

    /// Takes the last step, after which only staging tables and settings are undone.
    fn commit(
        mut self,
        step: impl FnOnce(&mut Connection, &mut Undo) -> Result<()>,
    ) -> Result<Box<dyn Session>, Failed> {
        let committed = self.run(step);
        let Some(mut session) = self.session.take() else {
            return Err(Error::internal("a write without its session").into());
        };
        let is_good = self.undo.all(&mut session.connection);
        let session: Box<dyn Session> = Box::new(session);
        match committed {
            Ok(()) => Ok(session),
            Err(error) => Err(Failed { error, session: is_good.then_some(session) }),
        }
    }

    fn end(&mut self) -> Option<Box<dyn Session>> {
        let mut session = self.session.take()?;
        self.undo.all(&mut session.connection).then(|| Box::new(session) as Box<dyn Session>)
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        drop(self.end());
    }
}

fn is_interruption(error: &Error) -> bool {
    matches!(error.kind(), Kind::Interrupted | Kind::Cancelled | Kind::Timeout)
}

/// A write by one session.
struct Writing {
    attempt: Attempt,
    loader: Loader,
}

impl Sink for Writing {
    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let Self { attempt, loader } = self;
        attempt.run(|connection, _| {
            let pushed = loader.push(connection, batch);
            // Where the caller does not wait, the file's statement is stopped instead.
            if pushed.as_ref().is_err_and(|error| !is_interruption(error)) && connection.check().is_ok() {
                loader.abandon(connection);
            }
            pushed
        })
    }

    fn commit(self: Box<Self>) -> Result<Written, Failed> {
        let Self { attempt, mut loader } = *self;
        let session = attempt.commit(|connection, undo| {
            loader.flush(connection)?;
            if let Some(upsert) = &undo.upsert {
                upsert.merge(connection)?;
            }
            match undo.rollback {
                Rollback::Savepoint => connection.run("RELEASE SAVEPOINT longshore_write")?,
                _ => connection.run("COMMIT")?,
            }
            undo.rollback = Rollback::Nothing;
            undo.rename(connection)
        })?;
        Ok(Written { rows: loader.rows(), session })
    }

    fn abort(mut self: Box<Self>) -> Option<Box<dyn Session>> {
        self.attempt.end()
    }
}
