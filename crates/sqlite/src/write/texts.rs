//! Values as texts: dates and times as SQLite's own functions write and read them, and numbers in full.

use std::fmt::{Display, Write as _};

use arrow_schema::TimeUnit;
use longshore_values::calendar::DAY;
use longshore_values::{Item, microseconds, push_clock, push_decimal, push_period, uuid, whole_day};

use super::encode::{Encoded, Refusal, refused};
use crate::cell::{Cell, real_text};
use crate::datetime::{Temporal, parse, push_date, push_time, push_timestamp};
use crate::types::Class;

/// 0000-01-01 and the day after 9999-12-31, in days since 1970-01-01.
const YEARS: std::ops::Range<i64> = -719_528..2_932_897;

const BEYOND_YEARS: (&str, &str) =
    ("is outside the years 0 to 9999, which SQLite has", "leave it out, or write a number");

/// Writes `item`, which is neither text nor bytes.
pub(super) fn write(item: &Item<'_>, text: &mut String) -> Result<(), Refusal> {
    text.clear();
    match item {
        Item::Int(value) => push(text, value),
        Item::UInt(value) => push(text, value),
        Item::Float(value) => real(f64::from(*value), text)?,
        Item::Double(value) => real(*value, text)?,
        Item::Decimal(digits, scale) => decimal(*digits, *scale, text),
        Item::WideDecimal(digits, scale) => push_decimal(text, &digits.to_string(), *scale),
        Item::Uuid(bytes) => text.push_str(&uuid(bytes)),
        Item::Date(days) => date(i64::from(*days), text)?,
        Item::Time(value, unit) => time(*value, *unit, text)?,
        Item::Timestamp(value, unit) => timestamp(*value, *unit, text)?,
        Item::Instant(value, unit) => timestamp_tz(*value, *unit, text)?,
        Item::Duration(value, unit) => duration(*value, *unit, text)?,
        Item::Interval(months, days, nanoseconds) => {
            push_period(text, *months, *days, *nanoseconds, TimeUnit::Nanosecond);
        }
        _ => return refused("is not text", "make it text before it is written"),
    }
    Ok(())
}

fn push(text: &mut String, value: impl Display) {
    // A String takes everything.
    let _ = write!(text, "{value}");
}

/// `item` in a column of dates or times.
#[inline]
pub(super) fn temporal<'a>(class: Class, item: &Item<'a>, text: &'a mut String) -> Encoded<'a> {
    text.clear();
    match (class, item) {
        (_, Item::Text(given)) => return temporal_text(class, given),
        (Class::Date, Item::Date(days)) => date(i64::from(*days), text)?,
        (Class::Date, Item::Timestamp(value, unit)) => midnight(*value, *unit, text)?,
        (Class::Timestamp, Item::Date(days)) => {
            date(i64::from(*days), text)?;
            text.push_str(" 00:00:00");
        }
        (Class::Timestamp, Item::Timestamp(value, unit)) => timestamp(*value, *unit, text)?,
        (Class::TimestampTz, Item::Instant(value, unit)) => timestamp_tz(*value, *unit, text)?,
        (Class::Time, Item::Time(value, unit)) => time(*value, *unit, text)?,
        (Class::Timestamp, Item::Instant(..)) => {
            return refused(
                "has a time zone, and the column's values have none",
                "take the zone off, or write into a column of TIMESTAMP WITH TIME ZONE",
            );
        }
        (Class::TimestampTz, Item::Timestamp(..) | Item::Date(_)) => {
            return refused("has no time zone, and the column's values have one", "give it a zone");
        }
        _ => return refused(misfit(class), "write it into a column for it"),
    }
    Ok(Cell::Text(text.as_bytes()))
}

/// A text that is a date or time of `class`.
fn temporal_text(class: Class, given: &str) -> Encoded<'_> {
    match (class, parse(given.as_bytes())) {
        (Class::Date, Some(Temporal::Date(_)))
        | (Class::Timestamp, Some(Temporal::Timestamp(_) | Temporal::Date(_)))
        | (Class::TimestampTz, Some(Temporal::TimestampTz(_)))
        | (Class::Time, Some(Temporal::Time(_))) => Ok(Cell::Text(given.as_bytes())),
        _ => refused(misfit(class), "give it in ISO 8601, such as 2024-05-01 12:30:00"),
    }
}

fn misfit(class: Class) -> &'static str {
    match class {
        Class::Date => "is not a date",
        Class::Timestamp => "is not a date and time without a zone",
        Class::TimestampTz => "is not a date and time with a zone",
        _ => "is not a time of day to the microsecond",
    }
}

fn date(days: i64, text: &mut String) -> Result<(), Refusal> {
    if !YEARS.contains(&days) {
        return refused(BEYOND_YEARS.0, BEYOND_YEARS.1);
    }
    push_date(text, days);
    Ok(())
}

fn midnight(value: i64, unit: TimeUnit, text: &mut String) -> Result<(), Refusal> {
    match whole_day(value, unit) {
        Some(days) => date(days, text),
        None => refused("has a time of day", "write it into a column of TIMESTAMP"),
    }
}

fn time(value: i64, unit: TimeUnit, text: &mut String) -> Result<(), Refusal> {
    match microseconds(value, unit) {
        Some(at) if (0..DAY).contains(&at) => {
            push_time(text, at);
            Ok(())
        }
        _ => refused(misfit(Class::Time), "round it to microseconds of one day"),
    }
}

/// As SQLite's functions take a span: `-HH:MM:SS`, with the fraction that there is.
fn duration(value: i64, unit: TimeUnit, text: &mut String) -> Result<(), Refusal> {
    let Some(length) = value.checked_abs() else {
        return refused("is beyond 64 bits without its sign", "leave it out");
    };
    if value < 0 {
        text.push('-');
    }
    push_clock(text, length, unit);
    Ok(())
}

fn timestamp(value: i64, unit: TimeUnit, text: &mut String) -> Result<(), Refusal> {
    match (microseconds(value, unit), unit) {
        (Some(at), _) if YEARS.contains(&at.div_euclid(DAY)) => {
            push_timestamp(text, at);
            Ok(())
        }
        (None, TimeUnit::Nanosecond) => refused("is finer than a microsecond", "round it, or write a number"),
        _ => refused(BEYOND_YEARS.0, BEYOND_YEARS.1),
    }
}

fn timestamp_tz(value: i64, unit: TimeUnit, text: &mut String) -> Result<(), Refusal> {
    timestamp(value, unit, text)?;
    text.push_str("+00:00");
    Ok(())
}

fn real(value: f64, text: &mut String) -> Result<(), Refusal> {
    if value.is_nan() {
        return refused("is not a number", "give NULL where NULL is meant");
    }
    text.push_str(&real_text(value));
    Ok(())
}

fn decimal(digits: i128, scale: i8, text: &mut String) {
    // Beyond 64 bits the digits are slower to find.
    match u64::try_from(digits.unsigned_abs()) {
        Ok(magnitude) => push(text, magnitude),
        Err(_) => push(text, digits.unsigned_abs()),
    }
    match usize::try_from(scale) {
        Ok(0) => {}
        Ok(scale) => {
            while text.len() <= scale {
                text.insert(0, '0');
            }
            text.insert(text.len() - scale, '.');
        }
        Err(_) if digits == 0 => {}
        Err(_) => text.extend(std::iter::repeat_n('0', usize::from(scale.unsigned_abs()))),
    }
    if digits < 0 {
        text.insert(0, '-');
    }
}
