//! Chunks of rows -> record batches: the second pass over a chunk, and when a batch is full.

use std::fmt;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use longshore_core::memory::Budget;
use longshore_core::{Meter, Place, ReadOptions, Result, batch_of};

use crate::{CellFault, Decoder, Spans};

/// No batch takes further rows from here on, so that 32-bit offsets always suffice: one further chunk adds a value
/// of 1 GiB at most.
const CLOSE_AT: usize = 512 << 20;

/// One column on its way from the source into Arrow.
pub struct ReadColumn {
    /// The database's own name of its type.
    pub native_type: String,
    /// Whether it may hold NULL.
    pub nullable: bool,
    /// Reads its cells.
    pub decoder: Box<dyn Decoder>,
}

/// The columns of a result on their way into record batches.
pub struct Assembly {
    schema: SchemaRef,
    columns: Vec<ReadColumn>,
    spans: Spans,
    batch_rows: usize,
    batch_bytes: usize,
    meter: Arc<Meter>,
    budget: Arc<Budget>,
    /// Rows decoded in all.
    decoded: u64,
    /// Rows decoded since the last batch.
    pending: usize,
    /// Whether a batch has been made.
    yielded: bool,
}

impl Assembly {
    /// Batches of `schema`, whose fields `columns` read.
    #[must_use]
    pub fn new(schema: SchemaRef, columns: Vec<ReadColumn>, options: &ReadOptions) -> Self {
        Self {
            schema,
            spans: Spans::new(columns.len()),
            columns,
            batch_rows: options.batch_rows,
            batch_bytes: options.batch_bytes.min(CLOSE_AT),
            meter: options.meter.clone(),
            budget: options.budget.clone(),
            decoded: 0,
            pending: 0,
            yielded: false,
        }
    }

    /// The schema of every batch.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Rows decoded in all.
    #[must_use]
    pub fn decoded_rows(&self) -> u64 {
        self.decoded
    }

    /// The chunk that the first pass fills.
    #[inline]
    pub fn spans(&mut self) -> &mut Spans {
        &mut self.spans
    }

    /// The most rows that the chunk may hold before it is to be decoded.
    #[must_use]
    pub fn chunk_rows(&self) -> usize {
        self.spans.capacity().min(self.remaining_rows())
    }

    /// How many more rows the next batch may have.
    #[must_use]
    pub fn remaining_rows(&self) -> usize {
        self.batch_rows - self.pending
    }

    /// Second pass: each column's decoder reads its cells in `bytes`; the chunk is empty afterwards.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<()> {
        self.budget.grow(bytes.len())?;
        let rows = self.spans.rows();
        for (index, column) in self.columns.iter_mut().enumerate() {
            let cells = self.spans.column(index, bytes);
            let decoded = if cells.any_null() && !column.nullable {
                Err(broken_promise(cells.iter().position(|cell| cell.is_none()).unwrap_or_default()))
            } else {
                column.decoder.decode(cells)
            };
            decoded.map_err(|fault| {
                let place = Place {
                    column: Some(self.schema.field(index).name().clone()),
                    row: Some(self.decoded + fault.row as u64),
                    native_type: Some(column.native_type.clone()),
                };
                fault.into_error(place)
            })?;
        }
        self.decoded += rows as u64;
        self.pending += rows;
        self.meter.add_rows(rows as u64);
        self.spans.clear();
        Ok(())
    }

    /// Whether the next batch has all the rows or bytes that it may have.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.pending > 0 && (self.pending >= self.batch_rows || self.size() >= self.batch_bytes)
    }

    fn size(&self) -> usize {
        self.columns.iter().map(|column| column.decoder.size()).sum()
    }

    /// The batch of the rows decoded since the last one.
    pub fn batch(&mut self) -> Result<RecordBatch> {
        let arrays: Vec<ArrayRef> = self.columns.iter_mut().map(|column| column.decoder.finish()).collect();
        self.yielded = true;
        batch_of(&self.schema, arrays, std::mem::take(&mut self.pending))
    }

    /// The rows at the result's end. An empty result is one empty batch: it brings the enums' labels.
    pub fn last(&mut self) -> Result<Option<RecordBatch>> {
        if self.pending > 0 || !self.yielded { self.batch().map(Some) } else { Ok(None) }
    }
}

impl fmt::Debug for Assembly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Assembly")
            .field("schema", &self.schema)
            .field("decoded", &self.decoded)
            .field("pending", &self.pending)
            .finish_non_exhaustive()
    }
}

#[cold]
fn broken_promise(row: usize) -> CellFault {
    CellFault::with_hint(
        row,
        "NULL in a column that is declared NOT NULL",
        "the table was altered while the query ran, or its data is damaged: run the query again",
    )
}
