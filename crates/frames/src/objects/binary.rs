//! Bytes and UUIDs.

use arrow_array::cast::AsArray;
use arrow_array::{Array, FixedSizeBinaryArray};
use arrow_schema::DataType;
use longshore_values::Fault;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyType};

use super::python_fault;
use super::scalars::each_row;
use crate::numbers::no_array_of;

/// `bytes` objects.
pub(super) fn bytes(py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
    let object = |value: &[u8]| Ok(PyBytes::new(py, value).into_any().unbind());
    match array.data_type() {
        DataType::Binary => {
            let array = array.as_binary::<i32>();
            each_row(py, array, objects, |row| object(array.value(row)))
        }
        DataType::LargeBinary => {
            let array = array.as_binary::<i64>();
            each_row(py, array, objects, |row| object(array.value(row)))
        }
        DataType::BinaryView => {
            let array = array.as_binary_view();
            each_row(py, array, objects, |row| object(array.value(row)))
        }
        _ => {
            let array = fixed(array)?;
            each_row(py, array, objects, |row| object(array.value(row)))
        }
    }
}

static UUID: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// `uuid.UUID` objects.
pub(super) fn uuids(py: Python<'_>, array: &dyn Array, objects: &mut Vec<Py<PyAny>>) -> Result<(), Fault> {
    let failed = |error| python_fault(0, "uuid.UUID cannot be made", error);
    let class = UUID.import(py, "uuid", "UUID").map_err(failed)?;
    let keywords = PyDict::new(py);
    let array = fixed(array)?;
    each_row(py, array, objects, |row| {
        keywords.set_item("bytes", PyBytes::new(py, array.value(row))).map_err(failed)?;
        class.call((), Some(&keywords)).map(Bound::unbind).map_err(failed)
    })
}

fn fixed(array: &dyn Array) -> Result<&FixedSizeBinaryArray, Fault> {
    array.as_fixed_size_binary_opt().ok_or_else(|| no_array_of("bytes"))
}
