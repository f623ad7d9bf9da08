//! A column's values as they come, in the form that their storage class has in Arrow.
//!
//! A store holds only what it can give back exactly. At the first other value it goes over to tagged values, which
//! hold everything; see `docs/design/sqlite.md`.

use std::sync::Arc;

use arrow_array::builder::NullBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float64Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Date32Array, Float64Array, Int64Array, LargeBinaryArray, StringArray,
    Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, TimeUnit};
use longshore_cells::{CellFault, Validity};
use longshore_core::Kind;
use longshore_core::memory::{NoRoom, make_room};

use crate::cell::{Cell, exact_double};
use crate::datetime;
use crate::types::Class;

/// The values of one column over the rows of one batch.
pub(crate) struct ColumnBuffer {
    class: Class,
    values: Values,
    validity: Validity,
    rows: usize,
    /// Rows that `validity` knows of: it is told of values only before a NULL.
    told: usize,
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

/// Offsets of Arrow.
trait Offset: Copy {
    fn at(length: usize) -> Self;
}

impl Offset for i32 {
    #[inline]
    fn at(length: usize) -> Self {
        // A batch is closed long before: see `Collector`.
        Self::try_from(length).unwrap_or(Self::MAX)
    }
}

impl Offset for i64 {
    #[inline]
    fn at(length: usize) -> Self {
        Self::try_from(length).unwrap_or(Self::MAX)
    }
}

impl<O: Offset> Bytes<O> {
    fn new() -> Self {
        Self { values: Vec::new(), offsets: vec![O::at(0)] }
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) -> Result<(), NoRoom> {
        make_room(&mut self.values, bytes.len())?;
        self.values.extend_from_slice(bytes);
        self.end();
        Ok(())
    }

    #[inline]
    fn end(&mut self) {
        self.offsets.push(O::at(self.values.len()));
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

    fn tagged() -> Self {
        Self::Tagged(Bytes::new())
    }

    /// The next batch of the same column most likely has the same form.
    fn like(&self, class: Class) -> Self {
        match self {
            Self::Integers(_) => Self::Integers(Vec::new()),
            Self::Reals(_) => Self::Reals(Vec::new()),
            Self::Texts(_) => Self::Texts(Bytes::new()),
            Self::Blobs(_) => Self::Blobs(Bytes::new()),
            Self::Tagged(_) => Self::tagged(),
            _ => Self::new(class),
        }
    }
}

impl ColumnBuffer {
    /// An empty store that begins in the form of `class`.
    pub(crate) fn new(class: Class) -> Self {
        Self { class, values: Values::new(class), validity: Validity::default(), rows: 0, told: 0 }
    }

    /// An empty store of tagged values.
    pub(crate) fn tagged() -> Self {
        Self { class: Class::Any, values: Values::tagged(), validity: Validity::default(), rows: 0, told: 0 }
    }

    /// Has the store take `rows` more. The bytes of texts and blobs are asked for with each of them.
    pub(crate) fn make_room(&mut self, rows: usize) -> Result<(), NoRoom> {
        match &mut self.values {
            Values::Nothing => Ok(()),
            Values::Integers(values) | Values::Timestamps(values) | Values::Times(values) => {
                make_room(values, rows)
            }
            Values::Reals(values) | Values::Numbers(values) => make_room(values, rows),
            Values::Dates(values) => make_room(values, rows),
            Values::Texts(values) | Values::Blobs(values) => make_room(&mut values.offsets, rows),
            Values::Tagged(values) => make_room(&mut values.offsets, rows),
        }
    }

    /// Adds a row.
    #[inline]
    pub(crate) fn push(&mut self, cell: Cell<'_>) -> Result<(), NoRoom> {
        let held = match (&mut self.values, cell) {
            (_, Cell::Null) => {
                self.push_null();
                return Ok(());
            }
            (Values::Integers(values), Cell::Integer(value)) => {
                values.push(value);
                true
            }
            (Values::Reals(values), Cell::Real(value)) => {
                values.push(value);
                true
            }
            (Values::Numbers(values), Cell::Real(value)) if !is_whole(value) => {
                values.push(value);
                true
            }
            (Values::Numbers(values), Cell::Integer(value)) => push_some(values, small_double(value)),
            (Values::Texts(texts), Cell::Text(text)) => {
                texts.push(text)?;
                true
            }
            (Values::Blobs(blobs), Cell::Blob(blob)) => {
                blobs.push(blob)?;
                true
            }
            (Values::Dates(values), Cell::Text(text)) => push_some(values, datetime::date(text)),
            (Values::Timestamps(values), Cell::Text(text)) => push_some(values, datetime::timestamp(text)),
            (Values::Times(values), Cell::Text(text)) => push_some(values, datetime::time(text)),
            (Values::Tagged(values), cell) => {
                make_room(&mut values.values, cell.tagged_length())?;
                cell.tag(&mut values.values);
                values.end();
                true
            }
            _ => false,
        };
        if held {
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
        self.validity.all_valid(self.rows - self.told);
        self.validity.push(false);
        self.rows += 1;
        self.told = self.rows;
    }

    /// Which rows hold a value.
    fn nulls(&mut self) -> Option<NullBuffer> {
        self.validity.all_valid(self.rows - self.told);
        self.told = self.rows;
        self.validity.finish()
    }

    /// Adds a value that the form does not hold.
    #[cold]
    fn push_other(&mut self, cell: Cell<'_>) -> Result<(), NoRoom> {
        let class = self.class;
        let before = std::mem::replace(self, Self::tagged());
        self.class = class;
        if matches!(before.values, Values::Nothing) {
            self.values = match cell {
                Cell::Integer(_) => Values::Integers(Vec::new()),
                Cell::Real(_) => Values::Reals(Vec::new()),
                Cell::Text(_) => Values::Texts(Bytes::new()),
                Cell::Null | Cell::Blob(_) => Values::Blobs(Bytes::new()),
            };
            (0..before.rows).for_each(|_| self.push_null());
        } else {
            self.take_in(before)?;
        }
        self.push(cell)
    }

    /// Tags what `before` holds.
    fn take_in(&mut self, mut before: Self) -> Result<(), NoRoom> {
        let is_text = matches!(before.values, Values::Texts(_));
        if !is_text && !matches!(before.values, Values::Blobs(_)) {
            return try_walk(&before.raw_array(), self.class, |_, cell| self.push(cell));
        }
        let nulls = before.nulls();
        let (Values::Texts(bytes) | Values::Blobs(bytes)) = &before.values else { return Ok(()) };
        let at = |index: usize| usize::try_from(bytes.offsets[index]).unwrap_or_default();
        for row in 0..before.rows {
            let value = &bytes.values[at(row)..at(row + 1)];
            let cell = if is_text { Cell::Text(value) } else { Cell::Blob(value) };
            let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
            self.push(if is_null { Cell::Null } else { cell })?;
        }
        Ok(())
    }

    /// The values since the last call, which are now forgotten. A fault is text that is not UTF-8.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef, CellFault> {
        let array = match &self.values {
            Values::Texts(_) => self.texts()?,
            _ => self.raw_array(),
        };
        (self.rows, self.told) = (0, 0);
        Ok(array)
    }

    fn texts(&mut self) -> Result<ArrayRef, CellFault> {
        let next = self.values.like(self.class);
        let Values::Texts(Bytes { values, offsets }) = std::mem::replace(&mut self.values, next) else {
            return Ok(self.raw_array());
        };
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let (values, nulls) = (Buffer::from_vec(values), self.nulls());
        // Checks the text: all at once, and then that no character is shared between cells.
        match StringArray::try_new(offsets.clone(), values.clone(), nulls) {
            Ok(array) => Ok(Arc::new(array)),
            Err(_) => Err(not_utf8(bad_text(&offsets, &values))),
        }
    }

    /// The values, where they are no texts.
    fn raw_array(&mut self) -> ArrayRef {
        let next = self.values.like(self.class);
        let values = std::mem::replace(&mut self.values, next);
        let nulls = self.nulls();
        match values {
            Values::Nothing => {
                let mut builder = NullBuilder::new();
                builder.append_nulls(self.rows);
                Arc::new(builder.finish())
            }
            Values::Integers(values) => Arc::new(Int64Array::new(shrunk(values), nulls)),
            Values::Reals(values) | Values::Numbers(values) => {
                Arc::new(Float64Array::new(shrunk(values), nulls))
            }
            Values::Dates(values) => Arc::new(Date32Array::new(shrunk(values), nulls)),
            Values::Timestamps(values) => Arc::new(TimestampMicrosecondArray::new(shrunk(values), nulls)),
            Values::Times(values) => Arc::new(Time64MicrosecondArray::new(shrunk(values), nulls)),
            // `finish` has taken the texts.
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

#[inline]
fn push_some<T>(values: &mut Vec<T>, value: Option<T>) -> bool {
    match value {
        Some(value) => {
            values.push(value);
            true
        }
        None => false,
    }
}

/// Integers up to here are kept as doubles beside reals; reals up to here that are whole are kept apart.
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
fn small_double(value: i64) -> Option<f64> {
    if value.unsigned_abs() <= 1 << 53 { exact_double(value) } else { None }
}

/// The first row whose text is not UTF-8.
fn bad_text(offsets: &OffsetBuffer<i32>, values: &Buffer) -> usize {
    let at = |index: usize| usize::try_from(offsets[index]).unwrap_or_default();
    let is_bad = |row: &usize| std::str::from_utf8(&values[at(*row)..at(row + 1)]).is_err();
    (0..offsets.len() - 1).find(is_bad).unwrap_or_default()
}

#[cold]
pub(crate) fn not_utf8(row: usize) -> CellFault {
    CellFault {
        row,
        what: "the TEXT is not valid UTF-8".into(),
        hint: Some(
            "read its bytes: schema={\"<column>\": \"binary\"}, or CAST(\"<column>\" AS BLOB) in the query"
                .into(),
        ),
        kind: Kind::Data,
    }
}

/// Calls `visit` with each row of what a store of `class` has given, as the value that was put in.
pub(crate) fn walk(array: &ArrayRef, class: Class, mut visit: impl FnMut(usize, Cell<'_>)) {
    let done = try_walk(array, class, |row, cell| {
        visit(row, cell);
        Ok::<_, std::convert::Infallible>(())
    });
    match done {
        Ok(()) => {}
    }
}

/// The same, until `visit` fails.
pub(crate) fn try_walk<E>(
    array: &ArrayRef,
    class: Class,
    mut visit: impl FnMut(usize, Cell<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let is_number = matches!(class, Class::Fraction | Class::Number);
    for row in 0..array.len() {
        if array.is_null(row) {
            visit(row, Cell::Null)?;
            continue;
        }
        match array.data_type() {
            DataType::Int64 => visit(row, Cell::Integer(array.as_primitive::<Int64Type>().value(row)))?,
            DataType::Float64 => {
                let value = array.as_primitive::<Float64Type>().value(row);
                #[allow(clippy::cast_possible_truncation)] // whole, and below 2^53
                let cell = if is_number && is_whole(value) {
                    Cell::Integer(value as i64)
                } else {
                    Cell::Real(value)
                };
                visit(row, cell)?;
            }
            DataType::Utf8 => visit(row, Cell::Text(array.as_string::<i32>().value(row).as_bytes()))?,
            DataType::Binary => visit(row, Cell::Blob(array.as_binary::<i32>().value(row)))?,
            DataType::Date32 => {
                let text = datetime::date_text(array.as_primitive::<Date32Type>().value(row));
                visit(row, Cell::Text(text.as_bytes()))?;
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                let text =
                    datetime::timestamp_text(array.as_primitive::<TimestampMicrosecondType>().value(row));
                visit(row, Cell::Text(text.as_bytes()))?;
            }
            DataType::Time64(_) => {
                let text = datetime::time_text(array.as_primitive::<Time64MicrosecondType>().value(row));
                visit(row, Cell::Text(text.as_bytes()))?;
            }
            DataType::LargeBinary => visit(row, Cell::untagged(array.as_binary::<i64>().value(row)))?,
            // Nothing but NULLs.
            _ => visit(row, Cell::Null)?,
        }
    }
    Ok(())
}
