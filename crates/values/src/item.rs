//! One value on its way into a database.

use std::fmt::Write;

use arrow_array::{ArrayRef, StructArray};
use arrow_buffer::i256;
use arrow_schema::TimeUnit;

use crate::calendar::{push_date, push_time, push_timestamp};

/// A value of an Arrow array, in the fewest forms that keep it whole.
#[derive(Clone, Debug)]
pub enum Item<'a> {
    /// NULL.
    Null,
    /// True or false.
    Bool(bool),
    /// An integer with a sign.
    Int(i64),
    /// An integer without a sign.
    UInt(u64),
    /// A float of 32 bits or of 16.
    Float(f32),
    /// A double.
    Double(f64),
    /// An integer and the number of its digits after the point.
    Decimal(i128, i8),
    /// A decimal of more than 38 digits.
    WideDecimal(i256, i8),
    /// Text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A UUID's sixteen bytes.
    Uuid(&'a [u8; 16]),
    /// Days since 1970-01-01.
    Date(i32),
    /// Time since midnight.
    Time(i64, TimeUnit),
    /// Time since 1970-01-01 00:00, without a zone.
    Timestamp(i64, TimeUnit),
    /// Time since 1970-01-01 00:00 UTC.
    TimestampTz(i64, TimeUnit),
    /// A span of time.
    Duration(i64, TimeUnit),
    /// A span of months, days and nanoseconds.
    Interval(i32, i32, i64),
    /// The values of a list, in order.
    List(ArrayRef),
    /// A row of a struct.
    Row(&'a StructArray, usize),
}

/// Units of `unit` in a second.
#[must_use]
pub fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// `value` in microseconds; `None` where it is not a whole number of them, or beyond 64 bits.
#[inline]
#[must_use]
pub fn microseconds(value: i64, unit: TimeUnit) -> Option<i64> {
    match unit {
        TimeUnit::Microsecond => Some(value),
        TimeUnit::Nanosecond => (value % 1_000 == 0).then_some(value / 1_000),
        TimeUnit::Millisecond => value.checked_mul(1_000),
        TimeUnit::Second => value.checked_mul(1_000_000),
    }
}

/// The day of a timestamp at midnight, counted from 1970-01-01; `None` for one with a time of day.
#[inline]
#[must_use]
pub fn whole_day(value: i64, unit: TimeUnit) -> Option<i64> {
    let per_day = per_second(unit) * 86_400;
    (value % per_day == 0).then_some(value / per_day)
}

/// Writes the digits of an exact number: `-12.50`, and with zeros for a negative scale; `false` for any other value, of which
/// nothing is written.
pub fn push_number(text: &mut String, item: &Item<'_>) -> bool {
    // A String takes all that is written.
    let _ = match item {
        Item::Int(value) => write!(text, "{value}"),
        Item::UInt(value) => write!(text, "{value}"),
        Item::Decimal(value, scale) => return push_digits(text, *value, *scale),
        Item::WideDecimal(value, scale) => {
            push_decimal(text, &value.to_string(), *scale);
            Ok(())
        }
        _ => return false,
    };
    true
}

/// Writes a decimal without a text of its own for its digits, which makes it faster.
fn push_digits(text: &mut String, digits: i128, scale: i8) -> bool {
    let (Ok(places), Ok(magnitude)) = (usize::try_from(scale), u64::try_from(digits.unsigned_abs())) else {
        push_decimal(text, &digits.to_string(), scale);
        return true;
    };
    if digits < 0 {
        text.push('-');
    }
    let width = places + 1;
    let _ = write!(text, "{magnitude:0width$}");
    if places > 0 {
        text.insert(text.len() - places, '.');
    }
    true
}

/// Writes a decimal's digits with their point, and with zeros for a negative scale.
fn push_decimal(text: &mut String, digits: &str, scale: i8) {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    text.push_str(sign);
    let Ok(scale) = usize::try_from(scale) else {
        text.push_str(digits);
        let zeros = if digits == "0" { 0 } else { usize::from(scale.unsigned_abs()) };
        text.extend(std::iter::repeat_n('0', zeros));
        return;
    };
    if scale == 0 {
        text.push_str(digits);
        return;
    }
    let whole = digits.len().saturating_sub(scale);
    text.push_str(if whole == 0 { "0" } else { &digits[..whole] });
    text.push('.');
    text.extend(std::iter::repeat_n('0', scale.saturating_sub(digits.len())));
    text.push_str(&digits[whole..]);
}

/// Writes a span of time in the form of ISO 8601: `P14M3DT-1.5S`. A sign is that of its own part, as PostgreSQL has it.
pub fn push_period(text: &mut String, months: i32, days: i32, value: i64, unit: TimeUnit) {
    text.push('P');
    for (count, letter) in [(months, 'M'), (days, 'D')] {
        if count != 0 {
            text.push_str(&count.to_string());
            text.push(letter);
        }
    }
    if value == 0 && text.len() > 1 {
        return;
    }
    let per_second = per_second(unit).unsigned_abs();
    let (seconds, fraction) = (value.unsigned_abs() / per_second, value.unsigned_abs() % per_second);
    text.push_str(if value < 0 { "T-" } else { "T" });
    text.push_str(&seconds.to_string());
    if fraction != 0 {
        let digits = per_second.ilog10() as usize;
        text.push('.');
        text.push_str(format!("{fraction:0digits$}").trim_end_matches('0'));
    }
    text.push('S');
}

impl Item<'_> {
    /// Whether it is a number, or true or false.
    #[must_use]
    pub fn is_number(&self) -> bool {
        let is_exact =
            matches!(self, Self::Int(_) | Self::UInt(_) | Self::Decimal(..) | Self::WideDecimal(..));
        is_exact || matches!(self, Self::Bool(_) | Self::Float(_) | Self::Double(_))
    }

    /// The digits of an exact number, as [`push_number`] writes them.
    #[must_use]
    pub fn digits(&self) -> Option<String> {
        let mut digits = String::new();
        push_number(&mut digits, self).then_some(digits)
    }

    /// The value in words for an error: short, and without what a secret would show of itself in full.
    #[must_use]
    pub fn show(&self) -> String {
        let mut text = String::new();
        match self {
            Self::Null => return "NULL".into(),
            Self::Bool(value) => return value.to_string(),
            Self::Float(value) => return value.to_string(),
            Self::Double(value) => return value.to_string(),
            Self::Int(_) | Self::UInt(_) | Self::Decimal(..) | Self::WideDecimal(..) => {
                push_number(&mut text, self);
            }
            Self::Text(value) => return format!("{:?}", shorten(value)),
            Self::Bytes(value) => return format!("{} bytes", value.len()),
            Self::Uuid(value) => return format!("the UUID {}", uuid(value)),
            Self::Date(days) => {
                if !push_date(&mut text, i64::from(*days)) {
                    return format!("the day {days} from 1970-01-01");
                }
            }
            Self::Time(value, unit) => push_time(&mut text, *value, *unit),
            Self::Timestamp(value, unit) | Self::TimestampTz(value, unit) => {
                if !push_timestamp(&mut text, *value, *unit) {
                    return format!("the timestamp {value}{unit:?} since 1970-01-01");
                }
                if matches!(self, Self::TimestampTz(..)) {
                    text.push_str(" UTC");
                }
            }
            Self::Duration(value, unit) => return format!("a span of {value} {unit:?}s"),
            Self::Interval(months, days, nanoseconds) => {
                return format!("{months} months {days} days {nanoseconds} ns");
            }
            Self::List(values) => return format!("a list of {}", values.len()),
            Self::Row(..) => return "a struct".into(),
        }
        text
    }
}

/// A UUID with its hyphens, in lower case.
#[must_use]
pub fn uuid(bytes: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or_default());
        }
    }
    text
}

/// The first forty characters, and a mark where there are more.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(digits: &str, scale: i8) -> String {
        let mut text = String::new();
        push_decimal(&mut text, digits, scale);
        text
    }

    #[test]
    fn decimals_keep_every_digit() {
        let cases = [
            ("-1250", 2, "-12.50"),
            ("5", 3, "0.005"),
            ("-5", 1, "-0.5"),
            ("0", 2, "0.00"),
            ("12", 0, "12"),
            ("12", -3, "12000"),
            ("0", -3, "0"),
        ];
        for (digits, scale, text) in cases {
            let mut written = "x".to_owned();
            assert!(push_number(&mut written, &Item::Decimal(digits.parse().unwrap(), scale)));
            assert_eq!(
                (decimal(digits, scale).as_str(), written.as_str()),
                (text, format!("x{text}").as_str())
            );
        }
    }

    #[test]
    fn spans_have_the_parts_that_there_are() {
        let period = |months, days, value, unit| {
            let mut text = String::new();
            push_period(&mut text, months, days, value, unit);
            text
        };
        assert_eq!(period(14, -3, -1_500, TimeUnit::Millisecond), "P14M-3DT-1.5S");
        assert_eq!(period(0, 1, 0, TimeUnit::Nanosecond), "P1D");
        assert_eq!(period(0, 0, 0, TimeUnit::Second), "PT0S");
        assert_eq!(period(0, 0, 1, TimeUnit::Nanosecond), "PT0.000000001S");
        assert_eq!(period(0, 0, i64::MIN, TimeUnit::Second), "PT-9223372036854775808S");
    }

    #[test]
    fn microseconds_are_exact_or_none() {
        assert_eq!(microseconds(1_000, TimeUnit::Nanosecond), Some(1));
        assert_eq!(microseconds(1_001, TimeUnit::Nanosecond), None);
        assert_eq!(microseconds(i64::MAX, TimeUnit::Second), None);
    }
}
