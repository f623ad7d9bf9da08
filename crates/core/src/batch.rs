//! Record batches out of their columns, and those of a whole result under their final types.

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{FieldRef, Schema, SchemaRef};

use crate::{Error, Finalised, Result};

/// A batch of so many `rows`, even where it has no columns. That these do not fit the schema is a defect.
pub fn batch_of(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
        .map_err(|error| Error::internal(format!("the columns do not fit their schema: {error}")))
}

/// The batches of a whole result, where `finalise` gives the field of a column, by its number, and its arrays in their final type.
pub fn finalise_columns(
    schema: &Schema,
    batches: Vec<RecordBatch>,
    mut finalise: impl FnMut(usize, &FieldRef, Vec<ArrayRef>) -> Result<(FieldRef, Vec<ArrayRef>)>,
) -> Result<Finalised> {
    let rows: Vec<usize> = batches.iter().map(RecordBatch::num_rows).collect();
    let mut arrays = vec![Vec::with_capacity(rows.len()); schema.fields().len()];
    for batch in batches {
        arrays.iter_mut().zip(batch.columns()).for_each(|(column, array)| column.push(array.clone()));
    }
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for (at, (field, arrays)) in schema.fields().iter().zip(arrays).enumerate() {
        let (field, arrays) = finalise(at, field, arrays)?;
        fields.push(field);
        columns.push(arrays.into_iter());
    }
    let schema = SchemaRef::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
    let batch = |rows| batch_of(&schema, columns.iter_mut().filter_map(Iterator::next).collect(), rows);
    let batches = rows.into_iter().map(batch).collect::<Result<_>>()?;
    Ok((schema, batches))
}
