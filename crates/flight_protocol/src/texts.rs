//! Texts of a batch: read as bytes, and then checked to be texts, which are mostly ASCII.
//!
//! Arrow looks for each text whether it begins and ends between characters. Where all bytes are ASCII, it does.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::GenericBinaryType;
use arrow_array::{
    Array, ArrayRef, GenericByteArray, GenericStringArray, OffsetSizeTrait, RecordBatch, RecordBatchOptions,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

/// The schema of `schema`'s rows before their texts are checked: with bytes in the place of texts.
pub(crate) fn unchecked_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Utf8 => field.as_ref().clone().with_data_type(DataType::Binary),
        DataType::LargeUtf8 => field.as_ref().clone().with_data_type(DataType::LargeBinary),
        _ => field.as_ref().clone(),
    });
    Arc::new(Schema::new(fields.collect::<Vec<Field>>()))
}

/// A batch of [`unchecked_schema`] rows under their own schema; an error where a text is not UTF-8.
pub(crate) fn check(schema: &SchemaRef, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let columns = schema.fields().iter().zip(batch.columns());
    let columns = columns.map(|(field, column)| match field.data_type() {
        DataType::Utf8 => texts::<i32>(column),
        DataType::LargeUtf8 => texts::<i64>(column),
        _ => Ok(column.clone()),
    });
    let columns = columns.collect::<Result<_, _>>()?;
    let count = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &count)
}

#[allow(unsafe_code)]
fn texts<O: OffsetSizeTrait>(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let bytes: &GenericByteArray<GenericBinaryType<O>> = column.as_bytes();
    let offsets = bytes.value_offsets();
    let is_ascii = bytes.value_data()[offsets[0].as_usize()..offsets[bytes.len()].as_usize()].is_ascii();
    let (offsets, values, nulls) = bytes.clone().into_parts();
    let texts = if is_ascii {
        // SAFETY: the parts are those of an array of bytes: its offsets ascend, and lie within the values. Each byte between
        // the first and the last offset is a whole character, so that what is between any two of them is UTF-8.
        unsafe { GenericStringArray::<O>::new_unchecked(offsets, values, nulls) }
    } else {
        GenericStringArray::<O>::try_new(offsets, values, nulls)?
    };
    Ok(Arc::new(texts))
}

#[cfg(test)]
mod tests {
    use arrow_array::{BinaryArray, LargeBinaryArray, LargeStringArray, StringArray};
    use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};

    use super::*;

    /// One text column of `bytes`, checked.
    fn read(bytes: BinaryArray) -> Result<StringArray, ArrowError> {
        let schema = Arc::new(Schema::new(vec![Field::new("t", DataType::Utf8, true)]));
        let batch = RecordBatch::try_new(unchecked_schema(&schema), vec![Arc::new(bytes)]).unwrap();
        check(&schema, &batch).map(|batch| batch.column(0).as_string().clone())
    }

    #[test]
    fn texts_are_what_their_bytes_are() {
        for texts in [vec![], vec![Some("quay"), None, Some("")], vec![Some("ä"), Some("x🚢"), None]] {
            let bytes = texts.iter().map(|text| text.map(str::as_bytes)).collect();
            assert_eq!(read(bytes).unwrap(), StringArray::from(texts));
        }
        let schema = Arc::new(Schema::new(vec![Field::new("t", DataType::LargeUtf8, false)]));
        let bytes: ArrayRef = Arc::new(LargeBinaryArray::from_iter_values(["a", "bc"]));
        let batch =
            check(&schema, &RecordBatch::try_new(unchecked_schema(&schema), vec![bytes]).unwrap()).unwrap();
        assert_eq!(batch.column(0).as_string::<i64>(), &LargeStringArray::from(vec!["a", "bc"]));
    }

    #[test]
    fn bytes_that_are_not_texts_are_refused() {
        let array = |offsets: Vec<i32>, bytes: &[u8]| {
            BinaryArray::new(OffsetBuffer::new(ScalarBuffer::from(offsets)), Buffer::from(bytes), None)
        };
        assert!(read(array(vec![0, 1, 2], "ä".as_bytes())).is_err());
        assert!(read(array(vec![0, 3], b"a\xffb")).is_err());
        // What lies outside of the offsets may be anything.
        assert_eq!(read(array(vec![1, 2, 3], b"\xffab\xff")).unwrap(), StringArray::from(vec!["a", "b"]));
    }
}
