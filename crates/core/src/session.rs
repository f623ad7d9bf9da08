//! The traits that a source implements: driver, session, batches.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};

use crate::{
    Division, Error, Kind, Load, Placeholders, Query, ReadOptions, Result, Sink, Split, Stage, Target, Watch,
};

/// How long it may take to end a transaction that its owner no longer waits for.
pub(crate) const ENDING: Duration = Duration::from_secs(2);

/// What to do with a text of several statements where one is wanted.
pub const SEVERAL: &str =
    "several statements are Connection.execute_script's; before a query they go into pre_execution_query";

/// A source's entry in the registry.
pub trait Driver: Send + Sync {
    /// The URL schemes that name this driver, in lower case.
    fn schemes(&self) -> &'static [&'static str];

    /// Opens a session, every wait of which looks at `watch`.
    fn connect(&self, target: &Target, watch: &Watch) -> Result<Box<dyn Session>>;

    /// Whether a read gains by parts that no one asked for: where further sessions are no burden to a server.
    fn divides_unasked(&self) -> bool {
        false
    }
}

/// One column of a result, as the database describes it.
#[derive(Clone, Debug)]
pub struct Column {
    /// The Arrow field: name, type, nullability, metadata.
    pub field: Field,
    /// The database's own name of the type, with its modifiers.
    pub native_type: String,
}

/// One connection to a database.
pub trait Session: Send {
    /// Runs `statement` and throws its result away: settings before a query.
    fn run(&mut self, statement: &str) -> Result<()>;

    /// Runs one statement with its parameters, and returns the number of rows that it changed or returned, where
    /// the server tells one. Rows that it returns are thrown away.
    fn execute(&mut self, query: &Query) -> Result<Option<u64>>;

    /// Runs the statements of `script` in their order, as the source itself tells them apart, and throws their rows away.
    /// With `begins`, a transaction is begun first where none is open. An error says which statement has failed, from 1;
    /// those after it have not run.
    fn run_script(&mut self, _script: &str, _begins: bool) -> Result<()> {
        Err(Error::new(Kind::NotSupported, "this source runs one statement at a time"))
    }

    /// The columns that `query` would return, without running it.
    fn describe(&mut self, query: &Query, options: &ReadOptions) -> Result<Vec<Column>>;

    /// How many rows `query` will return, as far as the server can say without running it.
    fn estimate(&mut self, query: &Query) -> Result<Option<u64>>;

    /// Divides `queries` into disjoint parts that together are exhaustive, NULLs included. One query is divided
    /// as `split` says; several are the caller's own parts.
    ///
    /// With parts, this session has a transaction open that keeps their snapshot and their tables as they are,
    /// until [`Session::commit`]; it must be ended last. Without, it is as it was.
    fn split(&mut self, queries: &[Query], split: &Split, options: &ReadOptions) -> Result<Division>;

    /// From here on, this session sees what the session that gave `snapshot` away sees. So many `sessions` join it, all
    /// at about the same time: a source may have them wait for one another.
    fn join_snapshot(&mut self, snapshot: &str, sessions: usize) -> Result<()>;

    /// Called now and then while nothing comes from the sessions that joined this one's snapshot: lets those pass that
    /// wait for somebody who waits for this session.
    fn let_waiters_pass(&mut self) -> Result<()> {
        Ok(())
    }

    /// Runs `query`; the batches own the session until they give it back.
    fn read(self: Box<Self>, query: &Query, options: &ReadOptions) -> Result<Box<dyn Batches>, Failed>;

    /// Begins the transaction that a write is to be a part of, where its owner has none open yet. A source in which a new
    /// table ends every transaction begins none for one.
    fn begin_write(&mut self, _load: &Load) -> Result<()> {
        self.begin()
    }

    /// Starts to write rows into a table; the sink owns the session until it gives it back. In a transaction that is open
    /// the write is a part of that; else it is a transaction of its own.
    fn write(self: Box<Self>, load: &Load) -> Result<Box<dyn Sink>, Failed>;

    /// Why only one session can write at a time; `None` where several can.
    fn writes_alone(&self) -> Option<&'static str> {
        None
    }

    /// Makes a table for the rows of `load` that several sessions can fill at once. Its owner is this session, for as long
    /// as it lives; `helper` is another session, for what others must see at once.
    fn stage(self: Box<Self>, _load: &Load, _helper: &mut dyn Session) -> Result<Box<dyn Stage>, Failed> {
        Err(Error::new(Kind::NotSupported, "several sessions cannot write here at once").into())
    }

    /// Begins a transaction in which each of `queries` sees the database as it is now.
    fn begin_snapshot(&mut self, queries: &[Query]) -> Result<()>;

    /// Begins a transaction as the server does by default.
    fn begin(&mut self) -> Result<()>;

    /// Ends the transaction; an error where it could only be rolled back, which it then is. Nothing where none is
    /// open.
    fn commit(&mut self) -> Result<()>;

    /// Ends the transaction, and undoes what it did. Nothing where none is open.
    fn rollback(&mut self) -> Result<()>;

    /// Whether `statement` only changes settings, so that every session of a read may run it.
    fn is_setting(&self, statement: &str) -> bool;

    /// How parameters are written by position, for the hints of errors.
    fn placeholders(&self) -> Placeholders {
        Placeholders::QuestionMarks
    }

    /// Whether the next statement can be sent.
    fn is_usable(&self) -> bool;

    /// Whether a transaction is open.
    fn transaction(&self) -> Transaction;

    /// Makes a session that others have used like new.
    fn reset(&mut self) -> Result<()>;

    /// Begins to serve another caller: from here on, every wait looks at `watch`, and what others may have changed
    /// in the database meanwhile is learnt again.
    fn attend(&mut self, watch: &Watch);
}

/// The session without its transaction; `None` where it is lost. The caller's own deadline may be why the transaction
/// ends, and does not count here.
pub(crate) fn released(mut session: Box<dyn Session>) -> Option<Box<dyn Session>> {
    session.attend(&Watch::never().at_most(ENDING));
    session.rollback().is_ok().then_some(session)
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transaction {
    /// No transaction is open.
    None,
    /// One is open.
    Open,
    /// One is open in which a statement has failed: it can only be rolled back.
    Failed,
}

/// A read that failed, and the session that it leaves where that can be used again.
pub struct Failed {
    /// Why.
    pub error: Error,
    /// The session, ready for the next statement.
    pub session: Option<Box<dyn Session>>,
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        failed.error
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self { error, session: None }
    }
}

/// A whole result whose schema is final.
pub type Finalised = (SchemaRef, Vec<RecordBatch>);

/// Gives columns whose source has no type of their own the one that fits a whole result (see
/// [`crate::Decimals::Inferred`]).
pub trait Finaliser: Send + Sync {
    /// The `batches` of the whole result under their final schema. `schema` is theirs: [`Batches::schema`], or the
    /// same with fewer promises.
    fn finalise(&self, schema: &Schema, batches: Vec<RecordBatch>) -> Result<Finalised>;
}

/// A result on its way. Ends only after the server's own end marker; otherwise yields `Err`.
///
/// Dropped before its end, it cancels the statement on the server.
pub trait Batches: Iterator<Item = Result<RecordBatch>> + Send {
    /// The schema of every batch.
    fn schema(&self) -> SchemaRef;

    /// What makes the schema final; `None` where it is final before the last batch.
    fn finaliser(&self) -> Option<Arc<dyn Finaliser>> {
        None
    }

    /// Gives the session back, ready for the next statement; what still runs on it is cancelled first. `None` where
    /// it is lost.
    fn into_session(self: Box<Self>) -> Option<Box<dyn Session>>;
}
