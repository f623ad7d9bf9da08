//! Rows of Arrow data as the parameters of statements.

use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::{Field, Schema, TimeUnit};
use longshore_core::{Error, Param, Params, Place, Result, Value};

use crate::{Item, Items, microseconds};

/// Parameters that are all NULL, one for each column.
#[must_use]
pub fn null_parameters(schema: &Schema, by_name: bool) -> Params {
    let names = schema.fields().iter().map(|field| field.name().clone());
    if by_name {
        return Params::Named(names.map(|name| Param { name, value: Value::Null }).collect());
    }
    Params::Positional(names.map(|_| Value::Null).collect())
}

/// The parameters of each row, of which `first` is the number of the first.
pub fn parameters(batch: &RecordBatch, by_name: bool, first: u64) -> Result<Vec<Params>> {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    let columns = columns.map(|(field, array)| Items::new(array, field)).collect::<Result<Vec<_>>>()?;
    let row = |at: usize| {
        let values = columns.iter().zip(schema.fields()).map(|(column, field)| {
            parameter(&column.get(at), field).map_err(|error| {
                error.at(Place {
                    column: Some(field.name().clone()),
                    row: Some(first + at as u64),
                    native_type: None,
                })
            })
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        Ok(if by_name {
            let names = schema.fields().iter().map(|field| field.name().clone());
            Params::Named(names.zip(values).map(|(name, value)| Param { name, value }).collect())
        } else {
            Params::Positional(values)
        })
    };
    (0..batch.num_rows()).map(row).collect()
}

/// The parameter of `item`, which is a value of `field`.
pub fn parameter(item: &Item<'_>, field: &Field) -> Result<Value> {
    Ok(match item {
        Item::Null => Value::Null,
        Item::Bool(value) => Value::Bool(*value),
        Item::Int(value) => Value::Int((*value).into()),
        Item::UInt(value) => Value::Int((*value).into()),
        Item::Float(value) => Value::Float((*value).into()),
        Item::Double(value) => Value::Float(*value),
        Item::Decimal(..) | Item::WideDecimal(..) => Value::Decimal(item.digits().unwrap_or_default()),
        Item::Text(text) => Value::Text((*text).into()),
        Item::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        Item::Uuid(bytes) => Value::Uuid(**bytes),
        Item::Date(days) => Value::Date(*days),
        Item::Time(time, unit) => Value::Time(whole(*time, *unit)?, None),
        Item::Timestamp(time, unit) => Value::Timestamp(whole(*time, *unit)?),
        Item::TimestampTz(time, unit) => Value::TimestampTz(whole(*time, *unit)?),
        Item::Duration(time, unit) => Value::Interval(0, 0, whole(*time, *unit)?),
        Item::Interval(months, days, time) => {
            Value::Interval(*months, *days, whole(*time, TimeUnit::Nanosecond)?)
        }
        Item::List(values) => Value::List(list(values, field)?),
        Item::Row(array, row) => Value::Row(fields(array, *row)?),
    })
}

/// Microseconds, which all that databases have of time is counted in.
fn whole(time: i64, unit: TimeUnit) -> Result<i64> {
    microseconds(time, unit).ok_or_else(|| {
        Error::data("a time is not a whole number of microseconds, or is beyond them")
            .with_hint("cast it to microseconds first")
    })
}

fn list(values: &ArrayRef, field: &Field) -> Result<Vec<Value>> {
    let item = Field::new(field.name(), values.data_type().clone(), true);
    let items = Items::new(values, &item)?;
    (0..values.len()).map(|at| parameter(&items.get(at), &item)).collect()
}

fn fields(array: &StructArray, row: usize) -> Result<Vec<Value>> {
    let columns = array.fields().iter().zip(array.columns());
    columns.map(|(field, column)| parameter(&Items::new(column, field)?.get(row), field)).collect()
}
