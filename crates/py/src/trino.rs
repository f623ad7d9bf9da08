//! Trino's answers for Python's `longshore.sources.trino`, which speaks its protocol.

use longshore_interpreter::capsule::{Batch, Schema};
use longshore_interpreter::raise;
use longshore_trino::{Pages, envelope};
use pyo3::prelude::*;

/// An answer's object without its rows, as JSON, and the first byte and the end of those.
#[pyfunction]
pub(crate) fn trino_answer(py: Python<'_>, body: &[u8]) -> PyResult<(String, Option<(usize, usize)>)> {
    let found = py.detach(|| envelope(body)).map_err(raise)?;
    Ok((found.head, found.data.map(|data| (data.start, data.end))))
}

/// The columns of a result, into which its pages are decoded.
#[pyclass(module = "longshore._core")]
pub(crate) struct TrinoPages(Pages);

#[pymethods]
impl TrinoPages {
    /// The columns as an answer tells them, in JSON.
    #[new]
    fn new(columns: &str) -> PyResult<Self> {
        Pages::new(columns).map(Self).map_err(raise)
    }

    /// The schema of all batches.
    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.0.schema())
    }

    /// The rows between two bytes of an answer.
    fn decode(&mut self, py: Python<'_>, body: &[u8], start: usize, end: usize) -> PyResult<Batch> {
        let page = body.get(start..end).unwrap_or_default();
        let batch = py.detach(|| self.0.decode(page)).map_err(raise)?;
        Ok(Batch(batch))
    }
}
