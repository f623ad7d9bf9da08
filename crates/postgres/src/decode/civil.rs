//! Dates, times and timestamps in the text form of `DateStyle` ISO.

use longshore_cells::Odd;
use longshore_cells::calendar::{DAY, SECOND, number, parse_date, parse_time};
use longshore_cells::odds::{Odds, infinite, out_of_range, time_24};
use longshore_cells::text::{not, utf8};

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
    let days = parse_date(civil, before_christ).ok_or_else(|| not("a date", text))?;
    i32::try_from(days).map_err(|_| out_of_range(odds.infinity))
}

/// A time's microseconds since midnight.
pub(super) fn time(cell: &[u8], odds: Odds) -> Result<i64, Odd> {
    let text = utf8(cell)?;
    match parse_time(text).ok_or_else(|| not("a time", text))? {
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
    let (days, time) = parsed.ok_or_else(|| not("a timestamp", text))?;
    let offset = offset.map_or(Some(0), parse_offset).ok_or_else(|| not("a timestamp", text))?;
    // Wide, for the clock on the wall may be beyond what its moment is not.
    let moment = i128::from(days) * i128::from(DAY) + i128::from(time) - i128::from(offset);
    i64::try_from(moment).map_err(|_| out_of_range(odds.infinity))
}

#[cold]
fn wrong_zone(text: &str, is_instant: bool) -> Odd {
    if is_instant {
        return Odd::with_hint(
            format!("{text:?} has no time zone, so it is not a point in time"),
            "ask for \"timestamp[us]\", or convert in the query: column AT TIME ZONE 'UTC'",
        );
    }
    Odd::with_hint(
        format!("{text:?} has a time zone; without it, it would be another value"),
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
