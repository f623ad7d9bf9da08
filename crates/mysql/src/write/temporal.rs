//! Dates and times of a column.

use arrow_schema::TimeUnit;
use longshore_source::fit;
use longshore_values::calendar::{DAY, SECOND, Temporal, parse};
use longshore_values::{Item, Misfit, push_date, push_time, push_timestamp};

use super::load::LoadBuffer;
use crate::temporal::{MAX_TIME, text_time};

/// The range of a TIMESTAMP: from 1970-01-01 00:00:01 to 2038-01-19 03:14:07.999999, in UTC.
const FIRST: i64 = SECOND;
const LAST: i64 = (1 << 31) * SECOND - 1;

/// Into a DATE.
pub(super) fn date(item: &Item<'_>, buffer: &mut LoadBuffer, scratch: &mut String) -> Result<(), Misfit> {
    let days = match item {
        Item::Date(days) => i64::from(*days),
        Item::Timestamp(value, unit) => fit::midnight(*value, *unit)?,
        Item::Text(text) => match parse(text.as_bytes()) {
            Some(Temporal::Date(days)) => i64::from(days),
            Some(Temporal::Timestamp(at)) => fit::midnight(at, TimeUnit::Microsecond)?,
            _ => return Err(fit::not_iso(false)),
        },
        _ => return Err(fit::wrong_type(item)),
    };
    scratch.clear();
    if !push_date(scratch, days) {
        return Err(beyond());
    }
    buffer.plain(scratch);
    Ok(())
}

/// Into a DATETIME whose seconds have a fraction of so many digits; a timestamp with time zone only `as_utc`.
pub(super) fn datetime(
    item: &Item<'_>,
    digits: u8,
    as_utc: bool,
    buffer: &mut LoadBuffer,
    scratch: &mut String,
) -> Result<(), Misfit> {
    let at = match item {
        Item::Timestamp(value, unit) => fit::microseconds(*value, *unit)?,
        Item::TimestampTz(value, unit) if as_utc => fit::microseconds(*value, *unit)?,
        Item::Date(days) => i64::from(*days).checked_mul(DAY).ok_or_else(beyond)?,
        Item::Text(text) => match parse(text.as_bytes()) {
            Some(Temporal::Timestamp(at)) => at,
            Some(Temporal::Date(days)) => i64::from(days) * DAY,
            _ => return Err(fit::not_iso(false)),
        },
        _ => return Err(fit::wrong_type(item)),
    };
    put_datetime(fit::in_digits(at, digits)?, buffer, scratch)
}

/// Into a TIMESTAMP, in the session's time zone, `offset` microseconds east of UTC.
pub(super) fn timestamp(
    item: &Item<'_>,
    digits: u8,
    offset: i64,
    buffer: &mut LoadBuffer,
    scratch: &mut String,
) -> Result<(), Misfit> {
    let Item::TimestampTz(value, unit) = item else { return Err(fit::wrong_type(item)) };
    let at = fit::microseconds(*value, *unit)?;
    if !(FIRST..=LAST).contains(&at) {
        return Err(Misfit::with_hint(
            "a TIMESTAMP is from 1970 to 2038",
            "a new table takes such values in UTC with types={\"<column>\": \"datetime(6)\"}",
        ));
    }
    put_datetime(fit::in_digits(at, digits)? + offset, buffer, scratch)
}

fn put_datetime(at: i64, buffer: &mut LoadBuffer, scratch: &mut String) -> Result<(), Misfit> {
    scratch.clear();
    if !push_timestamp(scratch, at, TimeUnit::Microsecond) {
        return Err(beyond());
    }
    buffer.plain(scratch);
    Ok(())
}

/// Into a TIME, which holds durations.
pub(super) fn time(
    item: &Item<'_>,
    digits: u8,
    buffer: &mut LoadBuffer,
    scratch: &mut String,
) -> Result<(), Misfit> {
    let time = match item {
        Item::Time(value, unit) | Item::Duration(value, unit) => fit::microseconds(*value, *unit)?,
        Item::Interval(0, days, nanoseconds) => {
            let time = fit::microseconds(*nanoseconds, TimeUnit::Nanosecond)?;
            i64::from(*days).checked_mul(DAY).and_then(|days| days.checked_add(time)).ok_or_else(beyond)?
        }
        Item::Text(text) => text_time(text.as_bytes()).map_err(|_| fit::wrong_type(item))?,
        _ => return Err(fit::wrong_type(item)),
    };
    if !(-MAX_TIME..=MAX_TIME).contains(&time) {
        return Err(Misfit::with_hint("a TIME ends at 838:59:59", "write a number of seconds"));
    }
    let time = fit::in_digits(time, digits)?;
    scratch.clear();
    if time < 0 {
        scratch.push('-');
    }
    push_time(scratch, time.abs(), TimeUnit::Microsecond);
    buffer.plain(scratch);
    Ok(())
}

#[cold]
fn beyond() -> Misfit {
    fit::beyond("MySQL")
}

#[cfg(test)]
mod tests {
    use arrow_schema::TimeUnit;

    use crate::write::load::Form;

    use super::*;

    type Encode = fn(&Item<'_>, &mut LoadBuffer, &mut String) -> Result<(), Misfit>;

    const DATE: Encode = date;
    const DATETIME: Encode = |item, buffer, scratch| datetime(item, 6, false, buffer, scratch);
    const DATETIME_0: Encode = |item, buffer, scratch| datetime(item, 0, false, buffer, scratch);
    const DATETIME_1: Encode = |item, buffer, scratch| datetime(item, 1, false, buffer, scratch);
    const TIMESTAMP: Encode = |item, buffer, scratch| timestamp(item, 6, 3600 * SECOND, buffer, scratch);
    const TIME: Encode = |item, buffer, scratch| time(item, 6, buffer, scratch);

    fn cell(item: &Item<'_>, encode: Encode) -> Option<String> {
        let mut buffer = LoadBuffer::new(Form::File);
        encode(item, &mut buffer, &mut String::new()).ok()?;
        Some(String::from_utf8(buffer.bytes).unwrap())
    }

    #[test]
    fn dates_and_times_are_exact() {
        for (item, encode, text) in [
            (Item::Date(0), DATE, "1970-01-01"),
            (Item::Timestamp(86_400, TimeUnit::Second), DATE, "1970-01-02"),
            (Item::Text("2024-02-29"), DATE, "2024-02-29"),
            (Item::Text("2024-02-29T10:00:00.5"), DATETIME_1, "2024-02-29 10:00:00.5"),
            (Item::Timestamp(1, TimeUnit::Microsecond), DATETIME, "1970-01-01 00:00:00.000001"),
            (Item::TimestampTz(1, TimeUnit::Second), TIMESTAMP, "1970-01-01 01:00:01"),
            (Item::Duration(-90_500, TimeUnit::Millisecond), TIME, "-00:01:30.5"),
            (Item::Interval(0, 2, 0), TIME, "48:00:00"),
            (Item::Text("-838:59:59"), TIME, "-838:59:59"),
        ] {
            assert_eq!(cell(&item, encode).unwrap(), text, "{item:?}");
        }
    }

    #[test]
    fn what_would_be_another_time_is_refused() {
        for (item, encode) in [
            (Item::Timestamp(86_401, TimeUnit::Second), DATE),
            (Item::Text("2023-02-29"), DATE),
            (Item::Text("2023-2-9"), DATE),
            (Item::Text("2024-02-29 10:00:60"), DATETIME_0),
            (Item::Text("2024-02-29 24:00:00"), DATETIME_0),
            (Item::Timestamp(1, TimeUnit::Nanosecond), DATETIME),
            (Item::Timestamp(1, TimeUnit::Millisecond), DATETIME_0),
            (Item::TimestampTz(1, TimeUnit::Second), DATETIME),
            (Item::Timestamp(1, TimeUnit::Second), TIMESTAMP),
            (Item::TimestampTz(0, TimeUnit::Second), TIMESTAMP),
            (Item::TimestampTz(1 << 31, TimeUnit::Second), TIMESTAMP),
            (Item::Duration(3_020_400, TimeUnit::Second), TIME),
            (Item::Interval(1, 0, 0), TIME),
            (Item::Text("1:2:3"), TIME),
            (Item::Text("é0:00:00"), TIME),
        ] {
            assert!(cell(&item, encode).is_none(), "{item:?}");
        }
    }
}
