//! From the form in which a column's values were buffered to the type that the column has.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, BooleanBuilder, Float64Builder, Int64Builder, PrimitiveBuilder,
    StringBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Decimal256Type, Float64Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, UInt64Type,
};
use arrow_array::{Array, ArrayRef, UnionArray, new_null_array};
use arrow_schema::{ArrowError, DataType, Field, UnionFields, UnionMode};
use longshore_core::memory::check_available;
use longshore_core::{Kind, Unrepresentable};
use longshore_values::calendar::{self, DAY, Temporal};
use longshore_values::decimal::text_double;
use longshore_values::{CellFault, Losses};

use super::buffer::{not_utf8, try_for_each};
use crate::cell::{Cell, exact_double};
use crate::datetime;
use crate::types::Class;

/// `array`, as a buffer of `class` gave it, as `to`. A fault names the first value that `to` does not hold as it is.
pub(crate) fn convert(
    array: &ArrayRef,
    class: Class,
    to: &DataType,
    losses: &mut Losses,
) -> Result<ArrayRef, CellFault> {
    if array.data_type() == to {
        return Ok(array.clone());
    }
    if array.null_count() == array.len() {
        return Ok(new_null_array(to, array.len()));
    }
    check_available(2 * array.get_array_memory_size())?;
    let decimal = class.decimal().filter(|_| *to == class.arrow());
    match (to, decimal) {
        (DataType::Decimal128(..), Some(decimal)) => {
            primitive::<Decimal128Type>(array, class, to, |cell| decimal.text(cell.text_bytes()?).ok())
        }
        (DataType::Decimal256(..), Some(decimal)) => {
            primitive::<Decimal256Type>(array, class, to, |cell| decimal.text(cell.text_bytes()?).ok())
        }
        (DataType::Float64, Some(_)) => primitive::<Float64Type>(array, class, to, |cell| {
            // Whether it is a decimal of the class is asked of its text, not of the double.
            let text = cell.text_bytes().filter(|text| class.holds_decimal(text))?;
            text_double(text, Unrepresentable::Error, losses).ok()
        }),
        (DataType::Int64, _) => primitive::<Int64Type>(array, class, to, integer),
        (DataType::UInt64, _) => {
            primitive::<UInt64Type>(array, class, to, |cell| cell.integer()?.try_into().ok())
        }
        (DataType::Float64, _) => primitive::<Float64Type>(array, class, to, real),
        (DataType::Date32, _) => primitive::<Date32Type>(array, class, to, date),
        // A text without a zone is UTC to SQLite's functions.
        (DataType::Timestamp(_, zone), _) if matches!(array.data_type(), DataType::Timestamp(..)) => {
            Ok(Arc::new(
                array.as_primitive::<TimestampMicrosecondType>().clone().with_timezone_opt(zone.clone()),
            ))
        }
        (DataType::Timestamp(_, zone), _) => {
            primitive::<TimestampMicrosecondType>(array, class, to, |cell| timestamp(cell, zone.is_some()))
        }
        (DataType::Time64(_), _) => primitive::<Time64MicrosecondType>(array, class, to, time),
        (DataType::Boolean, _) => {
            build(array, class, BooleanBuilder::with_capacity(array.len()), |builder, row, cell| {
                builder.append_option(match cell {
                    Cell::Null => None,
                    Cell::Integer(value @ 0..=1) => Some(value == 1),
                    _ => return Err(misfit(row, cell, to)),
                });
                Ok(())
            })
        }
        (DataType::Binary, _) => build(array, class, BinaryBuilder::new(), |builder, row, cell| {
            builder.append_option(match cell {
                Cell::Null => None,
                Cell::Blob(bytes) => Some(bytes),
                _ => return Err(misfit(row, cell, to)),
            });
            Ok(())
        }),
        (DataType::Union(fields, _), _) => each_its_own(array, class, fields),
        // Texts as they are, and numbers as they print.
        _ => build(array, class, StringBuilder::new(), |builder, row, cell| {
            match cell {
                Cell::Null => builder.append_null(),
                Cell::Blob(_) => return Err(misfit(row, cell, &DataType::Utf8)),
                _ => builder.append_value(std::str::from_utf8(&cell.text()).map_err(|_| not_utf8(row))?),
            }
            Ok(())
        }),
    }
}

/// The type of values of which each keeps its storage class.
pub(super) fn own_values() -> DataType {
    let classes = [DataType::Int64, DataType::Float64, DataType::Utf8, DataType::Binary];
    let field = |class: DataType| Arc::new(Field::new(class.to_string(), class, true));
    DataType::Union(UnionFields::from_fields(classes.map(field)), UnionMode::Dense)
}

/// Every value of `array` in its own storage class.
fn each_its_own(array: &ArrayRef, class: Class, fields: &UnionFields) -> Result<ArrayRef, CellFault> {
    let mut integers = Int64Builder::new();
    let (mut reals, mut texts, mut blobs) =
        (Float64Builder::new(), StringBuilder::new(), BinaryBuilder::new());
    let (mut numbers, mut offsets) = (Vec::new(), Vec::new());
    try_for_each::<CellFault>(array, class, |row, cell| {
        let (number, offset) = match cell {
            Cell::Null | Cell::Integer(_) => (0, integers.len()),
            Cell::Real(_) => (1, reals.len()),
            Cell::Text(_) => (2, texts.len()),
            Cell::Blob(_) => (3, blobs.len()),
        };
        numbers.push(number);
        offsets.push(i32::try_from(offset).map_err(|_| misfit(row, cell, &own_values()))?);
        match cell {
            Cell::Null => integers.append_null(),
            Cell::Integer(value) => integers.append_value(value),
            Cell::Real(value) => reals.append_value(value),
            Cell::Text(text) => texts.append_value(std::str::from_utf8(text).map_err(|_| not_utf8(row))?),
            Cell::Blob(bytes) => blobs.append_value(bytes),
        }
        Ok(())
    })?;
    let values: Vec<ArrayRef> = vec![
        Arc::new(integers.finish()),
        Arc::new(reals.finish()),
        Arc::new(texts.finish()),
        Arc::new(blobs.finish()),
    ];
    let union = UnionArray::try_new(fields.clone(), numbers.into(), Some(offsets.into()), values);
    let internal = |error: ArrowError| CellFault {
        row: 0,
        what: error.to_string().into(),
        hint: None,
        kind: Kind::Internal,
    };
    Ok(Arc::new(union.map_err(internal)?))
}

/// Every value of `array`, as `append` appends it to `builder`.
fn build<B: ArrayBuilder>(
    array: &ArrayRef,
    class: Class,
    mut builder: B,
    mut append: impl FnMut(&mut B, usize, Cell<'_>) -> Result<(), CellFault>,
) -> Result<ArrayRef, CellFault> {
    try_for_each(array, class, |row, cell| append(&mut builder, row, cell))?;
    Ok(builder.finish())
}

fn primitive<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    class: Class,
    to: &DataType,
    mut read: impl FnMut(Cell<'_>) -> Option<T::Native>,
) -> Result<ArrayRef, CellFault> {
    let builder = PrimitiveBuilder::<T>::with_capacity(array.len()).with_data_type(to.clone());
    build(array, class, builder, |builder, row, cell| {
        match cell {
            Cell::Null => builder.append_null(),
            _ => builder.append_value(read(cell).ok_or_else(|| misfit(row, cell, to))?),
        }
        Ok(())
    })
}

fn integer(cell: Cell<'_>) -> Option<i64> {
    cell.integer()
}

fn real(cell: Cell<'_>) -> Option<f64> {
    match cell {
        Cell::Real(value) => Some(value),
        Cell::Integer(value) => exact_double(value),
        _ => None,
    }
}

/// The date or time of a cell: a number is one of SQLite's Unix seconds or Julian days, and has no zone.
pub(super) fn temporal(cell: Cell<'_>) -> Option<Temporal> {
    match cell {
        Cell::Text(text) => calendar::parse(text),
        Cell::Integer(value) => datetime::unix(value).map(Temporal::Timestamp),
        Cell::Real(value) => datetime::julian(value).map(Temporal::Timestamp),
        Cell::Null | Cell::Blob(_) => None,
    }
}

/// Days since 1970 of a text that is a date, or of a number that is midnight.
fn date(cell: Cell<'_>) -> Option<i32> {
    match temporal(cell)? {
        Temporal::Timestamp(_) if matches!(cell, Cell::Text(_)) => None,
        value => midnight(value),
    }
}

/// Days since 1970 of a date or of a timestamp at midnight.
pub(super) fn midnight(value: Temporal) -> Option<i32> {
    match value {
        Temporal::Date(days) => Some(days),
        Temporal::Timestamp(at) if at % DAY == 0 => i32::try_from(at / DAY).ok(),
        _ => None,
    }
}

/// Microseconds since 1970; `has_zone` where the column's timestamps have a time zone.
pub(super) fn timestamp(cell: Cell<'_>, has_zone: bool) -> Option<i64> {
    match temporal(cell)? {
        Temporal::Date(days) => Some(i64::from(days) * DAY),
        Temporal::Timestamp(at) => Some(at),
        Temporal::TimestampTz(at) => has_zone.then_some(at),
        Temporal::Time(_) => None,
    }
}

/// Microseconds since midnight.
pub(super) fn time(cell: Cell<'_>) -> Option<i64> {
    match temporal(cell)? {
        Temporal::Time(at) => Some(at),
        _ => None,
    }
}

#[cold]
fn misfit(row: usize, cell: Cell<'_>, to: &DataType) -> CellFault {
    CellFault::with_hint(
        row,
        format!("{} does not fit {to}", cell.show()),
        "give the column a type that holds all its values, such as schema={\"<column>\": \"string\"}",
    )
}
