//! From the form in which a store keeps a column to the type that it becomes.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, BooleanBuilder, PrimitiveBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Float64Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, TimestampMicrosecondArray, UInt64Array, new_null_array};
use arrow_schema::DataType;
use longshore_cells::calendar::DAY;
use longshore_cells::{CellFault, Losses};
use longshore_core::Kind;
use longshore_core::memory::room_for;

use crate::cell::{Cell, exact_double};
use crate::datetime::{self, Temporal};
use crate::decode::buffer::{not_utf8, try_walk};
use crate::decode::decimals;
use crate::types::Class;

/// `array`, which a store of `class` gave, as `to`. A fault names the first value that `to` does not hold as it is.
pub(crate) fn convert(
    array: ArrayRef,
    class: Class,
    to: &DataType,
    losses: &mut Losses,
) -> Result<ArrayRef, CellFault> {
    if array.data_type() == to {
        return Ok(array);
    }
    if array.null_count() == array.len() {
        return Ok(new_null_array(to, array.len()));
    }
    room_for(2 * array.get_array_memory_size())?;
    match (array.data_type(), to) {
        (DataType::Timestamp(..), DataType::Timestamp(..)) => return Ok(with_zone(&array, to)),
        (DataType::Int64, DataType::UInt64) => {
            if let Some(unsigned) = unsigned(&array) {
                return Ok(unsigned);
            }
        }
        _ => {}
    }
    if decimals::is_decimal(class) && to == &class.arrow() {
        return decimals::convert(&array, class, losses);
    }
    match to {
        DataType::Int64 => primitive::<Int64Type>(&array, class, to, integer),
        DataType::UInt64 => primitive::<UInt64Type>(&array, class, to, |cell| {
            integer(cell).and_then(|value| value.try_into().ok())
        }),
        DataType::Float64 => primitive::<Float64Type>(&array, class, to, real),
        DataType::Date32 => primitive::<Date32Type>(&array, class, to, day),
        DataType::Timestamp(_, zone) => {
            let is_instant = zone.is_some();
            primitive::<TimestampMicrosecondType>(&array, class, to, |cell| timestamp(cell, is_instant))
        }
        DataType::Time64(_) => primitive::<Time64MicrosecondType>(&array, class, to, time),
        DataType::Boolean => booleans(&array, class, to),
        DataType::Binary => blobs(&array, class, to),
        _ => texts(&array, class),
    }
}

/// The same moments, under the zone of `to`: a text without one is UTC to SQLite's functions.
fn with_zone(array: &ArrayRef, to: &DataType) -> ArrayRef {
    let DataType::Timestamp(_, zone) = to else { return array.clone() };
    let moments: &TimestampMicrosecondArray = array.as_primitive();
    Arc::new(moments.clone().with_timezone_opt(zone.clone()))
}

/// The same memory, where nothing is negative.
fn unsigned(array: &ArrayRef) -> Option<ArrayRef> {
    let values = array.as_primitive::<Int64Type>();
    let is_negative = values.values().iter().any(|value| *value < 0);
    (!is_negative).then(|| {
        let same = values.values().inner().clone().into();
        Arc::new(UInt64Array::new(same, values.nulls().cloned())) as ArrayRef
    })
}

fn primitive<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    class: Class,
    to: &DataType,
    mut read: impl FnMut(Cell<'_>) -> Option<T::Native>,
) -> Result<ArrayRef, CellFault> {
    let mut builder = PrimitiveBuilder::<T>::with_capacity(array.len());
    try_walk(array, class, |row, cell| {
        match cell {
            Cell::Null => builder.append_null(),
            _ => builder.append_value(read(cell).ok_or_else(|| misfit(row, cell, to))?),
        }
        Ok::<_, CellFault>(())
    })?;
    Ok(Arc::new(builder.finish().with_data_type(to.clone())))
}

fn booleans(array: &ArrayRef, class: Class, to: &DataType) -> Result<ArrayRef, CellFault> {
    let mut builder = BooleanBuilder::with_capacity(array.len());
    try_walk(array, class, |row, cell| {
        match cell {
            Cell::Null => builder.append_null(),
            Cell::Integer(value @ 0..=1) => builder.append_value(value == 1),
            _ => return Err(misfit(row, cell, to)),
        }
        Ok::<_, CellFault>(())
    })?;
    Ok(Arc::new(builder.finish()))
}

fn blobs(array: &ArrayRef, class: Class, to: &DataType) -> Result<ArrayRef, CellFault> {
    let mut builder = BinaryBuilder::new();
    try_walk(array, class, |row, cell| {
        match cell {
            Cell::Null => builder.append_null(),
            Cell::Blob(bytes) => builder.append_value(bytes),
            _ => return Err(misfit(row, cell, to)),
        }
        Ok::<_, CellFault>(())
    })?;
    Ok(Arc::new(builder.finish()))
}

/// Texts as they are, and numbers as they print.
fn texts(array: &ArrayRef, class: Class) -> Result<ArrayRef, CellFault> {
    let mut builder = StringBuilder::new();
    try_walk(array, class, |row, cell| {
        match cell {
            Cell::Null => builder.append_null(),
            Cell::Blob(_) => return Err(misfit(row, cell, &DataType::Utf8)),
            _ => builder.append_value(std::str::from_utf8(&cell.text()).map_err(|_| not_utf8(row))?),
        }
        Ok::<_, CellFault>(())
    })?;
    Ok(Arc::new(builder.finish()))
}

fn integer(cell: Cell<'_>) -> Option<i64> {
    if let Cell::Integer(value) = cell { Some(value) } else { None }
}

fn real(cell: Cell<'_>) -> Option<f64> {
    match cell {
        Cell::Real(value) => Some(value),
        Cell::Integer(value) => exact_double(value),
        _ => None,
    }
}

/// Microseconds since 1970 of a number in a column of moments.
fn counted(cell: Cell<'_>) -> Option<i64> {
    match cell {
        Cell::Integer(value) => datetime::unix(value),
        Cell::Real(value) => datetime::julian(value),
        _ => None,
    }
}

/// Days since 1970 of a value that is midnight.
pub(crate) fn day(cell: Cell<'_>) -> Option<i32> {
    match cell {
        Cell::Text(text) => datetime::date(text),
        _ => counted(cell).filter(|at| at % DAY == 0).and_then(|at| i32::try_from(at / DAY).ok()),
    }
}

/// Microseconds since 1970, of an instant or without a zone.
pub(crate) fn timestamp(cell: Cell<'_>, is_instant: bool) -> Option<i64> {
    let Cell::Text(text) = cell else { return counted(cell) };
    match datetime::parse(text)? {
        Temporal::Date(days) => Some(i64::from(days) * DAY),
        Temporal::Timestamp(at) => Some(at),
        Temporal::TimestampTz(at) if is_instant => Some(at),
        Temporal::TimestampTz(_) | Temporal::Time(_) => None,
    }
}

/// Microseconds since midnight.
pub(crate) fn time(cell: Cell<'_>) -> Option<i64> {
    let Cell::Text(text) = cell else { return None };
    match datetime::parse(text)? {
        Temporal::Time(at) => Some(at),
        _ => None,
    }
}

#[cold]
fn misfit(row: usize, cell: Cell<'_>, to: &DataType) -> CellFault {
    CellFault {
        row,
        what: format!("{} does not fit {to}", cell.shown()).into(),
        hint: Some(
            "give the column a type that holds all its values, such as schema={\"<column>\": \"string\"}"
                .into(),
        ),
        kind: Kind::Data,
    }
}
