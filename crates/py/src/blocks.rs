//! Blocks of rows that an ODBC driver has filled, for Python's `longshore.odbc.columns`, which has their buffers.

use std::cell::Cell;
use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_schema::{Field, TimeUnit};
use longshore_core::{Error, Place};
use longshore_interpreter::capsule::Array;
use longshore_interpreter::raise;
use longshore_values::Fault;
use longshore_values::blocks::{Joined, Unit, dates, timestamps};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::buffer::elements;

/// The numbers that a driver tells instead of a length: the value is NULL, or the driver does not know.
const NULL: i64 = -1;
const NO_TOTAL: i64 = -4;

/// A column of a block as an array: the room of each row in `values`, and what the driver tells of its length in
/// `lengths`. Of the row of a value that is longer than the `most` bytes of a room, or whose length is not known, `long`
/// gives all bytes. `place` is the column, its native type and the rows before the block.
#[pyfunction]
pub(crate) fn block(
    py: Python<'_>,
    kind: &str,
    values: &Bound<'_, PyAny>,
    lengths: &Bound<'_, PyAny>,
    most: usize,
    long: &Bound<'_, PyAny>,
    place: (String, String, u64),
) -> PyResult<Array> {
    let lengths = PyBuffer::get(lengths)?.to_vec(py)?;
    let (column, native_type, before) = place;
    let refused = |fault: Fault| {
        let (column, native_type) = (Some(column.clone()), Some(native_type.clone()));
        let row = Some(before + fault.row() as u64);
        raise(fault.into_error(Place { column, row, native_type }))
    };
    let block = Block { py, values, lengths: &lengths, most, long };
    let nulls = block.nulls();
    let array: Result<ArrayRef, Fault> = match kind {
        "wide" => block.join::<u16>(refused)?.texts(nulls),
        "text" => block.join::<u8>(refused)?.texts(nulls),
        "bytes" => Ok(Arc::new(block.join(refused)?.bytes(nulls))),
        "date" => dates(&block.parts()?, nulls),
        "us" => timestamps(&block.parts()?, TimeUnit::Microsecond, nulls),
        "ns" => timestamps(&block.parts()?, TimeUnit::Nanosecond, nulls),
        other => return Err(raise(Error::internal(format!("no column of a block is {other:?}")))),
    };
    let array = array.map_err(refused)?;
    if array.len() != lengths.len() {
        return Err(raise(Error::internal(format!("{} of {} rows of a block", array.len(), lengths.len()))));
    }
    Ok(Array::new(Arc::new(Field::new("", array.data_type().clone(), true)), array))
}

struct Block<'a, 'py> {
    py: Python<'py>,
    values: &'a Bound<'py, PyAny>,
    lengths: &'a [i64],
    most: usize,
    long: &'a Bound<'py, PyAny>,
}

impl Block<'_, '_> {
    /// The rows that have a value; `None` where all have one.
    fn nulls(&self) -> Option<NullBuffer> {
        let has_nulls = self.lengths.contains(&NULL);
        has_nulls.then(|| self.lengths.iter().map(|length| *length != NULL).collect())
    }

    /// The values in rooms of equal size.
    fn join<U: Unit + Element>(&self, refused: impl Fn(Fault) -> PyErr) -> PyResult<Joined<U>> {
        let values = PyBuffer::get(self.values)?;
        let cells = self.cells(&values)?;
        let rooms = cells.chunks_exact((cells.len() / self.lengths.len().max(1)).max(1));
        let mut all = Joined::new(self.lengths.len()).map_err(&refused)?;
        for (row, (&length, room)) in self.lengths.iter().zip(rooms).enumerate() {
            match self.units_in(room, length) {
                Some(units) => all.push(units.iter().map(Cell::get)),
                None => self.units_apart(row, length)?.and_then(|units| all.push(units.into_iter())),
            }
            .map_err(&refused)?;
        }
        Ok(all)
    }

    /// The units of a value that its room has whole; none of NULL.
    #[inline]
    fn units_in<'a, U>(&self, room: &'a [U], length: i64) -> Option<&'a [U]> {
        if length == NULL {
            return Some(&[]);
        }
        let length = usize::try_from(length).ok().filter(|length| *length <= self.most)?;
        let (units, rest) = (length / size_of::<U>(), length % size_of::<U>());
        room.get(..units).filter(|_| rest == 0)
    }

    /// The units of another value, which the driver hands over by itself.
    fn units_apart<U: Unit>(&self, row: usize, length: i64) -> PyResult<Result<Vec<U>, Fault>> {
        if length != NO_TOTAL && !usize::try_from(length).is_ok_and(|length| length > self.most) {
            let message = format!("{length} is not a length that the driver can mean");
            return Ok(Err(Fault::data(row, message)));
        }
        let bytes: PyBackedBytes = self.long.call1((row,))?.extract()?;
        Ok(U::of(&bytes, row))
    }

    /// The values of as many parts.
    fn parts<const N: usize>(&self) -> PyResult<Vec<[u16; N]>> {
        let values = PyBuffer::get(self.values)?;
        let (rooms, _) = self.cells(&values)?.as_chunks::<N>();
        Ok(rooms.iter().map(|room| room.each_ref().map(Cell::get)).collect())
    }

    /// The elements of a buffer, which lie one after another; with the next block the driver fills it again.
    fn cells<'a, T: Element>(&'a self, buffer: &'a PyBuffer<T>) -> PyResult<&'a [Cell<T>]> {
        elements(self.py, buffer).ok_or_else(|| raise(Error::internal("a buffer with gaps")))
    }
}
