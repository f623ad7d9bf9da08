//! Several results that make one: they must agree, and their batches take the one schema.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, FieldRef, Schema, SchemaRef};

use crate::{EXTENSION, Error, NATIVE_TYPE, Result, has_deferred};

/// Fails unless `next`, which `whose` names, has the columns of `first`: names and types; metadata such as a text's
/// declared length may differ.
pub(crate) fn agree(first: &Schema, next: &Schema, whose: &str) -> Result<()> {
    let (first, next) = (first.fields(), next.fields());
    let mismatch = |said: String| {
        Error::programming(format!("{whose} returns {said}"))
            .with_hint("give every query the same columns, names and types: cast where they differ")
    };
    if first.len() != next.len() {
        return Err(mismatch(format!("{} columns where the first has {}", next.len(), first.len())));
    }
    match first.iter().zip(next).find(|(a, b)| !are_alike(a, b)) {
        Some((a, b)) => Err(mismatch(format!("{} where the first has {}", label(b), label(a)))),
        None => Ok(()),
    }
}

/// Whether one column may follow the other. What is finalised only with the whole result must be the very same type,
/// for its cells are kept as they came.
fn are_alike(a: &Field, b: &Field) -> bool {
    if a.name() != b.name() || a.metadata().get(EXTENSION) != b.metadata().get(EXTENSION) {
        return false;
    }
    if has_deferred(a) || has_deferred(b) {
        return a.data_type() == b.data_type() && a.metadata() == b.metadata();
    }
    a.data_type().equals_datatype(b.data_type())
}

fn label(field: &Field) -> String {
    let native = field.metadata().get(NATIVE_TYPE).cloned();
    format!("{:?} of {}", field.name(), native.unwrap_or_else(|| field.data_type().to_string()))
}

/// One query's NOT NULL is not a promise for the next.
pub(crate) fn nullable(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

/// The same columns under the one schema. A deferred column keeps the type that this batch gives it.
pub(crate) fn under_schema(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let own = batch.schema();
    let differs =
        |(ours, own): (&FieldRef, &FieldRef)| has_deferred(ours) && ours.data_type() != own.data_type();
    let schema = if schema.fields().iter().zip(own.fields()).any(differs) {
        let keep = |(ours, own): (&FieldRef, &FieldRef)| {
            let kept = if has_deferred(ours) { own.data_type() } else { ours.data_type() };
            ours.as_ref().clone().with_data_type(kept.clone())
        };
        let fields = schema.fields().iter().zip(own.fields()).map(keep).collect::<Vec<_>>();
        &Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
    } else {
        schema
    };
    let options =
        RecordBatchOptions::new().with_row_count(Some(batch.num_rows())).with_match_field_names(false);
    RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options)
        .map_err(|error| Error::internal(format!("the batches of several results do not match: {error}")))
}
