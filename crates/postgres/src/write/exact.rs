//! The limits of what a column holds exactly. The server would round, truncate, pad or drop what is beyond, without a word.

use arrow_schema::TimeUnit;
use longshore_source::fit::{self, Decimals};
use longshore_values::calendar;
use longshore_values::{Item, Misfit, microseconds};

use crate::types::{Class, Kind, Type, precision_and_scale};

/// Refuses what the server would change.
pub(super) fn check(item: &Item<'_>, native: &Type) -> Result<(), Misfit> {
    check_kept(item, native)?;
    let Kind::Plain(class) = native.kind else { return Ok(()) };
    match (item, class) {
        (Item::Text(value), Class::Text) => length(native, value),
        (Item::Text(value), Class::Numeric) => number_text(native, value),
        (Item::Text(value), Class::Date | Class::Time | Class::Timestamp | Class::Timestamptz) => {
            temporal_text(native, class, value)
        }
        (Item::Double(value), Class::Float4) => fit::float32(*value).map(drop),
        (Item::Decimal(..) | Item::WideDecimal(..), Class::Float4 | Class::Float8) => {
            digits(item).map_or(Ok(()), |plain| fit::double(&plain, class == Class::Float4).map(drop))
        }
        (
            Item::Time(value, unit)
            | Item::Timestamp(value, unit)
            | Item::TimestampTz(value, unit)
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

/// The digits of a finite number, with their point.
pub(super) fn digits(item: &Item<'_>) -> Option<String> {
    match item {
        Item::Double(value) if value.is_finite() => Some(value.to_string()),
        Item::Float(value) if value.is_finite() => Some(value.to_string()),
        _ => item.digits(),
    }
}

#[cold]
pub(super) fn zero_byte() -> Misfit {
    Misfit::with_hint("PostgreSQL's text has no zero bytes", "write it as bytes, into a bytea column")
}

/// How many characters a column has at most, where it is bound.
pub(super) fn most_characters(native: &Type) -> Option<usize> {
    usize::try_from(native.modifier - 4).ok().filter(|_| matches!(native.name.as_str(), "varchar" | "bpchar"))
}

/// Text of as many characters as the column has, at most. The server would drop blanks at its end.
pub(super) fn length(native: &Type, value: &str) -> Result<(), Misfit> {
    if value.as_bytes().contains(&0) {
        return Err(zero_byte());
    }
    most_characters(native).map_or(Ok(()), |most| fit::characters(value, most))
}

/// The decimals that numeric's column holds, where it is bound.
#[inline]
pub(super) fn decimals(native: &Type) -> Option<Decimals> {
    (native.modifier >= 4).then(|| {
        let (precision, scale) = precision_and_scale(native.modifier);
        Decimals { precision, scale, is_signed: true }
    })
}

/// A number's text into numeric's column.
pub(super) fn decimal(native: &Type, text: &str) -> Result<(), Misfit> {
    decimals(native).map_or(Ok(()), |decimals| decimals.check(text))
}

fn number_text(native: &Type, value: &str) -> Result<(), Misfit> {
    let text = value.trim();
    if text.eq_ignore_ascii_case("nan") { Ok(()) } else { decimal(native, text) }
}

/// The microseconds of a time, which has no digit that the column would round.
#[inline]
pub(super) fn whole_microseconds(native: &Type, value: i64, unit: TimeUnit) -> Result<i64, Misfit> {
    let microseconds = fit::microseconds(value, unit)?;
    let digits = match native.kind {
        Kind::Plain(Class::Time | Class::Timestamp | Class::Timestamptz) => native.modifier,
        // An interval's modifier has its fields above.
        Kind::Plain(Class::Interval) if native.modifier >= 0 && native.modifier & 0xffff != 0xffff => {
            native.modifier & 0xffff
        }
        _ => return Ok(microseconds),
    };
    u8::try_from(digits).map_or(Ok(microseconds), |digits| fit::in_digits(microseconds, digits))
}

/// ISO 8601 alone: other texts mean what the session's settings make of them, and some lose a part without a word.
fn temporal_text(native: &Type, class: Class, value: &str) -> Result<(), Misfit> {
    if matches!(value, "infinity" | "-infinity") && class != Class::Time {
        return Ok(());
    }
    if class == Class::Date && is_date(value) {
        return Ok(());
    }
    let (date, time) = if class == Class::Time {
        (None, value)
    } else {
        value.split_once(['T', ' ']).map_or((Some(value), ""), |(date, time)| (Some(date), time))
    };
    let zone = time.find(['Z', 'z', '+', '-']);
    // The server reads the zone's own form.
    let time = calendar::parse_time(&time[..zone.unwrap_or(time.len())]);
    match time {
        Some(at) if date.is_none_or(is_date) && zone.is_some() == (class == Class::Timestamptz) => {
            whole_microseconds(native, at, TimeUnit::Microsecond).map(drop)
        }
        _ => Err(fit::not_iso(class == Class::Timestamptz)),
    }
}

/// Whether a text is `YYYY-MM-DD`, the year with four digits or more: of fewer, or in another order, the session's settings decide.
fn is_date(text: &str) -> bool {
    let is_hyphen = |from_end: usize| {
        text.len().checked_sub(from_end).and_then(|at| text.as_bytes().get(at)) == Some(&b'-')
    };
    text.len() >= 10 && is_hyphen(3) && is_hyphen(6) && calendar::parse_date(text, false).is_some()
}

/// The bits of an interval's fields in its modifier, the finest first (PostgreSQL's `utils/timestamp.h`).
const SECOND: i32 = 1 << 12;
const MINUTE: i32 = 1 << 11;
const HOUR: i32 = 1 << 10;
const DAY: i32 = 1 << 3;
const MONTH: i32 = 1 << 1;
/// The fields of a column that declares none: all.
const ALL: i32 = 0x7fff;

/// Refuses what a column of `native` would drop.
fn check_kept(item: &Item<'_>, native: &Type) -> Result<(), Misfit> {
    let class = match &native.kind {
        Kind::Plain(class) => *class,
        Kind::Array { .. } | Kind::Composite(_) => return literal(item, native),
        Kind::Enum(_) => return Ok(()),
        Kind::Range(_) => return check_named(item, &native.name),
    };
    match class {
        Class::Date | Class::Time | Class::Timestamp | Class::Timestamptz => refuse_numbers(item),
        Class::Interval => refuse_numbers(item).and_then(|()| interval(item, native)),
        Class::TextOnly => check_named(item, &native.name),
        _ => Ok(()),
    }
}

/// A number is not a date: the server would read 20260131 as one, and 5 as seconds.
fn refuse_numbers(item: &Item<'_>) -> Result<(), Misfit> {
    if item.is_number() {
        return Err(Misfit::with_hint("a number is not a time", "convert the data to dates or times"));
    }
    Ok(())
}

fn interval(item: &Item<'_>, native: &Type) -> Result<(), Misfit> {
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
    Err(Misfit::with_hint("the column keeps only some fields of an interval", "make it a plain interval"))
}

/// From version 17 on the greatest and the least of all parts stand for infinity.
fn is_infinite(months: i32, days: i32, at: i64) -> bool {
    (months, days, at) == (i32::MAX, i32::MAX, i64::MAX)
        || (months, days, at) == (i32::MIN, i32::MIN, i64::MIN)
}

fn interval_text(text: &str, native: &Type, fields: i32) -> Result<(), Misfit> {
    let most =
        if native.modifier < 0 { 6 } else { usize::try_from(native.modifier & 0xffff).unwrap_or(6).min(6) };
    if fields == ALL && places(text) <= most {
        return Ok(());
    }
    Err(Misfit::with_hint("the column might drop a part of it", "give spans of time, not texts"))
}

/// Types that have no class of their own, and lose something of what they read.
fn check_named(item: &Item<'_>, name: &str) -> Result<(), Misfit> {
    match (name, item) {
        ("char", Item::Text(text)) if text.len() > 1 => {
            Err(Misfit::with_hint("the column has one byte", "make it text"))
        }
        ("money", _) => money(item),
        ("timetz", Item::Timestamp(..) | Item::TimestampTz(..) | Item::Date(_)) => {
            Err(Misfit::with_hint("the column keeps only a time of day", "make it timestamptz"))
        }
        ("timetz", Item::Text(text)) if !is_time_tz(text) => {
            Err(Misfit::with_hint("the text is not a time with a zone", "write 23:59:59.999999+02"))
        }
        ("daterange" | "datemultirange", Item::Text(text)) if text.contains(':') => {
            Err(Misfit::with_hint("the column has no times of day", "write [2026-01-31,2026-02-28)"))
        }
        ("tsrange" | "tstzrange" | "tsmultirange" | "tstzmultirange", Item::Text(text))
            if places(text) > 6 =>
        {
            Err(Misfit::with_hint("the column has microseconds", "round the data to microseconds"))
        }
        _ => Ok(()),
    }
}

fn money(item: &Item<'_>) -> Result<(), Misfit> {
    let plain = match item {
        Item::Text(value) => (*value).to_owned(),
        _ => digits(item).unwrap_or_default(),
    };
    let kept = plain.trim_end_matches('0');
    if places(if plain.contains('.') { kept } else { &plain }) <= 2 {
        return Ok(());
    }
    Err(Misfit::with_hint(
        "money has two digits after the point, and would be rounded",
        "make the column numeric",
    ))
}

/// The most digits that follow a point.
fn places(text: &str) -> usize {
    let after = text.split('.').skip(1);
    after.map(|rest| rest.bytes().take_while(u8::is_ascii_digit).count()).max().unwrap_or_default()
}

fn is_time_tz(text: &str) -> bool {
    let Some(at) = text.find(['Z', 'z', '+', '-']) else { return false };
    let time = &text[..at];
    places(time) <= 6
        && time.contains(':')
        && time.bytes().all(|byte| byte.is_ascii_digit() || b":.".contains(&byte))
}

/// The text of a whole array or row, whose parts are not looked at here.
fn literal(item: &Item<'_>, native: &Type) -> Result<(), Misfit> {
    if !matches!(item, Item::Text(_)) || !loses(native) {
        return Ok(());
    }
    let form = if matches!(native.kind, Kind::Composite(_)) { "structs" } else { "lists" };
    Err(Misfit::with_hint(
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
        Kind::Range(_)
        | Kind::Plain(Class::Date | Class::Time | Class::Timestamp | Class::Timestamptz | Class::Interval) => {
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
pub(super) fn list_within(item: &Item<'_>, is_inner: bool) -> Result<(), Misfit> {
    match item {
        Item::Null if is_inner => {
            Err(Misfit::with_hint("an array has no NULL in the place of a list", "replace it, or write json"))
        }
        Item::List(values) if is_inner && values.is_empty() => {
            Err(Misfit::with_hint("an array has no empty list inside", "drop it, or write json"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(is_time_tz("12:00:00.5+02") && !is_time_tz("12:00") && !is_time_tz("2026-01-01 12:00+02"));
    }
}
