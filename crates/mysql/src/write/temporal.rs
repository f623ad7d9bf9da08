//! Dates and times of a column.

use longshore_cells::calendar::{DAY, SECOND, parse_date, parse_time};
use longshore_cells::{Item, microseconds, push_clock, push_date, push_timestamp, whole_day};
use longshore_core::{Error, Result};

use super::encode::{Moments, refused};
use super::load::Page;
use crate::temporal::{MAX_TIME, unknown_zone};

/// The moments that a TIMESTAMP holds: from 1970-01-01 00:00:01 to 2038-01-19 03:14:07.999999, in UTC.
const FIRST: i64 = SECOND;
const LAST: i64 = (1 << 31) * SECOND - 1;

/// Types of dates and times, with the digits of the second's fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Date,
    DateTime(u8),
    Timestamp(u8),
    Time(u8),
}

pub(super) fn put(
    item: &Item<'_>,
    moment: Moment,
    moments: Moments,
    page: &mut Page,
    room: &mut String,
) -> Result<()> {
    room.clear();
    match moment {
        Moment::Date => {
            if !push_date(room, date(item)?) {
                return Err(no_such(item));
            }
        }
        Moment::DateTime(digits) => {
            let at = in_digits(date_time(item, moments)?, digits, item)?;
            push_moment(at, item, room)?;
        }
        Moment::Timestamp(digits) => {
            let at = in_digits(instant(item)?, digits, item)?;
            let offset = moments.offset.ok_or_else(unknown_zone)?;
            push_moment(at + offset, item, room)?;
        }
        Moment::Time(digits) => {
            let time = in_digits(span(item)?, digits, item)?;
            push_time(time, room);
        }
    }
    page.plain(room);
    Ok(())
}

fn push_moment(at: i64, item: &Item<'_>, room: &mut String) -> Result<()> {
    if push_timestamp(room, at, arrow_schema::TimeUnit::Microsecond) { Ok(()) } else { Err(no_such(item)) }
}

fn push_time(time: i64, room: &mut String) {
    if time < 0 {
        room.push('-');
    }
    push_clock(room, time.abs(), arrow_schema::TimeUnit::Microsecond);
}

#[cold]
fn no_such(item: &Item<'_>) -> Error {
    Error::data(format!("{} is not a date that MySQL has", item.shown()))
        .with_hint("its years have four digits, 0000 to 9999")
}

#[cold]
fn misfit(item: &Item<'_>) -> Error {
    Error::data(format!("{} does not fit", item.shown()))
}

/// Days since 1970-01-01.
fn date(item: &Item<'_>) -> Result<i64> {
    match item {
        Item::Date(days) => Ok(i64::from(*days)),
        Item::Timestamp(value, unit) => {
            whole_day(*value, *unit).ok_or_else(|| misfit(item).with_hint("a DATE has no time of day"))
        }
        Item::Text(text) => parsed_date(text).ok_or_else(|| no_such(item)),
        _ => Err(refused(item)),
    }
}

fn parsed_date(text: &str) -> Option<i64> {
    (text.len() == 10).then(|| parse_date(text, false))?
}

fn parsed_clock(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let is_clock = text.len() >= 8 && bytes.get(2) == Some(&b':') && bytes.get(5) == Some(&b':');
    let is_real = bytes.get(6).is_some_and(|tens| *tens < b'6');
    (is_clock && is_real).then(|| parse_time(text))?
}

/// `YYYY-MM-DD HH:MM:SS[.ffffff]`, with a T in the middle as well.
fn parsed_moment(text: &str) -> Option<i64> {
    let (date, time) = text.split_once([' ', 'T'])?;
    let time = parsed_clock(time).filter(|time| *time < DAY)?;
    parsed_date(date).map(|days| days * DAY + time)
}

/// `[-]HH:MM:SS[.ffffff]`, the hours with two digits or three.
fn parsed_span(text: &str) -> Option<i64> {
    let (sign, clock) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (hours, _) = clock.split_once(':')?;
    let rest = parsed_clock(&format!("00{}", &clock[hours.len()..]))?;
    let hours = (2..=3).contains(&hours.len()).then(|| longshore_cells::calendar::number(hours))??;
    Some(sign * (hours * 3600 * SECOND + rest))
}

fn date_time(item: &Item<'_>, moments: Moments) -> Result<i64> {
    match item {
        Item::Timestamp(value, unit) => microseconds(*value, *unit).ok_or_else(|| finer(item)),
        Item::Instant(value, unit) if moments.as_utc => {
            microseconds(*value, *unit).ok_or_else(|| finer(item))
        }
        Item::Date(days) => Ok(i64::from(*days) * DAY),
        Item::Text(text) => {
            let days = parsed_date(text).map(|days| days * DAY);
            parsed_moment(text).or(days).ok_or_else(|| no_such(item))
        }
        _ => Err(refused(item)),
    }
}

fn instant(item: &Item<'_>) -> Result<i64> {
    let Item::Instant(value, unit) = item else { return Err(refused(item)) };
    let at = microseconds(*value, *unit).ok_or_else(|| finer(item))?;
    if (FIRST..=LAST).contains(&at) {
        return Ok(at);
    }
    Err(misfit(item).with_hint(
        "TIMESTAMP ends at 1970 and 2038; a new table takes such values in UTC with \
         types={\"<column>\": \"datetime(6)\"}",
    ))
}

fn span(item: &Item<'_>) -> Result<i64> {
    let span = match item {
        Item::Time(value, unit) | Item::Duration(value, unit) => {
            microseconds(*value, *unit).ok_or_else(|| finer(item))?
        }
        Item::Interval(0, days, nanoseconds) if nanoseconds % 1000 == 0 => {
            i64::from(*days) * DAY + nanoseconds / 1000
        }
        Item::Text(text) => parsed_span(text).ok_or_else(|| misfit(item))?,
        Item::Interval(..) => return Err(misfit(item)),
        _ => return Err(refused(item)),
    };
    if !(-MAX_TIME..=MAX_TIME).contains(&span) {
        return Err(misfit(item).with_hint("TIME ends at 838:59:59: write a number of seconds"));
    }
    Ok(span)
}

#[cold]
fn finer(item: &Item<'_>) -> Error {
    misfit(item).with_hint("MySQL counts microseconds, in years of four digits: round \"<column>\" to them")
}

/// Refuses what the server would round.
fn in_digits(value: i64, digits: u8, item: &Item<'_>) -> Result<i64> {
    let unit = 10_i64.pow(u32::from(6 - digits.min(6)));
    if value % unit == 0 {
        return Ok(value);
    }
    let hint = format!(
        "the column has {digits} digits of the second's fraction: make it (6), or round \"<column>\""
    );
    Err(misfit(item).with_hint(hint))
}

#[cfg(test)]
mod tests {
    use arrow_schema::TimeUnit;

    use crate::write::load::Form;

    use super::*;

    fn cell(item: &Item<'_>, moment: Moment) -> Option<String> {
        let moments = Moments { offset: Some(3600 * SECOND), as_utc: false };
        let mut page = Page::new(Form::File);
        put(item, moment, moments, &mut page, &mut String::new()).ok()?;
        Some(String::from_utf8(page.bytes).unwrap())
    }

    #[test]
    fn moments_are_exact() {
        for (item, moment, text) in [
            (Item::Date(0), Moment::Date, "1970-01-01"),
            (Item::Timestamp(86_400, TimeUnit::Second), Moment::Date, "1970-01-02"),
            (Item::Text("2024-02-29"), Moment::Date, "2024-02-29"),
            (Item::Text("2024-02-29T10:00:00.5"), Moment::DateTime(1), "2024-02-29 10:00:00.5"),
            (Item::Timestamp(1, TimeUnit::Microsecond), Moment::DateTime(6), "1970-01-01 00:00:00.000001"),
            (Item::Instant(1, TimeUnit::Second), Moment::Timestamp(0), "1970-01-01 01:00:01"),
            (Item::Duration(-90_500, TimeUnit::Millisecond), Moment::Time(1), "-00:01:30.5"),
            (Item::Interval(0, 2, 0), Moment::Time(0), "48:00:00"),
            (Item::Text("-838:59:59"), Moment::Time(0), "-838:59:59"),
        ] {
            assert_eq!(cell(&item, moment).unwrap(), text, "{item:?}");
        }
    }

    #[test]
    fn what_would_be_another_moment_is_refused() {
        for (item, moment) in [
            (Item::Timestamp(86_401, TimeUnit::Second), Moment::Date),
            (Item::Text("2023-02-29"), Moment::Date),
            (Item::Text("2023-2-9"), Moment::Date),
            (Item::Text("2024-02-29 10:00:60"), Moment::DateTime(0)),
            (Item::Text("2024-02-29 24:00:00"), Moment::DateTime(0)),
            (Item::Timestamp(1, TimeUnit::Nanosecond), Moment::DateTime(6)),
            (Item::Timestamp(1, TimeUnit::Millisecond), Moment::DateTime(0)),
            (Item::Instant(1, TimeUnit::Second), Moment::DateTime(6)),
            (Item::Timestamp(1, TimeUnit::Second), Moment::Timestamp(6)),
            (Item::Instant(0, TimeUnit::Second), Moment::Timestamp(6)),
            (Item::Instant(1 << 31, TimeUnit::Second), Moment::Timestamp(6)),
            (Item::Duration(3_020_400, TimeUnit::Second), Moment::Time(6)),
            (Item::Interval(1, 0, 0), Moment::Time(6)),
            (Item::Text("1:2:3"), Moment::Time(6)),
            (Item::Text("é0:00:00"), Moment::Time(6)),
        ] {
            assert!(cell(&item, moment).is_none(), "{item:?}");
        }
    }
}
