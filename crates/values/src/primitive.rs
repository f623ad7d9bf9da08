//! Columns of fixed-width values, booleans and validity.

use std::sync::Arc;

use arrow_array::{ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer, NullBufferBuilder, ScalarBuffer};
use arrow_schema::DataType;

use longshore_core::Kind;
use longshore_core::memory::try_reserve;

use crate::{CellFault, Cells, Decoder, Misfit};

/// Which rows hold a value; costs nothing until the first NULL.
#[derive(Debug)]
pub struct Validity(NullBufferBuilder);

impl Default for Validity {
    fn default() -> Self {
        Self(NullBufferBuilder::new(0))
    }
}

impl Validity {
    /// Adds `count` rows that hold a value.
    pub fn all_valid(&mut self, count: usize) {
        self.0.append_n_non_nulls(count);
    }

    /// Adds a row.
    pub fn push(&mut self, valid: bool) {
        self.0.append(valid);
    }

    /// Adds a row for each of `cells`.
    pub fn extend(&mut self, cells: Cells<'_>) {
        if cells.any_null() {
            cells.iter().for_each(|cell| self.push(cell.is_some()));
        } else {
            self.all_valid(cells.len());
        }
    }

    /// The rows so far, which are now forgotten; `None` where all hold a value.
    pub fn finish(&mut self) -> Option<NullBuffer> {
        self.0.finish()
    }
}

/// The values; in their place is room for as many, where there is some: the next batch will most likely be as long.
pub(crate) fn take_keeping_capacity<T>(values: &mut Vec<T>) -> Vec<T> {
    let mut next = Vec::new();
    // Without it the next batch grows, or fails, as the first did.
    let _ = next.try_reserve_exact(values.len());
    std::mem::replace(values, next)
}

/// The fault of `row`, whose cell is a misfit; `None` where the caller's options make it NULL.
#[cold]
#[must_use]
pub fn fault(row: usize, misfit: Misfit) -> Option<CellFault> {
    match misfit {
        Misfit::Null => None,
        Misfit::Fault(text) => {
            let (what, hint) = *text;
            Some(CellFault { row, what, hint, kind: Kind::Data })
        }
    }
}

/// The value in the cell of `row`, read by `parse`; `None` for NULL, and where the caller's options make it NULL.
#[inline]
pub fn parse_cell<T>(
    row: usize,
    cell: Option<&[u8]>,
    parse: &mut impl FnMut(&[u8]) -> Result<T, Misfit>,
) -> Result<Option<T>, CellFault> {
    match cell.map(parse).transpose() {
        Ok(value) => Ok(value),
        Err(misfit) => fault(row, misfit).map_or(Ok(None), Err),
    }
}

/// A column of `T`, each cell of which `parse` reads.
pub struct Primitive<T: ArrowPrimitiveType, F> {
    data_type: DataType,
    values: Vec<T::Native>,
    validity: Validity,
    parse: F,
}

impl<T, F> Primitive<T, F>
where
    T: ArrowPrimitiveType,
    F: FnMut(&[u8]) -> Result<T::Native, Misfit> + Send + 'static,
{
    /// A column of Arrow type `data_type`, which is `T` with a time zone or a scale.
    pub fn boxed(data_type: DataType, parse: F) -> Box<dyn Decoder> {
        Box::new(Self { data_type, values: Vec::new(), validity: Validity::default(), parse })
    }

    /// Reads cells that hold no NULL; stops at the first misfit.
    fn decode_values(&mut self, cells: Cells<'_>) -> Result<(), Misfit> {
        for cell in cells.values() {
            self.values.push((self.parse)(cell)?);
        }
        Ok(())
    }

    fn decode_each(&mut self, cells: Cells<'_>) -> Result<(), CellFault> {
        for (row, cell) in cells.iter().enumerate() {
            let value = parse_cell(row, cell, &mut self.parse)?;
            self.values.push(value.unwrap_or_default());
            self.validity.push(value.is_some());
        }
        Ok(())
    }
}

impl<T, F> Decoder for Primitive<T, F>
where
    T: ArrowPrimitiveType,
    F: FnMut(&[u8]) -> Result<T::Native, Misfit> + Send + 'static,
{
    fn decode(&mut self, cells: Cells<'_>) -> Result<(), CellFault> {
        let before = self.values.len();
        try_reserve(&mut self.values, cells.len())?;
        if !cells.any_null() && self.decode_values(cells).is_ok() {
            self.validity.all_valid(cells.len());
            return Ok(());
        }
        self.values.truncate(before);
        self.decode_each(cells)
    }

    fn finish(&mut self) -> ArrayRef {
        let mut values = take_keeping_capacity(&mut self.values);
        values.shrink_to_fit();
        let array = PrimitiveArray::<T>::new(ScalarBuffer::from(values), self.validity.finish());
        Arc::new(array.with_data_type(self.data_type.clone()))
    }

    fn size(&self) -> usize {
        size_of_val(self.values.as_slice())
    }
}

/// A column of booleans.
pub struct Booleans<F> {
    values: BooleanBufferBuilder,
    validity: Validity,
    parse: F,
}

impl<F: FnMut(&[u8]) -> Result<bool, Misfit> + Send + 'static> Booleans<F> {
    /// Such a column.
    pub fn boxed(parse: F) -> Box<dyn Decoder> {
        Box::new(Self { values: BooleanBufferBuilder::new(0), validity: Validity::default(), parse })
    }
}

impl<F: FnMut(&[u8]) -> Result<bool, Misfit> + Send + 'static> Decoder for Booleans<F> {
    fn decode(&mut self, cells: Cells<'_>) -> Result<(), CellFault> {
        for (row, cell) in cells.iter().enumerate() {
            let value = parse_cell(row, cell, &mut self.parse)?;
            self.values.append(value.unwrap_or_default());
            self.validity.push(value.is_some());
        }
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(BooleanArray::new(self.values.finish(), self.validity.finish()))
    }

    fn size(&self) -> usize {
        self.values.len() / 8
    }
}
