//! Rows into a table, by COPY, all of them or none.

mod beside;
mod binary;
mod create;
mod fit;
mod keeps;
mod numeric;
mod place;
mod replace;
mod rows;
mod stage;
mod swift;
mod target;
mod text;
mod upsert;
mod value;

use longshore_core::{Error, Failed, IfExists, Load, Result, Session, Sink, TableName, Transaction, Written};
use rows::Rows;
use target::Target;

use crate::dialect::quoted_name;
use crate::session::PostgresSession;

pub(crate) use stage::open as open_stage;

/// The name of the savepoint that a write in its owner's transaction has.
const SAVEPOINT: &str = "longshore_write";

/// The longest name, in bytes (`NAMEDATALEN` less its end).
const LONGEST: usize = 63;

/// A write on its way.
pub(crate) struct CopySink {
    session: PostgresSession,
    rows: Rows,
    ending: Ending,
    /// Whether the transaction is the write's own.
    is_own: bool,
}

/// What is left to do once all rows are there.
enum Ending {
    Nothing,
    /// The new table gets its primary key.
    Key(String),
    Replace(replace::Replacement),
    Upsert(upsert::Upsert),
}

/// Begins to write.
pub(crate) fn open(mut session: PostgresSession, load: &Load) -> Result<Box<dyn Sink>, Failed> {
    let is_own = session.transaction() == Transaction::None;
    if let Err(error) = names_fit(load).and_then(|()| start(&mut session, is_own)) {
        // Nothing has begun that would have to be undone.
        let session = session.connection.stop().then(|| Box::new(session) as Box<dyn Session>);
        return Err(Failed { error, session });
    }
    match begin(&mut session, load) {
        Ok((rows, ending)) => Ok(Box::new(CopySink { session, rows, ending, is_own })),
        Err(error) => Err(Failed { error, session: undone(session, is_own) }),
    }
}

fn start(session: &mut PostgresSession, is_own: bool) -> Result<()> {
    session.used = true;
    session.connection.simple(&if is_own { "BEGIN".to_owned() } else { format!("SAVEPOINT {SAVEPOINT}") })
}

/// Refuses names that the server would cut: another table could have what is left.
fn names_fit(load: &Load) -> Result<()> {
    let table = load.table.schema.iter().chain([&load.table.table]);
    let columns = load.schema.fields().iter().map(|field| field.name());
    let Some(name) = table.chain(columns).find(|name| name.len() > LONGEST) else { return Ok(()) };
    Err(Error::interface(format!(
        "the name {name:?} has {} bytes, PostgreSQL's have {LONGEST} at most",
        name.len()
    ))
    .with_hint("shorten it: the server would cut it"))
}

fn begin(session: &mut PostgresSession, load: &Load) -> Result<(Rows, Ending)> {
    target::must_be_postgresql(session)?;
    let name = quoted(&load.table);
    let (into, ending) = match load.if_exists {
        IfExists::Fail => (name.clone(), create::table(session, load, &name)?),
        IfExists::Append => (name.clone(), Ending::Nothing),
        IfExists::Truncate => {
            target::must_exist(session, load, &name)?;
            session.connection.simple(&format!("TRUNCATE {name}"))?;
            (name.clone(), Ending::Nothing)
        }
        IfExists::Replace => replace::begin(session, load, &name)?,
        IfExists::Upsert => upsert::begin(session, load, &name)?,
    };
    let target = Target::describe(session, load, &into)?;
    let rows = Rows::new(load, &target);
    session.connection.begin_copy(&rows.statement(&into, &target))?;
    Ok((rows, ending))
}

/// The session with everything undone; `None` where it is lost.
fn undone(mut session: PostgresSession, is_own: bool) -> Option<Box<dyn Session>> {
    undo(&mut session, is_own).then(|| Box::new(session) as Box<dyn Session>)
}

/// Undoes everything; tells whether the session can be used on.
fn undo(session: &mut PostgresSession, is_own: bool) -> bool {
    if !session.connection.stop() {
        return false;
    }
    session.catalogue.forget_all();
    let undo = if is_own {
        "ROLLBACK".to_owned()
    } else {
        format!("ROLLBACK TO SAVEPOINT {SAVEPOINT}; RELEASE SAVEPOINT {SAVEPOINT}")
    };
    session.connection.undo(&undo).is_ok()
}

/// The name for a statement.
fn quoted(table: &TableName) -> String {
    match &table.schema {
        Some(schema) => format!("{}.{}", quoted_name(schema), quoted_name(&table.table)),
        None => quoted_name(&table.table),
    }
}

fn quoted_list(names: &[String]) -> String {
    names.iter().map(|name| quoted_name(name)).collect::<Vec<_>>().join(", ")
}

impl CopySink {
    fn end(&mut self) -> Result<()> {
        self.rows.end(&mut self.session.connection)?;
        match &self.ending {
            Ending::Nothing => {}
            Ending::Key(statement) => self.session.connection.simple(statement)?,
            Ending::Replace(replacement) => replacement.end(&mut self.session)?,
            Ending::Upsert(upsert) => upsert.end(&mut self.session)?,
        }
        let done = if self.is_own { "COMMIT".to_owned() } else { format!("RELEASE SAVEPOINT {SAVEPOINT}") };
        self.session.connection.simple(&done)
    }
}

impl Sink for CopySink {
    fn push(&mut self, batch: &arrow_array::RecordBatch) -> Result<()> {
        self.rows.push(batch, &mut self.session.connection)
    }

    fn commit(mut self: Box<Self>) -> Result<Written, Failed> {
        match self.end() {
            Ok(()) => {
                self.session.catalogue.forget_all();
                Ok(Written { rows: self.rows.count(), session: Box::new(self.session) })
            }
            Err(error) => Err(Failed { error, session: self.abort() }),
        }
    }

    fn abort(self: Box<Self>) -> Option<Box<dyn Session>> {
        undone(self.session, self.is_own)
    }
}
