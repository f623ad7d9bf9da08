//! Batches on their way between the core and a driver, under the Arrow `PyCapsule` interface.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::SchemaRef;
use arrow_schema::ffi::FFI_ArrowSchema;
use longshore_duckdb::{ColumnStream, stream_error};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use longshore_core::Result;

/// One batch, which a driver may read any number of times.
#[pyclass(frozen, module = "longshore._core")]
pub(crate) struct Frame {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Frame {
    pub(crate) fn new(batch: RecordBatch) -> Self {
        Self { schema: batch.schema(), batches: vec![batch] }
    }

    /// No rows: the schema alone.
    pub(crate) fn empty(schema: SchemaRef) -> Self {
        Self { schema, batches: Vec::new() }
    }
}

#[pymethods]
impl Frame {
    #[pyo3(signature = (requested_schema=None))]
    #[allow(clippy::needless_pass_by_value)] // the interpreter gives values
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = Box::new(RecordBatchIterator::new(batches, self.schema.clone()));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref())
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
}

/// The stream behind an object that hands one over, which may run its query only now.
#[allow(unsafe_code)]
pub(crate) fn stream(object: &Bound<'_, PyAny>) -> PyResult<Result<ColumnStream>> {
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds an `ArrowArrayStream` (Arrow PyCapsule interface), which lives while the capsule
    // is borrowed; `from_raw` moves it out and leaves a released one behind, which the capsule's destructor skips.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) };
    // SAFETY: a driver that hands out such a capsule keeps to the interface.
    let stream = object.py().detach(|| unsafe { ColumnStream::new(stream) });
    Ok(stream.map_err(|error| stream_error(&error)))
}
