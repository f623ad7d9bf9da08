//! Dates and times as SQLite's own functions take them (`sqlite.org/lang_datefunc.html`, section 2): ISO texts, Unix
//! seconds, Julian day numbers.

use longshore_values::calendar::{DAY, SECOND, push_date, push_time_micros};

/// The text of a day; `None` for one outside of the years 0 to 9999.
pub(crate) fn date_text(days: i32) -> Option<String> {
    let mut text = String::with_capacity(10);
    push_date(&mut text, i64::from(days)).then_some(text)
}

/// The text of a timestamp, likewise.
pub(crate) fn timestamp_text(microseconds: i64) -> Option<String> {
    let mut text = String::with_capacity(32);
    push_timestamp(&mut text, microseconds).then_some(text)
}

/// The text of a time of day.
pub(crate) fn time_text(microseconds: i64) -> String {
    let mut text = String::with_capacity(15);
    push_time_micros(&mut text, microseconds);
    text
}

/// Writes a timestamp; `false` for one outside of the years 0 to 9999, of which nothing is written.
#[must_use]
pub(crate) fn push_timestamp(text: &mut String, microseconds: i64) -> bool {
    if !push_date(text, microseconds.div_euclid(DAY)) {
        return false;
    }
    text.push(' ');
    push_time_micros(text, microseconds.rem_euclid(DAY));
    true
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_timestamps() {
        assert_eq!(julian(2_440_587.5), Some(0));
        assert_eq!(julian(2_440_588.0), Some(DAY / 2));
        assert_eq!(julian(f64::INFINITY), None);
        assert_eq!(unix(-1), Some(-SECOND));
        assert_eq!(unix(i64::MAX), None);
    }
}
