//! The warnings that come with a result, as Python's.

use longshore_core::{Kind, Result, Warnings};
use pyo3::prelude::*;

use longshore_interpreter::wrap;

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
        let category = py.import("longshore.errors")?.getattr(category)?;
        let warn = py.import("longshore.warning")?.getattr("warn")?;
        texts.into_iter().try_for_each(|text| warn.call1((text, &category)).map(drop))
    });
    raised.map_err(|error| wrap(Kind::Interrupted, error))
}
