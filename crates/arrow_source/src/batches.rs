//! A driver's stream as a result: the type policy over its batches.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use longshore_core::{
    Batches, Error, Failed, Finaliser, Kind, NATIVE_TYPE, ReadAhead, ReadOptions, Result, Session,
    Transaction, Uuids,
};
use longshore_duckdb::{EngineBatches, ValueOptions, stream_error};
use longshore_interpreter::ColumnStream;
use longshore_interpreter::capsule::stream_in;
use longshore_retype::Policy;
use pyo3::prelude::*;

use crate::call::apart;
use crate::session::ArrowSession;

/// A result whose first rows are there, and what only its driver knows of it.
pub(crate) struct DriverResult {
    stream: ColumnStream,
    /// The labels of each ENUM, in the order of the types.
    labels: Vec<Vec<String>>,
    native_types: Vec<String>,
}

impl DriverResult {
    /// Runs the query behind what a driver's `read` or `describe` gives.
    #[allow(unsafe_code)]
    pub(crate) fn new(result: &Bound<'_, PyAny>) -> PyResult<Result<Self>> {
        let (rows, native_types, labels): (Bound<'_, PyAny>, _, _) = result.extract()?;
        let stream = stream_in(rows.call_method0("__arrow_c_stream__")?.cast()?)?;
        // SAFETY: a driver that hands out such a capsule keeps to the interface.
        let stream = rows.py().detach(|| unsafe { ColumnStream::new(stream) });
        Ok(stream.map(|stream| Self { stream, labels, native_types }).map_err(|error| stream_error(&error)))
    }

    pub(crate) fn schema(self, options: &ReadOptions) -> Result<SchemaRef> {
        let batches = self.exact(options);
        Policy::new(&batches.schema(), options).map(|policy| policy.schema())
    }

    fn exact(self, options: &ReadOptions) -> EngineBatches<Named> {
        let values = ValueOptions {
            infinity: options.infinity,
            time_24: options.time_24,
            uuid_text: options.uuid == Uuids::Text,
        };
        EngineBatches::new(Named::new(self.stream, &self.native_types), values, self.labels)
    }
}

/// A stream whose fields have their native types' names.
struct Named {
    stream: ColumnStream,
    schema: SchemaRef,
}

impl Named {
    fn new(stream: ColumnStream, native_types: &[String]) -> Self {
        let named = |(at, field): (usize, &Arc<Field>)| {
            let mut metadata = field.metadata().clone();
            let told =
                || metadata.iter().find(|(key, _)| key.ends_with(":typname") || key.ends_with(":type"));
            if let Some(name) = native_types.get(at).or_else(|| told().map(|(_, name)| name)).cloned() {
                metadata.insert(NATIVE_TYPE.to_owned(), name);
            }
            field.as_ref().clone().with_metadata(metadata)
        };
        let schema = Schema::new(stream.schema().fields().iter().enumerate().map(named).collect::<Vec<_>>());
        Self { stream, schema: Arc::new(schema) }
    }
}

impl Iterator for Named {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.stream.next()
    }
}

impl RecordBatchReader for Named {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// How long rows that are given up may take to end a statement, where to stop it would undo its transaction.
const GRACE: Duration = Duration::from_millis(100);

/// A result that is read ahead on a thread of its own.
pub(crate) struct ArrowBatches {
    /// `None` once it has ended.
    read_ahead: Option<ReadAhead>,
    session: Option<Box<ArrowSession>>,
    policy: Policy,
    /// The most rows of a batch.
    most: usize,
    /// The rest of a driver's batch that has more rows than the caller wants.
    rest: Option<RecordBatch>,
}

impl ArrowBatches {
    pub(crate) fn start(
        session: Box<ArrowSession>,
        begun: DriverResult,
        options: &ReadOptions,
    ) -> Result<Self, Failed> {
        let batches = begun.exact(options);
        let policy = match Policy::new(&batches.schema(), options) {
            Ok(policy) => policy,
            Err(error) => {
                drop(batches);
                return Err(Failed { error, session: session.left() });
            }
        };
        let handle = session.handle.clone();
        let undoes = handle.attribute("undoes_what_is_stopped", |undoes| undoes.extract());
        let grace = (undoes == Some(true)).then_some(GRACE);
        match ReadAhead::start(Box::new(batches), &session.deadline, grace, move || _ = handle.cancel()) {
            Ok(read_ahead) => Ok(Self {
                read_ahead: Some(read_ahead),
                session: Some(session),
                policy,
                most: options.batch_rows.max(1),
                rest: None,
            }),
            Err(error) => Err(Failed { error, session: session.left() }),
        }
    }
}

impl ArrowBatches {
    /// Ends the reading; the session's next call waits for a driver that does not obey at once.
    fn end(&mut self) {
        let Some(read_ahead) = self.read_ahead.take() else { return };
        if let Some(session) = &self.session
            && session.handle.is_usable()
            && let Some(work) = apart(move || drop(read_ahead))
        {
            session.handle.leave(work);
        }
    }

    /// As many rows as a batch may have; the others wait, so that those before a fault arrive.
    fn first_rows(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let (all, most) = (batch.num_rows(), self.most);
        if all <= most {
            return self.policy.batch(batch);
        }
        self.rest = Some(batch.slice(most, all - most));
        self.policy.batch(&batch.slice(0, most))
    }

    /// The driver's next batch, or what is left of the one before.
    fn next_rows(&mut self) -> Option<Result<RecordBatch>> {
        if let Some(session) = &self.session
            && let Err(error) = session.handle.check("result")
        {
            return Some(Err(error));
        }
        if let Some(rest) = self.rest.take() {
            return Some(Ok(rest));
        }
        let mut next = self.read_ahead.as_mut()?.next();
        if let (Some(Err(error)), Some(session)) = (&mut next, &self.session)
            && let Some(told) = session.handle.fail()
            && is_drivers(error)
        {
            *error = told;
        }
        next
    }
}

/// Whether an error may be the driver's text: the caller's end of the read, and a value with its place, are not.
fn is_drivers(error: &Error) -> bool {
    !matches!(error.kind(), Kind::Interrupted | Kind::Cancelled | Kind::Timeout)
        && error.place().column.is_none()
}

impl Iterator for ArrowBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_rows().map(|batch| batch.and_then(|batch| self.first_rows(&batch)));
        if !matches!(next, Some(Ok(_))) {
            self.rest = None;
            self.end();
        }
        next
    }
}

impl Drop for ArrowBatches {
    fn drop(&mut self) {
        self.end();
    }
}

impl Batches for ArrowBatches {
    fn schema(&self) -> SchemaRef {
        self.policy.schema()
    }

    fn finaliser(&self) -> Option<Arc<dyn Finaliser>> {
        self.policy.finaliser()
    }

    /// The driver's database decides what becomes of a stopped statement: PostgreSQL's transaction fails, and the engine's.
    fn fails_transaction(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.transaction() == Transaction::Open)
    }

    fn into_session(mut self: Box<Self>) -> Option<Box<dyn Session>> {
        self.end();
        self.session.take()?.left()
    }
}
