//! Text cells, read as the Arrow type that is wanted: the `text` protocol, types without a known binary form,
//! and every override by `schema=`.
//!
//! Decoders of texts. What a text says that the type cannot hold is a fault, never rounded.

use arrow_array::types::{BinaryType, Date32Type, IntervalMonthDayNanoType, LargeBinaryType};
use arrow_buffer::IntervalMonthDayNano;
use arrow_schema::{DataType, Field, IntervalUnit};
use longshore_values::calendar::{DAY, SECOND, number, parse_date, parse_span, parse_time};
use longshore_values::policies::{ValuePolicies, infinite, out_of_range, time_24};
use longshore_values::text::{Number, not, numbers, times, timestamps, unhex, utf8, uuid};
use longshore_values::{Booleans, Decoder, Derived, Fixed, Losses, Misfit, Primitive, bytes, strings};

use super::Labels;
use super::nested::text::{split_array, split_record};
use super::nested::{Lists, Records};
use crate::types::{Class, Format, Kind, Type};
use crate::{geometry, hstore, range, vector};

/// The decoder of `native`'s text form into `arrow`; `None` where there is none.
pub(super) fn decoder(
    native: &Type,
    arrow: &DataType,
    policies: ValuePolicies,
    losses: &Losses,
) -> Option<Box<dyn Decoder>> {
    match (&native.kind, arrow) {
        // The one dictionary type that labels are decoded into.
        (Kind::Enum(labels), DataType::Dictionary(keys, values))
            if (keys.as_ref(), values.as_ref()) == (&DataType::Int32, &DataType::Utf8) =>
        {
            Some(Box::new(Labels::new(labels)))
        }
        (Kind::Array { element, delimiter, .. }, DataType::List(_)) => {
            lists(element, *delimiter, arrow, policies, losses)
        }
        (Kind::Composite(attributes), DataType::Struct(fields)) if attributes.len() == fields.len() => {
            let children = attributes.iter().zip(fields);
            let children: Option<Vec<_>> = children
                .map(|(child, field)| decoder(&child.native, field.data_type(), policies, losses))
                .collect();
            Some(Box::new(Records::new(fields.clone(), children?, Box::new(split_record))))
        }
        (Kind::Range(bound), DataType::Struct(fields)) => {
            let [lower, upper, ..] = fields.as_ref() else { return None };
            let bound = |field: &Field| decoder(bound, field.data_type(), policies, losses);
            let flag = || Booleans::boxed(boolean);
            let children = vec![bound(lower)?, bound(upper)?, flag(), flag(), flag()];
            Some(Box::new(Records::new(fields.clone(), children, Box::new(range::split_text))))
        }
        (
            Kind::Plain(class @ (Class::Vector | Class::HalfVector)),
            DataType::List(_) | DataType::FixedSizeList(..),
        ) => vector::decoder(*class, Format::Text, arrow),
        (Kind::Plain(Class::Hstore), DataType::Map(..)) if *arrow == hstore::map_type() => {
            Some(hstore::decoder(Format::Text))
        }
        (Kind::Plain(Class::Geometry), DataType::Binary | DataType::LargeBinary) => {
            Some(geometry::decoder(native, Format::Text, arrow))
        }
        _ => scalar(native, arrow, policies, losses),
    }
}

/// Lists as deep as the Arrow type says; the innermost of them may be the elements' own.
fn lists(
    element: &Type,
    delimiter: u8,
    arrow: &DataType,
    policies: ValuePolicies,
    losses: &Losses,
) -> Option<Box<dyn Decoder>> {
    let DataType::List(item) = arrow else { return None };
    let own = lists_in(element);
    let (mut innermost, mut depth) = (item, 1);
    while let (DataType::List(inner), true) = (innermost.data_type(), levels(innermost.data_type()) > own) {
        innermost = inner;
        depth += 1;
    }
    let values = decoder(element, innermost.data_type(), policies, losses)?;
    let split = Box::new(move |cell: &_, into: &mut _| split_array(delimiter, cell, into));
    Some(Box::new(Lists::new(item.clone(), depth, values, split, Some(losses.clone()))))
}

/// The levels of lists that a value of the type has by itself: an array of a domain over arrays has more than one.
fn lists_in(native: &Type) -> usize {
    match &native.kind {
        Kind::Array { element, dimensions, .. } => dimensions + lists_in(element),
        Kind::Plain(Class::Vector | Class::HalfVector) => 1,
        _ => 0,
    }
}

fn levels(arrow: &DataType) -> usize {
    match arrow {
        DataType::List(item) => 1 + levels(item.data_type()),
        DataType::FixedSizeList(..) => 1,
        _ => 0,
    }
}

fn scalar(
    native: &Type,
    arrow: &DataType,
    policies: ValuePolicies,
    losses: &Losses,
) -> Option<Box<dyn Decoder>> {
    let is = |class: Class| matches!(native.kind, Kind::Plain(got) if got == class);
    let number = match native.kind {
        Kind::Plain(Class::Float4) => Number::Float,
        Kind::Plain(Class::Float8) => Number::Double,
        Kind::Plain(Class::Numeric) => Number::Decimal,
        _ => Number::Exact,
    };
    let as_is = arrow.clone();
    Some(match *arrow {
        DataType::Boolean => Booleans::boxed(boolean),
        DataType::Utf8 | DataType::LargeUtf8 => return strings(arrow),
        // Cells of a numeric that wait for their scale are kept as they are.
        DataType::Binary if is(Class::Numeric) => bytes(),
        DataType::Binary if is(Class::Bytes) => Derived::<BinaryType, _>::boxed(bytea),
        DataType::LargeBinary if is(Class::Bytes) => Derived::<LargeBinaryType, _>::boxed(bytea),
        DataType::FixedSizeBinary(16) if is(Class::Uuid) || is(Class::Text) || is(Class::TextOnly) => {
            Fixed::<16, _>::boxed(uuid)
        }
        DataType::Date32 => Primitive::<Date32Type, _>::boxed(as_is, move |cell| date(cell, policies)),
        DataType::Time64(_) => return times(arrow, move |cell| time(cell, policies)),
        DataType::Timestamp(unit, ref zone) => {
            let has_zone = zone.is_some();
            timestamps(as_is, unit, policies.infinity, move |cell| timestamp(cell, has_zone, policies))
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            Primitive::<IntervalMonthDayNanoType, _>::boxed(as_is, move |cell| interval(cell, policies))
        }
        DataType::List(_) => return lists(&Type::text_only("element"), b',', arrow, policies, losses),
        _ => return numbers(arrow, number, policies.numeric_nan, losses),
    })
}

fn boolean(cell: &[u8]) -> Result<bool, Misfit> {
    match cell {
        b"t" | b"true" => Ok(true),
        b"f" | b"false" => Ok(false),
        _ => Err(not("a boolean", utf8(cell)?)),
    }
}

/// bytea in either of `bytea_output`'s forms: hex, or escape (`\\` and `\ooo`).
fn bytea(cell: &[u8], into: &mut Vec<u8>) -> Result<(), Misfit> {
    let damage = || Misfit::fault("the server sent a damaged bytea");
    if let Some(digits) = cell.strip_prefix(b"\\x") {
        into.extend(unhex(digits).ok_or_else(damage)?);
        return Ok(());
    }
    let mut rest = cell;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            into.push(*byte);
        } else if let Some(after) = rest.strip_prefix(b"\\") {
            into.push(b'\\');
            rest = after;
        } else {
            let (octal, after) = rest.split_first_chunk::<3>().ok_or_else(damage)?;
            let octal = std::str::from_utf8(octal).map_err(|_| damage())?;
            into.push(u8::from_str_radix(octal, 8).map_err(|_| damage())?);
            rest = after;
        }
    }
    Ok(())
}

/// `+HH[:MM[:SS]]` in microseconds.
fn parse_offset(text: &str) -> Option<i64> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let mut seconds = 0;
    for (part, unit) in text.get(1..)?.split(':').zip([3600, 60, 1]) {
        seconds += number(part)? * unit;
    }
    Some(sign * seconds * SECOND)
}

fn strip_era(text: &str) -> (&str, bool) {
    text.strip_suffix(" BC").map_or((text, false), |text| (text, true))
}

fn is_infinite(text: &str) -> bool {
    matches!(text, "infinity" | "-infinity")
}

/// A date's days since 1970-01-01. A timestamp is one only at midnight.
pub(super) fn date(cell: &[u8], policies: ValuePolicies) -> Result<i32, Misfit> {
    let text = utf8(cell)?;
    if is_infinite(text) {
        return Err(infinite(policies.infinity));
    }
    let (civil, before_christ) = strip_era(text);
    let civil = civil.strip_suffix(" 00:00:00").unwrap_or(civil);
    let days = parse_date(civil, before_christ).ok_or_else(|| not("a date", text))?;
    i32::try_from(days).map_err(|_| out_of_range(policies.infinity))
}

/// A time's microseconds since midnight.
pub(super) fn time(cell: &[u8], policies: ValuePolicies) -> Result<i64, Misfit> {
    let text = utf8(cell)?;
    match parse_time(text).ok_or_else(|| not("a time", text))? {
        DAY => Err(time_24(policies.time_24)),
        microseconds => Ok(microseconds),
    }
}

/// A timestamp's microseconds since 1970-01-01; one `has_zone` needs an offset, a naive one must have none.
pub(super) fn timestamp(cell: &[u8], has_zone: bool, policies: ValuePolicies) -> Result<i64, Misfit> {
    let text = utf8(cell)?;
    if is_infinite(text) {
        return Err(infinite(policies.infinity));
    }
    let (civil, before_christ) = strip_era(text);
    let (date, time) = civil.split_once(' ').unwrap_or((civil, "00:00:00"));
    let (time, offset) = time.find(['+', '-']).map_or((time, None), |at| (&time[..at], Some(&time[at..])));
    if offset.is_some() != has_zone {
        return Err(wrong_zone(text, has_zone));
    }
    let parsed = parse_date(date, before_christ).zip(parse_time(time));
    let (days, time) = parsed.ok_or_else(|| not("a timestamp", text))?;
    let offset = offset.map_or(Some(0), parse_offset).ok_or_else(|| not("a timestamp", text))?;
    // Wide: the local time may be beyond what its instant is not.
    let microseconds = i128::from(days) * i128::from(DAY) + i128::from(time) - i128::from(offset);
    i64::try_from(microseconds).map_err(|_| out_of_range(policies.infinity))
}

#[cold]
fn wrong_zone(text: &str, has_zone: bool) -> Misfit {
    if has_zone {
        return Misfit::with_hint(
            format!("{text:?} has no time zone, so it is not a point in time"),
            "ask for \"timestamp[us]\", or convert in the query: column AT TIME ZONE 'UTC'",
        );
    }
    Misfit::with_hint(
        format!("{text:?} has a time zone; without it, it would be another value"),
        "ask for \"timestamp[us, tz=UTC]\", or convert in the query: column AT TIME ZONE 'UTC'",
    )
}

/// The three parts of an interval's text.
pub(super) fn interval(cell: &[u8], policies: ValuePolicies) -> Result<IntervalMonthDayNano, Misfit> {
    let text = utf8(cell)?;
    if matches!(text, "infinity" | "-infinity") {
        return Err(infinite(policies.infinity));
    }
    let (months, days, microseconds) = interval_parts(text).ok_or_else(|| {
        Misfit::with_hint(
            format!("{text:?} is not an interval in PostgreSQL's own style"),
            "leave IntervalStyle at postgres, or ask for text with schema={\"<column>\": \"string\"}",
        )
    })?;
    let fits =
        || Some((i32::try_from(months).ok()?, i32::try_from(days).ok()?, microseconds.checked_mul(1000)?));
    let (months, days, nanoseconds) = fits().ok_or_else(|| out_of_range(policies.infinity))?;
    Ok(IntervalMonthDayNano::new(months, days, nanoseconds))
}

fn interval_parts(text: &str) -> Option<(i64, i64, i64)> {
    let (mut months, mut days, mut microseconds) = (0_i64, 0_i64, 0_i64);
    let mut words = text.split(' ').peekable();
    words.peek().filter(|word| !word.is_empty())?;
    while let Some(word) = words.next() {
        if word.contains(':') {
            microseconds = parse_span(word.as_bytes())?;
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

#[cfg(test)]
mod tests {
    use longshore_core::{ReadOptions, Unrepresentable};

    use super::*;

    #[test]
    fn a_numeric_as_a_float32_obeys_numeric_nan() {
        use longshore_values::{Cells, Span};
        let native = Type { name: "numeric".to_owned(), kind: Kind::Plain(Class::Numeric), modifier: -1 };
        let read = |text: &str, numeric_nan: Unrepresentable| {
            let policies = ValuePolicies {
                numeric_nan,
                infinity: Unrepresentable::Error,
                time_24: Unrepresentable::Error,
            };
            let mut decoder = decoder(&native, &DataType::Float32, policies, &Losses::default()).unwrap();
            let span = Span::new(0, u32::try_from(text.len()).unwrap());
            decoder
                .decode(Cells::new(text.as_bytes(), &[span], false))
                .map(|()| decoder.finish().null_count())
        };
        for special in ["NaN", "Infinity", "-Infinity"] {
            assert!(read(special, Unrepresentable::Error).is_err(), "{special}");
            assert_eq!(read(special, Unrepresentable::Null), Ok(1), "{special}");
        }
        assert_eq!(read("0.5", Unrepresentable::Error), Ok(0));
        assert!(read("1.00000000000000000001", Unrepresentable::Null).is_err());
    }

    #[test]
    fn only_bytea_is_binary_and_only_uuids_are_sixteen_bytes() {
        let policies = ValuePolicies {
            numeric_nan: Unrepresentable::Error,
            infinity: Unrepresentable::Error,
            time_24: Unrepresentable::Error,
        };
        let reads = |class: Class, arrow: &DataType| {
            let native = Type { name: "made".to_owned(), kind: Kind::Plain(class), modifier: -1 };
            decoder(&native, arrow, policies, &Losses::default()).is_some()
        };
        assert!(reads(Class::Bytes, &DataType::Binary) && reads(Class::Bytes, &DataType::LargeBinary));
        assert!(reads(Class::Uuid, &DataType::FixedSizeBinary(16)));
        for class in [Class::Text, Class::Uuid, Class::Int4, Class::Json] {
            assert!(!reads(class, &DataType::Binary) && !reads(class, &DataType::LargeBinary), "{class:?}");
        }
        assert!(!reads(Class::Int4, &DataType::FixedSizeBinary(16)));
        assert!(!reads(Class::Uuid, &DataType::FixedSizeBinary(8)));
    }

    #[test]
    fn a_text_with_lists_of_unlike_depths_is_a_fault() {
        use arrow_schema::Field;
        use longshore_values::{Cells, Span};
        let policies = ValuePolicies {
            numeric_nan: Unrepresentable::Error,
            infinity: Unrepresentable::Error,
            time_24: Unrepresentable::Error,
        };
        let list = |item: DataType| DataType::List(std::sync::Arc::new(Field::new_list_field(item, true)));
        let reads = |text: &str| {
            let wanted = list(list(list(DataType::Int8)));
            let mut decoder =
                decoder(&Type::text_only("text"), &wanted, policies, &Losses::default()).unwrap();
            let span = Span::new(0, u32::try_from(text.len()).unwrap());
            decoder.decode(Cells::new(text.as_bytes(), &[span], false)).is_ok()
        };
        assert!(reads("{{{1}},{{2}}}") && reads("{}"));
        assert!(!reads("{{{}},{1}}"));
    }

    #[test]
    fn bytea_in_both_forms() {
        let read = |cell: &[u8]| {
            let mut into = Vec::new();
            bytea(cell, &mut into).map(|()| into)
        };
        assert_eq!(read(b"\\x00ff"), Ok(vec![0, 255]));
        assert_eq!(read(b"a\\\\b\\001"), Ok(b"a\\b\x01".to_vec()));
        assert!(read(b"\\x0").is_err() && read(b"\\9").is_err() && read(b"\\999").is_err());
    }

    fn policies() -> ValuePolicies {
        ValuePolicies::from(&ReadOptions::default())
    }

    #[test]
    fn dates_of_all_eras() {
        assert_eq!(date(b"0001-01-01 BC", policies()), Ok(-719_528));
        assert_eq!(date(b"5874897-12-31", policies()), Ok(2_145_042_905));
        for bad in ["2023-02-29", "2023-13-01", "2023-1", "", "abc", "-2023-01-01"] {
            assert!(date(bad.as_bytes(), policies()).is_err(), "{bad}");
        }
    }

    #[test]
    fn timestamps_keep_microseconds_and_offsets() {
        assert_eq!(timestamp(b"1969-12-31 23:59:59.999999", false, policies()), Ok(-1));
        assert_eq!(timestamp(b"1970-01-01 05:30:00+05:30", true, policies()), Ok(0));
        assert_eq!(timestamp(b"1970-01-01 00:00:00.5-00:00:01", true, policies()), Ok(1_500_000));
        assert_eq!(timestamp(b"294247-01-10 05:00:54.775807+01", true, policies()), Ok(i64::MAX));
        assert!(timestamp(b"1970-01-01 00:00:00", true, policies()).is_err());
        assert!(timestamp(b"1970-01-01 00:00:00+00", false, policies()).is_err());
    }

    #[test]
    fn signs_belong_to_each_part() {
        let read = |text: &str| interval(text.as_bytes(), ValuePolicies::from(&ReadOptions::default()));
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
