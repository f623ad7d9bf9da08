//! A failure at one row of one batch, before its column and its place in the whole result are known.

use longshore_core::{Error, Kind, Place};
use pyo3::PyErr;

#[derive(Debug)]
struct Inner {
    row: usize,
    kind: Kind,
    message: String,
    hint: Option<&'static str>,
    source: Option<PyErr>,
}

/// What went wrong at a row of the array at hand. Small: one pointer.
#[derive(Debug)]
pub(crate) struct Fault(Box<Inner>);

impl Fault {
    fn new(row: usize, kind: Kind, message: String, source: Option<PyErr>) -> Self {
        Self(Box::new(Inner { row, kind, message, hint: None, source }))
    }

    /// A value that the frame cannot hold exactly.
    pub(crate) fn data(row: usize, message: impl Into<String>) -> Self {
        Self::new(row, Kind::Data, message.into(), None)
    }

    /// This library broke its own rules.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(0, Kind::Internal, message.into(), None)
    }

    /// An exception of Python's while the object of `row` was made.
    pub(crate) fn python(row: usize, what: &str, error: PyErr) -> Self {
        Self::new(row, Kind::Data, format!("{what}: {error}"), Some(error))
    }

    /// Adds what the reader can do about it.
    pub(crate) fn with_hint(mut self, hint: &'static str) -> Self {
        self.0.hint = Some(hint);
        self
    }

    /// The row, counted in the array at hand.
    pub(crate) fn row(&self) -> usize {
        self.0.row
    }

    /// The same failure seen from the array around this one.
    pub(crate) fn at_row(mut self, row: usize) -> Self {
        self.0.row = row;
        self
    }

    /// The error that the caller sees.
    pub(crate) fn into_error(self, place: Place) -> Error {
        let inner = *self.0;
        let mut error = Error::new(inner.kind, inner.message).at(place);
        if let Some(hint) = inner.hint {
            error = error.with_hint(hint);
        }
        match inner.source {
            Some(source) => error.with_source(source),
            None => error,
        }
    }
}
