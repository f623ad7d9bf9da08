//! Dates, times and timestamps in the text form of `DateStyle` ISO.

use longshore_wire::Odd;

use super::binary::DAY;
use super::odds::{Odds, infinite, out_of_range, time_24};
use super::text::{not, utf8};

const SECOND: i64 = 1_000_000;

/// Days from 1970-01-01 to a date of the proleptic Gregorian calendar.
///
/// Counts in years that start in March, so that the leap day is the year's last, and eras of 400 years.
pub(crate) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The year, month and day of a count of days since 1970-01-01.
pub(crate) fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

fn number(text: &str) -> Option<i64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// `YYYY-MM-DD`, the year with four digits or more.
fn parse_date(text: &str, before_christ: bool) -> Option<i64> {
    let mut parts = text.splitn(3, '-');
    let (year, month, day) = (number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?);
    let year = if before_christ { 1 - year } else { year };
    let days = (year.abs() < 10_000_000).then(|| days_from_civil(year, month, day))?;
    // A day that the month does not have comes back as another.
    (civil_from_days(days) == (year, month, day)).then_some(days)
}

/// `HH:MM:SS[.ffffff]` in microseconds, 24:00:00 included.
fn parse_time(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, ':');
    let (hours, minutes) = (number(parts.next()?)?, number(parts.next()?)?);
    let (seconds, fraction) =
        parts.next().map_or(("0", ""), |text| text.split_once('.').unwrap_or((text, "")));
    let seconds = number(seconds)?;
    if hours > 24 || minutes > 59 || seconds > 60 || fraction.len() > 6 {
        return None;
    }
    let fraction = if fraction.is_empty() { 0 } else { number(&format!("{fraction:0<6}"))? };
    Some(((hours * 60 + minutes) * 60 + seconds) * SECOND + fraction).filter(|time| *time <= DAY)
}

/// `+HH[:MM[:SS]]` in microseconds.
fn parse_offset(text: &str) -> Option<i64> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let mut seconds = 0;
    for (part, unit) in text.get(1..)?.split(':').zip([3600, 60, 1]) {
        seconds += number(part)? * unit;
    }
    Some(sign * seconds * SECOND)
}

fn strip_era(text: &str) -> (&str, bool) {
    text.strip_suffix(" BC").map_or((text, false), |text| (text, true))
}

fn is_infinite(text: &str) -> bool {
    matches!(text, "infinity" | "-infinity")
}

/// A date's days since 1970-01-01. A timestamp is one only at midnight.
pub(super) fn date(cell: &[u8], odds: Odds) -> Result<i32, Odd> {
    let text = utf8(cell)?;
    if is_infinite(text) {
        return Err(infinite(odds.infinity));
    }
    let (civil, before_christ) = strip_era(text);
    let civil = civil.strip_suffix(" 00:00:00").unwrap_or(civil);
    let days = parse_date(civil, before_christ).ok_or_else(|| not("date", text))?;
    i32::try_from(days).map_err(|_| out_of_range(odds.infinity))
}

/// A time's microseconds since midnight.
pub(super) fn time(cell: &[u8], odds: Odds) -> Result<i64, Odd> {
    let text = utf8(cell)?;
    match parse_time(text).ok_or_else(|| not("time", text))? {
        DAY => Err(time_24(odds.time_24)),
        microseconds => Ok(microseconds),
    }
}

/// A timestamp's microseconds since 1970-01-01; an instant needs an offset, a naive one must have none.
pub(super) fn timestamp(cell: &[u8], is_instant: bool, odds: Odds) -> Result<i64, Odd> {
    let text = utf8(cell)?;
    if is_infinite(text) {
        return Err(infinite(odds.infinity));
    }
    let (civil, before_christ) = strip_era(text);
    let (date, clock) = civil.split_once(' ').unwrap_or((civil, "00:00:00"));
    let (clock, offset) =
        clock.find(['+', '-']).map_or((clock, None), |at| (&clock[..at], Some(&clock[at..])));
    if offset.is_some() != is_instant {
        return Err(wrong_zone(text, is_instant));
    }
    let parsed = parse_date(date, before_christ).zip(parse_time(clock));
    let (days, time) = parsed.ok_or_else(|| not("timestamp", text))?;
    let offset = offset.map_or(Some(0), parse_offset).ok_or_else(|| not("timestamp", text))?;
    // Wide, for the clock on the wall may be beyond what its moment is not.
    let moment = i128::from(days) * i128::from(DAY) + i128::from(time) - i128::from(offset);
    i64::try_from(moment).map_err(|_| out_of_range(odds.infinity))
}

#[cold]
fn wrong_zone(text: &str, is_instant: bool) -> Odd {
    if is_instant {
        return Odd::with_hint(
            format!("{text:?} has no time zone, so it is no moment"),
            "ask for \"timestamp[us]\", or convert in the query: column AT TIME ZONE 'UTC'",
        );
    }
    Odd::with_hint(
        format!("{text:?} is a moment; without its time zone it would be another value"),
        "ask for \"timestamp[us, tz=UTC]\", or convert in the query: column AT TIME ZONE 'UTC'",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_core::ReadOptions;

    fn odds() -> Odds {
        Odds::from(&ReadOptions::default())
    }

    #[test]
    fn days_and_dates_are_each_others_inverse() {
        assert_eq!(days_from_civil(1970, 1, 1), 0);
        assert_eq!(days_from_civil(2000, 2, 29), 11_016);
        assert_eq!(civil_from_days(-719_528), (0, 1, 1));
        for days in (-3_000_000..3_000_000).step_by(997) {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), days);
        }
    }

    #[test]
    fn dates_of_all_eras() {
        assert_eq!(date(b"0001-01-01 BC", odds()), Ok(-719_528));
        assert_eq!(date(b"5874897-12-31", odds()), Ok(2_145_042_905));
        for bad in ["2023-02-29", "2023-13-01", "2023-1", "", "abc", "-2023-01-01"] {
            assert!(date(bad.as_bytes(), odds()).is_err(), "{bad}");
        }
    }

    #[test]
    fn timestamps_keep_microseconds_and_offsets() {
        assert_eq!(timestamp(b"1969-12-31 23:59:59.999999", false, odds()), Ok(-1));
        assert_eq!(timestamp(b"1970-01-01 05:30:00+05:30", true, odds()), Ok(0));
        assert_eq!(timestamp(b"1970-01-01 00:00:00.5-00:00:01", true, odds()), Ok(1_500_000));
        assert_eq!(timestamp(b"294247-01-10 05:00:54.775807+01", true, odds()), Ok(i64::MAX));
        assert!(timestamp(b"1970-01-01 00:00:00", true, odds()).is_err());
        assert!(timestamp(b"1970-01-01 00:00:00+00", false, odds()).is_err());
    }
}
