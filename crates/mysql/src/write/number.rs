//! Numbers of a column.

use std::fmt::Write;

use longshore_core::{Error, Result};
use longshore_values::decimal::{Text, is_same_number, short_mantissa};
use longshore_values::{Item, push_decimal};

use super::encode::{misfit, refused};
use super::load::LoadBuffer;

pub(super) fn integer(item: &Item<'_>, least: i128, most: i128, buffer: &mut LoadBuffer) -> Result<()> {
    let value = match item {
        Item::Bool(value) => i128::from(*value),
        Item::Int(value) => i128::from(*value),
        Item::UInt(value) => i128::from(*value),
        Item::Decimal(value, scale) => whole(*value, *scale).ok_or_else(|| misfit(item))?,
        Item::Float(value) => whole_double(f64::from(*value)).ok_or_else(|| misfit(item))?,
        Item::Double(value) => whole_double(*value).ok_or_else(|| misfit(item))?,
        Item::Text(text) => text.parse().map_err(|_| misfit(item))?,
        Item::WideDecimal(..) => return Err(misfit(item)),
        _ => return Err(refused(item)),
    };
    if !(least..=most).contains(&value) {
        return Err(misfit(item).with_hint(format!("it takes whole numbers from {least} to {most}")));
    }
    buffer.integer(value);
    Ok(())
}

/// The number, if no digit is behind the point.
fn whole(value: i128, scale: i8) -> Option<i128> {
    let power = 10_i128.checked_pow(u32::from(scale.unsigned_abs()));
    if scale <= 0 {
        return power.and_then(|power| value.checked_mul(power));
    }
    match power {
        Some(power) => (value % power == 0).then_some(value / power),
        None => (value == 0).then_some(0),
    }
}

/// The double as an integer, where it is one. Beyond 2^63 no column takes it, but for BIGINT UNSIGNED.
fn whole_double(value: f64) -> Option<i128> {
    const MOST: f64 = 1.8e19;
    #[allow(clippy::cast_possible_truncation)] // it has no fraction, and is small enough
    (value.fract() == 0.0 && value.abs() <= MOST).then_some(value as i128)
}

pub(super) fn year(item: &Item<'_>, buffer: &mut LoadBuffer) -> Result<()> {
    let year = match item {
        Item::Int(value) => u64::try_from(*value).map_err(|_| misfit(item))?,
        Item::UInt(value) => *value,
        Item::Text(text) if text.len() == 4 => text.parse().map_err(|_| misfit(item))?,
        Item::Text(_) => return Err(misfit(item)),
        _ => return Err(refused(item)),
    };
    if year != 0 && !(1901..=2155).contains(&year) {
        return Err(misfit(item).with_hint("YEAR takes 1901 to 2155, and 0"));
    }
    // Fewer digits would mean another year.
    buffer.plain(&format!("{year:04}"));
    Ok(())
}

/// Writes the digits of an exact number into `scratch`.
pub(super) fn digits(item: &Item<'_>, scratch: &mut String) {
    scratch.clear();
    // A String takes all that is written.
    let _ = match item {
        Item::Bool(value) => write!(scratch, "{}", u8::from(*value)),
        Item::Int(value) => write!(scratch, "{value}"),
        Item::UInt(value) => write!(scratch, "{value}"),
        Item::Decimal(value, 0) => write!(scratch, "{value}"),
        Item::Decimal(value, scale) => {
            push_decimal(scratch, &value.to_string(), *scale);
            Ok(())
        }
        Item::WideDecimal(value, scale) => {
            push_decimal(scratch, &value.to_string(), *scale);
            Ok(())
        }
        _ => Ok(()),
    };
}

pub(super) fn decimal(
    item: &Item<'_>,
    precision: u8,
    scale: u8,
    signed: bool,
    buffer: &mut LoadBuffer,
    scratch: &mut String,
) -> Result<()> {
    if let Item::Decimal(value, value_scale) = item
        && fits(*value, *value_scale, precision, scale, signed)
    {
        buffer.decimal(*value, value_scale.unsigned_abs());
        return Ok(());
    }
    if let Item::Double(value) = item
        && let Some(value) = short_mantissa(*value, scale).map(i128::from)
        && let Ok(value_scale) = i8::try_from(scale)
        && fits(value, value_scale, precision, scale, signed)
    {
        buffer.decimal(value, scale);
        return Ok(());
    }
    let text: &str = match item {
        Item::Bool(_) | Item::Int(_) | Item::UInt(_) | Item::Decimal(..) | Item::WideDecimal(..) => {
            digits(item, scratch);
            scratch
        }
        Item::Float(value) => shortest(f64::from(*value), item, scratch)?,
        Item::Double(value) => shortest(*value, item, scratch)?,
        Item::Text(text) => text,
        _ => return Err(refused(item)),
    };
    let (value_scale, whole) = Text::parse(text).ok_or_else(|| misfit(item))?.extent();
    let is_negative = text.starts_with('-') && (value_scale, whole) != (0, 0);
    if value_scale > i32::from(scale)
        || whole > i32::from(precision - scale.min(precision))
        || (is_negative && !signed)
    {
        let (whole, sign) = (precision - scale.min(precision), if signed { "" } else { ", and no sign" });
        return Err(misfit(item)
            .with_hint(format!("it takes {whole} digits before the point and {scale} behind it{sign}")));
    }
    if matches!(item, Item::Text(_)) {
        buffer.plain(text);
    } else {
        buffer.number(text);
    }
    Ok(())
}

/// Whether the number needs no closer look.
fn fits(value: i128, value_scale: i8, precision: u8, scale: u8, signed: bool) -> bool {
    let Ok(value_scale) = u8::try_from(value_scale) else { return false };
    if value_scale > scale || (value < 0 && !signed) {
        return false;
    }
    let digits = u32::from(precision.saturating_sub(scale) + value_scale);
    10_u128.checked_pow(digits).is_none_or(|beyond| value.unsigned_abs() < beyond)
}

/// The shortest text that means this double and no other.
fn shortest<'a>(value: f64, item: &Item<'_>, scratch: &'a mut String) -> Result<&'a str> {
    if !value.is_finite() {
        return Err(not_a_number(item));
    }
    scratch.clear();
    let _ = write!(scratch, "{value:e}");
    Ok(scratch)
}

#[cold]
fn not_a_number(item: &Item<'_>) -> Error {
    Error::data(format!("{} is not a number that MySQL has", item.shown())).with_hint("write NULL instead")
}

/// Doubles, and floats where the column `is_single`.
pub(super) fn float(
    item: &Item<'_>,
    is_single: bool,
    scale: Option<u8>,
    signed: bool,
    buffer: &mut LoadBuffer,
    scratch: &mut String,
) -> Result<()> {
    let value = match item {
        Item::Float(value) => f64::from(*value),
        Item::Double(value) => *value,
        Item::Bool(_) | Item::Int(_) | Item::UInt(_) | Item::Decimal(..) | Item::WideDecimal(..) => {
            digits(item, scratch);
            let value: f64 = scratch.parse().map_err(|_| misfit(item))?;
            if !is_same_number(&format!("{value:e}"), scratch) {
                return Err(
                    misfit(item).with_hint("the nearest double is another number: use a DECIMAL column")
                );
            }
            value
        }
        Item::Text(text) => nearest(text, is_single).ok_or_else(|| misfit(item))?,
        _ => return Err(refused(item)),
    };
    if !value.is_finite() {
        return Err(not_a_number(item));
    }
    if is_single && !is_float(value) {
        return Err(misfit(item).with_hint("no FLOAT is this number: use a DOUBLE column"));
    }
    let is_rounded =
        scale.is_some_and(|scale| format!("{value:.*}", usize::from(scale)).parse() != Ok(value));
    if is_rounded || (!signed && value < 0.0) {
        return Err(misfit(item));
    }
    buffer.double(value);
    Ok(())
}

#[allow(clippy::cast_possible_truncation, clippy::float_cmp)] // whether anything is cut off is the question
fn is_float(value: f64) -> bool {
    f64::from(value as f32) == value
}

/// The number that a text means: text has no bits to be lost.
fn nearest(text: &str, is_single: bool) -> Option<f64> {
    Text::parse(text)?;
    if is_single { text.parse::<f32>().ok().map(f64::from) } else { text.parse().ok() }
}

#[cfg(test)]
mod tests {
    use arrow_buffer::i256;

    use crate::write::load::Form;

    use super::*;

    fn cell(put: impl FnOnce(&mut LoadBuffer, &mut String) -> Result<()>) -> Option<String> {
        let mut buffer = LoadBuffer::new(Form::File);
        put(&mut buffer, &mut String::new()).ok()?;
        Some(String::from_utf8(buffer.bytes).unwrap())
    }

    #[test]
    fn integers_fit_or_fail() {
        let put = |item: Item<'_>| cell(|buffer, _| integer(&item, -128, 127, buffer));
        assert_eq!(put(Item::Int(-128)).unwrap(), "-128");
        assert_eq!(put(Item::Decimal(1200, 2)).unwrap(), "12");
        assert_eq!(put(Item::Text("+12")).unwrap(), "12");
        assert_eq!(put(Item::Double(-0.0)).unwrap(), "0");
        for item in [
            Item::UInt(128),
            Item::Decimal(1201, 2),
            Item::Double(0.5),
            Item::Double(f64::NAN),
            Item::Text("1.0"),
            Item::Date(1),
            Item::WideDecimal(i256::ONE, 0),
        ] {
            assert!(put(item.clone()).is_none(), "{item:?}");
        }
    }

    #[test]
    fn decimals_keep_every_digit_or_fail() {
        let put = |item: Item<'_>| cell(|buffer, scratch| decimal(&item, 5, 2, true, buffer, scratch));
        for (item, text) in [
            (Item::Decimal(-99999, 2), "-999.99"),
            (Item::Decimal(5, 2), "0.05"),
            (Item::Decimal(1_500_000, 5), "15.00000"),
            (Item::Decimal(9, -2), "900"),
            (Item::Int(999), "999"),
            (Item::Double(0.1), "0.10"),
            (Item::Double(-999.99), "-999.99"),
            (Item::Float(0.5), "5e-1"),
            (Item::Text("1.50"), "1.50"),
        ] {
            assert_eq!(put(item.clone()).unwrap(), text, "{item:?}");
        }
        for item in [
            Item::Int(1000),
            Item::Decimal(1, 3),
            Item::Double(1000.0),
            Item::Double(0.001),
            Item::Double(f64::INFINITY),
            Item::Text("x"),
            Item::Bytes(b"1"),
        ] {
            assert!(put(item.clone()).is_none(), "{item:?}");
        }
        assert!(cell(|buffer, scratch| decimal(&Item::Int(-1), 5, 2, false, buffer, scratch)).is_none());
    }

    #[test]
    fn floats_are_the_same_number_or_fail() {
        let put =
            |item: Item<'_>, short| cell(|buffer, scratch| float(&item, short, None, true, buffer, scratch));
        assert_eq!(put(Item::Float(0.1), true).unwrap(), "1.0000000149011612e-1");
        assert_eq!(put(Item::Text("0.1"), true).unwrap(), "1.0000000149011612e-1");
        assert_eq!(put(Item::Int(1 << 53), false).unwrap(), "9.007199254740992e15");
        assert!(put(Item::Double(0.1), true).is_none());
        assert!(put(Item::Int((1 << 53) + 1), false).is_none());
        assert!(put(Item::Double(f64::NAN), false).is_none());
        assert!(
            cell(|buffer, scratch| float(&Item::Double(0.125), false, Some(2), true, buffer, scratch))
                .is_none()
        );
    }
}
