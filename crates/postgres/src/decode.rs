//! The decoders of cells into Arrow columns, by a column's type and its format.

mod binary;
mod deferred;
pub(crate) mod nested;
mod numeric;
mod text;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use arrow_buffer::ScalarBuffer;
use arrow_schema::DataType;
use longshore_core::memory::try_reserve;
use longshore_core::{Error, ReadOptions, Result};
use longshore_values::policies::ValuePolicies;
use longshore_values::{CellFault, Cells, Decoder, Losses, Validity};

use crate::types::{Format, Type};

pub(crate) use deferred::{Part, finalise};

/// The error of a type of `schema=` that has no decoder here.
pub(crate) fn unreadable(requested: &DataType) -> Error {
    Error::not_supported(format!("cannot be read as {requested}"))
        .with_hint("leave it out of schema=, or ask for \"string\"")
}

/// The decoder of a column named `name`, whose cells arrive in `format`, into Arrow's `data_type`.
pub(crate) fn decoder(
    name: &str,
    native: &Type,
    format: Format,
    data_type: &DataType,
    options: &ReadOptions,
) -> Result<Box<dyn Decoder>> {
    let (policies, losses) = (ValuePolicies::from(options), Losses::of(name, options));
    match format {
        Format::Binary => Ok(binary::decoder(native, data_type, policies, &losses)),
        Format::Text => text::decoder(native, data_type, policies, &losses)
            .ok_or_else(|| unreadable(data_type).at(native.place(name))),
    }
}

/// A column of an enum's labels, of which all batches share one dictionary.
pub(crate) struct Labels {
    dictionary: Arc<StringArray>,
    keys_by_label: HashMap<Box<[u8]>, i32>,
    keys: Vec<i32>,
    validity: Validity,
}

impl Labels {
    pub(crate) fn new(labels: &[String]) -> Self {
        let numbered = (0..).zip(labels);
        let keys_by_label = numbered.map(|(key, label)| (label.as_bytes().into(), key)).collect();
        let dictionary = Arc::new(StringArray::from_iter_values(labels));
        Self { dictionary, keys_by_label, keys: Vec::new(), validity: Validity::default() }
    }
}

impl Decoder for Labels {
    fn decode(&mut self, cells: Cells<'_>) -> Result<(), CellFault> {
        try_reserve(&mut self.keys, cells.len())?;
        for (row, cell) in cells.iter().enumerate() {
            let key = match cell {
                None => 0,
                Some(label) => *self.keys_by_label.get(label).ok_or_else(|| unknown(row, label))?,
            };
            self.keys.push(key);
            self.validity.push(cell.is_some());
        }
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        let keys =
            Int32Array::new(ScalarBuffer::from(std::mem::take(&mut self.keys)), self.validity.finish());
        // Each key came out of the map over these very labels.
        Arc::new(DictionaryArray::<Int32Type>::new(keys, self.dictionary.clone()))
    }

    fn size(&self) -> usize {
        size_of_val(self.keys.as_slice())
    }
}

fn unknown(row: usize, label: &[u8]) -> CellFault {
    CellFault::with_hint(
        row,
        format!("the label {:?} is not in the catalogue", String::from_utf8_lossy(label)),
        "the enum was altered while the query ran: run it again",
    )
}
