//! Columns of texts alone: Arrow's views of them, in one pass and by several threads.

mod layout;
mod round;
mod rows;
mod views;

use std::ops::Range;

use arrow_array::ArrayRef;
use longshore_core::Result;
use pyo3::prelude::*;

use crate::class::Class;
use crate::fault::Fault;
use crate::objects::{Choices, class};
use crate::read::{Reader, text};
use crate::slots::Slots;
use layout::Layout;
use round::made;
use rows::{Odd, Rows};
use views::Views;

/// Chunks between two looks at Python's signals.
const ROUND: usize = 32;

/// Objects that are known to say that there is nothing: `None`, and NaN or the like.
const KNOWN: usize = 4;

/// The arrays of views of a column that has texts and what is missing, and nothing else; `chunk` rows in each,
/// made by so many threads or by as many as there are processors.
///
/// `None` for every other column, and where the interpreter keeps texts in a way that is not known: [`crate::Objects`] has
/// their type, or their error.
pub fn texts(
    values: &Bound<'_, PyAny>,
    name: &str,
    choices: Choices,
    chunk: usize,
    threads: Option<usize>,
) -> Result<Option<Vec<ArrayRef>>> {
    let slots = Slots::of(values)?;
    let Some(layout) = Layout::of(values.py()) else { return Ok(None) };
    let column = Column { slots, layout, choices, missing: vec![values.py().None().into_bound(values.py())] };
    column.arrays(chunk.max(1), threads).map_err(|fault| fault.into_error(name))
}

struct Column<'py> {
    slots: Slots<'py>,
    layout: Layout,
    choices: Choices,
    /// They are kept, so that no other object takes their addresses.
    missing: Vec<Bound<'py, PyAny>>,
}

/// What follows from an object that is odd.
enum Next {
    /// It is missing, and will be known by its address.
    Again,
    /// Such objects are to be read one by one.
    OneByOne,
    /// The column is not of texts alone.
    Leave,
}

impl<'py> Column<'py> {
    fn arrays(mut self, chunk: usize, threads: Option<usize>) -> Result<Option<Vec<ArrayRef>>, Fault> {
        let py = self.slots.py();
        let mut reader = Reader::new(py);
        let length = self.slots.len();
        let chunks: Vec<_> =
            (0..length).step_by(chunk).map(|start| start..length.min(start.saturating_add(chunk))).collect();
        let mut arrays = Vec::with_capacity(chunks.len());
        let mut has_text = false;
        while let Some(chunk) = chunks.get(arrays.len()) {
            py.check_signals().map_err(|error| Fault::python(py, chunk.start, error))?;
            // Others may have the interpreter's lock between two rounds.
            py.detach(|| ());
            // The first by itself: it tells soon whether there is more to be done.
            let most = if arrays.is_empty() { 1 } else { ROUND };
            let round = &chunks[arrays.len()..chunks.len().min(arrays.len() + most)];
            let made = made(self.rows(&self.missing()), round, threads);
            for (chunk, views) in round.iter().zip(made) {
                let views = match views {
                    Ok(views) => Some(views),
                    Err(odd) => self.resolved(&mut reader, chunk, odd)?,
                };
                let Some(views) = views else { return Ok(None) };
                has_text |= views.has_text();
                arrays.push(views.finish());
            }
        }
        Ok(has_text.then_some(arrays))
    }

    fn missing(&self) -> Vec<usize> {
        self.missing.iter().map(|object| object.as_ptr().addr()).collect()
    }

    fn rows<'a>(&'a self, missing: &'a [usize]) -> Rows<'a> {
        Rows { slots: self.slots.lent(), layout: self.layout, missing }
    }

    /// The texts of a chunk in which something is odd; `None` if it has more than texts.
    fn resolved(
        &mut self,
        reader: &mut Reader<'py>,
        chunk: &Range<usize>,
        mut odd: Odd,
    ) -> Result<Option<Views>, Fault> {
        loop {
            match self.next(reader, odd)? {
                Next::Leave => return Ok(None),
                Next::OneByOne => return self.one_by_one(reader, chunk),
                Next::Again => match self.rows(&self.missing()).views(chunk.clone()) {
                    Ok(views) => return Ok(Some(views)),
                    Err(other) => odd = other,
                },
            }
        }
    }

    fn next(&mut self, reader: &mut Reader<'py>, Odd(row): Odd) -> Result<Next, Fault> {
        reader.row = row;
        let Some(object) = self.slots.get(row) else { return Ok(Next::OneByOne) };
        match class(reader, &object, self.choices) {
            Ok(None) if self.missing.len() < KNOWN => {
                self.missing.push(object);
                Ok(Next::Again)
            }
            Ok(None | Some(Class::Text)) => Ok(Next::OneByOne),
            Err(fault) if fault.is_raised() => Err(fault),
            _ => Ok(Next::Leave),
        }
    }

    fn one_by_one(&self, reader: &mut Reader<'py>, chunk: &Range<usize>) -> Result<Option<Views>, Fault> {
        let missing = self.missing();
        let rows = self.rows(&missing);
        let mut views = Views::new(chunk.len());
        for row in chunk.clone() {
            if rows.push_row(row, &mut views).is_some() {
                continue;
            }
            reader.row = row;
            let Some(object) = self.slots.get(row) else { return Ok(None) };
            let pushed = match class(reader, &object, self.choices) {
                Ok(None) => {
                    views.push_null();
                    continue;
                }
                Ok(Some(Class::Text)) => text(&object).ok().and_then(|text| views.push_str(text).ok()),
                Err(fault) if fault.is_raised() => return Err(fault),
                _ => None,
            };
            if pushed.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(views))
    }
}
