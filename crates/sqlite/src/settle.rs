//! A whole result's columns brought to the one type that holds all their values.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{FieldRef, Schema};
use longshore_cells::{CellFault, Losses};
use longshore_core::{DEFERRED, Error, NATIVE_TYPE, Place, ReadOptions, Result, Settled, Settler};

use crate::convert::convert;
use crate::kinds::Kinds;
use crate::plan::Plan;
use crate::types::Class;

/// Decides once all values are there.
pub(crate) struct Deciding {
    /// The classes of the columns; `None` for those that are final.
    classes: Vec<Option<(Class, Losses)>>,
}

impl Deciding {
    /// What settles a result of these columns; `None` where all are final.
    pub(crate) fn of(plans: &[Plan], options: &ReadOptions) -> Option<Arc<dyn Settler>> {
        let classes: Vec<_> = plans
            .iter()
            .map(|plan| Some((plan.deferred()?, Losses::of(plan.field.name(), options))))
            .collect();
        classes.iter().any(Option::is_some).then(|| Arc::new(Self { classes }) as Arc<dyn Settler>)
    }
}

impl Settler for Deciding {
    fn settle(&self, schema: &Schema, batches: Vec<RecordBatch>) -> Result<Settled> {
        let lengths: Vec<usize> = batches.iter().map(RecordBatch::num_rows).collect();
        let mut by_column: Vec<Vec<ArrayRef>> = vec![Vec::with_capacity(batches.len()); self.classes.len()];
        for batch in batches {
            for (arrays, array) in by_column.iter_mut().zip(batch.columns()) {
                arrays.push(array.clone());
            }
        }
        let mut fields = Vec::with_capacity(by_column.len());
        for ((arrays, class), field) in by_column.iter_mut().zip(&self.classes).zip(schema.fields()) {
            fields.push(match class {
                Some((class, losses)) => settled(field, arrays, *class, &mut losses.clone())?,
                None => field.clone(),
            });
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let mut columns: Vec<_> = by_column.into_iter().map(Vec::into_iter).collect();
        let batches = lengths.into_iter().map(|rows| {
            let arrays = columns.iter_mut().filter_map(Iterator::next).collect();
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            RecordBatch::try_new_with_options(schema.clone(), arrays, &options)
                .map_err(|error| Error::internal(format!("the settled columns do not match: {error}")))
        });
        let batches = batches.collect::<Result<_>>()?;
        Ok((schema, batches))
    }
}

/// Brings `arrays` to one type, each freed once its values are there.
fn settled(field: &FieldRef, arrays: &mut [ArrayRef], class: Class, losses: &mut Losses) -> Result<FieldRef> {
    let mut kinds = Kinds::default();
    for array in arrays.iter() {
        kinds.add(array, class);
    }
    let to = kinds.decide(class).map_err(|fault| located(fault, field, 0))?;
    let mut before = 0;
    for array in arrays {
        let rows = array.len() as u64;
        let taken = std::mem::replace(array, arrow_array::new_empty_array(&to));
        *array = convert(taken, class, &to, losses).map_err(|fault| located(fault, field, before))?;
        before += rows;
    }
    let mut metadata = field.metadata().clone();
    metadata.remove(DEFERRED);
    Ok(Arc::new(field.as_ref().clone().with_data_type(to).with_metadata(metadata)))
}

/// The error of a `fault` in a batch that has `before` rows of the result before it.
pub(crate) fn located(fault: CellFault, field: &FieldRef, before: u64) -> Error {
    let place = Place {
        column: Some(field.name().clone()),
        row: Some(before + fault.row as u64),
        native_type: field.metadata().get(NATIVE_TYPE).filter(|native| !native.is_empty()).cloned(),
    };
    fault.into_error(place)
}
