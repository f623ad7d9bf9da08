//! A result that is Arrow already, under the caller's choices: `schema=`, decimals, and what the frame holds.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use longshore_core::memory::rows_size;
use longshore_core::{
    Decimals, Error, Finaliser, NATIVE_TYPE, Place, ReadOptions, Result, batch_of, has_deferred, type_name,
};

use crate::cast;
use crate::decimals::{double_batch, double_schema};
use crate::numeric::{self, Scales};
use crate::refusal::polars_refusal;

/// The choices of one read, applied to its batches in their order.
pub struct Policy {
    /// The caller's types, before decimals become doubles.
    cast: SchemaRef,
    schema: SchemaRef,
    options: ReadOptions,
    rows: u64,
}

impl Policy {
    /// The policy of `options` for batches of `schema`; an error for a column that cannot be what the caller asks for.
    pub fn new(schema: &Schema, options: &ReadOptions) -> Result<Self> {
        let (cast, schema) = schemas(schema, options)?;
        Ok(Self { cast, schema, options: options.clone(), rows: 0 })
    }

    /// The schema of every batch.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The finaliser of the schema; `None` where it is final.
    #[must_use]
    pub fn finaliser(&self) -> Option<Arc<dyn Finaliser>> {
        let is_final = !self.schema.fields().iter().any(|field| has_deferred(field));
        (!is_final).then(|| Arc::new(Scales(self.options.clone())) as _)
    }

    /// The next batch under the schema, counted.
    pub fn batch(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let own = batch.schema();
        let columns = batch.columns().iter().zip(self.cast.fields()).zip(own.fields());
        let columns = columns.map(|((array, field), own)| {
            if array.data_type() == field.data_type() {
                return Ok(array.clone());
            }
            cast::exact(array, own, field.data_type(), &self.options).map_err(|fault| {
                let row = Some(self.rows + fault.row as u64);
                fault.into_error(Place::of(own, row))
            })
        });
        let columns = columns.collect::<Result<_>>()?;
        let batch = batch_of(&self.cast, columns, batch.num_rows())?;
        let batch = if self.cast == self.schema {
            batch
        } else {
            double_batch(&batch, &self.schema, self.rows, &self.options.warnings)?
        };
        let bytes = rows_size(&batch);
        self.options.budget.grow(bytes)?;
        self.options.meter.add_rows(batch.num_rows() as u64);
        self.options.meter.add_bytes(bytes as u64);
        self.rows += batch.num_rows() as u64;
        Ok(batch)
    }
}

/// The schema of a result under the caller's types, and with doubles for decimals where those are wanted.
fn schemas(schema: &Schema, options: &ReadOptions) -> Result<(SchemaRef, SchemaRef)> {
    let wanted: Vec<String> = options.schema.iter().map(|(name, _)| name.clone()).collect();
    options.check_names(schema.fields().iter().map(|field| field.name().as_str()))?;
    let fields: Vec<Field> =
        schema.fields().iter().map(|field| field_under(field, options)).collect::<Result<_>>()?;
    let under = Arc::new(Schema::new(fields));
    if !options.intervals {
        polars_refusal(&under).map_or(Ok(()), Err)?;
    }
    let own =
        if options.decimals == Decimals::Float64 { double_schema(&under, &wanted) } else { under.clone() };
    Ok((under, own))
}

fn field_under(field: &Field, options: &ReadOptions) -> Result<Field> {
    let is_numeric = numeric::is_numeric(field);
    let native = if is_numeric { numeric::data_type(field, options) } else { field.data_type().clone() };
    let wanted = options.wanted_type(field.name());
    if wanted.is_none() && is_numeric && native == DataType::Utf8 {
        return Ok(numeric::defer(field.clone()));
    }
    let wanted = wanted.unwrap_or(&native);
    if wanted == field.data_type() && !is_numeric {
        return Ok(field.clone());
    }
    if !cast::can(field.data_type(), wanted) {
        let message = format!("{} cannot be read as {}", type_name(field.data_type()), type_name(wanted));
        return Err(Error::not_supported(message)
            .with_hint("cast it in the query")
            .at(Place::of(field, None)));
    }
    let mut metadata = field.metadata().clone();
    metadata.retain(|key, _| key == NATIVE_TYPE);
    Ok(field.clone().with_data_type(wanted.clone()).with_metadata(metadata))
}
