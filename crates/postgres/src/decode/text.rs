//! Text cells, read as the Arrow type that is wanted: the `text` protocol, types without a known binary form,
//! and every override by `schema=`.
//!
//! What a text says that the type cannot hold is a fault, never rounded.

use arrow_array::types::{
    ArrowPrimitiveType, BinaryType, Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType, LargeBinaryType,
    Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use longshore_core::OnOdd;
use longshore_wire::{Decoder, Odd};

use super::bytes::{Derived, Fixed, bytes, large_bytes, large_text, text};
use super::civil;
use super::dictionary::Labels;
use super::literal::{TextArray, TextRecord};
use super::nested::{Lists, Records};
use super::numeric::{self, DecimalType};
use super::odds::Odds;
use super::primitive::{Booleans, Primitive};
use crate::types::{Class, Kind, Type};

/// The decoder of `native`'s text form into `arrow`; `None` where there is none.
pub(super) fn decoder(native: &Type, arrow: &DataType, odds: Odds) -> Option<Box<dyn Decoder>> {
    match (&native.kind, arrow) {
        (Kind::Enum(labels), DataType::Dictionary(..)) => Some(Box::new(Labels::new(labels))),
        (Kind::Array { element, delimiter, .. }, DataType::List(_)) => {
            lists(element, *delimiter, arrow, odds)
        }
        (Kind::Composite(attributes), DataType::Struct(fields)) if attributes.len() == fields.len() => {
            let children = attributes.iter().zip(fields);
            let children: Option<Vec<_>> =
                children.map(|(child, field)| decoder(&child.native, field.data_type(), odds)).collect();
            Some(Box::new(Records::new(fields.clone(), children?, Box::new(TextRecord))))
        }
        _ => scalar(native, arrow, odds),
    }
}

/// Lists as deep as the Arrow type says; the innermost of them may be the elements' own.
fn lists(element: &Type, delimiter: u8, arrow: &DataType, odds: Odds) -> Option<Box<dyn Decoder>> {
    let DataType::List(item) = arrow else { return None };
    let own = lists_in(element);
    let (mut leaf, mut depth) = (item, 1);
    while let (DataType::List(inner), true) = (leaf.data_type(), levels(leaf.data_type()) > own) {
        leaf = inner;
        depth += 1;
    }
    let values = decoder(element, leaf.data_type(), odds)?;
    Some(Box::new(Lists::new(item.clone(), depth, values, Box::new(TextArray { delimiter }))))
}

/// The levels of lists that a value of the type has by itself: an array of a domain over arrays has more than one.
fn lists_in(native: &Type) -> usize {
    match &native.kind {
        Kind::Array { element, dimensions, .. } => dimensions + lists_in(element),
        _ => 0,
    }
}

fn levels(arrow: &DataType) -> usize {
    match arrow {
        DataType::List(item) => 1 + levels(item.data_type()),
        _ => 0,
    }
}

fn scalar(native: &Type, arrow: &DataType, odds: Odds) -> Option<Box<dyn Decoder>> {
    let is = |class: Class| matches!(native.kind, Kind::Plain(got) if got == class);
    let as_is = arrow.clone();
    Some(match *arrow {
        DataType::Boolean => Booleans::boxed(boolean),
        DataType::Int8 => integer::<Int8Type>(),
        DataType::Int16 => integer::<Int16Type>(),
        DataType::Int32 => integer::<Int32Type>(),
        DataType::Int64 => integer::<Int64Type>(),
        DataType::UInt8 => integer::<UInt8Type>(),
        DataType::UInt16 => integer::<UInt16Type>(),
        DataType::UInt32 => integer::<UInt32Type>(),
        DataType::UInt64 => integer::<UInt64Type>(),
        DataType::Float32 if is(Class::Float4) => Primitive::<Float32Type, _>::boxed(as_is, shortest_float),
        DataType::Float32 => Primitive::<Float32Type, _>::boxed(as_is, exact_float),
        DataType::Float64 if is(Class::Numeric) => Primitive::<Float64Type, _>::boxed(as_is, move |cell| {
            numeric::text_double(cell, odds.numeric_nan)
        }),
        DataType::Float64 if is(Class::Float4) => {
            Primitive::<Float64Type, _>::boxed(as_is, |cell| shortest_float(cell).map(f64::from))
        }
        DataType::Float64 => Primitive::<Float64Type, _>::boxed(as_is, double),
        DataType::Decimal128(precision, scale) => {
            let to = DecimalType { precision, scale, numeric_nan: odds.numeric_nan };
            Primitive::<Decimal128Type, _>::boxed(as_is, move |cell| to.text(cell))
        }
        DataType::Decimal256(precision, scale) => {
            let to = DecimalType { precision, scale, numeric_nan: odds.numeric_nan };
            Primitive::<Decimal256Type, _>::boxed(as_is, move |cell| to.text(cell))
        }
        DataType::Utf8 => text(),
        DataType::LargeUtf8 => large_text(),
        // Cells of a numeric that wait for their scale are kept as they are.
        DataType::Binary if is(Class::Numeric) => bytes(),
        DataType::Binary if is(Class::Bytes) => Derived::<BinaryType, _>::boxed(bytea),
        DataType::LargeBinary if is(Class::Bytes) => Derived::<LargeBinaryType, _>::boxed(bytea),
        DataType::Binary => bytes(),
        DataType::LargeBinary => large_bytes(),
        DataType::FixedSizeBinary(16) => Fixed::<16, _>::boxed(uuid),
        DataType::Date32 => Primitive::<Date32Type, _>::boxed(as_is, move |cell| civil::date(cell, odds)),
        DataType::Time64(TimeUnit::Microsecond) => {
            Primitive::<Time64MicrosecondType, _>::boxed(as_is, move |cell| civil::time(cell, odds))
        }
        DataType::Time64(TimeUnit::Nanosecond) => {
            Primitive::<Time64NanosecondType, _>::boxed(as_is, move |cell| {
                civil::time(cell, odds).map(|microseconds| microseconds * 1000)
            })
        }
        DataType::Timestamp(unit, ref zone) => timestamp(as_is.clone(), unit, zone.is_some(), odds),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            Primitive::<IntervalMonthDayNanoType, _>::boxed(as_is, move |cell| {
                super::interval::parse(cell, odds)
            })
        }
        DataType::List(_) => return lists(&Type::text_only("element"), b',', arrow, odds),
        _ => return None,
    })
}

fn timestamp(arrow: DataType, unit: TimeUnit, is_instant: bool, odds: Odds) -> Box<dyn Decoder> {
    let read = move |cell: &[u8]| civil::timestamp(cell, is_instant, odds);
    match unit {
        TimeUnit::Microsecond => Primitive::<TimestampMicrosecondType, _>::boxed(arrow, read),
        TimeUnit::Nanosecond => Primitive::<TimestampNanosecondType, _>::boxed(arrow, move |cell| {
            read(cell)?.checked_mul(1000).ok_or_else(|| beyond(cell, odds))
        }),
        TimeUnit::Millisecond => {
            Primitive::<TimestampMillisecondType, _>::boxed(arrow, move |cell| whole(cell, read(cell)?, 1000))
        }
        TimeUnit::Second => {
            Primitive::<TimestampSecondType, _>::boxed(arrow, move |cell| whole(cell, read(cell)?, 1_000_000))
        }
    }
}

/// A moment that nanoseconds cannot count.
#[cold]
fn beyond(cell: &[u8], odds: Odds) -> Odd {
    match (odds.infinity, utf8(cell)) {
        (OnOdd::Error, Ok(text)) => Odd::with_hint(
            format!("{text} is beyond what nanoseconds can count"),
            "ask for microseconds: schema={\"<column>\": \"timestamp[us]\"}",
        ),
        _ => super::odds::out_of_range(odds.infinity),
    }
}

/// `microseconds` in a coarser unit, where nothing is lost.
fn whole(cell: &[u8], microseconds: i64, unit: i64) -> Result<i64, Odd> {
    if microseconds % unit == 0 {
        return Ok(microseconds / unit);
    }
    Err(Odd::with_hint(
        format!("{} has a finer fraction than the wanted type", utf8(cell)?),
        "ask for microseconds: schema={\"<column>\": \"timestamp[us]\"}",
    ))
}

/// The cell as text, and a fault that says what was wanted of it.
pub(super) fn utf8(cell: &[u8]) -> Result<&str, Odd> {
    std::str::from_utf8(cell).map_err(|_| Odd::fault("the text is not valid UTF-8"))
}

#[cold]
pub(super) fn not(what: &str, text: &str) -> Odd {
    Odd::fault(format!("{text:?} is no {what}"))
}

fn boolean(cell: &[u8]) -> Result<bool, Odd> {
    match cell {
        b"t" | b"true" => Ok(true),
        b"f" | b"false" => Ok(false),
        _ => Err(not("boolean", utf8(cell)?)),
    }
}

/// Integers, and numbers whose decimals are all zero.
fn integer<T: ArrowPrimitiveType>() -> Box<dyn Decoder>
where
    T::Native: TryFrom<i128>,
{
    Primitive::<T, _>::boxed(T::DATA_TYPE, |cell| {
        let text = utf8(cell)?;
        let digits = match text.split_once('.') {
            Some((whole, zeros)) if zeros.bytes().all(|byte| byte == b'0') => whole,
            _ => text,
        };
        let value: i128 = digits.parse().map_err(|_| not("integer", text))?;
        T::Native::try_from(value).map_err(|_| {
            Odd::with_hint(
                format!("{text} does not fit {}", T::DATA_TYPE),
                "ask for a wider type: schema={\"<column>\": \"int64\"}",
            )
        })
    })
}

/// float4's text is the shortest that gives the same float back.
fn shortest_float(cell: &[u8]) -> Result<f32, Odd> {
    let text = utf8(cell)?;
    text.parse().map_err(|_| not("number", text))
}

fn exact_float(cell: &[u8]) -> Result<f32, Odd> {
    let value = double(cell)?;
    #[allow(clippy::cast_possible_truncation)] // what is lost is seen in the next line
    let float = value as f32;
    if f64::from(float).to_bits() == value.to_bits() || value.is_nan() {
        return Ok(float);
    }
    Err(Odd::with_hint(
        format!("{value} has no exact float32"),
        "ask for a wider type: schema={\"<column>\": \"float64\"}",
    ))
}

/// A double; an integer beyond 2^53 that a double would round is a fault.
fn double(cell: &[u8]) -> Result<f64, Odd> {
    let text = utf8(cell)?;
    let value: f64 = text.parse().map_err(|_| not("number", text))?;
    let Ok(integer) = text.parse::<i128>() else { return Ok(value) };
    #[allow(clippy::cast_possible_truncation)] // saturates, and is then not equal
    if value as i128 == integer {
        return Ok(value);
    }
    Err(Odd::with_hint(
        format!("{text} has no exact float64"),
        "ask for an exact type: schema={\"<column>\": \"decimal128(38, 0)\"}",
    ))
}

fn uuid(cell: &[u8]) -> Result<[u8; 16], Odd> {
    let digits: Vec<u8> = cell.iter().copied().filter(|byte| *byte != b'-').collect();
    unhex(&digits).and_then(|bytes| bytes.try_into().ok()).map_or_else(|| Err(not("UUID", utf8(cell)?)), Ok)
}

fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |[high, low]: &[u8; 2]| Some(digit(*high)? << 4 | digit(*low)?);
    if rest.is_empty() { pairs.iter().map(pair).collect() } else { None }
}

/// bytea in either of `bytea_output`'s forms: hex, or escape (`\\` and `\ooo`).
fn bytea(cell: &[u8], into: &mut Vec<u8>) -> Result<(), Odd> {
    let damaged = || Odd::fault("the server sent a damaged bytea");
    if let Some(digits) = cell.strip_prefix(b"\\x") {
        into.extend(unhex(digits).ok_or_else(damaged)?);
        return Ok(());
    }
    let mut rest = cell;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            into.push(*byte);
        } else if let Some(after) = rest.strip_prefix(b"\\") {
            into.push(b'\\');
            rest = after;
        } else {
            let (octal, after) = rest.split_first_chunk::<3>().ok_or_else(damaged)?;
            let octal = std::str::from_utf8(octal).map_err(|_| damaged())?;
            into.push(u8::from_str_radix(octal, 8).map_err(|_| damaged())?);
            rest = after;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_exact_or_a_fault() {
        assert_eq!(double(b"9007199254740992"), Ok(9_007_199_254_740_992.0));
        assert!(double(b"9007199254740993").is_err());
        assert_eq!(exact_float(b"0.5"), Ok(0.5));
        assert!(exact_float(b"0.1").is_err());
        assert_eq!(exact_float(b"Infinity"), Ok(f32::INFINITY));
    }

    #[test]
    fn bytea_in_both_forms() {
        let read = |cell: &[u8]| {
            let mut into = Vec::new();
            bytea(cell, &mut into).map(|()| into)
        };
        assert_eq!(read(b"\\x00ff"), Ok(vec![0, 255]));
        assert_eq!(read(b"a\\\\b\\001"), Ok(b"a\\b\x01".to_vec()));
        assert!(read(b"\\x0").is_err() && read(b"\\9").is_err() && read(b"\\999").is_err());
    }

    #[test]
    fn uuids() {
        assert_eq!(uuid(b"00000000-0000-0000-0000-0000000000ff").map(|bytes| bytes[15]), Ok(255));
        assert!(uuid(b"0").is_err());
    }
}
