//! A failure at one row of one array, before its column and its place in the whole are known.

use std::error::Error as StdError;

use longshore_core::memory::OutOfMemory;
use longshore_core::{Error, Kind, Place};

#[derive(Debug)]
struct Inner {
    row: usize,
    /// From the value outward: keys, and `[]` for the values of a list.
    path: Vec<String>,
    kind: Kind,
    message: String,
    hint: Option<&'static str>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// A fault of the value of a row. Small: one pointer.
#[derive(Debug)]
pub struct Fault(Box<Inner>);

impl Fault {
    /// A failure of `kind` at `row`.
    #[cold]
    pub fn new(row: usize, kind: Kind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self(Box::new(Inner { row, path: Vec::new(), kind, message, hint: None, source: None }))
    }

    /// A value that has no exact form.
    pub fn data(row: usize, message: impl Into<String>) -> Self {
        Self::new(row, Kind::Data, message)
    }

    /// This library broke its own rules.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(0, Kind::Internal, message)
    }

    /// Adds what the reader can do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: &'static str) -> Self {
        self.0.hint = Some(hint);
        self
    }

    /// Adds what is to be raised instead.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// The family of failure.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The row, counted in the array at hand.
    #[must_use]
    pub fn row(&self) -> usize {
        self.0.row
    }

    /// The same failure seen from the array around this one.
    #[must_use]
    pub fn at_row(mut self, row: usize) -> Self {
        self.0.row = row;
        self
    }

    /// The same failure seen from the object around: a dict that has the value under `key`.
    #[must_use]
    pub fn under(mut self, key: &str) -> Self {
        self.0.path.push(format!(".{key}"));
        self
    }

    /// The same failure seen from the list around.
    #[must_use]
    pub fn in_list(mut self) -> Self {
        self.0.path.push("[]".into());
        self
    }

    /// The error that the caller sees; without memory, no row is at fault.
    #[must_use]
    pub fn into_error(self, mut place: Place) -> Error {
        let inner = *self.0;
        if inner.kind == Kind::Memory {
            place.row = None;
        }
        let path: String = inner.path.iter().rev().map(String::as_str).collect();
        let message = if path.is_empty() { inner.message } else { format!("at {path}: {}", inner.message) };
        let mut error = Error::new(inner.kind, message).at(place);
        if let Some(hint) = inner.hint {
            error = error.with_hint(hint);
        }
        match inner.source {
            Some(source) => error.with_source(source),
            None => error,
        }
    }
}

impl From<OutOfMemory> for Fault {
    #[cold]
    fn from(_: OutOfMemory) -> Self {
        Self::new(0, Kind::Memory, OutOfMemory::MESSAGE).with_hint(OutOfMemory::HINT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_from_the_outside() {
        let fault = Fault::data(7, "wrong").in_list().under("b").under("a").with_hint("mend it");
        let place = Place { column: Some("v".into()), row: Some(fault.row() as u64), native_type: None };
        let error = fault.into_error(place);
        assert_eq!(error.to_string(), "column \"v\", row 7: at .a.b[]: wrong\nHint: mend it");
    }
}
