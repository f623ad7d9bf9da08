//! pgvector's vectors as lists of numbers: of the length that the column declares, or of any.
//!
//! The binary form is `vector_send`'s and `halfvec_send`'s: the count of numbers and a spare word, both of 16 bits, then
//! the numbers.

use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, FixedSizeListArray, ListArray, PrimitiveArray};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, Field, FieldRef};
use half::f16;
use longshore_core::memory::try_reserve;
use longshore_source::fit;
use longshore_values::text::{not, utf8};
use longshore_values::{CellFault, Cells, Decoder, Item, Items, Misfit, Validity};

use crate::decode::nested::Ends;
use crate::types::{Class, Format, Type};

/// The decoder of vectors into the lists of `arrow`; `None` where its numbers might not hold them.
pub(crate) fn decoder(class: Class, format: Format, arrow: &DataType) -> Option<Box<dyn Decoder>> {
    let (item, size) = match arrow {
        DataType::List(item) => (item, None),
        DataType::FixedSizeList(item, size) => {
            (item, Some(usize::try_from(*size).ok().filter(|size| *size > 0)?))
        }
        _ => return None,
    };
    let append: Append = match (format, class) {
        (Format::Text, _) => append_text,
        (Format::Binary, Class::HalfVector) => append_halves,
        (Format::Binary, _) => append_floats,
    };
    Some(match item.data_type() {
        DataType::Float16 if class == Class::HalfVector => {
            Vectors::<Float16Type>::boxed(item, size, append, f16::from_f32)
        }
        DataType::Float32 => Vectors::<Float32Type>::boxed(item, size, append, |number| number),
        DataType::Float64 => Vectors::<Float64Type>::boxed(item, size, append, f64::from),
        _ => return None,
    })
}

/// Hands over the numbers of a cell.
type Append = fn(&[u8], &mut dyn FnMut(f32)) -> Result<(), Misfit>;

struct Vectors<T: ArrowPrimitiveType> {
    item: FieldRef,
    /// The length of every list, where the type has one.
    size: Option<usize>,
    append: Append,
    number: fn(f32) -> T::Native,
    values: Vec<T::Native>,
    ends: Ends,
    validity: Validity,
}

impl<T: ArrowPrimitiveType> Vectors<T> {
    fn boxed(
        item: &FieldRef,
        size: Option<usize>,
        append: Append,
        number: fn(f32) -> T::Native,
    ) -> Box<dyn Decoder> {
        let item = item.clone();
        Box::new(Self {
            item,
            size,
            append,
            number,
            values: Vec::new(),
            ends: Ends::default(),
            validity: Validity::default(),
        })
    }

    fn push(&mut self, cell: Option<&[u8]>) -> Result<(), Misfit> {
        let Self { append, number, values, .. } = self;
        let before = values.len();
        match (cell, self.size) {
            (Some(cell), _) => append(cell, &mut |each| values.push(number(each)))?,
            (None, size) => values.resize(before + size.unwrap_or_default(), T::Native::default()),
        }
        let length = self.values.len() - before;
        if let Some(size) = self.size.filter(|size| *size != length) {
            return Err(Misfit::with_hint(
                format!("a vector of {length} numbers where the column's type has {size}"),
                "ask for lists of any length: schema={\"<column>\": \"list<float>\"}",
            ));
        }
        self.ends.push(length)?;
        self.validity.push(cell.is_some());
        Ok(())
    }
}

impl<T: ArrowPrimitiveType> Decoder for Vectors<T> {
    fn decode(&mut self, cells: Cells<'_>) -> Result<(), CellFault> {
        // Two bytes are the least that a number takes.
        let numbers = self.size.map_or(cells.total_length() / 2, |size| size.saturating_mul(cells.len()));
        try_reserve(&mut self.values, numbers)?;
        cells.try_for_each(|_, cell| self.push(cell))
    }

    fn finish(&mut self) -> ArrayRef {
        let values = PrimitiveArray::<T>::new(ScalarBuffer::from(std::mem::take(&mut self.values)), None);
        let (ends, nulls) = (self.ends.finish(), self.validity.finish());
        let (item, values) = (self.item.clone(), Arc::new(values));
        // `new` panics on what cannot be here: numbers of another type than the item's, by which they were chosen, and
        // lists that do not end where the numbers do.
        match self.size.and_then(|size| i32::try_from(size).ok()) {
            Some(size) => Arc::new(FixedSizeListArray::new(item, size, values, nulls)),
            None => Arc::new(ListArray::new(item, ends, values, nulls)),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self.values.as_slice()) + self.ends.size()
    }
}

fn append_floats(cell: &[u8], push: &mut dyn FnMut(f32)) -> Result<(), Misfit> {
    let numbers = numbers::<4>(cell)?;
    for bytes in numbers {
        push(f32::from_be_bytes(*bytes));
    }
    Ok(())
}

fn append_halves(cell: &[u8], push: &mut dyn FnMut(f32)) -> Result<(), Misfit> {
    let numbers = numbers::<2>(cell)?;
    for bytes in numbers {
        push(f16::from_be_bytes(*bytes).to_f32());
    }
    Ok(())
}

/// The numbers of a binary cell, each of `N` bytes.
fn numbers<const N: usize>(cell: &[u8]) -> Result<&[[u8; N]], Misfit> {
    let damage = || Misfit::fault("the server sent a damaged vector");
    let ([high, low, ..], rest) = cell.split_first_chunk::<4>().ok_or_else(damage)?;
    let (numbers, left) = rest.as_chunks::<N>();
    let count = usize::from(u16::from_be_bytes([*high, *low]));
    if left.is_empty() && numbers.len() == count { Ok(numbers) } else { Err(damage()) }
}

/// `[1,2.5,-3]`: the shortest digits of floats of 32 bits, as which those of 16 are printed, too.
fn append_text(cell: &[u8], push: &mut dyn FnMut(f32)) -> Result<(), Misfit> {
    let text = utf8(cell)?;
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    for number in inner.ok_or_else(|| not("a vector", text))?.split(',') {
        push(number.parse().map_err(|_| not("a vector", text))?);
    }
    Ok(())
}

/// Appends the length and the bytes of a vector in the binary format.
pub(crate) fn put(native: &Type, item: &Item<'_>, out: &mut Vec<u8>) -> Result<(), Misfit> {
    let (numbers, halves) = (of(native, item)?, native.is(Class::HalfVector));
    let count =
        u16::try_from(numbers.len()).map_err(|_| Misfit::fault("a vector has 16,000 numbers at most"))?;
    let width = if halves { 2 } else { 4 };
    out.extend_from_slice(&(4 + i32::from(count) * width).to_be_bytes());
    out.extend_from_slice(&count.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    for number in numbers {
        if halves {
            out.extend_from_slice(&f16::from_f32(number).to_be_bytes());
        } else {
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
    Ok(())
}

/// The text of a vector.
pub(crate) fn literal(native: &Type, item: &Item<'_>) -> Result<String, Misfit> {
    let numbers: Vec<String> = of(native, item)?.iter().map(f32::to_string).collect();
    Ok(format!("[{}]", numbers.join(",")))
}

/// The numbers of a list, all of which a column of `native` holds.
fn of(native: &Type, item: &Item<'_>) -> Result<Vec<f32>, Misfit> {
    let Item::List(values) = item else { return Err(fit::wrong_type(item)) };
    let field = Field::new_list_field(values.data_type().clone(), true);
    let items = Items::new(values, &field).map_err(Misfit::from)?;
    if let Ok(size) = usize::try_from(native.modifier)
        && size != values.len()
    {
        return Err(Misfit::with_hint(
            format!("the list has {} numbers, the column's vectors {size}", values.len()),
            "give lists of the column's length",
        ));
    }
    (0..values.len()).map(|at| number(native, &items.get(at))).collect()
}

fn number(native: &Type, item: &Item<'_>) -> Result<f32, Misfit> {
    let number = match item {
        Item::Float(value) => *value,
        Item::Double(value) => fit::float32(*value)?,
        Item::Null => return Err(Misfit::with_hint("a vector has no NULL inside", "fill it with a number")),
        _ => return Err(Misfit::with_hint("a vector has floats", "cast the data to lists of float32")),
    };
    if !number.is_finite() {
        return Err(Misfit::with_hint(
            "a vector has no NaN and no infinity",
            "leave the row out, or write NULL",
        ));
    }
    if native.is(Class::HalfVector) && f16::from_f32(number).to_f32().to_bits() != number.to_bits() {
        return Err(Misfit::with_hint(
            "a float of 16 bits would round it",
            "make the column a vector, or the data float16",
        ));
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(append: Append, cell: &[u8]) -> Result<Vec<f32>, Misfit> {
        let mut numbers = Vec::new();
        append(cell, &mut |number| numbers.push(number)).map(|()| numbers)
    }

    #[test]
    fn vectors_have_as_many_numbers_as_they_tell() {
        assert_eq!(read(append_floats, &[0, 1, 0, 0, 0x40, 0x20, 0, 0]), Ok(vec![2.5]));
        assert_eq!(read(append_halves, &[0, 2, 0, 0, 0x3c, 0, 0xc2, 0]), Ok(vec![1.0, -3.0]));
        for bad in [&[][..], &[0, 1, 0], &[0, 3, 0, 0, 0x40, 0x20, 0, 0], &[0, 1, 0, 0, 0x40, 0x20, 0]] {
            assert!(read(append_floats, bad).is_err() && read(append_halves, bad).is_err());
        }
        assert_eq!(read(append_text, b"[1,2.5,-3]"), Ok(vec![1.0, 2.5, -3.0]));
        for bad in ["", "[", "1,2", "[1,]", "[x]", "{1}"] {
            assert!(read(append_text, bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
