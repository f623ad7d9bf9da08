//! Rows whose columns lie in several parts, as batches bring them: they are written to a file, and encoded, without being put
//! together first.

mod encode;
mod file;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::concat::concat;

pub use encode::{decimals, dictionary};
pub use file::write;

/// Rows, each of whose columns lies in the parts in which it came, or as one array.
#[derive(Debug)]
pub struct Parts {
    /// The columns' names and types.
    pub schema: SchemaRef,
    /// Of each column its parts, of which there is one at least.
    pub columns: Vec<Vec<ArrayRef>>,
}

impl Parts {
    /// The rows of batches, whose columns are the schema's. Those that are found neither by their width nor by offsets are put
    /// together, which dictionaries and offsets of 32 bits may be too small for.
    pub fn of(schema: SchemaRef, batches: &[RecordBatch]) -> Result<Self, ArrowError> {
        let parts = |at| batches.iter().map(|batch| batch.column(at).clone()).collect();
        let columns = (0..schema.fields().len()).map(|at| column(parts(at))).collect::<Result<_, _>>()?;
        Ok(Self { schema, columns })
    }

    /// How many rows they are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |parts| length(parts))
    }
}

fn column(parts: Vec<ArrayRef>) -> Result<Vec<ArrayRef>, ArrowError> {
    match parts.as_slice() {
        [whole] => Ok(vec![gather(whole)]),
        parts_of if file::may_lie_in_parts(parts_of)? => Ok(parts),
        parts => Ok(vec![gather(&concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>())?)]),
    }
}

/// How many rows the parts of a column have.
fn length(parts: &[ArrayRef]) -> usize {
    parts.iter().map(Array::len).sum()
}

/// A column of views with the texts that it shows, and no others of its batch.
fn gather(column: &ArrayRef) -> ArrayRef {
    if let Some(views) = column.as_string_view_opt() {
        return Arc::new(views.gc());
    }
    column.as_binary_view_opt().map_or_else(|| column.clone(), |views| Arc::new(views.gc()))
}

/// The NULLs of parts; `None` where there are none.
fn nulls(parts: &[ArrayRef]) -> Option<NullBuffer> {
    if parts.iter().all(|part| part.null_count() == 0) {
        return None;
    }
    let mut bits = BooleanBufferBuilder::new(length(parts));
    for part in parts {
        match part.nulls() {
            Some(nulls) => bits.append_buffer(nulls.inner()),
            None => bits.append_n(part.len(), true),
        }
    }
    Some(NullBuffer::new(bits.finish()))
}
