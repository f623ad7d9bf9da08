//! Dates and times of day in text, and days counted in the proleptic Gregorian calendar.

use std::fmt::Write;

use arrow_schema::TimeUnit;

use crate::per_second;

/// A second in microseconds.
pub const SECOND: i64 = 1_000_000;

/// A day in microseconds.
pub const DAY: i64 = 86_400 * SECOND;

/// Days from 1970-01-01 to a date of the proleptic Gregorian calendar.
///
/// Counts in years that start in March, so that the leap day is the year's last, and eras of 400 years.
#[must_use]
#[inline]
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The year, month and day of a count of days since 1970-01-01.
#[must_use]
#[inline]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // below 146,097
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    // Within an era 32 bits are enough, and are divided faster.
    let day_of_era = shifted.rem_euclid(146_097) as u32;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + i64::from(year_of_era + u32::from(month <= 2)), month.into(), day.into())
}

/// A timestamp in microseconds since 1970-01-01, as an error shows it.
#[must_use]
pub fn timestamp_text(microseconds: i64) -> String {
    let mut text = String::new();
    if push_timestamp(&mut text, microseconds, TimeUnit::Microsecond) {
        return text;
    }
    let (year, month, day) = civil_from_days(microseconds.div_euclid(DAY));
    let _ = write!(text, "{year:04}-{month:02}-{day:02} ");
    push_time(&mut text, microseconds.rem_euclid(DAY), TimeUnit::Microsecond);
    text
}

/// Writes `YYYY-MM-DD`; `false` for a year that is not of four digits, of which nothing is written.
#[must_use]
pub fn push_date(text: &mut String, days: i64) -> bool {
    let (year, month, day) = civil_from_days(days);
    if !(0..=9999).contains(&year) {
        return false;
    }
    let ([y1, y2], [y3, y4]) = (digits(year / 100), digits(year % 100));
    let ([m1, m2], [d1, d2]) = (digits(month), digits(day));
    push_ascii(text, &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2]);
    true
}

/// Writes a time of day in microseconds, with six digits of a fraction where there is one.
pub fn push_time_micros(text: &mut String, microseconds: i64) {
    let (seconds, fraction) = (microseconds / SECOND, microseconds % SECOND);
    push_seconds(text, seconds);
    if fraction != 0 {
        let ([f1, f2], [f3, f4], [f5, f6]) =
            (digits(fraction / 10_000), digits(fraction / 100 % 100), digits(fraction % 100));
        push_ascii(text, &[b'.', f1, f2, f3, f4, f5, f6]);
    }
}

/// Writes `HH:MM:SS`, with as many digits of the second's fraction as there are. Hours may be beyond 24.
pub fn push_time(text: &mut String, value: i64, unit: TimeUnit) {
    let per_second = per_second(unit);
    push_seconds(text, value.div_euclid(per_second));
    let (mut fraction, mut places) = (value.rem_euclid(per_second), per_second.ilog10() as usize);
    if fraction == 0 {
        return;
    }
    while fraction % 10 == 0 {
        fraction /= 10;
        places -= 1;
    }
    let _ = write!(text, ".{fraction:0places$}");
}

/// Writes `YYYY-MM-DD HH:MM:SS` with the fraction that there is; `false` as [`push_date`] has it.
#[must_use]
pub fn push_timestamp(text: &mut String, value: i64, unit: TimeUnit) -> bool {
    let per_day = per_second(unit) * 86_400;
    if !push_date(text, value.div_euclid(per_day)) {
        return false;
    }
    text.push(' ');
    push_time(text, value.rem_euclid(per_day), unit);
    true
}

/// Writes seconds as `HH:MM:SS`.
#[inline]
fn push_seconds(text: &mut String, seconds: i64) {
    let hours = seconds.div_euclid(3600);
    if (0..100).contains(&hours) {
        push_ascii(text, &digits(hours));
    } else {
        // A String takes everything.
        let _ = write!(text, "{hours}");
    }
    let ([m1, m2], [s1, s2]) =
        (digits(seconds.div_euclid(60).rem_euclid(60)), digits(seconds.rem_euclid(60)));
    push_ascii(text, &[b':', m1, m2, b':', s1, s2]);
}

/// The digits of each number below 100.
static DIGITS: [[u8; 2]; 100] = {
    let mut all = [*b"00"; 100];
    let mut value = 1;
    while value < all.len() {
        let [tens, ones] = all[value - 1];
        all[value] = if ones == b'9' { [tens + 1, b'0'] } else { [tens, ones + 1] };
        value += 1;
    }
    all
};

/// The two digits of a number below 100; hyphens for any other, which no server reads as a time.
#[inline]
fn digits(value: i64) -> [u8; 2] {
    usize::try_from(value).ok().and_then(|value| DIGITS.get(value)).copied().unwrap_or(*b"--")
}

#[inline]
fn push_ascii(text: &mut String, bytes: &[u8]) {
    text.push_str(std::str::from_utf8(bytes).unwrap_or_default());
}

/// An integer of digits alone.
#[must_use]
pub fn number(text: &str) -> Option<i64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// `YYYY-MM-DD`, the year with four digits or more.
#[must_use]
pub fn parse_date(text: &str, before_christ: bool) -> Option<i64> {
    let mut parts = text.splitn(3, '-');
    let (year, month, day) = (number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?);
    let year = if before_christ { 1 - year } else { year };
    let days = (year.abs() < 10_000_000).then(|| days_from_civil(year, month, day))?;
    // A day that the month does not have comes back as another.
    (civil_from_days(days) == (year, month, day)).then_some(days)
}

/// `[H]H:MM[:SS[.ffffff]]` in microseconds, 24:00:00 included.
#[must_use]
pub fn parse_time(text: &str) -> Option<i64> {
    if text.as_bytes().get(1) == Some(&b':') {
        return parse_time(&format!("0{text}"));
    }
    if text.strip_prefix("24:00").is_some_and(|rest| matches!(rest, "" | ":00")) {
        return Some(DAY);
    }
    time_and_offset(text.as_bytes()).filter(|(_, zone)| zone.is_none()).map(|(time, _)| time)
}

/// `[+-]H..H:MM:SS[.ffffff]` in microseconds, hours without a bound.
#[must_use]
pub fn parse_span(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let (is_negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut parts = rest.splitn(3, ':');
    let (hours, minutes, seconds) = (number(parts.next()?)?, parts.next()?, parts.next()?);
    let (seconds, fraction) = seconds.split_once('.').map_or((seconds, None), |(it, more)| (it, Some(more)));
    let two_digits = |text: &str| number(text).filter(|number| text.len() == 2 && *number < 60);
    let micros = match fraction {
        None => 0,
        Some(digits) if (1..=6).contains(&digits.len()) => number(&format!("{digits:0<6}"))?,
        Some(_) => return None,
    };
    let seconds = hours.checked_mul(3600)?.checked_add(two_digits(minutes)? * 60 + two_digits(seconds)?)?;
    let span = seconds.checked_mul(SECOND)?.checked_add(micros)?;
    Some(if is_negative { -span } else { span })
}

/// The value of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Temporal {
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since 1970-01-01 00:00 without a zone.
    Timestamp(i64),
    /// Microseconds since 1970-01-01 00:00 UTC.
    TimestampTz(i64),
    /// Microseconds since midnight.
    Time(i64),
}

/// `YYYY-MM-DD`; the one text of this day.
#[inline]
#[must_use]
pub fn date(text: &[u8]) -> Option<i32> {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else { return None };
    let (year, month, day) = (two(y1, y2)? * 100 + two(y3, y4)?, two(m1, m2)?, two(d1, d2)?);
    let length = match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    if day < 1 || day > length {
        return None;
    }
    i32::try_from(days_from_civil(year, month, day)).ok()
}

/// `YYYY-MM-DD HH:MM:SS`, or with six digits of a fraction that is not zero: the one such text of this timestamp, which
/// [`push_date`] and [`push_time_micros`] write.
#[inline]
#[must_use]
pub fn timestamp(text: &[u8]) -> Option<i64> {
    let (day, rest) = text.split_at_checked(10)?;
    let time = rest.strip_prefix(b" ")?;
    Some(i64::from(date(day)?) * DAY + self::time(time)?)
}

/// `HH:MM:SS`, or with six digits of a fraction that is not zero: the one such text, which [`push_time_micros`] writes.
#[inline]
#[must_use]
pub fn time(text: &[u8]) -> Option<i64> {
    let (time, fraction) = text.split_at_checked(8)?;
    let whole = seconds(time)? * SECOND;
    match fraction {
        [] => Some(whole),
        [b'.', digits @ ..] if digits.len() == 6 => {
            let microseconds = digits_of(digits)?;
            (microseconds > 0).then_some(whole + microseconds)
        }
        _ => None,
    }
}

/// A date or a time in ISO 8601, the zone as `Z` or `+HH:MM`; `None` for another text, and for one that is finer than microseconds.
#[must_use]
pub fn parse(text: &[u8]) -> Option<Temporal> {
    let Some((day, rest)) = text.split_at_checked(10).filter(|(day, _)| day[4] == b'-') else {
        return match time_and_offset(text)? {
            (time, None) => Some(Temporal::Time(time)),
            _ => None,
        };
    };
    let days = date(day)?;
    if rest.is_empty() {
        return Some(Temporal::Date(days));
    }
    let (time, offset) = time_and_offset(rest.strip_prefix(b" ").or_else(|| rest.strip_prefix(b"T"))?)?;
    let local = i64::from(days) * DAY + time;
    Some(match offset {
        None => Temporal::Timestamp(local),
        Some(minutes) => Temporal::TimestampTz(local - minutes * 60 * SECOND),
    })
}

/// `HH:MM[:SS[.ffffff]]`, and minutes east of UTC where the text has a zone.
fn time_and_offset(text: &[u8]) -> Option<(i64, Option<i64>)> {
    let (time, zone) = zone(text);
    let offset = match zone {
        Zone::None => None,
        Zone::Minutes(minutes) => Some(minutes),
        Zone::Broken => return None,
    };
    let time = match time.len() {
        5 => seconds(&[time, b":00"].concat())? * SECOND,
        8 => seconds(time)? * SECOND,
        _ => {
            let (whole, fraction) = time.split_at_checked(8)?;
            let digits = fraction.strip_prefix(b".")?;
            let (fine, finer) = digits.split_at(digits.len().min(6));
            if digits.is_empty() || finer.iter().any(|digit| *digit != b'0') {
                return None;
            }
            let scale = 10_i64.pow(6 - u32::try_from(fine.len()).ok()?);
            seconds(whole)? * SECOND + digits_of(fine)? * scale
        }
    };
    Some((time, offset))
}

enum Zone {
    None,
    Minutes(i64),
    Broken,
}

/// Parts a zone from the time before it.
fn zone(text: &[u8]) -> (&[u8], Zone) {
    if let Some(time) = text.strip_suffix(b"Z").or_else(|| text.strip_suffix(b"z")) {
        return (time.trim_ascii_end(), Zone::Minutes(0));
    }
    let Some(at) = text.iter().position(|byte| matches!(byte, b'+' | b'-')) else {
        return (text, Zone::None);
    };
    let (time, zone) = text.split_at(at);
    let minutes = match *zone {
        [sign, h1, h2, b':', m1, m2] => match (two(h1, h2), two(m1, m2)) {
            (Some(hours @ 0..=14), Some(minutes @ 0..=59)) => {
                let east = hours * 60 + minutes;
                Zone::Minutes(if sign == b'-' { -east } else { east })
            }
            _ => Zone::Broken,
        },
        _ => Zone::Broken,
    };
    (time.trim_ascii_end(), minutes)
}

/// The seconds of `HH:MM:SS`.
#[inline]
fn seconds(time: &[u8]) -> Option<i64> {
    let &[h1, h2, b':', m1, m2, b':', s1, s2] = time else { return None };
    let (hours, minutes, seconds) = (two(h1, h2)?, two(m1, m2)?, two(s1, s2)?);
    (hours < 24 && minutes < 60 && seconds < 60).then_some((hours * 60 + minutes) * 60 + seconds)
}

#[inline]
fn two(tens: u8, ones: u8) -> Option<i64> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens < 10 && ones < 10).then(|| i64::from(tens) * 10 + i64::from(ones))
}

fn digits_of(digits: &[u8]) -> Option<i64> {
    digits
        .iter()
        .try_fold(0_i64, |value, digit| digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_shown_in_full() {
        assert_eq!(timestamp_text(0), "1970-01-01 00:00:00");
        assert_eq!(timestamp_text(-1), "1969-12-31 23:59:59.999999");
        assert_eq!(timestamp_text(946_684_799_500_000), "1999-12-31 23:59:59.5");
    }

    #[test]
    fn spans_have_any_number_of_hours() {
        assert_eq!(parse_span(b"-838:59:59.000001"), Some(-3_020_399_000_001));
        assert_eq!(parse_span(b"+04:05:06.789"), Some(14_706_789_000));
        assert_eq!(parse_span(b"2562047787:59:59"), Some(9_223_372_036_799_000_000));
        for bad in
            ["", "1:2", "1:60:00", "1:00:60", "1:2:03", "x:00:00", "1:00:00.", "1:00:00.0000001", "--1:00:00"]
        {
            assert_eq!(parse_span(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(parse_span(b"9999999999999:00:00"), None);
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
    fn the_one_text_of_a_timestamp_comes_back() {
        for text in ["2024-02-29", "0000-01-01", "9999-12-31", "1969-12-31"] {
            let mut written = String::new();
            assert!(push_date(&mut written, date(text.as_bytes()).unwrap().into()) && written == text);
        }
        for text in ["2024-02-29 00:00:00", "1969-12-31 23:59:59.000001", "0000-01-01 00:00:00.500000"] {
            let at = timestamp(text.as_bytes()).unwrap();
            let mut written = String::new();
            assert!(push_date(&mut written, at.div_euclid(DAY)));
            written.push(' ');
            push_time_micros(&mut written, at.rem_euclid(DAY));
            assert_eq!(written, text);
        }
        for other in ["2024-02-30", "2024-13-01", "2024-00-01", "2024-1-1", "+024-01-01", "2023-02-29"] {
            assert_eq!(date(other.as_bytes()), None, "{other}");
        }
        for other in
            ["2024-02-29T00:00:00", "2024-02-29 00:00", "2024-02-29 00:00:00.5", "2024-02-29 24:00:00"]
        {
            assert_eq!(timestamp(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn texts_in_iso_8601_are_read() {
        let noon = 12 * 3600 * SECOND;
        for (text, expected) in [
            ("1970-01-02", Temporal::Date(1)),
            ("1970-01-01 12:00", Temporal::Timestamp(noon)),
            ("1970-01-01T12:00:00.25", Temporal::Timestamp(noon + 250_000)),
            ("1970-01-01 12:00:00.1234560000", Temporal::Timestamp(noon + 123_456)),
            ("1970-01-01T12:00:00Z", Temporal::TimestampTz(noon)),
            ("1970-01-01 14:00:00 +02:00", Temporal::TimestampTz(noon)),
            ("1970-01-01 06:30-05:30", Temporal::TimestampTz(noon)),
            ("12:00", Temporal::Time(noon)),
            ("12:00:00.5", Temporal::Time(noon + 500_000)),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(expected), "{text}");
        }
        for text in [
            "",
            "now",
            "1970-01-01 ",
            "1970-01-01 12:00:00.1234567",
            "12:00Z",
            "24:00",
            "1970-01-01 12:00:60",
            "1970-01-01 12:00+2:00",
            "1970-01-01 12:00:00.",
            "1970-01-01x12:00",
            "2440587.5",
            "1970-01-01Z",
            "é2345678901",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn timestamps_have_the_fraction_that_there_is() {
        let temporal = |value, unit| {
            let mut text = String::new();
            push_timestamp(&mut text, value, unit).then_some(text)
        };
        assert_eq!(temporal(-1, TimeUnit::Microsecond).unwrap(), "1969-12-31 23:59:59.999999");
        assert_eq!(temporal(1_500, TimeUnit::Millisecond).unwrap(), "1970-01-01 00:00:01.5");
        assert_eq!(temporal(0, TimeUnit::Second).unwrap(), "1970-01-01 00:00:00");
        assert!(temporal(1 << 40, TimeUnit::Second).is_none());
    }
}
