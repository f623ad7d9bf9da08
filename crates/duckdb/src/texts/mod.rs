//! Columns of texts on their way into the engine, where this side has less to do than the engine would.

mod dictionary;
mod search;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, BinaryViewArray, LargeBinaryArray};
use arrow_schema::DataType;

pub use dictionary::dictionaries;
pub use search::{Position, search};

/// An array of texts, not yet checked for UTF-8.
enum Texts {
    Short(BinaryArray),
    Long(LargeBinaryArray),
    Views(BinaryViewArray),
}

impl Texts {
    /// `None` for an array of anything else.
    fn of(array: &ArrayRef) -> Option<Self> {
        match array.data_type() {
            DataType::Utf8 => Some(Self::Short(array.as_string::<i32>().clone().into())),
            DataType::LargeUtf8 => Some(Self::Long(array.as_string::<i64>().clone().into())),
            DataType::Utf8View => Some(Self::Views(array.as_string_view().clone().to_binary_view())),
            _ => None,
        }
    }
}
