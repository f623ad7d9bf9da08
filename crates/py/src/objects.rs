//! Columns of Python objects on their way into Arrow.

use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Field, FieldRef};
use longshore_core::Error;
use longshore_objects::{Choices, Objects};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::error::raise;

/// A column of objects, whose one type is found.
#[pyclass(frozen, name = "Objects", module = "longshore._core")]
pub(crate) struct PyObjects(Objects);

#[pymethods]
impl PyObjects {
    #[new]
    #[pyo3(signature = (values, name, *, nan_is_null, as_text))]
    fn new(values: &Bound<'_, PyAny>, name: &str, nan_is_null: bool, as_text: bool) -> PyResult<Self> {
        Objects::new(values, name, Choices { nan_is_null, as_text }).map(Self).map_err(raise)
    }

    /// The column's field.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        field_capsule(py, self.0.field())
    }

    /// The rows from `start` up to `end`, or up to the last.
    fn array(&self, py: Python<'_>, start: usize, end: usize) -> PyResult<ObjectArray> {
        let array = self.0.array(py, start, end).map_err(raise)?;
        Ok(ObjectArray { field: self.0.field().clone(), array })
    }
}

/// A column of texts and what is missing as views, in arrays of `chunk` rows by so many threads; `None` for every other column.
#[pyfunction]
#[pyo3(signature = (values, name, *, nan_is_null, chunk, threads=None))]
pub(crate) fn texts(
    values: &Bound<'_, PyAny>,
    name: &str,
    nan_is_null: bool,
    chunk: usize,
    threads: Option<usize>,
) -> PyResult<Option<Vec<ObjectArray>>> {
    let choices = Choices { nan_is_null, as_text: false };
    let arrays = longshore_objects::texts(values, name, choices, chunk, threads).map_err(raise)?;
    let field = FieldRef::new(Field::new(name, DataType::Utf8View, true));
    let part = |array| ObjectArray { field: field.clone(), array };
    Ok(arrays.map(|arrays| arrays.into_iter().map(part).collect()))
}

/// Some rows of a column of objects.
#[pyclass(frozen, module = "longshore._core")]
pub(crate) struct ObjectArray {
    field: FieldRef,
    array: ArrayRef,
}

#[pymethods]
impl ObjectArray {
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

fn field_capsule<'py>(py: Python<'py>, field: &FieldRef) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(field.as_ref())
        .map_err(|error| raise(Error::internal(error.to_string())))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}
