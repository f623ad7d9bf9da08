//! What a column holds exactly. The server would round, truncate, pad or drop what is beyond that, without a word.

use arrow_schema::TimeUnit;
use longshore_values::{Item, Odd, microseconds, push_decimal};

use crate::types::{Class, Kind, Type, precision_and_scale};

/// Refuses what the server would change.
pub(super) fn check(item: &Item<'_>, native: &Type) -> Result<(), Odd> {
    check_kept(item, native)?;
    let Kind::Plain(class) = native.kind else { return Ok(()) };
    match (item, class) {
        (Item::Text(value), Class::Text) => length(native, value),
        (Item::Text(value), Class::Numeric) => number_text(native, value),
        (Item::Text(value), Class::Date | Class::Time | Class::Timestamp | Class::Timestamptz) => {
            temporal_text(native, class, value)
        }
        (Item::Double(value), Class::Float4) => narrow(*value).map(drop),
        (Item::Decimal(..) | Item::WideDecimal(..), Class::Float4 | Class::Float8) => {
            digits(item).map_or(Ok(()), |plain| float_text(&plain, class))
        }
        (
            Item::Time(value, unit)
            | Item::Timestamp(value, unit)
            | Item::Instant(value, unit)
            | Item::Duration(value, unit),
            _,
        ) => whole_microseconds(native, *value, *unit).map(drop),
        (Item::Interval(_, _, nanoseconds), _) => {
            whole_microseconds(native, *nanoseconds, TimeUnit::Nanosecond).map(drop)
        }
        (_, Class::Numeric) => digits(item).map_or(Ok(()), |plain| decimal(native, &plain)),
        _ => Ok(()),
    }
}

/// `digits` with a point before the last `scale` of them.
pub(super) fn plain(digits: &str, scale: i8) -> String {
    let mut text = String::with_capacity(digits.len() + 2);
    push_decimal(&mut text, digits, scale);
    text
}

/// The digits of a finite number, with their point.
fn digits(item: &Item<'_>) -> Option<String> {
    match item {
        Item::Decimal(value, scale) => Some(plain(&value.to_string(), *scale)),
        Item::WideDecimal(value, scale) => Some(plain(&value.to_string(), *scale)),
        Item::Int(value) => Some(value.to_string()),
        Item::UInt(value) => Some(value.to_string()),
        Item::Double(value) if value.is_finite() => Some(value.to_string()),
        Item::Float(value) if value.is_finite() => Some(value.to_string()),
        _ => None,
    }
}

#[cold]
pub(super) fn zero_byte() -> Odd {
    Odd::with_hint("PostgreSQL's text has no zero bytes", "write it as bytes, into a bytea column")
}

/// How many characters a column has at most, where it is bound.
pub(super) fn most_characters(native: &Type) -> Option<usize> {
    usize::try_from(native.modifier - 4).ok().filter(|_| matches!(native.name.as_str(), "varchar" | "bpchar"))
}

/// Text of as many characters as the column has, at most. The server would drop blanks at its end.
pub(super) fn length(native: &Type, value: &str) -> Result<(), Odd> {
    if value.as_bytes().contains(&0) {
        return Err(zero_byte());
    }
    // As many bytes or fewer are as many characters or fewer.
    let Some(most) = most_characters(native).filter(|most| value.len() > *most) else { return Ok(()) };
    let count = value.chars().count();
    if count <= most {
        return Ok(());
    }
    Err(Odd::with_hint(
        format!("the text has {count} characters, the column {most}"),
        "widen the column, or shorten the text",
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
pub(super) fn whole_microseconds(native: &Type, value: i64, unit: TimeUnit) -> Result<i64, Odd> {
    let Some(microseconds) = microseconds(value, unit) else {
        return Err(Odd::with_hint(
            "it is not a whole number of microseconds",
            "round the data to microseconds",
        ));
    };
    let digits = match native.kind {
        Kind::Plain(Class::Time | Class::Timestamp | Class::Timestamptz) => native.modifier,
        // An interval's modifier has its fields above.
        Kind::Plain(Class::Interval) if native.modifier >= 0 && native.modifier & 0xffff != 0xffff => {
            native.modifier & 0xffff
        }
        _ => return Ok(microseconds),
    };
    let Some(extra) = u32::try_from(digits).ok().and_then(|digits| 6_u32.checked_sub(digits)) else {
        return Ok(microseconds);
    };
    if microseconds % 10_i64.pow(extra) == 0 {
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
        (Class::Timestamp | Class::Timestamptz, Some((date, time))) => (Some(date), Some(time)),
        _ => return Err(not_iso(class)),
    };
    let zone = time.and_then(|time| time.find(['Z', 'z', '+', '-']));
    let clock = time.map(|time| zone.map_or(time, |at| &time[..at]));
    let has_zone_right = zone.is_some() == (class == Class::Timestamptz);
    if !has_zone_right
        || date.is_some_and(|date| !is_date(date))
        || clock.is_some_and(|clock| !is_clock(clock, native))
    {
        return Err(not_iso(class));
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
fn not_iso(class: Class) -> Odd {
    let form = match class {
        Class::Date => "2026-01-31",
        Class::Time => "23:59:59.999999",
        Class::Timestamp => "2026-01-31 23:59:59.999999, without a zone",
        _ => "2026-01-31 23:59:59.999999+00, with a zone",
    };
    Odd::with_hint("the text is not of the one form that means the same everywhere", format!("write {form}"))
}

/// The bits of an interval's fields in its modifier, the finest first (PostgreSQL's `utils/timestamp.h`).
const SECOND: i32 = 1 << 12;
const MINUTE: i32 = 1 << 11;
const HOUR: i32 = 1 << 10;
const DAY: i32 = 1 << 3;
const MONTH: i32 = 1 << 1;
/// What a column without fields has.
const ALL: i32 = 0x7fff;

/// Refuses what a column of `native` would drop.
fn check_kept(item: &Item<'_>, native: &Type) -> Result<(), Odd> {
    let class = match &native.kind {
        Kind::Plain(class) => *class,
        Kind::Array { .. } | Kind::Composite(_) => return literal(item, native),
        Kind::Enum(_) => return Ok(()),
    };
    match class {
        Class::Date | Class::Time | Class::Timestamp | Class::Timestamptz => refuse_numbers(item),
        Class::Interval => refuse_numbers(item).and_then(|()| interval(item, native)),
        Class::TextOnly => named(item, &native.name),
        _ => Ok(()),
    }
}

/// A number is not a date: the server would read 20260131 as one, and 5 as seconds.
fn refuse_numbers(item: &Item<'_>) -> Result<(), Odd> {
    let is_number = matches!(
        item,
        Item::Bool(_)
            | Item::Int(_)
            | Item::UInt(_)
            | Item::Float(_)
            | Item::Double(_)
            | Item::Decimal(..)
            | Item::WideDecimal(..)
    );
    if is_number {
        return Err(Odd::with_hint("a number is not a time", "convert the data to dates or times"));
    }
    Ok(())
}

fn interval(item: &Item<'_>, native: &Type) -> Result<(), Odd> {
    let fields = if native.modifier < 0 { ALL } else { native.modifier >> 16 & ALL };
    let (months, days, at) = match item {
        Item::Interval(months, days, nanoseconds) => (*months, *days, nanoseconds / 1000),
        Item::Duration(value, unit) | Item::Time(value, unit) => {
            (0, 0, microseconds(*value, *unit).unwrap_or_default())
        }
        Item::Text(text) => return interval_text(text, native, fields),
        _ => return Ok(()),
    };
    let is_kept = match fields {
        ALL => !is_infinite(months, days, at),
        fields if fields & SECOND != 0 => true,
        fields if fields & MINUTE != 0 => at % 60_000_000 == 0,
        fields if fields & HOUR != 0 => at % 3_600_000_000 == 0,
        fields if fields & DAY != 0 => at == 0,
        fields if fields & MONTH != 0 => at == 0 && days == 0,
        _ => at == 0 && days == 0 && months % 12 == 0,
    };
    if is_kept {
        return Ok(());
    }
    Err(Odd::with_hint("the column keeps only some fields of an interval", "make it a plain interval"))
}

/// From version 17 on the greatest and the least of all parts stand for infinity.
fn is_infinite(months: i32, days: i32, at: i64) -> bool {
    (months, days, at) == (i32::MAX, i32::MAX, i64::MAX)
        || (months, days, at) == (i32::MIN, i32::MIN, i64::MIN)
}

fn interval_text(text: &str, native: &Type, fields: i32) -> Result<(), Odd> {
    let most =
        if native.modifier < 0 { 6 } else { usize::try_from(native.modifier & 0xffff).unwrap_or(6).min(6) };
    if fields == ALL && places(text) <= most {
        return Ok(());
    }
    Err(Odd::with_hint("the column might drop a part of it", "give spans of time, not texts"))
}

/// Types that have no class of their own, and lose something of what they read.
fn named(item: &Item<'_>, name: &str) -> Result<(), Odd> {
    match (name, item) {
        ("char", Item::Text(text)) if text.len() > 1 => {
            Err(Odd::with_hint("the column has one byte", "make it text"))
        }
        ("money", _) => money(item),
        ("timetz", Item::Timestamp(..) | Item::Instant(..) | Item::Date(_)) => {
            Err(Odd::with_hint("the column keeps only a time of day", "make it timestamptz"))
        }
        ("timetz", Item::Text(text)) if !is_zoned_clock(text) => {
            Err(Odd::with_hint("the text is not a time with a zone", "write 23:59:59.999999+02"))
        }
        ("daterange" | "datemultirange", Item::Text(text)) if text.contains(':') => {
            Err(Odd::with_hint("the column has no times of day", "write [2026-01-31,2026-02-28)"))
        }
        ("tsrange" | "tstzrange" | "tsmultirange" | "tstzmultirange", Item::Text(text))
            if places(text) > 6 =>
        {
            Err(Odd::with_hint("the column has microseconds", "round the data to microseconds"))
        }
        _ => Ok(()),
    }
}

fn money(item: &Item<'_>) -> Result<(), Odd> {
    let plain = match item {
        Item::Text(value) => (*value).to_owned(),
        _ => digits(item).unwrap_or_default(),
    };
    let kept = plain.trim_end_matches('0');
    if places(if plain.contains('.') { kept } else { &plain }) <= 2 {
        return Ok(());
    }
    Err(Odd::with_hint(
        "money has two digits after the point, and would be rounded",
        "make the column numeric",
    ))
}

/// The most digits that follow a point.
fn places(text: &str) -> usize {
    let after = text.split('.').skip(1);
    after.map(|rest| rest.bytes().take_while(u8::is_ascii_digit).count()).max().unwrap_or_default()
}

fn is_zoned_clock(text: &str) -> bool {
    let Some(at) = text.find(['Z', 'z', '+', '-']) else { return false };
    let clock = &text[..at];
    places(clock) <= 6
        && clock.contains(':')
        && clock.bytes().all(|byte| byte.is_ascii_digit() || b":.".contains(&byte))
}

/// The text of a whole array or row, whose parts are not looked at here.
fn literal(item: &Item<'_>, native: &Type) -> Result<(), Odd> {
    if !matches!(item, Item::Text(_)) || !loses(native) {
        return Ok(());
    }
    let form = if matches!(native.kind, Kind::Composite(_)) { "structs" } else { "lists" };
    Err(Odd::with_hint(
        "the server might drop a part of what the text holds",
        format!("give {form}, not texts"),
    ))
}

/// Whether a type may drop a part of a text.
fn loses(native: &Type) -> bool {
    match &native.kind {
        Kind::Array { element, .. } => loses(element),
        Kind::Composite(attributes) => attributes.iter().any(|attribute| loses(&attribute.native)),
        Kind::Enum(_) => false,
        Kind::Plain(Class::Date | Class::Time | Class::Timestamp | Class::Timestamptz | Class::Interval) => {
            true
        }
        Kind::Plain(Class::Numeric | Class::Text) => native.modifier >= 4,
        Kind::Plain(_) => {
            let name = native.name.as_str();
            matches!(name, "char" | "money" | "timetz") || name.ends_with("range")
        }
    }
}

/// Refuses what would not come back as a list within a list.
pub(super) fn list_within(item: &Item<'_>, is_inner: bool) -> Result<(), Odd> {
    match item {
        Item::Null if is_inner => {
            Err(Odd::with_hint("an array has no NULL in the place of a list", "replace it, or write json"))
        }
        Item::List(values) if is_inner && values.is_empty() => {
            Err(Odd::with_hint("an array has no empty list inside", "drop it, or write json"))
        }
        _ => Ok(()),
    }
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
    fn texts_of_dates_and_times_have_one_form() {
        let of = |oid: u32| Type::builtin(oid).unwrap();
        let check = |oid, text| check(&Item::Text(text), &of(oid)).is_ok();
        assert!(check(1114, "2026-01-31 00:00:00") && check(1184, "2026-01-31T00:00:00.5Z"));
        assert!(check(1082, "2026-01-31") && check(1083, "23:59"));
        assert!(!check(1114, "2026-01-31 00:00:00+02") && !check(1184, "2026-01-31 00:00:00"));
        assert!(
            !check(1114, "2026-01-31 00:00:00.1234567") && !check(1082, "1/2/2026") && !check(1082, "today")
        );
    }

    #[test]
    fn an_interval_keeps_the_fields_of_its_column() {
        let of = |fields: i32| Type::builtin(1186).unwrap().with_modifier(fields << 16 | 0xffff);
        let kept = |fields, item| check_kept(&item, &of(fields)).is_ok();
        assert!(kept(ALL, Item::Interval(1, 2, 3_000)) && kept(SECOND, Item::Interval(0, 0, 1_000)));
        assert!(kept(DAY, Item::Interval(14, 1, 0)) && !kept(DAY, Item::Interval(0, 1, 1_000)));
        assert!(kept(MONTH, Item::Interval(13, 0, 0)) && !kept(MONTH, Item::Interval(1, 1, 0)));
        assert!(kept(1 << 2, Item::Interval(12, 0, 0)) && !kept(1 << 2, Item::Interval(13, 0, 0)));
        assert!(!kept(MINUTE, Item::Interval(0, 0, 61_000_000_000)));
    }

    #[test]
    fn digits_after_points_are_counted() {
        assert_eq!((places("1.25 s"), places("[1.5,2.123456)"), places("12")), (2, 6, 0));
        assert!(
            is_zoned_clock("12:00:00.5+02")
                && !is_zoned_clock("12:00")
                && !is_zoned_clock("2026-01-01 12:00+02")
        );
    }
}
