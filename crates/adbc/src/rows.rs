//! Results on their way, whose errors keep their status until the stream is asked for them.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adbc_core::error::{Error as AdbcError, Result};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use longshore_core::{
    CancelHandle, Connection, Deadline, Done, Error, LiveResult, Never, Opened, Progress, Query, ReadOptions,
    Request, Split, Transaction, Warnings, lock, open_read,
};

use crate::error::adbc_error;

/// The error that has ended a stream.
pub(crate) type Failure = Arc<Mutex<Option<AdbcError>>>;

thread_local! {
    /// The error that will end the stream that was made last on this thread: the exporter hands on no more than its text.
    static LAST: RefCell<Option<Failure>> = const { RefCell::new(None) };
}

/// The failure of the stream that was made last on this thread, if it can have one.
pub(crate) fn last_failure() -> Option<Failure> {
    LAST.take()
}

/// The handle that stops the call under way, from any thread.
#[derive(Clone, Default)]
pub(crate) struct Cancel(Arc<Mutex<CancelHandle>>);

impl Cancel {
    /// The deadline of the next call.
    pub(crate) fn deadline(&self, timeout: Option<Duration>) -> Deadline {
        let handle = CancelHandle::default();
        *lock(&self.0) = handle.clone();
        Deadline::new(Arc::new(Never), timeout).with_cancel_handle(handle)
    }
}

impl adbc_core::CancelHandle for Cancel {
    fn try_cancel(&self) -> Result<()> {
        lock(&self.0).cancel();
        Ok(())
    }
}

/// How a statement's rows are read.
#[derive(Clone)]
pub(crate) struct Reading {
    pub(crate) connection: Arc<Connection>,
    pub(crate) deadline: Deadline,
    pub(crate) options: ReadOptions,
    pub(crate) split: Option<Split>,
}

impl Reading {
    /// Runs any statement, with rows or without.
    fn open(&self, query: Query) -> Result<(LiveResult, Option<Done>)> {
        let request =
            Request { split: self.split.clone(), ..Request::unsplit(vec![query], self.options.clone()) };
        let opened = open_read(&self.connection, &request, &self.deadline).map_err(adbc_error)?;
        Ok(live(opened, self.deadline.clone()))
    }
}

/// A result on its way, and what it has done where it has no rows.
pub(crate) fn live(opened: Opened, deadline: Deadline) -> (LiveResult, Option<Done>) {
    let done = opened.batches.effect();
    let progress = Progress::new(None, Arc::default());
    (LiveResult::new(opened.batches, deadline, progress, Arc::default(), drop_warnings), done)
}

// ADBC has no warnings.
#[allow(clippy::unnecessary_wraps)]
fn drop_warnings(_warnings: &Warnings) -> longshore_core::Result<()> {
    Ok(())
}

/// The rows of a statement.
pub(crate) struct Rows {
    schema: SchemaRef,
    /// The batches of runs that are over.
    batches: std::vec::IntoIter<RecordBatch>,
    live: Option<LiveResult>,
    failure: Failure,
}

impl Rows {
    /// Runs `query`.
    pub(crate) fn open(reading: &Reading, query: Query) -> Result<Self> {
        let (live, done) = reading.open(query)?;
        let mut rows = Self::live(live);
        if done.is_some() {
            while let Some(batch) = rows.next_batch()? {
                drop(batch);
            }
        }
        Ok(rows)
    }

    /// The rows of a result whose failure the caller of this thread may ask for.
    pub(crate) fn live(live: LiveResult) -> Self {
        let rows = Self::of(live.schema(), Vec::new(), Some(live));
        LAST.set(Some(rows.failure.clone()));
        rows
    }

    /// Runs each of `queries`, which differ in their parameters alone: whether the rows are read or not, all are run.
    /// Where no transaction is open, they are one.
    pub(crate) fn open_all(reading: &Reading, queries: Vec<Query>) -> Result<Self> {
        let connection = &reading.connection;
        let is_own = connection.transaction() == Some(Transaction::None);
        if is_own {
            connection.begin(&reading.deadline).map_err(adbc_error)?;
        }
        let ran = collect(reading, queries).and_then(|ran| {
            if is_own && connection.commits_each() {
                connection.commit(&reading.deadline).map_err(adbc_error)?;
            }
            Ok(ran)
        });
        if is_own && ran.is_err() {
            // What the error is about matters more; a session that is lost tells it to the next statement.
            let _ = connection.undo();
        }
        let (schema, batches) = ran?;
        Ok(Self::of(schema, batches, None))
    }

    /// No rows.
    pub(crate) fn none(schema: SchemaRef) -> Self {
        Self::of(schema, Vec::new(), None)
    }

    fn of(schema: SchemaRef, batches: Vec<RecordBatch>, live: Option<LiveResult>) -> Self {
        Self { schema, batches: batches.into_iter(), live, failure: Failure::default() }
    }

    /// The next batch. After an error there is that error for ever: no end would be the proper one.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let failed = lock(&self.failure).clone();
        if let Some(error) = failed {
            return Err(error);
        }
        if let Some(batch) = self.batches.next() {
            return Ok(Some(batch));
        }
        let Some(live) = &mut self.live else { return Ok(None) };
        let batch = live.next_batch().map_err(adbc_error)?;
        if batch.is_none() {
            self.live = None;
        }
        Ok(batch)
    }
}

/// The batches that each of `queries` returns, which have the same columns.
fn collect(reading: &Reading, queries: Vec<Query>) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let mut schema: Option<SchemaRef> = None;
    let mut batches = Vec::new();
    for query in queries {
        let (mut live, _) = reading.open(query)?;
        let columns = schema.get_or_insert_with(|| live.schema());
        if live.schema().fields() != columns.fields() {
            let error = Error::data("the result has other types with other parameters");
            return Err(adbc_error(
                error.with_hint("cast the columns in the query, so that their types are always the same"),
            ));
        }
        while let Some(batch) = live.next_batch().map_err(adbc_error)? {
            batches.push(batch);
        }
    }
    Ok((schema.unwrap_or_else(|| Arc::new(Schema::empty())), batches))
}

impl Iterator for Rows {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next_batch() {
            Ok(batch) => batch.map(Ok),
            Err(error) => {
                self.live = None;
                let text = error.message.clone();
                *lock(&self.failure) = Some(error);
                Some(Err(ArrowError::ExternalError(text.into())))
            }
        }
    }
}

impl RecordBatchReader for Rows {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        // A panic must not cross the interface that releases the stream.
        let live = self.live.take();
        let _ = catch_unwind(AssertUnwindSafe(|| live.map(LiveResult::give_up)));
    }
}
