//! The traits that a source implements: driver, session and its capabilities, batches.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};

use crate::{
    CatalogueQueries, Deadline, Error, Load, Params, Placeholders, Query, ReadOptions, Result, Sink,
    SourceOption, Split, SplitPlan, Stage, TableName, Target,
};

/// How long it may take to end a transaction that its owner no longer waits for.
pub(crate) const ENDING: Duration = Duration::from_secs(2);

/// The hint for a text of several statements where one is wanted.
pub const SEVERAL: &str =
    "several statements are Connection.execute_script's; before a query they go into pre_execution_query";

/// Why a session that has not the capability splits nothing.
pub const NOT_SPLIT: &str = "the source reads a query over one connection";

/// Why a session that has not the capability tells nothing of parameters.
pub const NOT_PREPARED: &str = "the source does not tell their types";

/// Why a session that has not the capability keeps no snapshot for others.
const NOT_LEASED: &str = "the source has no snapshot that other processes can join";

/// A source's entry in the registry.
pub trait Driver: Send + Sync {
    /// The URL schemes that name this driver, in lower case.
    fn schemes(&self) -> Vec<&str>;

    /// The name of the database that URLs of a scheme lead to, for users to choose by.
    fn database<'a>(&'a self, scheme: &'a str) -> &'a str {
        scheme
    }

    /// Opens a session, every wait of which looks at `deadline`.
    fn connect(&self, target: &Target, deadline: &Deadline) -> Result<Box<dyn Session>>;

    /// The keys of `options=` that are this source's own.
    fn options(&self) -> Vec<SourceOption> {
        Vec::new()
    }

    /// Whether a read gains by parts that no one asked for: where further sessions are no burden to a server.
    fn splits_automatically(&self) -> bool {
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

/// Sets of parameters, some at a time.
pub type ParameterSets<'a> = dyn Iterator<Item = Result<Vec<Params>>> + 'a;

/// The error of a commit of a transaction that could only be rolled back, which it is.
#[must_use]
pub fn not_committed(sqlstate: &str) -> Error {
    Error::operational("nothing was committed: a statement of the transaction had failed")
        .with_sqlstate(sqlstate)
        .with_hint("the transaction is rolled back; repeat it from its start")
}

/// One connection to a database. What not every source can do is a capability: [`Splitting`], [`Leasing`],
/// [`Preparing`], [`Scripting`], [`Loading`].
pub trait Session: Send {
    /// Runs one statement with its parameters, and returns the number of rows that it changed or returned, where
    /// the server tells one. Rows that it returns are thrown away.
    fn execute(&mut self, query: &Query) -> Result<Option<u64>>;

    /// The columns that `query` would return, without running it.
    fn describe(&mut self, query: &Query, options: &ReadOptions) -> Result<Vec<Column>>;

    /// Runs `query`; the batches own the session until they give it back. A statement without rows is an error, unless the
    /// options ask for any statement: then it gives [`NoRows`].
    fn read(self: Box<Self>, query: &Query, options: &ReadOptions) -> Result<Box<dyn Batches>, Failed>;

    /// Runs one statement with each set of parameters, and returns how many rows all of them changed, where the server tells
    /// it. A transaction is open.
    fn execute_many(&mut self, text: &str, sets: &mut ParameterSets<'_>) -> Result<Option<u64>> {
        let mut rows = Some(0);
        for sets in sets {
            for params in sets? {
                let changed = self.execute(&Query { text: text.to_owned(), params })?;
                rows = rows.zip(changed).map(|(rows, changed)| rows + changed);
            }
        }
        Ok(rows)
    }

    /// Whether a transaction is open.
    fn transaction(&self) -> Transaction;

    /// Whether the next statement can be sent.
    fn is_usable(&self) -> bool;

    /// Makes a session that others have used like new.
    fn reset(&mut self) -> Result<()>;

    /// Begins to serve another caller: from here on, every wait looks at `deadline`, and what others may have changed
    /// in the database meanwhile is learnt again.
    fn set_deadline(&mut self, deadline: &Deadline);

    /// The session as one that writes tables; itself where the source is only read.
    fn loading(self: Box<Self>) -> Result<Box<dyn Loading>, Box<dyn Session>>;

    /// The capability to split a read, or why one session reads it all.
    fn splitting(&mut self) -> Result<&mut dyn Splitting, String> {
        Err(NOT_SPLIT.into())
    }

    /// The capability to keep a snapshot for other processes, or why there is none.
    fn leasing(&mut self) -> Result<&mut dyn Leasing, String> {
        Err(NOT_LEASED.into())
    }

    /// The capability to tell the types of parameters, or why there are none.
    fn preparing(&mut self) -> Result<&mut dyn Preparing, String> {
        Err(NOT_PREPARED.into())
    }

    /// The queries of the catalogue; `None` where the source does not list what the database holds.
    fn catalogue_queries(&self) -> Option<CatalogueQueries> {
        None
    }

    /// The name of a table for a statement.
    fn qualified_name(&self, table: &TableName) -> String {
        let quoted = |part: &String| format!("\"{}\"", part.replace('"', "\"\""));
        table.schema.iter().chain([&table.table]).map(quoted).collect::<Vec<_>>().join(".")
    }

    /// The capability to run a script of several statements.
    fn scripting(&mut self) -> Option<&mut dyn Scripting> {
        None
    }

    /// The statements by which transactions begin and end.
    fn statements(&self) -> TransactionStatements {
        TransactionStatements::default()
    }

    /// How parameters are written by position, for the hints of errors.
    fn placeholders(&self) -> Placeholders {
        Placeholders::QuestionMarks
    }

    /// Runs `statement` and throws its result away: settings before a query.
    fn run(&mut self, statement: &str) -> Result<()> {
        self.execute(&Query::new(statement)).map(drop)
    }

    /// Whether a transaction is begun for `statement`: not for one that does nothing, or fails, within one.
    fn begins_for(&self, _statement: &str) -> bool {
        true
    }

    /// Begins a transaction as the server does by default.
    fn begin(&mut self) -> Result<()> {
        self.run(&self.statements().begin)
    }

    /// Begins a transaction whose statements see one snapshot, in a source that splits nothing.
    fn begin_unsplit(&mut self) -> Result<()> {
        self.begin()
    }

    /// Ends the transaction; an error where it could only be rolled back, which it then is. Nothing where none is
    /// open.
    fn commit(&mut self) -> Result<()> {
        match self.transaction() {
            Transaction::None => Ok(()),
            Transaction::Open => self.run(&self.statements().commit),
            Transaction::Failed => self.rollback().and(Err(not_committed("40000"))),
        }
    }

    /// Ends the transaction, and undoes what it did. Nothing where none is open.
    fn rollback(&mut self) -> Result<()> {
        if self.transaction() == Transaction::None { Ok(()) } else { self.run(&self.statements().rollback) }
    }
}

/// Parts of a read, in one snapshot of the database.
pub trait Splitting {
    /// Divides `queries` into disjoint parts that together are exhaustive, NULLs included. One query is divided
    /// as `split` says; several are the caller's own parts.
    ///
    /// With parts, this session has a transaction open that keeps their snapshot and their tables as they are,
    /// until [`Session::commit`]; it must be ended last. Without, it is as it was.
    fn split(&mut self, queries: &[Query], split: &Split, options: &ReadOptions) -> Result<SplitPlan>;

    /// From here on, this session sees what the session that gave `snapshot` away sees. So many `sessions` join it, all
    /// at about the same time: a source may have them wait for one another.
    fn join_snapshot(&mut self, snapshot: &str, sessions: usize) -> Result<()>;

    /// Begins a transaction, which only reads where the source knows such, in which each of `queries` sees the database
    /// as it is now.
    fn begin_snapshot(&mut self, queries: &[Query]) -> Result<()>;

    /// Begins a transaction in which `query`, which may be a stranger's, writes nothing. The session is used for nothing else.
    fn begin_reading(&mut self, query: &Query) -> Result<()> {
        self.begin_snapshot(std::slice::from_ref(query))
    }

    /// Whether `statement` only changes settings, so that every session of a read may run it.
    fn is_setting(&self, statement: &str) -> bool;

    /// Called now and then while nothing comes from the sessions that joined this one's snapshot: lets those pass that
    /// wait for somebody who waits for this session.
    fn let_waiters_pass(&mut self) -> Result<()> {
        Ok(())
    }

    /// How many rows `query` will return, as far as the server can say without running it.
    fn estimate(&mut self, _query: &Query) -> Result<Option<u64>> {
        Ok(None)
    }
}

/// Parts of a read for sessions of other processes, in one snapshot of the database.
pub trait Leasing {
    /// The state of this session that others would not have, if any: they would read something else.
    fn private_state(&mut self) -> Result<Option<String>>;

    /// Divides `query` as [`Splitting::split`] does, but what is small is one part, too. This session keeps the snapshot until
    /// its transaction ends. The snapshot's text says how to join it, and holds no secret.
    fn lease(&mut self, query: &Query, split: &Split, options: &ReadOptions) -> Result<SplitPlan>;

    /// Has this session read `query`, one of the parts, in a snapshot of [`Leasing::lease`]; an error where that is kept no
    /// longer. [`Session::commit`] is to follow, which fails where the part has met other tables than the parts before it.
    fn join_lease(&mut self, snapshot: &str, query: &Query) -> Result<()>;
}

/// The parameters of statements.
pub trait Preparing {
    /// The parameters of `statement`, in their order, each by the name or the number that it has there. It is not run.
    fn parameters(&mut self, statement: &str, options: &ReadOptions) -> Result<Vec<Column>>;
}

/// Scripts: texts of several statements.
pub trait Scripting {
    /// Runs the statements of `script` in their order, as the source itself tells them apart, and throws their rows away.
    /// With `begins`, a transaction is begun first where none is open. An error says which statement has failed, from 1;
    /// those after it have not run.
    fn run_script(&mut self, script: &str, begins: bool) -> Result<()>;
}

/// Rows into tables.
pub trait Loading: Session {
    /// Starts to write rows into a table; the sink owns the session until it gives it back. In a transaction that is open
    /// the write is a part of that; else it is a transaction of its own.
    fn write(self: Box<Self>, load: &Load) -> Result<Box<dyn Sink>, Failed>;

    /// Begins the transaction that a write is to be a part of, where its owner has none open yet. A source in which a new
    /// table ends every transaction begins none for one.
    fn begin_write(&mut self, _load: &Load) -> Result<()> {
        self.begin()
    }

    /// Why only one session can write at a time; `None` where several can.
    fn writes_alone(&self) -> Option<String> {
        Some("the source writes over one connection".into())
    }

    /// Makes a table for the rows of `load` that several sessions can fill at once. Its owner is this session, for as long
    /// as it lives; `helper` is another session, for what others must see at once.
    fn stage(self: Box<Self>, _load: &Load, _helper: &mut dyn Session) -> Result<Box<dyn Stage>, Failed> {
        Err(Error::internal("the source has no staging table for several sessions").into())
    }
}

/// The statements of transactions, in the words of the database that a session is connected to.
#[derive(Clone, Debug)]
pub struct TransactionStatements {
    /// Begins one.
    pub begin: Cow<'static, str>,
    /// Ends it.
    pub commit: Cow<'static, str>,
    /// Undoes it.
    pub rollback: Cow<'static, str>,
}

impl Default for TransactionStatements {
    fn default() -> Self {
        Self { begin: "BEGIN".into(), commit: "COMMIT".into(), rollback: "ROLLBACK".into() }
    }
}

/// The session as one that writes.
pub(crate) fn loading(session: Box<dyn Session>) -> Result<Box<dyn Loading>, Failed> {
    session.loading().map_err(|session| Failed {
        error: Error::not_supported("this source is only read")
            .with_hint("write by the URL of the database, such as sqlite:///data/a.db"),
        session: Some(session),
    })
}

/// The session without its transaction; `None` where it is lost. The caller's own deadline may be why the transaction
/// ends, and does not count here.
pub(crate) fn without_transaction(mut session: Box<dyn Session>) -> Option<Box<dyn Session>> {
    session.set_deadline(&Deadline::never().at_most(ENDING));
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

    /// One batch as objects are made of it, each of which keeps its own value where no one type holds them all as they are.
    fn objects(&self, schema: &Schema, batch: RecordBatch) -> Result<RecordBatch> {
        let (_, mut batches) = self.finalise(schema, vec![batch])?;
        batches.pop().ok_or_else(|| Error::internal("a batch has gone while it got its types"))
    }
}

/// A result on its way. Ends only after the server's own end marker; otherwise yields `Err`.
///
/// Dropped before its end, it cancels the statement on the server.
pub trait Batches: Iterator<Item = Result<RecordBatch>> + Send {
    /// The schema of every batch.
    fn schema(&self) -> SchemaRef;

    /// The finaliser of the schema; `None` where it is final before the last batch.
    fn finaliser(&self) -> Option<Arc<dyn Finaliser>> {
        None
    }

    /// The effect of the statement, where it is one without rows.
    fn effect(&self) -> Option<Done> {
        None
    }

    /// Whether the transaction that the statement is part of fails if the statement is stopped before its end.
    fn fails_transaction(&self) -> bool {
        false
    }

    /// Why the result comes over one connection, where the server was asked for parts of it and has given none.
    fn not_split(&self) -> Option<String> {
        None
    }

    /// Gives the session back, ready for the next statement; what still runs on it is cancelled first. `None` where
    /// it is lost.
    fn into_session(self: Box<Self>) -> Option<Box<dyn Session>>;
}

/// The effect of a statement without rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// How many rows it changed, where the server tells it.
    pub rows: Option<u64>,
    /// The number that the database has given to the last of its new rows, where it does.
    pub last_row: Option<i128>,
}

/// The batches of a statement without rows: none.
pub struct NoRows {
    /// The statement's effect.
    pub done: Done,
    /// The session that has run it.
    pub session: Box<dyn Session>,
}

impl Iterator for NoRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        None
    }
}

impl Batches for NoRows {
    fn schema(&self) -> SchemaRef {
        Arc::new(Schema::empty())
    }

    fn effect(&self) -> Option<Done> {
        Some(self.done)
    }

    fn into_session(self: Box<Self>) -> Option<Box<dyn Session>> {
        Some(self.session)
    }
}

/// Batches that are there already, and the session that was asked, where there is one.
pub struct Collected {
    /// The columns.
    pub schema: SchemaRef,
    /// As [`Batches::finaliser`] gives it.
    pub finaliser: Option<Arc<dyn Finaliser>>,
    /// The batches.
    pub batches: std::vec::IntoIter<RecordBatch>,
    /// The session that was asked.
    pub session: Option<Box<dyn Session>>,
}

impl Collected {
    /// A result of one batch.
    #[must_use]
    pub fn one(batch: RecordBatch, session: Box<dyn Session>) -> Self {
        let schema = batch.schema();
        Self { schema, finaliser: None, batches: vec![batch].into_iter(), session: Some(session) }
    }
}

impl Iterator for Collected {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batches.next().map(Ok)
    }
}

impl Batches for Collected {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn finaliser(&self) -> Option<Arc<dyn Finaliser>> {
        self.finaliser.clone()
    }

    fn into_session(self: Box<Self>) -> Option<Box<dyn Session>> {
        self.session
    }
}
