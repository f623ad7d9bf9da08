//! Arrow's file format, with one record batch.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::ptr;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RecordBatch, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use longshore_core::memory::{OutOfMemory, values_size, zeros};

use crate::{Parts, length, nulls};

/// Writes rows as an Arrow file with one record batch: large parts from where they lie, each in one call.
pub fn write<W: Write>(rows: &Parts, output: W) -> Result<W, ArrowError> {
    let (shape, joints) = shape(rows)?;
    let mut writer = FileWriter::try_new(Joining { output, joints }, &rows.schema)?;
    writer.write(&shape)?;
    writer.finish()?;
    let joining = writer.into_inner()?;
    if joining.joints.is_empty() {
        Ok(joining.output)
    } else {
        Err(invalid_argument("parts that are not written"))
    }
}

/// A place in a file, and the parts that it has instead.
type Joint = (Buffer, Vec<Buffer>);

/// A batch that is written as the rows would be, but for the values of columns in parts: for them stand zeros that no one looks
/// at, as many bytes, in memory that is the system's own until it is written to.
fn shape(rows: &Parts) -> Result<(RecordBatch, VecDeque<Joint>), ArrowError> {
    // Their offsets and bits of NULLs counted in, which are joined.
    let apart = rows.columns.iter().filter(|parts| parts.len() > 1).flatten();
    let mut zeros = zeros(apart.map(values_size).sum())
        .map(Buffer::from)
        .map_err(|_| ArrowError::MemoryError(OutOfMemory::MESSAGE.to_owned()))?;
    let (mut arrays, mut joints) = (Vec::new(), VecDeque::new());
    for parts in &rows.columns {
        if let [whole] = parts.as_slice() {
            arrays.push(whole.clone());
            continue;
        }
        // A type that lies as the column's: of types, a file has its schema alone.
        let layout =
            layout(parts[0].data_type()).ok_or_else(|| invalid_argument("no type that stays in parts"))?;
        let (offsets, values) = match layout {
            DataType::FixedSizeBinary(width) => (None, numbers(parts, usize::try_from(width).unwrap_or(0))),
            DataType::Binary => texts::<i32>(parts)?,
            _ => texts::<i64>(parts)?,
        };
        let place = zeros.slice_with_length(0, values.iter().map(Buffer::len).sum());
        zeros.advance(place.len());
        let data = ArrayData::builder(layout).len(length(parts)).nulls(nulls(parts));
        let data = data.buffers(offsets.into_iter().chain([place.clone()]).collect());
        arrays.push(make_array(data.build()?));
        if !place.is_empty() {
            joints.push_back((place, values));
        }
    }
    let field = |array: &ArrayRef| Field::new("", array.data_type().clone(), true);
    let schema = Arc::new(Schema::new(arrays.iter().map(field).collect::<Vec<_>>()));
    Ok((RecordBatch::try_new(schema, arrays)?, joints))
}

/// How a column lies whose values are bytes one after another: so many each, or by offsets. `None` of one that is put together to
/// be written.
fn layout(kind: &DataType) -> Option<DataType> {
    match kind {
        DataType::Utf8 | DataType::Binary => Some(DataType::Binary),
        DataType::LargeUtf8 | DataType::LargeBinary => Some(DataType::LargeBinary),
        DataType::FixedSizeBinary(width) => (*width > 0).then(|| kind.clone()),
        _ => kind.primitive_width().and_then(|width| Some(DataType::FixedSizeBinary(width.try_into().ok()?))),
    }
}

/// Whether the parts of a column can be written as they lie; an error where they are too long together for their offsets.
pub(crate) fn may_lie_in_parts(parts: &[ArrayRef]) -> Result<bool, ArrowError> {
    let layout = parts.first().and_then(|part| layout(part.data_type()));
    if layout == Some(DataType::Binary) {
        let bytes = |part: &ArrayRef| Ok(offsets_and_bytes::<i32>(&part.to_data())?.1.len());
        let total = parts.iter().map(bytes).sum::<Result<usize, ArrowError>>()?;
        i32::try_from(total).map_err(|_| ArrowError::OffsetOverflowError(total))?;
    }
    Ok(layout.is_some())
}

fn numbers(parts: &[ArrayRef], width: usize) -> Vec<Buffer> {
    let values = |part: &ArrayRef| {
        let data = part.to_data();
        data.buffers()[0].slice_with_length(data.offset() * width, data.len() * width)
    };
    parts.iter().map(values).collect()
}

/// The offsets of all parts, from the first one's first, and the bytes of each.
fn texts<O: OffsetSizeTrait>(parts: &[ArrayRef]) -> Result<(Option<Buffer>, Vec<Buffer>), ArrowError> {
    let mut offsets = Vec::with_capacity(length(parts) + 1);
    offsets.push(O::zero());
    let (mut values, mut before) = (Vec::with_capacity(parts.len()), 0);
    for data in parts.iter().map(Array::to_data) {
        let (own, bytes) = offsets_and_bytes::<O>(&data)?;
        // It may be negative.
        let shift = O::usize_as(before) - own[0];
        offsets.extend(own[1..].iter().map(|offset| *offset + shift));
        before += bytes.len();
        values.push(bytes);
    }
    Ok((Some(Buffer::from(offsets)), values))
}

fn offsets_and_bytes<O: OffsetSizeTrait>(texts: &ArrayData) -> Result<(&[O], Buffer), ArrowError> {
    let offsets = &texts.buffers()[0].typed_data::<O>()[texts.offset()..=texts.offset() + texts.len()];
    let (first, last) = (offsets[0].as_usize(), offsets[texts.len()].as_usize());
    let bytes =
        last.checked_sub(first).ok_or_else(|| invalid_argument("a text that ends before it begins"))?;
    Ok((offsets, texts.buffers()[1].slice_with_length(first, bytes)))
}

fn invalid_argument(message: &str) -> ArrowError {
    ArrowError::InvalidArgumentError(message.to_owned())
}

/// An output that has the parts of columns in the place of what stands for them.
struct Joining<W: Write> {
    output: W,
    joints: VecDeque<Joint>,
}

impl<W: Write> Write for Joining<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match self.joints.front() {
            Some((place, parts)) if ptr::eq(place.as_slice(), data) => {
                parts.iter().try_for_each(|part| self.output.write_all(part))?;
                self.joints.pop_front();
                Ok(data.len())
            }
            _ => self.output.write(data),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::builder::{FixedSizeBinaryBuilder, ListBuilder, StringBuilder, StringDictionaryBuilder};
    use arrow_array::cast::AsArray;
    use arrow_array::types::UInt8Type;
    use arrow_array::*;
    use arrow_buffer::NullBuffer;
    use arrow_ipc::reader::FileReader;
    use arrow_select::concat::concat_batches;

    use super::*;

    /// Numbers that are the same each time.
    fn random(mut state: u64) -> impl FnMut(u32) -> u32 {
        move |below| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            u32::try_from(state >> 33).unwrap() % below
        }
    }

    /// A column of each kind, of random rows, of which a part is NULL if `has_nulls`.
    fn columns(rows: usize, has_nulls: bool, below: &mut impl FnMut(u32) -> u32) -> Vec<ArrayRef> {
        let mut numbers = || -> Vec<Option<u32>> {
            (0..rows).map(|_| (!has_nulls || below(3) > 0).then(|| below(1 << 30))).collect()
        };
        let text = |number: u32| "läng".repeat(number as usize % 9) + &(number % 5).to_string();
        let texts = |numbers: Vec<Option<u32>>| numbers.into_iter().map(move |number| number.map(text));
        let mut fixed = FixedSizeBinaryBuilder::new(3);
        for number in numbers() {
            match number {
                Some(number) => fixed.append_value(&number.to_be_bytes()[1..]).unwrap(),
                None => fixed.append_null(),
            }
        }
        let mut labels = StringDictionaryBuilder::<UInt8Type>::new();
        labels.extend(numbers().iter().map(|number| number.map(|number| (number % 5).to_string())));
        let mut lists = ListBuilder::new(StringBuilder::new());
        for number in numbers() {
            (0..number.unwrap_or(2) % 3).for_each(|item| lists.values().append_value(item.to_string()));
            lists.append(number.is_some());
        }
        let integers: Int64Array = numbers().into_iter().map(|number| number.map(i64::from)).collect();
        let inner: Vec<ArrayRef> =
            vec![Arc::new(integers.clone()), Arc::new(texts(numbers()).collect::<StringArray>())];
        let fields: Vec<_> =
            inner.iter().map(|column| Arc::new(Field::new("", column.data_type().clone(), true))).collect();
        let valid: NullBuffer = numbers().iter().map(Option::is_some).collect();
        let of_union = (0..).zip(fields.clone()).collect();
        let which = numbers().into_iter().map(|number| i8::from(number > Some(1 << 29)));
        vec![
            Arc::new(integers),
            Arc::new(
                numbers()
                    .into_iter()
                    .map(|number| number.map(|number| number.to_le_bytes()[0]))
                    .collect::<UInt8Array>(),
            ),
            Arc::new(numbers().into_iter().map(|number| number.map(i128::from)).collect::<Decimal128Array>()),
            Arc::new(
                numbers()
                    .into_iter()
                    .map(|number| number.map(|number| number % 2 > 0))
                    .collect::<BooleanArray>(),
            ),
            Arc::new(texts(numbers()).collect::<StringArray>()),
            Arc::new(texts(numbers()).collect::<LargeStringArray>()),
            Arc::new(texts(numbers()).collect::<BinaryArray>()),
            Arc::new(texts(numbers()).collect::<LargeBinaryArray>()),
            Arc::new(texts(numbers()).collect::<StringViewArray>()),
            Arc::new(fixed.finish()),
            Arc::new(labels.finish()),
            Arc::new(lists.finish()),
            Arc::new(UnionArray::try_new(of_union, which.collect(), None, inner.clone()).unwrap()),
            Arc::new(StructArray::new(fields.into(), inner, Some(valid))),
            Arc::new(NullArray::new(rows)),
        ]
    }

    fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().enumerate().map(|(at, column)| (at.to_string(), column, true)),
        )
        .unwrap()
    }

    /// The rows of a file that is written of parts.
    fn through_a_file(parts: &[RecordBatch]) -> RecordBatch {
        let file = write(&Parts::of(parts[0].schema(), parts).unwrap(), Vec::new()).unwrap();
        let read: Vec<RecordBatch> =
            FileReader::try_new(io::Cursor::new(file), None).unwrap().map(Result::unwrap).collect();
        assert_eq!(read.len(), 1);
        read[0].clone()
    }

    #[test]
    fn rows_in_any_parts_are_read_as_they_were() {
        let mut below = random(11);
        for round in 0..20 {
            // Each with dictionaries of its own.
            let sources = [0, 1].map(|source| batch(columns(90, (round >> source) % 2 > 0, &mut below)));
            let mut parts = Vec::new();
            for source in [&sources[0], &sources[1], &sources[0]] {
                let mut start = below(20) as usize;
                while start < source.num_rows() {
                    let rows = (below(30) as usize).min(source.num_rows() - start);
                    parts.push(source.slice(start, rows));
                    start += rows + below(9) as usize;
                }
            }
            let read = through_a_file(&parts);
            assert_eq!(read, concat_batches(&sources[0].schema(), &parts).unwrap(), "{round}");
            read.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
        }
    }

    #[test]
    fn numbers_and_texts_are_written_from_where_they_lie() {
        struct Pointers(Vec<*const u8>);
        impl Write for Pointers {
            fn write(&mut self, data: &[u8]) -> io::Result<usize> {
                self.0.push(data.as_ptr());
                Ok(data.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let whole = batch(vec![
            Arc::new(Decimal128Array::from_iter_values(0..100)),
            Arc::new(StringArray::from_iter_values((0..100).map(|row| row.to_string()))),
        ]);
        let parts = [whole.slice(0, 37), whole.slice(37, 63)];
        let written = write(&Parts::of(whole.schema(), &parts).unwrap(), Pointers(Vec::new())).unwrap().0;
        for part in &parts {
            let texts = part.column(1).as_string::<i32>();
            let text = &texts.values()[usize::try_from(texts.offsets()[0]).unwrap()..];
            assert!(written.contains(&part.column(0).to_data().buffers()[0].as_ptr()));
            assert!(written.contains(&text.as_ptr()));
        }
    }

    #[test]
    fn texts_that_are_too_long_together_are_refused() {
        let text = StringArray::from_iter_values([" ".repeat(1 << 20)]);
        let parts = vec![batch(vec![Arc::new(text)]); 1 << 11];
        let error = Parts::of(parts[0].schema(), &parts).unwrap_err();
        assert!(matches!(error, ArrowError::OffsetOverflowError(_)));
    }
}
