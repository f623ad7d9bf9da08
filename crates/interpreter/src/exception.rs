//! The core's errors as exceptions of `longshore.errors`, and back.

use longshore_core::{Error, Kind, Place};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The exceptions of `longshore.errors`, from the particular to the general.
const CLASSES: &[(&str, Kind)] = &[
    ("TimeoutError", Kind::Timeout),
    ("MemoryLimitError", Kind::Memory),
    ("InterfaceError", Kind::Interface),
    ("ProgrammingError", Kind::Programming),
    ("DataError", Kind::Data),
    ("IntegrityError", Kind::Integrity),
    ("InternalError", Kind::Internal),
    ("NotSupportedError", Kind::NotSupported),
    ("OperationalError", Kind::Operational),
    ("DatabaseError", Kind::Operational),
];

/// The exception for `error`: the class of its kind, or the Python exception that it wraps.
#[must_use]
pub fn raise(error: Error) -> PyErr {
    Python::attach(|py| exception(py, error).unwrap_or_else(|failed| failed))
}

fn exception(py: Python<'_>, error: Error) -> PyResult<PyErr> {
    let class = CLASSES.iter().find(|(_, kind)| *kind == error.kind());
    let class = py.import("longshore.errors")?.getattr(class.map_or("OperationalError", |(name, _)| name))?;
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

/// A Python exception on its way through the core.
#[must_use]
pub fn wrap(kind: Kind, error: PyErr) -> Error {
    Error::new(kind, "stopped by a Python exception").with_source(error)
}

/// The error that `raised` is: one of Longshore's with all its parts, any other as it is.
#[must_use]
pub fn error_of(py: Python<'_>, raised: PyErr) -> Error {
    read(py, &raised).ok().flatten().unwrap_or_else(|| {
        // Such as Ctrl-C, which goes through as it is.
        let is_failure = raised.is_instance_of::<PyException>(py);
        wrap(if is_failure { Kind::Operational } else { Kind::Interrupted }, raised)
    })
}

fn read(py: Python<'_>, raised: &PyErr) -> PyResult<Option<Error>> {
    let errors = py.import("longshore.errors")?;
    let value = raised.value(py);
    for (name, kind) in CLASSES {
        if value.is_instance(&errors.getattr(*name)?)? {
            return build(value, *kind).map(Some);
        }
    }
    Ok(None)
}

fn build(value: &Bound<'_, PyAny>, kind: Kind) -> PyResult<Error> {
    let text = value.str()?.to_string();
    let part = |name: &str| value.getattr(name)?.extract::<Option<String>>();
    let hint = part("hint")?;
    // The exception's text ends with its hint.
    let message =
        hint.as_ref().and_then(|hint| text.strip_suffix(&format!("\nHint: {hint}"))).unwrap_or(&text);
    let sqlstate = part("sqlstate")?;
    let (column, row) = (part("column")?, value.getattr("row")?.extract::<Option<u64>>()?);
    let is_placed = column.is_some() || row.is_some();
    let place = Place { column, row, native_type: part("native_type")? };
    // One that was an error of ours before says both already.
    let before = if is_placed { Error::new(kind, "").at(place.clone()).to_string() } else { String::new() };
    let after = sqlstate.as_ref().map(|sqlstate| format!(" [SQLSTATE {sqlstate}]")).unwrap_or_default();
    let message = message.strip_prefix(&before).unwrap_or(message);
    let message = message.strip_suffix(&after).unwrap_or(message);
    let mut error = Error::new(kind, message);
    if let Some(sqlstate) = sqlstate {
        error = error.with_sqlstate(sqlstate);
    }
    if is_placed {
        error = error.at(place);
    }
    Ok(match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    })
}
