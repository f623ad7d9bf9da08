//! Booleans of a byte each.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int8Type;
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::BooleanBuffer;

use crate::fault::{Fault, What};

/// The same booleans of a bit each.
pub(crate) fn booleans(array: &dyn Array) -> Result<ArrayRef, Fault> {
    let Some(bytes) = array.as_primitive_opt::<Int8Type>() else {
        return Err(What::internal("booleans that are not bytes").at_row(0));
    };
    let values = bytes.values();
    let bits = BooleanBuffer::collect_bool(values.len(), |row| values[row] != 0);
    Ok(Arc::new(BooleanArray::new(bits, bytes.nulls().cloned())))
}
