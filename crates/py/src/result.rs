//! `sql`: a result of the engine on its way to the frame that was asked for.

use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use longshore_core::memory::release_reserve;
use longshore_core::{
    Batches, Deadline, Decimals, Error, Kind, Process, Progress, ReadAhead, Result, Session, Uuids, Warnings,
    lock,
};
use longshore_duckdb::{EngineBatches, ValueOptions, stream_error};
use longshore_interpreter::ColumnStream;
use longshore_interpreter::capsule::stream_in;
use longshore_retype::{double_batch, double_schema, integer_schema, polars_refusal};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::interrupt::{CancelHandle, reading_deadline};
use crate::limit::Limit;
use crate::policy::{Frame, Policy};
use crate::read::Reading;
use longshore_arrow_source::apart;
use longshore_interpreter::with_lock;
use longshore_interpreter::{raise, wrap};

/// Returns the result on its way, of an engine that has begun.
///
/// `cancel` stops the engine, from any thread; `close` is called once, when the engine
/// is not needed any more.
/// `labels` are those of each ENUM, in the order of the result's types.
/// `failed` is called after a failure of the engine's, and gives the exception that made it fail, where there is one.
#[pyfunction]
#[pyo3(signature = (begun, *, policy, labels, memory_limit, cancel, close, failed, cancel_handle))]
// One call from one place, by keyword; the interpreter gives values.
#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)]
pub(crate) fn open_result(
    py: Python<'_>,
    begun: &Bound<'_, EngineStream>,
    policy: Policy,
    labels: Vec<Vec<String>>,
    memory_limit: Option<Limit>,
    cancel: Py<PyAny>,
    close: Option<Py<PyAny>>,
    failed: Option<Py<PyAny>>,
    cancel_handle: CancelHandle,
) -> PyResult<Reading> {
    let engine = Engine { cancel: Arc::new(Cancel(cancel)), close };
    let failure = Failure(failed);
    let progress = Progress::new(None, Arc::default());
    let deadline = reading_deadline(py, None, cancel_handle, progress.clone());
    let begun = begun.get().take().ok_or_else(|| raise(Error::internal("the result was taken before")));
    let (begun, deadline) = match begun.and_then(|begun| deadline.map(|deadline| (begun, deadline))) {
        Ok(both) => both,
        Err(error) => {
            py.detach(|| drop(engine));
            return Err(error);
        }
    };
    let options = &policy.options;
    let policies = ValueOptions {
        infinity: options.infinity,
        time_24: options.time_24,
        uuid_text: options.uuid == Uuids::Text,
    };
    let warnings = Arc::<Warnings>::default();
    let opened = py.detach(|| {
        let exported = EngineBatches::new(begun, policies, labels);
        let framed = for_frame(Box::new(exported), &policy, &warnings, move |error| failure.behind(error))?;
        Running::start(framed, engine, &deadline)
    });
    let budget = Limit::budget(memory_limit, policy.is_stream());
    Ok(Reading::of(Box::new(opened.map_err(raise)?), budget, deadline, progress, warnings))
}

/// Exact batches as a frame has them; an error goes through `behind`.
pub(crate) fn for_frame(
    batches: Box<dyn Batches>,
    policy: &Policy,
    warnings: &Arc<Warnings>,
    mut behind: impl FnMut(Error) -> Error + Send + 'static,
) -> Result<Box<dyn Batches>> {
    let Policy { frame, options } = policy;
    let schema = batches.schema();
    if *frame == Frame::Polars {
        polars_refusal(&schema).map_or(Ok(()), Err)?;
    }
    let schema = match frame {
        Frame::Pandas if options.decimals == Decimals::Float64 => double_schema(&schema, &[]),
        Frame::Numpy => integer_schema(&schema),
        _ => schema,
    };
    let (own, warnings, mut rows) = (schema.clone(), warnings.clone(), 0);
    let change = move |batch: Result<RecordBatch>| {
        let batch = batch.map_err(&mut behind)?;
        let before = rows;
        rows += batch.num_rows() as u64;
        double_batch(&batch, &own, before, &warnings)
    };
    Ok(Box::new(Changed { batches, schema, change }))
}

/// The handle that stops the engine.
struct Cancel(Py<PyAny>);

impl Cancel {
    fn call(&self) {
        // An engine that cannot be stopped any more has ended. Without an interpreter there is none.
        let _ = with_lock(|py| self.0.call0(py).map(drop));
    }
}

/// The callable that gives the exception that made the engine fail.
struct Failure(Option<Py<PyAny>>);

impl Failure {
    /// The exception behind `error`, or the error itself.
    fn behind(&self, error: Error) -> Error {
        let Some(failure) = &self.0 else { return error };
        let noted = with_lock(|py| {
            let noted = failure.bind(py).call0()?;
            PyResult::Ok((!noted.is_none()).then(|| PyErr::from_value(noted)))
        });
        match noted {
            Some(Ok(Some(noted)) | Err(noted)) => wrap(Kind::Operational, noted),
            Some(Ok(None)) | None => error,
        }
    }
}

/// The engine behind one result.
struct Engine {
    cancel: Arc<Cancel>,
    close: Option<Py<PyAny>>,
}

impl Drop for Engine {
    fn drop(&mut self) {
        let Some(close) = self.close.take() else { return };
        let close = move || {
            release_reserve();
            let _ = with_lock(|py| {
                if let Err(error) = close.call0(py) {
                    error.write_unraisable(py, Some(close.bind(py)));
                }
                drop(close);
            });
        };
        apart(close);
    }
}

/// The stream of an engine that has its first rows.
#[pyclass(frozen, module = "longshore._core")]
pub(crate) struct EngineStream(Mutex<Option<ColumnStream>>);

#[pymethods]
impl EngineStream {
    /// Waits for the rows behind the capsule of a stream: on a thread that hears no signals.
    #[new]
    #[allow(unsafe_code)]
    fn new(py: Python<'_>, capsule: &Bound<'_, PyCapsule>) -> PyResult<Self> {
        let stream = stream_in(capsule)?;
        // SAFETY: it is the engine's own, or pyarrow's over it; both keep to the interface.
        let begun = py.detach(|| unsafe { ColumnStream::new(stream) });
        begun.map(|begun| Self(Mutex::new(Some(begun)))).map_err(|error| raise(stream_error(&error)))
    }
}

impl EngineStream {
    fn take(&self) -> Option<ColumnStream> {
        lock(&self.0).take()
    }
}

impl Drop for EngineStream {
    fn drop(&mut self) {
        if let Some(begun) = self.take() {
            apart(move || drop(begun));
        }
    }
}

/// Batches under another schema, as `change` makes them.
struct Changed<F> {
    batches: Box<dyn Batches>,
    schema: SchemaRef,
    change: F,
}

impl<F: FnMut(Result<RecordBatch>) -> Result<RecordBatch>> Iterator for Changed<F> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batches.next().map(&mut self.change)
    }
}

impl<F: FnMut(Result<RecordBatch>) -> Result<RecordBatch> + Send> Batches for Changed<F> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn into_session(self: Box<Self>) -> Option<Box<dyn Session>> {
        None
    }
}

/// A result that is read ahead on a thread of its own.
struct Running {
    /// The engine is dropped after what reads from it.
    result: Option<(ReadAhead, Engine)>,
    schema: SchemaRef,
    /// A forked child has none of the engine's threads.
    process: Process,
}

impl Running {
    fn start(batches: Box<dyn Batches>, engine: Engine, deadline: &Deadline) -> Result<Self> {
        let (schema, cancel) = (batches.schema(), engine.cancel.clone());
        let read_ahead = ReadAhead::start(batches, deadline, None, move || cancel.call())?;
        Ok(Self { result: Some((read_ahead, engine)), schema, process: Process::current() })
    }
}

impl Iterator for Running {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.result.as_mut()?.0.next();
        if next.is_none() {
            self.result = None;
        }
        next
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(running) = self.result.take() else { return };
        if !self.process.is_current() {
            // A forked child has none of its parent's threads; and one that it begins may find the memory of those, which
            // glibc keeps for the next, half written.
            std::mem::forget(running);
            return;
        }
        // The engine may wait for what the caller's own objects do.
        apart(move || drop(running));
    }
}

impl Batches for Running {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn into_session(self: Box<Self>) -> Option<Box<dyn Session>> {
        None
    }
}
