//! A failure at one row of one batch, before its column and its place in the whole result are known.

use longshore_core::{Error, Kind, Place};
use pyo3::PyErr;

/// What went wrong at `row` of the array at hand.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) row: usize,
    kind: Kind,
    message: String,
    hint: Option<&'static str>,
    source: Option<PyErr>,
}

impl Fault {
    /// A value that the frame cannot hold exactly.
    pub(crate) fn data(row: usize, message: impl Into<String>) -> Self {
        Self { row, kind: Kind::Data, message: message.into(), hint: None, source: None }
    }

    /// This library, or the interpreter, failed where it should not.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self { row: 0, kind: Kind::Internal, message: message.into(), hint: None, source: None }
    }

    /// An exception of Python's while the object of `row` was made.
    pub(crate) fn python(row: usize, what: &str, error: PyErr) -> Self {
        Self { row, kind: Kind::Data, message: format!("{what}: {error}"), hint: None, source: Some(error) }
    }

    /// Adds what the reader can do about it.
    pub(crate) fn with_hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }

    /// The same failure seen from the array around this one.
    pub(crate) fn at_row(mut self, row: usize) -> Self {
        self.row = row;
        self
    }

    /// The error that the caller sees.
    pub(crate) fn into_error(self, place: Place) -> Error {
        let mut error = Error::new(self.kind, self.message).at(place);
        if let Some(hint) = self.hint {
            error = error.with_hint(hint);
        }
        match self.source {
            Some(source) => error.with_source(source),
            None => error,
        }
    }
}
