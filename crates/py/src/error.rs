//! The core's errors as Python's exceptions.

use longshore_core::{Error, Kind};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The exception for `error`: the class of its kind, or the Python exception that it wraps.
pub(crate) fn raise(error: Error) -> PyErr {
    Python::attach(|py| exception(py, error).unwrap_or_else(|failed| failed))
}

fn exception(py: Python<'_>, error: Error) -> PyResult<PyErr> {
    let class = py.import("longshore.errors")?.getattr(class_name(error.kind()))?;
    let keywords = PyDict::new(py);
    keywords.set_item("sqlstate", error.sqlstate())?;
    keywords.set_item("detail", error.detail())?;
    keywords.set_item("hint", error.hint())?;
    keywords.set_item("position", error.position())?;
    keywords.set_item("column", error.place().column.as_deref())?;
    keywords.set_item("row", error.place().row)?;
    keywords.set_item("native_type", error.place().native_type.as_deref())?;
    let exception = class.call((error.to_string(),), Some(&keywords))?;
    // A Python exception below this one (KeyboardInterrupt, a password callable's own) is the one to raise.
    match error.into_source().map(<dyn std::error::Error + Send + Sync>::downcast::<PyErr>) {
        Some(Ok(wrapped)) => Ok(*wrapped),
        _ => Ok(PyErr::from_value(exception)),
    }
}

fn class_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Interface => "InterfaceError",
        Kind::Operational | Kind::Interrupted | Kind::Cancelled => "OperationalError",
        Kind::Timeout => "TimeoutError",
        Kind::Programming => "ProgrammingError",
        Kind::Data => "DataError",
        Kind::Integrity => "IntegrityError",
        Kind::Internal => "InternalError",
        Kind::NotSupported => "NotSupportedError",
        Kind::Memory => "MemoryLimitError",
    }
}

/// A Python exception on its way through the core.
pub(crate) fn wrap(kind: Kind, error: PyErr) -> Error {
    Error::new(kind, "stopped by a Python exception").with_source(error)
}
