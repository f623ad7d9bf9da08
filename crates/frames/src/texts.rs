//! Columns of strings in pandas' own memory: one Arrow array with offsets of 64 bits.
//!
//! The batches' bytes are copied, out of memory that the next batch then takes again. Kept where they lie, they would keep
//! their whole batch alive where it came by Arrow's C interface.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, GenericStringArray, LargeStringArray, OffsetSizeTrait};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};
use pyo3::prelude::*;

use crate::chunks::{Chunk, text_field};
use crate::column::Parts;
use crate::columns::Accumulator;
use crate::fault::Fault;
use crate::numbers::no_array_of;
use crate::pages::make_room;

/// Strings and where each of them ends.
pub(crate) struct Texts {
    field: Field,
    bytes: Vec<u8>,
    /// One more than rows.
    offsets: Vec<i64>,
    nulls: NullBufferBuilder,
}

impl Texts {
    /// No rows of `field` yet.
    pub(crate) fn new(field: &Field) -> Self {
        let field = text_field(field).with_data_type(DataType::LargeUtf8);
        Self { field, bytes: Vec::new(), offsets: vec![0], nulls: NullBufferBuilder::new(0) }
    }

    fn end(&self) -> i64 {
        // A vector has at most this many bytes.
        i64::try_from(self.bytes.len()).unwrap_or(i64::MAX)
    }

    fn extend<O: OffsetSizeTrait>(&mut self, strings: &GenericStringArray<O>) {
        let offsets = strings.value_offsets();
        let (first, last) = (offsets[0].as_usize(), offsets[strings.len()].as_usize());
        let before = self.end() - offsets[0].to_i64().unwrap_or_default();
        make_room(&mut self.bytes, last - first);
        self.bytes.extend_from_slice(&strings.value_data()[first..last]);
        make_room(&mut self.offsets, strings.len());
        self.offsets.extend(offsets[1..].iter().map(|end| before + end.to_i64().unwrap_or_default()));
    }

    fn push(&mut self, text: &str) {
        make_room(&mut self.bytes, text.len());
        self.bytes.extend_from_slice(text.as_bytes());
        make_room(&mut self.offsets, 1);
        self.offsets.push(self.end());
    }

    /// The strings as an array, their memory its own.
    #[allow(unsafe_code)]
    fn array(mut self) -> LargeStringArray {
        self.bytes.shrink_to_fit();
        self.offsets.shrink_to_fit();
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        // SAFETY: each piece between two offsets was a string, or bytes of a string array under a NULL, which are one, too;
        // `OffsetBuffer` has seen that the offsets rise, and the last is the number of bytes.
        unsafe { LargeStringArray::new_unchecked(offsets, self.bytes.into(), self.nulls.finish()) }
    }
}

impl Accumulator for Texts {
    fn absorb(&mut self, array: &dyn Array) -> Result<(), Fault> {
        match array.data_type() {
            DataType::Utf8 => self.extend(array.as_string::<i32>()),
            DataType::LargeUtf8 => self.extend(array.as_string::<i64>()),
            DataType::Utf8View => {
                array.as_string_view().iter().for_each(|text| self.push(text.unwrap_or_default()));
            }
            _ => return Err(no_array_of("strings")),
        }
        match array.nulls() {
            Some(nulls) => self.nulls.append_buffer(nulls),
            None => self.nulls.append_n_non_nulls(array.len()),
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.bytes.len() + size_of_val(self.offsets.as_slice()) + self.nulls.allocated_size()
    }

    fn finish(self: Box<Self>, py: Python<'_>) -> PyResult<Parts> {
        let field = Arc::new(self.field.clone());
        let mut parts = Parts::new("chunks", Chunk::list(py, &field, vec![Arc::new(self.array())])?);
        parts.text = true;
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{StringArray, StringViewArray};

    use super::*;

    #[test]
    fn strings_of_every_layout_become_one_array() {
        let mut texts = Texts::new(&Field::new("a", DataType::Utf8, true));
        texts.absorb(&StringArray::from(vec![Some("out"), Some("ä"), None, Some("")]).slice(1, 3)).unwrap();
        texts.absorb(&LargeStringArray::from(vec!["b", "cd"])).unwrap();
        texts.absorb(&StringViewArray::from(vec![None, Some("longer than twelve")])).unwrap();
        let expected = [Some("ä"), None, Some(""), Some("b"), Some("cd"), None, Some("longer than twelve")];
        let array = texts.array();
        assert_eq!(array.iter().collect::<Vec<_>>(), expected);
        array.to_data().validate_full().unwrap();
    }

    #[test]
    fn no_rows_are_no_strings() {
        let array = Texts::new(&Field::new("a", DataType::Utf8, true)).array();
        assert_eq!(array.len(), 0);
        array.to_data().validate_full().unwrap();
    }
}
