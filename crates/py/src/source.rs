//! What a read can be given to read from: a target, a pool, a connection.

use std::collections::BTreeMap;
use std::sync::Arc;

use longshore_core::{Direct, Own, Pool, Query, Source, Transaction};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::borrowed::PySqliteConnection;
use crate::error::raise;
use crate::registry::driver;
use crate::switch::watch;
use crate::target::target;

/// A database, and how to connect to it.
#[pyclass(frozen, name = "Target", module = "longshore._core")]
pub(crate) struct PyTarget(Arc<Direct>);

#[pymethods]
impl PyTarget {
    #[new]
    #[pyo3(signature = (*, url, scheme, keywords, password))]
    fn new(
        url: Option<&str>,
        scheme: &str,
        keywords: BTreeMap<String, String>,
        password: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let target = target(url, scheme, keywords, password)?;
        let driver = driver(&target).map_err(raise)?;
        Ok(Self(Direct::new(driver, target)))
    }
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

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}

/// One session for many statements.
#[pyclass(frozen, name = "Connection", module = "longshore._core")]
pub(crate) struct PyConnection(Arc<Own>);

#[pymethods]
impl PyConnection {
    #[new]
    #[pyo3(signature = (target, *, autocommit, timeout))]
    fn new(py: Python<'_>, target: &PyTarget, autocommit: bool, timeout: Option<f64>) -> PyResult<Self> {
        let watch = watch(py, timeout)?;
        let opened = py.detach(|| Own::open(target.0.clone(), autocommit, &watch));
        Ok(Self(opened.map_err(raise)?))
    }

    #[pyo3(signature = (statement, params, *, timeout))]
    fn execute(
        &self,
        py: Python<'_>,
        statement: String,
        params: Option<&Bound<'_, PyAny>>,
        timeout: Option<f64>,
    ) -> PyResult<Option<u64>> {
        let query = Query { text: statement, params: crate::params::params(params)? };
        let watch = watch(py, timeout)?;
        py.detach(|| self.0.execute(&query, &watch)).map_err(raise)
    }

    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let watch = watch(py, None)?;
        py.detach(|| self.0.commit(&watch)).map_err(raise)
    }

    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        let watch = watch(py, None)?;
        py.detach(|| self.0.rollback(&watch)).map_err(raise)
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
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

/// The core's source behind one of these classes.
pub(crate) fn source(given: &Bound<'_, PyAny>) -> PyResult<Box<dyn Source>> {
    if let Ok(target) = given.cast::<PyTarget>() {
        return Ok(Box::new(target.get().0.clone()));
    }
    if let Ok(pool) = given.cast::<PyPool>() {
        return Ok(Box::new(pool.get().0.clone()));
    }
    if let Ok(connection) = given.cast::<PySqliteConnection>() {
        return Ok(connection.get().source());
    }
    match given.cast::<PyConnection>() {
        Ok(connection) => Ok(Box::new(connection.get().0.clone())),
        Err(_) => {
            Err(PyTypeError::new_err("a read needs a Target, a Pool, a Connection or a SqliteConnection"))
        }
    }
}
