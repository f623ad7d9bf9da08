//! Dates and times as SQLite's own functions take them (`sqlite.org/lang_datefunc.html`, section 2): ISO texts, Unix
//! seconds, Julian day numbers.

use std::fmt::Write;

use longshore_values::calendar::{DAY, SECOND, civil_from_days, days_from_civil};

/// What a text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Temporal {
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
pub(crate) fn date(text: &[u8]) -> Option<i32> {
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
/// [`timestamp_text`] writes.
#[inline]
pub(crate) fn timestamp(text: &[u8]) -> Option<i64> {
    let (day, rest) = text.split_at_checked(10)?;
    let time = rest.strip_prefix(b" ")?;
    Some(i64::from(date(day)?) * DAY + self::time(time)?)
}

/// `HH:MM:SS`, or with six digits of a fraction that is not zero: the one such text, which [`time_text`] writes.
#[inline]
pub(crate) fn time(text: &[u8]) -> Option<i64> {
    let (clock, fraction) = text.split_at_checked(8)?;
    let whole = seconds(clock)? * SECOND;
    match fraction {
        [] => Some(whole),
        [b'.', digits @ ..] if digits.len() == 6 => {
            let microseconds = number(digits)?;
            (microseconds > 0).then_some(whole + microseconds)
        }
        _ => None,
    }
}

/// The text that [`date`] reads.
pub(crate) fn date_text(days: i32) -> String {
    let mut text = String::with_capacity(10);
    push_date(&mut text, i64::from(days));
    text
}

/// The text that [`timestamp`] reads.
pub(crate) fn timestamp_text(microseconds: i64) -> String {
    let mut text = String::with_capacity(26);
    push_timestamp(&mut text, microseconds);
    text
}

/// The text that [`time`] reads.
pub(crate) fn time_text(microseconds: i64) -> String {
    let mut text = String::with_capacity(15);
    push_time(&mut text, microseconds);
    text
}

/// Writes a day.
pub(crate) fn push_date(text: &mut String, days: i64) {
    let (year, month, day) = civil_from_days(days);
    if !(0..=9999).contains(&year) {
        // A String takes everything.
        let _ = write!(text, "{year:04}-{month:02}-{day:02}");
        return;
    }
    let ([y1, y2], [y3, y4]) = (digits(year / 100), digits(year % 100));
    let ([m1, m2], [d1, d2]) = (digits(month), digits(day));
    push_ascii(text, &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2]);
}

/// Writes a timestamp.
pub(crate) fn push_timestamp(text: &mut String, microseconds: i64) {
    push_date(text, microseconds.div_euclid(DAY));
    text.push(' ');
    push_time(text, microseconds.rem_euclid(DAY));
}

/// Writes a time of day.
pub(crate) fn push_time(text: &mut String, microseconds: i64) {
    let (seconds, fraction) = (microseconds / SECOND, microseconds % SECOND);
    let ([h1, h2], [m1, m2], [s1, s2]) =
        (digits(seconds / 3600), digits(seconds / 60 % 60), digits(seconds % 60));
    push_ascii(text, &[h1, h2, b':', m1, m2, b':', s1, s2]);
    if fraction != 0 {
        let ([f1, f2], [f3, f4], [f5, f6]) =
            (digits(fraction / 10_000), digits(fraction / 100 % 100), digits(fraction % 100));
        push_ascii(text, &[b'.', f1, f2, f3, f4, f5, f6]);
    }
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

/// The two digits of a number below 100.
#[inline]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // two digits
fn digits(value: i64) -> [u8; 2] {
    DIGITS[value as usize]
}

#[inline]
fn push_ascii(text: &mut String, bytes: &[u8]) {
    text.push_str(std::str::from_utf8(bytes).unwrap_or_default());
}

/// Any of SQLite's texts; `None` for another text, and for one that is finer than microseconds.
pub(crate) fn parse(text: &[u8]) -> Option<Temporal> {
    let Some((day, rest)) = text.split_at_checked(10).filter(|(day, _)| day[4] == b'-') else {
        return match clock(text)? {
            (time, None) => Some(Temporal::Time(time)),
            _ => None,
        };
    };
    let days = date(day)?;
    if rest.is_empty() {
        return Some(Temporal::Date(days));
    }
    let (time, offset) = clock(rest.strip_prefix(b" ").or_else(|| rest.strip_prefix(b"T"))?)?;
    let local = i64::from(days) * DAY + time;
    Some(match offset {
        None => Temporal::Timestamp(local),
        Some(minutes) => Temporal::TimestampTz(local - minutes * 60 * SECOND),
    })
}

/// Microseconds since 1970 of Unix seconds, within the years that SQLite's functions know.
pub(crate) fn unix(seconds: i64) -> Option<i64> {
    // From -4713-11-24 to 9999-12-31.
    (-210_866_760_000..=253_402_300_799).contains(&seconds).then(|| seconds * SECOND)
}

/// Microseconds since 1970 of a Julian day number, to the millisecond, as SQLite's functions round it.
pub(crate) fn julian(day: f64) -> Option<i64> {
    if !(0.0..5_373_484.5).contains(&day) {
        return None;
    }
    #[allow(clippy::cast_possible_truncation)] // within the range just checked
    let milliseconds = (day * 86_400_000.0 + 0.5) as i64;
    Some((milliseconds - 210_866_760_000_000) * 1000)
}

/// `HH:MM[:SS[.ffffff]]`, and minutes east of UTC where the text has a zone.
fn clock(text: &[u8]) -> Option<(i64, Option<i64>)> {
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
            seconds(whole)? * SECOND + number(fine)? * scale
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
fn seconds(clock: &[u8]) -> Option<i64> {
    let &[h1, h2, b':', m1, m2, b':', s1, s2] = clock else { return None };
    let (hours, minutes, seconds) = (two(h1, h2)?, two(m1, m2)?, two(s1, s2)?);
    (hours < 24 && minutes < 60 && seconds < 60).then_some((hours * 60 + minutes) * 60 + seconds)
}

#[inline]
fn two(tens: u8, ones: u8) -> Option<i64> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens < 10 && ones < 10).then(|| i64::from(tens) * 10 + i64::from(ones))
}

fn number(digits: &[u8]) -> Option<i64> {
    digits
        .iter()
        .try_fold(0_i64, |value, digit| digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_text_of_a_timestamp_comes_back() {
        for text in ["2024-02-29", "0000-01-01", "9999-12-31", "1969-12-31"] {
            assert_eq!(date_text(date(text.as_bytes()).unwrap()), text);
        }
        for text in ["2024-02-29 00:00:00", "1969-12-31 23:59:59.000001", "0000-01-01 00:00:00.500000"] {
            assert_eq!(timestamp_text(timestamp(text.as_bytes()).unwrap()), text);
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
    fn sqlites_texts_are_read() {
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
    fn numbers_are_timestamps() {
        assert_eq!(julian(2_440_587.5), Some(0));
        assert_eq!(julian(2_440_588.0), Some(DAY / 2));
        assert_eq!(julian(f64::INFINITY), None);
        assert_eq!(unix(-1), Some(-SECOND));
        assert_eq!(unix(i64::MAX), None);
    }
}
