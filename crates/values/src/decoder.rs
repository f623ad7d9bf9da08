//! The trait that turns cells into an Arrow array, and the faults that a cell can have.

use std::borrow::Cow;

use arrow_array::ArrayRef;
use longshore_core::memory::OutOfMemory;
use longshore_core::{Error, Kind, Place};

use crate::Cells;

/// A cell that its decoder cannot represent.
#[derive(Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The caller's options make it NULL.
    Null,
    /// The text of what is wrong with it, and what the caller can do.
    Fault(Box<(Cow<'static, str>, Option<Cow<'static, str>>)>),
}

impl Misfit {
    /// A fault without a remedy of its own.
    #[cold]
    pub fn fault(what: impl Into<Cow<'static, str>>) -> Self {
        Self::Fault(Box::new((what.into(), None)))
    }

    /// A fault with its remedy.
    #[cold]
    pub fn with_hint(what: impl Into<Cow<'static, str>>, hint: impl Into<Cow<'static, str>>) -> Self {
        Self::Fault(Box::new((what.into(), Some(hint.into()))))
    }
}

/// The words of an error that has no place yet.
impl From<Error> for Misfit {
    fn from(error: Error) -> Self {
        match error.hint() {
            Some(hint) => Self::with_hint(error.message().to_owned(), hint.to_owned()),
            None => Self::fault(error.message().to_owned()),
        }
    }
}

/// A fault and the row of the chunk that it is in; the reader adds the column's name and type.
#[derive(Debug, PartialEq, Eq)]
pub struct CellFault {
    /// The row, counted from the chunk's first.
    pub row: usize,
    /// The text of what is wrong with the cell.
    pub what: Cow<'static, str>,
    /// The text of what the caller can do.
    pub hint: Option<Cow<'static, str>>,
    /// The family of failure: [`Kind::Data`], or [`Kind::Memory`] where the column cannot grow.
    pub kind: Kind,
}

impl CellFault {
    /// The fault of the data in `row`, and what the caller can do.
    #[cold]
    pub fn with_hint(
        row: usize,
        what: impl Into<Cow<'static, str>>,
        hint: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { row, what: what.into(), hint: Some(hint.into()), kind: Kind::Data }
    }

    /// The error of the fault in `place`, the row of which only a value is at.
    #[must_use]
    pub fn into_error(self, mut place: Place) -> Error {
        if self.kind == Kind::Memory {
            place.row = None;
        }
        let error = Error::new(self.kind, self.what);
        match self.hint {
            Some(hint) => error.with_hint(hint).at(place),
            None => error.at(place),
        }
    }
}

impl From<OutOfMemory> for CellFault {
    #[cold]
    fn from(_: OutOfMemory) -> Self {
        Self {
            row: 0,
            what: OutOfMemory::MESSAGE.into(),
            hint: Some(OutOfMemory::HINT.into()),
            kind: Kind::Memory,
        }
    }
}

/// Turns one column's cells into one Arrow array. Chosen once per column and query; loops over a chunk.
pub trait Decoder: Send {
    /// Appends a chunk of cells.
    fn decode(&mut self, cells: Cells<'_>) -> Result<(), CellFault>;

    /// The array of all cells since the last call, whose rows are now forgotten.
    fn finish(&mut self) -> ArrayRef;

    /// The bytes that the cells since the last [`Decoder::finish`] hold.
    fn size(&self) -> usize;
}
