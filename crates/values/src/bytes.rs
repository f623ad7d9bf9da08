//! Columns of text and bytes.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::types::{BinaryType, ByteArrayType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{ArrayRef, FixedSizeBinaryArray, GenericByteArray};
use arrow_buffer::{ArrowNativeType, Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;
use longshore_core::memory::{OutOfMemory, try_reserve};
use simdutf8::basic::from_utf8;

use crate::primitive::{Validity, fault, parse_cell, take_keeping_capacity};
use crate::{CellFault, Cells, Decoder, Misfit};

/// A column of text or bytes that the wire carries as they are.
///
/// A batch is closed long before its bytes reach the 2 GiB that 32-bit offsets can tell: see `assembly.rs`.
pub struct Plain<T: ByteArrayType> {
    values: Vec<u8>,
    offsets: Vec<T::Offset>,
    validity: Validity,
    kind: PhantomData<T>,
}

/// A column of UTF-8 text, checked.
#[must_use]
pub fn text() -> Box<dyn Decoder> {
    Box::new(Plain::<Utf8Type>::new())
}

/// A column of bytes.
#[must_use]
pub fn bytes() -> Box<dyn Decoder> {
    Box::new(Plain::<BinaryType>::new())
}

/// A column of bytes with 64-bit offsets.
#[must_use]
pub fn large_bytes() -> Box<dyn Decoder> {
    Box::new(Plain::<LargeBinaryType>::new())
}

/// A column of UTF-8 text with 64-bit offsets, checked.
#[must_use]
pub fn large_text() -> Box<dyn Decoder> {
    Box::new(Plain::<LargeUtf8Type>::new())
}

/// A column of texts `arrow`; `None` for any other type.
#[must_use]
pub fn strings(arrow: &DataType) -> Option<Box<dyn Decoder>> {
    match arrow {
        DataType::Utf8 => Some(text()),
        DataType::LargeUtf8 => Some(large_text()),
        _ => None,
    }
}

impl<T: ByteArrayType> Plain<T> {
    fn new() -> Self {
        Self {
            values: Vec::new(),
            offsets: vec![T::Offset::default()],
            validity: Validity::default(),
            kind: PhantomData,
        }
    }

    /// Has the column take `rows` more values of `bytes` in all.
    fn try_reserve(&mut self, bytes: usize, rows: usize) -> Result<(), OutOfMemory> {
        try_reserve(&mut self.values, bytes)?;
        // And the first of the next batch.
        try_reserve(&mut self.offsets, rows + 1)
    }

    /// Appends the bytes of `cells`, whose validity is still to come; where they begin among the offsets and the values.
    fn append(&mut self, cells: Cells<'_>) -> Result<(usize, usize), OutOfMemory> {
        let start = (self.offsets.len() - 1, self.values.len());
        self.try_reserve(cells.total_length(), cells.len())?;
        let mut push = |cell: &[u8]| {
            self.values.extend_from_slice(cell);
            self.offsets.push(T::Offset::usize_as(self.values.len()));
        };
        if cells.any_null() {
            cells.iter().for_each(|cell| push(cell.unwrap_or_default()));
        } else {
            cells.values().for_each(push);
        }
        Ok(start)
    }

    /// Appends `cells` where all of them are ASCII; whether they are.
    fn append_ascii(&mut self, cells: Cells<'_>) -> Result<bool, OutOfMemory> {
        let (first, before) = self.append(cells)?;
        let is_ascii = self.values[before..].is_ascii();
        if is_ascii {
            self.validity.extend(cells);
        } else {
            self.values.truncate(before);
            self.offsets.truncate(first + 1);
        }
        Ok(is_ascii)
    }
}

impl<T: ByteArrayType> Decoder for Plain<T> {
    fn decode(&mut self, cells: Cells<'_>) -> Result<(), CellFault> {
        let (first, before) = self.append(cells)?;
        self.validity.extend(cells);
        check::<T>(&self.values[before..], before, &self.offsets[first..])
    }

    fn finish(&mut self) -> ArrayRef {
        let mut offsets = take_keeping_capacity(&mut self.offsets);
        self.offsets.push(T::Offset::default());
        let mut values = take_keeping_capacity(&mut self.values);
        offsets.shrink_to_fit();
        values.shrink_to_fit();
        Arc::new(array::<T>(offsets, values, &mut self.validity))
    }

    fn size(&self) -> usize {
        self.values.len()
    }
}

/// `decode` has checked the text chunk by chunk and offsets only grow.
#[allow(unsafe_code)]
fn array<T: ByteArrayType>(
    offsets: Vec<T::Offset>,
    values: Vec<u8>,
    validity: &mut Validity,
) -> GenericByteArray<T> {
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    // SAFETY: the offsets are monotonic (OffsetBuffer::new asserts it) and end at values.len(), since each was
    // pushed as the length at that time; `check` has found every value between two of them to be valid.
    unsafe { GenericByteArray::new_unchecked(offsets, Buffer::from_vec(values), validity.finish()) }
}

/// Checks the values that `offsets` tell, of which `bytes` are all the bytes and start at `base`: texts must be UTF-8.
fn check<T: ByteArrayType>(bytes: &[u8], base: usize, offsets: &[T::Offset]) -> Result<(), CellFault> {
    if !T::DATA_TYPE.is_string() || bytes.is_ascii() {
        return Ok(());
    }
    let positions = || offsets.iter().map(|offset| offset.as_usize() - base);
    // All bytes together may be valid where two cells share a character between them.
    let whole = from_utf8(bytes).is_ok_and(|text| positions().all(|at| text.is_char_boundary(at)));
    if whole {
        return Ok(());
    }
    let bad =
        |(row, (from, to)): (usize, (usize, usize))| from_utf8(&bytes[from..to]).is_err().then_some(row);
    let row = positions().zip(positions().skip(1)).enumerate().find_map(bad).unwrap_or_default();
    Err(CellFault::with_hint(
        row,
        "the text is not valid UTF-8",
        "the database has no encoding (SQL_ASCII), or its data is damaged: read the column as bytes, in PostgreSQL with \
         convert_to(column, 'SQL_ASCII'), elsewhere with CAST(column AS BINARY) or AS BLOB",
    ))
}

/// A column of text or bytes that `append` derives from each cell.
pub struct Derived<T: ByteArrayType, F> {
    plain: Plain<T>,
    /// Whether `append` would leave ASCII as it is.
    keeps_ascii: bool,
    append: F,
}

impl<T, F> Derived<T, F>
where
    T: ByteArrayType,
    F: FnMut(&[u8], &mut Vec<u8>) -> Result<(), Misfit> + Send + 'static,
{
    /// Such a column.
    pub fn boxed(append: F) -> Box<dyn Decoder> {
        Box::new(Self { plain: Plain::<T>::new(), keeps_ascii: false, append })
    }

    /// Such a column, of which `append` leaves cells of ASCII as they are: these are copied without it.
    pub fn keeping_ascii(append: F) -> Box<dyn Decoder> {
        Box::new(Self { plain: Plain::<T>::new(), keeps_ascii: true, append })
    }
}

impl<T, F> Decoder for Derived<T, F>
where
    T: ByteArrayType,
    F: FnMut(&[u8], &mut Vec<u8>) -> Result<(), Misfit> + Send + 'static,
{
    fn decode(&mut self, cells: Cells<'_>) -> Result<(), CellFault> {
        if self.keeps_ascii && self.plain.append_ascii(cells)? {
            return Ok(());
        }
        // What is appended is most likely no longer than twice the cell, as hexadecimal digits are.
        self.plain.try_reserve(2 * cells.total_length(), cells.len())?;
        let Plain { values, offsets, validity, .. } = &mut self.plain;
        let (first, before) = (offsets.len() - 1, values.len());
        for (row, cell) in cells.iter().enumerate() {
            let start = values.len();
            let mut valid = cell.is_some();
            if let Some(Err(misfit)) = cell.map(|cell| (self.append)(cell, values)) {
                if let Some(fault) = fault(row, misfit) {
                    return Err(fault);
                }
                values.truncate(start);
                valid = false;
            }
            offsets.push(T::Offset::usize_as(values.len()));
            validity.push(valid);
        }
        check::<T>(&values[before..], before, &offsets[first..])
    }

    fn finish(&mut self) -> ArrayRef {
        self.plain.finish()
    }

    fn size(&self) -> usize {
        self.plain.size()
    }
}

/// A column of values of `N` bytes each.
pub struct Fixed<const N: usize, F> {
    values: Vec<u8>,
    validity: Validity,
    parse: F,
}

impl<const N: usize, F: FnMut(&[u8]) -> Result<[u8; N], Misfit> + Send + 'static> Fixed<N, F> {
    /// Such a column.
    pub fn boxed(parse: F) -> Box<dyn Decoder> {
        Box::new(Self { values: Vec::new(), validity: Validity::default(), parse })
    }
}

impl<const N: usize, F: FnMut(&[u8]) -> Result<[u8; N], Misfit> + Send + 'static> Decoder for Fixed<N, F> {
    fn decode(&mut self, cells: Cells<'_>) -> Result<(), CellFault> {
        try_reserve(&mut self.values, N * cells.len())?;
        for (row, cell) in cells.iter().enumerate() {
            let value = parse_cell(row, cell, &mut self.parse)?;
            self.values.extend_from_slice(&value.unwrap_or([0; N]));
            self.validity.push(value.is_some());
        }
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        let mut values = std::mem::take(&mut self.values);
        values.shrink_to_fit();
        let width = i32::try_from(N).unwrap_or(i32::MAX);
        Arc::new(FixedSizeBinaryArray::new(width, Buffer::from_vec(values), self.validity.finish()))
    }

    fn size(&self) -> usize {
        self.values.len()
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;

    use super::*;
    use crate::Span;

    #[test]
    fn what_is_ascii_is_copied_and_the_rest_derived() {
        let latin = |cell: &[u8], into: &mut Vec<u8>| {
            into.extend(cell.iter().map(|byte| char::from(*byte)).collect::<String>().bytes());
            Ok(())
        };
        let mut column = Derived::<Utf8Type, _>::keeping_ascii(latin);
        let bytes = b"abcd\xe9f";
        let spans = [Span::new(0, 2), Span::NULL, Span::new(2, 0), Span::new(3, 2), Span::new(5, 1)];
        // ASCII without and with NULL, then text of which the chunk has other bytes, then ASCII again.
        for (chunk, any_null) in [(0..1, false), (0..3, true), (0..5, true), (4..5, false)] {
            column.decode(Cells::new(bytes, &spans[chunk], any_null)).unwrap();
        }
        let array = column.finish();
        let found: Vec<_> = array.as_string::<i32>().iter().collect();
        let (ab, empty, mixed, f) = (Some("ab"), Some(""), Some("d\u{e9}"), Some("f"));
        assert_eq!(found, [ab, ab, None, empty, ab, None, empty, mixed, f, f]);
        assert_eq!(array.null_count(), 2);
    }
}
