//! A driver's exceptions as the core's errors.

use longshore_core::{Error, Kind, Place};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

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
    ("DatabaseError", Kind::Operational),
];

/// The error that `raised` is: one of Longshore's with all its parts, any other as it is.
#[allow(clippy::needless_pass_by_value)] // what `map_err` gives
pub(crate) fn error_of(py: Python<'_>, raised: PyErr) -> Error {
    read(py, &raised).ok().flatten().unwrap_or_else(|| {
        let kind =
            if raised.is_instance_of::<PyException>(py) { Kind::Operational } else { Kind::Interrupted };
        Error::new(kind, "stopped by a Python exception").with_source(raised)
    })
}

fn read(py: Python<'_>, raised: &PyErr) -> PyResult<Option<Error>> {
    let errors = py.import("longshore.errors")?;
    let value = raised.value(py);
    for (name, kind) in CLASSES {
        if value.is_instance(&errors.getattr(*name)?)? {
            return built(value, *kind).map(Some);
        }
    }
    Ok(None)
}

fn built(value: &Bound<'_, PyAny>, kind: Kind) -> PyResult<Error> {
    let text = value.str()?.to_string();
    let part = |name: &str| value.getattr(name)?.extract::<Option<String>>();
    let hint = part("hint")?;
    // The exception's text ends with its hint.
    let message =
        hint.as_ref().and_then(|hint| text.strip_suffix(&format!("\nHint: {hint}"))).unwrap_or(&text);
    let mut error = Error::new(kind, message);
    if let Some(sqlstate) = part("sqlstate")? {
        error = error.with_sqlstate(sqlstate);
    }
    let (column, row) = (part("column")?, value.getattr("row")?.extract::<Option<u64>>()?);
    if column.is_some() || row.is_some() {
        error = error.at(Place { column, row, native_type: part("native_type")? });
    }
    Ok(match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    })
}
