//! Text cells, read as the Arrow type that is wanted: the `text` protocol, types without a known binary form,
//! and every override by `schema=`.
//!
//! What a text says that the type cannot hold is a fault, never rounded.

use arrow_array::types::{
    BinaryType, Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, IntervalMonthDayNanoType, LargeBinaryType, Time64MicrosecondType,
    Time64NanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use longshore_cells::decimal::{self, DecimalType};
use longshore_cells::odds::Odds;
use longshore_cells::text::{
    double, exact_float, integer, narrowed, not, shortest_double, shortest_float, timestamps, unhex, utf8,
    uuid,
};
use longshore_cells::{Booleans, Decoder, Derived, Fixed, Losses, Odd, Primitive, bytes, large_text, text};

use super::civil;
use super::dictionary::Labels;
use super::literal::{TextArray, TextRecord};
use super::nested::{Lists, Records};
use crate::types::{Class, Kind, Type};

/// The decoder of `native`'s text form into `arrow`; `None` where there is none.
pub(super) fn decoder(
    native: &Type,
    arrow: &DataType,
    odds: Odds,
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
            lists(element, *delimiter, arrow, odds, losses)
        }
        (Kind::Composite(attributes), DataType::Struct(fields)) if attributes.len() == fields.len() => {
            let children = attributes.iter().zip(fields);
            let children: Option<Vec<_>> = children
                .map(|(child, field)| decoder(&child.native, field.data_type(), odds, losses))
                .collect();
            Some(Box::new(Records::new(fields.clone(), children?, Box::new(TextRecord))))
        }
        _ => scalar(native, arrow, odds, losses),
    }
}

/// Lists as deep as the Arrow type says; the innermost of them may be the elements' own.
fn lists(
    element: &Type,
    delimiter: u8,
    arrow: &DataType,
    odds: Odds,
    losses: &Losses,
) -> Option<Box<dyn Decoder>> {
    let DataType::List(item) = arrow else { return None };
    let own = lists_in(element);
    let (mut leaf, mut depth) = (item, 1);
    while let (DataType::List(inner), true) = (leaf.data_type(), levels(leaf.data_type()) > own) {
        leaf = inner;
        depth += 1;
    }
    let values = decoder(element, leaf.data_type(), odds, losses)?;
    let split = Box::new(TextArray { delimiter });
    Some(Box::new(Lists::new(item.clone(), depth, values, split, Some(losses.clone()))))
}

/// The levels of lists that a value of the type has by itself: an array of a domain over arrays has more than one.
fn lists_in(native: &Type) -> usize {
    match &native.kind {
        Kind::Array { element, dimensions, .. } => dimensions + lists_in(element),
        _ => 0,
    }
}

fn levels(arrow: &DataType) -> usize {
    match arrow {
        DataType::List(item) => 1 + levels(item.data_type()),
        _ => 0,
    }
}

fn scalar(native: &Type, arrow: &DataType, odds: Odds, losses: &Losses) -> Option<Box<dyn Decoder>> {
    let is = |class: Class| matches!(native.kind, Kind::Plain(got) if got == class);
    let as_is = arrow.clone();
    Some(match *arrow {
        DataType::Boolean => Booleans::boxed(boolean),
        DataType::Int8 => integer::<Int8Type>(),
        DataType::Int16 => integer::<Int16Type>(),
        DataType::Int32 => integer::<Int32Type>(),
        DataType::Int64 => integer::<Int64Type>(),
        DataType::UInt8 => integer::<UInt8Type>(),
        DataType::UInt16 => integer::<UInt16Type>(),
        DataType::UInt32 => integer::<UInt32Type>(),
        DataType::UInt64 => integer::<UInt64Type>(),
        DataType::Float32 if is(Class::Float4) => Primitive::<Float32Type, _>::boxed(as_is, shortest_float),
        DataType::Float32 if is(Class::Float8) => Primitive::<Float32Type, _>::boxed(as_is, narrowed),
        DataType::Float32 if is(Class::Numeric) => Primitive::<Float32Type, _>::boxed(as_is, move |cell| {
            decimal::text_decimal(cell, odds.numeric_nan)?;
            exact_float(cell)
        }),
        DataType::Float32 => Primitive::<Float32Type, _>::boxed(as_is, exact_float),
        DataType::Float64 if is(Class::Numeric) => {
            let mut losses = losses.clone();
            Primitive::<Float64Type, _>::boxed(as_is, move |cell| {
                decimal::text_double(cell, odds.numeric_nan, &mut losses)
            })
        }
        DataType::Float64 if is(Class::Float4) => {
            Primitive::<Float64Type, _>::boxed(as_is, |cell| shortest_float(cell).map(f64::from))
        }
        DataType::Float64 if is(Class::Float8) => Primitive::<Float64Type, _>::boxed(as_is, shortest_double),
        DataType::Float64 => Primitive::<Float64Type, _>::boxed(as_is, double),
        DataType::Decimal128(precision, scale) => {
            let to = DecimalType { precision, scale, numeric_nan: odds.numeric_nan };
            Primitive::<Decimal128Type, _>::boxed(as_is, move |cell| to.text(cell))
        }
        DataType::Decimal256(precision, scale) => {
            let to = DecimalType { precision, scale, numeric_nan: odds.numeric_nan };
            Primitive::<Decimal256Type, _>::boxed(as_is, move |cell| to.text(cell))
        }
        DataType::Utf8 => text(),
        DataType::LargeUtf8 => large_text(),
        // Cells of a numeric that wait for their scale are kept as they are.
        DataType::Binary if is(Class::Numeric) => bytes(),
        DataType::Binary if is(Class::Bytes) => Derived::<BinaryType, _>::boxed(bytea),
        DataType::LargeBinary if is(Class::Bytes) => Derived::<LargeBinaryType, _>::boxed(bytea),
        DataType::FixedSizeBinary(16) if is(Class::Uuid) || is(Class::Text) || is(Class::TextOnly) => {
            Fixed::<16, _>::boxed(uuid)
        }
        DataType::Date32 => Primitive::<Date32Type, _>::boxed(as_is, move |cell| civil::date(cell, odds)),
        DataType::Time64(TimeUnit::Microsecond) => {
            Primitive::<Time64MicrosecondType, _>::boxed(as_is, move |cell| civil::time(cell, odds))
        }
        DataType::Time64(TimeUnit::Nanosecond) => {
            Primitive::<Time64NanosecondType, _>::boxed(as_is, move |cell| {
                civil::time(cell, odds).map(|microseconds| microseconds * 1000)
            })
        }
        DataType::Timestamp(unit, ref zone) => {
            let is_instant = zone.is_some();
            timestamps(as_is, unit, odds.infinity, move |cell| civil::timestamp(cell, is_instant, odds))
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            Primitive::<IntervalMonthDayNanoType, _>::boxed(as_is, move |cell| {
                super::interval::parse(cell, odds)
            })
        }
        DataType::List(_) => return lists(&Type::text_only("element"), b',', arrow, odds, losses),
        _ => return None,
    })
}

fn boolean(cell: &[u8]) -> Result<bool, Odd> {
    match cell {
        b"t" | b"true" => Ok(true),
        b"f" | b"false" => Ok(false),
        _ => Err(not("a boolean", utf8(cell)?)),
    }
}

/// bytea in either of `bytea_output`'s forms: hex, or escape (`\\` and `\ooo`).
fn bytea(cell: &[u8], into: &mut Vec<u8>) -> Result<(), Odd> {
    let damaged = || Odd::fault("the server sent a damaged bytea");
    if let Some(digits) = cell.strip_prefix(b"\\x") {
        into.extend(unhex(digits).ok_or_else(damaged)?);
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
            let (octal, after) = rest.split_first_chunk::<3>().ok_or_else(damaged)?;
            let octal = std::str::from_utf8(octal).map_err(|_| damaged())?;
            into.push(u8::from_str_radix(octal, 8).map_err(|_| damaged())?);
            rest = after;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use longshore_core::OnOdd;

    use super::*;

    #[test]
    fn a_numeric_as_a_float32_obeys_numeric_nan() {
        use longshore_cells::{Cells, Span};
        let native = Type { name: "numeric".to_owned(), kind: Kind::Plain(Class::Numeric), modifier: -1 };
        let read = |text: &str, numeric_nan: OnOdd| {
            let odds = Odds { numeric_nan, infinity: OnOdd::Error, time_24: OnOdd::Error };
            let mut decoder = decoder(&native, &DataType::Float32, odds, &Losses::default()).unwrap();
            let span = Span::new(0, u32::try_from(text.len()).unwrap());
            decoder
                .decode(Cells::new(text.as_bytes(), &[span], false))
                .map(|()| decoder.finish().null_count())
        };
        for special in ["NaN", "Infinity", "-Infinity"] {
            assert!(read(special, OnOdd::Error).is_err(), "{special}");
            assert_eq!(read(special, OnOdd::Null), Ok(1), "{special}");
        }
        assert_eq!(read("0.5", OnOdd::Error), Ok(0));
        assert!(read("1.00000000000000000001", OnOdd::Null).is_err());
    }

    #[test]
    fn only_bytea_is_binary_and_only_uuids_are_sixteen_bytes() {
        let odds = Odds { numeric_nan: OnOdd::Error, infinity: OnOdd::Error, time_24: OnOdd::Error };
        let reads = |class: Class, arrow: &DataType| {
            let native = Type { name: "made".to_owned(), kind: Kind::Plain(class), modifier: -1 };
            decoder(&native, arrow, odds, &Losses::default()).is_some()
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
        use longshore_cells::{Cells, Span};
        let odds = Odds { numeric_nan: OnOdd::Error, infinity: OnOdd::Error, time_24: OnOdd::Error };
        let list = |item: DataType| DataType::List(std::sync::Arc::new(Field::new_list_field(item, true)));
        let reads = |text: &str| {
            let wanted = list(list(list(DataType::Int8)));
            let mut decoder = decoder(&Type::text_only("text"), &wanted, odds, &Losses::default()).unwrap();
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
}
