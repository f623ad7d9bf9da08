//! Dates and times: ticks of 100 ns, which every one of SQL Server's types counts in whole numbers, but for `datetime`.

use std::io::Write;

use longshore_values::calendar::{self, civil_from_days};
use mssql_tds::datatypes::column_values::{SqlDateTime, SqlDateTime2, SqlSmallDateTime, SqlTime};

/// Ticks in a second, and in a day.
pub(crate) const SECOND: i64 = 10_000_000;
pub(crate) const DAY: i64 = 86_400 * SECOND;

/// The value that stands for a value that the server cannot have: beyond all of them.
pub(crate) const DAMAGED: i64 = i64::MIN;

/// The days from 0001-01-01 and from 1900-01-01 to 1970-01-01, and the days of 9999-12-31 from the first of them.
pub(crate) const FROM_YEAR_1: i64 = 719_162;
pub(crate) const FROM_1900: i64 = 25_567;
const LAST_DAY: i64 = 3_652_058;

/// The ticks of the years 1 to 9999.
pub(crate) const TICKS: std::ops::Range<i64> = -FROM_YEAR_1 * DAY..(LAST_DAY + 1 - FROM_YEAR_1) * DAY;

/// Days since 1970 of days since year 1.
pub(crate) fn date(days: u32) -> Option<i32> {
    let days = i64::from(days);
    if days > LAST_DAY { None } else { i32::try_from(days - FROM_YEAR_1).ok() }
}

/// Ticks since midnight: the client counts them, whatever its field's name says.
pub(crate) fn time(time: &SqlTime) -> Option<i64> {
    let ticks = i64::try_from(time.time_nanoseconds).ok()?;
    (ticks < DAY).then_some(ticks)
}

/// Ticks since 1970.
pub(crate) fn datetime2(value: &SqlDateTime2) -> Option<i64> {
    Some(i64::from(date(value.days)?) * DAY + time(&value.time)?)
}

/// The same of days since 1900 and three-hundredths of a second: the milliseconds that the server prints, of which it
/// makes the same three-hundredths again.
pub(crate) fn datetime(value: &SqlDateTime) -> Option<i64> {
    let days = i64::from(value.days);
    let thirds = i64::from(value.time);
    let is_day = (-53_690..=2_958_463).contains(&days) && thirds < 86_400 * 300;
    is_day.then(|| (days - FROM_1900) * DAY + (thirds * 10 + 1) / 3 * 10_000)
}

/// The same of days since 1900 and minutes.
pub(crate) fn smalldatetime(value: &SqlSmallDateTime) -> Option<i64> {
    let minutes = i64::from(value.time);
    (minutes < 1440).then(|| (i64::from(value.days) - FROM_1900) * DAY + minutes * 60 * SECOND)
}

/// Appends a date as `2025-01-02`.
pub(crate) fn write_date(days: i64, into: &mut Vec<u8>) {
    let (year, month, day) = civil_from_days(days);
    // A Vec takes all that is written.
    let _ = write!(into, "{year:04}-{month:02}-{day:02}");
}

/// Appends a time of day with `scale` digits behind the second.
pub(crate) fn write_time(ticks: i64, scale: u8, into: &mut Vec<u8>) {
    let (seconds, fraction) = (ticks / SECOND, ticks % SECOND);
    let _ = write!(into, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if scale > 0 {
        let _ = write!(into, ".{fraction:07}");
        into.truncate(into.len() - usize::from(7_u8.saturating_sub(scale)));
    }
}

/// Appends a date and a time.
pub(crate) fn write_datetime(ticks: i64, scale: u8, into: &mut Vec<u8>) {
    write_date(ticks.div_euclid(DAY), into);
    into.push(b' ');
    write_time(ticks.rem_euclid(DAY), scale, into);
}

/// Appends the same with the offset in minutes, in which it is written.
pub(crate) fn write_datetimeoffset(ticks: i64, offset: i16, scale: u8, into: &mut Vec<u8>) {
    let minutes = offset.unsigned_abs();
    write_datetime(ticks + i64::from(offset) * 60 * SECOND, scale, into);
    let sign = if offset < 0 { '-' } else { '+' };
    let _ = write!(into, " {sign}{:02}:{:02}", minutes / 60, minutes % 60);
}

/// The ticks of a time of day `11:22:33.1234567`.
pub(crate) fn parse_time(text: &str) -> Option<i64> {
    let (time, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = time.split(':').map(|part| digits(part, 2));
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?);
    let is_time = hours < 24 && minutes < 60 && seconds < 60 && parts.next().is_none();
    let significant = fraction.trim_end_matches('0');
    if !is_time || significant.len() > 7 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction: i64 = format!("{significant:0<7}").parse().ok()?;
    Some(((hours * 60 + minutes) * 60 + seconds) * SECOND + fraction)
}

/// The ticks since 1970 of a date and a time, parted by a blank or a T.
pub(crate) fn parse_datetime(text: &str) -> Option<i64> {
    let days = |text: &str| calendar::date(text.as_bytes()).map(i64::from);
    match text.split_once([' ', 'T']) {
        Some((date, time)) => Some(days(date)? * DAY + parse_time(time)?),
        None => Some(days(text)? * DAY),
    }
}

fn digits(text: &str, count: usize) -> Option<i64> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut into = Vec::new();
        write(&mut into);
        String::from_utf8(into).unwrap()
    }

    #[test]
    fn the_first_and_the_last_day_are_exact() {
        assert_eq!(show(|into| write_date(date(0).unwrap().into(), into)), "0001-01-01");
        assert_eq!(show(|into| write_date(date(3_652_058).unwrap().into(), into)), "9999-12-31");
        assert_eq!(date(3_652_059), None);
        let last =
            SqlDateTime2 { days: 3_652_058, time: SqlTime { time_nanoseconds: 863_999_999_999, scale: 7 } };
        let ticks = datetime2(&last).unwrap();
        assert_eq!(show(|into| write_datetime(ticks, 7, into)), "9999-12-31 23:59:59.9999999");
        assert_eq!(parse_datetime("9999-12-31T23:59:59.9999999"), Some(ticks));
        assert_eq!(time(&SqlTime { time_nanoseconds: 864_000_000_000, scale: 7 }), None);
    }

    #[test]
    fn three_hundredths_are_the_milliseconds_that_the_server_prints() {
        let text =
            |days, time| show(|into| write_datetime(datetime(&SqlDateTime { days, time }).unwrap(), 3, into));
        assert_eq!(text(0, 0), "1900-01-01 00:00:00.000");
        assert_eq!(text(0, 1), "1900-01-01 00:00:00.003");
        assert_eq!(text(-53_690, 2), "1753-01-01 00:00:00.007");
        assert_eq!(text(2_958_463, 25_919_999), "9999-12-31 23:59:59.997");
        // Each is nearest to its own milliseconds: it comes back.
        for thirds in 0..300_u32 {
            let at = SqlDateTime { days: 0, time: thirds };
            let ms = (datetime(&at).unwrap() + FROM_1900 * DAY) / 10_000;
            assert_eq!((ms * 3 + 5) / 10, i64::from(thirds));
        }
        assert_eq!(datetime(&SqlDateTime { days: 0, time: 25_920_000 }), None);
        assert_eq!(datetime(&SqlDateTime { days: 2_958_464, time: 0 }), None);
    }

    #[test]
    fn minutes_and_offsets_are_written_as_the_server_does() {
        let small = smalldatetime(&SqlSmallDateTime { days: 65_535, time: 1439 }).unwrap();
        assert_eq!(show(|into| write_datetime(small, 0, into)), "2079-06-06 23:59:00");
        assert_eq!(show(|into| write_datetimeoffset(0, -330, 2, into)), "1969-12-31 18:30:00.00 -05:30");
        assert_eq!(smalldatetime(&SqlSmallDateTime { days: 0, time: 1440 }), None);
    }

    #[test]
    fn texts_are_times_or_nothing() {
        assert_eq!(parse_time("00:00:00.0000001"), Some(1));
        assert_eq!(parse_time("23:59"), Some(86_340 * SECOND));
        for text in ["24:00:00", "1:00:00", "00:00:00.00000001", "00:60:00", "00:00:00:00", "", "-1:00:00"] {
            assert_eq!(parse_time(text), None, "{text}");
        }
        for text in ["2025-02-29", "2025-13-01", "25-01-01", "2025-01-01 ", "2025-01-01 x"] {
            assert_eq!(parse_datetime(text), None, "{text}");
        }
    }
}
