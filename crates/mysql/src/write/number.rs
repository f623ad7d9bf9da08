//! Numbers of a column.

use std::fmt::Write;

use longshore_source::fit::{self, Decimals};
use longshore_values::decimal::{Text, short_mantissa};
use longshore_values::{Item, Misfit, push_number};

use super::load::LoadBuffer;

pub(super) fn integer(
    item: &Item<'_>,
    least: i128,
    most: i128,
    buffer: &mut LoadBuffer,
) -> Result<(), Misfit> {
    let value = fit::whole(item)?.ok_or_else(|| fit::not_within(least, most))?;
    buffer.integer(fit::within(value, least, most)?);
    Ok(())
}

pub(super) fn year(item: &Item<'_>, buffer: &mut LoadBuffer) -> Result<(), Misfit> {
    let year = match item {
        Item::Bool(_) => return Err(fit::wrong_type(item)),
        // Fewer digits would mean another year.
        Item::Text(text) if text.len() != 4 => None,
        _ => fit::whole(item)?,
    };
    let year = year.filter(|year| matches!(year, 0 | 1901..=2155));
    buffer.plain(&format!("{:04}", year.ok_or_else(|| fit::not_within(1901, 2155))?));
    Ok(())
}

/// Writes the digits of an exact number into `scratch`; `false` for any other value.
fn digits(item: &Item<'_>, scratch: &mut String) -> bool {
    scratch.clear();
    if let Item::Bool(value) = item {
        scratch.push(if *value { '1' } else { '0' });
        return true;
    }
    push_number(scratch, item)
}

pub(super) fn decimal(
    item: &Item<'_>,
    decimals: Decimals,
    buffer: &mut LoadBuffer,
    scratch: &mut String,
) -> Result<(), Misfit> {
    if let Item::Decimal(value, scale) = item
        && decimals.surely_hold(*value, i32::from(*scale))
    {
        buffer.decimal(*value, scale.unsigned_abs());
        return Ok(());
    }
    if let Item::Double(value) = item
        && let Ok(scale) = u8::try_from(decimals.scale)
        && let Some(value) = short_mantissa(*value, scale).map(i128::from)
        && decimals.surely_hold(value, decimals.scale)
    {
        buffer.decimal(value, scale);
        return Ok(());
    }
    match item {
        Item::Text(text) => {
            decimals.check(text)?;
            buffer.plain(text);
            return Ok(());
        }
        Item::Float(value) => shortest(f64::from(*value), scratch)?,
        Item::Double(value) => shortest(*value, scratch)?,
        _ if digits(item, scratch) => {}
        _ => return Err(fit::wrong_type(item)),
    }
    decimals.check(scratch)?;
    buffer.number(scratch);
    Ok(())
}

/// Writes the shortest text that means this double and no other.
fn shortest(value: f64, scratch: &mut String) -> Result<(), Misfit> {
    if !value.is_finite() {
        return Err(fit::not_finite("MySQL"));
    }
    scratch.clear();
    let _ = write!(scratch, "{value:e}");
    Ok(())
}

/// Doubles, and floats where the column `is_single`.
pub(super) fn float(
    item: &Item<'_>,
    is_single: bool,
    scale: Option<u8>,
    signed: bool,
    buffer: &mut LoadBuffer,
    scratch: &mut String,
) -> Result<(), Misfit> {
    let value = match item {
        Item::Float(value) => f64::from(*value),
        Item::Double(value) => *value,
        _ if digits(item, scratch) => {
            let value = fit::double(scratch, is_single)?;
            // Whose zeros at the end are its own, not those of a shorter number.
            let is_integer = matches!(item, Item::Bool(_) | Item::Int(_) | Item::UInt(_));
            if is_integer && fit::whole_double(value) != fit::whole(item)? {
                return Err(fit::inexact());
            }
            value
        }
        Item::Text(text) => nearest(text, is_single).ok_or_else(|| fit::wrong_type(item))?,
        _ => return Err(fit::wrong_type(item)),
    };
    if !value.is_finite() {
        return Err(fit::not_finite("MySQL"));
    }
    if is_single {
        fit::float32(value)?;
    }
    if let Some(scale) = scale {
        let decimals = Decimals { precision: i32::MAX, scale: scale.into(), is_signed: signed };
        decimals.check(&value.to_string())?;
    }
    if !signed && value < 0.0 {
        return Err(fit::below_zero());
    }
    buffer.double(value);
    Ok(())
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

    fn cell(put: impl FnOnce(&mut LoadBuffer, &mut String) -> Result<(), Misfit>) -> Option<String> {
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

    const FIVE_TWO: Decimals = Decimals { precision: 5, scale: 2, is_signed: true };

    #[test]
    fn decimals_keep_every_digit_or_fail() {
        let put = |item: Item<'_>| cell(|buffer, scratch| decimal(&item, FIVE_TWO, buffer, scratch));
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
        let unsigned = Decimals { is_signed: false, ..FIVE_TWO };
        assert!(cell(|buffer, scratch| decimal(&Item::Int(-1), unsigned, buffer, scratch)).is_none());
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
