//! Decimals under another precision and scale, exactly: in a stream, whose types the first batch tells where only the whole
//! result would, and in polars, which has 38 digits.

use std::sync::Arc;

use arrow_array::types::{Decimal128Type, DecimalType as Arrow};
use arrow_array::{ArrayRef, PrimitiveArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use longshore_core::{EXTENSION_METADATA, Error, Place, Result, Unrepresentable, has_deferred};
use longshore_values::Fault;
use longshore_values::Losses;
use longshore_values::decimal::{DecimalType, rescale};

use crate::retype::{retyped_batch, with_inner_fields};

/// The type of decimals without a scale in a stream, which cannot look ahead.
const STREAMED: DataType = DataType::Decimal128(38, 20);

/// The schema of a stream whose first batch has the schema `first`; `own` says which columns' types are not final.
pub(crate) fn streamed_schema(own: &Schema, first: &Schema) -> SchemaRef {
    let fields = own.fields().iter().zip(first.fields());
    let field = |(own, first): (&Arc<Field>, &Arc<Field>)| {
        if has_deferred(own) { Arc::new(streamed(first)) } else { first.clone() }
    };
    Arc::new(Schema::new(fields.map(field).collect::<Vec<_>>()))
}

fn streamed(field: &Field) -> Field {
    let data_type = match field.data_type() {
        DataType::Decimal128(..) | DataType::Decimal256(..) => STREAMED,
        other => with_inner_fields(other, &streamed),
    };
    field.clone().with_data_type(data_type)
}

/// `batch` under a stream's `schema`; `before` rows of the result went before.
pub(crate) fn streamed_batch(batch: &RecordBatch, schema: &SchemaRef, before: u64) -> Result<RecordBatch> {
    let own = batch.schema();
    let mut fields = own.fields().iter().zip(schema.fields());
    // A geometry's metadata has its reference system.
    let kind = |field: &Field| {
        (streamed(field).data_type().clone(), field.metadata().get(EXTENSION_METADATA).cloned())
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

const WHOLE: &str = "fetch_arrow_table gives the whole result one type; or CAST the column in the query";

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

/// `array`, of the scale `own`, under the precision and scale `to`; `narrow` gives a value's integer where it has so few digits.
pub(crate) fn rescaled<T: Arrow>(
    array: &PrimitiveArray<T>,
    narrow: impl Fn(T::Native) -> Option<i128>,
    own: i8,
    to: (u8, i8),
) -> Result<ArrayRef, Fault> {
    let decimal = DecimalType { precision: to.0, scale: to.1, numeric_nan: Unrepresentable::Error };
    let value = |(row, value): (usize, Option<T::Native>)| {
        let Some(value) = value else { return Ok(None) };
        let fitting = narrow(value).and_then(|value| rescale(value, own.into(), decimal).ok());
        fitting.map(Some).ok_or_else(|| {
            let (text, (precision, scale)) = (array.value_as_string(row), to);
            Fault::data(row, format!("{text} does not fit decimal128({precision}, {scale})")).with_hint(WHOLE)
        })
    };
    let values =
        array.iter().enumerate().map(value).collect::<Result<PrimitiveArray<Decimal128Type>, Fault>>()?;
    let values = values.with_precision_and_scale(to.0, to.1);
    values.map(|values| Arc::new(values) as ArrayRef).map_err(|error| Fault::internal(error.to_string()))
}
