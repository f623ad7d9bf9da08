//! Columns that stay in Arrow memory: the batches' arrays, handed over without a copy.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeStringArray, StringArray, new_empty_array};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, FieldRef};
use longshore_core::EXTENSION;
use longshore_core::memory::values_size;
use longshore_interpreter::capsule;
use longshore_values::Fault;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::column::Column;
use crate::columns::Accumulator;
use crate::pages::populate;
use crate::shape::{is_json, is_text};

/// Keeps the arrays of one column.
pub(crate) struct Chunks {
    field: FieldRef,
    wide: bool,
    arrays: Vec<ArrayRef>,
    bytes: usize,
}

impl Chunks {
    /// Keeps arrays of `field`, strings with 64-bit offsets if `wide`.
    pub(crate) fn new(field: &Field, wide: bool) -> Self {
        let data_type = if wide { DataType::LargeUtf8 } else { field.data_type().clone() };
        let mut metadata = field.metadata().clone();
        if is_json(field) {
            // JSON is read as its text: the string methods of a frame would refuse the extension type.
            metadata.remove(EXTENSION);
        }
        let field = Field::new(field.name(), data_type, field.is_nullable()).with_metadata(metadata);
        Self { field: Arc::new(field), wide, arrays: Vec::new(), bytes: 0 }
    }
}

impl Accumulator for Chunks {
    fn absorb(&mut self, array: &dyn Array) -> Result<(), Fault> {
        if array.is_empty() && !self.arrays.is_empty() {
            return Ok(());
        }
        let array = if self.wide { widen(array) } else { array.slice(0, array.len()) };
        self.bytes += values_size(&array);
        self.arrays.push(array);
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn finish(mut self: Box<Self>, py: Python<'_>) -> PyResult<Column> {
        if self.arrays.is_empty() {
            self.arrays.push(new_empty_array(self.field.data_type()));
        }
        let field = &self.field;
        let chunk = |array| Py::new(py, capsule::Array::new(field.clone(), array));
        let chunks = self.arrays.into_iter().map(chunk).collect::<PyResult<Vec<_>>>()?;
        let mut column = Column::new("chunks", PyList::new(py, chunks)?.into_any());
        column.text = is_text(self.field.data_type());
        Ok(column)
    }
}

/// `array` with offsets of 64 bits.
fn widen(array: &dyn Array) -> ArrayRef {
    if let Some(texts) = array.as_string_opt::<i32>() {
        return Arc::new(widen_texts(texts));
    }
    if let Some(texts) = array.as_string_view_opt() {
        return Arc::new(texts.iter().collect::<LargeStringArray>());
    }
    array.slice(0, array.len())
}

/// `texts` with offsets of 64 bits. They are not looked at again: it would take longer than all else, and bring a file that is
/// mapped into memory.
#[allow(unsafe_code)]
fn widen_texts(texts: &StringArray) -> LargeStringArray {
    let mut offsets = Vec::with_capacity(texts.offsets().len());
    populate(&mut offsets, texts.offsets().len());
    offsets.extend(texts.offsets().iter().map(|offset| i64::from(*offset)));
    // SAFETY: they are those of a valid array, which ascend, lie within its bytes, and part them into texts; its NULLs
    // have its length.
    unsafe {
        let offsets = OffsetBuffer::new_unchecked(ScalarBuffer::from(offsets));
        LargeStringArray::new_unchecked(offsets, texts.values().clone(), texts.nulls().cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_stay_where_they_are() {
        let texts = StringArray::from(vec![Some("a"), None, Some("bcd"), Some("")]);
        for (start, length) in [(0, 4), (1, 2), (2, 0)] {
            let texts = texts.slice(start, length);
            let wide = widen_texts(&texts);
            assert_eq!(wide.iter().collect::<Vec<_>>(), texts.iter().collect::<Vec<_>>());
            assert_eq!(wide.values().as_ptr(), texts.values().as_ptr());
            wide.to_data().validate_full().unwrap();
        }
    }
}
