//! Results under the Arrow `PyCapsule` interface.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, SchemaRef};
use longshore_core::{Batches, Error, Kind, Watch};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::raise;
use crate::signals;

type Source = Box<dyn RecordBatchReader + Send>;

/// A result that is consumed once.
#[pyclass(frozen, module = "longshore._core")]
pub(crate) struct Stream {
    schema: SchemaRef,
    source: Mutex<Option<Source>>,
}

impl Stream {
    pub(crate) fn new(source: Source) -> Self {
        Self { schema: source.schema(), source: Mutex::new(Some(source)) }
    }

    fn take(&self) -> Option<Source> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
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
        let source = self.take().ok_or_else(|| {
            raise(Error::interface("the stream has been consumed or closed").with_hint("read it again"))
        })?;
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(source), c"arrow_array_stream")
    }

    /// The schema, as often as wanted.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref())
            .map_err(|error| raise(Error::internal(error.to_string())))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Stops the query on the server where it still runs.
    fn close(&self, py: Python<'_>) {
        let source = self.take();
        py.detach(|| drop(source));
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) {
        self.close(py);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let source = self.take();
        // To stop a query takes a round trip: not under the interpreter's lock.
        Python::attach(|py| py.detach(|| drop(source)));
    }
}

/// A result on its way, batch by batch.
pub(crate) struct Live {
    schema: SchemaRef,
    /// `None` after the end, which gives the connection back at once.
    batches: Option<Box<dyn Batches>>,
    watch: Watch,
}

impl Live {
    /// Hands `batches` on, each wait under `watch`.
    pub(crate) fn new(batches: Box<dyn Batches>, watch: Watch) -> Self {
        Self { schema: batches.schema(), batches: Some(batches), watch }
    }
}

impl Iterator for Live {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.watch.restart();
        let batches = self.batches.as_mut()?;
        // A panic must not cross the C interface, where it would end the process.
        let next = catch_unwind(AssertUnwindSafe(|| batches.next()))
            .unwrap_or_else(|_| Some(Err(Error::internal("a defect of Longshore: please report the query"))));
        if !matches!(next, Some(Ok(_))) {
            self.batches = None;
        }
        Some(next?.map_err(|error| {
            if error.kind() == Kind::Interrupted {
                signals::once_more();
            }
            external(&error)
        }))
    }
}

impl RecordBatchReader for Live {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// The C interface carries texts that end at a zero byte: none may stand inside.
fn external(error: &Error) -> ArrowError {
    ArrowError::from_external_error(error.to_string().replace('\0', "\u{fffd}").into())
}
