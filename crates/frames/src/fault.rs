//! Exceptions of Python's while objects are made.

use longshore_core::memory::NoRoom;
use longshore_values::Fault;
use pyo3::exceptions::{PyArithmeticError, PyMemoryError, PyRecursionError, PyValueError};
use pyo3::prelude::*;

/// The fault of an exception while the object of `row` was made. One that is about the value becomes an error of ours, with its
/// place; any other stays what is raised.
pub(crate) fn python_fault(row: usize, what: &str, error: PyErr) -> Fault {
    let fault = Fault::data(row, format!("{what}: {error}"));
    Python::attach(|py| {
        let is_any_of_value = error.is_instance_of::<PyValueError>(py)
            || error.is_instance_of::<PyArithmeticError>(py)
            || error.is_instance_of::<PyRecursionError>(py);
        match error {
            error if error.is_instance_of::<PyMemoryError>(py) => NoRoom.into(),
            _ if is_any_of_value => fault,
            error => fault.with_source(error),
        }
    })
}
