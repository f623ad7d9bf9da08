//! The memory that rows take.

use arrow_array::RecordBatch;

/// The bytes that the rows of a batch take, of buffers that may hold others', too.
#[must_use]
pub fn rows_size(batch: &RecordBatch) -> usize {
    let sizes = batch.columns().iter().map(|column| {
        // A type without a count of its own is taken as it lies in memory.
        column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_buffer_memory_size())
    });
    sizes.sum()
}
