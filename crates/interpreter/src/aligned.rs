//! Decimals that begin at a multiple of 8 bytes, as in Arrow, where arrow-rs has them at a multiple of 16.
//!
//! arrow-rs' import copies what does not, from the beginning of the array that a slice is of. Imported as bytes, which may begin
//! anywhere, they stay where they are, and then the slice alone is copied.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait, StructArray, make_array,
};
use arrow_buffer::OffsetBuffer;
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, FieldRef};

/// A type with its decimals as bytes.
pub(crate) fn with_bytes(kind: &DataType) -> DataType {
    let bytes =
        |field: &FieldRef| Arc::new(field.as_ref().clone().with_data_type(with_bytes(field.data_type())));
    match kind {
        DataType::Decimal128(..) => DataType::FixedSizeBinary(16),
        DataType::Decimal256(..) => DataType::FixedSizeBinary(32),
        DataType::List(item) => DataType::List(bytes(item)),
        DataType::LargeList(item) => DataType::LargeList(bytes(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(bytes(item), *length),
        DataType::Map(entry, is_sorted) => DataType::Map(bytes(entry), *is_sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(bytes).collect()),
        _ => kind.clone(),
    }
}

/// A column of a type, whose decimals come as bytes.
pub(crate) fn with_decimals(column: &ArrayRef, kind: &DataType) -> Result<ArrayRef, ArrowError> {
    if column.data_type() == kind {
        return Ok(column.clone());
    }
    let nulls = column.nulls().cloned();
    Ok(match kind {
        DataType::List(item) => Arc::new(list(column.as_list::<i32>(), item)?),
        DataType::LargeList(item) => Arc::new(list(column.as_list::<i64>(), item)?),
        DataType::FixedSizeList(item, length) => {
            let values = with_decimals(column.as_fixed_size_list().values(), item.data_type())?;
            let item = item.clone();
            Arc::new(FixedSizeListArray::try_new_with_length(item, *length, values, nulls, column.len())?)
        }
        DataType::Map(entry, is_sorted) => {
            let map = column.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            let (offsets, entries) = trim(map.offsets(), &entries)?;
            let entries = with_decimals(&entries, entry.data_type())?.as_struct().clone();
            Arc::new(MapArray::try_new(entry.clone(), offsets, entries, nulls, *is_sorted)?)
        }
        DataType::Struct(fields) => {
            let columns = column.as_struct().columns().iter().zip(fields);
            let columns = columns.map(|(column, field)| with_decimals(column, field.data_type()));
            let columns = columns.collect::<Result<_, _>>()?;
            Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, column.len())?)
        }
        _ => {
            let (data, width) = (column.to_data(), kind.primitive_width().unwrap_or(0));
            let numbers = data.buffers()[0].slice_with_length(data.offset() * width, data.len() * width);
            let decimals = ArrayData::builder(kind.clone()).len(data.len()).nulls(nulls);
            make_array(decimals.add_buffer(numbers).align_buffers(true).build()?)
        }
    })
}

fn list<O: OffsetSizeTrait>(
    column: &GenericListArray<O>,
    item: &FieldRef,
) -> Result<GenericListArray<O>, ArrowError> {
    let (offsets, values) = trim(column.offsets(), column.values())?;
    let values = with_decimals(&values, item.data_type())?;
    GenericListArray::try_new(item.clone(), offsets, values, column.nulls().cloned())
}

/// The values that lists have, and none before or after them.
fn trim<O: OffsetSizeTrait>(
    offsets: &[O],
    values: &ArrayRef,
) -> Result<(OffsetBuffer<O>, ArrayRef), ArrowError> {
    let ends = offsets.first().copied().zip(offsets.last().copied());
    // They come by the C interface, where none has looked at them.
    let is_within = |(first, last): &(O, O)| {
        *first >= O::default() && offsets.is_sorted() && last.as_usize() <= values.len()
    };
    let Some((first, last)) = ends.filter(is_within) else {
        return Err(ArrowError::CDataInterface("lists lie beyond their values".to_owned()));
    };
    let values = values.slice(first.as_usize(), (last - first).as_usize());
    let offsets = offsets.iter().map(|offset| *offset - first).collect::<Vec<_>>();
    Ok((OffsetBuffer::new(offsets.into()), values))
}

#[cfg(test)]
mod tests {
    use arrow_array::{FixedSizeBinaryArray, Int32Array};
    use arrow_buffer::{Buffer, NullBuffer};
    use arrow_schema::Field;

    use super::*;

    const ROWS: usize = 1_000;

    /// A column of each kind, by itself and within others: of each row, one value, or two.
    fn nested_columns(values: &ArrayRef, valid: &NullBuffer) -> Vec<ArrayRef> {
        let item = Arc::new(Field::new("item", values.data_type().clone(), true));
        let pair = Field::new("key", DataType::Int32, false);
        let keys: ArrayRef = Arc::new(Int32Array::from_iter_values(0..1_000));
        let columns = vec![(Arc::new(pair), keys), (item.clone(), values.clone())];
        let rows = StructArray::from(columns);
        let entry = Arc::new(Field::new("entries", rows.data_type().clone(), false));
        let offsets = || OffsetBuffer::from_lengths(std::iter::repeat_n(2, ROWS / 2));
        let half = Some(valid.slice(0, ROWS / 2));
        let list = GenericListArray::new(item.clone(), offsets(), values.clone(), half.clone());
        let of_lists = Arc::new(Field::new("item", list.data_type().clone(), true));
        let lists = OffsetBuffer::from_lengths(std::iter::repeat_n(1, ROWS / 2));
        vec![
            values.clone(),
            Arc::new(rows.clone()),
            Arc::new(FixedSizeListArray::new(item, 2, values.clone(), half.clone())),
            Arc::new(MapArray::new(entry, offsets(), rows, half.clone(), false)),
            Arc::new(GenericListArray::<i64>::new(of_lists, lists, Arc::new(list.clone()), half)),
            Arc::new(list),
        ]
    }

    /// The values of a column, within others or not.
    fn innermost(column: &ArrayRef) -> ArrayData {
        let mut data = column.to_data();
        while let Some(inner) = data.child_data().last().cloned() {
            data = inner;
        }
        data
    }

    #[test]
    fn of_decimals_that_are_not_aligned_the_slice_alone_is_copied() {
        let memory: Buffer = (0..=2_000_i64).map(|half| half / 2).collect();
        let valid: NullBuffer = (0..ROWS).map(|row| row % 3 > 0).collect();
        for (shift, is_copied) in [(0, false), (8, true)] {
            let memory = memory.slice(shift);
            let bytes =
                FixedSizeBinaryArray::new(16, memory.slice_with_length(0, 16 * ROWS), Some(valid.clone()));
            let kind = DataType::Decimal128(20, 2);
            let decimals = ArrayData::builder(kind).len(ROWS).nulls(Some(valid.clone()));
            let decimals =
                make_array(decimals.add_buffer(memory.clone()).align_buffers(true).build().unwrap());
            let bytes: ArrayRef = Arc::new(bytes);
            for (bytes, decimals) in
                nested_columns(&bytes, &valid).iter().zip(nested_columns(&decimals, &valid))
            {
                let (first, count) = (decimals.len() * 7 / 10, 30);
                assert_eq!(bytes.data_type(), &with_bytes(decimals.data_type()));
                let slice = with_decimals(&bytes.slice(first, count), decimals.data_type()).unwrap();
                assert_eq!(&slice, &decimals.slice(first, count));
                slice.to_data().validate_full().unwrap();
                let values = innermost(&slice);
                let numbers = &values.buffers()[0];
                assert_eq!((values.offset(), numbers.len()), (0, 16 * count * ROWS / decimals.len()));
                assert_eq!(numbers.as_ptr() == memory[16 * 700..].as_ptr(), !is_copied);
            }
        }
    }

    #[test]
    fn lists_beyond_their_values_are_an_error() {
        let values: ArrayRef = Arc::new(Int32Array::from(vec![1]));
        for offsets in [&[0, 2][..], &[-1, 1], &[0, 1, 0, 1], &[1, 0], &[]] {
            assert!(trim(offsets, &values).is_err(), "{offsets:?}");
        }
        assert_eq!(trim(&[1, 1], &values).unwrap().1.len(), 0);
    }
}
