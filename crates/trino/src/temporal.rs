//! Dates, times and intervals in Trino's texts.

use arrow_buffer::IntervalMonthDayNano;
use arrow_schema::TimeUnit;
use longshore_values::{calendar, per_second};

const DAY_SECONDS: i64 = 86_400;

/// Why a text has no value.
pub(crate) enum Misfit {
    /// It is not what its type's texts are.
    Broken,
    /// Its year, or its nanoseconds, are beyond what Arrow counts.
    Range,
    /// Its time zone has a name, and the text no offset.
    Zone,
}

pub(crate) fn date(text: &str) -> Result<i32, Misfit> {
    let is_long = text.starts_with(['+', '-']);
    calendar::date(text.as_bytes()).ok_or(if is_long { Misfit::Range } else { Misfit::Broken })
}

/// `10:00:00.123456` in `unit`.
pub(crate) fn time(text: &str, unit: TimeUnit) -> Result<i64, Misfit> {
    let (time_text, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = time_text.split(':').map(two_digits);
    let (Some(Some(hour)), Some(Some(minute)), Some(Some(second)), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Misfit::Broken);
    };
    if hour > 23 || minute > 59 || second > 59 {
        return Err(Misfit::Broken);
    }
    let per_second = per_second(unit);
    Ok((hour * 3600 + minute * 60 + second) * per_second + fraction_of(fraction, per_second)?)
}

fn two_digits(text: &str) -> Option<i64> {
    (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// The digits after a point in units of which `per_second` are a second; none of them is lost.
fn fraction_of(digits: &str, per_second: i64) -> Result<i64, Misfit> {
    let (mut value, mut unit) = (0, per_second);
    for digit in digits.bytes() {
        if !digit.is_ascii_digit() {
            return Err(Misfit::Broken);
        }
        let digit = i64::from(digit - b'0');
        if unit < 10 && digit > 0 {
            return Err(Misfit::Range);
        }
        unit /= 10;
        value += digit * unit;
    }
    Ok(value)
}

/// `2020-01-01 10:00:00.123` in `unit`.
pub(crate) fn timestamp(text: &str, unit: TimeUnit) -> Result<i64, Misfit> {
    let (day, time_text) = text.split_once(' ').ok_or(Misfit::Broken)?;
    let days = i64::from(date(day)?);
    let time = time(time_text, unit)?;
    let midnight = days.checked_mul(DAY_SECONDS * per_second(unit));
    // Before 1970 the first nanoseconds fit only together with the time of day.
    match midnight {
        Some(midnight) => midnight.checked_add(time).ok_or(Misfit::Range),
        None => {
            i64::try_from(i128::from(days) * i128::from(DAY_SECONDS * per_second(unit)) + i128::from(time))
                .map_err(|_| Misfit::Range)
        }
    }
}

/// `2020-01-01 10:00:00.123 UTC` in `unit`; a zone with a name has no offset in the text.
pub(crate) fn timestamp_tz(text: &str, unit: TimeUnit) -> Result<i64, Misfit> {
    let (local, zone) = text.rsplit_once(' ').ok_or(Misfit::Broken)?;
    let local = timestamp(local, unit)?;
    let seconds = offset(zone).ok_or(Misfit::Zone)?;
    local.checked_sub(seconds * per_second(unit)).ok_or(Misfit::Range)
}

fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "UTC" | "Z" | "GMT" | "Etc/UTC") {
        return Some(0);
    }
    let (sign, rest) = match zone.as_bytes().first()? {
        b'+' => (1, &zone[1..]),
        b'-' => (-1, &zone[1..]),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    Some(sign * (two_digits(hours)? * 3600 + two_digits(minutes)? * 60))
}

/// `-1 02:03:04.005`: days and the time that is left, of one sign.
pub(crate) fn day_to_second(text: &str) -> Result<IntervalMonthDayNano, Misfit> {
    let (sign, rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (days, time_text) = rest.split_once(' ').ok_or(Misfit::Broken)?;
    let days: i32 = days.parse().map_err(|_| Misfit::Broken)?;
    let nanoseconds = time(time_text, TimeUnit::Nanosecond)?;
    Ok(IntervalMonthDayNano::new(0, sign * days, i64::from(sign) * nanoseconds))
}

/// `-1-2`: years and months.
pub(crate) fn year_to_month(text: &str) -> Result<IntervalMonthDayNano, Misfit> {
    let (sign, rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (years, months) = rest.split_once('-').ok_or(Misfit::Broken)?;
    let (years, months): (i64, i64) = years.parse().ok().zip(months.parse().ok()).ok_or(Misfit::Broken)?;
    let months = i32::try_from(sign * (years * 12 + months)).map_err(|_| Misfit::Range)?;
    Ok(IntervalMonthDayNano::new(months, 0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_digit_counts() {
        let nano = |text| timestamp(text, TimeUnit::Nanosecond).ok();
        assert_eq!(nano("1970-01-01 00:00:00.000000001"), Some(1));
        assert_eq!(nano("1677-09-21 00:12:43.145224192"), Some(i64::MIN));
        assert_eq!(nano("2262-04-11 23:47:16.854775807"), Some(i64::MAX));
        assert!(matches!(
            timestamp("2262-04-11 23:47:16.854775808", TimeUnit::Nanosecond),
            Err(Misfit::Range)
        ));
        assert!(matches!(
            timestamp("1970-01-01 00:00:00.0000001", TimeUnit::Microsecond),
            Err(Misfit::Range)
        ));
        assert_eq!(timestamp("1969-12-31 23:59:59.5", TimeUnit::Microsecond).ok(), Some(-500_000));
        assert_eq!(timestamp_tz("1970-01-01 02:00:00 +02:00", TimeUnit::Microsecond).ok(), Some(0));
        assert_eq!(timestamp_tz("1970-01-01 00:00:00.000 UTC", TimeUnit::Microsecond).ok(), Some(0));
        assert!(matches!(
            timestamp_tz("2020-10-25 02:30:00 Europe/Berlin", TimeUnit::Microsecond),
            Err(Misfit::Zone)
        ));
        assert!(matches!(date("+12020-01-01"), Err(Misfit::Range)));
        for broken in ["", "1970-01-01", "1970-01-01 24:00:00", "1970-02-30 00:00:00", "1970-01-01 1:00:00"] {
            assert!(matches!(timestamp(broken, TimeUnit::Microsecond), Err(Misfit::Broken)), "{broken}");
        }
    }

    #[test]
    fn intervals_have_one_sign() {
        let of = IntervalMonthDayNano::new;
        assert_eq!(day_to_second("-1 02:00:00.005").ok(), Some(of(0, -1, -7_200_005_000_000)));
        assert_eq!(day_to_second("0 00:00:01.000").ok(), Some(of(0, 0, 1_000_000_000)));
        assert_eq!(year_to_month("-1-2").ok(), Some(of(-14, 0, 0)));
        assert!(year_to_month("1").is_err() && day_to_second("1").is_err());
    }
}
