//! Values that become texts.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

use crate::fault::{Fault, What};

/// Makes one value's text of its bytes.
pub(crate) type Text = fn(&[u8]) -> Result<String, What>;

const TOO_LONG: What = What::Data {
    message: "the texts of one batch are larger than 2 GB together",
    hint: "leave the column out, or select fewer rows at a time",
};

/// The texts of all values of `array`.
pub(crate) fn texts(array: &dyn Array, text: Text) -> Result<ArrayRef, Fault> {
    let bytes = bytes_of(array)?;
    let (mut characters, mut offsets) = (String::new(), Vec::with_capacity(array.len() + 1));
    offsets.push(0_i32);
    for row in 0..array.len() {
        if array.is_valid(row) {
            characters.push_str(&text(bytes(row)).map_err(|what| what.at_row(row))?);
        }
        offsets.push(i32::try_from(characters.len()).map_err(|_| TOO_LONG.at_row(row))?);
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    let values = Buffer::from_vec(characters.into_bytes());
    StringArray::try_new(offsets, values, array.nulls().cloned())
        .map(|strings| Arc::new(strings) as ArrayRef)
        .map_err(|error| What::internal(&error).at_row(0))
}

/// Gives a row's bytes.
type Bytes<'a> = Box<dyn Fn(usize) -> &'a [u8] + 'a>;

/// The bytes of a row, whichever of Arrow's layouts they have.
fn bytes_of(array: &dyn Array) -> Result<Bytes<'_>, Fault> {
    match array.data_type() {
        DataType::Binary => {
            let array = array.as_binary::<i32>();
            Ok(Box::new(|row| array.value(row)))
        }
        DataType::LargeBinary => {
            let array = array.as_binary::<i64>();
            Ok(Box::new(|row| array.value(row)))
        }
        DataType::BinaryView => {
            let array = array.as_binary_view();
            Ok(Box::new(|row| array.value(row)))
        }
        DataType::FixedSizeBinary(_) => {
            let array = array.as_fixed_size_binary();
            Ok(Box::new(|row| array.value(row)))
        }
        _ => Err(What::internal("values that are not bytes").at_row(0)),
    }
}
