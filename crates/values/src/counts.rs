//! The numbers behind arrays of fixed width, whatever their type calls them.

use arrow_array::Array;
use arrow_buffer::{ArrowNativeType, ScalarBuffer};
use arrow_schema::{DataType, TimeUnit};

/// The numbers of an array as they are stored; below a NULL there is anything.
#[must_use]
pub fn stored_values<T: ArrowNativeType>(array: &dyn Array) -> ScalarBuffer<T> {
    let data = array.to_data();
    ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len())
}

/// The counts of an array of times, timestamps or durations, and their unit; `None` for any other.
#[must_use]
pub fn counts(array: &dyn Array) -> Option<(ScalarBuffer<i64>, TimeUnit)> {
    match array.data_type() {
        DataType::Time32(unit) => {
            Some((stored_values::<i32>(array).iter().map(|count| i64::from(*count)).collect(), *unit))
        }
        DataType::Time64(unit) | DataType::Timestamp(unit, _) | DataType::Duration(unit) => {
            Some((stored_values(array), *unit))
        }
        _ => None,
    }
}
