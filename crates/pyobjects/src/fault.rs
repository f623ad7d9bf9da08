//! A failure at one row of one column, before the column's name is known.

use longshore_core::{Error, Kind, Place};
use pyo3::PyErr;
use pyo3::exceptions::{PyException, PyMemoryError};
use pyo3::prelude::*;

#[derive(Debug)]
struct Inner {
    row: usize,
    /// From the value outward: keys, and `[]` for the values of a list.
    path: Vec<String>,
    message: String,
    hint: Option<&'static str>,
    /// What Python itself wants to raise.
    raised: Option<PyErr>,
}

/// What is wrong with the object of a row. Small: one pointer.
#[derive(Debug)]
pub(crate) struct Fault(Box<Inner>);

impl Fault {
    pub(crate) fn new(row: usize, message: impl Into<String>) -> Self {
        let inner = Inner { row, path: Vec::new(), message: message.into(), hint: None, raised: None };
        Self(Box::new(inner))
    }

    /// An exception of Python's at `row`. One that asks the program to stop is raised as it is.
    #[cold]
    pub(crate) fn python(py: Python<'_>, row: usize, error: PyErr) -> Self {
        let mut fault = Self::new(row, format!("it cannot be read: {error}"));
        if !error.is_instance_of::<PyException>(py) || error.is_instance_of::<PyMemoryError>(py) {
            fault.0.raised = Some(error);
        }
        fault
    }

    /// An object that is not what it was when the column's type was found.
    #[cold]
    pub(crate) fn changed(row: usize) -> Self {
        Self::new(row, "the object was changed while it was read")
            .with_hint("let no other thread change the data meanwhile, or give a copy of it")
    }

    pub(crate) fn with_hint(mut self, hint: &'static str) -> Self {
        self.0.hint = Some(hint);
        self
    }

    /// The same failure seen from the object around: a dict that has the value under `key`.
    pub(crate) fn under(mut self, key: &str) -> Self {
        self.0.path.push(format!(".{key}"));
        self
    }

    /// The same failure seen from the list around.
    pub(crate) fn in_list(mut self) -> Self {
        self.0.path.push("[]".into());
        self
    }

    /// Whether the program is to stop, whatever could be made of the column otherwise.
    pub(crate) fn is_raised(&self) -> bool {
        self.0.raised.is_some()
    }

    /// The error that the caller sees.
    pub(crate) fn into_error(self, column: &str) -> Error {
        let inner = *self.0;
        let path: String = inner.path.iter().rev().map(String::as_str).collect();
        let message = if path.is_empty() { inner.message } else { format!("at {path}: {}", inner.message) };
        let kind = if inner.raised.is_some() { Kind::Interrupted } else { Kind::Data };
        let place = Place { column: Some(column.to_owned()), row: Some(inner.row as u64), native_type: None };
        let hint = inner.hint.unwrap_or("convert the column to one type first");
        let error = Error::new(kind, message).with_hint(hint).at(place);
        match inner.raised {
            Some(raised) => error.with_source(raised),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_from_the_row_inward() {
        let fault = Fault::new(3, "it is wrong").under("c").in_list().under("a b");
        let error = fault.into_error("v");
        assert_eq!(
            error.to_string(),
            "column \"v\", row 3: at .a b[].c: it is wrong\nHint: convert the column to one type first"
        );
    }
}
