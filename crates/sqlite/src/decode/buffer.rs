//! A column's values as they come, in the form that their storage class has in Arrow.
//!
//! A buffer holds only what it can give back exactly. At the first other value it goes over to tagged values, which
//! hold everything; see `docs/design/sqlite.md`.

use std::convert::Infallible;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float64Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Date32Array, Float64Array, Int64Array, LargeBinaryArray, NullArray,
    OffsetSizeTrait, StringArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, TimeUnit};
use longshore_core::memory::{OutOfMemory, try_reserve};
use longshore_values::{CellFault, Validity, calendar};

use crate::cell::Cell;
use crate::datetime;
use crate::types::Class;

/// The values of one column over the rows of one batch.
pub(crate) struct ColumnBuffer {
    class: Class,
    values: Values,
    validity: Validity,
    rows: usize,
    /// Rows that `validity` has: values are added only before a NULL.
    validated: usize,
}

enum Values {
    /// Nothing but NULLs, and no class that says more.
    Nothing,
    Integers(Vec<i64>),
    Reals(Vec<f64>),
    /// Reals, and integers that are exact as such: no real in it is a whole number that an integer could be.
    Numbers(Vec<f64>),
    Texts(Bytes<i32>),
    Blobs(Bytes<i32>),
    Dates(Vec<i32>),
    Timestamps(Vec<i64>),
    Times(Vec<i64>),
    Tagged(Bytes<i64>),
}

/// Values of various lengths, end to end.
struct Bytes<O> {
    values: Vec<u8>,
    offsets: Vec<O>,
}

impl<O: OffsetSizeTrait> Bytes<O> {
    fn new() -> Self {
        Self { values: Vec::new(), offsets: vec![O::default()] }
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) -> Result<(), OutOfMemory> {
        try_reserve(&mut self.values, bytes.len())?;
        self.values.extend_from_slice(bytes);
        self.end();
        Ok(())
    }

    #[inline]
    fn end(&mut self) {
        // A batch is closed long before its bytes are more than an offset counts: see `Collector`.
        self.offsets.push(O::usize_as(self.values.len()));
    }
}

impl Values {
    fn new(class: Class) -> Self {
        match class {
            Class::Int | Class::UInt | Class::Bool => Self::Integers(Vec::new()),
            Class::Float => Self::Reals(Vec::new()),
            Class::Fraction | Class::Number => Self::Numbers(Vec::new()),
            Class::Text | Class::Decimal(..) | Class::Rounded(..) => Self::Texts(Bytes::new()),
            Class::Blob => Self::Blobs(Bytes::new()),
            Class::Date => Self::Dates(Vec::new()),
            Class::Timestamp | Class::TimestampTz => Self::Timestamps(Vec::new()),
            Class::Time => Self::Times(Vec::new()),
            Class::Any => Self::Nothing,
        }
    }

    /// The next batch of the same column most likely has the same form.
    fn like(&self, class: Class) -> Self {
        match self {
            Self::Integers(_) => Self::Integers(Vec::new()),
            Self::Reals(_) => Self::Reals(Vec::new()),
            Self::Texts(_) => Self::Texts(Bytes::new()),
            Self::Blobs(_) => Self::Blobs(Bytes::new()),
            Self::Tagged(_) => Self::Tagged(Bytes::new()),
            _ => Self::new(class),
        }
    }
}

impl ColumnBuffer {
    /// An empty buffer that begins in the form of `class`.
    pub(crate) fn new(class: Class) -> Self {
        Self { class, values: Values::new(class), validity: Validity::default(), rows: 0, validated: 0 }
    }

    /// An empty buffer of tagged values.
    pub(crate) fn new_tagged() -> Self {
        Self { values: Values::Tagged(Bytes::new()), ..Self::new(Class::Any) }
    }

    /// Has the buffer take `rows` more. The bytes of texts and blobs are asked for with each of them.
    pub(crate) fn try_reserve(&mut self, rows: usize) -> Result<(), OutOfMemory> {
        match &mut self.values {
            Values::Nothing => Ok(()),
            Values::Integers(values) | Values::Timestamps(values) | Values::Times(values) => {
                try_reserve(values, rows)
            }
            Values::Reals(values) | Values::Numbers(values) => try_reserve(values, rows),
            Values::Dates(values) => try_reserve(values, rows),
            Values::Texts(values) | Values::Blobs(values) => try_reserve(&mut values.offsets, rows),
            Values::Tagged(values) => try_reserve(&mut values.offsets, rows),
        }
    }

    /// Adds a row.
    #[inline]
    pub(crate) fn push(&mut self, cell: Cell<'_>) -> Result<(), OutOfMemory> {
        let is_held = match (&mut self.values, cell) {
            (_, Cell::Null) => {
                self.push_null();
                return Ok(());
            }
            (Values::Integers(values), Cell::Integer(value)) => push_some(values, Some(value)),
            (Values::Reals(values), Cell::Real(value)) => push_some(values, Some(value)),
            (Values::Numbers(values), Cell::Real(value)) => {
                push_some(values, (!is_whole(value)).then_some(value))
            }
            (Values::Numbers(values), Cell::Integer(value)) => push_some(values, small_double(value)),
            (Values::Texts(bytes), Cell::Text(value)) | (Values::Blobs(bytes), Cell::Blob(value)) => {
                bytes.push(value)?;
                true
            }
            (Values::Dates(values), Cell::Text(text)) => push_some(values, calendar::date(text)),
            (Values::Timestamps(values), Cell::Text(text)) => push_some(values, calendar::timestamp(text)),
            (Values::Times(values), Cell::Text(text)) => push_some(values, calendar::time(text)),
            (Values::Tagged(values), cell) => {
                try_reserve(&mut values.values, cell.tagged_length())?;
                cell.tag(&mut values.values);
                values.end();
                true
            }
            _ => false,
        };
        if is_held {
            self.rows += 1;
            return Ok(());
        }
        self.push_other(cell)
    }

    fn push_null(&mut self) {
        match &mut self.values {
            Values::Nothing => {}
            Values::Integers(values) | Values::Timestamps(values) | Values::Times(values) => values.push(0),
            Values::Reals(values) | Values::Numbers(values) => values.push(0.0),
            Values::Dates(values) => values.push(0),
            Values::Texts(values) | Values::Blobs(values) => values.end(),
            Values::Tagged(values) => values.end(),
        }
        self.validity.all_valid(self.rows - self.validated);
        self.validity.push(false);
        self.rows += 1;
        self.validated = self.rows;
    }

    /// Adds a value that the form does not hold.
    #[cold]
    fn push_other(&mut self, cell: Cell<'_>) -> Result<(), OutOfMemory> {
        let mut before = std::mem::replace(self, Self { class: self.class, ..Self::new_tagged() });
        if matches!(before.values, Values::Nothing) {
            self.values = match cell {
                Cell::Integer(_) => Values::Integers(Vec::new()),
                Cell::Real(_) => Values::Reals(Vec::new()),
                Cell::Text(_) => Values::Texts(Bytes::new()),
                Cell::Null | Cell::Blob(_) => Values::Blobs(Bytes::new()),
            };
            (0..before.rows).for_each(|_| self.push_null());
        } else {
            let is_text = matches!(before.values, Values::Texts(_));
            try_for_each(&before.take_unchecked(), self.class, |_, cell| match cell {
                Cell::Blob(text) if is_text => self.push(Cell::Text(text)),
                cell => self.push(cell),
            })?;
        }
        self.push(cell)
    }

    /// The values since the last call, which are now forgotten. A fault is text that is not UTF-8.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef, CellFault> {
        let is_text = matches!(self.values, Values::Texts(_));
        let array = self.take_unchecked();
        (self.rows, self.validated) = (0, 0);
        if !is_text {
            return Ok(array);
        }
        let bytes = array.as_binary::<i32>();
        let is_bad = |row: &usize| std::str::from_utf8(bytes.value(*row)).is_err();
        // Checks the text: all at once, and then that no character is shared between cells.
        match StringArray::try_from_binary(bytes.clone()) {
            Ok(array) => Ok(Arc::new(array)),
            Err(_) => Err(not_utf8((0..bytes.len()).find(is_bad).unwrap_or_default())),
        }
    }

    /// The values, texts as their bytes.
    fn take_unchecked(&mut self) -> ArrayRef {
        let next = self.values.like(self.class);
        self.validity.all_valid(self.rows - self.validated);
        self.validated = self.rows;
        let nulls = self.validity.finish();
        match std::mem::replace(&mut self.values, next) {
            Values::Nothing => Arc::new(NullArray::new(self.rows)),
            Values::Integers(values) => Arc::new(Int64Array::new(shrunk(values), nulls)),
            Values::Reals(values) | Values::Numbers(values) => {
                Arc::new(Float64Array::new(shrunk(values), nulls))
            }
            Values::Dates(values) => Arc::new(Date32Array::new(shrunk(values), nulls)),
            Values::Timestamps(values) => Arc::new(TimestampMicrosecondArray::new(shrunk(values), nulls)),
            Values::Times(values) => Arc::new(Time64MicrosecondArray::new(shrunk(values), nulls)),
            Values::Texts(bytes) | Values::Blobs(bytes) => {
                let offsets = OffsetBuffer::new(shrunk(bytes.offsets));
                Arc::new(BinaryArray::new(offsets, Buffer::from_vec(bytes.values), nulls))
            }
            Values::Tagged(bytes) => {
                let offsets = OffsetBuffer::new(shrunk(bytes.offsets));
                Arc::new(LargeBinaryArray::new(offsets, Buffer::from_vec(bytes.values), nulls))
            }
        }
    }
}

fn shrunk<T: arrow_buffer::ArrowNativeType>(mut values: Vec<T>) -> ScalarBuffer<T> {
    values.shrink_to_fit();
    ScalarBuffer::from(values)
}

/// Whether there is a value, which is pushed.
#[inline]
fn push_some<T>(values: &mut Vec<T>, value: Option<T>) -> bool {
    let Some(value) = value else { return false };
    values.push(value);
    true
}

/// Integers up to here are kept as doubles next to reals; reals up to here that are whole are kept apart.
const WHOLE: f64 = 9_007_199_254_740_992.0;

/// Whether a real could be taken for an integer. (SQLite keeps such reals of a numeric column as integers, but for
/// minus zero.)
#[inline]
fn is_whole(value: f64) -> bool {
    // Within 2^53 nothing but a fraction is lost on the way and back.
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::float_cmp)]
    let comes_back = value as i64 as f64 == value;
    value.abs() <= WHOLE && comes_back
}

#[inline]
#[allow(clippy::cast_precision_loss)] // none up to there
fn small_double(value: i64) -> Option<f64> {
    (value.unsigned_abs() <= 1 << 53).then_some(value as f64)
}

#[cold]
pub(crate) fn not_utf8(row: usize) -> CellFault {
    CellFault::with_hint(
        row,
        "the TEXT is not valid UTF-8",
        "read its bytes: schema={\"<column>\": \"binary\"}, or CAST(\"<column>\" AS BLOB) in the query",
    )
}

/// Calls `visit` with each row of what a buffer of `class` has given, as the value that was put in.
pub(crate) fn for_each(array: &ArrayRef, class: Class, mut visit: impl FnMut(usize, Cell<'_>)) {
    let Ok(()) = try_for_each::<Infallible>(array, class, |row, cell| {
        visit(row, cell);
        Ok(())
    });
}

/// The same, until `visit` fails.
pub(crate) fn try_for_each<E>(
    array: &ArrayRef,
    class: Class,
    mut visit: impl FnMut(usize, Cell<'_>) -> Result<(), E>,
) -> Result<(), E> {
    for row in 0..array.len() {
        if array.is_null(row) {
            visit(row, Cell::Null)?;
            continue;
        }
        let text;
        let cell = match array.data_type() {
            DataType::Int64 => Cell::Integer(array.as_primitive::<Int64Type>().value(row)),
            DataType::Float64 => {
                let value = array.as_primitive::<Float64Type>().value(row);
                #[allow(clippy::cast_possible_truncation)] // whole, and below 2^53
                if class.is_number() && is_whole(value) {
                    Cell::Integer(value as i64)
                } else {
                    Cell::Real(value)
                }
            }
            DataType::Utf8 => Cell::Text(array.as_string::<i32>().value(row).as_bytes()),
            DataType::Binary => Cell::Blob(array.as_binary::<i32>().value(row)),
            DataType::LargeBinary => Cell::from_tagged(array.as_binary::<i64>().value(row)),
            // What is buffered as a date or a timestamp has been read from its text.
            DataType::Date32 => {
                text = datetime::date_text(array.as_primitive::<Date32Type>().value(row)).unwrap_or_default();
                Cell::Text(text.as_bytes())
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                text = datetime::timestamp_text(array.as_primitive::<TimestampMicrosecondType>().value(row))
                    .unwrap_or_default();
                Cell::Text(text.as_bytes())
            }
            DataType::Time64(_) => {
                text = datetime::time_text(array.as_primitive::<Time64MicrosecondType>().value(row));
                Cell::Text(text.as_bytes())
            }
            // Nothing but NULLs.
            _ => Cell::Null,
        };
        visit(row, cell)?;
    }
    Ok(())
}
