//! The traits that a source implements: driver, session, batches.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};

use crate::{Query, ReadOptions, Result, Target, Watch};

/// A source's entry in the registry.
pub trait Driver: Send + Sync {
    /// The URL schemes that name this driver, in lower case.
    fn schemes(&self) -> &'static [&'static str];

    /// Opens a session, every wait of which looks at `watch`.
    fn connect(&self, target: &Target, watch: &Watch) -> Result<Box<dyn Session>>;
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

    /// The columns that `query` would return, without running it.
    fn describe(&mut self, query: &Query, options: &ReadOptions) -> Result<Vec<Column>>;

    /// Runs `query`; the batches own the session until they give it back.
    fn read(self: Box<Self>, query: &Query, options: &ReadOptions) -> Result<Box<dyn Batches>>;

    /// From here on, every read sees the database as it is now.
    fn begin_snapshot(&mut self) -> Result<()>;

    /// Ends what [`Session::begin_snapshot`] began.
    fn end_snapshot(&mut self) -> Result<()>;

    /// A handle that stops what this session runs, from any thread.
    fn canceller(&self) -> Arc<dyn Cancel>;
}

/// A whole result whose schema is final.
pub type Settled = (SchemaRef, Vec<RecordBatch>);

/// A result on its way. Ends only after the server's own end marker; otherwise yields `Err`.
///
/// Dropped before its end, it cancels the statement on the server.
pub trait Batches: Iterator<Item = Result<RecordBatch>> + Send {
    /// The schema of every batch.
    fn schema(&self) -> SchemaRef;

    /// Whether the schema is final before the last batch.
    fn is_settled(&self) -> bool {
        true
    }

    /// Gives columns whose source has no type of their own the one that fits the `batches` of the whole
    /// result (see [`crate::Decimals::Settled`]). `schema` is theirs: [`Batches::schema`], or the same with fewer
    /// promises. The default leaves them as they are.
    fn settle(&self, schema: &Schema, batches: Vec<RecordBatch>) -> Result<Settled> {
        Ok((Arc::new(schema.clone()), batches))
    }

    /// Gives the session back after the last batch.
    fn into_session(self: Box<Self>) -> Result<Box<dyn Session>>;
}

/// Stops a running statement from another thread.
pub trait Cancel: Send + Sync {
    /// Asks the server to stop; returns when the request has been delivered.
    fn cancel(&self) -> Result<()>;
}
