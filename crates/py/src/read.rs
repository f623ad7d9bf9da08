//! `read_sql`: opens a result and hands it to the frame that was asked for.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use longshore_core::memory::{Budget, Trim};
use longshore_core::{
    Batches, Deadline, Error, LiveResult, Progress, Query, ReadOptions, Request, Result, Session, Split,
    Warnings, lock,
};
use longshore_frames::{Backend, Choices, Column, whole_columns, whole_table};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::interrupt::{CancelHandle, reading_deadline};
use crate::limit::Limit;
use crate::policy::Policy;
use crate::progress::progress_to;
use crate::source::source;
use crate::stream::Stream;
use crate::types::data_types;
use crate::warn::warn;
use longshore_interpreter::capsule::Table;
use longshore_interpreter::{drop_without_lock, raise};
use longshore_pyobjects::value;

/// A result whose statement has been sent and whose rows have not been taken.
#[pyclass(frozen, module = "longshore._core")]
pub(crate) struct Reading {
    batches: Mutex<Option<Box<dyn Batches>>>,
    /// Why one session reads what the caller asked to split.
    #[pyo3(get)]
    serial: Option<String>,
    budget: Arc<Budget>,
    /// Gives back what batches leave behind; an engine sees to its own.
    trim: Option<Trim>,
    pub(crate) deadline: Deadline,
    progress: Arc<Progress>,
    warnings: Arc<Warnings>,
}

/// How a caller wants a read to be split; `longshore.partition` has checked it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Partition<'py> {
    number: Option<NonZeroUsize>,
    most: Option<NonZeroUsize>,
    automatic: bool,
    on: Option<String>,
    range: Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
}

impl Partition<'_> {
    pub(crate) fn split(self) -> PyResult<Split> {
        let range = self.range.map(|(low, high)| PyResult::Ok((value(&low)?, value(&high)?))).transpose()?;
        Ok(Split { number: self.number, most: self.most, automatic: self.automatic, on: self.on, range })
    }
}

/// Takes sessions of `source`, sends `setup` and the queries, and returns the result on its way.
#[pyfunction]
#[pyo3(signature = (*, source, setup, queries, params, partition, types, policy, batch_rows, batch_bytes, memory_limit, timeout, progress, cancel_handle))]
// One call from one place, by keyword; the interpreter gives values.
#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)]
pub(crate) fn open_read(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    setup: Vec<String>,
    queries: Vec<String>,
    params: Option<&Bound<'_, PyAny>>,
    partition: Option<Partition<'_>>,
    types: &Bound<'_, PyDict>,
    policy: Policy,
    batch_rows: usize,
    batch_bytes: usize,
    memory_limit: Option<Limit>,
    timeout: Option<f64>,
    progress: Option<Py<PyAny>>,
    cancel_handle: CancelHandle,
) -> PyResult<Reading> {
    let source = self::source(source)?;
    let params = longshore_pyobjects::params(params)?;
    let budget = Limit::budget(memory_limit, policy.is_stream());
    let mut options =
        ReadOptions { batch_rows, batch_bytes, budget: budget.clone(), ..policy.options.clone() };
    options.schema = data_types(types)?;
    let estimate = progress.is_some();
    let progress = progress_to(progress, options.meter.clone());
    let request = Request {
        setup,
        queries: queries.into_iter().map(|text| Query { text, params: params.clone() }).collect(),
        split: partition.map(Partition::split).transpose()?,
        delivery: policy.delivery(),
        estimate,
        options,
    };
    let warnings = request.options.warnings.clone();
    let deadline = reading_deadline(py, timeout, cancel_handle, progress.clone())?;
    let opened = py.detach(|| longshore_core::open_read(source.as_ref(), &request, &deadline));
    let opened = opened.map_err(|error| {
        progress.end();
        raise(error)
    })?;
    let batches = Mutex::new(Some(opened.batches));
    let trim = Some(Trim::default());
    Ok(Reading { batches, serial: opened.serial, budget, trim, deadline, progress, warnings })
}

/// The tables and views of `source`, as its catalogue lists them.
#[pyfunction]
#[pyo3(signature = (*, source, timeout, cancel_handle))]
pub(crate) fn tables(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    timeout: Option<f64>,
    cancel_handle: CancelHandle,
) -> PyResult<Reading> {
    let source = self::source(source)?;
    let progress = Progress::new(None, Arc::default());
    let deadline = reading_deadline(py, timeout, cancel_handle, progress.clone())?;
    let opened = py.detach(|| longshore_core::tables(source.as_ref(), &deadline)).map_err(raise)?;
    Ok(Reading::of(opened.batches, Arc::default(), deadline, progress, Arc::default()))
}

impl Reading {
    /// A result whose every wait looks at `deadline`.
    pub(crate) fn of(
        batches: Box<dyn Batches>,
        budget: Arc<Budget>,
        deadline: Deadline,
        progress: Arc<Progress>,
        warnings: Arc<Warnings>,
    ) -> Self {
        let batches = Mutex::new(Some(batches));
        Self { batches, serial: None, budget, trim: None, deadline, progress, warnings }
    }

    /// A result that has been received already.
    pub(crate) fn from_batches(
        py: Python<'_>,
        batches: Box<dyn Batches>,
        budget: Arc<Budget>,
        warnings: Arc<Warnings>,
    ) -> PyResult<Self> {
        let progress = Progress::new(None, Arc::default());
        let deadline = reading_deadline(py, None, CancelHandle::default(), progress.clone())?;
        Ok(Self::of(batches, budget, deadline, progress, warnings))
    }

    fn untaken(&self) -> Option<Box<dyn Batches>> {
        lock(&self.batches).take()
    }

    pub(crate) fn take(&self) -> PyResult<Box<dyn Batches>> {
        self.untaken().ok_or_else(|| raise(Error::interface("the result has already been read")))
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let Some(batches) = self.untaken() else { return };
        self.progress.end();
        drop_without_lock(batches);
    }
}

/// Batches that are dropped without the interpreter's lock.
struct Detached(Option<Box<dyn Batches>>);

impl Iterator for Detached {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.as_mut()?.next()
    }
}

impl Batches for Detached {
    fn schema(&self) -> SchemaRef {
        self.0.as_ref().map_or_else(|| Arc::new(Schema::empty()), |batches| batches.schema())
    }

    fn into_session(mut self: Box<Self>) -> Option<Box<dyn Session>> {
        self.0.take()?.into_session()
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        drop_without_lock(self.0.take());
    }
}

#[pymethods]
impl Reading {
    /// The whole result as finished columns, and the number of rows.
    #[pyo3(signature = (*, backend, arrow_strings, json_objects))]
    fn columns(
        &self,
        py: Python<'_>,
        backend: &str,
        arrow_strings: bool,
        json_objects: bool,
    ) -> PyResult<(Vec<Column>, u64)> {
        let batches = self.take()?;
        let choices = Choices { backend: backend_named(backend), arrow_strings, json_objects };
        let columns =
            py.detach(|| whole_columns(batches, choices, &self.budget, self.trim.clone(), &self.progress));
        self.progress.end();
        let columns = columns.map_err(raise)?;
        warn(&self.warnings).map_err(raise)?;
        let rows = columns.rows();
        Ok((columns.finish(py)?, rows))
    }

    /// The whole result in Arrow memory, finalised, as a stream that never waits.
    #[pyo3(signature = (*, for_polars))]
    fn table(&self, py: Python<'_>, for_polars: bool) -> PyResult<Table> {
        let batches = self.take()?;
        let table = py.detach(|| whole_table(batches, for_polars, &self.budget, &self.progress));
        self.progress.end();
        let table = table.map_err(raise)?;
        warn(&self.warnings).map_err(raise)?;
        Ok(Table::new(table))
    }

    /// Stops the query on the server, unless the result has been taken.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.untaken()));
    }

    /// The result as a stream that waits for the server.
    fn stream(&self) -> PyResult<Stream> {
        let (deadline, progress) = (self.deadline.clone(), self.progress.clone());
        let batches = Box::new(Detached(Some(self.take()?)));
        let live = LiveResult::new(batches, deadline, progress, self.warnings.clone(), warn);
        Ok(Stream(longshore_core::Stream::new(live)))
    }
}

pub(crate) fn backend_named(name: &str) -> Backend {
    match name {
        "numpy" => Backend::Numpy,
        "numpy_nullable" => Backend::Nullable,
        "pyarrow" => Backend::Arrow,
        "masked" => Backend::Masked,
        _ => Backend::Pandas,
    }
}
