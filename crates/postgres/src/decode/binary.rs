//! Binary cells: each type's `*_send` function, read back.

use arrow_array::types::{
    Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNanoType, Time64MicrosecondType, TimestampMicrosecondType, UInt32Type, UInt64Type,
    Utf8Type,
};
use arrow_buffer::IntervalMonthDayNano;
use arrow_schema::DataType;
use longshore_core::Unrepresentable;
use longshore_values::calendar::DAY;
use longshore_values::decimal::DecimalType;
use longshore_values::policies::{ValuePolicies, infinite, out_of_range, time_24};
use longshore_values::{Booleans, Decoder, Derived, Fixed, Losses, Misfit, Primitive, bytes, text};

use super::Labels;
use super::nested::binary::{split_array, split_record};
use super::nested::{Lists, Records};
use super::numeric;
use crate::types::{Class, Format, Kind, Type};
use crate::{geometry, hstore, vector};

/// Days from 1970-01-01 to 2000-01-01, where PostgreSQL counts from.
const EPOCH_DAYS: i32 = 10_957;

const EPOCH_MICROSECONDS: i64 = 946_684_800_000_000;

pub(super) fn decoder(
    native: &Type,
    arrow: &DataType,
    policies: ValuePolicies,
    losses: &Losses,
) -> Box<dyn Decoder> {
    match (&native.kind, arrow) {
        (Kind::Plain(Class::Geometry), _) => geometry::decoder(native, Format::Binary, arrow),
        (Kind::Plain(class), _) => plain(*class, arrow, policies, losses),
        (Kind::Enum(labels), _) => Box::new(Labels::new(labels)),
        (Kind::Array { element, dimensions, delimiter, .. }, DataType::List(item)) => {
            let mut innermost = item;
            for _ in 1..*dimensions {
                if let DataType::List(inner) = innermost.data_type() {
                    innermost = inner;
                }
            }
            let values = decoder(element, innermost.data_type(), policies, losses);
            // int2vector and oidvector, all of which begin at 0, are parted by blanks.
            let losses = (*delimiter != b' ').then(|| losses.clone());
            Box::new(Lists::new(item.clone(), *dimensions, values, Box::new(split_array), losses))
        }
        (Kind::Composite(attributes), DataType::Struct(fields)) => {
            let children = attributes.iter().zip(fields);
            let children =
                children.map(|(child, field)| decoder(&child.native, field.data_type(), policies, losses));
            let oids: Vec<u32> = attributes.iter().map(|attribute| attribute.oid).collect();
            let split = Box::new(move |cell: &_, into: &mut _| split_record(&oids, cell, into));
            Box::new(Records::new(fields.clone(), children.collect(), split))
        }
        // `Type::arrow` gives lists to arrays and structs to composites.
        _ => bytes(),
    }
}

fn plain(class: Class, arrow: &DataType, policies: ValuePolicies, losses: &Losses) -> Box<dyn Decoder> {
    let as_is = arrow.clone();
    match class {
        Class::Bool => Booleans::boxed(|cell| Ok(array::<1>(cell)? != [0])),
        Class::Int2 => Primitive::<Int16Type, _>::boxed(as_is, |cell| array(cell).map(i16::from_be_bytes)),
        Class::Int4 => Primitive::<Int32Type, _>::boxed(as_is, |cell| array(cell).map(i32::from_be_bytes)),
        Class::Int8 => Primitive::<Int64Type, _>::boxed(as_is, |cell| array(cell).map(i64::from_be_bytes)),
        Class::Unsigned => {
            Primitive::<UInt32Type, _>::boxed(as_is, |cell| array(cell).map(u32::from_be_bytes))
        }
        Class::Xid8 => Primitive::<UInt64Type, _>::boxed(as_is, |cell| array(cell).map(u64::from_be_bytes)),
        Class::Float4 => {
            Primitive::<Float32Type, _>::boxed(as_is, |cell| array(cell).map(f32::from_be_bytes))
        }
        Class::Float8 => {
            Primitive::<Float64Type, _>::boxed(as_is, |cell| array(cell).map(f64::from_be_bytes))
        }
        Class::Numeric => decimal(arrow, policies.numeric_nan, losses),
        Class::Text | Class::Json | Class::TextOnly => text(),
        Class::Jsonb => Derived::<Utf8Type, _>::boxed(jsonb),
        // `Type::arrow` gives vectors lists that they have a decoder into, and geometry has another.
        Class::Vector | Class::HalfVector => {
            vector::decoder(class, Format::Binary, arrow).unwrap_or_else(bytes)
        }
        Class::Hstore => hstore::decoder(Format::Binary),
        Class::Bytes | Class::Geometry => bytes(),
        Class::Date => Primitive::<Date32Type, _>::boxed(as_is, move |cell| date(cell, policies.infinity)),
        Class::Time => {
            Primitive::<Time64MicrosecondType, _>::boxed(as_is, move |cell| time(cell, policies.time_24))
        }
        Class::Timestamp | Class::Timestamptz => {
            Primitive::<TimestampMicrosecondType, _>::boxed(as_is, move |cell| {
                timestamp(cell, policies.infinity)
            })
        }
        Class::Interval => Primitive::<IntervalMonthDayNanoType, _>::boxed(as_is, move |cell| {
            interval(cell, policies.infinity)
        }),
        Class::Uuid if *arrow == DataType::Utf8 => Derived::<Utf8Type, _>::boxed(uuid_text),
        Class::Uuid => Fixed::<16, _>::boxed(array),
    }
}

fn decimal(arrow: &DataType, numeric_nan: Unrepresentable, losses: &Losses) -> Box<dyn Decoder> {
    let as_is = arrow.clone();
    match *arrow {
        DataType::Decimal128(precision, scale) => {
            let to = DecimalType { precision, scale, numeric_nan };
            Primitive::<Decimal128Type, _>::boxed(as_is, move |cell| numeric::binary(to, cell))
        }
        DataType::Decimal256(precision, scale) => {
            let to = DecimalType { precision, scale, numeric_nan };
            Primitive::<Decimal256Type, _>::boxed(as_is, move |cell| numeric::binary(to, cell))
        }
        DataType::Float64 => {
            let mut losses = losses.clone();
            let read = move |cell: &[u8]| numeric::double(cell, numeric_nan, &mut losses);
            Primitive::<Float64Type, _>::boxed(as_is, read)
        }
        // Deferred: the cells wait as they are for the scale that fits them all.
        _ => bytes(),
    }
}

#[inline]
fn array<const N: usize>(cell: &[u8]) -> Result<[u8; N], Misfit> {
    cell.try_into().map_err(|_| wrong_length(cell.len(), N))
}

#[cold]
fn wrong_length(got: usize, expected: usize) -> Misfit {
    Misfit::with_hint(
        format!("the server sent {got} bytes where the type has {expected}"),
        "the server's binary form is not PostgreSQL's: use options={\"protocol\": \"text\"}",
    )
}

#[inline]
fn date(cell: &[u8], policy: Unrepresentable) -> Result<i32, Misfit> {
    match i32::from_be_bytes(array(cell)?) {
        i32::MAX | i32::MIN => Err(infinite(policy)),
        days => days.checked_add(EPOCH_DAYS).ok_or_else(|| out_of_range(policy)),
    }
}

#[inline]
fn timestamp(cell: &[u8], policy: Unrepresentable) -> Result<i64, Misfit> {
    match i64::from_be_bytes(array(cell)?) {
        i64::MAX | i64::MIN => Err(infinite(policy)),
        microseconds => microseconds.checked_add(EPOCH_MICROSECONDS).ok_or_else(|| out_of_range(policy)),
    }
}

#[inline]
fn time(cell: &[u8], policy: Unrepresentable) -> Result<i64, Misfit> {
    match i64::from_be_bytes(array(cell)?) {
        microseconds @ 0..DAY => Ok(microseconds),
        DAY => Err(time_24(policy)),
        _ => Err(Misfit::fault("the server sent a time beyond 24:00")),
    }
}

fn interval(cell: &[u8], policy: Unrepresentable) -> Result<IntervalMonthDayNano, Misfit> {
    let value = u128::from_be_bytes(array(cell)?);
    // The halves and quarters of the value, as they are.
    #[allow(clippy::cast_possible_truncation)]
    let (microseconds, days, months) = (
        ((value >> 64) as u64).cast_signed(),
        ((value >> 32) as u32).cast_signed(),
        (value as u32).cast_signed(),
    );
    match (microseconds, days, months) {
        (i64::MAX, i32::MAX, i32::MAX) | (i64::MIN, i32::MIN, i32::MIN) => Err(infinite(policy)),
        _ => {
            let nanoseconds = microseconds.checked_mul(1000).ok_or_else(|| out_of_range(policy))?;
            Ok(IntervalMonthDayNano::new(months, days, nanoseconds))
        }
    }
}

/// jsonb's binary form is a version byte, 1, and the text.
fn jsonb(cell: &[u8], into: &mut Vec<u8>) -> Result<(), Misfit> {
    let Some((1, text)) = cell.split_first() else {
        return Err(Misfit::with_hint(
            "the server sent an unknown version of jsonb",
            "use options={\"protocol\": \"text\"}",
        ));
    };
    into.extend_from_slice(text);
    Ok(())
}

fn uuid_text(cell: &[u8], into: &mut Vec<u8>) -> Result<(), Misfit> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (index, byte) in array::<16>(cell)?.into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            into.push(b'-');
        }
        into.extend([DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
    Ok(())
}
