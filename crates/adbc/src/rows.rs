//! Results on their way, whose errors keep their status until the stream is asked for them.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adbc_core::error::{Error as AdbcError, Result};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use longshore_core::{
    CancelHandle, Connection, Deadline, Delivery, Done, Error, LiveResult, Never, Opened, Progress, Query,
    ReadOptions, Request, Split, Warnings, locked, open_read,
};

use crate::error::adbc_error;

/// What has ended a stream.
pub(crate) type Failure = Arc<Mutex<Option<AdbcError>>>;

thread_local! {
    /// What will end the stream that was made last on this thread: the exporter hands on no more than its text.
    static LAST: RefCell<Option<Failure>> = const { RefCell::new(None) };
}

/// The failure of the stream that was made last on this thread, if it can have one.
pub(crate) fn last_failure() -> Option<Failure> {
    LAST.take()
}

/// What stops the call that is under way, from any thread.
#[derive(Clone, Default)]
pub(crate) struct Cancel(Arc<Mutex<CancelHandle>>);

impl Cancel {
    /// The deadline of the next call.
    pub(crate) fn deadline(&self, timeout: Option<Duration>) -> Deadline {
        let handle = CancelHandle::default();
        *locked(&self.0) = handle.clone();
        Deadline::new(Arc::new(Never), timeout).cancelled_by(handle)
    }
}

impl adbc_core::CancelHandle for Cancel {
    fn try_cancel(&self) -> Result<()> {
        locked(&self.0).cancel();
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
        let request = Request {
            setup: Vec::new(),
            queries: vec![query],
            split: self.split.clone(),
            delivery: Delivery::Ordered,
            estimate: false,
            options: self.options.clone(),
        };
        let Opened { batches, .. } =
            open_read(&self.connection, &request, &self.deadline).map_err(adbc_error)?;
        let done = batches.done();
        let progress = Progress::new(None, Arc::default());
        let live = LiveResult::new(batches, self.deadline.clone(), progress, Arc::default(), unwarned);
        Ok((live, done))
    }
}

// ADBC has no warnings.
#[allow(clippy::unnecessary_wraps)]
fn unwarned(_warnings: &Warnings) -> longshore_core::Result<()> {
    Ok(())
}

/// The rows of a statement, run with one set of parameters after another.
pub(crate) struct Rows {
    schema: SchemaRef,
    live: Option<LiveResult>,
    rest: std::vec::IntoIter<Query>,
    reading: Reading,
    failure: Failure,
}

impl Rows {
    /// Runs the first of `queries`, which differ in their parameters alone.
    pub(crate) fn open(reading: Reading, queries: Vec<Query>) -> Result<Self> {
        let mut rest = queries.into_iter();
        let first = rest.next().ok_or_else(|| {
            adbc_error(Error::programming("no set of parameters is bound").with_hint("bind one row at least"))
        })?;
        let (live, done) = reading.open(first)?;
        let failure = Failure::default();
        let mut rows = Self { schema: live.schema(), live: Some(live), rest, reading, failure };
        if done.is_some() {
            // A statement without rows is run with all its parameters at once.
            while let Some(batch) = rows.next_batch()? {
                drop(batch);
            }
        }
        LAST.set(Some(rows.failure.clone()));
        Ok(rows)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(live) = &mut self.live {
            if let Some(batch) = live.next_batch().map_err(adbc_error)? {
                return Ok(Some(batch));
            }
            self.live = self.rest.next().map(|query| self.following(query)).transpose()?;
        }
        Ok(None)
    }

    fn following(&self, query: Query) -> Result<LiveResult> {
        let (live, _) = self.reading.open(query)?;
        if live.schema().fields() == self.schema.fields() {
            return Ok(live);
        }
        let error = Error::data("the result has other types with other parameters");
        Err(adbc_error(
            error.with_hint("cast the columns in the query, so that their types are always the same"),
        ))
    }
}

impl Iterator for Rows {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next_batch() {
            Ok(batch) => batch.map(Ok),
            Err(error) => {
                self.live = None;
                let text = error.message.clone();
                *locked(&self.failure) = Some(error);
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
        let _ = catch_unwind(AssertUnwindSafe(|| drop(live)));
    }
}
