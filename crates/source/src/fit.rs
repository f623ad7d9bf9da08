//! The fit of a value to a column on its way in: what the column holds of it exactly, or why it does not, and what to do. A source
//! says its columns' limits; the words are the same for all.

use std::fmt::Display;

use crate::Nested;
use arrow_schema::{Field, TimeUnit};
use longshore_core::{Error, Kind, Place};
use longshore_values::decimal::{Text, is_same_number};
use longshore_values::{Item, Misfit, json, whole_day};

/// The error of `item` in `place`, into which it does not fit.
#[cold]
#[must_use]
pub fn misfit(item: &Item<'_>, misfit: Misfit, place: Place) -> Error {
    let (what, hint) = match misfit {
        Misfit::Fault(fault) => *fault,
        Misfit::Null => ("the value cannot be written".into(), None),
    };
    let error = Error::data(format!("{}: {what}", item.show())).at(place);
    hint.into_iter().fold(error, Error::with_hint)
}

/// NULL in a column of the key: rows with it could not be told apart.
#[cold]
#[must_use]
pub fn null_key() -> Misfit {
    Misfit::with_hint("a key cannot be NULL", "drop such rows, or choose another key")
}

/// The error of NULL in `place`, a column that is declared NOT NULL.
#[cold]
#[must_use]
pub fn not_null(sqlstate: &str, place: Place) -> Error {
    Error::new(Kind::Integrity, "NULL in a column that is NOT NULL")
        .with_sqlstate(sqlstate)
        .with_hint("give every row a value")
        .at(place)
}

/// A value of a type that the column does not take.
#[cold]
#[must_use]
pub fn wrong_type(item: &Item<'_>) -> Misfit {
    let hint = match item {
        Item::List(_) | Item::Row(..) => {
            "options={\"nested\": \"json\"} writes \"<column>\" as JSON into a column of JSON or text"
        }
        Item::Timestamp(..) => {
            "give \"<column>\" a time zone where the column's timestamps have one, or convert it to the column's type"
        }
        Item::TimestampTz(..) => {
            "take the time zone off \"<column>\" (as UTC, say), or write it into a column whose timestamps have one"
        }
        _ => "convert \"<column>\" to the column's type, or write it into a column for it",
    };
    Misfit::with_hint("the column takes no such value", hint)
}

/// A number that is not finite.
#[cold]
#[must_use]
pub fn not_finite(database: &str) -> Misfit {
    Misfit::with_hint(format!("{database} has no such number"), "write NULL instead, where NULL is meant")
}

/// `value`, a whole number from `least` to `most`.
#[inline]
pub fn within<T: PartialOrd + Display + Copy>(value: T, least: T, most: T) -> Result<T, Misfit> {
    if least <= value && value <= most { Ok(value) } else { Err(not_within(least, most)) }
}

/// A number that is not a whole one from `least` to `most`.
#[cold]
pub fn not_within(least: impl Display, most: impl Display) -> Misfit {
    Misfit::with_hint(
        format!("the column takes whole numbers from {least} to {most}"),
        "widen the column, or change its type",
    )
}

/// The whole number that `item` is exactly; `None` where it has a fraction, or more than 128 bits.
pub fn whole(item: &Item<'_>) -> Result<Option<i128>, Misfit> {
    Ok(match item {
        Item::Bool(value) => Some(i128::from(*value)),
        Item::Int(value) => Some(i128::from(*value)),
        Item::UInt(value) => Some(i128::from(*value)),
        Item::Decimal(value, scale) => whole_decimal(*value, *scale),
        Item::Float(value) => whole_double(f64::from(*value)),
        Item::Double(value) => whole_double(*value),
        Item::Text(text) => text.parse().ok(),
        Item::WideDecimal(..) => None,
        _ => return Err(wrong_type(item)),
    })
}

/// The number of `digits` with `scale` of them after the point, where these are zeros.
#[must_use]
pub fn whole_decimal(digits: i128, scale: i8) -> Option<i128> {
    let power = 10_i128.checked_pow(u32::from(scale.unsigned_abs()));
    if scale <= 0 {
        return power.and_then(|power| digits.checked_mul(power));
    }
    match power {
        Some(power) => (digits % power == 0).then_some(digits / power),
        None => (digits == 0).then_some(0),
    }
}

/// The double as an integer, where it is one, within 100 bits.
#[must_use]
pub fn whole_double(value: f64) -> Option<i128> {
    const MOST: f64 = 1.2e30;
    #[allow(clippy::cast_possible_truncation)] // it has no fraction, and is small enough
    (value.fract() == 0.0 && value.abs() <= MOST).then_some(value as i128)
}

/// The decimals that a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimals {
    /// All its digits.
    pub precision: i32,
    /// Those after the point; below zero, so many before the point are always zeros.
    pub scale: i32,
    /// Whether a number may be below zero.
    pub is_signed: bool,
}

impl Decimals {
    /// Whether `digits`, `scale` of them after the point, surely fit: what this denies is looked at more closely.
    #[inline]
    #[must_use]
    pub fn surely_hold(self, digits: i128, scale: i32) -> bool {
        let count = digits.unsigned_abs().checked_ilog10().map_or(0, |log| log.cast_signed() + 1);
        (0..=self.scale).contains(&scale)
            && count - scale <= self.precision - self.scale
            && (self.is_signed || digits >= 0)
    }

    /// Refuses a number's text that the column would round, or that is too large for it.
    pub fn check(self, text: &str) -> Result<(), Misfit> {
        let Self { precision, scale, is_signed } = self;
        let Some(number) = Text::parse(text) else {
            return Err(Misfit::with_hint(
                "the text is not a number",
                "write digits with a point, such as -12.50",
            ));
        };
        let Some((decimals, whole)) = number.ends() else { return Ok(()) };
        if decimals > i64::from(scale) {
            return Err(Misfit::with_hint(
                format!("the column has {scale} digits after the point, and would round it"),
                "round the data, or widen the column",
            ));
        }
        if whole > i64::from(precision - scale) {
            return Err(Misfit::with_hint(
                format!("the column has {} digits before the point", (precision - scale).max(0)),
                "widen the column",
            ));
        }
        if number.is_negative() && !is_signed {
            return Err(below_zero());
        }
        Ok(())
    }
}

/// A number below zero in a column without a sign.
#[cold]
#[must_use]
pub fn below_zero() -> Misfit {
    Misfit::with_hint("the column has no numbers below zero", "make it a signed one")
}

/// The float of 32 bits that is the same number.
#[inline]
pub fn float32(value: f64) -> Result<f32, Misfit> {
    #[allow(clippy::cast_possible_truncation)] // the loss is what is looked for
    let narrow = value as f32;
    if f64::from(narrow).to_bits() == value.to_bits() || value.is_nan() {
        return Ok(narrow);
    }
    Err(Misfit::with_hint(
        "a float of 32 bits would round it",
        "make the column one of double precision, or the data float32",
    ))
}

/// The double, or the double of the float where it `is_single`, from which the decimal `text` comes back.
pub fn double(text: &str, is_single: bool) -> Result<f64, Misfit> {
    let read = if is_single {
        text.parse::<f32>().ok().map(|value| (f64::from(value), value.to_string()))
    } else {
        text.parse::<f64>().ok().map(|value| (value, value.to_string()))
    };
    match read {
        Some((value, shortest)) if is_same_number(&shortest, text) => Ok(value),
        _ => Err(inexact()),
    }
}

/// An exact number that is none of the column's floats.
#[cold]
#[must_use]
pub fn inexact() -> Misfit {
    Misfit::with_hint(
        "a float would round it",
        "make the column one of decimals, or cast the data to floats first",
    )
}

/// Refuses a text of more than `most` characters.
#[inline]
pub fn characters(text: &str, most: usize) -> Result<(), Misfit> {
    // As many bytes or fewer are as many characters or fewer.
    if text.len() <= most {
        return Ok(());
    }
    let count = text.chars().count();
    if count <= most { Ok(()) } else { Err(longer("text", count, "characters", most)) }
}

/// Refuses more than `most` bytes.
#[inline]
pub fn bytes(count: usize, most: usize) -> Result<(), Misfit> {
    if count <= most { Ok(()) } else { Err(longer("value", count, "bytes", most)) }
}

#[cold]
fn longer(what: &str, count: usize, unit: &str, most: usize) -> Misfit {
    Misfit::with_hint(
        format!("the {what} has {count} {unit}, the column {most}"),
        format!("widen the column, or shorten the {what}"),
    )
}

/// A text that is not one of the `labels`.
#[cold]
#[must_use]
pub fn no_label(labels: &[String]) -> Misfit {
    let known: Vec<&str> = labels.iter().take(20).map(String::as_str).collect();
    Misfit::with_hint("it is not a label of the column", format!("its labels are {}", known.join(", ")))
}

/// The text of a list or a struct as JSON, where the caller wants it `nested` so.
pub fn document(item: &Item<'_>, field: &Field, nested: Nested) -> Result<String, Misfit> {
    if nested == Nested::Json { json(item, field) } else { Err(wrong_type(item)) }
}

/// A time in microseconds, which has no finer digit.
#[inline]
pub fn microseconds(value: i64, unit: TimeUnit) -> Result<i64, Misfit> {
    longshore_values::microseconds(value, unit).ok_or_else(|| not_microseconds(unit))
}

#[cold]
fn not_microseconds(unit: TimeUnit) -> Misfit {
    match unit {
        TimeUnit::Nanosecond => {
            Misfit::with_hint("it is finer than a microsecond", "round the data to microseconds")
        }
        _ => Misfit::fault("it is beyond what 64 bits count in microseconds"),
    }
}

/// Microseconds, of which the column keeps as many `digits` of a second's fraction.
#[inline]
pub fn in_digits(microseconds: i64, digits: u8) -> Result<i64, Misfit> {
    if microseconds % 10_i64.pow(u32::from(6 - digits.min(6))) == 0 {
        return Ok(microseconds);
    }
    Err(Misfit::with_hint(
        format!("the column has {digits} digits of a second's fraction"),
        "give the column six, or round the data",
    ))
}

/// The day of a timestamp at midnight, counted from 1970-01-01.
#[inline]
pub fn midnight(value: i64, unit: TimeUnit) -> Result<i64, Misfit> {
    whole_day(value, unit).ok_or_else(time_of_day)
}

#[cold]
fn time_of_day() -> Misfit {
    Misfit::with_hint("the column would drop the time of day", "make it one of timestamps, or the data dates")
}

/// A text that is not a date or a time of the column's: other forms mean what a server or its settings make of them.
#[cold]
#[must_use]
pub fn not_iso(has_zone: bool) -> Misfit {
    let zone = if has_zone { "+00:00, with a zone" } else { ", without a zone" };
    Misfit::with_hint(
        "the text is not a date or time in the form of ISO 8601",
        format!("write 2026-01-31, 23:59:59.999999 or 2026-01-31 23:59:59.999999{zone}"),
    )
}

/// A date or time that `database` does not have.
#[cold]
#[must_use]
pub fn beyond(database: &str) -> Misfit {
    Misfit::with_hint(
        format!("it is beyond {database}'s dates and times"),
        "leave it out, or write it as text or a number",
    )
}

#[cfg(test)]
mod tests {
    use arrow_buffer::i256;

    use super::*;

    #[test]
    fn decimals_that_would_be_rounded_are_refused() {
        let decimals = |precision, scale| Decimals { precision, scale, is_signed: true };
        let two = decimals(5, 2);
        for held in ["999.99", "-0.10", "1.1000", "0", "000123.4", "1e2"] {
            assert!(two.check(held).is_ok(), "{held}");
        }
        for refused in ["1000", "0.001", "-1.999", "x", ""] {
            assert!(two.check(refused).is_err(), "{refused}");
        }
        assert!(decimals(3, -2).check("99900").is_ok() && decimals(3, -2).check("99950").is_err());
        assert!(decimals(3, 5).check("0.00999").is_ok() && decimals(3, 5).check("0.01").is_err());
        assert!(Decimals { is_signed: false, ..two }.check("-0.0").is_ok());
        assert!(Decimals { is_signed: false, ..two }.check("-1").is_err());
    }

    #[test]
    fn what_surely_fits_does() {
        for precision in 1..6 {
            for scale in -2..6 {
                for is_signed in [true, false] {
                    let column = Decimals { precision, scale, is_signed };
                    for (digits, places) in [(0, 0), (-1, 0), (99_999, 2), (12_300, 2), (5, 4), (100, 0)] {
                        let text = format!("{digits}e-{places}");
                        assert!(
                            !column.surely_hold(digits, places) || column.check(&text).is_ok(),
                            "{column:?} {text}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn whole_numbers_are_exact() {
        let of = |item: Item<'_>| whole(&item).unwrap();
        assert_eq!(of(Item::Decimal(1200, 2)), Some(12));
        assert_eq!(of(Item::Decimal(12, -2)), Some(1200));
        assert_eq!((of(Item::Text("+12")), of(Item::Double(-0.0))), (Some(12), Some(0)));
        for item in [
            Item::Decimal(1201, 2),
            Item::Double(0.5),
            Item::Double(f64::NAN),
            Item::WideDecimal(i256::ONE, 0),
        ] {
            assert_eq!(of(item.clone()), None, "{item:?}");
        }
        assert!(whole(&Item::Date(1)).is_err());
        assert!(within(128, -128, 127).is_err() && within(-128, -128, 127).is_ok());
    }

    #[test]
    fn floats_are_the_decimals_that_come_back() {
        assert_eq!(double("0.10", false).ok(), Some(0.1));
        assert_eq!(double("0.1", true).ok(), Some(f64::from(0.1_f32)));
        assert_eq!(double("9007199254740993", false).ok(), None);
        assert!(float32(0.5).is_ok() && float32(0.1).is_err());
    }
}
