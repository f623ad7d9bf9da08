//! What a column holds exactly. The server would round, cut or pad what is beyond that, without a word.

use arrow_schema::TimeUnit;
use longshore_cells::{Item, Odd, microseconds};

use super::keeps;
use crate::types::{Class, Kind, Type, precision_and_scale};

/// Refuses what the server would change.
pub(super) fn check(item: &Item<'_>, native: &Type) -> Result<(), Odd> {
    keeps::check(item, native)?;
    let Kind::Plain(class) = native.kind else { return Ok(()) };
    match (item, class) {
        (Item::Text(value), Class::Text) => length(native, value),
        (Item::Text(value), Class::Numeric) => number_text(native, value),
        (Item::Text(value), Class::Date | Class::Time | Class::Timestamp | Class::Instant) => {
            temporal_text(native, class, value)
        }
        (Item::Decimal(value, scale), Class::Numeric) => decimal(native, &plain(&value.to_string(), *scale)),
        (Item::WideDecimal(value, scale), Class::Numeric) => {
            decimal(native, &plain(&value.to_string(), *scale))
        }
        (Item::Int(value), Class::Numeric) => decimal(native, &value.to_string()),
        (Item::UInt(value), Class::Numeric) => decimal(native, &value.to_string()),
        (Item::Double(value), Class::Numeric) if value.is_finite() => decimal(native, &value.to_string()),
        (Item::Float(value), Class::Numeric) if value.is_finite() => decimal(native, &value.to_string()),
        (Item::Double(value), Class::Float4) => narrow(*value).map(drop),
        (Item::Decimal(value, scale), Class::Float4 | Class::Float8) => {
            float_text(&plain(&value.to_string(), *scale), class)
        }
        (Item::WideDecimal(value, scale), Class::Float4 | Class::Float8) => {
            float_text(&plain(&value.to_string(), *scale), class)
        }
        (Item::Time(value, unit) | Item::Timestamp(value, unit) | Item::Instant(value, unit), _) => {
            moment(native, *value, *unit).map(drop)
        }
        (Item::Duration(value, unit), _) => moment(native, *value, *unit).map(drop),
        (Item::Interval(_, _, nanoseconds), _) => {
            moment(native, *nanoseconds, TimeUnit::Nanosecond).map(drop)
        }
        _ => Ok(()),
    }
}

pub(super) fn plain(digits: &str, scale: i8) -> String {
    let mut text = String::new();
    longshore_cells::push_decimal(&mut text, digits, scale);
    text
}

/// How many characters a column has at most, where it is bound.
pub(super) fn most_characters(native: &Type) -> Option<usize> {
    usize::try_from(native.modifier - 4).ok().filter(|_| matches!(native.name.as_str(), "varchar" | "bpchar"))
}

/// Text of as many characters as the column has, at most. The server would cut blanks at its end.
pub(super) fn length(native: &Type, value: &str) -> Result<(), Odd> {
    if value.as_bytes().contains(&0) {
        return Err(Odd::with_hint(
            "PostgreSQL's text has no zero bytes",
            "write it as bytes, into a bytea column",
        ));
    }
    // As many bytes or fewer are as many characters or fewer.
    let Some(most) = most_characters(native).filter(|most| value.len() > *most) else { return Ok(()) };
    let count = value.chars().count();
    if count <= most {
        return Ok(());
    }
    Err(Odd::with_hint(
        format!("the text has {count} characters, the column {most}"),
        "widen the column, or cut the text",
    ))
}

/// The digits after the point that numeric's column has, where it is bound.
pub(super) fn scale(native: &Type) -> Option<i32> {
    (native.modifier >= 4).then(|| precision_and_scale(native.modifier).1)
}

/// Whether numeric's column surely holds `value`: what this denies is looked at more closely.
#[inline]
pub(super) fn is_surely_held(native: &Type, value: i128, places: usize) -> bool {
    if native.modifier < 4 {
        return true;
    }
    let (precision, scale) = precision_and_scale(native.modifier);
    let places = i32::try_from(places).unwrap_or(i32::MAX);
    let digits =
        value.unsigned_abs().checked_ilog10().map_or(0, |log| i32::try_from(log).unwrap_or(i32::MAX) + 1);
    places <= scale && digits - places <= precision - scale
}

/// `[-]digits[.digits]` into numeric's column.
pub(super) fn decimal(native: &Type, plain: &str) -> Result<(), Odd> {
    if native.modifier < 4 {
        return Ok(());
    }
    let (precision, scale) = precision_and_scale(native.modifier);
    let plain = plain.strip_prefix('-').unwrap_or(plain);
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let count = |digits: usize| i32::try_from(digits).unwrap_or(i32::MAX);
    let is_round = scale >= 0
        || fraction.is_empty() && count(whole.len() - whole.trim_end_matches('0').len()) >= -scale
        || whole.is_empty();
    if count(fraction.len()) > scale.max(0) || !is_round {
        return Err(Odd::with_hint(
            format!("the column has {scale} digits after the point, and would round it"),
            "round the data, or widen the column",
        ));
    }
    // With more places than digits, those after the point begin with zeros.
    let leading = fraction.len() - fraction.trim_start_matches('0').len();
    let too_large = if whole.is_empty() {
        !fraction.is_empty() && count(leading) < scale - precision
    } else {
        count(whole.len()) > precision - scale
    };
    if too_large {
        return Err(Odd::with_hint(
            format!("the column has {} digits before the point", (precision - scale).max(0)),
            "widen the column",
        ));
    }
    Ok(())
}

fn number_text(native: &Type, value: &str) -> Result<(), Odd> {
    if native.modifier < 4 {
        return Ok(());
    }
    let digits = value.trim();
    let digits = digits.strip_prefix(['-', '+']).unwrap_or(digits);
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_plain {
        return decimal(native, digits);
    }
    if digits.eq_ignore_ascii_case("nan") {
        return Ok(());
    }
    Err(Odd::with_hint("the text is not a plain number", "write digits with a point, such as -12.50"))
}

/// `value` as a float of 32 bits.
pub(super) fn narrow(value: f64) -> Result<f32, Odd> {
    #[allow(clippy::cast_possible_truncation)] // the loss is what is looked for
    let narrow = value as f32;
    if f64::from(narrow).to_bits() == value.to_bits() || value.is_nan() {
        return Ok(narrow);
    }
    Err(Odd::with_hint(
        "a float of 32 bits would round it",
        "make the column double precision, or the data float32",
    ))
}

/// A decimal that comes back from the nearest float as it was.
fn float_text(plain: &str, class: Class) -> Result<(), Odd> {
    let back = match class {
        Class::Float4 => plain.parse::<f32>().map(|value| value.to_string()),
        _ => plain.parse::<f64>().map(|value| value.to_string()),
    };
    let bare = |text: &str| -> String {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if back.is_ok_and(|back| bare(&back) == bare(plain)) {
        return Ok(());
    }
    Err(Odd::with_hint("a float would round it", "make the column numeric, or cast the data to floats first"))
}

/// The microseconds of a time, which has no digit that the column would round.
#[inline]
pub(super) fn moment(native: &Type, value: i64, unit: TimeUnit) -> Result<i64, Odd> {
    let Some(microseconds) = microseconds(value, unit) else {
        return Err(Odd::with_hint(
            "it is not a whole number of microseconds",
            "round the data to microseconds",
        ));
    };
    let digits = match native.kind {
        Kind::Plain(Class::Time | Class::Timestamp | Class::Instant) => native.modifier,
        // An interval's modifier has its fields above.
        Kind::Plain(Class::Interval) if native.modifier >= 0 && native.modifier & 0xffff != 0xffff => {
            native.modifier & 0xffff
        }
        _ => return Ok(microseconds),
    };
    let Some(cut) = u32::try_from(digits).ok().and_then(|digits| 6_u32.checked_sub(digits)) else {
        return Ok(microseconds);
    };
    if microseconds % 10_i64.pow(cut) == 0 {
        return Ok(microseconds);
    }
    Err(Odd::with_hint(format!("the column has {digits} digits of a second's fraction"), "round the data"))
}

/// ISO 8601 alone: other texts mean what the session's settings make of them, and some lose a part without a word.
fn temporal_text(native: &Type, class: Class, value: &str) -> Result<(), Odd> {
    if matches!(value, "infinity" | "-infinity") && class != Class::Time {
        return Ok(());
    }
    let (date, time) = match (class, value.split_once(['T', ' '])) {
        (Class::Date, None) => (Some(value), None),
        (Class::Time, None) => (None, Some(value)),
        (Class::Timestamp | Class::Instant, Some((date, time))) => (Some(date), Some(time)),
        _ => return Err(no_moment(class)),
    };
    let zone = time.and_then(|time| time.find(['Z', 'z', '+', '-']));
    let clock = time.map(|time| zone.map_or(time, |at| &time[..at]));
    let has_zone_right = zone.is_some() == (class == Class::Instant);
    if !has_zone_right
        || date.is_some_and(|date| !is_date(date))
        || clock.is_some_and(|clock| !is_clock(clock, native))
    {
        return Err(no_moment(class));
    }
    Ok(())
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    matches!(parts[..], [year, month, day] if year.len() >= 4 && month.len() == 2 && day.len() == 2)
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

fn is_clock(text: &str, native: &Type) -> bool {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let parts: Vec<&str> = clock.split(':').collect();
    let most = usize::try_from(native.modifier).unwrap_or(6).min(6);
    (2..=3).contains(&parts.len())
        && parts.iter().all(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit()))
        && fraction.len() <= most
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
}

#[cold]
fn no_moment(class: Class) -> Odd {
    let form = match class {
        Class::Date => "2026-01-31",
        Class::Time => "23:59:59.999999",
        Class::Timestamp => "2026-01-31 23:59:59.999999, without a zone",
        _ => "2026-01-31 23:59:59.999999+00, with a zone",
    };
    Odd::with_hint("the text is not of the one form that means the same everywhere", format!("write {form}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numeric(precision: i32, scale: i32) -> Type {
        Type::builtin(1700).unwrap().with_modifier(((precision << 16) | (scale & 0x7ff)) + 4)
    }

    #[test]
    fn decimals_that_would_be_rounded_are_refused() {
        let two = numeric(5, 2);
        for held in ["999.99", "-0.10", "1.1000", "0", "000123.4"] {
            assert!(decimal(&two, held).is_ok(), "{held}");
        }
        for refused in ["1000", "0.001", "-1.999"] {
            assert!(decimal(&two, refused).is_err(), "{refused}");
        }
        assert!(decimal(&numeric(3, -2), "99900").is_ok());
        assert!(decimal(&numeric(3, -2), "99950").is_err());
        assert!(decimal(&numeric(3, 5), "0.00999").is_ok());
        assert!(decimal(&numeric(3, 5), "0.01").is_err());
    }

    #[test]
    fn texts_of_moments_have_one_form() {
        let of = |oid: u32| Type::builtin(oid).unwrap();
        let check = |oid, text| check(&Item::Text(text), &of(oid)).is_ok();
        assert!(check(1114, "2026-01-31 00:00:00") && check(1184, "2026-01-31T00:00:00.5Z"));
        assert!(check(1082, "2026-01-31") && check(1083, "23:59"));
        assert!(!check(1114, "2026-01-31 00:00:00+02") && !check(1184, "2026-01-31 00:00:00"));
        assert!(
            !check(1114, "2026-01-31 00:00:00.1234567") && !check(1082, "1/2/2026") && !check(1082, "today")
        );
    }
}
