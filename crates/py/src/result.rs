//! `sql`: a result of the engine on its way to the frame that was asked for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use longshore_core::{Batches, Error, Kind, OnOdd, Relay, Result, Session, Watch};
use longshore_engine::{Apart, Exported, Odds, error_of};
use longshore_frames::{double_batch, double_schema, integer_schema, polars_refusal};
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::{raise, wrap};
use crate::incoming;
use crate::progress::Progress;
use crate::read::Reading;
use crate::signals::once_more;
use crate::switch::{Switch, reading_watch};

/// Has the engine begin, and returns the result on its way.
///
/// `stream` has `__arrow_c_stream__`. `cancel` stops the engine, from any thread; `close` is called once, when the engine
/// is not needed any more. `policy` holds the words of the type policy; `longshore.engine.result` has checked them.
/// `failed` is called after a failure of the engine's, and gives the exception that made it fail, where there is one.
#[pyfunction]
#[pyo3(signature = (stream, *, policy, cancel, close, failed, switch))]
// The interpreter gives values.
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn open_result(
    py: Python<'_>,
    stream: Py<PyAny>,
    policy: BTreeMap<String, String>,
    cancel: Py<PyAny>,
    close: Option<Py<PyAny>>,
    failed: Option<Py<PyAny>>,
    switch: Switch,
) -> PyResult<Reading> {
    let engine = Engine { cancel: Arc::new(Cancel(cancel)), close };
    let failure = Failure(failed);
    let progress = Arc::new(Progress::new(None, Arc::default()));
    let watch = reading_watch(py, None, switch.clone(), progress.clone())?;
    let is = |key: &str, word: &str| policy.get(key).is_some_and(|value| value == word);
    let odd = |key: &str| if is(key, "null") { OnOdd::Null } else { OnOdd::Error };
    let odds = Odds { infinity: odd("infinity"), time_24: odd("time_24"), uuid_text: is("uuid", "text") };
    let opened = py.detach(|| {
        let exported = Exported::new(begun(stream, &engine.cancel, &failure, &watch)?, odds);
        let schema = exported.schema();
        if is("frame", "polars") {
            polars_refusal(&schema).map_or(Ok(()), Err)?;
        }
        let schema = match policy.get("frame").map(String::as_str) {
            Some("pandas") if is("decimals", "float64") => double_schema(&schema, &[]),
            Some("numpy") => integer_schema(&schema),
            _ => schema,
        };
        let batches = Box::new(Blaming { batches: under(Box::new(exported), schema), failure });
        Running::start(batches, engine, &watch)
    });
    Ok(Reading::of(Box::new(opened.map_err(raise)?), None, watch, switch, progress))
}

/// What stops the engine.
struct Cancel(Py<PyAny>);

impl Cancel {
    fn call(&self) {
        // An engine that cannot be stopped any more has ended. Without an interpreter there is none.
        let _ = Python::try_attach(|py| self.0.call0(py).map(drop));
    }
}

/// What gives the exception that made the engine fail.
struct Failure(Option<Py<PyAny>>);

impl Failure {
    /// The exception behind `error`, or the error itself.
    fn behind(&self, error: Error) -> Error {
        let Some(failure) = &self.0 else { return error };
        let noted = Python::try_attach(|py| {
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
        let _ = Python::try_attach(|py| {
            match close.call0(py) {
                Err(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => once_more(),
                Err(error) => error.write_unraisable(py, Some(close.bind(py))),
                Ok(_) => {}
            }
            drop(close);
        });
    }
}

/// Has the engine begin, on a thread of its own: it answers when it has its first rows, and this one hears Ctrl-C.
fn begun(stream: Py<PyAny>, cancel: &Cancel, failure: &Failure, watch: &Watch) -> Result<Apart> {
    let (sender, receiver) = sync_channel(1);
    let run = move || {
        let begun = Python::try_attach(|py| {
            let capsule = stream.into_bound(py).call_method0("__arrow_c_stream__")?;
            taken(capsule.cast::<PyCapsule>()?)
        });
        // Who does not wait any more has been told why.
        let _ = begun.map(|begun| sender.send(begun));
    };
    let thread = thread::Builder::new().name("longshore-engine".into()).spawn(run);
    let thread = thread.map_err(|error| Error::operational("no thread can be started").with_source(error))?;
    let begun = awaited(&receiver, cancel, failure, watch);
    // It has sent its answer, or has panicked and is told of below.
    let _ = thread.join();
    begun
}

/// The engine's stream in a capsule.
#[allow(unsafe_code)]
fn taken(capsule: &Bound<'_, PyCapsule>) -> PyResult<Apart> {
    let stream = incoming::stream(capsule)?;
    // SAFETY: it is the engine's own, or pyarrow's over it; both keep to the interface.
    unsafe { Apart::new(stream) }.map_err(incoming::invalid)
}

fn awaited<T>(
    receiver: &Receiver<PyResult<T>>,
    cancel: &Cancel,
    failure: &Failure,
    watch: &Watch,
) -> Result<T> {
    let mut wanted = Ok(());
    loop {
        match receiver.recv_timeout(watch.slice()) {
            Ok(begun) => return wanted.and(begun.map_err(|error| failure.behind(refused(error)))),
            Err(RecvTimeoutError::Timeout) => {
                wanted = wanted.and_then(|()| watch.check());
                if wanted.is_err() {
                    // Again and again: an engine that has not begun forgets that it was to stop.
                    cancel.call();
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return wanted.and(Err(Error::internal("the thread that begins the query has panicked")));
            }
        }
    }
}

/// The engine's own exceptions by what they say; another's is the one to raise.
fn refused(error: PyErr) -> Error {
    Python::attach(|py| {
        let class = error.get_type(py);
        let module = class.getattr("__module__").and_then(|module| module.extract::<String>());
        let is_engines = module.is_ok_and(|module| module.trim_start_matches('_').starts_with("duckdb"));
        let is_plain = error.is_instance_of::<PyException>(py);
        match error.value(py).str() {
            Ok(text) if is_engines && is_plain => error_of(&text.to_string_lossy()),
            _ => wrap(Kind::Interrupted, error),
        }
    })
}

/// The same batches, whose errors are those behind the engine's.
struct Blaming {
    batches: Box<dyn Batches>,
    failure: Failure,
}

impl Iterator for Blaming {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.batches.next()?.map_err(|error| self.failure.behind(error)))
    }
}

impl Batches for Blaming {
    fn schema(&self) -> SchemaRef {
        self.batches.schema()
    }

    fn into_session(self: Box<Self>) -> Option<Box<dyn Session>> {
        None
    }
}

/// A result that is read ahead on a thread of its own.
struct Running {
    relay: Relay,
    /// Dropped after what reads from it.
    _engine: Engine,
}

impl Running {
    fn start(batches: Box<dyn Batches>, engine: Engine, watch: &Watch) -> Result<Self> {
        let cancel = engine.cancel.clone();
        let relay = Relay::start(batches, watch, move || cancel.call())?;
        Ok(Self { relay, _engine: engine })
    }
}

impl Iterator for Running {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.relay.next()
    }
}

impl Batches for Running {
    fn schema(&self) -> SchemaRef {
        self.relay.schema()
    }

    fn into_session(self: Box<Self>) -> Option<Box<dyn Session>> {
        None
    }
}

/// The same batches with a frame's own types for decimals.
fn under(batches: Box<dyn Batches>, schema: SchemaRef) -> Box<dyn Batches> {
    if batches.schema() == schema {
        return batches;
    }
    Box::new(Retyped { batches, schema, rows: 0 })
}

struct Retyped {
    batches: Box<dyn Batches>,
    schema: SchemaRef,
    /// Rows that went before.
    rows: u64,
}

impl Iterator for Retyped {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batches.next()?;
        let retyped = batch.and_then(|batch| double_batch(&batch, &self.schema, self.rows));
        self.rows += retyped.as_ref().map_or(0, |batch| batch.num_rows() as u64);
        Some(retyped)
    }
}

impl Batches for Retyped {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn into_session(self: Box<Self>) -> Option<Box<dyn Session>> {
        None
    }
}
