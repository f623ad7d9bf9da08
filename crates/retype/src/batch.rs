//! Batches under another schema of the same shape.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryViewType, Decimal128Type, Decimal256Type, StringViewType};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait, RecordBatch,
    StringArray, StructArray,
};
use arrow_buffer::i256;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, SchemaRef};
use longshore_core::{Place, batch_of};
use longshore_values::{Fault, Losses, uuid};

use crate::decimals;
use crate::threads::by_column;
use crate::views::views;

/// `batch` under `schema`, which differs from its own in names and metadata, in decimals that are doubles or integers
/// there, UUIDs that are texts, and texts and bytes that are views. `before` rows of the result went before: errors count them. `losses` gives what is told of
/// decimals that are not their doubles.
pub fn retyped_batch(
    batch: &RecordBatch,
    schema: &SchemaRef,
    before: u64,
    losses: impl Fn(&Field) -> Losses + Sync,
) -> longshore_core::Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields()).collect();
    let columns = by_column(batch.num_rows(), columns, |(array, field): (&ArrayRef, &FieldRef)| {
        retype(array, field.data_type(), &mut losses(field)).map_err(|fault| {
            let row = before + fault.row() as u64;
            fault.into_error(Place::of(field, Some(row)))
        })
    });
    batch_of(schema, columns.into_iter().collect::<Result<_, _>>()?, batch.num_rows())
}

/// `data_type` with `change` applied to the fields inside it.
#[must_use]
pub fn with_inner_fields(data_type: &DataType, change: &impl Fn(&Field) -> Field) -> DataType {
    let inner = |field: &FieldRef| Arc::new(change(field));
    match data_type {
        DataType::List(item) => DataType::List(inner(item)),
        DataType::LargeList(item) => DataType::LargeList(inner(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(inner(item), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        DataType::Map(entries, sorted) => DataType::Map(inner(entries), *sorted),
        other => other.clone(),
    }
}

fn retype(array: &ArrayRef, data_type: &DataType, losses: &mut Losses) -> Result<ArrayRef, Fault> {
    if array.data_type() == data_type {
        return Ok(array.clone());
    }
    match (data_type, array.data_type()) {
        (DataType::List(item), _) => list::<i32>(array, item, losses),
        (DataType::LargeList(item), _) => list::<i64>(array, item, losses),
        (DataType::FixedSizeList(item, size), _) => {
            let list = array.as_fixed_size_list();
            let values = retype(list.values(), item.data_type(), losses)?;
            let list = FixedSizeListArray::try_new(item.clone(), *size, values, list.nulls().cloned());
            Ok(Arc::new(list.map_err(|error| unlike(&error))?))
        }
        (DataType::Struct(fields), _) => Ok(Arc::new(structure(array.as_struct(), fields, losses)?)),
        (DataType::Map(entries, sorted), _) => map(array.as_map(), entries, *sorted, losses),
        (DataType::Int64, DataType::Decimal128(_, 0)) => decimals::integers(array.as_primitive()),
        (DataType::Float64, DataType::Decimal128(..)) => {
            Ok(Arc::new(decimals::doubles(array.as_primitive(), losses)))
        }
        (DataType::Float64, DataType::Decimal256(..)) => {
            Ok(Arc::new(decimals::doubles_of_wide(array.as_primitive(), losses)))
        }
        (DataType::Decimal128(precision, scale), DataType::Decimal128(_, own)) => {
            decimals::to_scale(array.as_primitive::<Decimal128Type>(), Some, *own, (*precision, *scale))
        }
        (DataType::Decimal128(precision, scale), DataType::Decimal256(_, own)) => {
            let wide = array.as_primitive::<Decimal256Type>();
            decimals::to_scale(wide, i256::to_i128, *own, (*precision, *scale))
        }
        (DataType::Utf8, DataType::FixedSizeBinary(_)) => {
            let uuids = array.as_fixed_size_binary().iter();
            let text = |bytes: &[u8]| uuid(bytes.try_into().unwrap_or(&[0; 16]));
            Ok(Arc::new(uuids.map(|bytes| bytes.map(text)).collect::<StringArray>()))
        }
        (DataType::Utf8View, DataType::Utf8) => {
            Ok(Arc::new(views::<_, StringViewType>(array.as_string::<i32>())))
        }
        (DataType::Utf8View, DataType::LargeUtf8) => {
            Ok(Arc::new(views::<_, StringViewType>(array.as_string::<i64>())))
        }
        (DataType::BinaryView, DataType::Binary) => {
            Ok(Arc::new(views::<_, BinaryViewType>(array.as_binary::<i32>())))
        }
        (DataType::BinaryView, DataType::LargeBinary) => {
            Ok(Arc::new(views::<_, BinaryViewType>(array.as_binary::<i64>())))
        }
        _ => Ok(array.clone()),
    }
}

fn list<O: OffsetSizeTrait>(
    array: &ArrayRef,
    item: &FieldRef,
    losses: &mut Losses,
) -> Result<ArrayRef, Fault> {
    let list = array.as_list::<O>();
    let values =
        retype(list.values(), item.data_type(), losses).map_err(|fault| outward(fault, list.offsets()))?;
    let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
    let list = GenericListArray::<O>::try_new(item.clone(), offsets, values, nulls);
    Ok(Arc::new(list.map_err(|error| unlike(&error))?))
}

fn map(array: &MapArray, entries: &FieldRef, sorted: bool, losses: &mut Losses) -> Result<ArrayRef, Fault> {
    let DataType::Struct(fields) = entries.data_type() else { return Ok(Arc::new(array.clone())) };
    let (offsets, nulls) = (array.offsets().clone(), array.nulls().cloned());
    let parts =
        structure(array.entries(), fields, losses).map_err(|fault| outward(fault, array.offsets()))?;
    let map = MapArray::try_new(entries.clone(), offsets, parts, nulls, sorted);
    Ok(Arc::new(map.map_err(|error| unlike(&error))?))
}

fn structure(array: &StructArray, fields: &Fields, losses: &mut Losses) -> Result<StructArray, Fault> {
    let columns = array.columns().iter().zip(fields);
    let columns =
        columns.map(|(column, field)| retype(column, field.data_type(), losses)).collect::<Result<_, _>>()?;
    StructArray::try_new_with_length(fields.clone(), columns, array.nulls().cloned(), array.len())
        .map_err(|error| unlike(&error))
}

fn unlike(error: &ArrowError) -> Fault {
    Fault::internal(error.to_string())
}

/// The same failure in the row around it: `offsets` are the rows' in what is inside them.
fn outward<O: OffsetSizeTrait>(fault: Fault, offsets: &[O]) -> Fault {
    let row = offsets.partition_point(|offset| offset.as_usize() <= fault.row()).saturating_sub(1);
    fault.at_row(row)
}
