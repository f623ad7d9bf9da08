//! Text cells, read as the number or the time that is wanted. What a text says that the type cannot hold is a fault,
//! never rounded.

use arrow_array::ArrayRef;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Decimal256Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_schema::{DataType, TimeUnit};
use longshore_core::Unrepresentable;

use crate::calendar::{push_time, timestamp_text};
use crate::decimal::DecimalType;
use crate::policies::out_of_range;
use crate::primitive::Primitive;
use crate::{CellBuffer, CellFault, Cells, Decoder, Losses, Misfit, decimal};

/// The cell as text, and a fault that says what was wanted of it.
pub fn utf8(cell: &[u8]) -> Result<&str, Misfit> {
    std::str::from_utf8(cell).map_err(|_| Misfit::fault("the text is not valid UTF-8"))
}

/// The fault of a `text` that is not `what`.
#[cold]
#[must_use]
pub fn not(what: &str, text: &str) -> Misfit {
    Misfit::fault(format!("{text:?} is not {what}"))
}

/// Integers, and numbers whose decimals are all zero.
#[must_use]
pub fn integer<T: ArrowPrimitiveType>() -> Box<dyn Decoder>
where
    T::Native: TryFrom<i128>,
{
    Primitive::<T, _>::boxed(T::DATA_TYPE, |cell| {
        let text = utf8(cell)?;
        let digits = match text.split_once('.') {
            Some((whole, zeros)) if zeros.bytes().all(|byte| byte == b'0') => whole,
            _ => text,
        };
        let value: i128 = digits.parse().map_err(|_| not("an integer", text))?;
        T::Native::try_from(value).map_err(|_| {
            Misfit::with_hint(
                format!("{text} does not fit {}", T::DATA_TYPE),
                "ask for a wider type: schema={\"<column>\": \"int64\"}",
            )
        })
    })
}

/// The kind of a source's number, and so what its text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// A float of 32 bits: its text is the shortest that gives it back.
    Float,
    /// A float of 64 bits, likewise.
    Double,
    /// A decimal.
    Decimal,
    /// An integer, or any text.
    Exact,
}

/// The column of numbers `arrow`, read from texts of a `number`; `None` for any other type.
#[must_use]
pub fn numbers(
    arrow: &DataType,
    number: Number,
    numeric_nan: Unrepresentable,
    losses: &Losses,
) -> Option<Box<dyn Decoder>> {
    let as_is = arrow.clone();
    Some(match *arrow {
        DataType::Int8 => integer::<Int8Type>(),
        DataType::Int16 => integer::<Int16Type>(),
        DataType::Int32 => integer::<Int32Type>(),
        DataType::Int64 => integer::<Int64Type>(),
        DataType::UInt8 => integer::<UInt8Type>(),
        DataType::UInt16 => integer::<UInt16Type>(),
        DataType::UInt32 => integer::<UInt32Type>(),
        DataType::UInt64 => integer::<UInt64Type>(),
        DataType::Float32 => match number {
            Number::Float => Primitive::<Float32Type, _>::boxed(as_is, shortest_float),
            Number::Double => Primitive::<Float32Type, _>::boxed(as_is, narrow_float),
            Number::Decimal => Primitive::<Float32Type, _>::boxed(as_is, move |cell| {
                decimal::text_decimal(cell, numeric_nan)?;
                exact_float(cell)
            }),
            Number::Exact => Primitive::<Float32Type, _>::boxed(as_is, exact_float),
        },
        DataType::Float64 => match number {
            Number::Float => {
                Primitive::<Float64Type, _>::boxed(as_is, |cell| shortest_float(cell).map(f64::from))
            }
            Number::Double => Primitive::<Float64Type, _>::boxed(as_is, shortest_double),
            Number::Decimal => {
                let mut losses = losses.clone();
                let read = move |cell: &[u8]| decimal::text_double(cell, numeric_nan, &mut losses);
                Primitive::<Float64Type, _>::boxed(as_is, read)
            }
            Number::Exact => Primitive::<Float64Type, _>::boxed(as_is, double),
        },
        DataType::Decimal128(precision, scale) => {
            let to = DecimalType { precision, scale, numeric_nan };
            Primitive::<Decimal128Type, _>::boxed(as_is, move |cell| to.text(cell))
        }
        DataType::Decimal256(precision, scale) => {
            let to = DecimalType { precision, scale, numeric_nan };
            Primitive::<Decimal256Type, _>::boxed(as_is, move |cell| to.text(cell))
        }
        _ => return None,
    })
}

/// Whether a text that was read as infinity or NaN says so itself, or is a number that overflowed.
fn is_named(text: &str) -> bool {
    // "inf", "infinity" and "nan" all have it, and no number does.
    text.bytes().any(|byte| byte.eq_ignore_ascii_case(&b'n'))
}

/// float4's text is the shortest that gives the same float back.
pub fn shortest_float(cell: &[u8]) -> Result<f32, Misfit> {
    let text = utf8(cell)?;
    let value: f32 = text.parse().map_err(|_| not("a number", text))?;
    if value.is_finite() || is_named(text) { Ok(value) } else { Err(no_float32(text)) }
}

/// float8's text is the shortest that gives the same double back.
pub fn shortest_double(cell: &[u8]) -> Result<f64, Misfit> {
    let text = utf8(cell)?;
    let value: f64 = text.parse().map_err(|_| not("a number", text))?;
    if value.is_finite() || is_named(text) { Ok(value) } else { Err(decimal::beyond_double()) }
}

/// The float that is the same number as a float8.
pub fn narrow_float(cell: &[u8]) -> Result<f32, Misfit> {
    let value = shortest_double(cell)?;
    #[allow(clippy::cast_possible_truncation)] // what is lost is seen in the next line
    let float = value as f32;
    if f64::from(float).to_bits() == value.to_bits() || value.is_nan() {
        return Ok(float);
    }
    Err(no_float32(utf8(cell)?))
}

/// The float that is the very number that the text spells.
pub fn exact_float(cell: &[u8]) -> Result<f32, Misfit> {
    let text = utf8(cell)?;
    let value = shortest_float(cell)?;
    // 149 decimals spell every float32 in full.
    if is_named(text) || decimal::is_same_number(text, &format!("{value:.149}")) {
        return Ok(value);
    }
    Err(no_float32(text))
}

#[cold]
fn no_float32(text: &str) -> Misfit {
    Misfit::with_hint(
        format!("{text} has no exact float32"),
        "ask for a wider type: schema={\"<column>\": \"float64\"}",
    )
}

/// The nearest double; but an integer, written out, that a double would round is a fault.
pub fn double(cell: &[u8]) -> Result<f64, Misfit> {
    let text = utf8(cell)?;
    let value = shortest_double(cell)?;
    if !is_whole(text) || decimal::is_same_number(text, &format!("{value:.0}")) {
        return Ok(value);
    }
    Err(Misfit::with_hint(
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

/// A UUID's sixteen bytes, from its digits with hyphens or without.
pub fn uuid(cell: &[u8]) -> Result<[u8; 16], Misfit> {
    let digits: Vec<u8> = cell.iter().copied().filter(|byte| *byte != b'-').collect();
    unhex(&digits).and_then(|bytes| bytes.try_into().ok()).map_or_else(|| Err(not("a UUID", utf8(cell)?)), Ok)
}

/// The bytes in hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)).collect()
}

/// The bytes that pairs of hexadecimal digits spell.
#[must_use]
pub fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |[high, low]: &[u8; 2]| Some(digit(*high)? << 4 | digit(*low)?);
    if rest.is_empty() { pairs.iter().map(pair).collect() } else { None }
}

/// A column of timestamps in `unit`, each of whose cells `read` gives in microseconds. `policy` is for those beyond what
/// the unit can count.
pub fn timestamps<F>(
    arrow: DataType,
    unit: TimeUnit,
    policy: Unrepresentable,
    mut read: F,
) -> Box<dyn Decoder>
where
    F: FnMut(&[u8]) -> Result<i64, Misfit> + Send + 'static,
{
    match unit {
        TimeUnit::Microsecond => Primitive::<TimestampMicrosecondType, _>::boxed(arrow, read),
        TimeUnit::Nanosecond => Primitive::<TimestampNanosecondType, _>::boxed(arrow, move |cell| {
            let microseconds = read(cell)?;
            microseconds.checked_mul(1000).ok_or_else(|| beyond(microseconds, policy))
        }),
        TimeUnit::Millisecond => Primitive::<TimestampMillisecondType, _>::boxed(arrow, move |cell| {
            whole(read(cell)?, 1000, timestamp_text)
        }),
        TimeUnit::Second => Primitive::<TimestampSecondType, _>::boxed(arrow, move |cell| {
            whole(read(cell)?, 1_000_000, timestamp_text)
        }),
    }
}

/// A column of times of day or spans `arrow`, each of whose cells `read` gives in microseconds; `None` for any other type.
pub fn times<F>(arrow: &DataType, mut read: F) -> Option<Box<dyn Decoder>>
where
    F: FnMut(&[u8]) -> Result<i64, Misfit> + Send + 'static,
{
    let as_is = arrow.clone();
    let finer = |microseconds: i64| {
        microseconds
            .checked_mul(1000)
            .ok_or_else(|| Misfit::fault("the span is beyond what nanoseconds can count"))
    };
    Some(match arrow {
        DataType::Time64(TimeUnit::Microsecond) => Primitive::<Time64MicrosecondType, _>::boxed(as_is, read),
        DataType::Time64(TimeUnit::Nanosecond) => {
            Primitive::<Time64NanosecondType, _>::boxed(as_is, move |cell| finer(read(cell)?))
        }
        DataType::Duration(TimeUnit::Microsecond) => {
            Primitive::<DurationMicrosecondType, _>::boxed(as_is, read)
        }
        DataType::Duration(TimeUnit::Nanosecond) => {
            Primitive::<DurationNanosecondType, _>::boxed(as_is, move |cell| finer(read(cell)?))
        }
        DataType::Duration(TimeUnit::Millisecond) => {
            Primitive::<DurationMillisecondType, _>::boxed(as_is, move |cell| {
                whole(read(cell)?, 1000, time_text)
            })
        }
        DataType::Duration(TimeUnit::Second) => {
            Primitive::<DurationSecondType, _>::boxed(as_is, move |cell| {
                whole(read(cell)?, 1_000_000, time_text)
            })
        }
        _ => return None,
    })
}

fn time_text(microseconds: i64) -> String {
    let mut text = if microseconds < 0 { "-" } else { "" }.to_owned();
    push_time(&mut text, microseconds.saturating_abs(), TimeUnit::Microsecond);
    text
}

/// A timestamp that nanoseconds cannot count.
#[cold]
fn beyond(microseconds: i64, policy: Unrepresentable) -> Misfit {
    match policy {
        Unrepresentable::Error => Misfit::with_hint(
            format!("{} is beyond what nanoseconds can count", timestamp_text(microseconds)),
            "ask for microseconds: schema={\"<column>\": \"timestamp[us]\"}",
        ),
        Unrepresentable::Null => out_of_range(policy),
    }
}

/// `microseconds` in a coarser unit, where nothing is lost.
fn whole(microseconds: i64, unit: i64, shown: fn(i64) -> String) -> Result<i64, Misfit> {
    if microseconds % unit == 0 {
        return Ok(microseconds / unit);
    }
    Err(Misfit::with_hint(
        format!("{} has a finer fraction than the wanted type", shown(microseconds)),
        "ask for microseconds, such as schema={\"<column>\": \"timestamp[us]\"}",
    ))
}

/// A decoder that reads text, over cells in another form, each of which `render` appends as text.
pub struct Rendered<F> {
    render: F,
    inner: Box<dyn Decoder>,
    texts: CellBuffer,
}

impl<F: Fn(&[u8], &mut Vec<u8>) -> Result<(), Misfit> + Send + 'static> Rendered<F> {
    /// `inner` over what `render` appends.
    pub fn boxed(render: F, inner: Box<dyn Decoder>) -> Box<dyn Decoder> {
        Box::new(Self { render, inner, texts: CellBuffer::default() })
    }
}

impl<F: Fn(&[u8], &mut Vec<u8>) -> Result<(), Misfit> + Send> Decoder for Rendered<F> {
    fn decode(&mut self, cells: Cells<'_>) -> Result<(), CellFault> {
        self.texts.clear();
        for cell in cells.iter() {
            match cell {
                Some(cell) => self.texts.render(|to| (self.render)(cell, to))?,
                None => self.texts.push_null(),
            }
        }
        self.inner.decode(self.texts.cells())
    }

    fn finish(&mut self) -> ArrayRef {
        self.inner.finish()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
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
        assert_eq!(narrow_float(b"1e+20").ok(), None);
        assert_eq!(narrow_float(b"0.5"), Ok(0.5));
    }

    #[test]
    fn uuids() {
        assert_eq!(uuid(b"00000000-0000-0000-0000-0000000000ff").map(|bytes| bytes[15]), Ok(255));
        assert!(uuid(b"0").is_err());
    }
}
