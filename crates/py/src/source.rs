//! The arguments that a read can be given to read from: a target, a pool, a connection.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use longshore_arrow_source::{ArrowConnection, MySqlConnection, SqliteConnection};
use longshore_core::{
    Connection, Decimals, Direct, Error, Hold, Kind, Params, Partitions, Pool, Progress, Query, ReadOptions,
    Request, Result, Source, Transaction,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator};

use crate::cursor::StatementResult;
use crate::interrupt::{CancelHandle, deadline, reading_deadline};
use crate::policy::Policy;
use crate::read::Partition;
use crate::registry::driver;
use crate::target::target;
use longshore_interpreter::capsule::Schema;
use longshore_interpreter::{raise, wrap};

/// A database, and how to connect to it.
#[pyclass(frozen, name = "Target", module = "longshore._core")]
pub(crate) struct PyTarget(pub(crate) Arc<Direct>);

#[pymethods]
impl PyTarget {
    #[new]
    #[pyo3(signature = (*, url, scheme, keywords, password, creates = false))]
    fn new(
        url: Option<&str>,
        scheme: &str,
        keywords: BTreeMap<String, String>,
        password: Option<Py<PyAny>>,
        creates: bool,
    ) -> PyResult<Self> {
        let target = target(url, scheme, keywords, password, creates)?;
        let driver = driver(&target).map_err(raise)?;
        Ok(Self(Direct::new(driver, target)))
    }
}

/// The start of a file, without a change to the locks that others of this process have on it; None for a shorter one.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn first_bytes(path: PathBuf) -> Option<[u8; 16]> {
    longshore_sqlite::first_bytes(&path)
}

/// A bounded number of sessions that outlive their reads.
#[pyclass(frozen, name = "Pool", module = "longshore._core")]
pub(crate) struct PyPool(Arc<Pool>);

#[pymethods]
impl PyPool {
    #[new]
    #[pyo3(signature = (target, *, size))]
    fn new(target: &PyTarget, size: usize) -> Self {
        Self(Arc::new(Pool::new(target.0.clone(), size)))
    }

    /// The sessions that reads have, or may open.
    #[getter]
    fn in_use(&self) -> usize {
        self.0.in_use()
    }

    /// The sessions that are open and that no read has.
    #[getter]
    fn idle(&self) -> usize {
        self.0.idle()
    }

    /// Has the further reads of this thread leave so many sessions.
    fn hold(&self, sessions: usize) -> PyHold {
        PyHold(self.0.hold(sessions))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}

/// Sessions of a pool that this thread's further reads leave to it.
#[pyclass(unsendable, name = "Hold", module = "longshore._core")]
pub(crate) struct PyHold(Option<Hold>);

#[pymethods]
impl PyHold {
    fn release(&mut self) {
        self.0 = None;
    }
}

/// One session for many statements.
#[pyclass(frozen, name = "Connection", module = "longshore._core")]
pub(crate) struct PyConnection(Arc<Connection>);

#[pymethods]
impl PyConnection {
    #[new]
    #[pyo3(signature = (target, *, autocommit, timeout, cancel_handle=None))]
    fn new(
        py: Python<'_>,
        target: &PyTarget,
        autocommit: bool,
        timeout: Option<f64>,
        cancel_handle: Option<CancelHandle>,
    ) -> PyResult<Self> {
        let deadline = deadline(py, timeout, cancel_handle)?;
        let opened = py.detach(|| Connection::open(target.0.clone(), autocommit, &deadline));
        Ok(Self(opened.map_err(raise)?))
    }

    #[pyo3(signature = (statement, params, *, timeout, cancel_handle=None))]
    fn execute(
        &self,
        py: Python<'_>,
        statement: String,
        params: Option<&Bound<'_, PyAny>>,
        timeout: Option<f64>,
        cancel_handle: Option<CancelHandle>,
    ) -> PyResult<Option<u64>> {
        let query = Query { text: statement, params: longshore_pyobjects::params(params)? };
        let deadline = deadline(py, timeout, cancel_handle)?;
        py.detach(|| self.0.execute(&query, &deadline)).map_err(raise)
    }

    /// Another connection to the same place.
    #[pyo3(signature = (*, cancel_handle))]
    fn another(&self, py: Python<'_>, cancel_handle: CancelHandle) -> PyResult<Self> {
        let deadline = deadline(py, None, Some(cancel_handle))?;
        py.detach(|| self.0.another(&deadline)).map(Self).map_err(raise)
    }

    #[getter]
    fn autocommit(&self) -> bool {
        self.0.commits_each()
    }

    fn set_autocommit(&self, autocommit: bool) -> PyResult<()> {
        self.0.set_autocommit(autocommit).map_err(raise)
    }

    /// Runs any statement for a cursor, to its first rows, or the `whole` of it.
    #[pyo3(signature = (statement, params, *, whole, policy=None, cancel_handle))]
    fn run(
        &self,
        py: Python<'_>,
        statement: String,
        params: Option<&Bound<'_, PyAny>>,
        whole: bool,
        policy: Option<Policy>,
        cancel_handle: CancelHandle,
    ) -> PyResult<StatementResult> {
        let query = Query { text: statement, params: longshore_pyobjects::params(params)? };
        let options = policy.map_or_else(ReadOptions::default, |policy| policy.options);
        let options = ReadOptions { batch_rows: BATCH_ROWS, any_statement: true, ..options };
        let (warnings, progress) = (options.warnings.clone(), Progress::new(None, Arc::default()));
        let deadline = reading_deadline(py, None, cancel_handle, progress.clone())?;
        let request = Request::unsplit(vec![query], options);
        py.detach(|| {
            let opened = longshore_core::open_read(&self.0, &request, &deadline)?;
            let first = (!whole).then_some(BATCH_ROWS);
            StatementResult::new(opened.batches, first, deadline, progress, warnings)
        })
        .map_err(raise)
    }

    /// Divides a query into parts that other connections read, in one snapshot that is kept for so many seconds, or without
    /// one; gives their one schema and their bytes.
    #[pyo3(signature = (query, partition, *, lease, policy=None, cancel_handle))]
    fn execute_partitions<'py>(
        &self,
        py: Python<'py>,
        query: String,
        partition: Partition<'py>,
        lease: f64,
        policy: Option<Policy>,
        cancel_handle: CancelHandle,
    ) -> PyResult<(Schema, Vec<Bound<'py, PyBytes>>)> {
        let (deadline, split) = (deadline(py, None, Some(cancel_handle))?, partition.split()?);
        let options = policy.map_or_else(ReadOptions::default, |policy| policy.options);
        let options = ReadOptions { decimals: Decimals::Streamed, ..options };
        let time = Duration::try_from_secs_f64(lease);
        let time = time.map_err(|_| raise(Error::internal("a lease without an end")))?;
        let query = Query::new(query);
        let made = py
            .detach(|| longshore_core::execute_partitions(&self.0, query, &split, &options, time, &deadline));
        let Partitions { schema, parts } = made.map_err(raise)?;
        Ok((Schema(schema), parts.iter().map(|part| PyBytes::new(py, part)).collect()))
    }

    /// Reads one of those parts for a cursor, to its first rows.
    #[pyo3(signature = (partition, *, policy=None, cancel_handle))]
    fn read_partition(
        &self,
        py: Python<'_>,
        partition: &[u8],
        policy: Option<Policy>,
        cancel_handle: CancelHandle,
    ) -> PyResult<StatementResult> {
        let options = policy.map_or_else(ReadOptions::default, |policy| policy.options);
        let options = ReadOptions { batch_rows: BATCH_ROWS, ..options };
        let (warnings, progress) = (options.warnings.clone(), Progress::new(None, Arc::default()));
        let deadline = reading_deadline(py, None, cancel_handle, progress.clone())?;
        py.detach(|| {
            let opened = longshore_core::read_partition(&self.0, partition, &options, &deadline)?;
            let rows = Some(BATCH_ROWS);
            StatementResult::new(opened.batches, rows, deadline, progress, warnings)
                .map(StatementResult::of_part)
        })
        .map_err(raise)
    }

    /// Runs a statement with each set of parameters that an iterator gives: all of them or, outside of a transaction, none.
    #[pyo3(signature = (statement, sets, *, cancel_handle))]
    fn execute_many(
        &self,
        py: Python<'_>,
        statement: &str,
        sets: &Bound<'_, PyAny>,
        cancel_handle: CancelHandle,
    ) -> PyResult<Option<u64>> {
        let deadline = deadline(py, None, Some(cancel_handle))?;
        let sets = ParameterSets(sets.try_iter()?.unbind());
        py.detach(|| longshore_core::execute_many(&self.0, statement, sets, &deadline)).map_err(raise)
    }

    #[pyo3(signature = (script, *, timeout, cancel_handle=None))]
    fn execute_script(
        &self,
        py: Python<'_>,
        script: &str,
        timeout: Option<f64>,
        cancel_handle: Option<CancelHandle>,
    ) -> PyResult<()> {
        let deadline = deadline(py, timeout, cancel_handle)?;
        py.detach(|| self.0.run_script(script, &deadline)).map_err(raise)
    }

    /// Makes `schema` the one of names without one.
    #[pyo3(signature = (schema, *, timeout, cancel_handle))]
    fn use_schema(
        &self,
        py: Python<'_>,
        schema: &str,
        timeout: Option<f64>,
        cancel_handle: CancelHandle,
    ) -> PyResult<()> {
        let deadline = deadline(py, timeout, Some(cancel_handle))?;
        py.detach(|| longshore_core::use_schema(&self.0, schema, &deadline)).map_err(raise)
    }

    #[pyo3(signature = (*, cancel_handle=None))]
    fn commit(&self, py: Python<'_>, cancel_handle: Option<CancelHandle>) -> PyResult<()> {
        let deadline = deadline(py, None, cancel_handle)?;
        py.detach(|| self.0.commit(&deadline)).map_err(raise)
    }

    #[pyo3(signature = (*, cancel_handle=None))]
    fn rollback(&self, py: Python<'_>, cancel_handle: Option<CancelHandle>) -> PyResult<()> {
        let deadline = deadline(py, None, cancel_handle)?;
        py.detach(|| self.0.rollback(&deadline)).map_err(raise)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.close()).map_err(raise)
    }

    /// Stops the statement or the read that has the session.
    fn cancel(&self, py: Python<'_>) {
        py.detach(|| self.0.cancel());
    }

    #[getter]
    fn closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Whether a transaction is open; `None` while a read has the session.
    #[getter]
    fn in_transaction(&self) -> Option<bool> {
        self.0.transaction().map(|transaction| transaction != Transaction::None)
    }
}

/// The rows of a cursor whose objects are made at once.
const BATCH_ROWS: usize = 1 << 12;

/// The sets that are sent at once.
const SETS: usize = 10_000;

/// The sets of parameters that an iterator gives, some at a time.
struct ParameterSets(Py<PyIterator>);

impl Iterator for ParameterSets {
    type Item = Result<Vec<Params>>;

    fn next(&mut self) -> Option<Self::Item> {
        let taken = Python::attach(|py| {
            let sets = self.0.bind(py).clone().take(SETS);
            sets.map(|set| longshore_pyobjects::params(Some(&set?))).collect::<PyResult<Vec<_>>>()
        });
        match taken {
            Ok(sets) if sets.is_empty() => None,
            Ok(sets) => Some(Ok(sets)),
            Err(error) => Some(Err(wrap(Kind::Interrupted, error))),
        }
    }
}

/// The core's source behind one of these classes.
pub(crate) fn source(given: &Bound<'_, PyAny>) -> PyResult<Box<dyn Source>> {
    if let Ok(target) = given.cast::<PyTarget>() {
        return Ok(Box::new(target.get().0.clone()));
    }
    if let Ok(pool) = given.cast::<PyPool>() {
        return Ok(Box::new(pool.get().0.clone()));
    }
    if let Ok(connection) = given.cast::<SqliteConnection>() {
        return Ok(connection.get().source());
    }
    if let Ok(connection) = given.cast::<MySqlConnection>() {
        return Ok(connection.get().source());
    }
    if let Ok(connection) = given.cast::<ArrowConnection>() {
        return Ok(connection.get().source(given.py()));
    }
    match given.cast::<PyConnection>() {
        Ok(connection) => Ok(Box::new(connection.get().0.clone())),
        Err(_) => {
            Err(PyTypeError::new_err("a read needs a Target, a Pool, a Connection or a SqliteConnection"))
        }
    }
}
