//! Columns that keep less than they take: the server drops the rest without a word.

use longshore_cells::{Item, Odd, microseconds};

use super::fit;
use crate::types::{Class, Kind, Type};

/// The bits of an interval's fields in its modifier, the finest first (PostgreSQL's `utils/timestamp.h`).
const SECOND: i32 = 1 << 12;
const MINUTE: i32 = 1 << 11;
const HOUR: i32 = 1 << 10;
const DAY: i32 = 1 << 3;
const MONTH: i32 = 1 << 1;
/// What a column without fields has.
const ALL: i32 = 0x7fff;

/// Refuses what a column of `native` would drop.
pub(super) fn check(item: &Item<'_>, native: &Type) -> Result<(), Odd> {
    let class = match &native.kind {
        Kind::Plain(class) => *class,
        Kind::Array { .. } | Kind::Composite(_) => return literal(item, native),
        Kind::Enum(_) => return Ok(()),
    };
    match class {
        Class::Date | Class::Time | Class::Timestamp | Class::Instant => refuse_numbers(item),
        Class::Interval => refuse_numbers(item).and_then(|()| interval(item, native)),
        Class::TextOnly => named(item, &native.name),
        _ => Ok(()),
    }
}

/// A number is no date: the server would read 20260131 as one, and 5 as seconds.
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
    Err(Odd::with_hint("the column might drop a part of it", "give spans of time, no texts"))
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
        Item::Decimal(value, scale) => fit::plain(&value.to_string(), *scale),
        Item::WideDecimal(value, scale) => fit::plain(&value.to_string(), *scale),
        Item::Float(value) => value.to_string(),
        Item::Double(value) => value.to_string(),
        Item::Text(value) => (*value).to_owned(),
        _ => return Ok(()),
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

/// The text of a whole array or row, whose parts nobody here looks at.
fn literal(item: &Item<'_>, native: &Type) -> Result<(), Odd> {
    if !matches!(item, Item::Text(_)) || !loses(native) {
        return Ok(());
    }
    let form = if matches!(native.kind, Kind::Composite(_)) { "structs" } else { "lists" };
    Err(Odd::with_hint(
        "the server might drop a part of what the text holds",
        format!("give {form}, no texts"),
    ))
}

/// Whether a type may drop a part of a text.
fn loses(native: &Type) -> bool {
    match &native.kind {
        Kind::Array { element, .. } => loses(element),
        Kind::Composite(attributes) => attributes.iter().any(|attribute| loses(&attribute.native)),
        Kind::Enum(_) => false,
        Kind::Plain(Class::Date | Class::Time | Class::Timestamp | Class::Instant | Class::Interval) => true,
        Kind::Plain(Class::Numeric | Class::Text) => native.modifier >= 4,
        Kind::Plain(_) => {
            let name = native.name.as_str();
            matches!(name, "char" | "money" | "timetz") || name.ends_with("range")
        }
    }
}

/// Refuses what would not come back as a list within a list.
pub(super) fn whole(item: &Item<'_>, is_inner: bool) -> Result<(), Odd> {
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

    #[test]
    fn an_interval_keeps_the_fields_of_its_column() {
        let of = |fields: i32| Type::builtin(1186).unwrap().with_modifier(fields << 16 | 0xffff);
        let kept = |fields, item| check(&item, &of(fields)).is_ok();
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
