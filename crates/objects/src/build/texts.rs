//! Texts.

use std::sync::Arc;

use arrow_array::builder::GenericStringBuilder;
use arrow_array::{ArrayRef, OffsetSizeTrait};
use pyo3::prelude::*;

use super::Builder;
use crate::class::Class;
use crate::fault::Fault;
use crate::read::{Reader, text};

/// Whether so many bytes more have a place in an array whose offsets are `O`.
pub(super) fn fits<O: OffsetSizeTrait>(bytes: usize, more: usize) -> bool {
    bytes.checked_add(more).and_then(O::from_usize).is_some()
}

/// Texts within other values.
pub(super) struct Texts<O: OffsetSizeTrait>(GenericStringBuilder<O>);

impl<O: OffsetSizeTrait> Texts<O> {
    pub(super) fn new(rows: usize) -> Self {
        Self(GenericStringBuilder::with_capacity(rows, 0))
    }
}

impl<O: OffsetSizeTrait> Builder for Texts<O> {
    fn push<'py>(
        &mut self,
        reader: &mut Reader<'py>,
        item: &Bound<'py, PyAny>,
        _class: Class,
    ) -> Result<(), Fault> {
        let text = text(item).map_err(|misread| reader.fault(misread))?;
        if !fits::<O>(self.0.values_slice().len(), text.len()) {
            return Err(Fault::changed(reader.row));
        }
        self.0.append_value(text);
        Ok(())
    }

    fn push_nulls(&mut self, count: usize) {
        self.0.append_nulls(count);
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

/// The array of `objects`, of which each has its row. The copy does not hold the interpreter's lock: a text never changes,
/// and `objects` keeps each alive whatever becomes of the column.
pub(crate) fn texts<'py, O: OffsetSizeTrait>(
    reader: &mut Reader<'py>,
    objects: &[Option<Bound<'py, PyAny>>],
    first: usize,
) -> Result<ArrayRef, Fault> {
    let mut found: Vec<Option<&str>> = Vec::with_capacity(objects.len());
    let mut bytes = 0;
    for (at, object) in objects.iter().enumerate() {
        reader.row = first + at;
        let text = object.as_ref().map(text).transpose().map_err(|misread| reader.fault(misread))?;
        bytes += text.map_or(0, str::len);
        found.push(text);
    }
    if !fits::<O>(bytes, 0) {
        return Err(Fault::changed(first));
    }
    Ok(reader.py().detach(|| {
        let mut array = GenericStringBuilder::<O>::with_capacity(found.len(), bytes);
        for text in &found {
            array.append_option(*text);
        }
        Arc::new(array.finish()) as ArrayRef
    }))
}
