//! Text cells, read as the Arrow type that is wanted: the text protocol, types that are text in both, and every override
//! by `schema=`. What a text says that the type cannot hold is a fault, never rounded.

use arrow_array::types::{Date32Type, Int64Type, LargeUtf8Type, UInt64Type, Utf8Type};
use arrow_schema::DataType;
use longshore_core::Unrepresentable;
use longshore_values::calendar::DAY;
use longshore_values::text::{self, Number, numbers, timestamps, utf8, uuid};
use longshore_values::{
    Booleans, Decoder, Derived, Fixed, Losses, Misfit, Primitive, bytes, large_bytes, strings,
};

use super::{Context, zero_dates};
use crate::options::zero_date;
use crate::temporal::{Civil, text_time};
use crate::types::{Class, Type};

/// The decoder of `native`'s text form into `arrow`; `None` where there is none.
pub(super) fn decoder(
    name: &str,
    native: &Type,
    arrow: &DataType,
    context: &Context,
) -> Option<Box<dyn Decoder>> {
    match native.class {
        Class::Bit => bits(arrow),
        Class::Date | Class::DateTime | Class::Timestamp => temporal(name, native.class, arrow, context),
        Class::Time => times(arrow),
        _ => scalar(name, native.class, arrow, context),
    }
}

fn scalar(name: &str, class: Class, arrow: &DataType, context: &Context) -> Option<Box<dyn Decoder>> {
    let is_text = matches!(class, Class::Text | Class::Json | Class::Uuid);
    Some(match *arrow {
        DataType::Binary if matches!(class, Class::Bytes) || is_text => bytes(),
        DataType::LargeBinary if matches!(class, Class::Bytes) || is_text => large_bytes(),
        _ if class == Class::Bytes => return strings(arrow),
        DataType::FixedSizeBinary(16) if is_text => Fixed::<16, _>::boxed(uuid),
        DataType::Boolean => Booleans::boxed(boolean),
        _ if arrow.is_numeric() => {
            let number = match class {
                Class::Float => Number::Float,
                Class::Double => Number::Double,
                Class::Decimal(..) => Number::Decimal,
                _ => Number::Exact,
            };
            return numbers(arrow, number, Unrepresentable::Error, &Losses::of(name, &context.options));
        }
        _ if is_text => return temporal(name, class, arrow, context),
        _ => return strings(arrow),
    })
}

fn boolean(cell: &[u8]) -> Result<bool, Misfit> {
    match cell {
        b"0" => Ok(false),
        b"1" => Ok(true),
        _ => Err(not_a_boolean(utf8(cell)?)),
    }
}

#[cold]
pub(super) fn not_a_boolean(text: &str) -> Misfit {
    Misfit::with_hint(
        format!("{text} is neither 0 nor 1"),
        "read the column as a number: options={\"tinyint1\": \"int8\"}, or schema={\"<column>\": \"int64\"}",
    )
}

/// Bits are bytes in both protocols: the number that they spell, or themselves.
fn bits(arrow: &DataType) -> Option<Box<dyn Decoder>> {
    let as_is = arrow.clone();
    Some(match arrow {
        DataType::UInt64 => Primitive::<UInt64Type, _>::boxed(as_is, bit_number),
        DataType::Int64 => Primitive::<Int64Type, _>::boxed(as_is, |cell| {
            i64::try_from(bit_number(cell)?).map_err(|_| Misfit::fault("the bits are beyond int64"))
        }),
        DataType::Boolean => Booleans::boxed(|cell| match bit_number(cell)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(not_a_boolean(&other.to_string())),
        }),
        DataType::Binary => bytes(),
        DataType::LargeBinary => large_bytes(),
        DataType::Utf8 => Derived::<Utf8Type, _>::boxed(bit_text),
        DataType::LargeUtf8 => Derived::<LargeUtf8Type, _>::boxed(bit_text),
        _ => return None,
    })
}

/// The number as decimal text.
fn bit_text(cell: &[u8], into: &mut Vec<u8>) -> Result<(), Misfit> {
    into.extend(bit_number(cell)?.to_string().into_bytes());
    Ok(())
}

fn bit_number(cell: &[u8]) -> Result<u64, Misfit> {
    if cell.len() > 8 {
        return Err(Misfit::fault("the server sent more than 64 bits"));
    }
    Ok(cell.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Dates and timestamps, of their own types or in texts, in which a zero date is always a fault.
fn temporal(name: &str, class: Class, arrow: &DataType, context: &Context) -> Option<Box<dyn Decoder>> {
    let is_text = matches!(class, Class::Text | Class::Json | Class::Uuid);
    let zero_date = if is_text { Unrepresentable::Error } else { zero_date(&context.options) };
    let offset = if class == Class::Timestamp { context.offset } else { 0 };
    let as_is = arrow.clone();
    match arrow {
        DataType::Date32 => {
            let days =
                Primitive::<Date32Type, _>::boxed(as_is, move |cell| Civil::text(cell)?.date(zero_date));
            Some(zero_dates(name, context, days))
        }
        // Without its time zone, or with one, it would be another time.
        DataType::Timestamp(_, zone) if zone.is_some() != (class == Class::Timestamp) => None,
        DataType::Timestamp(unit, _) => {
            let read = move |cell: &[u8]| Civil::text(cell)?.microseconds(zero_date, offset);
            Some(zero_dates(name, context, timestamps(as_is, *unit, Unrepresentable::Error, read)))
        }
        DataType::Duration(_) | DataType::Time64(_) if is_text => times(arrow),
        _ => strings(arrow),
    }
}

fn times(arrow: &DataType) -> Option<Box<dyn Decoder>> {
    match arrow {
        DataType::Duration(_) => text::times(arrow, text_time),
        DataType::Time64(_) => text::times(arrow, time_of_day),
        _ => strings(arrow),
    }
}

/// A span that is a time of day.
fn time_of_day(cell: &[u8]) -> Result<i64, Misfit> {
    let time = text_time(cell)?;
    if (0..DAY).contains(&time) {
        return Ok(time);
    }
    Err(Misfit::with_hint(
        format!("{} is not a time of day", utf8(cell)?),
        "leave the column out of schema=: it is read as a duration then",
    ))
}

#[cfg(test)]
mod tests {
    use arrow_schema::TimeUnit;
    use longshore_core::ReadOptions;
    use longshore_values::{Cells, Span};

    use crate::temporal::Zone;

    use super::*;

    fn read(class: Class, arrow: &DataType, cell: &[u8]) -> Result<String, String> {
        let native = Type { class, label: "made".into(), not_null: false };
        let context = Context::new(&ReadOptions::default(), Zone::UTC);
        let mut decoder = decoder("c", &native, arrow, &context).ok_or("none")?;
        let span = Span::new(0, u32::try_from(cell.len()).unwrap());
        decoder.decode(Cells::new(cell, &[span], false)).map_err(|fault| fault.what.into_owned())?;
        Ok(format!("{:?}", decoder.finish()))
    }

    #[test]
    fn bits_are_numbers() {
        assert!(read(Class::Bit, &DataType::UInt64, &[1, 2]).unwrap().contains("258"));
        assert!(read(Class::Bit, &DataType::UInt64, &[0xff; 8]).unwrap().contains("18446744073709551615"));
        assert!(read(Class::Bit, &DataType::UInt64, &[0; 9]).is_err());
        assert!(read(Class::Bit, &DataType::Int64, &[0xff; 8]).is_err());
        assert!(read(Class::Bit, &DataType::Boolean, &[2]).is_err());
        assert!(read(Class::Bit, &DataType::Utf8, &[1, 0]).unwrap().contains("256"));
    }

    #[test]
    fn overrides_are_exact_or_faults() {
        assert!(read(Class::Int64, &DataType::Decimal128(5, 1), b"1234").unwrap().contains("12340"));
        assert!(read(Class::Int64, &DataType::Float64, b"9007199254740993").is_err());
        assert!(read(Class::Decimal(10, 2), &DataType::Int8, b"7.00").unwrap().contains('7'));
        assert!(read(Class::Decimal(10, 2), &DataType::Int8, b"7.01").is_err());
        assert!(read(Class::Int8, &DataType::Boolean, b"2").is_err());
        assert!(read(Class::Time, &DataType::Time64(TimeUnit::Microsecond), b"25:00:00").is_err());
        let naive = DataType::Timestamp(TimeUnit::Microsecond, None);
        assert!(read(Class::Timestamp, &naive, b"2025-01-01 00:00:00").is_err());
        assert!(
            read(Class::DateTime, &DataType::Utf8, b"0000-00-00 00:00:00").unwrap().contains("0000-00-00")
        );
        assert!(read(Class::Bytes, &DataType::Int8, b"1").is_err());
        assert_eq!(bit_number(&[]), Ok(0));
    }
}
