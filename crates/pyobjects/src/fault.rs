//! The faults of an object, before the column's name is known.

use longshore_core::{Error, Kind, Place};
use longshore_values::Fault;
use pyo3::PyErr;
use pyo3::exceptions::{PyException, PyMemoryError};
use pyo3::prelude::*;

/// The fault of an exception of Python's at `row`. One that asks the program to stop is raised as it is.
#[cold]
pub(crate) fn python_fault(py: Python<'_>, row: usize, error: PyErr) -> Fault {
    let message = format!("it cannot be read: {error}");
    if !error.is_instance_of::<PyException>(py) || error.is_instance_of::<PyMemoryError>(py) {
        return Fault::new(row, Kind::Interrupted, message).with_source(error);
    }
    unreadable(row, message)
}

/// An object that cannot be read, or has no type in common with the others.
pub(crate) fn unreadable(row: usize, message: impl Into<String>) -> Fault {
    Fault::data(row, message).with_hint("convert the column to one type first")
}

/// An object that is not what it was when the column's type was found.
#[cold]
pub(crate) fn changed_object(row: usize) -> Fault {
    Fault::data(row, "the object was changed while it was read")
        .with_hint("let no other thread change the data meanwhile, or give a copy of it")
}

/// Whether the program is to stop, whatever could be made of the column otherwise.
pub(crate) fn is_raised(fault: &Fault) -> bool {
    fault.kind() == Kind::Interrupted
}

/// The error that the caller sees.
pub(crate) fn locate(fault: Fault, column: &str) -> Error {
    let row = Some(fault.row() as u64);
    fault.into_error(Place { column: Some(column.to_owned()), row, native_type: None })
}
