//! Columns of texts, copied without the interpreter's lock.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::GenericStringBuilder;
use arrow_array::{ArrayRef, OffsetSizeTrait};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::fits;
use crate::fault::Fault;
use crate::read::{Reader, SURROGATE};

/// Texts that are copied at a time, without the interpreter's lock: their objects fit the processor's larger caches.
const BLOCK: usize = 1 << 15;

/// Texts whose objects are looked at twice while they are in the nearest cache.
const NEAR: usize = 1 << 10;

/// The array of `length` texts, of which `text` gives each; those that are missing are NULL.
pub(crate) fn texts<'py, O, T>(
    reader: &mut Reader<'py>,
    length: usize,
    mut text: T,
) -> Result<ArrayRef, Fault>
where
    O: OffsetSizeTrait,
    T: FnMut(&mut Reader<'py>, usize) -> Result<Option<Bound<'py, PyString>>, Fault>,
{
    let first = reader.row;
    let mut array = GenericStringBuilder::<O>::with_capacity(length, 0);
    for start in (0..length).step_by(BLOCK) {
        let rows = first + start..first + length.min(start + BLOCK);
        block(reader, rows, &mut text, &mut array)?;
    }
    Ok(Arc::new(array.finish()))
}

/// Appends the texts of `rows`. The copy does not hold the interpreter's lock: a text never changes, and a reference to each is
/// held until all are copied, whatever becomes of the column.
fn block<'py, O, T>(
    reader: &mut Reader<'py>,
    rows: Range<usize>,
    text: &mut T,
    array: &mut GenericStringBuilder<O>,
) -> Result<(), Fault>
where
    O: OffsetSizeTrait,
    T: FnMut(&mut Reader<'py>, usize) -> Result<Option<Bound<'py, PyString>>, Fault>,
{
    let mut objects: Vec<Option<Bound<'py, PyString>>> = vec![None; rows.len()];
    let mut found: Vec<Option<&str>> = Vec::with_capacity(rows.len());
    let mut bytes = array.values_slice().len();
    for near in objects.chunks_mut(NEAR) {
        let start = rows.start + found.len();
        for (at, object) in near.iter_mut().enumerate() {
            *object = text(reader, start + at)?;
        }
        for (at, object) in near.iter().enumerate() {
            reader.row = start + at;
            let text = object.as_ref().map(|object| object.to_str()).transpose();
            let text = text.map_err(|_| reader.fault(SURROGATE))?;
            bytes = bytes.saturating_add(text.map_or(0, str::len));
            found.push(text);
        }
    }
    if !fits::<O>(bytes, 0) {
        return Err(Fault::changed(rows.start));
    }
    reader.py().detach(|| found.iter().for_each(|text| array.append_option(*text)));
    Ok(())
}
