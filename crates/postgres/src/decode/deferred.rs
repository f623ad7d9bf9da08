//! Columns whose type only the whole result tells: finalised once all rows are there.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, StructArray};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields};
use longshore_core::{DEFERRED, Error, Kind, Place, ReadOptions, Result, has_deferred};

use super::numeric::DeferredNumerics;
use crate::geometry;
use crate::types::Format;

/// The batches' arrays of one column with every deferred part of them in its final type.
pub(crate) fn finalise(
    column: &FieldRef,
    arrays: Vec<ArrayRef>,
    format: Format,
    options: &ReadOptions,
) -> Result<(FieldRef, Vec<ArrayRef>)> {
    finalise_part(column, column, arrays, format, options)
}

/// The same for `field`, which is the `column` or a part of it.
fn finalise_part(
    column: &FieldRef,
    field: &FieldRef,
    arrays: Vec<ArrayRef>,
    format: Format,
    options: &ReadOptions,
) -> Result<(FieldRef, Vec<ArrayRef>)> {
    if field.metadata().contains_key(DEFERRED) {
        let part = Part { column, field, options };
        return match field.metadata().get(DEFERRED).map(String::as_str) {
            Some("geometry") => geometry::finalise(&part, &arrays),
            _ => DeferredNumerics { part, format }.finalise(arrays),
        };
    }
    match field.data_type() {
        DataType::List(item) if has_deferred(item) => {
            let values = arrays.iter().map(|array| array.as_list::<i32>().values().clone()).collect();
            let finalised = finalise_part(column, item, values, format, options);
            let (item, values) = finalised.map_err(|error| at_row_of_element(error, &arrays))?;
            let lists = arrays.into_iter().zip(values).map(|(array, values)| {
                let list = array.as_list::<i32>();
                ListArray::try_new(item.clone(), list.offsets().clone(), values, list.nulls().cloned())
                    .map(|list| Arc::new(list) as ArrayRef)
                    .map_err(|error| inconsistent(&error))
            });
            let lists = lists.collect::<Result<_>>()?;
            Ok((with_type(field, DataType::List(item)), lists))
        }
        DataType::Struct(fields) if fields.iter().any(|field| has_deferred(field)) => {
            let mut finalised = Vec::new();
            for (index, child) in fields.iter().enumerate() {
                let columns = arrays.iter().map(|array| array.as_struct().column(index).clone()).collect();
                finalised.push(finalise_part(column, child, columns, format, options)?);
            }
            let (fields, columns): (Vec<_>, Vec<_>) = finalised.into_iter().unzip();
            let fields = Fields::from(fields);
            let structs = arrays.iter().enumerate().map(|(batch, array)| {
                let children = columns.iter().map(|column| column[batch].clone()).collect();
                StructArray::try_new(fields.clone(), children, array.nulls().cloned())
                    .map(|array| Arc::new(array) as ArrayRef)
                    .map_err(|error| inconsistent(&error))
            });
            let structs = structs.collect::<Result<_>>()?;
            Ok((with_type(field, DataType::Struct(fields)), structs))
        }
        _ => Ok((field.clone(), arrays)),
    }
}

/// Finalised parts that do not make the whole they came from.
#[cold]
fn inconsistent(error: &ArrowError) -> Error {
    Error::new(Kind::Internal, format!("finalised columns do not fit their column: {error}"))
}

/// The error of an element of `lists`, at the row of the list that holds it.
fn at_row_of_element(error: Error, lists: &[ArrayRef]) -> Error {
    let place = error.place().clone();
    let Some(mut element) = place.row.and_then(|row| usize::try_from(row).ok()) else { return error };
    let mut rows = 0;
    for list in lists.iter().map(AsArray::as_list::<i32>) {
        if element < list.values().len() {
            let ends = list.value_offsets().iter().skip(1);
            rows += ends.take_while(|end| usize::try_from(**end).is_ok_and(|end| end <= element)).count();
            break;
        }
        element -= list.values().len();
        rows += list.len();
    }
    error.at(Place { row: Some(rows as u64), ..place })
}

fn with_type(field: &FieldRef, data_type: DataType) -> FieldRef {
    let mut metadata = field.metadata().clone();
    metadata.remove(DEFERRED);
    Arc::new(Field::new(field.name(), data_type, field.is_nullable()).with_metadata(metadata))
}

/// A deferred part of a column, or the whole of it.
pub(crate) struct Part<'a> {
    /// The column that the errors name: the field, or what the field is a part of.
    pub(super) column: &'a FieldRef,
    pub(super) field: &'a FieldRef,
    pub(crate) options: &'a ReadOptions,
}

impl Part<'_> {
    /// Its field, of its final type.
    pub(crate) fn with_type(&self, data_type: DataType) -> FieldRef {
        with_type(self.field, data_type)
    }

    pub(crate) fn place(&self, row: Option<u64>) -> Place {
        Place::of(self.column, row)
    }
}
