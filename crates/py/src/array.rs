//! Arrays under the Arrow `PyCapsule` interface.

use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::FieldRef;
use arrow_schema::ffi::FFI_ArrowSchema;
use longshore_core::Error;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::error::raise;

/// One array, and its field.
#[pyclass(frozen, name = "Array", module = "longshore._core")]
pub(crate) struct PyArray {
    field: FieldRef,
    array: ArrayRef,
}

impl PyArray {
    pub(crate) fn new(field: FieldRef, array: ArrayRef) -> Self {
        Self { field, array }
    }
}

#[pymethods]
impl PyArray {
    /// The array, as often as wanted.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        drop(requested_schema);
        let schema = field_capsule(py, &self.field)?;
        let array =
            PyCapsule::new_with_value(py, FFI_ArrowArray::new(&self.array.to_data()), c"arrow_array")?;
        PyTuple::new(py, [schema, array])
    }

    fn __len__(&self) -> usize {
        self.array.len()
    }
}

/// The capsule of a field (Arrow `PyCapsule` interface, section "`ArrowSchema` Export").
pub(crate) fn field_capsule<'py>(py: Python<'py>, field: &FieldRef) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(field.as_ref())
        .map_err(|error| raise(Error::internal(error.to_string())))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}
