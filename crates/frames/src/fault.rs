//! A failure at one row of one batch, before its column and its place in the whole result are known.

use longshore_core::memory::NoRoom;
use longshore_core::{Error, Kind, Place};
use pyo3::exceptions::{PyArithmeticError, PyMemoryError, PyRecursionError, PyValueError};
use pyo3::prelude::*;

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

impl From<NoRoom> for Fault {
    #[cold]
    fn from(_: NoRoom) -> Self {
        Self::new(0, Kind::Memory, NoRoom::MESSAGE.into(), None).with_hint(NoRoom::HINT)
    }
}

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

    /// An exception of Python's while the object of `row` was made. One that is about the value becomes an error of ours,
    /// with its place; any other stays what is raised.
    pub(crate) fn python(row: usize, what: &str, error: PyErr) -> Self {
        if Python::attach(|py| error.is_instance_of::<PyMemoryError>(py)) {
            return NoRoom.into();
        }
        let is_of_value = Python::attach(|py| {
            error.is_instance_of::<PyValueError>(py)
                || error.is_instance_of::<PyArithmeticError>(py)
                || error.is_instance_of::<PyRecursionError>(py)
        });
        let message = format!("{what}: {error}");
        Self::new(row, Kind::Data, message, (!is_of_value).then_some(error))
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
    pub(crate) fn into_error(self, mut place: Place) -> Error {
        let inner = *self.0;
        if inner.kind == Kind::Memory {
            place.row = None;
        }
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
