//! Dates, times and time zones, as the server writes them in both protocols.

use std::io::Write;

use longshore_core::{Error, Unrepresentable};
use longshore_values::Misfit;
use longshore_values::calendar::{DAY, SECOND, civil_from_days, days_from_civil, parse_span};

/// The longest TIME, in microseconds: 838:59:59.
pub(crate) const MAX_TIME: i64 = (838 * 3600 + 59 * 60 + 59) * SECOND;

/// A session's time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    /// Always so many minutes east of UTC.
    Fixed(i16),
    /// The server's own, or one with rules: its hours do not tell a time in UTC.
    Other,
}

/// The error of a timestamp with time zone in a session whose zone is not fixed.
pub(crate) fn unknown_zone() -> Error {
    Error::interface(
        "the session's time_zone is not a fixed offset from UTC, so timestamps cannot be converted",
    )
    .with_hint(
        "set one: SET time_zone = '+00:00', or time-zone in the URL; or use values without a time zone",
    )
}

impl Zone {
    pub(crate) const UTC: Self = Self::Fixed(0);

    /// The zone of a fixed offset, `+HH:MM` or `UTC`; `None` for any other.
    pub(crate) fn from_offset(text: &str) -> Option<Self> {
        if text.eq_ignore_ascii_case("utc") {
            return Some(Self::UTC);
        }
        let (sign, digits) = match text.split_at_checked(1)? {
            ("+", digits) => (1, digits),
            ("-", digits) => (-1, digits),
            _ => return None,
        };
        let (hours, minutes) = digits.split_once(':')?;
        let number = |text: &str, most: i16| {
            let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<i16>().ok().filter(|number| is_number && *number <= most)
        };
        Some(Self::Fixed(sign * (number(hours, 14)? * 60 + number(minutes, 59)?)))
    }

    /// The zone that the server has now.
    pub(crate) fn of_server(text: &str) -> Self {
        Self::from_offset(text).unwrap_or(Self::Other)
    }

    /// The statement's text that sets it.
    pub(crate) fn text(self) -> String {
        let Self::Fixed(minutes) = self else { return "SYSTEM".to_owned() };
        let sign = if minutes < 0 { '-' } else { '+' };
        format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
    }

    /// Microseconds east of UTC, where that is fixed.
    pub(crate) fn offset(self) -> Option<i64> {
        match self {
            Self::Fixed(minutes) => Some(i64::from(minutes) * 60_000_000),
            Self::Other => None,
        }
    }
}

/// A date and a time of day, as the server writes them; not every one is in the calendar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Civil {
    year: u16,
    month: u8,
    day: u8,
    /// Microseconds since midnight.
    time: i64,
}

const REMEDY: &str = "read it as text with schema={\"<column>\": \"string\"}";

impl Civil {
    /// A cell of a binary row (MySQL Internals, "Binary Protocol Value"): 0, 4, 7 or 11 bytes.
    #[inline]
    pub(crate) fn binary(cell: &[u8]) -> Result<Self, Misfit> {
        let mut bytes = [0; 11];
        match cell.len() {
            0 | 4 | 7 | 11 => bytes[..cell.len()].copy_from_slice(cell),
            _ => return Err(damage()),
        }
        let [low, high, month, day, hour, minute, second, fraction @ ..] = bytes;
        let micros = u32::from_le_bytes(fraction);
        let time = time_of(hour.into(), minute.into(), second.into(), micros.into())?;
        if hour > 23 {
            return Err(damage());
        }
        Ok(Self { year: u16::from_le_bytes([low, high]), month, day, time })
    }

    /// A cell of a text row: `YYYY-MM-DD`, with ` HH:MM:SS[.ffffff]` or without.
    pub(crate) fn text(cell: &[u8]) -> Result<Self, Misfit> {
        let (date, time) = match cell.iter().position(|byte| matches!(byte, b' ' | b'T')) {
            Some(at) => (&cell[..at], Some(&cell[at + 1..])),
            None => (cell, None),
        };
        if !matches!(date, [_, _, _, _, b'-', _, _, b'-', _, _]) {
            return Err(not_temporal(cell));
        }
        let number = |digits: &[u8]| number(digits).ok_or_else(|| not_temporal(cell));
        let time = match time {
            Some(time) => {
                parse_span(time).filter(|time| (0..DAY).contains(time)).ok_or_else(|| not_temporal(cell))?
            }
            None => 0,
        };
        Ok(Self {
            year: u16::try_from(number(&date[..4])?).unwrap_or_default(),
            month: u8::try_from(number(&date[5..7])?).unwrap_or_default(),
            day: u8::try_from(number(&date[8..])?).unwrap_or_default(),
            time,
        })
    }

    /// Days since 1970-01-01. A zero date is as the caller wants it, and any other that is in no calendar is a fault.
    #[inline]
    fn days(self, zero_date: Unrepresentable) -> Result<i64, Misfit> {
        let (year, month, day) = (i64::from(self.year), i64::from(self.month), i64::from(self.day));
        let days = days_from_civil(year, month, day);
        if (1..=12).contains(&month) && (1..=28).contains(&day) || civil_from_days(days) == (year, month, day)
        {
            return Ok(days);
        }
        Err(self.unrepresentable(zero_date))
    }

    #[cold]
    fn unrepresentable(self, zero_date: Unrepresentable) -> Misfit {
        let Self { year, month, day, .. } = self;
        if self == Self::default() {
            return match zero_date {
                Unrepresentable::Null => Misfit::Null,
                Unrepresentable::Error => Misfit::with_hint(
                    "the zero date 0000-00-00 is not a date",
                    format!("read it as NULL with options={{\"zero_date\": \"null\"}}, or {REMEDY}"),
                ),
            };
        }
        let what = if month == 0 || day == 0 { "a date with a part that is zero" } else { "in no calendar" };
        Misfit::with_hint(format!("{year:04}-{month:02}-{day:02} is {what}"), REMEDY)
    }

    /// Appends the text that the server would send; a date without a time where `with_time` is not set.
    pub(crate) fn write(self, with_time: bool, into: &mut Vec<u8>) {
        let Self { year, month, day, time } = self;
        // A Vec takes all that is written.
        let _ = write!(into, "{year:04}-{month:02}-{day:02}");
        if with_time || time != 0 {
            into.push(b' ');
            write_time(time, into);
        }
    }

    /// A date alone.
    #[inline]
    pub(crate) fn date(self, zero_date: Unrepresentable) -> Result<i32, Misfit> {
        let days = self.days(zero_date)?;
        if self.time != 0 {
            return Err(Misfit::with_hint("a time of day would be lost", REMEDY));
        }
        i32::try_from(days).map_err(|_| damage())
    }

    /// Microseconds since 1970-01-01 00:00, `offset` microseconds less.
    #[inline]
    pub(crate) fn microseconds(self, zero_date: Unrepresentable, offset: i64) -> Result<i64, Misfit> {
        Ok(self.days(zero_date)? * DAY + self.time - offset)
    }
}

/// The most hours of seven digits: more than any server's TIME, and far from an overflow.
const MAX_HOURS: i64 = 9_999_999;

#[inline]
fn time_of(hours: i64, minutes: i64, seconds: i64, micros: i64) -> Result<i64, Misfit> {
    if hours > MAX_HOURS || minutes > 59 || seconds > 59 || micros > 999_999 {
        return Err(damage());
    }
    Ok(((hours * 60 + minutes) * 60 + seconds) * SECOND + micros)
}

/// A TIME cell of a binary row, in microseconds: 0, 8 or 12 bytes.
pub(crate) fn binary_time(cell: &[u8]) -> Result<i64, Misfit> {
    let mut bytes = [0; 12];
    match cell.len() {
        0 | 8 | 12 => bytes[..cell.len()].copy_from_slice(cell),
        _ => return Err(damage()),
    }
    let [is_negative, a, b, c, d, hours, minutes, seconds, fraction @ ..] = bytes;
    let (days, micros) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes(fraction));
    if hours > 23 {
        return Err(damage());
    }
    let hours = i64::from(days) * 24 + i64::from(hours);
    let time = time_of(hours, minutes.into(), seconds.into(), micros.into())?;
    Ok(if is_negative == 0 { time } else { -time })
}

/// A TIME cell of a text row, in microseconds.
pub(crate) fn text_time(cell: &[u8]) -> Result<i64, Misfit> {
    parse_span(cell).ok_or_else(|| not_temporal(cell))
}

/// Appends the text that the server would send for a TIME: with six digits of a fraction, where there is one.
pub(crate) fn write_time(time: i64, into: &mut Vec<u8>) {
    let (sign, seconds, micros) = (if time < 0 { "-" } else { "" }, time.abs() / SECOND, time.abs() % SECOND);
    let _ = write!(into, "{sign}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if micros != 0 {
        let _ = write!(into, ".{micros:06}");
    }
}

/// A few digits, and nothing else.
fn number(digits: &[u8]) -> Option<i64> {
    let is_number = (1..=7).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}

#[cold]
fn damage() -> Misfit {
    Misfit::fault("the server sent a damaged date or time")
}

#[cold]
fn not_temporal(cell: &[u8]) -> Misfit {
    Misfit::with_hint(format!("{:?} is not a date or time", String::from_utf8_lossy(cell)), REMEDY)
}

#[cfg(test)]
mod tests {
    use super::Zone;

    use super::*;

    #[test]
    fn fixed_offsets_are_known_and_nothing_else() {
        for (text, minutes) in [("+00:00", 0), ("-00:00", 0), ("UTC", 0), ("+05:30", 330), ("-13:59", -839)] {
            assert_eq!(Zone::from_offset(text), Some(Zone::Fixed(minutes)), "{text}");
        }
        for other in ["SYSTEM", "Europe/Berlin", "", "+", "05:30", "+5", "+99:00", "+01:60", "+0x:00", "é"] {
            assert_eq!(Zone::from_offset(other), None, "{other}");
        }
        assert_eq!(Zone::Fixed(-90).text(), "-01:30");
    }

    #[test]
    fn dates_are_days_or_faults() {
        let date =
            |text: &str| Civil::text(text.as_bytes()).and_then(|civil| civil.date(Unrepresentable::Null));
        assert_eq!(date("1970-01-02"), Ok(1));
        assert_eq!(date("9999-12-31"), Ok(2_932_896));
        assert_eq!(date("2024-02-29"), Ok(19_782));
        assert_eq!(date("0000-00-00"), Err(Misfit::Null));
        for text in [
            "2025-00-10",
            "2025-01-00",
            "2025-02-29",
            "2025-13-01",
            "2025-1-1",
            "x",
            "",
            "2025-01-01 00:00:01",
        ] {
            assert!(matches!(date(text), Err(Misfit::Fault(_))), "{text}");
        }
    }

    #[test]
    fn both_forms_say_the_same() {
        let text = Civil::text(b"2025-03-04 05:06:07.080009").unwrap();
        let binary = Civil::binary(&[0xe9, 7, 3, 4, 5, 6, 7, 0x89, 0x38, 1, 0]).unwrap();
        assert_eq!(text, binary);
        assert_eq!(Civil::binary(&[]).unwrap(), Civil::text(b"0000-00-00 00:00:00").unwrap());
        assert_eq!(Civil::binary(&[0xe9, 7, 3, 4]).unwrap(), Civil::text(b"2025-03-04").unwrap());
        assert!(Civil::binary(&[1]).is_err() && Civil::binary(&[0xe9, 7, 3, 4, 24, 0, 0]).is_err());
        assert_eq!(Civil::default().microseconds(Unrepresentable::Null, 0), Err(Misfit::Null));
        assert_eq!(text.microseconds(Unrepresentable::Null, SECOND), Ok(1_741_064_766_080_009));
    }

    #[test]
    fn times_reach_beyond_a_day() {
        assert_eq!(text_time(b"-838:59:59.000001"), Ok(-3_020_399_000_001));
        assert_eq!(text_time(b"00:00:00.5"), Ok(500_000));
        assert_eq!(binary_time(&[]), Ok(0));
        assert_eq!(binary_time(&[1, 34, 0, 0, 0, 22, 59, 59]), Ok(-3_020_399_000_000));
        assert!(matches!(binary_time(&[0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0]), Err(Misfit::Fault(_))));
        for bad in ["", "1:2", "1:60:00", "x:00:00", "1:00:00.0000001", "--1:00:00"] {
            assert!(text_time(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
