//! Columns of texts and of Python objects on their way into Arrow and the SQL engine.

use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef};
use arrow_schema::{DataType, Field, FieldRef};
use longshore_core::Error;
use longshore_duckdb::texts::{Position, dictionaries, search as search_texts};
use longshore_interpreter::capsule::{Array, invalid, reader, schema_capsule};
use longshore_interpreter::raise;
use longshore_pyobjects::{Choices, Objects};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

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
        schema_capsule(py, self.0.field().as_ref())
    }

    /// The rows from `start` up to `end`, or up to the last.
    fn array(&self, py: Python<'_>, start: usize, end: usize) -> PyResult<Array> {
        let array = self.0.array(py, start, end).map_err(raise)?;
        Ok(Array::new(self.0.field().clone(), array))
    }
}

/// A column of texts and what is missing as views, in arrays of `chunk` rows; `None` for every other column.
#[pyfunction]
#[pyo3(signature = (values, name, *, nan_is_null, chunk))]
pub(crate) fn texts(
    values: &Bound<'_, PyAny>,
    name: &str,
    nan_is_null: bool,
    chunk: usize,
) -> PyResult<Option<Vec<Array>>> {
    let choices = Choices { nan_is_null, as_text: false };
    let arrays = longshore_pyobjects::texts(values, name, choices, chunk).map_err(raise)?;
    let field = FieldRef::new(Field::new(name, DataType::Utf8View, true));
    Ok(arrays.map(|arrays| parts(&field, arrays)))
}

/// Tells for each row of a table's one column whether its text has `piece` in its place: `"whole"`, `"start"`, `"end"` or
/// `"anywhere"`. `None` where the column is not of texts.
#[pyfunction]
#[pyo3(signature = (table, piece, place, *, threads=None))]
pub(crate) fn search(
    py: Python<'_>,
    table: &Bound<'_, PyAny>,
    piece: &str,
    place: &str,
    threads: Option<usize>,
) -> PyResult<Option<Array>> {
    let place = match place {
        "whole" => Position::Whole,
        "start" => Position::Start,
        "end" => Position::End,
        "anywhere" => Position::Anywhere,
        other => return Err(raise(Error::internal(format!("no place in a text is {other:?}")))),
    };
    let (field, arrays) = column(table)?;
    let found = py.detach(|| search_texts(&arrays, piece.as_bytes(), place, threads));
    let field = FieldRef::new(Field::new(field.name(), DataType::Boolean, false));
    Ok(found.map(|found| Array::new(field, Arc::new(found))))
}

/// The texts of a table's one column as dictionaries, one an array, of `most` texts at most; `None` where there are more.
#[pyfunction]
#[pyo3(signature = (table, *, most, threads=None))]
pub(crate) fn codes(
    py: Python<'_>,
    table: &Bound<'_, PyAny>,
    most: u16,
    threads: Option<usize>,
) -> PyResult<Option<Vec<Array>>> {
    let (field, arrays) = column(table)?;
    let arrays = py.detach(|| dictionaries(&arrays, most, threads));
    Ok(arrays.map(|arrays| parts(&field, arrays)))
}

fn parts(field: &FieldRef, arrays: Vec<ArrayRef>) -> Vec<Array> {
    let part = |array: ArrayRef| {
        let field = Field::new(field.name(), array.data_type().clone(), true);
        Array::new(FieldRef::new(field), array)
    };
    arrays.into_iter().map(part).collect()
}

/// The one column of a table, which lies in memory.
fn column(table: &Bound<'_, PyAny>) -> PyResult<(FieldRef, Vec<ArrayRef>)> {
    let reader = reader(table)?;
    let schema = reader.schema();
    let [field] = schema.fields().as_ref() else {
        return Err(raise(Error::internal(format!("{} columns, not one", schema.fields().len()))));
    };
    let arrays = reader.map(|batch| batch.map(|batch| batch.column(0).clone()));
    Ok((field.clone(), arrays.collect::<Result<_, _>>().map_err(invalid)?))
}
