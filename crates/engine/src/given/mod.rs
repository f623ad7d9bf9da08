//! Columns of texts on their way into the engine, where this side has less to do than the engine would.

mod codes;
mod search;
mod taken;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, BinaryViewArray, LargeBinaryArray};
use arrow_schema::DataType;

pub use codes::codes;
pub use search::{Place, search};
pub use taken::taken;

/// An array of texts, of which nobody has looked whether they are UTF-8.
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
