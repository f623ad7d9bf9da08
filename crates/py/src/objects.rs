//! Columns of Python objects on their way into Arrow.

use arrow_schema::{DataType, Field, FieldRef};
use longshore_pyobjects::{Choices, Objects};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::array::{PyArray, field_capsule};
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
    fn array(&self, py: Python<'_>, start: usize, end: usize) -> PyResult<PyArray> {
        let array = self.0.array(py, start, end).map_err(raise)?;
        Ok(PyArray::new(self.0.field().clone(), array))
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
) -> PyResult<Option<Vec<PyArray>>> {
    let choices = Choices { nan_is_null, as_text: false };
    let arrays = longshore_pyobjects::texts(values, name, choices, chunk, threads).map_err(raise)?;
    let field = FieldRef::new(Field::new(name, DataType::Utf8View, true));
    let part = |array| PyArray::new(field.clone(), array);
    Ok(arrays.map(|arrays| arrays.into_iter().map(part).collect()))
}
