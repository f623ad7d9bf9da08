//! Rows into a table, and what is undone where that fails.
//!
//! See `docs/design/mysql.md`.

use arrow_array::RecordBatch;
use longshore_core::{Error, Failed, IfExists, Kind, Load, Result, Session, Sink, Transaction, Written};

use crate::connection::{Connection, cleanup};
use crate::session::MySqlSession;
use create::NewTable;
use load::Loader;
pub(crate) use stage::begin as begin_stage;
use stage::{StagingTable, UpsertTable};
use table::{Name, Server};

mod create;
mod encode;
mod load;
mod number;
mod stage;
mod table;
mod temporal;

/// Begins to write.
pub(crate) fn begin(mut session: MySqlSession, load: &Load) -> Result<Box<dyn Sink>, Failed> {
    let mut undo = Undo::default();
    match start(&mut session.connection, load, &mut undo) {
        Ok(loader) => Ok(Box::new(Writing { session: Some(session), loader, undo })),
        Err(error) => {
            undo.note(&error);
            let is_good = undo.all(&mut session.connection);
            Err(Failed { error, session: is_good.then(|| Box::new(session) as Box<dyn Session>) })
        }
    }
}

/// What a write has done so far, apart from its rows.
#[derive(Default)]
struct Undo {
    server: Option<Server>,
    newcomer: Option<NewTable>,
    stage: Option<UpsertTable>,
    /// The table that other sessions fill.
    beside: Option<StagingTable>,
    transaction: Begun,
    /// Whether the caller does not want to wait any longer.
    is_hurried: bool,
}

/// How the write's rows can be taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Begun {
    #[default]
    Nothing,
    /// A transaction of the write's own.
    Transaction,
    /// A savepoint in the owner's transaction.
    Savepoint,
}

fn start(connection: &mut Connection, load: &Load, undo: &mut Undo) -> Result<Loader> {
    let before = connection.transaction();
    check_transaction(before, load.if_exists)?;
    let server = Server::begin(connection)?;
    undo.server = Some(server.clone());
    let name = Name::resolve(connection, &load.table)?;
    let table = prepared(connection, load, &name, &server, undo)?;
    let columns = table::columns(connection, &table)?;
    let encoders = encode::encoders(load, &table, &columns, connection.zone().offset())?;
    let mut destination = table;
    if load.if_exists == IfExists::Upsert {
        stage::check_key(connection, load, &name, &encoders, &columns)?;
        destination = undo.stage.insert(UpsertTable::make(connection, &name, &encoders)?).name.clone();
    }
    undo.transaction = begin_transaction(connection, before)?;
    if load.if_exists == IfExists::Truncate {
        // TRUNCATE would commit.
        connection.run(&format!("DELETE FROM {}", name.quoted()))?;
    }
    let mut loader = Loader::new(encoders, load.schema.clone(), destination.quoted(), &server);
    loader.try_file(connection)?;
    Ok(loader)
}

/// The table whose columns the rows have: the one that is there, or a new one.
fn prepared(
    connection: &mut Connection,
    load: &Load,
    name: &Name,
    server: &Server,
    undo: &mut Undo,
) -> Result<Name> {
    if load.makes_table() {
        return newcomer(connection, load, name, server, undo);
    }
    let existing = table::existing(connection, name)?;
    table::check(name, existing.as_ref())?;
    if load.if_exists == IfExists::Truncate {
        check_cascades(connection, name)?;
    }
    Ok(name.clone())
}

/// A new table.
fn newcomer(
    connection: &mut Connection,
    load: &Load,
    name: &Name,
    server: &Server,
    undo: &mut Undo,
) -> Result<Name> {
    // What is there is looked at once no other session can change it.
    let lock = create::lock(connection, name)?;
    let made = takes_place(connection, load, name).and_then(|replaces| {
        NewTable::make(connection, load, name, replaces, server, undo.beside.as_ref(), lock.clone())
    });
    match made {
        Ok(newcomer) => Ok(undo.newcomer.insert(newcomer).new.clone()),
        Err(error) => {
            create::unlock(connection, &lock);
            Err(error)
        }
    }
}

/// Whether the new table takes the place of another; an error where it may not.
fn takes_place(connection: &mut Connection, load: &Load, name: &Name) -> Result<bool> {
    let existing = table::existing(connection, name)?;
    match load.if_exists {
        IfExists::Replace => create::check_replaceable(name, existing.as_ref()),
        _ => create::check_absent(name, existing.as_ref()).map(|()| false),
    }
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
fn check_cascades(connection: &mut Connection, name: &Name) -> Result<()> {
    let pointing = create::pointing(connection, name)?;
    let changes = |rule: &str| ["CASCADE", "SET NULL", "SET DEFAULT"].contains(&rule);
    let keys: Vec<String> =
        pointing.into_iter().filter(|(_, rule)| changes(rule)).map(|(key, _)| key).collect();
    if keys.is_empty() {
        return Ok(());
    }
    let text = format!(
        "without the rows of {}, foreign keys would change those of other tables: {}",
        name.shown(),
        keys.join(", ")
    );
    Err(Error::new(Kind::Integrity, text)
        .with_hint("use if_exists=\"upsert\", or drop the foreign keys first"))
}

fn begin_transaction(connection: &mut Connection, before: Transaction) -> Result<Begun> {
    if before == Transaction::Open {
        connection.run("SAVEPOINT longshore_write")?;
        return Ok(Begun::Savepoint);
    }
    connection.run("START TRANSACTION")?;
    Ok(Begun::Transaction)
}

impl Undo {
    /// Leaves all as it was; tells whether the session is ready for the next statement.
    fn all(&mut self, connection: &mut Connection) -> bool {
        let is_hurried = self.is_hurried || connection.check().is_err();
        let watch = is_hurried.then(|| connection.replace_watch(cleanup()));
        let is_good =
            connection.stop() && self.rows(connection).and_then(|()| self.tables(connection)).is_ok();
        let is_good = self.settings(connection, is_good);
        if let Some(watch) = watch {
            connection.replace_watch(watch);
        }
        is_good
    }

    /// A Ctrl-C is told once.
    fn note(&mut self, error: &Error) {
        self.is_hurried |= matches!(error.kind(), Kind::Interrupted | Kind::Cancelled | Kind::Timeout);
    }

    fn rows(&mut self, connection: &mut Connection) -> Result<()> {
        match std::mem::take(&mut self.transaction) {
            Begun::Nothing => Ok(()),
            // With the new table the rows go, too, and faster.
            Begun::Transaction if self.newcomer.is_some() => connection.run("COMMIT"),
            Begun::Transaction => {
                connection.forget_loss();
                connection.run("ROLLBACK")
            }
            // The owner hears of the loss.
            Begun::Savepoint if connection.transaction() != Transaction::Open => Ok(()),
            Begun::Savepoint => {
                connection.run("ROLLBACK TO SAVEPOINT longshore_write")?;
                connection.run("RELEASE SAVEPOINT longshore_write")
            }
        }
    }

    fn tables(&mut self, connection: &mut Connection) -> Result<()> {
        if let Some(stage) = self.stage.take() {
            stage.drop(connection)?;
        }
        match (self.newcomer.take(), self.beside.take()) {
            (None, None) => Ok(()),
            (Some(newcomer), None) => newcomer.undo(connection),
            (newcomer, Some(beside)) => {
                let dropped = beside.drop(connection);
                if let Some(newcomer) = newcomer {
                    newcomer.end(connection);
                }
                dropped
            }
        }
    }

    /// A session that keeps settings of ours is of no more use.
    fn settings(&mut self, connection: &mut Connection, is_good: bool) -> bool {
        let restored = self.server.take().map_or(Ok(()), |server| server.end(connection));
        if !is_good || restored.is_err() {
            connection.give_up();
        }
        connection.is_usable()
    }
}

/// A write that goes on.
struct Writing {
    /// Gone at its end.
    session: Option<MySqlSession>,
    loader: Loader,
    undo: Undo,
}

impl Writing {
    fn take(&mut self) -> Result<MySqlSession> {
        self.session.take().ok_or_else(|| Error::internal("a write without its session"))
    }

    fn finish(&mut self, connection: &mut Connection) -> Result<()> {
        self.loader.flush(connection)?;
        if let Some(stage) = &self.undo.stage {
            stage.merge(connection)?;
        }
        match self.undo.transaction {
            Begun::Savepoint => connection.run("RELEASE SAVEPOINT longshore_write")?,
            _ => connection.run("COMMIT")?,
        }
        self.undo.transaction = Begun::Nothing;
        if let Some(newcomer) = &self.undo.newcomer {
            newcomer.swap(connection)?;
            newcomer.end(connection);
            self.undo.newcomer = None;
        }
        Ok(())
    }

    fn end(&mut self) -> Option<MySqlSession> {
        let mut session = self.session.take()?;
        // One who does not want to wait has the file's statement stopped.
        if !self.undo.is_hurried && session.connection.check().is_ok() {
            self.loader.abandon(&mut session.connection);
        }
        self.undo.all(&mut session.connection).then_some(session)
    }
}

impl Sink for Writing {
    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut session = self.take()?;
        let pushed = self.loader.push(&mut session.connection, batch);
        self.session = Some(session);
        pushed.inspect_err(|error| self.undo.note(error))
    }

    fn commit(mut self: Box<Self>) -> Result<Written, Failed> {
        let mut session = self.take()?;
        match self.finish(&mut session.connection) {
            Ok(()) => {
                // Nothing is left to be undone but the stage and the settings.
                self.undo.all(&mut session.connection);
                Ok(Written { rows: self.loader.rows(), session: Box::new(session) })
            }
            Err(error) => {
                self.undo.note(&error);
                let is_good = self.undo.all(&mut session.connection);
                Err(Failed { error, session: is_good.then(|| Box::new(session) as Box<dyn Session>) })
            }
        }
    }

    fn abort(mut self: Box<Self>) -> Option<Box<dyn Session>> {
        self.end().map(|session| Box::new(session) as Box<dyn Session>)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        drop(self.end());
    }
}
