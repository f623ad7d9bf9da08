//! Whole results: every batch, collected as columns of a frame or as a table in Arrow's memory.

use arrow_array::{RecordBatch, RecordBatchIterator};
use longshore_core::memory::{Budget, Trim, check_available, rows_size};
use longshore_core::{Batches, Finalised, Progress, Result};
use longshore_interpreter::capsule::{Reader, external};

use crate::columns::Columns;
use crate::polars::{polars_batch, polars_copy, polars_schema};
use crate::shape::Choices;

/// The memory that a frame's library takes for any result.
const OVERHEAD: usize = 32 << 20;

/// The whole result with its final types, as a stream that never waits.
pub fn whole_table(
    batches: Box<dyn Batches>,
    for_polars: bool,
    budget: &Budget,
    progress: &Progress,
) -> Result<Reader> {
    let (schema, batches) = collect(batches, budget, progress)?;
    check_available(library_memory(&batches, for_polars))?;
    if !for_polars {
        return Ok(Box::new(RecordBatchIterator::new(batches.into_iter().map(Ok), schema)));
    }
    let schema = polars_schema(&schema);
    let named = schema.clone();
    let batches = batches.into_iter().map(move |batch| polars_batch(&batch, &named).map_err(external));
    Ok(Box::new(RecordBatchIterator::new(batches, schema)))
}

/// The memory of the frame's library for `batches`, above their own: without it, the library ends the process.
fn library_memory(batches: &[RecordBatch], for_polars: bool) -> usize {
    let columns = batches.iter().flat_map(RecordBatch::columns);
    let copied = columns.map(|column| 1024 + if for_polars { polars_copy(column) } else { 0 });
    OVERHEAD + copied.sum::<usize>()
}

/// Every batch, with the final types. The session ends with the result.
fn collect(mut batches: Box<dyn Batches>, budget: &Budget, progress: &Progress) -> Result<Finalised> {
    let (mut collected, mut held) = (Vec::new(), 0_usize);
    for batch in batches.by_ref() {
        let batch = batch?;
        let bytes = rows_size(&batch);
        held = held.saturating_add(bytes);
        budget.hold(held)?;
        budget.grow(bytes)?;
        progress.tick()?;
        collected.push(batch);
    }
    progress.finish()?;
    match batches.finaliser() {
        Some(finaliser) => finaliser.finalise(&batches.schema(), collected),
        None => Ok((batches.schema(), collected)),
    }
}

/// The columns of a whole result, fed while the batches arrive, or after the last where types are only then final.
pub fn whole_columns(
    mut batches: Box<dyn Batches>,
    choices: Choices,
    budget: &Budget,
    mut trim: Option<Trim>,
    progress: &Progress,
) -> Result<Columns> {
    if batches.finaliser().is_some() {
        let (schema, batches) = collect(batches, budget, progress)?;
        let mut columns = Columns::new(schema, &choices)?;
        batches.into_iter().try_for_each(|batch| push_batch(batch, &mut columns, &mut trim))?;
        return Ok(columns);
    }
    let mut columns = Columns::new(batches.schema(), &choices)?;
    for batch in batches.by_ref() {
        let before = columns.bytes();
        push_batch(batch?, &mut columns, &mut trim)?;
        let held = columns.bytes();
        budget.hold(held)?;
        budget.grow(held.saturating_sub(before))?;
        progress.tick()?;
    }
    progress.finish()?;
    Ok(columns)
}

/// Adds a batch's rows, and frees it.
fn push_batch(batch: RecordBatch, columns: &mut Columns, trim: &mut Option<Trim>) -> Result<()> {
    columns.push(&batch)?;
    let bytes = rows_size(&batch);
    drop(batch);
    if let Some(trim) = trim {
        trim.count(bytes);
    }
    Ok(())
}
