//! Values as texts: dates and times as SQLite's own functions write and read them, and numbers in full.

use arrow_schema::TimeUnit;
use longshore_source::fit;
use longshore_values::calendar::{DAY, Temporal, parse, push_time_micros};
use longshore_values::{Item, Misfit, push_date, push_number, push_period, push_time, uuid};

use super::encode::Encoded;
use crate::cell::{Cell, real_text};
use crate::datetime::push_timestamp;
use crate::types::Class;

/// Writes `item`, which is neither text nor bytes.
pub(super) fn write(item: &Item<'_>, text: &mut String) -> Result<(), Misfit> {
    text.clear();
    match item {
        Item::Float(value) => real(f64::from(*value), text)?,
        Item::Double(value) => real(*value, text)?,
        Item::Uuid(bytes) => text.push_str(&uuid(bytes)),
        Item::Date(days) => date(i64::from(*days), text)?,
        Item::Time(value, unit) => time(*value, *unit, text)?,
        Item::Timestamp(value, unit) => timestamp(*value, *unit, text)?,
        Item::TimestampTz(value, unit) => timestamp_tz(*value, *unit, text)?,
        // As SQLite's functions take a span.
        Item::Duration(value, unit) => {
            let length = value.checked_abs().ok_or_else(|| fit::wrong_type(item))?;
            if *value < 0 {
                text.push('-');
            }
            push_time(text, length, *unit);
        }
        Item::Interval(months, days, nanoseconds) => {
            push_period(text, *months, *days, *nanoseconds, TimeUnit::Nanosecond);
        }
        _ if push_number(text, item) => {}
        _ => return Err(fit::wrong_type(item)),
    }
    Ok(())
}

/// `item` in a column of dates or times.
#[inline]
pub(super) fn temporal<'a>(class: Class, item: &Item<'a>, text: &'a mut String) -> Encoded<'a> {
    text.clear();
    match (class, item) {
        (_, Item::Text(given)) => return temporal_text(class, given),
        (Class::Date, Item::Date(days)) => date(i64::from(*days), text)?,
        (Class::Date, Item::Timestamp(value, unit)) => date(fit::midnight(*value, *unit)?, text)?,
        (Class::Timestamp, Item::Date(days)) => {
            date(i64::from(*days), text)?;
            text.push_str(" 00:00:00");
        }
        (Class::Timestamp, Item::Timestamp(value, unit)) => timestamp(*value, *unit, text)?,
        (Class::TimestampTz, Item::TimestampTz(value, unit)) => timestamp_tz(*value, *unit, text)?,
        (Class::Time, Item::Time(value, unit)) => time(*value, *unit, text)?,
        _ => return Err(fit::wrong_type(item)),
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
        _ => Err(fit::not_iso(class == Class::TimestampTz)),
    }
}

fn date(days: i64, text: &mut String) -> Result<(), Misfit> {
    if push_date(text, days) { Ok(()) } else { Err(beyond()) }
}

fn time(value: i64, unit: TimeUnit, text: &mut String) -> Result<(), Misfit> {
    let at = fit::microseconds(value, unit)?;
    if !(0..DAY).contains(&at) {
        return Err(Misfit::with_hint(
            "it is not a time of day",
            "write it as a span, into a column of TEXT",
        ));
    }
    push_time_micros(text, at);
    Ok(())
}

fn timestamp(value: i64, unit: TimeUnit, text: &mut String) -> Result<(), Misfit> {
    if push_timestamp(text, fit::microseconds(value, unit)?) { Ok(()) } else { Err(beyond()) }
}

#[cold]
fn beyond() -> Misfit {
    fit::beyond("SQLite")
}

fn timestamp_tz(value: i64, unit: TimeUnit, text: &mut String) -> Result<(), Misfit> {
    timestamp(value, unit, text)?;
    text.push_str("+00:00");
    Ok(())
}

fn real(value: f64, text: &mut String) -> Result<(), Misfit> {
    if value.is_nan() {
        return Err(fit::not_finite("SQLite"));
    }
    text.push_str(&real_text(value));
    Ok(())
}
