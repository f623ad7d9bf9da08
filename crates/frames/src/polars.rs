//! The form that polars takes: distinct names, and storage types without Arrow's extension types, which it keeps as
//! opaque types of its own or refuses. UUIDs are texts; texts and bytes are views, as they are in polars, which would make them
//! one after another.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use longshore_core::{EXTENSION, EXTENSION_METADATA, Result};
use longshore_values::Losses;

use crate::columns::distinct_names;
use crate::shape::is_uuid;
use longshore_retype::{retyped_batch, with_inner_fields};

/// The schema under which polars takes batches of `schema`.
#[must_use]
pub fn polars_schema(schema: &Schema) -> SchemaRef {
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let names = distinct_names(&names);
    let fields = schema.fields().iter().zip(names).map(|(field, name)| plain(field).with_name(name));
    Arc::new(Schema::new(fields.collect::<Vec<Field>>()))
}

/// `batch` under what [`polars_schema`] made of its schema. Copies no value but UUIDs and what short texts a view holds.
pub fn polars_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    retyped_batch(batch, schema, 0, |_| Losses::default())
}

/// About what polars takes for `array` when it makes a column of it, above the array's own memory.
#[must_use]
pub fn polars_copy(array: &ArrayRef) -> usize {
    match array.data_type() {
        // It counts nanoseconds.
        DataType::Time32(_) | DataType::Time64(_) => 8 * array.len(),
        plain if plain.is_primitive() => 0,
        // Offsets of 64 bits, and views of 16 bytes over the same text.
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => 24 * array.len(),
        DataType::Utf8View | DataType::BinaryView => 0,
        // Of a slice, or of a mapped file, that is less than what lies behind it.
        _ => 2 * array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size()),
    }
}

fn plain(field: &Field) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.remove(EXTENSION);
    metadata.remove(EXTENSION_METADATA);
    let data_type = match field.data_type() {
        _ if is_uuid(field) => DataType::Utf8,
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        other => with_inner_fields(other, &plain),
    };
    field.clone().with_data_type(data_type).with_metadata(metadata)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow_array::builder::{ListBuilder, StringBuilder};
    use arrow_array::cast::AsArray;
    use arrow_array::{FixedSizeBinaryArray, StructArray};

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

    #[test]
    fn uuids_are_texts() {
        let extension = HashMap::from([(EXTENSION.to_owned(), "arrow.uuid".to_owned())]);
        let field = Field::new("a", DataType::FixedSizeBinary(16), true).with_metadata(extension);
        let bytes: Vec<u8> = (0x10..0x20).collect();
        let values =
            FixedSizeBinaryArray::try_from_sparse_iter_with_size([Some(bytes), None].into_iter(), 16);
        let schema = Arc::new(Schema::new(vec![field]));
        let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(values.unwrap())]).unwrap();
        let batch = polars_batch(&batch, &polars_schema(&schema)).unwrap();
        let texts: Vec<_> = batch.column(0).as_string::<i32>().iter().collect();
        assert_eq!(texts, [Some("10111213-1415-1617-1819-1a1b1c1d1e1f"), None]);
    }
}
