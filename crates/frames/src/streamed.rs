//! Decimals under another precision and scale, exactly: in a stream, whose types the first batch tells where only the whole
//! result would, and in polars, which has 38 digits.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use longshore_core::{EXTENSION_METADATA, Error, Place, Result, has_deferred};
use longshore_retype::{WHOLE, retyped_batch, with_inner_fields};
use longshore_values::Losses;

/// The type of decimals without a scale in a stream, which cannot look ahead.
const STREAMED: DataType = DataType::Decimal128(38, 20);

/// The schema of a stream whose first batch has the schema `first`; `own` says which columns' types are not final.
pub(crate) fn streamed_schema(own: &Schema, first: &Schema) -> SchemaRef {
    let fields = own.fields().iter().zip(first.fields());
    let field = |(own, first): (&Arc<Field>, &Arc<Field>)| {
        if has_deferred(own) { Arc::new(stream_field(first)) } else { first.clone() }
    };
    Arc::new(Schema::new(fields.map(field).collect::<Vec<_>>()))
}

fn stream_field(field: &Field) -> Field {
    let data_type = match field.data_type() {
        DataType::Decimal128(..) | DataType::Decimal256(..) => STREAMED,
        other => with_inner_fields(other, &stream_field),
    };
    field.clone().with_data_type(data_type)
}

/// `batch` under a stream's `schema`; `before` rows of the result went before.
pub(crate) fn streamed_batch(batch: &RecordBatch, schema: &SchemaRef, before: u64) -> Result<RecordBatch> {
    let own = batch.schema();
    let mut fields = own.fields().iter().zip(schema.fields());
    // A geometry's metadata has its reference system.
    let kind = |field: &Field| {
        (stream_field(field).data_type().clone(), field.metadata().get(EXTENSION_METADATA).cloned())
    };
    if let Some((own, field)) = fields.find(|(own, field)| kind(own) != kind(field)) {
        let shown = |field: &Field| {
            let more = field.metadata().get(EXTENSION_METADATA).map(|more| format!(" with {more}"));
            format!("{}{}", field.data_type(), more.unwrap_or_default())
        };
        let (own, first) = (shown(own), shown(field));
        let place = Place { column: Some(field.name().clone()), row: Some(before), native_type: None };
        let message = format!("its values are {own} here, and were {first} in the rows before");
        return Err(Error::data(message).at(place).with_hint(WHOLE));
    }
    retyped_batch(batch, schema, before, |_| Losses::default())
}

/// `schema` with decimals of 38 digits at every depth.
pub(crate) fn narrow_schema(schema: &Schema) -> SchemaRef {
    Arc::new(Schema::new(schema.fields().iter().map(|field| narrow(field)).collect::<Vec<_>>()))
}

fn narrow(field: &Field) -> Field {
    let data_type = match field.data_type() {
        DataType::Decimal256(_, scale) => DataType::Decimal128(38, *scale),
        other => with_inner_fields(other, &narrow),
    };
    field.clone().with_data_type(data_type)
}

/// `batch` under what [`narrow_schema`] made of its schema; `before` rows of the result went before.
pub(crate) fn narrow_batch(batch: &RecordBatch, schema: &SchemaRef, before: u64) -> Result<RecordBatch> {
    retyped_batch(batch, schema, before, |_| Losses::default())
}
