//! What a caller is told beside a result, as Python's warnings.

use std::ffi::CString;

use longshore_core::{Kind, Result, Warnings};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::error::wrap;

/// Warns of what was counted while a result came, in the line `frames` above the Python frame that called. An error where
/// the caller's filters make one of a warning.
pub(crate) fn warn(warnings: &Warnings, frames: i32) -> Result<()> {
    let counted = warnings.take();
    if counted.is_empty() {
        return Ok(());
    }
    let told = Python::attach(|py| {
        let category = py.import("longshore.errors")?.getattr("DataWarning")?.cast_into::<PyType>()?;
        counted.into_iter().try_for_each(|(what, count)| {
            let text = CString::new(format!("{what} ({count} of them)").replace('\0', "\u{fffd}"))?;
            PyErr::warn(py, &category, &text, frames)
        })
    });
    told.map_err(|error| wrap(Kind::Interrupted, error))
}

/// Warns that one session writes what was to be written by several, and why; otherwise as [`warn`].
pub(crate) fn warn_of_serial_write(reason: &str, frames: i32) -> Result<()> {
    let told = Python::attach(|py| {
        let category = py.import("longshore.errors")?.getattr("SerialWriteWarning")?.cast_into::<PyType>()?;
        let text = CString::new(format!("written over one connection: {reason}"))?;
        PyErr::warn(py, &category, &text, frames)
    });
    told.map_err(|error| wrap(Kind::Interrupted, error))
}
