//! `read_sql`: opens a result and hands it to the frame that was asked for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow_array::RecordBatchIterator;
use longshore_core::{
    Batches, Decimals, Error, OnOdd, Protocol, Query, ReadOptions, Result, Settled, Uuids, Watch, read_all,
    within_limit,
};
use longshore_frames::{Backend, Choices, Column, Columns, polars_batch, polars_schema};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::raise;
use crate::progress::Progress;
use crate::registry::driver;
use crate::signals::Signals;
use crate::stream::{Live, Stream};
use crate::target::target;
use crate::types::data_type;

/// A result whose statement has been sent and whose rows have not been taken.
#[pyclass(frozen, module = "longshore._core")]
pub(crate) struct Reading {
    batches: Mutex<Option<Box<dyn Batches>>>,
    watch: Watch,
}

/// Connects, sends `setup` and the queries, and returns the result on its way.
///
/// `policy` holds the words of the type policy; `longshore.read` has checked them.
#[pyfunction]
#[pyo3(signature = (*, url, scheme, keywords, password, setup, queries, params, types, policy, batch_rows, batch_bytes, timeout))]
// One call from one place, by keyword; what Python gives is made into values on the way in.
#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)]
pub(crate) fn open_read(
    py: Python<'_>,
    url: Option<&str>,
    scheme: &str,
    keywords: BTreeMap<String, String>,
    password: Option<Py<PyAny>>,
    setup: Vec<String>,
    queries: Vec<String>,
    params: Option<&Bound<'_, PyAny>>,
    types: &Bound<'_, PyDict>,
    policy: BTreeMap<String, String>,
    batch_rows: usize,
    batch_bytes: usize,
    timeout: Option<f64>,
) -> PyResult<Reading> {
    let target = target(url, scheme, keywords, password)?;
    let driver = driver(&target).map_err(raise)?;
    let params = crate::params::params(params)?;
    let queries = queries.into_iter().map(|text| Query { text, params: params.clone() }).collect();
    let mut options = ReadOptions { batch_rows, batch_bytes, ..choices(&policy) };
    for (name, wanted) in types {
        options.schema.push((name.extract()?, data_type(&wanted)?));
    }
    let timeout = timeout
        .map(Duration::try_from_secs_f64)
        .transpose()
        .map_err(|_| raise(Error::interface("timeout is a number of seconds, zero or more")))?;
    let watch = Watch::new(Arc::new(Signals::new(py)?), timeout);
    let opened = py.detach(|| {
        let mut session = driver.connect(&target, &watch)?;
        setup.iter().try_for_each(|statement| session.run(statement))?;
        read_all(session, queries, &options)
    });
    Ok(Reading { batches: Mutex::new(Some(opened.map_err(raise)?)), watch })
}

/// The type policy in the core's words.
fn choices(policy: &BTreeMap<String, String>) -> ReadOptions {
    let is = |key: &str, word: &str| policy.get(key).is_some_and(|value| value == word);
    let odd = |key: &str| if is(key, "null") { OnOdd::Null } else { OnOdd::Error };
    ReadOptions {
        decimals: match policy.get("decimals").map(String::as_str) {
            Some("float64") => Decimals::Float64,
            Some("streamed") => Decimals::Streamed,
            _ => Decimals::Settled,
        },
        decimal_digits: if is("frame", "polars") { 38 } else { 76 },
        intervals: !is("frame", "polars"),
        numeric_nan: odd("numeric_nan"),
        infinity: odd("infinity"),
        time_24: odd("time_24"),
        uuid: if is("uuid", "text") { Uuids::Text } else { Uuids::Arrow },
        snapshot: !is("snapshot", "false"),
        protocol: if is("protocol", "text") { Protocol::Text } else { Protocol::Binary },
        ..ReadOptions::default()
    }
}

impl Reading {
    fn take(&self) -> PyResult<Box<dyn Batches>> {
        let taken = self.batches.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| raise(Error::interface("the result has already been read")))
    }
}

#[pymethods]
impl Reading {
    /// The whole result as finished columns, and the number of rows.
    #[pyo3(signature = (*, backend, arrow_strings, json_objects, memory_limit, progress))]
    fn columns(
        &self,
        py: Python<'_>,
        backend: &str,
        arrow_strings: bool,
        json_objects: bool,
        memory_limit: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Vec<Column>, u64)> {
        let batches = self.take()?;
        let choices = Choices { backend: backend_named(backend), arrow_strings, json_objects };
        let filled = py.detach(|| fill(batches, choices, memory_limit, Progress::new(progress)));
        let columns = filled.map_err(raise)?;
        let rows = columns.rows();
        Ok((columns.finish(py)?, rows))
    }

    /// The whole result in Arrow memory, settled, as a stream that never waits.
    #[pyo3(signature = (*, for_polars, memory_limit, progress))]
    fn table(
        &self,
        py: Python<'_>,
        for_polars: bool,
        memory_limit: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Stream> {
        let batches = self.take()?;
        let settled = py.detach(|| collect(batches, memory_limit, &mut Progress::new(progress)));
        let (schema, batches) = settled.map_err(raise)?;
        if !for_polars {
            return Ok(Stream::new(Box::new(RecordBatchIterator::new(batches.into_iter().map(Ok), schema))));
        }
        let schema = polars_schema(&schema);
        let named = schema.clone();
        let batches = batches.into_iter().map(move |batch| polars_batch(&batch, &named));
        Ok(Stream::new(Box::new(RecordBatchIterator::new(batches, schema))))
    }

    /// The result as a stream that waits for the server.
    fn stream(&self) -> PyResult<Stream> {
        let batches = self.take()?;
        Ok(Stream::new(Box::new(Live::new(batches, self.watch.clone()))))
    }
}

fn backend_named(name: &str) -> Backend {
    match name {
        "numpy" => Backend::Numpy,
        "numpy_nullable" => Backend::Nullable,
        "pyarrow" => Backend::Arrow,
        "masked" => Backend::Masked,
        _ => Backend::Pandas,
    }
}

/// Every batch, with the final types. The session ends with the result.
fn collect(mut batches: Box<dyn Batches>, limit: Option<usize>, progress: &mut Progress) -> Result<Settled> {
    let (mut collected, mut held) = (Vec::new(), 0_usize);
    for batch in batches.by_ref() {
        let batch = batch?;
        held = held.saturating_add(batch.get_array_memory_size());
        within_limit(held, limit)?;
        progress.add(batch.num_rows())?;
        collected.push(batch);
    }
    progress.report()?;
    let settled = if batches.is_settled() {
        (batches.schema(), collected)
    } else {
        batches.settle(&batches.schema(), collected)?
    };
    Ok(settled)
}

/// Columns fed while the batches arrive, or after the last where types are only then final.
fn fill(
    mut batches: Box<dyn Batches>,
    choices: Choices,
    limit: Option<usize>,
    mut progress: Progress,
) -> Result<Columns> {
    if !batches.is_settled() {
        let (schema, batches) = collect(batches, limit, &mut progress)?;
        let mut columns = Columns::new(schema, &choices)?;
        batches.into_iter().try_for_each(|batch| columns.push(&batch))?;
        return Ok(columns);
    }
    let mut columns = Columns::new(batches.schema(), &choices)?;
    for batch in batches.by_ref() {
        let batch = batch?;
        columns.push(&batch)?;
        within_limit(columns.bytes(), limit)?;
        progress.add(batch.num_rows())?;
    }
    progress.report()?;
    Ok(columns)
}
