//! Blocks of rows that an ODBC driver has filled, for Python's `longshore.odbc.columns`, which has their buffers.

use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef};
use arrow_schema::{Field, TimeUnit};
use longshore_core::{Error, Place};
use longshore_interpreter::capsule::Array;
use longshore_interpreter::raise;
use longshore_values::Fault;
use longshore_values::blocks::{Value, bytes, dates, texts, timestamps, wide_texts};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

/// The numbers that a driver tells instead of a length: the value is NULL, or the driver does not know.
const NULL: i64 = -1;
const NO_TOTAL: i64 = -4;

/// A column of a block as an array: the room of each row in `values`, and what the driver tells of its length in
/// `lengths`. Of a value that is longer than the `most` bytes of a room, or whose length is not known, `apart` has the
/// row and all bytes, in order. `place` is the column, its native type and the rows before the block.
#[pyfunction]
pub(crate) fn block(
    kind: &str,
    values: &Bound<'_, PyAny>,
    lengths: &Bound<'_, PyAny>,
    most: usize,
    apart: Vec<(usize, PyBackedBytes)>,
    place: (String, String, u64),
) -> PyResult<Array> {
    let lengths = PyBuffer::get(lengths)?;
    let lengths = Lengths { told: elements(&lengths)?, most, apart };
    let rows = lengths.told.len();
    let array = match kind {
        "wide" => wide_texts(lengths.values(elements::<u16>(&PyBuffer::get(values)?)?)),
        "text" => texts(lengths.values(elements::<u8>(&PyBuffer::get(values)?)?)),
        "bytes" => bytes(lengths.values(elements::<u8>(&PyBuffer::get(values)?)?)),
        "date" => dates(lengths.parts(elements(&PyBuffer::get(values)?)?)),
        "us" => timestamps(lengths.parts(elements(&PyBuffer::get(values)?)?), TimeUnit::Microsecond),
        "ns" => timestamps(lengths.parts(elements(&PyBuffer::get(values)?)?), TimeUnit::Nanosecond),
        other => return Err(raise(Error::internal(format!("no column of a block is {other:?}")))),
    };
    let (column, native, before) = place;
    let found: ArrayRef = array.map_err(|fault: Fault| {
        let row = Some(before + fault.row() as u64);
        raise(fault.into_error(Place { column: Some(column), row, native_type: Some(native) }))
    })?;
    if found.len() != rows {
        return Err(raise(Error::internal(format!("{} of {rows} rows of a block", found.len()))));
    }
    Ok(Array::new(Arc::new(Field::new("", found.data_type().clone(), true)), found))
}

/// A buffer's elements, which lie one after another.
#[allow(unsafe_code)]
fn elements<T: Element>(buffer: &PyBuffer<T>) -> PyResult<&[T]> {
    let elements = buffer.as_slice_ptr().ok_or_else(|| raise(Error::internal("a buffer with gaps")))?;
    // SAFETY: the buffer lives as long as the slice. The driver alone writes to it, while the thread that is here fetches.
    Ok(unsafe { elements.as_ref() })
}

struct Lengths<'a> {
    told: &'a [i64],
    most: usize,
    apart: Vec<(usize, PyBackedBytes)>,
}

impl Lengths<'_> {
    /// The values in rooms of equal size.
    fn values<'b, T: Element>(
        &'b self,
        units: &'b [T],
    ) -> impl ExactSizeIterator<Item = Result<Value<'b, T>, Fault>> {
        let (size, most) = (size_of::<T>(), self.most);
        let rooms = units.chunks_exact((units.len() / self.told.len().max(1)).max(1));
        let mut apart = self.apart.iter();
        self.told.iter().zip(rooms).enumerate().map(move |(row, (&length, room))| {
            let known = usize::try_from(length).ok();
            if length == NULL {
                return Ok(Value::Null);
            }
            if length == NO_TOTAL || known.is_some_and(|length| length > most) {
                let bytes = apart.next().filter(|(at, _)| *at == row);
                return bytes
                    .map(|(_, bytes)| Value::Apart(bytes))
                    .ok_or_else(|| Fault::internal("no value apart"));
            }
            let units =
                known.filter(|length| length % size == 0).and_then(|length| room.get(..length / size));
            let message = || format!("{length} is not a length that the driver can mean");
            units.map(Value::Here).ok_or_else(|| Fault::data(row, message()))
        })
    }

    /// The values of as many parts.
    fn parts<const N: usize>(&self, units: &[u16]) -> impl ExactSizeIterator<Item = Option<[u16; N]>> {
        let (rooms, _) = units.as_chunks::<N>();
        self.told.iter().zip(rooms).map(|(length, room)| (*length != NULL).then_some(*room))
    }
}
