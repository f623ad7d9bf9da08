//! Whole results under the Arrow `PyCapsule` interface.

use std::sync::{Mutex, PoisonError};

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use longshore_core::Error;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::raise;

pub(crate) type Reader = Box<dyn RecordBatchReader + Send>;

/// A whole result, handed over once.
#[pyclass(frozen, module = "longshore._core")]
pub(crate) struct Table(Mutex<Option<Reader>>);

impl Table {
    pub(crate) fn new(reader: Reader) -> Self {
        Self(Mutex::new(Some(reader)))
    }
}

#[pymethods]
impl Table {
    /// The result, once. The consumer casts if it wants another schema.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let reader = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let reader = reader.ok_or_else(|| raise(Error::interface("the result has been handed over")))?;
        capsule(py, reader)
    }
}

/// The capsule of an Arrow stream (Arrow `PyCapsule` interface, section "`ArrowStream` Export").
pub(crate) fn capsule(py: Python<'_>, reader: Reader) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
}
