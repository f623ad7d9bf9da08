//! Results that are read while they are consumed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::{Array, RecordBatch, RecordBatchReader, StructArray};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, SchemaRef};
use longshore_core::{Batches, Error, Kind, Result, Warnings, Watch};
use longshore_frames::{
    Choices, Column, Columns, double_batch, double_schema, polars_batch, polars_refusal, polars_schema,
};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::error::raise;
use crate::progress::Progress;
use crate::read::backend_named;
use crate::signals;
use crate::switch::Switch;
use crate::table::capsule;
use crate::warn::warn;
use longshore_arrow_source::attached;

/// A result on its way, taken batch by batch or handed over as a whole.
#[pyclass(frozen, module = "longshore._core")]
pub(crate) struct Stream {
    schema: SchemaRef,
    switch: Switch,
    watch: Watch,
    warnings: Arc<Warnings>,
    slot: Mutex<Slot>,
    /// Told whenever the slot is not busy any more.
    turn: Condvar,
}

/// The most columns that its `repr` names.
const SHOWN: usize = 10;

enum Slot {
    Live(Live),
    /// A thread waits for a batch, or makes something of one.
    Busy(ThreadId),
    /// Why nothing more can be taken.
    Gone(&'static str),
}

impl Stream {
    pub(crate) fn new(live: Live, switch: Switch) -> Self {
        let (schema, watch, warnings) = (live.schema.clone(), live.watch.clone(), live.warnings.clone());
        Self { schema, switch, watch, warnings, slot: Mutex::new(Slot::Live(live)), turn: Condvar::new() }
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the live result, when it is this thread's turn. What waits for a batch, and calls back into Python meanwhile,
    /// holds no lock.
    fn take(&self) -> Result<Live> {
        let own = thread::current().id();
        let mut slot = self.slot();
        loop {
            match &*slot {
                Slot::Live(_) => {}
                Slot::Busy(thread) if *thread == own => return Err(reentered()),
                Slot::Busy(_) => {
                    let waited = self.turn.wait_timeout(slot, self.watch.slice());
                    slot = waited.unwrap_or_else(PoisonError::into_inner).0;
                    self.watch.check()?;
                    continue;
                }
                Slot::Gone(why) => return Err(gone(why)),
            }
            if let Slot::Live(live) = std::mem::replace(&mut *slot, Slot::Busy(own)) {
                return Ok(live);
            }
        }
    }

    /// Puts the result back, unless the stream was closed meanwhile.
    fn put_back(&self, live: Live) {
        let mut slot = self.slot();
        let kept = matches!(*slot, Slot::Busy(_));
        let left = if kept { std::mem::replace(&mut *slot, Slot::Live(live)) } else { Slot::Live(live) };
        drop(slot);
        self.turn.notify_all();
        // To stop a query takes a round trip: no one should wait for the slot meanwhile.
        drop(left);
    }

    fn next_batch(&self) -> Result<Option<RecordBatch>> {
        Ok(self.next_from()?.map(|(_, batch)| batch))
    }

    /// The next batch, and how many rows went before it.
    fn next_from(&self) -> Result<Option<(u64, RecordBatch)>> {
        let mut live = self.take()?;
        let before = live.rows;
        let next = live.next_batch();
        self.put_back(live);
        Ok(next?.map(|batch| (before, batch)))
    }

    /// What was made of a batch; without it, what follows must not look like the rest.
    fn kept<T>(&self, made: Result<T>) -> Result<T> {
        if made.is_err() {
            self.end("has failed");
        }
        made
    }

    /// What has become of it.
    fn state(&self) -> &'static str {
        match &*self.slot() {
            Slot::Live(Live { state: State::Running(_), .. }) => "is open",
            Slot::Live(Live { state: State::Ended, .. }) => "has ended",
            Slot::Live(Live { state: State::Failed, .. }) => "has failed",
            Slot::Busy(_) => "is being read",
            Slot::Gone(why) => why,
        }
    }

    fn end(&self, why: &'static str) {
        let ended = std::mem::replace(&mut *self.slot(), Slot::Gone(why));
        if matches!(ended, Slot::Busy(_)) {
            // Who waits for a batch hears of it.
            self.switch.cancel();
        }
        self.turn.notify_all();
    }
}

/// The columns of one `batch`, which has `before` rows of the result before it.
fn columns(
    batch: &RecordBatch,
    before: u64,
    choices: Choices,
    exact: Option<&[String]>,
    warnings: &Arc<Warnings>,
) -> Result<Columns> {
    let (mut schema, mut batch) = (batch.schema(), batch.clone());
    if let Some(exact) = exact {
        schema = double_schema(&schema, exact);
        batch = double_batch(&batch, &schema, before, warnings)?;
    }
    let mut columns = Columns::new(schema, &choices)?.after(before);
    columns.push(&batch)?;
    Ok(columns)
}

fn reentered() -> Error {
    Error::interface("the stream is asked for a batch while it waits for one")
        .with_hint("do not read a stream from its own progress callable or from a signal handler")
}

fn gone(why: &str) -> Error {
    Error::interface(format!("the stream {why}")).with_hint("read it again")
}

#[pymethods]
impl Stream {
    /// The stream itself, once. The consumer casts if it wants another schema.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let taken = py.detach(|| {
            let live = self.take()?;
            *self.slot() = Slot::Gone("has been handed over");
            self.turn.notify_all();
            Ok(live)
        });
        capsule(py, Box::new(taken.map_err(raise)?))
    }

    /// The schema, as often as wanted.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    /// The schema, which does not keep the stream alive.
    fn schema(&self) -> Schema {
        Schema(self.schema.clone())
    }

    /// The next batch; `None` after the last.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        py.detach(|| self.next_batch()).map(|batch| batch.map(Batch)).map_err(raise)
    }

    /// The next batch in the types and names that polars takes.
    fn next_for_polars(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let next = py.detach(|| {
            polars_refusal(&self.schema).map_or(Ok(()), Err)?;
            let Some(batch) = self.next_batch()? else { return Ok(None) };
            let batch = polars_batch(&batch, &polars_schema(&self.schema));
            self.kept(batch.map(Some))
        });
        next.map(|batch| batch.map(Batch)).map_err(raise)
    }

    /// The next batch as finished columns, and the number of its rows.
    ///
    /// Decimals become doubles, save in the columns of the names `exact`; `None` for all of them.
    #[pyo3(signature = (*, backend, arrow_strings, json_objects, exact))]
    // The interpreter gives values.
    #[allow(clippy::needless_pass_by_value)]
    fn next_columns(
        &self,
        py: Python<'_>,
        backend: &str,
        arrow_strings: bool,
        json_objects: bool,
        exact: Option<Vec<String>>,
    ) -> PyResult<Option<(Vec<Column>, u64)>> {
        let choices = Choices { backend: backend_named(backend), arrow_strings, json_objects };
        let filled = py.detach(|| {
            let Some((before, batch)) = self.next_from()? else { return Ok(None) };
            self.kept(columns(&batch, before, choices, exact.as_deref(), &self.warnings).map(Some))
        });
        let Some(columns) = filled.map_err(raise)? else { return Ok(None) };
        let rows = columns.rows();
        Ok(Some((columns.finish(py)?, rows)))
    }

    /// Stops the query on the server, from any thread; who waits for a batch gets an error.
    fn cancel(&self, py: Python<'_>) {
        self.switch.cancel();
        py.detach(|| self.end("was cancelled"));
    }

    /// Its columns and its state; of many columns, the first.
    fn __repr__(&self) -> String {
        let fields = self.schema.fields();
        let mut names: Vec<&str> = fields.iter().take(SHOWN).map(|field| field.name().as_str()).collect();
        if fields.len() > SHOWN {
            names.push("...");
        }
        format!("<Stream ({}) {}>", names.join(", "), self.state())
    }

    /// Stops the query on the server where it still runs.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.end("is closed"));
    }
}

/// The schema of a result.
#[pyclass(frozen, module = "longshore._core")]
pub(crate) struct Schema(pub(crate) SchemaRef);

#[pymethods]
impl Schema {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0)
    }
}

/// One record batch.
#[pyclass(frozen, module = "longshore._core")]
pub(crate) struct Batch(pub(crate) RecordBatch);

#[pymethods]
impl Batch {
    /// The batch as a struct array, as often as wanted.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        drop(requested_schema);
        let array = FFI_ArrowArray::new(&StructArray::from(self.0.clone()).to_data());
        let schema = schema_capsule(py, &self.0.schema())?;
        let array = PyCapsule::new_with_value(py, array, c"arrow_array")?;
        PyTuple::new(py, [schema, array])
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0.schema())
    }

    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    #[getter]
    fn num_columns(&self) -> usize {
        self.0.num_columns()
    }
}

fn schema_capsule<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema.as_ref())
        .map_err(|error| raise(Error::internal(error.to_string())))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// A result on its way, batch by batch.
pub(crate) struct Live {
    schema: SchemaRef,
    state: State,
    /// Rows handed on.
    rows: u64,
    /// Whether a batch has been handed on.
    yielded: bool,
    watch: Watch,
    progress: Arc<Progress>,
    warnings: Arc<Warnings>,
}

enum State {
    Running(Box<dyn Batches>),
    Ended,
    Failed,
}

impl Live {
    /// Hands `batches` on, each wait under `watch`.
    pub(crate) fn new(
        batches: Box<dyn Batches>,
        watch: Watch,
        progress: Arc<Progress>,
        warnings: Arc<Warnings>,
    ) -> Self {
        let schema = batches.schema();
        Self { schema, state: State::Running(batches), rows: 0, yielded: false, watch, progress, warnings }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        self.watch.restart();
        let State::Running(batches) = &mut self.state else {
            // What has failed must never look like a proper end.
            return if matches!(self.state, State::Ended) { Ok(None) } else { Err(gone("has failed")) };
        };
        // A panic must not cross the C interface, where it would end the process.
        let next = catch_unwind(AssertUnwindSafe(|| next_of(batches.as_mut(), self.yielded)))
            .unwrap_or_else(|_| Err(Error::internal("a defect of Longshore: please report the query")));
        let next = next.and_then(|batch| {
            if batch.is_some() {
                self.progress.tick()?;
            } else {
                self.progress.finish()?;
                warn(&self.warnings)?;
            }
            Ok(batch)
        });
        match &next {
            Ok(Some(batch)) => {
                self.rows += batch.num_rows() as u64;
                self.yielded = true;
            }
            // The connection goes back at once.
            Ok(None) => self.state = State::Ended,
            Err(_) => {
                self.state = State::Failed;
                self.progress.end();
            }
        }
        next
    }
}

/// The next batch with rows: parts and queries without any send empty ones. An empty result is one empty batch.
fn next_of(batches: &mut dyn Batches, yielded: bool) -> Result<Option<RecordBatch>> {
    let mut empty = None;
    for batch in batches {
        let batch = batch?;
        if batch.num_rows() > 0 {
            return Ok(Some(batch));
        }
        empty = Some(batch);
    }
    Ok(empty.filter(|_| !yielded))
}

impl Drop for Live {
    fn drop(&mut self) {
        self.progress.end();
        if let State::Running(batches) = std::mem::replace(&mut self.state, State::Ended) {
            release(batches);
        }
    }
}

/// Drops a result without the interpreter's lock: to stop a query takes a round trip, and threads that have to end first
/// may wait for the interpreter.
pub(crate) fn release(batches: Box<dyn Batches>) {
    let mut held = Some(batches);
    // Without an interpreter there is no lock.
    let _ = attached(|py| {
        // Python drops results while an exception is on its way, and calls made meanwhile would lose that.
        let raised = PyErr::take(py);
        py.detach(|| drop(held.take()));
        if let Some(raised) = raised {
            raised.restore(py);
        }
    });
}

impl Iterator for Live {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_batch().transpose()?;
        Some(next.map_err(external))
    }
}

impl RecordBatchReader for Live {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// The C interface carries texts that end at a zero byte: none may stand inside.
pub(crate) fn external(error: Error) -> ArrowError {
    let mut text = error.to_string();
    let kind = error.kind();
    if let Some(Ok(python)) =
        error.into_source().map(<dyn std::error::Error + Send + Sync>::downcast::<PyErr>)
    {
        let is_interrupt = attached(|py| python.is_instance_of::<PyKeyboardInterrupt>(py));
        if is_interrupt == Some(true) {
            signals::once_more();
        } else {
            text = format!("{text}: {python}");
        }
    }
    let text = text.replace('\0', "\u{fffd}");
    // Whoever reads it makes a MemoryError of it.
    if kind == Kind::Memory {
        ArrowError::MemoryError(text)
    } else {
        ArrowError::from_external_error(text.into())
    }
}
