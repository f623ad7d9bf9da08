//! Intervals in the text form of `IntervalStyle` postgres: `1 year 2 mons -3 days +04:05:06.789`.

use arrow_buffer::IntervalMonthDayNano;
use longshore_cells::Odd;

use longshore_cells::odds::{Odds, infinite, out_of_range};
use longshore_cells::text::utf8;

/// The three parts of an interval's text.
pub(super) fn parse(cell: &[u8], odds: Odds) -> Result<IntervalMonthDayNano, Odd> {
    let text = utf8(cell)?;
    if matches!(text, "infinity" | "-infinity") {
        return Err(infinite(odds.infinity));
    }
    let (months, days, microseconds) = parts(text).ok_or_else(|| {
        Odd::with_hint(
            format!("{text:?} is not an interval in PostgreSQL's own style"),
            "leave IntervalStyle at postgres, or ask for text with schema={\"<column>\": \"string\"}",
        )
    })?;
    let fits =
        || Some((i32::try_from(months).ok()?, i32::try_from(days).ok()?, microseconds.checked_mul(1000)?));
    let (months, days, nanoseconds) = fits().ok_or_else(|| out_of_range(odds.infinity))?;
    Ok(IntervalMonthDayNano::new(months, days, nanoseconds))
}

fn parts(text: &str) -> Option<(i64, i64, i64)> {
    let (mut months, mut days, mut microseconds) = (0_i64, 0_i64, 0_i64);
    let mut words = text.split(' ').peekable();
    words.peek().filter(|word| !word.is_empty())?;
    while let Some(word) = words.next() {
        if word.contains(':') {
            microseconds = clock(word)?;
            continue;
        }
        let count: i64 = word.parse().ok()?;
        match words.next()?.trim_end_matches('s') {
            "year" => months = months.checked_add(count.checked_mul(12)?)?,
            "mon" => months = months.checked_add(count)?,
            "day" => days = count,
            _ => return None,
        }
    }
    Some((months, days, microseconds))
}

/// `[+-]H:MM:SS[.ffffff]`, hours without a bound.
fn clock(word: &str) -> Option<i64> {
    let (negative, rest) = match word.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, word.strip_prefix('+').unwrap_or(word)),
    };
    let mut fields = rest.splitn(3, ':');
    let (hours, minutes, seconds) = (fields.next()?, fields.next()?, fields.next()?);
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let number = |text: &str| text.parse::<u32>().ok().map(i64::from);
    let fraction = match fraction.len() {
        0 => 0,
        1..=6 => number(&format!("{fraction:0<6}"))?,
        _ => return None,
    };
    let whole = number(hours)?.checked_mul(3600)?.checked_add(number(minutes)? * 60 + number(seconds)?)?;
    let microseconds = whole.checked_mul(1_000_000)?.checked_add(fraction)?;
    Some(if negative { -microseconds } else { microseconds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_core::ReadOptions;

    #[test]
    fn signs_belong_to_each_part() {
        let read = |text: &str| parse(text.as_bytes(), Odds::from(&ReadOptions::default()));
        let interval = IntervalMonthDayNano::new;
        assert_eq!(read("1 year 2 mons -3 days +04:05:06.789"), Ok(interval(14, -3, 14_706_789_000_000)));
        assert_eq!(read("-00:00:00.000001"), Ok(interval(0, 0, -1000)));
        assert_eq!(read("00:00:00"), Ok(interval(0, 0, 0)));
        assert_eq!(read("1 day"), Ok(interval(0, 1, 0)));
        for bad in ["", "P1D", "1", "1 hour", "x:y:z", "infinity"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
