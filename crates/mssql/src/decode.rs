//! Cells -> Arrow columns: the decoder of each column, chosen once.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, LargeUtf8Type, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, Utf8Type,
};
use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array};
use arrow_schema::{DataType, FieldRef, TimeUnit};
use longshore_core::memory::try_reserve;
use longshore_core::{ReadOptions, Result, Unrepresentable};
use longshore_values::decimal::{ALWAYS_BACK, exact_quotient, text_double};
use longshore_values::policies::out_of_range;
use longshore_values::text::{Number, Rendered, not, numbers, utf8, uuid};
use longshore_values::{
    Booleans, CellFault, Cells, Decoder, Derived, Fixed, Losses, Misfit, Primitive, Validity, bytes,
    calendar, fault, large_bytes, large_text, strings, text,
};

use crate::render::{array, date, datetime_offset, decimal, render, ticks, time};
use crate::temporal::{self, DAY};
use crate::text::{Encoding, utf16};
use crate::types::{Class, Type, unreadable};

/// The decoder of the column `name` into `arrow`, its own type or one that the caller wants.
pub(crate) fn decoder(
    name: &str,
    native: &Type,
    arrow: &DataType,
    options: &ReadOptions,
) -> Result<Box<dyn Decoder>> {
    let losses = Losses::of(name, options);
    own(native.class, arrow, options, &losses)
        .or_else(|| override_decoder(native.class, arrow, options, &losses))
        .ok_or_else(|| unreadable(native, arrow).at(native.place(name)))
}

/// The decoder of a class into `arrow` where its cells say that at once.
fn own(class: Class, arrow: &DataType, options: &ReadOptions, losses: &Losses) -> Option<Box<dyn Decoder>> {
    let policy = options.infinity;
    let as_is = arrow.clone();
    Some(match (class, arrow) {
        (Class::Bit, DataType::Boolean) => Booleans::boxed(|cell| Ok(array::<1>(cell)? != [0])),
        (Class::UInt8, DataType::UInt8) => number::<UInt8Type, 1>(u8::from_le_bytes),
        (Class::Int16, DataType::Int16) => number::<Int16Type, 2>(i16::from_le_bytes),
        (Class::Int32, DataType::Int32) => number::<Int32Type, 4>(i32::from_le_bytes),
        (Class::Int64, DataType::Int64) => number::<Int64Type, 8>(i64::from_le_bytes),
        (Class::Float, DataType::Float32) => number::<Float32Type, 4>(f32::from_le_bytes),
        (Class::Double, DataType::Float64) => number::<Float64Type, 8>(f64::from_le_bytes),
        (Class::Decimal(precision, scale), DataType::Decimal128(to, of))
            if *to == precision && i8::try_from(scale) == Ok(*of) =>
        {
            Primitive::<Decimal128Type, _>::boxed(as_is, move |cell| decimal(cell, precision))
        }
        (Class::Decimal(precision, scale), DataType::Float64) => doubles(precision, scale, losses.clone()),
        (Class::Date, DataType::Date32) => Primitive::<Date32Type, _>::boxed(as_is, date),
        (Class::Time(_), DataType::Time64(unit)) => times(as_is, *unit, time),
        (Class::DateTime(_), DataType::Timestamp(unit, None)) => timestamps(as_is, *unit, policy, ticks),
        (Class::DateTimeOffset(_), DataType::Timestamp(unit, Some(zone))) if &**zone == "UTC" => {
            timestamps(as_is, *unit, policy, |cell| datetime_offset(cell).map(|(ticks, _)| ticks))
        }
        (Class::Uuid, DataType::FixedSizeBinary(16)) => Fixed::<16, _>::boxed(array::<16>),
        (Class::Text(encoding), DataType::Utf8) => match encoding {
            Encoding::Utf16 => Derived::<Utf8Type, _>::boxed(utf16),
            Encoding::CodePage(_) => {
                Derived::<Utf8Type, _>::keeping_ascii(move |cell, into| encoding.append(cell, into))
            }
        },
        (Class::Json, DataType::Utf8) => text(),
        (Class::Json, DataType::LargeUtf8) => large_text(),
        (Class::Bytes, DataType::Binary) => bytes(),
        (Class::Bytes, DataType::LargeBinary) => large_bytes(),
        (Class::Bytes, DataType::Utf8 | DataType::LargeUtf8) => return strings(arrow),
        (Class::Vector(size), DataType::FixedSizeList(item, to))
            if *to == i32::from(size) && *item.data_type() == DataType::Float32 =>
        {
            Vectors::boxed(item.clone(), size)
        }
        (_, DataType::Utf8) => Derived::<Utf8Type, _>::boxed(move |cell, into| render(class, cell, into)),
        (_, DataType::LargeUtf8) => {
            Derived::<LargeUtf8Type, _>::boxed(move |cell, into| render(class, cell, into))
        }
        _ => return None,
    })
}

/// The decoder into any other type, over the text of each cell: exact, or a fault.
fn override_decoder(
    class: Class,
    arrow: &DataType,
    options: &ReadOptions,
    losses: &Losses,
) -> Option<Box<dyn Decoder>> {
    let as_is = arrow.clone();
    let is_text = matches!(class, Class::Text(_) | Class::Variant);
    let inner = match (class, arrow) {
        (
            Class::Date
            | Class::Time(_)
            | Class::DateTime(_)
            | Class::DateTimeOffset(_)
            | Class::Bytes
            | Class::Vector(_),
            _,
        ) => {
            return dates(class, arrow);
        }
        (Class::Bit, _) if arrow.is_numeric() => {
            numbers(arrow, Number::Exact, Unrepresentable::Error, losses)?
        }
        (
            Class::UInt8
            | Class::Int16
            | Class::Int32
            | Class::Int64
            | Class::Float
            | Class::Double
            | Class::Decimal(..),
            DataType::Boolean,
        ) => Booleans::boxed(boolean),
        (_, DataType::Boolean) if is_text => Booleans::boxed(boolean),
        (_, DataType::FixedSizeBinary(16)) if is_text => Fixed::<16, _>::boxed(uuid),
        (_, DataType::Binary) if is_text || class == Class::Json => bytes(),
        (_, DataType::LargeBinary) if is_text || class == Class::Json => large_bytes(),
        (_, DataType::Date32) if is_text => Primitive::<Date32Type, _>::boxed(as_is, text_date),
        (_, DataType::Timestamp(unit, None)) if is_text => {
            timestamps(as_is, *unit, options.infinity, text_datetime)
        }
        (_, DataType::Time64(unit)) if is_text => times(as_is, *unit, text_time),
        _ if arrow.is_numeric() && !matches!(class, Class::Uuid | Class::Xml | Class::Json) => {
            let number = match class {
                Class::Float => Number::Float,
                Class::Double => Number::Double,
                Class::Decimal(..) => Number::Decimal,
                _ => Number::Exact,
            };
            numbers(arrow, number, Unrepresentable::Error, losses)?
        }
        _ => return None,
    };
    Some(Rendered::boxed(move |cell, text| render(class, cell, text), inner))
}

/// A date as a timestamp at its start, and a timestamp as its date where it is at its start.
fn dates(class: Class, arrow: &DataType) -> Option<Box<dyn Decoder>> {
    let as_is = arrow.clone();
    match (class, arrow) {
        (Class::Date, DataType::Timestamp(unit, None)) => {
            let read = |cell: &[u8]| Ok(i64::from(date(cell)?) * DAY);
            Some(timestamps(as_is, *unit, Unrepresentable::Error, read))
        }
        (Class::DateTime(scale), DataType::Date32) => {
            Some(Primitive::<Date32Type, _>::boxed(as_is, move |cell| {
                let ticks = ticks(cell)?;
                let days = i32::try_from(ticks.div_euclid(DAY)).ok().filter(|_| ticks.rem_euclid(DAY) == 0);
                days.ok_or_else(|| finer(ticks, scale))
            }))
        }
        _ => None,
    }
}

fn number<T: ArrowPrimitiveType, const N: usize>(
    read: impl Fn([u8; N]) -> T::Native + Copy + Send + 'static,
) -> Box<dyn Decoder> {
    Primitive::<T, _>::boxed(T::DATA_TYPE, move |cell| array(cell).map(read))
}

/// Decimals as the nearest doubles.
fn doubles(precision: u8, scale: u8, mut losses: Losses) -> Box<dyn Decoder> {
    let mut text = Vec::new();
    Primitive::<Float64Type, _>::boxed(DataType::Float64, move |cell| {
        let value = decimal(cell, precision)?;
        let magnitude = value.unsigned_abs();
        if (magnitude < ALWAYS_BACK.into() || !losses.looks())
            && let Ok(short) = i64::try_from(magnitude)
            && let Some(double) = exact_quotient(short, scale.into())
        {
            return Ok(if value < 0 { -double } else { double });
        }
        text.clear();
        render(Class::Decimal(precision, scale), cell, &mut text)?;
        text_double(&text, Unrepresentable::Error, &mut losses)
    })
}

fn boolean(cell: &[u8]) -> Result<bool, Misfit> {
    match cell {
        b"0" | b"false" => Ok(false),
        b"1" | b"true" => Ok(true),
        _ => Err(not("a boolean", utf8(cell)?)),
    }
}

fn text_date(cell: &[u8]) -> Result<i32, Misfit> {
    let text = utf8(cell)?;
    calendar::date(cell).ok_or_else(|| not("a date", text))
}

fn text_datetime(cell: &[u8]) -> Result<i64, Misfit> {
    let text = utf8(cell)?;
    temporal::parse_datetime(text).ok_or_else(|| not("a date and time", text))
}

fn text_time(cell: &[u8]) -> Result<i64, Misfit> {
    let text = utf8(cell)?;
    temporal::parse_time(text).ok_or_else(|| not("a time of day", text))
}

/// A column of timestamps in `unit`, whose ticks `read` gives. `policy` is for those beyond what nanoseconds count.
fn timestamps<F>(arrow: DataType, unit: TimeUnit, policy: Unrepresentable, mut read: F) -> Box<dyn Decoder>
where
    F: FnMut(&[u8]) -> Result<i64, Misfit> + Send + 'static,
{
    match unit {
        TimeUnit::Nanosecond => Primitive::<TimestampNanosecondType, _>::boxed(arrow, move |cell| {
            let ticks = read(cell)?;
            ticks.checked_mul(100).ok_or_else(|| beyond_nanoseconds(ticks, policy))
        }),
        TimeUnit::Microsecond => {
            Primitive::<TimestampMicrosecondType, _>::boxed(arrow, move |cell| whole(read(cell)?, 10))
        }
        TimeUnit::Millisecond => {
            Primitive::<TimestampMillisecondType, _>::boxed(arrow, move |cell| whole(read(cell)?, 10_000))
        }
        TimeUnit::Second => Primitive::<TimestampSecondType, _>::boxed(arrow, move |cell| {
            whole(read(cell)?, temporal::SECOND)
        }),
    }
}

/// A column of times of day in `unit`, whose ticks `read` gives.
fn times<F>(arrow: DataType, unit: TimeUnit, mut read: F) -> Box<dyn Decoder>
where
    F: FnMut(&[u8]) -> Result<i64, Misfit> + Send + 'static,
{
    match unit {
        TimeUnit::Nanosecond => {
            Primitive::<Time64NanosecondType, _>::boxed(arrow, move |cell| Ok(read(cell)? * 100))
        }
        // Arrow's other units of 64 bits are none.
        _ => Primitive::<Time64MicrosecondType, _>::boxed(arrow, move |cell| whole(read(cell)?, 10)),
    }
}

/// The ticks in units of `per` of them, where that is a whole number.
#[inline]
fn whole(ticks: i64, per: i64) -> Result<i64, Misfit> {
    if ticks % per == 0 { Ok(ticks.div_euclid(per)) } else { Err(finer(ticks, 7)) }
}

#[cold]
fn finer(ticks: i64, scale: u8) -> Misfit {
    let mut text = Vec::new();
    temporal::write_datetime(ticks, scale, &mut text);
    Misfit::with_hint(
        format!("{} has digits that the type has no place for", String::from_utf8_lossy(&text)),
        "read it with all of them: schema={\"<column>\": \"timestamp[ns]\"} or \"string\"; or round it in the query",
    )
}

#[cold]
fn beyond_nanoseconds(ticks: i64, policy: Unrepresentable) -> Misfit {
    if policy == Unrepresentable::Null {
        return out_of_range(policy);
    }
    let mut text = Vec::new();
    temporal::write_datetime(ticks, 7, &mut text);
    Misfit::with_hint(
        format!("{} is beyond the years 1677 to 2262 of nanoseconds", String::from_utf8_lossy(&text)),
        "read it in microseconds with schema={\"<column>\": \"timestamp[us]\"}, or \"timestamp[us, tz=UTC]\" of a datetimeoffset; \
         as NULL with options={\"infinity\": \"null\"}; or cast it to datetime2(6) in the query",
    )
}

/// A column of vectors of one length.
struct Vectors {
    item: FieldRef,
    size: u16,
    values: Vec<f32>,
    validity: Validity,
    rows: usize,
}

impl Vectors {
    fn boxed(item: FieldRef, size: u16) -> Box<dyn Decoder> {
        Box::new(Self { item, size, values: Vec::new(), validity: Validity::default(), rows: 0 })
    }
}

impl Decoder for Vectors {
    fn decode(&mut self, cells: Cells<'_>) -> Result<(), CellFault> {
        let size = usize::from(self.size);
        try_reserve(&mut self.values, size * cells.len())?;
        for (row, cell) in cells.iter().enumerate() {
            let (numbers, rest) = cell.unwrap_or_default().as_chunks::<4>();
            if cell.is_some() && (numbers.len() != size || !rest.is_empty()) {
                let misfit = Misfit::fault(format!(
                    "the server sent {} bytes for a vector of {size} numbers",
                    numbers.len() * 4 + rest.len()
                ));
                return fault(row, misfit).map_or(Ok(()), Err);
            }
            self.values.extend(numbers.iter().map(|number| f32::from_le_bytes(*number)));
            self.rows += 1;
            self.values.resize(self.rows * size, 0.0);
            self.validity.push(cell.is_some());
        }
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        let values = Arc::new(Float32Array::from(std::mem::take(&mut self.values)));
        self.rows = 0;
        Arc::new(FixedSizeListArray::new(self.item.clone(), self.size.into(), values, self.validity.finish()))
    }

    fn size(&self) -> usize {
        size_of_val(self.values.as_slice())
    }
}
