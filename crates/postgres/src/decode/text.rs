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

use super::bytes::{Derived, Fixed, bytes, large_text, text};
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
        // The one dictionary type that labels are decoded into.
        (Kind::Enum(labels), DataType::Dictionary(keys, values))
            if (keys.as_ref(), values.as_ref()) == (&DataType::Int32, &DataType::Utf8) =>
        {
            Some(Box::new(Labels::new(labels)))
        }
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
        DataType::Float32 if is(Class::Float8) => Primitive::<Float32Type, _>::boxed(as_is, narrowed),
        DataType::Float32 if is(Class::Numeric) => Primitive::<Float32Type, _>::boxed(as_is, move |cell| {
            numeric::text_decimal(cell, odds.numeric_nan)?;
            exact_float(cell)
        }),
        DataType::Float32 => Primitive::<Float32Type, _>::boxed(as_is, exact_float),
        DataType::Float64 if is(Class::Numeric) => Primitive::<Float64Type, _>::boxed(as_is, move |cell| {
            numeric::text_double(cell, odds.numeric_nan)
        }),
        DataType::Float64 if is(Class::Float4) => {
            Primitive::<Float64Type, _>::boxed(as_is, |cell| shortest_float(cell).map(f64::from))
        }
        DataType::Float64 if is(Class::Float8) => Primitive::<Float64Type, _>::boxed(as_is, shortest_double),
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
        DataType::FixedSizeBinary(16) if is(Class::Uuid) || is(Class::Text) || is(Class::TextOnly) => {
            Fixed::<16, _>::boxed(uuid)
        }
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

/// Whether a text that was read as infinity or NaN says so itself, or is a number that overflowed.
fn is_named(text: &str) -> bool {
    // "inf", "infinity" and "nan" all have it, and no number does.
    text.bytes().any(|byte| byte.eq_ignore_ascii_case(&b'n'))
}

/// float4's text is the shortest that gives the same float back.
fn shortest_float(cell: &[u8]) -> Result<f32, Odd> {
    let text = utf8(cell)?;
    let value: f32 = text.parse().map_err(|_| not("number", text))?;
    if value.is_finite() || is_named(text) { Ok(value) } else { Err(no_float32(text)) }
}

/// float8's text is the shortest that gives the same double back.
fn shortest_double(cell: &[u8]) -> Result<f64, Odd> {
    let text = utf8(cell)?;
    let value: f64 = text.parse().map_err(|_| not("number", text))?;
    if value.is_finite() || is_named(text) { Ok(value) } else { Err(numeric::beyond_double()) }
}

/// The float that is the same number as a float8.
fn narrowed(cell: &[u8]) -> Result<f32, Odd> {
    let value = shortest_double(cell)?;
    #[allow(clippy::cast_possible_truncation)] // what is lost is seen in the next line
    let float = value as f32;
    if f64::from(float).to_bits() == value.to_bits() || value.is_nan() {
        return Ok(float);
    }
    Err(no_float32(utf8(cell)?))
}

/// The float that is the very number that the text spells.
fn exact_float(cell: &[u8]) -> Result<f32, Odd> {
    let text = utf8(cell)?;
    let value = shortest_float(cell)?;
    // 149 decimals spell every float32 in full.
    if is_named(text) || numeric::is_same_number(text, &format!("{value:.149}")) {
        return Ok(value);
    }
    Err(no_float32(text))
}

#[cold]
fn no_float32(text: &str) -> Odd {
    Odd::with_hint(
        format!("{text} has no exact float32"),
        "ask for a wider type: schema={\"<column>\": \"float64\"}",
    )
}

/// The nearest double; but an integer, written out, that a double would round is a fault.
fn double(cell: &[u8]) -> Result<f64, Odd> {
    let text = utf8(cell)?;
    let value = shortest_double(cell)?;
    if !is_whole(text) || numeric::is_same_number(text, &format!("{value:.0}")) {
        return Ok(value);
    }
    Err(Odd::with_hint(
        format!("{text} has no exact float64"),
        "ask for an exact type: schema={\"<column>\": \"decimal128(38, 0)\"}",
    ))
}

/// Whether the text is an integer with all its digits, and at most zeros after the point.
fn is_whole(text: &str) -> bool {
    let (whole, zeros) = text.split_once('.').unwrap_or((text, ""));
    let digits = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    digits.bytes().all(|byte| byte.is_ascii_digit()) && zeros.bytes().all(|byte| byte == b'0')
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
        assert_eq!(double(b"9007199254740992.00"), Ok(9_007_199_254_740_992.0));
        assert_eq!(double(b"1.25"), Ok(1.25));
        assert_eq!(double(b"-0.0").map(f64::to_bits), Ok((-0.0_f64).to_bits()));
        for rounded in ["9007199254740993", "9007199254740993.0", "-9007199254740993.000", "1e400", "-1e400"]
        {
            assert!(double(rounded.as_bytes()).is_err(), "{rounded}");
        }
        let long = format!("1{}1", "0".repeat(60));
        assert!(double(long.as_bytes()).is_err());
        for named in ["Infinity", "inf", "infinity"] {
            assert_eq!(double(named.as_bytes()), Ok(f64::INFINITY), "{named}");
        }
        assert_eq!(double(b"-Infinity"), Ok(f64::NEG_INFINITY));
        assert!(double(b"NaN").is_ok_and(f64::is_nan));
        assert!(double(b"1e99999999").is_err() && shortest_double(b"1e400").is_err());
        // float8's own text is never the exact decimal.
        assert_eq!(shortest_double(b"12345678901234567000"), Ok(12_345_678_901_234_567_000.0));
        assert_eq!(exact_float(b"0.5"), Ok(0.5));
        assert!(exact_float(b"0.1").is_err());
        assert_eq!(exact_float(b"Infinity"), Ok(f32::INFINITY));
        assert_eq!(exact_float(b"16777216.0"), Ok(16_777_216.0));
        assert_eq!(exact_float(b"5e-1"), Ok(0.5));
        assert_eq!(exact_float(b"-0"), Ok(0.0));
        for inexact in ["1.00000000000000000001", "16777217", "1e39", "1e400", "1e-46", "0.1", "x", ""] {
            assert!(exact_float(inexact.as_bytes()).is_err(), "{inexact}");
        }
        assert_eq!(narrowed(b"1e+20").ok(), None);
        assert_eq!(narrowed(b"0.5"), Ok(0.5));
    }

    #[test]
    fn a_numeric_as_a_float32_obeys_numeric_nan() {
        use longshore_wire::{Cells, Span};
        let native = Type { name: "numeric".to_owned(), kind: Kind::Plain(Class::Numeric), modifier: -1 };
        let read = |text: &str, numeric_nan: OnOdd| {
            let odds = Odds { numeric_nan, infinity: OnOdd::Error, time_24: OnOdd::Error };
            let mut decoder = decoder(&native, &DataType::Float32, odds).unwrap();
            let span = Span::new(0, u32::try_from(text.len()).unwrap());
            decoder
                .decode(Cells::new(text.as_bytes(), &[span], false))
                .map(|()| decoder.finish().null_count())
        };
        for special in ["NaN", "Infinity", "-Infinity"] {
            assert!(read(special, OnOdd::Error).is_err(), "{special}");
            assert_eq!(read(special, OnOdd::Null), Ok(1), "{special}");
        }
        assert_eq!(read("0.5", OnOdd::Error), Ok(0));
        assert!(read("1.00000000000000000001", OnOdd::Null).is_err());
    }

    #[test]
    fn only_bytea_is_binary_and_only_uuids_are_sixteen_bytes() {
        let odds = Odds { numeric_nan: OnOdd::Error, infinity: OnOdd::Error, time_24: OnOdd::Error };
        let reads = |class: Class, arrow: &DataType| {
            let native = Type { name: "made".to_owned(), kind: Kind::Plain(class), modifier: -1 };
            decoder(&native, arrow, odds).is_some()
        };
        assert!(reads(Class::Bytes, &DataType::Binary) && reads(Class::Bytes, &DataType::LargeBinary));
        assert!(reads(Class::Uuid, &DataType::FixedSizeBinary(16)));
        for class in [Class::Text, Class::Uuid, Class::Int4, Class::Json] {
            assert!(!reads(class, &DataType::Binary) && !reads(class, &DataType::LargeBinary), "{class:?}");
        }
        assert!(!reads(Class::Int4, &DataType::FixedSizeBinary(16)));
        assert!(!reads(Class::Uuid, &DataType::FixedSizeBinary(8)));
    }

    #[test]
    fn a_text_with_lists_of_unlike_depths_is_a_fault() {
        use arrow_schema::Field;
        use longshore_wire::{Cells, Span};
        let odds = Odds { numeric_nan: OnOdd::Error, infinity: OnOdd::Error, time_24: OnOdd::Error };
        let list = |item: DataType| DataType::List(std::sync::Arc::new(Field::new_list_field(item, true)));
        let reads = |text: &str| {
            let wanted = list(list(list(DataType::Int8)));
            let mut decoder = decoder(&Type::text_only("text"), &wanted, odds).unwrap();
            let span = Span::new(0, u32::try_from(text.len()).unwrap());
            decoder.decode(Cells::new(text.as_bytes(), &[span], false)).is_ok()
        };
        assert!(reads("{{{1}},{{2}}}") && reads("{}"));
        assert!(!reads("{{{}},{1}}"));
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
