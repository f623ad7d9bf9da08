//! Dates and times of day in text, and days counted in the proleptic Gregorian calendar.

/// A second in microseconds.
pub const SECOND: i64 = 1_000_000;

/// A day in microseconds.
pub const DAY: i64 = 86_400 * SECOND;

/// Days from 1970-01-01 to a date of the proleptic Gregorian calendar.
///
/// Counts in years that start in March, so that the leap day is the year's last, and eras of 400 years.
#[must_use]
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

/// A timestamp in microseconds since 1970-01-01, as `YYYY-MM-DD HH:MM:SS[.ffffff]`.
#[must_use]
pub fn timestamp_text(microseconds: i64) -> String {
    let (year, month, day) = civil_from_days(microseconds.div_euclid(DAY));
    let time = microseconds.rem_euclid(DAY);
    let (seconds, fraction) = (time / SECOND, time % SECOND);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let whole = format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
    let fraction = format!("{fraction:06}");
    match fraction.trim_end_matches('0') {
        "" => whole,
        digits => format!("{whole}.{digits}"),
    }
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

/// `HH:MM:SS[.ffffff]` in microseconds, 24:00:00 included.
#[must_use]
pub fn parse_time(text: &str) -> Option<i64> {
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
}
