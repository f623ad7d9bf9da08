//! Rows of Arrow data as the parameters of statements.

use std::sync::Arc;

use adbc_core::error::{Error as AdbcError, Result as AdbcResult};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef, TimeUnit};
use longshore_core::{Error, Param, Params, Place, Result, Value};
use longshore_values::{Item, Items, microseconds, push_number};

use crate::Reader;
use crate::connection::Shared;
use crate::error::adbc_error;

/// The error of batches that a caller hands over.
pub(crate) fn data_error(error: ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
            Ok(own) => *own,
            Err(other) => Error::operational(format!("the data stopped: {other}")),
        },
        other => Error::operational(format!("the data stopped: {other}")),
    }
}

/// The caller's rows, whose code may call the connection that they are bound on.
pub(crate) struct Outside {
    reader: Reader,
    shared: Arc<Shared>,
}

impl Outside {
    pub(crate) fn new(reader: Reader, shared: Arc<Shared>) -> Self {
        Self { reader, shared }
    }
}

impl Iterator for Outside {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.shared.turns.outside(|| self.reader.next())
    }
}

impl RecordBatchReader for Outside {
    fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }
}

/// The rows that a statement is run with, a piece at a time.
pub(crate) struct Sets {
    reader: Reader,
    /// Whether columns are parameters by their names.
    by_name: bool,
    /// How many rows have been given.
    given: u64,
}

impl Sets {
    pub(crate) fn new(reader: Reader, by_name: bool) -> Self {
        Self { reader, by_name, given: 0 }
    }

    /// Parameters that are all NULL.
    pub(crate) fn nulls(&self) -> Params {
        nulls(&self.reader.schema(), self.by_name)
    }

    /// All rows.
    pub(crate) fn all(self) -> AdbcResult<Vec<Params>> {
        let pieces = self.collect::<Result<Vec<_>>>().map_err(adbc_error)?;
        Ok::<_, AdbcError>(pieces.into_iter().flatten().collect())
    }
}

fn nulls(schema: &Schema, by_name: bool) -> Params {
    let names = schema.fields().iter().map(|field| field.name().clone());
    if by_name {
        return Params::Named(names.map(|name| Param { name, value: Value::Null }).collect());
    }
    Params::Positional(names.map(|_| Value::Null).collect())
}

impl Iterator for Sets {
    type Item = Result<Vec<Params>>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.reader.next()?;
        let sets = batch.map_err(data_error).and_then(|batch| parameters(&batch, self.by_name, self.given));
        self.given += sets.as_ref().map_or(0, |sets| sets.len() as u64);
        Some(sets)
    }
}

/// The parameters of the first row, NULL where there is none, and the reader of all rows.
pub(crate) fn first_set(mut reader: Reader, by_name: bool) -> AdbcResult<(Params, Reader)> {
    let schema = reader.schema();
    let first = reader.find(|batch| batch.as_ref().map_or(true, |batch| batch.num_rows() > 0)).transpose();
    let first = first.map_err(data_error).map_err(adbc_error)?;
    let row = first.as_ref().map_or_else(nothing, |batch| reader_of(batch.slice(0, 1)));
    let params = match Sets::new(row, by_name).all()?.pop() {
        Some(params) => params,
        None => nulls(&schema, by_name),
    };
    let all = first.into_iter().map(Ok).chain(reader);
    Ok((params, Box::new(RecordBatchIterator::new(all, schema))))
}

/// The parameters of each row, of which `first` is the number of the first.
fn parameters(batch: &RecordBatch, by_name: bool, first: u64) -> Result<Vec<Params>> {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    let columns = columns.map(|(field, array)| Items::new(array, field)).collect::<Result<Vec<_>>>()?;
    let row = |at: usize| {
        let values = columns.iter().zip(schema.fields()).map(|(column, field)| {
            value(&column.get(at), field).map_err(|error| {
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

fn value(item: &Item<'_>, field: &Field) -> Result<Value> {
    Ok(match item {
        Item::Null => Value::Null,
        Item::Bool(value) => Value::Bool(*value),
        Item::Int(value) => Value::Int((*value).into()),
        Item::UInt(value) => Value::Int((*value).into()),
        Item::Float(value) => Value::Float((*value).into()),
        Item::Double(value) => Value::Float(*value),
        Item::Decimal(..) | Item::WideDecimal(..) => {
            let mut digits = String::new();
            push_number(&mut digits, item);
            Value::Decimal(digits)
        }
        Item::Text(text) => Value::Text((*text).into()),
        Item::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        Item::Uuid(bytes) => Value::Uuid(**bytes),
        Item::Date(days) => Value::Date(*days),
        Item::Time(time, unit) => Value::Time(whole(*time, *unit)?, None),
        Item::Timestamp(time, unit) => Value::Timestamp(whole(*time, *unit)?),
        Item::Instant(time, unit) => Value::Instant(whole(*time, *unit)?),
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
    (0..values.len()).map(|at| value(&items.get(at), &item)).collect()
}

fn fields(array: &arrow_array::StructArray, row: usize) -> Result<Vec<Value>> {
    let columns = array.fields().iter().zip(array.columns());
    columns.map(|(field, column)| value(&Items::new(column, field)?.get(row), field)).collect()
}

/// One batch as a reader.
pub(crate) fn reader_of(batch: RecordBatch) -> Reader {
    let schema = batch.schema();
    Box::new(RecordBatchIterator::new([Ok(batch)], schema)) as Box<dyn RecordBatchReader + Send>
}

/// A reader of a schema without rows.
pub(crate) fn nothing() -> Reader {
    let schema = Arc::new(Schema::empty());
    Box::new(RecordBatchIterator::new([], schema))
}

/// The key of a schema's metadata that no rows are behind.
const REFUSED: &str = "longshore.refused";

/// What stands for rows that were refused: with it, nothing is bound.
pub(crate) fn refused_rows() -> Reader {
    let metadata = std::collections::HashMap::from([(REFUSED.to_owned(), String::new())]);
    let schema = Arc::new(Schema::empty().with_metadata(metadata));
    Box::new(RecordBatchIterator::new([], schema))
}

/// Whether `reader` stands for rows that were refused.
pub(crate) fn is_refused(reader: &dyn RecordBatchReader) -> bool {
    reader.schema().metadata().contains_key(REFUSED)
}
