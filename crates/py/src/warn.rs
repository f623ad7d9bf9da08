//! What a caller is told with a result, as Python's warnings.

use std::ffi::CString;

use longshore_core::{Kind, Result, Warnings};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::error::wrap;

/// Warns of what was found while a result came. An error where the caller's filters make one of a warning.
pub(crate) fn warn(warnings: &Warnings) -> Result<()> {
    raise("DataWarning", warnings.take())
}

/// Warns that one session writes what was to be written by several, and why; otherwise as [`warn`].
pub(crate) fn warn_of_serial_write(reason: &str) -> Result<()> {
    raise("SerialWriteWarning", vec![format!("written over one connection: {reason}")])
}

fn raise(category: &str, texts: Vec<String>) -> Result<()> {
    if texts.is_empty() {
        return Ok(());
    }
    let raised = Python::attach(|py| {
        let category = py.import("longshore.errors")?.getattr(category)?.cast_into::<PyType>()?;
        let level = level(py).unwrap_or(1);
        texts.into_iter().try_for_each(|text| {
            let text = CString::new(text.replace('\0', "\u{fffd}"))?;
            PyErr::warn(py, &category, &text, level)
        })
    });
    raised.map_err(|error| wrap(Kind::Interrupted, error))
}

/// The level of the innermost Python frame outside this package: that of the caller's own line.
fn level(py: Python<'_>) -> PyResult<i32> {
    let mut frame = py.import("sys")?.call_method1("_getframe", (0,))?;
    let mut level = 1;
    while !frame.is_none() {
        let module: Option<String> =
            frame.getattr("f_globals")?.call_method1("get", ("__name__",))?.extract()?;
        if module.is_none_or(|module| module.split('.').next() != Some("longshore")) {
            return Ok(level);
        }
        frame = frame.getattr("f_back")?;
        level += 1;
    }
    Ok(level)
}
