//! Bytes and UUIDs.

use arrow_array::cast::AsArray;
use arrow_array::{Array, FixedSizeBinaryArray};
use arrow_schema::Field;
use longshore_values::{Fault, Item, Items};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyType};

use super::python_fault;
use super::scalars::each_row;
use crate::numbers::no_array_of;

/// `bytes` objects.
pub(super) fn bytes(py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
    let items = Items::new(array, &Field::new("", array.data_type().clone(), true));
    let items = items.map_err(|_| no_array_of("bytes"))?;
    each_row(py, array, objects, |row| match items.get(row) {
        Item::Bytes(value) => Ok(PyBytes::new(py, value).into_any().unbind()),
        _ => Err(no_array_of("bytes")),
    })
}

static UUID: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// `uuid.UUID` objects.
pub(super) fn uuids(py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
    let failed = |error| python_fault(0, "uuid.UUID cannot be made", error);
    let class = UUID.import(py, "uuid", "UUID").map_err(failed)?;
    let keywords = PyDict::new(py);
    let array = fixed_size(array)?;
    each_row(py, array, objects, |row| {
        keywords.set_item("bytes", PyBytes::new(py, array.value(row))).map_err(failed)?;
        class.call((), Some(&keywords)).map(Bound::unbind).map_err(failed)
    })
}

fn fixed_size(array: &dyn Array) -> Result<&FixedSizeBinaryArray, Fault> {
    array.as_fixed_size_binary_opt().ok_or_else(|| no_array_of("bytes"))
}
