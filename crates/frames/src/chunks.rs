//! Columns that stay in Arrow memory: the batches' arrays, handed over without a copy.

use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::{Array, ArrayRef, ffi, new_empty_array};
use arrow_schema::{Field, FieldRef};
use longshore_core::EXTENSION;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

use crate::column::Parts;
use crate::columns::Accumulator;
use crate::fault::Fault;
use crate::shape::{is_json, is_text};

/// One array under the Arrow `PyCapsule` interface.
#[pyclass(frozen, module = "longshore._core")]
pub struct Chunk {
    field: FieldRef,
    array: ArrayRef,
}

#[pymethods]
impl Chunk {
    /// The capsules of schema and array. The consumer casts if it wants another schema.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema);
        let failed = |error: arrow_schema::ArrowError| PyRuntimeError::new_err(error.to_string());
        let schema = FFI_ArrowSchema::try_from(self.field.as_ref()).map_err(failed)?;
        let (array, _): (FFI_ArrowArray, _) = ffi::to_ffi(&self.array.to_data()).map_err(failed)?;
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }

    fn __len__(&self) -> usize {
        self.array.len()
    }
}

impl Chunk {
    /// A Python list of the chunks of one column.
    pub(crate) fn list<'py>(
        py: Python<'py>,
        field: &FieldRef,
        arrays: Vec<ArrayRef>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let chunk = |array| Py::new(py, Self { field: field.clone(), array });
        let chunks = arrays.into_iter().map(chunk).collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(py, chunks)?.into_any())
    }
}

/// `field`, and plain text where it is JSON: the string methods of a frame would refuse the extension type.
pub(crate) fn text_field(field: &Field) -> Field {
    let mut metadata = field.metadata().clone();
    if is_json(field) {
        metadata.remove(EXTENSION);
    }
    field.clone().with_metadata(metadata)
}

/// Keeps the arrays of one column.
pub(crate) struct Chunks {
    field: FieldRef,
    arrays: Vec<ArrayRef>,
    bytes: usize,
}

impl Chunks {
    /// Keeps arrays of `field`.
    pub(crate) fn new(field: &Field) -> Self {
        Self { field: Arc::new(text_field(field)), arrays: Vec::new(), bytes: 0 }
    }
}

impl Accumulator for Chunks {
    fn absorb(&mut self, array: &dyn Array) -> Result<(), Fault> {
        if array.is_empty() && !self.arrays.is_empty() {
            return Ok(());
        }
        let array = array.slice(0, array.len());
        self.bytes += array.get_array_memory_size();
        self.arrays.push(array);
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn finish(mut self: Box<Self>, py: Python<'_>) -> PyResult<Parts> {
        if self.arrays.is_empty() {
            self.arrays.push(new_empty_array(self.field.data_type()));
        }
        let mut parts = Parts::new("chunks", Chunk::list(py, &self.field, self.arrays)?);
        parts.text = is_text(self.field.data_type());
        Ok(parts)
    }
}
