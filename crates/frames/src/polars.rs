//! What polars takes: distinct names, and storage types without Arrow's extension types, which it keeps as
//! opaque types of its own or refuses.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait, RecordBatch,
    RecordBatchOptions, StructArray,
};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef};

use crate::names::distinct_names;
use longshore_core::EXTENSION;

/// The schema under which polars takes batches of `schema`.
#[must_use]
pub fn polars_schema(schema: &Schema) -> SchemaRef {
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let names = distinct_names(&names);
    let fields = schema.fields().iter().zip(names).map(|(field, name)| plain(field).with_name(name));
    Arc::new(Schema::new(fields.collect::<Vec<Field>>()))
}

/// `batch` under what [`polars_schema`] made of its schema. Copies no value.
pub fn polars_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns =
        columns.map(|(array, field)| retyped(array, field.data_type())).collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
}

fn plain(field: &Field) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.remove(EXTENSION);
    metadata.remove("ARROW:extension:metadata");
    let inner = |field: &FieldRef| Arc::new(plain(field));
    let data_type = match field.data_type() {
        DataType::List(item) => DataType::List(inner(item)),
        DataType::LargeList(item) => DataType::LargeList(inner(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(inner(item), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        DataType::Map(entries, sorted) => DataType::Map(inner(entries), *sorted),
        other => other.clone(),
    };
    field.clone().with_data_type(data_type).with_metadata(metadata)
}

/// `array` under `data_type`, which differs from its own in the metadata of inner fields only.
fn retyped(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == data_type {
        return Ok(array.clone());
    }
    match data_type {
        DataType::List(item) => list::<i32>(array, item),
        DataType::LargeList(item) => list::<i64>(array, item),
        DataType::FixedSizeList(item, size) => {
            let list = array.as_fixed_size_list();
            let values = retyped(list.values(), item.data_type())?;
            let list = FixedSizeListArray::try_new(item.clone(), *size, values, list.nulls().cloned())?;
            Ok(Arc::new(list))
        }
        DataType::Struct(fields) => Ok(Arc::new(structure(array.as_struct(), fields)?)),
        DataType::Map(entries, sorted) => {
            let DataType::Struct(fields) = entries.data_type() else { return Ok(array.clone()) };
            let map = array.as_map();
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            let parts = structure(map.entries(), fields)?;
            Ok(Arc::new(MapArray::try_new(entries.clone(), offsets, parts, nulls, *sorted)?))
        }
        _ => Ok(array.clone()),
    }
}

fn list<O: OffsetSizeTrait>(array: &ArrayRef, item: &FieldRef) -> Result<ArrayRef, ArrowError> {
    let list = array.as_list::<O>();
    let values = retyped(list.values(), item.data_type())?;
    let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
    Ok(Arc::new(GenericListArray::<O>::try_new(item.clone(), offsets, values, nulls)?))
}

fn structure(array: &StructArray, fields: &Fields) -> Result<StructArray, ArrowError> {
    let columns = array.columns().iter().zip(fields);
    let columns =
        columns.map(|(column, field)| retyped(column, field.data_type())).collect::<Result<_, _>>()?;
    StructArray::try_new_with_length(fields.clone(), columns, array.nulls().cloned(), array.len())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow_array::builder::{ListBuilder, StringBuilder};

    use super::*;

    #[test]
    fn extension_types_go_at_every_depth() {
        let extension = HashMap::from([(EXTENSION.to_owned(), "arrow.json".to_owned())]);
        let item = Arc::new(Field::new("item", DataType::Utf8, true).with_metadata(extension));
        let mut lists = ListBuilder::new(StringBuilder::new()).with_field(item.clone());
        lists.append_value([Some("{}"), None]);
        lists.append_null();
        let lists: ArrayRef = Arc::new(lists.finish());
        let structs = StructArray::from(vec![(
            Arc::new(Field::new("inner", lists.data_type().clone(), true)),
            lists.clone(),
        )]);
        let schema = Schema::new(vec![
            Field::new("a", lists.data_type().clone(), true),
            Field::new("a", structs.data_type().clone(), true),
        ]);
        let columns = vec![lists, Arc::new(structs) as ArrayRef];
        let batch = RecordBatch::try_new(Arc::new(schema), columns).unwrap();

        let plain_schema = polars_schema(batch.schema_ref());
        let plain_batch = polars_batch(&batch, &plain_schema).unwrap();
        assert_eq!(plain_batch.num_rows(), 2);
        assert!(!format!("{plain_schema:?}").contains("arrow.json"));
        assert_eq!(plain_schema.field(1).name(), "a_1");
    }
}
